//! Which `tcp.stream` does Wireshark show for a connection?
//!
//! Wireshark counts conversations by its own rules: a stray reset begins one, and so does each SYN
//! with a new sequence number on known ports, and a segment that is quoted in an ICMP error; a long
//! silence does not. Connections are told apart by other rules here, so the two counts diverge.
//! This one follows Wireshark's, packet by packet, from the beginning of the file.
//!
//! Versions differ: in 4.4 a SYN after a FIN or a reset begins a stream even if it repeats the
//! previous sequence number, and so does a SYN-ACK with another one; in 4.0 neither does. Both are
//! followed. All of this was found by experiment with 4.0.17 and 4.4.5; conversations that
//! Wireshark's dissectors of FTP or H.323 announce may be counted differently.

use std::collections::HashMap;

use tcpwhy_core::report::Connection;
use tcpwhy_report::text::Stream;
use tcpwhy_wire::capture::RawPacket;
use tcpwhy_wire::decode::{Fragments, Named, Put, named};
use tcpwhy_wire::{Endpoint, Segment, Skip, decode};

/// Streams and pairs of ends take at most this share of the memory...
const PART: usize = 16;
/// ...and this much each: a table that is never more than seven eighths full, and at times half of
/// that, and a list that grows by half.
const ENTRY: usize = (size_of::<(Pair, Talk)>() + 1) * 16 / 7 + 2 * size_of::<Begin>();
/// No stream.
const NONE: u32 = u32::MAX;
/// At most this many streams between the same ends are searched for the one with a given packet.
const STEPS_MAX: usize = 1 << 12;

/// Both ends, the lower one first, in as few bytes as possible. The same addresses in IPv6 are a
/// different pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Pair {
    ends: [([u8; 16], u16); 2],
    is_v6: bool,
}

impl Pair {
    fn of([one, other]: [Endpoint; 2], is_v6: bool) -> Self {
        let ends = if one > other { [other, one] } else { [one, other] };
        Self { ends: ends.map(|end| (end.addr.to_be_bytes(), end.port)), is_v6 }
    }
}

/// The versions of Wireshark that are followed: 4.0 and 4.4.
const VERSIONS: usize = 2;
const LATER: usize = 1;

/// The last stream between two ends, in each version.
#[derive(Clone, Copy, Debug)]
struct Talk {
    streams: [Counted; VERSIONS],
    /// Its index in the list.
    begin: u32,
}

#[derive(Clone, Copy, Debug)]
struct Counted {
    number: u32,
    /// What each end's sequence numbers count from.
    bases: [Option<u32>; 2],
    /// A FIN or a reset has been seen.
    is_over: bool,
}

impl Counted {
    const fn new(number: u32) -> Self {
        Self { number, bases: [None; 2], is_over: false }
    }

    /// Whether a new stream begins with this header, in this version.
    fn ends_before(&self, header: &Named, from: usize, version: usize) -> bool {
        let Some(base) = self.bases[from] else { return false };
        let is_later = version == LATER;
        let is_answer = header.flags.ack();
        header.flags.syn() && (is_later || !is_answer) && (header.seq.0 != base || is_later && self.is_over)
    }

    fn take(&mut self, header: &Named, from: usize, version: usize) {
        let (syn, ack) = (header.flags.syn(), header.flags.ack());
        if syn && !ack && self.bases[from].is_none() {
            self.is_over = false;
        }
        // A SYN-ACK with another number replaces the old one.
        if syn && ack && version != LATER && self.bases[from].is_some() {
            self.bases[from] = Some(header.seq.0);
        }
        if !header.is_quoted {
            let first = if syn { header.seq.0 } else { header.seq.0.wrapping_sub(1) };
            self.bases[from].get_or_insert(first);
            if ack {
                self.bases[1 - from].get_or_insert(header.ack.0.wrapping_sub(1));
            }
        }
        self.is_over |= header.flags.rst() || header.flags.fin() && ack;
    }
}

/// Beginning of a stream, in one of the versions or in both.
#[derive(Clone, Copy, Debug)]
struct Begin {
    /// Its first packet; 0 if it is before the window.
    packet: u64,
    numbers: [u32; VERSIONS],
    /// The previous and next stream between the same ends.
    previous: u32,
    next: u32,
}

/// Streams as Wireshark counts them. Empty unless requested.
#[derive(Debug, Default)]
pub struct Streams {
    /// Maximum number of entries; 0 if not requested.
    most: usize,
    talks: HashMap<Pair, Talk>,
    begins: Vec<Begin>,
    counts: [u32; VERSIONS],
    /// The packet at which the room ran out.
    full_at: Option<u64>,
    fragments: Fragments,
}

