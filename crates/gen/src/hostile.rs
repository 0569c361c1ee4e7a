//! Which captures would an attacker write to bring down an analysis?
//!
//! Each shape attacks one table or loop, without end: its limit has to hold.

mod bytes;
mod conversations;
mod crowds;
mod ends;
mod later;
mod readers;

use std::io::{self, Read as _, Write};

use tcpwhy_wire::Instant;
use tcpwhy_wire::capture::LinkType;
use tcpwhy_wire::capture::writer::PcapWriter;

macro_rules! hostile {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// The target of an attack.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Hostile {
            $($(#[$doc])* $variant,)*
        }

        impl Hostile {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The name on the command line.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }
    };
}

hostile! {
    /// The table of connections: a SYN from a new address each microsecond.
    SynFlood = "syn-flood",
    /// The table of servers: a client contacts one after the other, each once.
    Servers = "servers",
    /// State of a connection: very many at a time, each with segments, holes and an answer under way.
    Open = "open",
    /// State of a flight: two thousand connections whose segments are never acknowledged.
    Flights = "flights",
    /// State of a segment: one connection of segments of one byte, acknowledged late.
    OneByte = "one-byte",
    /// State of a hole: each segment leaves one before it, each farther on.
    Gaps = "gaps",
    /// State of SACK blocks: four in each ACK, anywhere.
    Sack = "sack",
    /// Windows and their scale, which jump, and ACKs of anything.
    Windows = "windows",
    /// Time: from one limit of 64 bits to the other and back, in pcapng.
    Clock = "clock",
    /// pcapng blocks: every other one claims to have 4 GB.
    Blocks = "blocks",
    /// VLAN tags to the end of each packet.
    Vlan = "vlan",
    /// IPv6 extension headers to the end of each packet.
    Extensions = "extensions",
    /// Remains of finished connections: each is a SYN and its reset, and the clock stands still.
    Finished = "finished",
    /// Lists and drawings of one connection: requests and replies without end.
    Exchanges = "exchanges",
    /// A server's statistics: nine thousand servers, whose answers take from a microsecond to a minute.
    Spreads = "spreads",
    /// A connection with one exchange: a hundred and fifty thousand at a time, each between new hosts, and
    /// all of them speak once more.
    Once = "once",
    /// Expiry by time: the clock steps back by minutes again and again, and ports are reused.
    Steps = "steps",
    /// The search for each retransmission: two thousand segments are in flight, and any of them is
    /// retransmitted.
    Resent = "resent",
    /// The search among ACKs on their way: two thousand of them, each with another window.
    Transit = "transit",
    /// State of a server in each shard: eight thousand servers, each contacted by clients of very many
    /// addresses.
    Crowd = "crowd",
    /// Recognition of conversations: sixty thousand that begin in HTTP, and continue with segments that wait
    /// for an earlier one.
    Whispers = "whispers",
    /// State of an unusual connection and segment: [`Hostile::Open`] over IPv6 and with SACK blocks.
    OpenV6 = "open-v6",
    /// Waiting fragments: first fragments of 1,400 bytes, whose others never come.
    Pieces = "pieces",
    /// The search for each fragment: fragments of eight bytes with holes between them.
    Slivers = "slivers",
    /// Fragments that are dropped: every second one overlaps the one before it.
    Overlaps = "overlaps",
    /// Memory of senders: whole packets from new addresses, every third with a wrong checksum.
    Sums = "sums",
    /// Forged packets: SYNs, resets and FINs between the packets of successive exchanges.
    MadeUp = "made-up",
    /// Segment sizes: handshakes with an MSS of 0 to 15, and segments of any length.
    Mss = "mss",
    /// Sums of time: exchanges that take nearly three hours each.
    Ages = "ages",
    /// pcapng blocks read at once: nearly 16 MB before the packets.
    LongBlocks = "long-blocks",
    /// State of interfaces: 65,536 of them, and more.
    Interfaces = "interfaces",
    /// Restarts: a pcapng section for each packet.
    Sections = "sections",
    /// Headers in headers: VXLAN in VXLAN, deeper than any decoder follows.
    Tunnels = "tunnels",
    /// MPLS labels to the end of each packet.
    Labels = "labels",
    /// Unknown options: forty bytes of one byte each.
    TcpOptions = "options",
    /// State between two hosts: every port, again and again.
    Ports = "ports",
    /// Which end is which: a host and port that talks to itself.
    Itself = "itself",
    /// Detection of timers: a server that sends unasked, at nearly equal intervals, on many connections.
    Pushes = "pushes",
    /// Requests under way: one connection that keeps asking in Redis's protocol, and is hardly ever answered.
    Pipeline = "pipeline",
    /// State of windows: they are closed, and probed without end.
    Shut = "shut",
    /// State of handshakes: SYNs with data, retransmitted again and again, answered by several SYN-ACKs.
    Openings = "openings",
    /// Conclusions about clocks: time stamps of any value.
    Stamps = "stamps",
    /// Conclusions about identifications: any values.
    Numbers = "numbers",
    /// Conclusions about duplicates: each packet three times, with another time to live.
    Copies = "copies",
    /// Holes that are filled from their ends: each segment is before the last one.
    Backwards = "backwards",
    /// Sequence numbers that jump by half of their space.
    Leaps = "leaps",
    /// Ends and beginnings: four packets per connection, between the same two ends.
    Reopened = "reopened",
    /// Everything: each field of each header is any number.
    Noise = "noise",
    /// Remains of abandoned connections: sixty thousand between two hosts, then as many between the next two.
    Moving = "moving",
    /// The same, but one in a hundred keeps sending.
    Vacant = "vacant",
    /// Remains of finished connections: a SYN and its reset, sixty thousand between two hosts, then between
    /// the next two.
    Leavers = "leavers",
    /// State of a server in each shard, again and again: eight thousand servers, ten connections to each, in
    /// turns.
    Regulars = "regulars",
    /// State of an epoch: segments with thirty requests each.
    Chorus = "chorus",
    /// Requests before they are counted: eighty thousand connections with some dozens of them under way.
    Askers = "askers",
    /// A server's statistics for several causes: each step of each exchange takes a microsecond to a minute.
    Causes = "causes",
    /// Remains of an epoch's segments: one connection sends for long with SACK blocks, then one between other
    /// hosts.
    Changing = "changing",
    /// Content of a SYN: data and a TCP Fast Open cookie, from a new address, and its data again.
    FastOpen = "fast-open",
    /// Options of several paths: MPTCP's, of any subtype and length.
    Subflows = "subflows",
    /// Urgent data: pointers to anywhere, on segments without payload.
    Urgent = "urgent",
    /// State of windows that close and open with each ACK.
    Flapping = "flapping",
    /// Time stamps that wrap around again and again, and old duplicates between them.
    Wraps = "wraps",
    /// Time that always runs backwards, by a millisecond per packet.
    Rewound = "rewound",
    /// Scans in each epoch: new connections, and a clock that jumps by the time after which all are scanned.
    Jumps = "jumps",
    /// Parsing of frames: HTTP/2 settings and windows, nearly a hundred in a segment.
    Settings = "settings",
    /// The search for streams: a hundred requests in an HTTP/2 segment, answered by a few, latest first.
    Streams = "streams",
    /// The search for identifiers: fifty DNS queries in a segment, answered by a few, in any order.
    Queries = "queries",
    /// Parsing of records: empty TLS records, two hundred in a segment.
    Records = "records",
    /// Dropped IPv6 fragments: each overlaps the one before it, below two VLAN tags.
    Tagged = "tagged",
    /// A capture's own text: names, descriptions and comments of pcapng that are terminal sequences.
    Names = "names",
    /// Ticks: pcapng interfaces whose ticks and offsets are at the limits.
    Ticks = "ticks",
    /// Unanswered requests: a segment full of them each time, in sixteen protocols.
    Unanswered = "unanswered",
    /// The search for identifiers: eight segments full of requests in sixteen protocols, then as many of
    /// answers, latest first.
    Reversed = "reversed",
    /// Identifiers: all requests and answers of sixteen protocols have the same one.
    SameNumber = "same-number",
    /// Lengths: messages of sixteen protocols that claim to have 0, 1, 2^31 or 2^32 - 1 bytes.
    Lengths = "lengths",
    /// Detection of protocols: a different one with each segment, and two in each.
    Turncoats = "turncoats",
    /// Partial heads: sixteen protocols in pieces of one to twelve bytes.
    Dripped = "dripped",
    /// Resynchronization: every second segment of sixteen protocols is missing.
    Missing = "missing",
    /// Messages that never end: pieces of them, in sixteen protocols.
    Unending = "unending",
}

