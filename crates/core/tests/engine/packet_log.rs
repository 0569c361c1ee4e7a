//! What did both hosts send, and when? A packet log as a test writes it, and what a capture makes of it.
//!
//! A log says when each packet *left its sender*; the path adds the rest, so one log gives the capture at either end:
//!
//! ```text
//!     handshake              three packets, no time lost in the hosts
//!     +5    C 20    #head    the client sends 20 bytes, 5 ms after the line before
//!     +40   S ack            40 ms after #head *arrived* at the server
//!     head+1 C 100           1 ms after #head left
//!     @250  C 20..120 lost   at 250 ms: bytes 20 to 120 again, lost on the path (`damaged`: every capture sees it, but it is dropped)
//! ```
//!
//! A time `+5` counts from the line before: from its departure if the same side sent it, from its arrival if
//! the other did. `label+5` counts in the same way from a labelled line; `@5` from the log's start. All times
//! are ms.
//!
//! Acknowledgement numbers, SACK and D-SACK blocks, TCP time stamps and IP identifications follow from
//! what had arrived at the sender until then. `asks=7` and `answers=7` give a line's meaning to a reader
//! of its protocol, without `=7` if that pairs them in order; `greets` is a greeting, `tells` a message
//! that was not requested, `serves` one of the protocol itself, `mute` means that nothing is read from
//! there on, `sealed` that it is encrypted, and `unread` that no payload was captured. A SYN carries
//! `data=100`, `refused` or not. `20x3` is three segments of 20 bytes; the last one of a line has PSH
//! unless `more` follows.

use std::collections::HashMap;

use tcpwhy_core::{Mark, Role};
use tcpwhy_wire::{Duration, Endpoint, Flags, Instant, SackBlock, Segment, Seq, TcpOptions, Timestamps};

pub(crate) const CLIENT: Endpoint = Endpoint::v4([10, 0, 0, 1], 40_000);
pub(crate) const SERVER: Endpoint = Endpoint::v4([10, 0, 0, 2], 80);
/// Full Ethernet segment with time stamps.
pub(crate) const MSS: i64 = 1448;
const MSS_ANNOUNCED: u16 = 1460;
const WINDOW_SCALE: u8 = 7;
const WINDOW: u32 = 1 << 21;
/// When the log starts, so that earlier times are possible; not on a whole millisecond, unlike the clocks of
/// captures that count these.
const EPOCH_NS: i64 = 1_700_000_000_000_123_456;

/// This many milliseconds.
pub(crate) fn ms(n: impl Into<f64>) -> Duration {
    Duration::from_nanos((n.into() * 1e6).round() as i64)
}

/// The end that sent it, or that is next to the capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Client,
    Server,
}

use End::{Client, Server};

impl End {
    pub(crate) const BOTH: [Self; 2] = [Client, Server];
}

/// A log and the path it runs over.
#[derive(Clone, Debug)]
pub(crate) struct PacketLog {
    text: String,
    one_way: Duration,
    /// Bits per second of payload in each sender's direction.
    rate_bps: [Option<u64>; 2],
    first_seq: [u32; 2],
    ports: [Endpoint; 2],
    window_scale: [Option<u8>; 2],
    window: [u32; 2],
    ip_ids: bool,
    /// What the server's packets begin with.
    ttl: u8,
    timestamps: bool,
}

/// A packet as it left its sender.
#[derive(Clone, Debug)]
pub(crate) struct Packet {
    pub from: End,
    pub departs: Duration,
    /// When it reaches the peer; `None` if it is lost.
    pub arrives: Option<Duration>,
    /// When it passes the peer's capture point.
    passes: Option<Duration>,
    /// In the path, not in the hosts: seen by no capture although it arrives.
    pub unseen: bool,
    /// Seen twice by the capture, as with `-i any`.
    pub twice: bool,
    pub refused: bool,
    /// The message that begins with its first byte, its length, and its identifier.
    pub message: Option<(Role, u32, Option<u64>, [bool; 2])>,
    pub segment: Segment,
}

pub(crate) fn log(text: impl Into<String>) -> PacketLog {
    PacketLog {
        text: text.into(),
        one_way: Duration::ZERO,
        rate_bps: [None; 2],
        first_seq: [1_000, 5_000],
        ports: [CLIENT, SERVER],
        window_scale: [Some(WINDOW_SCALE); 2],
        window: [WINDOW; 2],
        ip_ids: true,
        ttl: 64,
        timestamps: true,
    }
}

