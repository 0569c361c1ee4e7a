//! Which connection does a packet without a segment name?
//!
//! An ICMP error quotes the packet that it is about (RFC 792; RFC 4443, 3), and a TCP header may
//! contradict itself. Neither says anything about timing, but Wireshark assigns both to a
//! connection, and begins one if there is none.

use super::link::{self, Version};
use super::tunnel::{self, MAX_TUNNELS};
use super::{ip, tcp};
use crate::capture::RawPacket;
use crate::{Endpoint, Flags, Seq};

const ICMP: u8 = 1;
const ICMP_V6: u8 = 58;
/// Type, code, checksum, and four type-specific bytes.
const ICMP_HEADER: usize = 8;

/// The fields of a TCP header that tell connections apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Named {
    /// Its source.
    pub src: Endpoint,
    /// Its destination.
    pub dst: Endpoint,
    /// Sequence number.
    pub seq: Seq,
    /// Acknowledgement number.
    pub ack: Seq,
    /// Control bits.
    pub flags: Flags,
    /// It was in an IPv6 packet.
    pub is_v6: bool,
    /// An ICMP error quotes it.
    pub is_quoted: bool,
}

/// The TCP header in a packet without a segment according to [`super::decode`].
#[cold]
pub fn named(packet: &RawPacket<'_>) -> Option<Named> {
    let (mut data, mut version) = link::network_layer(packet.link, packet.data).ok()?;
    let mut on_wire = packet.original_len.saturating_sub((packet.data.len() - data.len()) as u32);
    let mut is_quoted = false;
    for _ in 0..=MAX_TUNNELS {
        if let Some((inner, inner_version)) = quoted(data, version) {
            (data, version, on_wire, is_quoted) = (inner, inner_version, inner.len() as u32, true);
            continue;
        }
        let outer = ip::decode(data, version, on_wire).ok()?;
        if outer.protocol == ip::TCP {
            let (ports, seq, ack, flags) = tcp::names(outer.payload)?;
            let [src, dst] =
                [(outer.src, ports[0]), (outer.dst, ports[1])].map(|(addr, port)| Endpoint { addr, port });
            return Some(Named { src, dst, seq, ack, flags, is_v6: outer.id.is_none(), is_quoted });
        }
        (data, version, on_wire) = tunnel::within(&outer).ok()?;
    }
    None
}

/// Whether a router says by ICMP that a TCP packet was larger than the next link's MTU (RFC 1191, 4; RFC 8201, 4).
#[cold]
pub fn was_too_large(packet: &RawPacket<'_>) -> bool {
    let Ok((data, version)) = link::network_layer(packet.link, packet.data) else { return false };
    let says_so = match (data.first().map(|first| first >> 4), version) {
        (Some(4), Version::V4 | Version::Either) => {
            data.get(usize::from(data[0] & 0x0f) * 4..).is_some_and(|icmp| icmp.starts_with(&[3, 4]))
        }
        (Some(6), Version::V6 | Version::Either) => data.get(40) == Some(&2),
        _ => false,
    };
    // Of the TCP header itself an old router quotes no more than eight bytes (RFC 792).
    let of_segment = |(inner, version): (&[u8], Version)| {
        ip::decode(inner, version, inner.len() as u32).is_ok_and(|quoted| quoted.protocol == ip::TCP)
    };
    says_so && quoted(data, version).is_some_and(of_segment)
}

/// The IP packet that an ICMP error quotes.
fn quoted(data: &[u8], version: Version) -> Option<(&[u8], Version)> {
    match (data.first()? >> 4, version) {
        (4, Version::V4 | Version::Either) => {
            let header = data.first_chunk::<20>()?;
            let len = usize::from(header[0] & 0x0f) * 4;
            let total = usize::from(u16::from_be_bytes([header[2], header[3]]));
            let is_fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3fff != 0;
            let icmp = data.get(len..data.len().min(total))?;
            // Unreachable, source quench, time exceeded, parameter problem; a redirect only gives
            // an address.
            let is_error = header[9] == ICMP && matches!(icmp.first()?, 3 | 4 | 11 | 12);
            (len >= 20 && is_error && !is_fragment).then_some((icmp.get(ICMP_HEADER..)?, Version::V4))
        }
        (6, Version::V6 | Version::Either) => {
            let (header, icmp) = data.split_first_chunk::<40>()?;
            // Unreachable, too big, time exceeded, parameter problem.
            let is_error = header[6] == ICMP_V6 && matches!(icmp.first()?, 1..=4);
            is_error.then_some((icmp.get(ICMP_HEADER..)?, Version::V6))
        }
        _ => None,
    }
}