/// Bytes gathered before they are written.
const PIECE: usize = 1 << 20;
/// Length of a packet full of headers: no decoder should go through to its end.
const NESTED_LEN: usize = 400;
/// Connections at a time of [`Hostile::Open`] and [`Hostile::Flights`].
const OPEN: u64 = 150_000;
/// Packets of each connection of the former.
const TURNS: u64 = 16;
const FLIGHTS: u64 = 2_000;
/// Length of long blocks, their distance in packets, and their number.
const LONG: usize = (16 << 20) - 12;
const LONG_EVERY: u64 = 5_000;
const LONG_MAX: u64 = 12;
const INTERFACES: usize = 70_000;
const START_NS: i64 = 1_795_255_200_000_000_000;

impl Hostile {
    /// The attack with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|hostile| hostile.name() == name)
    }

    /// Writes a capture of this many packets.
    ///
    /// # Errors
    /// Those of `to`.
    pub fn write(self, packets: u64, to: &mut impl Write) -> io::Result<()> {
        match self {
            Self::Clock
            | Self::Blocks
            | Self::LongBlocks
            | Self::Interfaces
            | Self::Sections
            | Self::Names
            | Self::Ticks => self.write_pcapng(packets, to),
            _ => self.write_pcap(packets, to),
        }
    }

    fn write_pcap(self, packets: u64, to: &mut impl Write) -> io::Result<()> {
        let mut out = PcapWriter::new(LinkType::ETHERNET, 262_144);
        let mut frame = Vec::new();
        for n in 0..packets {
            frame.clear();
            self.frame(n, packets, &mut frame);
            let at = Instant::from_nanos(START_NS + self.after_ns(n));
            out.packet(at, frame.len() as u32, &frame);
            if out.bytes().len() >= PIECE {
                to.write_all(out.bytes())?;
                out.clear();
            }
        }
        to.write_all(out.bytes())
    }

    /// Two interfaces, whose times begin at the lowest 64-bit value and in 1970, in nanoseconds.
    fn write_pcapng(self, packets: u64, to: &mut impl Write) -> io::Result<()> {
        let mut out = Vec::new();
        self.begin(&mut out);
        to.write_all(&out)?;
        out.clear();
        let mut frame = Vec::new();
        for n in 0..packets {
            frame.clear();
            self.frame(n, packets, &mut frame);
            let (interface, ticks) = match self {
                Self::Clock => {
                    (n as u32 & 1, [0, u64::MAX, 1, i64::MAX as u64, scatter(n)][(scatter(n) % 5) as usize])
                }
                Self::Ticks => (n as u32 % (2 + later::TICKS.len() as u32), scatter(n)),
                _ => (1, START_NS as u64 + n * 1_000),
            };
            match self {
                Self::Blocks if n.is_multiple_of(2) => out.extend([6, 0, 0, 0, 0xfc, 0xff, 0xff, 0xff]),
                Self::LongBlocks if n.is_multiple_of(LONG_EVERY) && n / LONG_EVERY < LONG_MAX => {
                    // In pieces: a program's peak memory includes that of the program that starts it.
                    let len = (12 + LONG as u32).to_le_bytes();
                    out.extend([&4u32.to_le_bytes()[..], &len].concat());
                    to.write_all(&out)?;
                    out.clear();
                    io::copy(&mut io::repeat(0).take(LONG as u64), to)?;
                    out.extend(len);
                }
                Self::Sections => self.begin(&mut out),
                Self::Names if n.is_multiple_of(2) => later::name(n, &mut out),
                _ => {}
            }
            let fields =
                [interface, (ticks >> 32) as u32, ticks as u32, frame.len() as u32, frame.len() as u32];
            let fields = fields.map(u32::to_le_bytes).concat();
            block(&mut out, 6, &[&fields, &frame]);
            if out.len() >= PIECE {
                to.write_all(&out)?;
                out.clear();
            }
        }
        to.write_all(&out)
    }

    /// A section and its interfaces.
    fn begin(self, out: &mut Vec<u8>) {
        block(out, 0x0a0d_0d0a, &[&0x1a2b_3c4d_u32.to_le_bytes(), &[1, 0, 0, 0], &[0xff; 8]]);
        for offset_s in [i64::MIN / 1_000_000_000, 0] {
            // Ethernet; if_tsresol is 9 digits, if_tsoffset in seconds, the end of the options.
            let resolution = [9, 0, 1, 0, 9, 0, 0, 0];
            let offset = [&[14, 0, 8, 0], &offset_s.to_le_bytes()[..]].concat();
            block(out, 1, &[&[1, 0, 0, 0, 0, 0, 0, 0], &resolution, &offset, &[0; 4]]);
        }
        if self == Self::Ticks {
            later::ticks(out);
        }
        if self == Self::Interfaces {
            for _ in 0..INTERFACES {
                block(out, 1, &[&[1, 0, 0, 0, 0, 0, 0, 0]]);
            }
        }
    }

    fn frame(self, n: u64, packets: u64, out: &mut Vec<u8>) {
        let number = n as u32;
        let from_client = !n.is_multiple_of(4);
        let mut packet = Packet {
            src: [10, 0, 0, 1],
            server: [10, 0, 0, 2],
            from_client,
            flags: 0x10,
            window: 1_024,
            ..Packet::default()
        };
        match self {
            Self::SynFlood => {
                let src = number.to_be_bytes();
                Packet { src, from_client: true, seq: number, flags: 0x02, ..packet }.put(out);
            }
            Self::Servers => {
                packet.server = (0x0b00_0000 + number / 7).to_be_bytes();
                match n % 7 {
                    0 => Packet { from_client: true, flags: 0x02, ..packet },
                    1 => Packet { from_client: false, ack: 1, flags: 0x12, ..packet },
                    2 => Packet { from_client: true, seq: 1, ack: 1, len: 100, ..packet },
                    3 => Packet { from_client: false, seq: 1, ack: 101, len: 100, ..packet },
                    4 => Packet { from_client: true, seq: 101, ack: 101, flags: 0x11, ..packet },
                    5 => Packet { from_client: false, seq: 101, ack: 102, flags: 0x11, ..packet },
                    _ => Packet { from_client: true, seq: 102, ack: 102, ..packet },
                }
                .put(out);
            }
            Self::Open => {
                // All connections of a round send before any of them does again.
                let open = OPEN.min(packets / TURNS).max(1);
                let (client, turn) = (n / (open * TURNS) * open + n % open, (n / open % TURNS) as u32);
                packet.src = (0x0b00_0000 + client as u32).to_be_bytes();
                match turn {
                    0 => Packet { from_client: true, flags: 0x02, ..packet },
                    1 => Packet { from_client: false, ack: 1, flags: 0x12, ..packet },
                    2 => Packet { from_client: true, seq: 1, ack: 1, len: 100, ..packet },
                    _ => {
                        let seq = 1 + turn / 2 * 3_000;
                        Packet { from_client: turn.is_multiple_of(2), seq, ack: 1, len: 1_000, ..packet }
                    }
                }
                .put(out);
            }
            Self::Flights => {
                packet.src = (0x0b00_0000 + (n % FLIGHTS) as u32).to_be_bytes();
                let turn = (n / FLIGHTS) as u32;
                Packet { from_client: turn.is_multiple_of(2), seq: turn, ack: 1, len: 1, ..packet }.put(out);
            }
            Self::OneByte => {
                packet.from_client = !n.is_multiple_of(1_000);
                if packet.from_client {
                    Packet { seq: number, len: 1, ..packet }.put(out);
                } else {
                    Packet { ack: number, ..packet }.put(out);
                }
            }
            Self::Gaps => {
                Packet { from_client: true, seq: number.wrapping_mul(3_000), len: 1_000, ..packet }.put(out);
            }
            Self::Sack => {
                packet.seq = number;
                if from_client {
                    packet.len = 100;
                } else {
                    let mut options = vec![1, 1, 5, 34];
                    for i in 0..4 {
                        let start = scatter(4 * n + i) as u32;
                        options.extend(start.to_be_bytes());
                        options.extend(start.wrapping_add(scatter(n) as u32 % 5_000).to_be_bytes());
                    }
                    packet.options = options;
                }
                packet.put(out);
            }
            Self::Windows
            | Self::Clock
            | Self::Blocks
            | Self::LongBlocks
            | Self::Interfaces
            | Self::Sections
            | Self::Names
            | Self::Ticks => {
                if n < 2 {
                    packet.options = vec![2, 4, 0, 0, 3, 3, 255, 1];
                    packet.from_client = n == 0;
                    packet.flags = if n == 0 { 0x02 } else { 0x12 };
                }
                packet.window = scatter(n) as u16;
                packet.ack = scatter(n + 7) as u32;
                packet.seq = number.wrapping_mul(700);
                packet.len = (scatter(n) % 400) as u16;
                packet.put(out);
            }
            Self::Vlan => {
                out.extend([2; 12]);
                while out.len() < NESTED_LEN {
                    out.extend([0x81, 0x00, 0x00, 0x01]);
                }
            }
            Self::Extensions => {
                out.extend([2; 12]);
                out.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0x05, 0xb0, 0, 64]);
                out.extend([0xfd; 32]);
                while out.len() < NESTED_LEN {
                    out.extend([60, 0, 1, 4, 0, 0, 0, 0]);
                }
            }
            _ if self.writes_bytes() => self.bytes(n, out),
            _ if self.is_crowd() => self.crowd(n, packet).put(out),
            _ if self.came_later() => self.later(n, packet, out),
            _ if self.is_spoken() => self.spoken(n, packet).put(out),
            _ if self.has_odd_ends() => self.odd(n, packet, out),
            _ => self.conversation(n, packets, packet).put(out),
        }
    }
}