/// A handshake and this many exchanges of 100 and 200 bytes, for the estimates of the RTT and the timer to
/// settle.
pub(crate) fn settled(exchanges: usize) -> String {
    "handshake\n".to_owned() + &"+5 C 100\n +0 S 200\n +0 C ack\n".repeat(exchanges)
}

/// Lines that differ by a number.
pub(crate) fn each<T>(numbers: impl IntoIterator<Item = T>, line: impl Fn(T) -> String) -> String {
    let lines: Vec<String> = numbers.into_iter().map(line).collect();
    lines.join("\n")
}

impl PacketLog {
    pub(crate) fn rtt(mut self, rtt: Duration) -> Self {
        self.one_way = rtt.divided_by(2);
        self
    }

    /// A bottleneck for `from`'s packets, with an unlimited queue.
    pub(crate) fn bottleneck(mut self, from: End, bits_per_second: u64) -> Self {
        self.rate_bps[from as usize] = Some(bits_per_second);
        self
    }

    /// The initial sequence number of one end.
    pub(crate) fn first_seq(mut self, of: End, seq: u32) -> Self {
        self.first_seq[of as usize] = seq;
        self
    }

    /// Client and server.
    pub(crate) fn between(mut self, ends: [Endpoint; 2]) -> Self {
        self.ports = ends;
        self
    }

    /// The window that one end advertises if the log says nothing else, in bytes.
    pub(crate) fn window(mut self, of: End, bytes: u32) -> Self {
        self.window[of as usize] = bytes;
        self
    }

    pub(crate) fn without_ip_ids(mut self) -> Self {
        self.ip_ids = false;
        self
    }

    pub(crate) fn server_ttl(mut self, ttl: u8) -> Self {
        self.ttl = ttl;
        self
    }

    pub(crate) fn without_timestamps(mut self) -> Self {
        self.timestamps = false;
        self
    }

    pub(crate) fn without_window_scale(mut self) -> Self {
        self.window_scale = [None; 2];
        self
    }

