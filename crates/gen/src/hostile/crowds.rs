//! Which traffic leaves most state behind, or brings most at once?

use super::ends::said;
use super::{Hostile, Packet, scatter};

/// Connections between one pair of hosts of [`Hostile::Moving`] and its relatives, before the next
/// pair's.
const BETWEEN: u64 = 60_000;
/// One in this many of them keeps sending.
const STAYS: u64 = 100;
/// Servers of [`Hostile::Regulars`], and connections to all of them.
const SERVERS: u64 = 8_000;
const REGULARS: u64 = 80_000;
/// Connections of [`Hostile::Askers`], and requests per segment.
const ASKERS: u64 = 80_000;
const QUESTIONS: usize = 30;
/// Servers of [`Hostile::Causes`], and packets of each of their exchanges.
const CAUSES: u64 = 9_000;
const STEPS: u64 = 6;

impl Hostile {
    pub(super) fn is_crowd(self) -> bool {
        matches!(
            self,
            Self::Moving
                | Self::Vacant
                | Self::Leavers
                | Self::Regulars
                | Self::Chorus
                | Self::Askers
                | Self::Causes
                | Self::Changing
        )
    }

    pub(super) fn crowd(self, n: u64, packet: Packet) -> Packet {
        let hosts = |n: u64| ((0x0b00_0000 + n as u32).to_be_bytes(), (0x0d00_0000 + n as u32).to_be_bytes());
        match self {
            Self::Moving => {
                let (src, server) = hosts(n / BETWEEN);
                Packet {
                    src,
                    server,
                    from_client: true,
                    port: (n % BETWEEN) as u16,
                    seq: 1,
                    len: 9,
                    ..packet
                }
            }
            Self::Vacant => {
                // Every other packet is of a connection that stays, of any pair so far.
                let (new, old) = (n / 2, scatter(n) % (n / 2 + 1) / STAYS * STAYS);
                let which = if n.is_multiple_of(2) { new } else { old };
                let (src, server) = hosts(which / BETWEEN);
                let (port, seq) = ((which % BETWEEN) as u16, n as u32);
                Packet { src, server, from_client: true, port, seq, len: 9, ..packet }
            }
            Self::Leavers => {
                let (src, server) = hosts(n / 2 / BETWEEN);
                let port = (n / 2 % BETWEEN) as u16;
                let flags = if n.is_multiple_of(2) { 0x02 } else { 0x04 };
                Packet { src, server, from_client: true, port, seq: 1 + (n % 2) as u32, flags, ..packet }
            }
            Self::Regulars => {
                let (who, turn) = (n / 2 % REGULARS, (n / 2 / REGULARS) as u32);
                let (src, _) = hosts(who);
                let server = (0x0d00_0000 + (who % SERVERS) as u32).to_be_bytes();
                let from_client = n.is_multiple_of(2);
                let ack = if from_client { turn * 50 } else { turn * 50 + 50 };
                Packet { src, server, from_client, seq: turn * 50, ack, len: 50, flags: 0x18, ..packet }
            }
            Self::Chorus => asking(n % 100, n / 100, packet),
            Self::Askers => {
                let (who, turn) = (n % ASKERS, n / ASKERS);
                let (src, _) = hosts(who);
                let packet = Packet { src, ..packet };
                match turn {
                    0..4 => Packet { from_client: true, seq: turn as u32, ack: 1, len: 1, ..packet },
                    _ => asking(turn, turn, packet),
                }
            }
            Self::Causes => {
                let (server, turn) = (n / STEPS % CAUSES, (n / STEPS / CAUSES) as u32);
                let server = (0x0d00_0000 + server as u32).to_be_bytes();
                let packet = Packet { server, port: turn as u16, flags: 0x18, ..packet };
                match n % STEPS {
                    0 => Packet { from_client: true, flags: 0x02, ..packet },
                    1 => Packet { from_client: false, ack: 1, flags: 0x12, ..packet },
                    2 => Packet { from_client: true, seq: 1, ack: 1, flags: 0x10, ..packet },
                    3 => Packet { from_client: true, seq: 1, ack: 1, len: 100, ..packet },
                    4 => Packet { from_client: false, seq: 1, ack: 101, len: 1_448, flags: 0x10, ..packet },
                    _ => Packet { from_client: false, seq: 1_449, ack: 101, len: 100, flags: 0x19, ..packet },
                }
            }
            // One connection sends for long between two hosts, then another between the next two.
            _ => {
                let (src, server) = hosts(n / 300_000);
                let seq = (n % 300_000) as u32 * 10;
                let options = [&[1, 1, 5, 10], &seq.to_be_bytes()[..], &(seq + 5).to_be_bytes()].concat();
                Packet {
                    src,
                    server,
                    from_client: n.is_multiple_of(2),
                    seq,
                    ack: 1,
                    len: 10,
                    options,
                    ..packet
                }
            }
        }
    }
}

/// Segments of requests in Redis's protocol, every third one an answer to a few of them.
fn asking(connection: u64, turn: u64, packet: Packet) -> Packet {
    let port = connection as u16;
    if turn % 3 == 2 {
        let seq = 1 + turn as u32 / 3 * 7;
        return Packet { from_client: false, port, ..said(seq, b"+PONG\r\n", packet) };
    }
    let questions = b"*1\r\n$4\r\nPING\r\n".repeat(QUESTIONS);
    let seq = (turn - turn / 3) as u32 * questions.len() as u32;
    Packet { ack: 1, from_client: true, port, ..said(seq, &questions, packet) }
}

/// How long after the previous one a step of an exchange passes: from a microsecond to a minute.
pub(super) fn causes_after_ns(n: u64) -> i64 {
    // Exchanges follow each other this far apart, and each step is within that time.
    const APART: u64 = 1 << 38;
    let (exchange, step) = (n / STEPS, n % STEPS);
    let steps =
        (1..=step).map(|step| (1u64 << 35 >> (scatter(exchange * STEPS + step) % 26)) + scatter(n) % 1_000);
    (exchange * APART / 64 + steps.sum::<u64>() % (APART / 64)) as i64
}
