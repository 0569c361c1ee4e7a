//! Which bytes of packets cost most before their meaning is known?

use super::{Hostile, NESTED_LEN, scatter};

/// Length of a first fragment.
const PIECE_LEN: usize = 1_400;
/// Number of fragments of eight bytes that fit into a packet, half of them used.
const SLIVERS: u64 = 4_000;

impl Hostile {
    /// Whether its packets are written byte by byte.
    pub(super) fn writes_bytes(self) -> bool {
        matches!(
            self,
            Self::Pieces
                | Self::Slivers
                | Self::Overlaps
                | Self::Sums
                | Self::Tunnels
                | Self::Labels
                | Self::TcpOptions
                | Self::OpenV6
                | Self::Noise
        )
    }

    pub(super) fn bytes(self, n: u64, out: &mut Vec<u8>) {
        out.extend([2; 12]);
        match self {
            Self::Pieces => fragment(n as u32, 0, true, PIECE_LEN, out),
            Self::Slivers => fragment((n / SLIVERS) as u32, (n % SLIVERS) as u16 * 2, true, 8, out),
            Self::Overlaps => fragment((n / 2) as u32, (n % 2) as u16, true, 64, out),
            Self::Sums => sums(n, out),
            Self::Tunnels => {
                while out.len() < NESTED_LEN {
                    let left = (NESTED_LEN - out.len()) as u16 + 1_000;
                    out.extend([0x08, 0x00, 0x45, 0]);
                    out.extend(left.to_be_bytes());
                    out.extend([0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0xc0, 1, 0x12, 0xb5]);
                    out.extend((left - 20).to_be_bytes());
                    out.extend([0, 0, 8, 0, 0, 0, 0, 0, 1, 0]);
                    out.extend([2; 12]);
                }
            }
            Self::Labels => {
                out.extend([0x88, 0x47]);
                while out.len() < NESTED_LEN {
                    out.extend([0, 1, 0x10, 64]);
                }
            }
            Self::TcpOptions => {
                header(80, n as u32, out);
                tcp(40_000, n as u32, 0x10, 15, out);
                // An unknown kind, two bytes long, twenty times.
                out.extend([253, 2].repeat(20));
            }
            Self::OpenV6 => open_v6(n, out),
            _ => {
                // Fields of any value after a header that is valid up to there.
                header(20 + 20 + (scatter(n) % 3_000) as u16, (scatter(n + 1) % 50) as u32, out);
                let start = out.len();
                for i in 0..6 {
                    out.extend(scatter(6 * n + i).to_be_bytes());
                }
                out[start..start + 4].copy_from_slice(&[0x9c, (scatter(n) % 40) as u8, 0, 80]);
                out[start + 12] = 0x50 | (scatter(n) % 3) as u8;
                if n.is_multiple_of(3) {
                    let (src, dst) = (start - 8, start - 4);
                    for i in 0..4 {
                        out.swap(src + i, dst + i);
                    }
                    out.swap(start, start + 2);
                    out.swap(start + 1, start + 3);
                }
            }
        }
    }
}

/// An IPv4 header of a packet of this length, from a new address.
fn header(total_len: u16, client: u32, out: &mut Vec<u8>) {
    out.extend([0x08, 0x00, 0x45, 0]);
    out.extend(total_len.to_be_bytes());
    out.extend([0, 0, 0x40, 0, 64, 6, 0, 0]);
    out.extend((0x0b00_0000 + client).to_be_bytes());
    out.extend([10, 0, 0, 2]);
}

fn tcp(port: u16, seq: u32, flags: u8, words: u8, out: &mut Vec<u8>) {
    out.extend(port.to_be_bytes());
    out.extend(80u16.to_be_bytes());
    out.extend(seq.to_be_bytes());
    out.extend([0, 0, 0, 1, words << 4, flags, 4, 0, 0, 0, 0, 0]);
}

/// A fragment of the packet with this number, at this offset in units of eight bytes.
fn fragment(packet: u32, at: u16, more: bool, len: usize, out: &mut Vec<u8>) {
    out.extend([0x08, 0x00, 0x45, 0]);
    out.extend((20 + len as u16).to_be_bytes());
    out.extend((packet as u16).to_be_bytes());
    out.extend((at | u16::from(more) << 13).to_be_bytes());
    out.extend([64, 6, 0, 0]);
    out.extend((0x0b00_0000 + (packet >> 16)).to_be_bytes());
    out.extend([10, 0, 0, 2]);
    out.resize(out.len() + len, 0x50);
}

/// A whole packet of twenty bytes of TCP, from one of a million addresses; its checksum is right
/// except in every third one.
fn sums(n: u64, out: &mut Vec<u8>) {
    header(40, (n / 3 % 1_000_000) as u32, out);
    tcp(40_000, (n / 3_000_000) as u32, 0x10, 5, out);
    let segment = out.len() - 20;
    let pseudo = [&out[segment - 8..], &[0, 6, 0, 20]].concat();
    let words = pseudo.as_chunks::<2>().0.iter().map(|word| u32::from(u16::from_be_bytes(*word)));
    let sum: u32 = words.sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    let field = !(((sum & 0xffff) + (sum >> 16)) as u16) ^ u16::from(n % 3 == 2);
    out[segment + 16..segment + 18].copy_from_slice(&field.to_be_bytes());
}

/// Sixteen packets per connection, 150,000 connections at a time; all but the handshake have two
/// SACK blocks.
fn open_v6(n: u64, out: &mut Vec<u8>) {
    let (client, turn) = (n % super::OPEN, (n / super::OPEN % super::TURNS) as u32);
    let from_client = turn != 1 && turn.is_multiple_of(2);
    let [mut src, mut dst] = [[0xfd; 16], [0xfe; 16]];
    src[8..].copy_from_slice(&client.to_be_bytes());
    let (mut from, mut to) = (40_000u16, 80u16);
    if !from_client {
        (src, dst, from, to) = (dst, src, to, from);
    }
    let (words, len) = if turn < 2 { (5u16, 0u16) } else { (11, 1_000) };
    out.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
    out.extend((words * 4 + len).to_be_bytes());
    out.extend([6, 64]);
    out.extend(src);
    out.extend(dst);
    out.extend(from.to_be_bytes());
    out.extend(to.to_be_bytes());
    let seq = if turn == 0 || turn == 1 { 0 } else { 1 + turn / 2 * 3_000 };
    out.extend(seq.to_be_bytes());
    out.extend(u32::from(turn > 0).to_be_bytes());
    out.extend([(words << 4) as u8, [0x02, 0x12, 0x10][turn.min(2) as usize], 4, 0, 0, 0, 0, 0]);
    if turn >= 2 {
        out.extend([1, 1, 5, 18]);
        for start in [turn * 3_000, turn * 3_000 + 50_000] {
            out.extend(start.to_be_bytes());
            out.extend((start + 900).to_be_bytes());
        }
        out.extend([1; 2]);
    }
}