    /// The packets in the order of the log.
    pub(crate) fn packets(&self) -> Vec<Packet> {
        let mut lines = Vec::new();
        let mut labels = HashMap::new();
        for line in self.text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            if line == "handshake" {
                for line in ["@0 C syn", "+0 S syn", "+0 C ack"] {
                    self.line(line, &mut lines, &mut labels);
                }
            } else {
                self.line(line, &mut lines, &mut labels);
            }
        }
        self.fill_in(&lines)
    }

    /// The messages that begin in a segment, according to a reader of the protocol.
    pub(crate) fn marks(&self) -> impl Fn(&Segment) -> Vec<Mark> {
        let messages: Vec<_> = self.packets().into_iter().filter(|packet| packet.message.is_some()).collect();
        move |segment| {
            let begins = |packet: &&Packet| {
                let (src, seq) = (packet.segment.src, packet.segment.seq);
                src == segment.src && seq.at_or_after(segment.seq) && seq.before(segment.seq_end())
            };
            let mark = |packet: &Packet| {
                let (role, len, id, [first, last]) = packet.message?;
                let seq = packet.segment.seq;
                let end = Some(seq + len);
                let (by_peer, session, released, credit) = (false, false, false, None);
                Some(Mark { seq, end, role, id, first, last, by_peer, session, released, credit })
            };
            messages.iter().filter(begins).filter_map(mark).collect()
        }
    }

    /// The capture next to `vantage`, in its order, numbered from 1.
    pub(crate) fn capture(&self, vantage: End) -> Vec<Segment> {
        self.capture_at(if vantage == Client { 0 } else { 16 })
    }

    /// The capture at this many sixteenths of the path from the client to the server.
    pub(crate) fn capture_at(&self, sixteenths: i64) -> Vec<Segment> {
        let mut seen: Vec<(Duration, Segment)> = Vec::new();
        for packet in self.packets() {
            let near = (packet.from == Client) == (sixteenths == 0);
            if packet.unseen || (packet.passes.is_none() && !near) {
                continue;
            }
            let share = if packet.from == Client { sixteenths } else { 16 - sixteenths };
            let way = packet.passes.map_or(Duration::ZERO, |passes| passes - packet.departs);
            let at = packet.departs + way.times(share).divided_by(16);
            seen.push((at, packet.segment));
            if packet.twice {
                seen.push((at + Duration::from_micros(4), packet.segment));
            }
        }
        seen.sort_by_key(|(at, _)| *at); // stable: at one time, in the order of the log
        let numbered = seen.into_iter().zip(1..).map(|((at, segment), packet)| Segment {
            at: Instant::from_nanos(EPOCH_NS) + at,
            packet,
            ..segment
        });
        numbered.collect()
    }

    fn line(&self, text: &str, packets: &mut Vec<Draft>, labels: &mut HashMap<String, usize>) {
        let mut words = text.split_whitespace();
        let mut word = || words.next().unwrap_or_else(|| panic!("`{text}`: time, side and what, please"));
        let (time, side, what) = (word(), word(), word());
        let from = match side {
            "C" => Client,
            "S" => Server,
            _ => panic!("`{text}`: C or S"),
        };
        let (reference, offset) = time.split_at(time.find(['+', '@']).expect("a time has + or @"));
        let offset_ms: f64 = offset[1..].parse().unwrap_or_else(|_| panic!("`{text}`: no time"));
        let since = match (reference, offset.starts_with('@')) {
            (_, true) => Duration::ZERO,
            ("", false) => packets.last().map_or(Duration::ZERO, |last| last.reaches(from)),
            (label, false) => packets[labels[label]].reaches(from),
        };
        let mut draft = Draft::new(from, since + ms(offset_ms));
        let mut count = 1;
        match what {
            "syn" => draft.flags |= Flags::SYN,
            "ack" => {}
            "fin" => draft.flags |= Flags::FIN,
            "rst" => draft.flags |= Flags::RST,
            what => {
                let number = |n: &str| n.parse::<u32>().unwrap_or_else(|_| panic!("`{text}`: {n}?"));
                if let Some((start, end)) = what.split_once("..") {
                    draft.offset = Some(number(start));
                    draft.len = number(end) - number(start);
                } else {
                    let (len, times) = what.split_once('x').unwrap_or((what, "1"));
                    draft.len = number(len);
                    count = number(times);
                }
            }
        }
        let mut push = draft.len > 0;
        let mut every = Duration::ZERO;
        let mut ends = [true; 2];
        for word in words {
            let (name, value) = word.split_once('=').unwrap_or((word, ""));
            match name {
                "more" => push = false,
                "lost" => draft.lost = true,
                "damaged" => (draft.lost, draft.damaged) = (true, true),
                "unseen" => draft.unseen = true,
                "twice" => draft.twice = true,
                "fin" => draft.flags |= Flags::FIN,
                "data" => draft.len = value.parse().expect("data=BYTES"),
                "refused" => draft.refused = true,
                "asks" => draft.message = Some((Role::Asks, value.parse().ok())),
                "opens" => ends = [true, false],
                "part" => ends = [false; 2],
                "ends" => ends = [false, true],
                "greets" => draft.message = Some((Role::Greets, None)),
                "tells" => draft.message = Some((Role::Tells, None)),
                "serves" => draft.message = Some((Role::Neither, None)),
                "mute" => draft.message = Some((Role::Lost, None)),
                "unread" => draft.message = Some((Role::Unread, None)),
                "alert" => draft.message = Some((Role::Alert, None)),
                "sealed" => draft.message = Some((Role::Sealed, None)),
                "answers" => draft.message = Some((Role::Answers, value.parse().ok())),
                "win" => draft.window = Some(value.parse().expect("win=BYTES")),
                "ack" => draft.ack = Some(value.parse().expect("ack=OFFSET")),
                "late" => draft.late = ms(value.parse::<f64>().expect("late=MS")),
                "every" => every = ms(value.parse::<f64>().expect("every=MS")),
                _ if name.starts_with('#') => {
                    labels.insert(name[1..].to_owned(), packets.len());
                }
                _ => panic!("`{text}`: {word}?"),
            }
        }
        let message = draft.message.take().map(|(role, id)| (role, draft.len * count, id, ends));
        for i in 0..count {
            let mut draft = draft.clone();
            draft.whole = message.filter(|_| i == 0);
            draft.departs += every.times(i64::from(i));
            if push && i + 1 == count {
                draft.flags |= Flags::PSH;
            }
            self.travel(&mut draft, packets);
            packets.push(draft);
        }
    }

    fn travel(&self, draft: &mut Draft, before: &[Draft]) {
        let free = before.iter().filter(|d| d.from == draft.from && !d.lost).map(|d| d.passed).max();
        let serialisation = self.rate_bps[draft.from as usize].map_or(Duration::ZERO, |bps| {
            Duration::from_nanos((u64::from(draft.len) * 8 * 1_000_000_000 / bps) as i64)
        });
        let starts = if serialisation.is_positive() {
            draft.departs.max(free.unwrap_or(Duration::ZERO))
        } else {
            draft.departs
        };
        draft.passed = starts + serialisation;
        draft.arrives = draft.passed + self.one_way + draft.late;
    }

    /// Sequence numbers in the order of departure, acknowledgements by what had arrived.
    fn fill_in(&self, drafts: &[Draft]) -> Vec<Packet> {
        let mut order: Vec<usize> = (0..drafts.len()).collect();
        order.sort_by_key(|&i| drafts[i].departs);
        let mut packets: Vec<Option<Packet>> = vec![None; drafts.len()];
        let mut next = [0u32; 2];
        let mut ip_id = [300u16, 700];
        for &i in &order {
            let draft = &drafts[i];
            let own = draft.from as usize;
            let syn = draft.flags & Flags::SYN != 0;
            let offset = draft.offset.unwrap_or(if syn { 0 } else { next[own] });
            let fin = u32::from(draft.flags & Flags::FIN != 0);
            next[own] = next[own].max(offset + draft.len + fin);
            let peer_first = Seq(self.first_seq[1 - own]) + 1;
            let arrived = Arrived::at(&packets, draft, peer_first);
            let first_syn = syn && arrived.nothing;
            let mut options = TcpOptions::default();
            if syn {
                options.mss = Some(MSS_ANNOUNCED);
                options.window_scale = self.window_scale[own];
                options.sack_permitted = true;
            }
            if self.timestamps {
                let val = (draft.departs.as_nanos() / 1_000_000) as u32 + 77_000;
                options.timestamps = Some(Timestamps { val, ecr: arrived.timestamp });
            }
            let ack = peer_first + draft.ack.unwrap_or(arrived.in_order);
            if draft.ack.is_none() && draft.len == 0 {
                for &(start, end) in arrived.sack.iter().take(3) {
                    options.push_sack(SackBlock { start: peer_first + start, end: peer_first + end });
                }
            }
            let scale = if syn { 0 } else { self.window_scale[own].unwrap_or(0) };
            let window = draft.window.unwrap_or(self.window[own]).min(u32::from(u16::MAX) << scale) >> scale;
            let seq = Seq(self.first_seq[own]) + u32::from(!syn) + offset;
            let ack_flag = if first_syn || draft.flags & Flags::RST != 0 { 0 } else { Flags::ACK };
            let id = if syn && !first_syn {
                0
            } else {
                let id = ip_id[own];
                ip_id[own] = id.wrapping_add(draft.len.div_ceil(MSS as u32).max(1) as u16);
                id
            };
            packets[i] = Some(Packet {
                from: draft.from,
                departs: draft.departs,
                arrives: (!draft.lost).then_some(draft.arrives),
                passes: (!draft.lost || draft.damaged).then_some(draft.arrives),
                unseen: draft.unseen,
                twice: draft.twice,
                refused: draft.refused,
                message: draft.whole,
                segment: Segment {
                    packet: 0,
                    at: Instant::from_nanos(0),
                    src: self.ports[own],
                    dst: self.ports[1 - own],
                    seq,
                    ack: if ack_flag == 0 { Seq(0) } else { ack },
                    window: window as u16,
                    flags: Flags(draft.flags | ack_flag),
                    payload_len: draft.len,
                    options,
                    ip_id: self.ip_ids.then_some(id),
                    ttl: if draft.from == Server { self.ttl } else { 64 },
                    damaged: draft.damaged,
                },
            });
        }
        packets.into_iter().flatten().collect()
    }
}

