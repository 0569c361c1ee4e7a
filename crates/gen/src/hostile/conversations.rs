//! Which packets, each plausible by itself, cost most in combination?

use super::crowds::causes_after_ns;
use super::{Hostile, OPEN, Packet, scatter};

/// Servers of [`Hostile::Spreads`], more than get findings of their own.
const SERVERS: u64 = 9_000;
/// They are contacted one after the other, this far apart, and answer after up to 68 seconds.
const ASKED_EVERY_NS: u64 = 100_000_000_000;
const LONGEST_NS: u64 = 1 << 36;
const OCTAVES: u64 = 26;
/// Segments or ACKs in flight: a few more than are remembered of each direction.
const UNDER_WAY: u64 = 2_100;
/// Packets of [`Hostile::Resent`] until everything is acknowledged.
const RESENT: u64 = 60_000;
/// Connections of [`Hostile::Ages`].
pub(super) const AGING: u64 = 2_000;
/// Packets of a connection with one exchange.
const ONE_EXCHANGE: u64 = 5;

impl Hostile {
    /// How long after the first packet the n-th one passes.
    pub(super) fn after_ns(self, n: u64) -> i64 {
        let usual = n as i64 * 1_000;
        match self {
            Self::Finished | Self::Leavers => 0,
            Self::Causes => causes_after_ns(n),
            // Each end of a round of requests, and of a round of answers, a little less than three
            // hours later.
            Self::Ages => {
                let round = (n / AGING) as i64;
                round / 2 * 10_799_000_000_000 + round % 2 * 10_798_000_000_000 + (n % AGING) as i64 * 1_000
            }
            Self::Spreads => {
                let think = if n % 2 == 1 { LONGEST_NS >> ((scatter(n) >> 32) % OCTAVES) } else { 0 };
                (n / 2 * ASKED_EVERY_NS + think / 2 + scatter(n + 1) % (think / 2).max(1)) as i64
            }
            // Every ten thousand packets it steps back by a minute, half of which passes meanwhile.
            Self::Steps => n as i64 * 3_000_000 - (n / 10_000) as i64 * 60_000_000_000,
            // Packets are farther and farther apart: each round trip is longer than that of an
            // earlier connection.
            Self::Once => usual + (n * n / 1_000) as i64,
            // The client is a thousand seconds away from the capture.
            Self::Transit if n >= 2 => 100 * usual + 1_000_000_000_000,
            Self::Rewound => n as i64 * -1_000_000,
            // Just short of the time after which a silent connection is over.
            Self::Jumps => (n / 4_000) as i64 * 700_000_000_000 + n as i64 % 4_000 * 1_000,
            _ => usual,
        }
    }

    /// The n-th packet of shapes that are conversations.
    pub(super) fn conversation(self, n: u64, packets: u64, packet: Packet) -> Packet {
        match self {
            Self::Finished => {
                let src = ((n / 2) as u32).to_be_bytes();
                let flags = if n.is_multiple_of(2) { 0x02 } else { 0x04 };
                Packet { src, from_client: true, seq: 1 + (n % 2) as u32, flags, ..packet }
            }
            Self::Exchanges => asked((n / 2) as u32, n % 2 == 1, packet),
            Self::Spreads => {
                let server = (0x0b00_0000 + (n / 2 % SERVERS) as u32).to_be_bytes();
                asked((n / 2 / SERVERS) as u32, n % 2 == 1, Packet { server, ..packet })
            }
            Self::Once => {
                let open = OPEN.min(packets / ONE_EXCHANGE / 2).max(1);
                let (client, turn) = (n % open, n / open);
                let src = (0x0b00_0000 + client as u32).to_be_bytes();
                exchange(turn % ONE_EXCHANGE, Packet { src, port: (turn / ONE_EXCHANGE) as u16, ..packet })
            }
            Self::Steps => {
                let src = (0x0b00_0000 + (n / (ONE_EXCHANGE + 1) % 500) as u32).to_be_bytes();
                match n % (ONE_EXCHANGE + 1) {
                    ONE_EXCHANGE => {
                        Packet { src, from_client: true, seq: 101, ack: 101, flags: 0x14, ..packet }
                    }
                    turn => exchange(turn, Packet { src, ..packet }),
                }
            }
            Self::Resent => {
                let turn = n % RESENT;
                let all = (n / RESENT * UNDER_WAY) as u32 * 100;
                let which = if turn < UNDER_WAY { turn } else { scatter(n) % UNDER_WAY } as u32;
                match turn {
                    0 => Packet { from_client: false, ack: all, ..packet },
                    _ => Packet { from_client: true, seq: all + which * 100, len: 100, ..packet },
                }
            }
            // The handshake shows that the client is far away; its data are acknowledged next to
            // the capture.
            _ => match n {
                0 => Packet { from_client: true, flags: 0x02, ..packet },
                1 => Packet { from_client: false, ack: 1, flags: 0x12, ..packet },
                2 => Packet { from_client: true, seq: 1, ack: 1, ..packet },
                _ => {
                    let (seq, window) = ((n / 2) as u32 * 100 - 99, 1_000 + (n / 2 % 60_000) as u16);
                    match n % 2 {
                        0 => Packet { from_client: false, seq: 1, ack: seq, window, ..packet },
                        _ => Packet { from_client: true, seq, ack: 1, len: 100, ..packet },
                    }
                }
            },
        }
    }
}

/// A request of fifty bytes or its answer, on a connection that has had `turn` of them.
fn asked(turn: u32, is_answer: bool, packet: Packet) -> Packet {
    let seq = turn.wrapping_mul(50);
    let ack = if is_answer { seq.wrapping_add(50) } else { seq };
    Packet { from_client: !is_answer, seq, ack, len: 50, flags: 0x18, ..packet }
}

/// A connection's handshake and its one exchange.
fn exchange(turn: u64, packet: Packet) -> Packet {
    match turn {
        0 => Packet { from_client: true, flags: 0x02, ..packet },
        1 => Packet { from_client: false, ack: 1, flags: 0x12, ..packet },
        2 => Packet { from_client: true, seq: 1, ack: 1, ..packet },
        3 => Packet { from_client: true, seq: 1, ack: 1, len: 100, flags: 0x18, ..packet },
        _ => Packet { from_client: false, seq: 1, ack: 101, len: 100, flags: 0x18, ..packet },
    }
}
