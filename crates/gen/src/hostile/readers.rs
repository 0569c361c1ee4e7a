//! Which conversations cost protocol parsers most? Written when sixteen parsers had been added
//! after everything else.

use super::ends::said;
use super::{Hostile, Packet, scatter};

/// Length of a segment full of messages.
const FULL: usize = 1_000;
/// Connections at a time, ten for each protocol.
const CONNECTIONS: u64 = 160;
/// Segments of requests, before as many of answers.
const ASKED: u64 = 8;
/// Packets of a connection of [`Hostile::Lengths`] and of [`Hostile::Turncoats`].
const LENGTHS: u64 = 6;
const TURNS: u64 = 24;
/// Values for length fields.
const EDGES: [u32; 10] =
    [0, 1, 3, 4, 0x7fff_ffff, 0x8000_0000, u32::MAX, u32::MAX - 3, 64 << 20, (64 << 20) + 1];

/// Protocols parsed by their lengths and identifiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spoken {
    Tds,
    Bgp,
    Diameter,
    Smpp,
    OpcUa,
    Dnp3,
    EthernetIp,
    Rtsp,
    Syslog,
    Nbd,
    OpenFlow,
    S7,
    ZooKeeper,
    Iscsi,
    OncRpc,
    Cql,
}

use Spoken::{
    Bgp, Cql, Diameter, Dnp3, EthernetIp, Iscsi, Nbd, OncRpc, OpcUa, OpenFlow, Rtsp, S7, Smpp, Syslog, Tds,
    ZooKeeper,
};

const ALL: [Spoken; 16] = [
    Tds, Bgp, Diameter, Smpp, OpcUa, Dnp3, EthernetIp, Rtsp, Syslog, Nbd, OpenFlow, S7, ZooKeeper, Iscsi,
    OncRpc, Cql,
];

impl Hostile {
    pub(super) fn is_spoken(self) -> bool {
        matches!(
            self,
            Self::Unanswered
                | Self::Reversed
                | Self::SameNumber
                | Self::Lengths
                | Self::Turncoats
                | Self::Dripped
                | Self::Missing
                | Self::Unending
        )
    }

    /// The n-th packet of shapes that are parsed as protocols.
    pub(super) fn spoken(self, n: u64, packet: Packet) -> Packet {
        let of = |connection: u64| (0x0b00_0000 + connection as u32).to_be_bytes();
        let (connection, turn) = match self {
            Self::Lengths => (n / LENGTHS, n % LENGTHS),
            Self::Turncoats => (n / TURNS, n % TURNS),
            _ => (n % CONNECTIONS, n / CONNECTIONS),
        };
        let spoken = ALL[(connection % 16) as usize];
        let packet = Packet { src: of(connection), from_client: turn.is_multiple_of(2), ack: 1, ..packet };
        match self {
            Self::Lengths => lengths(spoken, connection, turn, packet),
            Self::Turncoats => turncoat(connection, turn, packet),
            _ if turn < 2 => said(1, &spoken.opening(turn == 0), packet),
            Self::Dripped => dripped(spoken, connection, turn, packet),
            _ => self.full_of(spoken, turn - 2, packet),
        }
    }