/// A line of the log.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each says something of its own")]
struct Draft {
    from: End,
    departs: Duration,
    passed: Duration,
    arrives: Duration,
    offset: Option<u32>,
    len: u32,
    flags: u8,
    window: Option<u32>,
    ack: Option<u32>,
    /// Delayed on the path by this much; others overtake it.
    late: Duration,
    lost: bool,
    damaged: bool,
    unseen: bool,
    twice: bool,
    /// The peer does not take its data.
    refused: bool,
    message: Option<(Role, Option<u64>)>,
    whole: Option<(Role, u32, Option<u64>, [bool; 2])>,
}

impl Draft {
    fn new(from: End, departs: Duration) -> Self {
        Self {
            from,
            departs,
            passed: departs,
            arrives: departs,
            offset: None,
            len: 0,
            flags: 0,
            window: None,
            ack: None,
            late: Duration::ZERO,
            lost: false,
            damaged: false,
            unseen: false,
            twice: false,
            refused: false,
            message: None,
            whole: None,
        }
    }

    /// When it happens as seen by `end`.
    fn reaches(&self, end: End) -> Duration {
        if self.from == end { self.departs } else { self.arrives }
    }
}

/// What one host has received when it sends a packet.
struct Arrived {
    nothing: bool,
    /// Bytes (and FIN) received without a gap, as an offset.
    in_order: u32,
    /// A duplicate that arrived last, then the islands beyond the gap.
    sack: Vec<(u32, u32)>,
    timestamp: u32,
}

