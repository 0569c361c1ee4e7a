//! Which ends behave as no real end does?

use super::conversations::AGING;
use super::{Hostile, Packet, scatter};

/// Connections of [`Hostile::Pushes`] and [`Hostile::Openings`].
const CONNECTIONS: u64 = 20_000;
/// Connections of [`Hostile::Whispers`].
const WHISPERERS: u64 = 60_000;
/// Servers of [`Hostile::Crowd`].
const CROWD: u64 = 8_000;
const SYN: u8 = 0x02;
const SYN_ACK: u8 = 0x12;
const ACK: u8 = 0x10;
const PSH: u8 = 0x18;
const FIN: u8 = 0x11;

impl Hostile {
    pub(super) fn has_odd_ends(self) -> bool {
        matches!(
            self,
            Self::Crowd
                | Self::Whispers
                | Self::MadeUp
                | Self::Mss
                | Self::Ages
                | Self::Ports
                | Self::Itself
                | Self::Pushes
                | Self::Pipeline
                | Self::Shut
                | Self::Openings
                | Self::Stamps
                | Self::Numbers
                | Self::Copies
                | Self::Backwards
                | Self::Leaps
                | Self::Reopened
        )
    }

    pub(super) fn odd(self, n: u64, packet: Packet, out: &mut Vec<u8>) {
        let number = n as u32;
        let from_client = n.is_multiple_of(2);
        let exchange = |turn: u32, packet: Packet| {
            let seq = turn * 50;
            let ack = if packet.from_client { seq } else { seq.wrapping_add(50) };
            Packet { seq, ack, len: 50, flags: PSH, ..packet }
        };
        let packet = match self {
            Self::Crowd => {
                let pair = n / 2;
                let server = (0x0b00_0000 + (pair % CROWD) as u32).to_be_bytes();
                let src = (0x0c00_0000 + (pair / CROWD) as u32 * 7_919).to_be_bytes();
                exchange(0, Packet { src, server, from_client, ..packet })
            }
            Self::Whispers => {
                let (connection, turn) = (n % WHISPERERS, n / WHISPERERS);
                let src = (0x0b00_0000 + connection as u32).to_be_bytes();
                let packet = Packet { src, from_client: turn != 2 && turn % 2 == 1, ack: 1, ..packet };
                match turn {
                    0 => Packet { from_client: true, ack: 0, flags: SYN, ..packet },
                    1 => said(1, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", packet),
                    2 => said(1, b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", packet),
                    _ => said(10_000 + turn as u32 * 2_000, &[b'x'; 1_024], packet),
                }
            }
            Self::MadeUp => {
                let made_up = [0x04, SYN, ACK, FIN][(n / 4 % 4) as usize];
                match n % 4 {
                    2 => Packet { flags: made_up, ack: scatter(n) as u32, from_client: false, ..packet },
                    turn => exchange((n / 4) as u32, Packet { from_client: turn == 0, ..packet }),
                }
            }
            Self::Mss => {
                let src = (0x0b00_0000 + (n / 8) as u32).to_be_bytes();
                let packet = Packet { src, from_client, ..packet };
                match n % 8 {
                    turn @ 0..2 => {
                        let options =
                            vec![2, 4, 0, (scatter(n) % 16) as u8, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 1, 1];
                        Packet { flags: [SYN, SYN_ACK][turn as usize], ack: turn as u32, options, ..packet }
                    }
                    turn => {
                        let len = (scatter(n) % 60_000) as u16;
                        Packet { seq: 1 + turn as u32 / 2 * 7, ack: 1, len, flags: ACK, ..packet }
                    }
                }
            }
            Self::Ages => {
                let src = (0x0b00_0000 + (n % AGING) as u32).to_be_bytes();
                let round = n / AGING;
                exchange((round / 2) as u32, Packet { src, from_client: round.is_multiple_of(2), ..packet })
            }
            Self::Ports => {
                let port = (n / 4 % 20_000) as u16;
                exchange((n / 80_000) as u32, Packet { from_client, port, ..packet })
            }
            Self::Itself => {
                let server = packet.src;
                Packet {
                    server,
                    port: 25_616,
                    seq: number * 10,
                    ack: number * 9,
                    len: 10,
                    from_client,
                    ..packet
                }
            }
            Self::Pushes => {
                let src = (0x0b00_0000 + (n % CONNECTIONS) as u32).to_be_bytes();
                let turn = (n / CONNECTIONS) as u32;
                Packet { src, from_client: false, seq: turn * 20, ack: 1, len: 20, flags: PSH, ..packet }
            }
            Self::Pipeline if n % 1_000 == 999 => {
                Packet { from_client: false, ..said(1 + number / 1_000 * 7, b"+PONG\r\n", packet) }
            }
            Self::Pipeline => {
                let asked = number - number / 1_000;
                Packet { ack: 1, from_client: true, ..said(asked * 14, b"*1\r\n$4\r\nPING\r\n", packet) }
            }
            Self::Shut => match n % 2 {
                0 => Packet { from_client: true, seq: number / 2 % 3, len: 1, ack: 1, ..packet },
                _ => Packet { from_client: false, seq: 1, ack: number / 2 % 3, window: 0, ..packet },
            },
            Self::Openings => {
                let src = (0x0b00_0000 + (n % CONNECTIONS) as u32).to_be_bytes();
                let packet = Packet { src, ..packet };
                match n / CONNECTIONS % 3 {
                    0 => Packet { from_client: true, seq: 9, len: 700, flags: SYN, ..packet },
                    1 => Packet { from_client: false, seq: number, ack: 10, flags: SYN_ACK, ..packet },
                    _ => Packet { from_client: false, seq: number, ack: 710, flags: SYN_ACK, ..packet },
                }
            }
            Self::Stamps => {
                let stamps = scatter(n).to_be_bytes();
                let options = [&[1, 1, 8, 10], &stamps[..]].concat();
                Packet { options, ..exchange((n / 2) as u32, Packet { from_client, ..packet }) }
            }
            Self::Numbers => {
                let id = scatter(n) as u16;
                Packet { id, ..exchange((n / 2) as u32, Packet { from_client, ..packet }) }
            }
            Self::Copies => {
                let ttl = Some(64 - (n % 3) as u8);
                let id = (n / 3) as u16;
                let from_client = (n / 3).is_multiple_of(2);
                Packet { id, ttl, ..exchange((n / 6) as u32, Packet { from_client, ..packet }) }
            }
            Self::Backwards => {
                let seq = u32::MAX / 2 - (number % 1_000_000) * 1_000;
                Packet { from_client: true, seq, len: 500, ..packet }
            }
            Self::Leaps => {
                let seq = number.wrapping_mul(0x7fff_ffff);
                Packet { seq, ack: seq.wrapping_add(number), len: 100, from_client, ..packet }
            }
            _ => {
                let flags = [SYN, SYN_ACK, FIN, FIN][(n % 4) as usize];
                let seq = (n / 4) as u32 * 5 + (n % 4 / 2) as u32;
                let ack = if n.is_multiple_of(4) { 0 } else { (n / 4) as u32 * 5 + 1 };
                Packet { from_client, seq, ack, flags, ..packet }
            }
        };
        packet.put(out);
        if self == Self::MadeUp {
            // The checksum's offset in a header without options.
            let field: u16 = if n % 4 == 2 { 0xdead } else { 0 };
            out[50..52].copy_from_slice(&field.to_be_bytes());
        }
    }
}

/// A segment with this payload.
pub(super) fn said(seq: u32, bytes: &[u8], packet: Packet) -> Packet {
    Packet { seq, len: bytes.len() as u16, payload: bytes.to_vec(), flags: PSH, ..packet }
}