    /// A segment full of messages, after the openings.
    fn full_of(self, spoken: Spoken, turn: u64, packet: Packet) -> Packet {
        let asks = match self {
            Self::Reversed => turn % (2 * ASKED) < ASKED,
            Self::SameNumber => turn % 5 < 4,
            Self::Unending => turn.is_multiple_of(2),
            _ => true,
        };
        let count = spoken.count();
        // How many of this side came before, and their first identifier.
        let (before, first) = match self {
            Self::Reversed => {
                let (round, place) = (turn / (2 * ASKED), turn % ASKED);
                let asked = if asks { place } else { ASKED - 1 - place };
                (round * ASKED + place, round * ASKED + asked)
            }
            Self::SameNumber if asks => (turn / 5 * 4 + turn % 5, 0),
            Self::SameNumber => (turn / 5, 0),
            Self::Unending => (turn / 2, 0),
            Self::Missing => (2 * turn + 1, turn),
            _ => (turn, turn),
        };
        let number = |i: u64| match self {
            Self::SameNumber | Self::Unending => 7,
            Self::Reversed if !asks => (first * count + count - 1 - i) as u32,
            _ => (first * count + i) as u32,
        };
        let bytes: Vec<u8> = match self {
            Self::Unending => (0..count).flat_map(|i| spoken.piece(asks, before + i)).collect(),
            _ => (0..count).flat_map(|i| spoken.message(asks, number(i))).collect(),
        };
        let seq = 1 + spoken.opening(asks).len() as u64 + before * bytes.len() as u64;
        Packet { from_client: asks, ..said(seq as u32, &bytes, packet) }
    }
}

/// After the openings, messages with impossible lengths.
fn lengths(spoken: Spoken, connection: u64, turn: u64, packet: Packet) -> Packet {
    let asks = turn.is_multiple_of(2);
    let opening = spoken.opening(asks);
    let edge = EDGES[(scatter(connection / 16 + turn / 2) % EDGES.len() as u64) as usize];
    let wild = spoken.with_length(asks, edge);
    let all: Vec<u8> = (0..spoken.count()).flat_map(|i| spoken.message(asks, i as u32)).collect();
    let wild = if connection.is_multiple_of(3) { wild } else { [wild, all.clone()].concat() };
    let seq = |before: usize| (1 + before) as u32;
    match turn / 2 {
        0 => said(1, &opening, packet),
        1 => said(seq(opening.len()), &wild, packet),
        _ => said(seq(opening.len() + wild.len()), &all, packet),
    }
}

/// Each side begins one protocol after the other, with two per segment.
fn turncoat(connection: u64, turn: u64, packet: Packet) -> Packet {
    let asks = turn.is_multiple_of(2);
    let bytes = |turn: u64| {
        let first = ALL[((connection + turn) % 16) as usize];
        let then = ALL[((scatter(connection) + 5 * turn) % 16) as usize];
        [first.opening(asks), first.message(asks, turn as u32), then.opening(asks)].concat()
    };
    let before: usize = (0..turn / 2).map(|turn| bytes(turn).len()).sum();
    said(1 + before as u32, &bytes(turn / 2), packet)
}

/// After the openings, both sides' streams in pieces of one to twelve bytes, so that heads are cut
/// at each of their bytes.
fn dripped(spoken: Spoken, connection: u64, turn: u64, packet: Packet) -> Packet {
    let asks = turn.is_multiple_of(2);
    let len = 1 + connection / 16 % 12;
    let begin = (turn / 2 - 1) * len;
    let message_len = spoken.message(asks, 0).len().max(1) as u64;
    let messages =
        (0..2 + len / message_len).flat_map(|i| spoken.message(asks, (begin / message_len + i) as u32));
    let bytes: Vec<u8> = messages.skip((begin % message_len) as usize).take(len as usize).collect();
    let behind = |asks: bool, begin: u64| (1 + spoken.opening(asks).len() as u64 + begin) as u32;
    let ack = behind(!asks, if asks { begin } else { begin + len });
    Packet { ack, ..said(behind(asks, begin), &bytes, packet) }
}

impl Spoken {
    /// Requests per segment.
    fn count(self) -> u64 {
        (FULL / self.message(true, 0).len()) as u64
    }