impl Arrived {
    /// The peer's bytes that had arrived; the first has this number.
    fn at(packets: &[Option<Packet>], sender: &Draft, first: Seq) -> Self {
        let mut arrivals: Vec<(Duration, &Packet)> = packets
            .iter()
            .flatten()
            .filter(|packet| packet.from != sender.from)
            .filter_map(|packet| Some((packet.arrives?, packet)))
            .filter(|(arrives, _)| *arrives <= sender.departs)
            .collect();
        arrivals.sort_by_key(|(arrives, _)| *arrives);
        let mut in_order = 0;
        let mut islands: Vec<(u32, u32)> = Vec::new();
        let mut duplicate = None;
        for (arrives, packet) in &arrivals {
            let segment = &packet.segment;
            let start = (segment.seq - first).max(0) as u32;
            let end = start + segment.payload_len + u32::from(segment.flags.fin());
            if end == start || packet.refused {
                continue;
            }
            let known = end <= in_order || islands.iter().any(|island| island.0 <= start && end <= island.1);
            // Reported once, in the acknowledgement that the duplicate causes (RFC 2883, 4).
            duplicate = (known && *arrives == sender.departs).then_some((start, end));
            islands.push((start, end));
            islands.sort_unstable();
            let mut merged: Vec<(u32, u32)> = Vec::new();
            for (start, end) in islands.drain(..) {
                match merged.last_mut() {
                    Some(last) if start <= last.1 => last.1 = last.1.max(end),
                    _ => merged.push((start, end)),
                }
            }
            islands = merged;
            if let Some(&(start, end)) = islands.first()
                && start <= in_order
            {
                in_order = in_order.max(end);
                islands.remove(0);
            }
        }
        Self {
            nothing: arrivals.is_empty(),
            in_order,
            sack: duplicate.into_iter().chain(islands).collect(),
            timestamp: echoed(packets, sender, &arrivals),
        }
    }
}

/// The time stamp of what arrived last of what continues the bytes acknowledged by then (RFC 7323, 4.3).
fn echoed(packets: &[Option<Packet>], sender: &Draft, arrivals: &[(Duration, &Packet)]) -> u32 {
    let own = || packets.iter().flatten().filter(|packet| packet.from == sender.from);
    let continues = |arrives: Duration, segment: &Segment| {
        let acked = own().filter(|packet| packet.departs < arrives && packet.segment.flags.ack());
        let acked = acked.map(|packet| packet.segment.ack).reduce(|a, b| if b.after(a) { b } else { a });
        acked.is_none_or(|acked| segment.seq.at_or_before(acked))
    };
    let kept = arrivals.iter().rfind(|(arrives, packet)| continues(*arrives, &packet.segment));
    kept.and_then(|(_, packet)| packet.segment.options.timestamps).map_or(0, |stamps| stamps.val)
}