impl Streams {
    /// Begins to count. Returns how many bytes of `memory` that takes at most.
    pub(super) fn begin(&mut self, memory: usize) -> usize {
        self.most = (memory / PART / ENTRY).clamp(1, NONE as usize - 1);
        self.most * ENTRY
    }

    /// Whether it was requested.
    pub fn is_counted(&self) -> bool {
        self.most > 0
    }

    /// The next packet of the file; packets before the window have no number.
    #[inline]
    pub(super) fn on_packet(&mut self, packet: &RawPacket<'_>, is_wanted: bool) {
        if self.most > 0 && self.full_at.is_none() {
            self.take(packet, if is_wanted { packet.number } else { 0 });
        }
    }

    #[inline(never)]
    fn take(&mut self, packet: &RawPacket<'_>, number: u64) {
        match decode(packet) {
            Ok(segment) => self.on_header(&header(&segment), number),
            Err(skip) => self.on_skipped(packet, skip, number),
        }
    }

    #[cold]
    fn on_skipped(&mut self, packet: &RawPacket<'_>, skip: Skip, number: u64) {
        let mut fragments = std::mem::take(&mut self.fragments);
        let is_piece = skip == Skip::Fragment || skip == Skip::NotTcp && !fragments.is_empty();
        let put = if is_piece { fragments.put(packet, skip) } else { Put::Refused };
        let found = match put {
            Put::Waits => None,
            Put::Refused => named(packet),
            Put::Whole(whole, _) => {
                decode(&whole).map_or_else(|_| named(&whole), |segment| Some(header(&segment)))
            }
        };
        self.fragments = fragments;
        if let Some(header) = found {
            self.on_header(&header, number);
        }
    }

    fn on_header(&mut self, header: &Named, packet: u64) {
        let from = usize::from(header.src > header.dst);
        let pair = Pair::of([header.src, header.dst], header.is_v6);
        let known = self.talks.get(&pair).copied();
        let begins: [bool; VERSIONS] = std::array::from_fn(|version| {
            known.is_none_or(|talk| talk.streams[version].ends_before(header, from, version))
        });
        let mut talk = known.unwrap_or(Talk { streams: [Counted::new(NONE); VERSIONS], begin: NONE });
        if begins.contains(&true) {
            if self.begins.len() >= self.most {
                self.full_at = Some(packet);
                return;
            }
            for version in (0..VERSIONS).filter(|version| begins[*version]) {
                talk.streams[version] = Counted::new(self.counts[version]);
                self.counts[version] += 1;
            }
            let place = self.begins.len() as u32;
            if let Some(previous) = self.begins.get_mut(talk.begin as usize) {
                previous.next = place;
            }
            let numbers = talk.streams.map(|stream| stream.number);
            self.begins.push(Begin { packet, numbers, previous: talk.begin, next: NONE });
            talk.begin = place;
        }
        for (version, stream) in talk.streams.iter_mut().enumerate() {
            stream.take(header, from, version);
        }
        self.talks.insert(pair, talk);
    }

    /// The stream of a connection in Wireshark: found by its first packet or, if no stream begins
    /// there, by its ends, if these are the capture's own addresses.
    pub fn of(&self, connection: &Connection, has_other_names: bool) -> Stream {
        let [first, last] = connection.packet_range;
        let ends = (!has_other_names).then_some([connection.client, connection.server]);
        let Some(mut begin) = self.with(first, ends) else { return Stream::NotFollowed };
        let mut numbers: [Vec<u64>; VERSIONS] = Default::default();
        loop {
            for (numbers, number) in numbers.iter_mut().zip(begin.numbers) {
                if numbers.last() != Some(&u64::from(number)) {
                    numbers.push(u64::from(number));
                }
            }
            match self.begins.get(begin.next as usize) {
                Some(next) if next.packet <= last => begin = next,
                _ => break,
            }
        }
        Stream::Of(numbers)
    }

    /// The stream with this packet.
    fn with(&self, packet: u64, ends: Option<[Endpoint; 2]>) -> Option<&Begin> {
        if self.full_at.is_some_and(|full| packet >= full) {
            return None;
        }
        let place = self.begins.partition_point(|begin| begin.packet < packet);
        if let Some(begin) = self.begins.get(place).filter(|begin| begin.packet == packet) {
            return Some(begin);
        }
        let ends = ends?;
        let talk = self.talks.get(&Pair::of(ends, !ends[0].ip().is_ipv4()))?;
        let mut begin = self.begins.get(talk.begin as usize)?;
        for _ in 0..STEPS_MAX {
            if begin.packet <= packet {
                return Some(begin);
            }
            begin = self.begins.get(begin.previous as usize)?;
        }
        None
    }
}