/// A TCP segment over IPv4 and Ethernet between a client and port 80 of a server.
#[derive(Clone, Debug, Default)]
struct Packet {
    src: [u8; 4],
    server: [u8; 4],
    from_client: bool,
    seq: u32,
    ack: u32,
    flags: u8,
    window: u16,
    options: Vec<u8>,
    len: u16,
    /// Added to 40,000; wraps around at 65,536.
    port: u16,
    id: u16,
    /// `None` means 64.
    ttl: Option<u8>,
    /// The captured part of `len` bytes.
    payload: Vec<u8>,
}

impl Packet {
    /// With as much of its payload as there is, as if cut by a snap length.
    fn put(&self, out: &mut Vec<u8>) {
        let header_len = 20 + self.options.len() as u16;
        let (mut src, mut dst) = ((self.src, 40_000_u16.wrapping_add(self.port)), (self.server, 80_u16));
        if !self.from_client {
            (src, dst) = (dst, src);
        }
        out.extend([2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x08, 0x00, 0x45, 0]);
        out.extend((20 + header_len + self.len).to_be_bytes());
        out.extend(self.id.to_be_bytes());
        out.extend([0x40, 0, self.ttl.unwrap_or(64), 6, 0, 0]);
        out.extend(src.0);
        out.extend(dst.0);
        out.extend(src.1.to_be_bytes());
        out.extend(dst.1.to_be_bytes());
        out.extend(self.seq.to_be_bytes());
        out.extend(self.ack.to_be_bytes());
        out.extend([((header_len / 4) << 4) as u8, self.flags]);
        out.extend(self.window.to_be_bytes());
        out.extend([0; 4]);
        out.extend(&self.options);
        out.extend(&self.payload);
    }
}

/// A block of pcapng, padded.
fn block(out: &mut Vec<u8>, kind: u32, parts: &[&[u8]]) {
    let body: usize = parts.iter().map(|part| part.len()).sum();
    let len = (12 + body.next_multiple_of(4)) as u32;
    out.extend(kind.to_le_bytes());
    out.extend(len.to_le_bytes());
    for part in parts {
        out.extend(*part);
    }
    out.resize(out.len() + body.next_multiple_of(4) - body, 0);
    out.extend(len.to_le_bytes());
}

/// Numbers without a pattern, reproducible.
fn scatter(n: u64) -> u64 {
    let x = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (x ^ (x >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}