    /// A side's first message.
    fn opening(self, asks: bool) -> Vec<u8> {
        match (self, asks) {
            (Bgp, _) => [&[0xff; 16][..], &[0, 29, 1, 4], &[0; 9]].concat(),
            (OpcUa, true) => [&b"HELF"[..], &32_u32.to_le_bytes(), &[0; 24]].concat(),
            (OpcUa, false) => [&b"ACKF"[..], &28_u32.to_le_bytes(), &[0; 20]].concat(),
            (EthernetIp, _) => [&[0x65, 0, 4, 0][..], &[0; 20], &[1, 0, 0, 0]].concat(),
            (ZooKeeper, true) => [&[0, 0, 0, 44][..], &[0; 24], &[0, 0, 0, 16], &[0; 16]].concat(),
            (ZooKeeper, false) => [&[0, 0, 0, 36][..], &[0; 16], &[0, 0, 0, 16], &[0; 16]].concat(),
            (Iscsi, true) => [&[0x43, 0x87, 0, 0, 0, 0, 0, 16][..], &[0; 40], b"InitiatorName=a\0"].concat(),
            (Iscsi, false) => [&[0x23, 0x87, 0, 0][..], &[0; 44]].concat(),
            (Cql, true) => {
                [&[4, 0, 0, 0, 1, 0, 0, 0, 22, 0, 1, 0, 11][..], b"CQL_VERSION", &[0, 5], b"3.0.0"].concat()
            }
            (Cql, false) => vec![0x84, 0, 0, 0, 2, 0, 0, 0, 0],
            _ => self.message(asks, 0),
        }
    }

    /// A request or an answer with this identifier, as short as possible.
    fn message(self, asks: bool, number: u32) -> Vec<u8> {
        let be = number.to_be_bytes();
        let two = &be[2..];
        let either = |question: u8, answer: u8| if asks { question } else { answer };
        match self {
            Tds => [&[either(1, 4), 1, 0, 12][..], &[0; 4], &be].concat(),
            Bgp => [&[0xff; 16][..], &[0, 23, 2], &[0; 4]].concat(),
            Diameter => [&[1, 0, 0, 20, either(0x80, 0), 0, 1, 1][..], &[0; 4], &be, &be].concat(),
            Smpp => {
                let number = number.wrapping_add(1).max(1).to_be_bytes();
                [&[0, 0, 0, 16, either(0, 0x80), 0, 0, 4][..], &[0; 4], &number].concat()
            }
            OpcUa => {
                let kind = either(119, 122);
                [&b"MSGF"[..], &[28, 0, 0, 0], &[0; 12], &number.to_le_bytes(), &[1, 0, kind, 2]].concat()
            }
            Dnp3 => dnp3(0xc0, number as u8, either(1, 129)),
            EthernetIp => [&[0x6f, 0][..], &[0; 10], &be, &be, &[0; 4]].concat(),
            Rtsp if asks => format!("OPTIONS * RTSP/1.0\r\nCSeq: {number:010}\r\n\r\n").into_bytes(),
            Rtsp => format!("RTSP/1.0 200 OK\r\nCSeq: {number:010}\r\n\r\n").into_bytes(),
            // It is never answered.
            Syslog if asks => format!("<13>{number:010}\n").into_bytes(),
            Syslog => Vec::new(),
            Nbd if asks => [&[0x25, 0x60, 0x95, 0x13, 0, 0, 0, 0][..], &be, &be, &[0; 12]].concat(),
            Nbd => [&[0x67, 0x44, 0x66, 0x98, 0, 0, 0, 0][..], &be, &be].concat(),
            OpenFlow => [&[4, either(2, 3), 0, 8], &be[..]].concat(),
            S7 if asks => [&[3, 0, 0, 18, 2, 0xf0, 0x80, 0x32, 1, 0, 0], two, &[0, 1, 0, 0, 4]].concat(),
            S7 => [&[3, 0, 0, 19, 2, 0xf0, 0x80, 0x32, 3, 0, 0], two, &[0; 6]].concat(),
            ZooKeeper if asks => [&[0, 0, 0, 8], &be[..], &[0, 0, 0, 4]].concat(),
            ZooKeeper => [&[0, 0, 0, 16], &be[..], &[0; 12]].concat(),
            Iscsi => [&[either(1, 0x21), 0x80][..], &[0; 14], &be, &[0; 28]].concat(),
            OncRpc if asks => {
                let program = [0, 0, 0, 2, 0, 1, 0x86, 0xa3, 0, 0, 0, 3, 0, 0, 0, 6];
                [&[0x80, 0, 0, 40], &be[..], &[0; 4], &program, &[0; 16]].concat()
            }
            OncRpc => [&[0x80, 0, 0, 12], &be[..], &[0, 0, 0, 1], &[0; 4]].concat(),
            Cql => [&[either(4, 0x84), 0], two, &[either(7, 8), 0, 0, 0, 0]].concat(),
        }
    }