/// The fields of a segment that Wireshark uses.
fn header(segment: &Segment) -> Named {
    let Segment { src, dst, seq, ack, flags, ip_id, .. } = *segment;
    Named { src, dst, seq, ack, flags, is_v6: ip_id.is_none(), is_quoted: false }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;
    use tcpwhy_wire::{Flags, Seq};

    /// Packets of client and server (`q`: quoted in an ICMP error), flags, sequence and
    /// acknowledgement numbers; and the streams in `tshark -e tcp.stream` of 4.0.17, and in
    /// Wireshark 4.4.5.
    const EXPERIMENTS: &[(&str, &str, &str)] = &[
        (
            "c S 100, s SA 500 101, c A 101 501, c A 101 501, s A 501 111, c FA 111 521, s FA 521 112, c A 112 522, c S 9000, s SA 9500 9001, c A 9001 9501",
            "0 0 0 0 0 0 0 0 1 1 1",
            "0 0 0 0 0 0 0 0 1 1 1",
        ),
        (
            "c S 100, s SA 500 101, c A 101 501, c A 101 501, s A 501 111, c FA 111 521, s FA 521 112, c A 112 522, c S 100, s SA 500 101, c A 101 501",
            "0 0 0 0 0 0 0 0 0 0 0",
            "0 0 0 0 0 0 0 0 1 1 1",
        ),
        (
            "c S 100, s SA 500 101, c A 101 501, c A 101 501, s A 501 111, c RA 111 521, c S 100, s SA 500 101, c A 101 501",
            "0 0 0 0 0 0 0 0 0",
            "0 0 0 0 0 0 1 1 1",
        ),
        ("c S 100, s RA 0 101, c S 100, s RA 0 101", "0 0 0 0", "0 0 1 1"),
        ("c S 100, s RA 0 101, c S 200, s RA 0 201", "0 0 1 1", "0 0 1 1"),
        ("c S 100, c S 100, s SA 500 101", "0 0 0", "0 0 0"),
        ("c S 100, c S 200, s SA 500 201", "0 1 1", "0 1 1"),
        ("c S 100, c S 200, c S 100, s SA 500 101", "0 1 2 2", "0 1 2 2"),
        ("s R 7, c S 100, s SA 500 101", "0 0 0", "0 0 1"),
        ("c R 7, c S 100, s SA 500 101", "0 1 1", "0 1 1"),
        (
            "c S 100, s SA 500 101, c A 101 501, c FA 111 521, s FA 521 112, c A 112 522, c R 7000, c S 6000",
            "0 0 0 0 0 0 0 1",
            "0 0 0 0 0 0 0 1",
        ),
        ("c A 101 501, s A 501 102, c S 300", "0 0 1", "0 0 1"),
        ("s A 501 102, c S 300, s SA 800 301", "0 1 1", "0 1 1"),
        ("c S 100, s SA 500 101, c A 101 501, s S 3000, c SA 4000 3001", "0 0 0 1 1", "0 0 0 1 1"),
        ("c S 100, s S 200, c SA 100 201, s SA 200 101", "0 0 0 0", "0 0 0 0"),
        ("c S 100, s SA 500 101, s SA 700 101", "0 0 0", "0 0 1"),
        ("s SA 500 101, c A 101 501, c S 100", "0 0 0", "0 0 0"),
        ("s SA 500 101, c A 101 501, c S 900", "0 0 1", "0 0 1"),
        (
            "c S 100, s SA 500 101, c A 101 501, c A 101 501, s A 501 111, c FA 111 521, s FA 521 112, c A 112 522, c S 9000, s SA 9500 9001, c A 9001 9501, s A 522 112, c R 112, c A 9001 9501",
            "0 0 0 0 0 0 0 0 1 1 1 1 1 1",
            "0 0 0 0 0 0 0 0 1 1 1 1 1 1",
        ),
        (
            "c S 100, s SA 500 101, c A 101 501, c S 9000, s SA 500 101, c A 101 501, s SA 9500 9001",
            "0 0 0 1 1 1 1",
            "0 0 0 1 1 1 2",
        ),
        (
            "c S 100, s SA 500 101, c A 101 501, c A 101 501, s A 501 111, c FA 111 521, c S 9000, s SA 9500 9001",
            "0 0 0 0 0 0 1 1",
            "0 0 0 0 0 0 1 1",
        ),
        (
            "c S 100, s SA 500 101, c A 101 501, qc S 777, c A 101 501, s A 501 111",
            "0 0 0 1 1 1",
            "0 0 0 1 1 1",
        ),
        ("c SF 100, c S 100, c SR 300, c S 400", "0 0 1 2", "0 0 1 2"),
        ("c S 100, s SA 500 101, c A 101 501, c A 100 501", "0 0 0 0", "0 0 0 0"),
        ("c S 100, s SA 500 101, c A 101 501, s R 501, c S 100, s SA 800 101", "0 0 0 0 0 0", "0 0 0 0 1 1"),
        (
            "c S 100, s RA 0 101, c S 100, s SA 800 101, c A 101 801, c RA 101 801, c S 100",
            "0 0 0 0 0 0 0",
            "0 0 1 1 1 1 2",
        ),
        (
            "c S 100, s SA 500 101, c A 101 501, c FA 111 521, s FA 521 112, c A 112 522, c S 100, s SA 800 101",
            "0 0 0 0 0 0 0 0",
            "0 0 0 0 0 0 1 1",
        ),
        ("c S 100, c R 101, c S 100, c R 101, c S 100", "0 0 0 0 0", "0 0 1 1 2"),
        ("c A 101 501, c S 100", "0 0", "0 0"),
        ("c A 101 501, c S 101", "0 1", "0 1"),
        ("s A 501 102, c S 101", "0 0", "0 0"),
        ("s A 501 102, c S 102", "0 1", "0 1"),
        ("s RA 0 101, c S 100", "0 0", "0 1"),
        ("s RA 0 101, c S 300", "0 1", "0 1"),
        ("s R 7, s S 6", "0 0", "0 1"),
        ("s R 7, s S 7", "0 1", "0 1"),
        ("s R 7, c S 300", "0 0", "0 0"),
        ("s A 501 0, c S 300", "0 1", "0 1"),
        ("s A 501 0, c S 4294967295", "0 0", "0 0"),
        ("s SA 500 101, c S 100", "0 0", "0 0"),
        ("s SA 500 101, c S 101", "0 1", "0 1"),
        ("c S 100, s SA 500 101, s SA 700 101, s S 500", "0 0 0 1", "0 0 1 2"),
        ("c S 100, s SA 500 101, s SA 700 101, s S 700", "0 0 0 0", "0 0 1 1"),
        ("c FA 50 9, c S 49", "0 0", "0 1"),
        ("c FA 50 9, c S 50", "0 1", "0 1"),
        ("c A 0 9, c S 4294967295", "0 0", "0 0"),
        (
            "c S 100, s SA 500 101, c A 101 501, c S 9000, s SA 9500 9001, c A 9001 9501, c S 100, c S 9000",
            "0 0 0 1 1 1 2 3",
            "0 0 0 1 1 1 2 3",
        ),
        ("c S 100, s SA 500 101, c A 101 501, c S 9000, s S 500", "0 0 0 1 1", "0 0 0 1 1"),
        ("c S 100, s SA 500 101, c A 101 501, c S 9000, s S 777", "0 0 0 1 1", "0 0 0 1 1"),
        ("c S 100, s SA 500 101, c A 101 501, c S 9000, s A 501 101, s S 888", "0 0 0 1 1 2", "0 0 0 1 1 2"),
        ("s SA 500 101, s SA 900 101", "0 0", "0 1"),
        (
            "c S 100, s SA 500 101, c A 101 501, c FA 111 521, s FA 521 112, c A 112 522, s SA 900 9001, c S 9000",
            "0 0 0 0 0 0 0 1",
            "0 0 0 0 0 0 1 1",
        ),
        (
            "c S 100, s SA 500 101, c A 101 501, c FA 111 521, s FA 521 112, c A 112 522, s SA 900 9001, c A 9001 901, c S 9000, s S 900",
            "0 0 0 0 0 0 0 0 1 1",
            "0 0 0 0 0 0 1 1 1 1",
        ),
        (
            "c S 100, s SA 500 101, c A 101 501, c FA 111 521, s FA 521 112, c A 112 522, s SA 900 9001, s S 900",
            "0 0 0 0 0 0 0 0",
            "0 0 0 0 0 0 1 1",
        ),
        (
            "c S 100, s SA 500 101, c A 101 501, c FA 111 521, s FA 521 112, c A 112 522, s SA 900 9001, s S 500",
            "0 0 0 0 0 0 0 1",
            "0 0 0 0 0 0 1 2",
        ),
        (
            "c S 100, s SA 500 101, c A 101 501, c FA 111 521, s FA 521 112, c A 112 522, s SA 900 9001, c S 100",
            "0 0 0 0 0 0 0 0",
            "0 0 0 0 0 0 1 2",
        ),
        (
            "c S 100, s SA 500 101, c A 101 501, c A 101 501, s A 501 111, c FA 111 521, s FA 521 112, c A 112 522, c S 100, s SA 500 101, c A 101 501, c FA 101 501, s FA 501 102, s S 500, s S 800",
            "0 0 0 0 0 0 0 0 0 0 0 0 0 0 1",
            "0 0 0 0 0 0 0 0 1 1 1 1 1 2 3",
        ),
        ("c R 5, c SR 5, c SR 4, c F 1, c S 0, c S 3", "0 1 2 2 3 4", "0 1 2 2 3 4"),
        ("qc S 777, c S 100, c S 777", "0 0 1", "0 0 1"),
        ("c S 100, qc S 100, qc S 101, c S 100", "0 0 1 1", "0 0 1 1"),
        (
            "c S 100, s SA 500 101, c A 101 501, qc A 5 6, c A 101 501, s A 501 111",
            "0 0 0 0 0 0",
            "0 0 0 0 0 0",
        ),
        ("qc A 300 900, s S 899, c S 299, c S 5", "0 0 0 1", "0 0 0 1"),
        ("c S 100, s SA 500 101, c A 101 501, qs SA 900 101, s S 900, s S 500", "0 0 0 0 0 1", "0 0 0 1 1 2"),
    ];

    fn header(text: &str) -> Named {
        let mut words = text.split(' ');
        let who = words.next().unwrap_or_default();
        let flags = words.next().unwrap_or_default().bytes().map(|flag| match flag {
            b'S' => Flags::SYN,
            b'A' => Flags::ACK,
            b'F' => Flags::FIN,
            b'R' => Flags::RST,
            _ => 0,
        });
        let flags = Flags(flags.fold(0, |all, flag| all | flag));
        let [seq, ack] = [0; 2].map(|none| words.next().map_or(none, |word| word.parse().unwrap_or(none)));
        let [client, server] =
            [([10, 0, 0, 1], 1111), ([10, 0, 0, 2], 80)].map(|(ip, port)| Endpoint::v4(ip, port));
        let [src, dst] = if who.ends_with('c') { [client, server] } else { [server, client] };
        let is_quoted = who.starts_with('q');
        Named { src, dst, seq: Seq(seq), ack: Seq(ack), flags, is_v6: false, is_quoted }
    }

    #[test]
    fn streams_begin_where_wireshark_begins_them() {
        for (packets, in_4_0, in_4_4) in EXPERIMENTS {
            let mut streams = Streams { most: 100, ..Streams::default() };
            let mut numbers = [String::new(), String::new()];
            for (packet, text) in (1..).zip(packets.split(", ")) {
                let header = header(text);
                streams.on_header(&header, packet);
                let talk = streams.talks[&Pair::of([header.src, header.dst], false)];
                for (numbers, stream) in numbers.iter_mut().zip(talk.streams) {
                    let _ = write!(numbers, " {}", stream.number);
                }
            }
            let numbers = numbers.each_ref().map(|numbers| numbers.trim_start());
            assert_eq!(numbers, [*in_4_0, *in_4_4], "{packets}");
        }
    }

    #[test]
    fn what_there_is_no_room_for_has_no_number() {
        let mut streams = Streams { most: 2, ..Streams::default() };
        for (packet, text) in [(3, "c S 100"), (5, "c S 200"), (7, "c A 201 9"), (9, "c S 300")] {
            streams.on_header(&header(text), packet);
        }
        let ends = [header("c S 1").src, header("c S 1").dst];
        let number = |packet, ends| streams.with(packet, ends).map(|begin| begin.numbers[0]);
        assert_eq!(number(3, None), Some(0));
        assert_eq!((number(4, None), number(4, Some(ends))), (None, Some(0)));
        assert_eq!((number(5, None), number(8, Some(ends))), (Some(1), Some(1)));
        assert_eq!(
            (number(9, Some(ends)), number(10, Some(ends)), number(2, Some(ends))),
            (None, None, None)
        );
        // It takes no more memory than it said.
        let mut streams = Streams::default();
        let bytes = streams.begin(1 << 20);
        let entries = (1 << 20) / PART / ENTRY;
        assert!(bytes <= (1 << 20) / PART && streams.most == entries && entries > 100);
    }
}
