//! Which attacks were added when everything held? Each was written knowing only what
//! docs/robustness.md promises.

use super::ends::said;
use super::{Hostile, Packet, block, scatter};

/// Length of a segment full of small messages.
const FULL: usize = 1_000;
/// Length of a segment with a few answers.
const FEW: usize = 200;
/// Requests in an HTTP/2 segment, and queries in a DNS segment.
const STREAMS: u64 = 90;
const QUERIES: u64 = 52;
/// One segment in this many answers.
const ANSWERS: u64 = 5;
/// The preface of an HTTP/2 connection (RFC 9113, 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const WINDOW_UPDATE: u8 = 8;
/// An unknown frame type.
const UNKNOWN: u8 = 0xfe;
/// End of the stream, and of its headers.
const WHOLE: u8 = 0x05;
/// The resolution of an interface's ticks, and its time offset.
pub(super) const TICKS: [(u8, i64); 6] =
    [(0x80, 0), (0xff, i64::MAX), (127, i64::MIN), (0, i64::MAX), (0x9f, -1), (20, 1)];
/// Text that a terminal would act on.
const WORDS: [&str; 5] =
    ["\u{1b}]0;owned\u{7}", "\u{1b}[2J\u{1b}[31m", "a\r\nb\n\nc", "\u{202e}gpj.exe", "\u{9b}5n\u{90}x\u{9c}"];

impl Hostile {
    pub(super) fn came_later(self) -> bool {
        matches!(
            self,
            Self::FastOpen
                | Self::Subflows
                | Self::Urgent
                | Self::Flapping
                | Self::Wraps
                | Self::Rewound
                | Self::Jumps
                | Self::Settings
                | Self::Streams
                | Self::Queries
                | Self::Records
                | Self::Tagged
        )
    }

    pub(super) fn later(self, n: u64, packet: Packet, out: &mut Vec<u8>) {
        let (number, from_client) = (n as u32, n.is_multiple_of(2));
        let own = |n: u64| (0x0b00_0000 + n as u32).to_be_bytes();
        let asked = |turn: u64, packet: Packet| {
            let from_client = turn.is_multiple_of(2);
            let seq = (turn / 2) as u32 * 50;
            let ack = if from_client { seq } else { seq.wrapping_add(50) };
            Packet { from_client, seq, ack, len: 50, flags: 0x18, ..packet }
        };
        let packet = match self {
            Self::FastOpen => {
                let src = own(n / 4);
                let cookie = [&[34, 18], &[number as u8; 16][..], &[1, 1]].concat();
                match n % 4 {
                    0 => {
                        Packet { src, from_client: true, flags: 0x02, len: 1_400, options: cookie, ..packet }
                    }
                    // Only a part of it was accepted.
                    1 => Packet { src, from_client: false, flags: 0x12, ack: 701, ..packet },
                    2 => Packet { src, from_client: true, seq: 701, ack: 1, len: 700, ..packet },
                    _ => Packet { src, from_client: false, seq: 1, ack: 1_401, len: 100, ..packet },
                }
            }
            Self::Subflows => {
                let len = 2 + scatter(n) as u8 % 38;
                let mut options = vec![30, len, scatter(n + 1) as u8];
                options.resize(usize::from(len).next_multiple_of(4).max(4), number as u8);
                Packet { src: own(n % 2_000), options, ..asked(n / 2_000, packet) }
            }
            Self::Urgent => {
                let len = [0, 1, 400][(n % 3) as usize];
                Packet { flags: 0x30, seq: number.wrapping_mul(133), len, ..packet }
            }
            Self::Flapping if from_client => {
                Packet { seq: number / 2 * 100, len: 100, ack: 1, from_client, ..packet }
            }
            Self::Flapping => {
                let window = if n % 4 == 1 { 0 } else { 65_535 };
                Packet { seq: 1, ack: number / 2 * 100, window, from_client, ..packet }
            }
            Self::Wraps => {
                let old = n % 7 == 6;
                let val = number.wrapping_mul(0x1000_0001).wrapping_sub(if old { 0x8000_0000 } else { 0 });
                let ecr = number.wrapping_sub(1).wrapping_mul(0x1000_0001);
                let options = [&[1, 1, 8, 10], &val.to_be_bytes()[..], &ecr.to_be_bytes()].concat();
                Packet { options, ..asked(if old { n - 4 } else { n }, packet) }
            }
            Self::Rewound => Packet { src: own(n / 2 % 1_000), ..asked(n / 2_000 * 2 + n % 2, packet) },
            Self::Jumps => {
                Packet { src: own(n / 2), from_client: n.is_multiple_of(2), len: 9, seq: 1, ack: 1, ..packet }
            }
            Self::Settings | Self::Streams | Self::Queries | Self::Records => self.full(n, packet),
            _ => return tagged(n, out),
        };
        packet.put(out);
        if self == Self::Urgent {
            // The urgent pointer's offset in a header without options.
            out[52..54].copy_from_slice(&(scatter(n) as u16).to_be_bytes());
        }
    }

