//! Did the segment in this packet arrive as it was sent?
//!
//! Only complete packets can tell. A packet captured on its sending host usually has no checksum
//! yet: the interface fills it in after the capture point. Linux leaves the sum over the
//! pseudo-header there (`__tcp_v4_send_check`, net/ipv4/tcp_ipv4.c), others leave nothing or the
//! same sum without the length; so does a segment that an interface or the kernel has merged
//! (`tcp_gro_complete`, net/ipv4/tcp_offload.c).

use super::ip::{self, Ip};
use crate::capture::RawPacket;

/// Result of checking a segment's checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checksum {
    /// It matches these bytes (RFC 9293, 3.1).
    Right,
    /// It has not been filled in.
    Unfilled,
    /// It does not match: the bytes were damaged, or are not a segment of the connection.
    Wrong {
        /// The field's value.
        field: u16,
        /// The sum including it, which should be all ones.
        sum: u16,
    },
}

/// A longer segment does not pass a link as it is: the interface will segment it, or has merged it.
/// The largest jumbo frames carry 9,216 bytes.
const LONGEST: usize = 9_216;
/// Offset of the checksum in the header.
const PLACE: usize = 16;
const HEADER_LEN: usize = 20;

/// Checks the checksum of the segment in a packet; `None` if not all of its bytes were captured, or
/// if the packet carries none.
#[inline]
pub fn checksum(packet: &RawPacket<'_>) -> Option<Checksum> {
    // In nearly all captures, either all packets are cut or none.
    if packet.data.len() < packet.original_len as usize {
        return None;
    }
    let (ip, _) = super::headers(packet).ok()?;
    of_segment(&ip)
}

fn of_segment(ip: &Ip<'_>) -> Option<Checksum> {
    let segment = ip.payload;
    if segment.len() != ip.payload_len as usize || !(HEADER_LEN..=LONGEST).contains(&segment.len()) {
        return None;
    }
    // RFC 9293, 3.1 and RFC 8200, 8.1. The upper part of a mapped IPv4 address is all ones, which
    // adds nothing.
    let pseudo = add(&ip.src.to_be_bytes()) + add(&ip.dst.to_be_bytes()) + add(&[0, ip::TCP]);
    let len = add(&(segment.len() as u16).to_be_bytes());
    let sum = fold(pseudo + len + add(segment));
    if sum == 0xffff {
        return Some(Checksum::Right);
    }
    let field = fold(add(segment.get(PLACE..PLACE + 2)?));
    let unfilled = [0, fold(pseudo), fold(pseudo + len)].contains(&field);
    Some(if unfilled { Checksum::Unfilled } else { Checksum::Wrong { field, sum } })
}

/// Adds up two-byte words in the machine's byte order, which changes only the byte order of the sum
/// (RFC 1071, 2). Words of eight bytes in four sums, whose carries do not depend on each other, are
/// fastest.
fn add(bytes: &[u8]) -> u64 {
    let mut sums = [0u128; 4];
    let (chunks, rest) = bytes.as_chunks::<64>();
    for chunk in chunks {
        for (i, word) in chunk.as_chunks::<8>().0.iter().enumerate() {
            sums[i % 4] += u128::from(u64::from_ne_bytes(*word));
        }
    }
    let (words, rest) = rest.as_chunks::<8>();
    sums[0] += words.iter().map(|word| u128::from(u64::from_ne_bytes(*word))).sum::<u128>();
    let sum: u128 = sums.iter().sum();
    let (words, odd) = rest.as_chunks::<2>();
    let mut last: u64 = words.iter().map(|word| u64::from(u16::from_ne_bytes(*word))).sum();
    if let [odd] = odd {
        last += u64::from(u16::from_ne_bytes([*odd, 0]));
    }
    // A bit worth 2^16 times as much counts the same.
    last + (sum >> 64) as u64 + (sum as u64 >> 32) + (sum as u64 & 0xffff_ffff)
}

fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}