    /// A part of a message that never ends, if the protocol has such.
    fn piece(self, asks: bool, i: u64) -> Vec<u8> {
        let mut bytes = self.message(asks, 7);
        match self {
            Tds => bytes[1] = 0,
            Bgp => (bytes[17], bytes[18]) = (19, 4),
            OpcUa => bytes[3] = b'C',
            Dnp3 => return dnp3(if i == 0 { 0x40 } else { 0 }, 7, if asks { 1 } else { 129 }),
            // Lines of a head, and a single line.
            Rtsp => bytes.truncate(bytes.len() - 2),
            Syslog if asks => bytes[14] = b'x',
            Nbd if !asks => {
                bytes = [&[0x66, 0x8e, 0x33, 0xef, 0, 0, 0, 1], &bytes[8..], &[0; 4]].concat();
            }
            OpenFlow if !asks => bytes = vec![4, 19, 0, 12, 0, 0, 0, 7, 0, 0, 0, 1],
            S7 => bytes[6] = 0,
            Iscsi if !asks => (bytes[0], bytes[1]) = (0x25, 0),
            OncRpc => bytes[0] = 0,
            _ => {}
        }
        if self == Bgp {
            bytes.truncate(19);
        }
        bytes
    }

    /// A message that claims to have this length.
    fn with_length(self, asks: bool, edge: u32) -> Vec<u8> {
        let mut bytes = self.message(asks, 1);
        let (at, len, is_le) = match self {
            Tds | S7 | OpenFlow => (2, 2, false),
            Bgp => (16, 2, false),
            Diameter => (1, 3, false),
            OpcUa => (4, 4, true),
            Dnp3 => (2, 1, true),
            EthernetIp => (2, 2, true),
            Rtsp => {
                let first = if asks { "OPTIONS * RTSP/1.0" } else { "RTSP/1.0 200 OK" };
                return format!("{first}\r\nContent-Length: {edge}\r\n\r\n").into_bytes();
            }
            Syslog => return format!("{edge} <13>1\n").into_bytes(),
            Nbd => (bytes.len() - 4, 4, false),
            Iscsi => (4, 4, false),
            Cql => (5, 4, false),
            Smpp | ZooKeeper | OncRpc => (0, 4, false),
        };
        let edge =
            if is_le { edge.to_le_bytes()[..len].to_vec() } else { edge.to_be_bytes()[4 - len..].to_vec() };
        bytes[at..at + len].copy_from_slice(&edge);
        bytes
    }
}

/// A frame with its header's CRC (IEEE 1815, 9.2.5), but no other.
fn dnp3(transport: u8, number: u8, function: u8) -> Vec<u8> {
    let header = [5, 0x64, 8, 0xc4, 1, 0, 2, 0];
    let bit = |sum: u16, _| if sum & 1 == 0 { sum >> 1 } else { sum >> 1 ^ 0xa6bc };
    let sum = header.iter().fold(0_u16, |sum, byte| (0..8).fold(sum ^ u16::from(*byte), bit));
    [&header[..], &(!sum).to_le_bytes(), &[transport, 0xc0 | number & 15, function, 0, 0]].concat()
}