    /// A segment full of messages, of one of ten connections, or a few answers to them.
    fn full(self, n: u64, packet: Packet) -> Packet {
        let (connection, turn) = (n % 10, n / 10);
        let packet = Packet { port: connection as u16, ..packet };
        let answers = turn / ANSWERS;
        let asked = turn - answers;
        if turn % ANSWERS == ANSWERS - 1 {
            let bytes = self.answers(asked, answers);
            let (seq, ack) = (1 + answers as u32 * FEW as u32, 1 + asked as u32 * FULL as u32);
            return Packet { ack, from_client: false, ..said(seq, &self.fit(bytes, FEW), packet) };
        }
        let (seq, ack) = (1 + asked as u32 * FULL as u32, 1 + answers as u32 * FEW as u32);
        let bytes = self.fit(self.questions(asked), FULL);
        Packet { ack, from_client: true, ..said(seq, &bytes, packet) }
    }

    fn questions(self, segment: u64) -> Vec<u8> {
        let first = if segment == 0 { [PREFACE, &frame(SETTINGS, 0, 0, &[])].concat() } else { Vec::new() };
        match self {
            Self::Settings => {
                let both = [frame(SETTINGS, 0, 0, &[]), frame(WINDOW_UPDATE, 0, 0, &[0, 0, 0, 1])].concat();
                [first, both.repeat(42)].concat()
            }
            Self::Streams => {
                let stream = |i: u64| frame(HEADERS, WHOLE, (segment * STREAMS + i) as u32 * 2 + 1, &[0x82]);
                [first, (0..STREAMS).flat_map(stream).collect()].concat()
            }
            Self::Queries => {
                (0..QUERIES).flat_map(|i| query(scatter(segment * QUERIES + i) as u16, 0x01)).collect()
            }
            // Of an empty handshake.
            _ => [0x16, 3, 1, 0, 0].repeat(FULL / 5),
        }
    }

    /// Answers to the latest requests.
    fn answers(self, asked: u64, turn: u64) -> Vec<u8> {
        let first = if turn == 0 { frame(SETTINGS, 0, 0, &[]) } else { Vec::new() };
        match self {
            Self::Settings => [first, frame(SETTINGS, 1, 0, &[]).repeat(20)].concat(),
            Self::Streams => {
                let stream =
                    |i: u64| frame(HEADERS, WHOLE, (asked * STREAMS - 1 - i) as u32 * 2 + 1, &[0x88]);
                [first, (0..18).flat_map(stream).collect()].concat()
            }
            Self::Queries => {
                (1..=10).flat_map(|i| query(scatter(asked * QUERIES - i * 5) as u16, 0x81)).collect()
            }
            _ => [0x17, 3, 3, 0, 0].repeat(FEW / 5),
        }
    }

    /// Fills up to this length with messages of the same protocol.
    fn fit(self, mut bytes: Vec<u8>, len: usize) -> Vec<u8> {
        match self {
            Self::Settings | Self::Streams => {
                let left = (len - bytes.len() - 9) as u8;
                bytes.extend(frame(UNKNOWN, 0, 0, &vec![0; usize::from(left)]));
            }
            Self::Queries => {
                // The last one is longer.
                let (last, left) = (bytes.len() - 19, len - bytes.len());
                bytes[last + 1] += left as u8;
                bytes.resize(len, 0);
            }
            _ => bytes.resize(len, 0),
        }
        bytes
    }
}

/// A frame of HTTP/2 (RFC 9113, 4.1).
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let len = (payload.len() as u32).to_be_bytes();
    [&len[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// A query for the root's address, or the answer that there is none (RFC 1035, 4.1.1 and 4.2.2).
fn query(id: u16, flags: u8) -> Vec<u8> {
    let id = id.to_be_bytes();
    vec![0, 17, id[0], id[1], flags, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1]
}

/// A fragment of an IPv6 packet that overlaps the one before it, below two tags.
fn tagged(n: u64, out: &mut Vec<u8>) {
    out.extend([2; 12]);
    out.extend([0x88, 0xa8, 0, 1, 0x81, 0, 0, 2, 0x86, 0xdd, 0x60, 0, 0, 0, 0, 72, 44, 64]);
    out.extend([0xfd; 16]);
    out.extend([0xfe; 16]);
    out.extend([6, 0]);
    out.extend((((n % 6) as u16 * 3) << 3 | u16::from(n % 6 < 5)).to_be_bytes());
    out.extend((n as u32 / 6).to_be_bytes());
    out.resize(out.len() + 64, 0x50);
}

/// An interface, with a name and a description that a terminal would act on.
pub(super) fn name(n: u64, out: &mut Vec<u8>) {
    let word = WORDS[(n / 2) as usize % WORDS.len()].repeat(1 + (scatter(n) % 50) as usize);
    let option = |kind: u16| {
        let mut option =
            [&kind.to_le_bytes()[..], &(word.len() as u16).to_le_bytes(), word.as_bytes()].concat();
        option.resize(option.len().next_multiple_of(4), 0);
        option
    };
    // A comment, a name, a description, a filter, a system and the hardware.
    let options: Vec<u8> = [1, 2, 3, 11, 12, 15].into_iter().flat_map(option).collect();
    block(out, 1, &[&[1, 0, 0, 0, 0, 0, 0, 0], &options, &[0; 4]]);
}

/// Interfaces whose ticks and offsets are at the limits.
pub(super) fn ticks(out: &mut Vec<u8>) {
    for (tick, offset_s) in TICKS {
        let resolution = [9, 0, 1, 0, tick, 0, 0, 0];
        let offset = [&[14, 0, 8, 0], &offset_s.to_le_bytes()[..]].concat();
        block(out, 1, &[&[1, 0, 0, 0, 0, 0, 0, 0], &resolution, &offset, &[0; 4]]);
    }
}
