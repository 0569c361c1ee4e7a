//! Which TCP segment does this packet carry, if any?
//!
//! One pass over link, IP and TCP header, each checked once; tunnels are decapsulated
//! (`tunnel.rs`). Lengths come from the headers: neither the snap length nor Ethernet padding
//! changes a segment.

mod checksum;
mod fragment;
mod ip;
mod link;
mod named;
mod tcp;
mod tunnel;
mod usual;
mod wlan;
mod wrapped;

use std::fmt;

use crate::capture::RawPacket;
use crate::{Endpoint, Flags, Segment};
pub use checksum::{Checksum, checksum};
pub use fragment::{Fragments, Put};
pub use named::{Named, named, was_too_large};
pub use usual::Usual;

/// Why a packet gives no segment. The names are stable: they are the keys of `skipped` in reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Skip {
    /// The capture's link type is not supported.
    UnsupportedLink,
    /// The link header announces something other than IP (ARP, LLDP, ...).
    NotIp,
    /// IP, but not TCP.
    NotTcp,
    /// A fragment of an IP packet: its length is not that of the segment. See [`Fragments`].
    Fragment,
    /// The captured bytes end inside a header.
    TruncatedHeader,
    /// The IP header contradicts itself.
    BadIpHeader,
    /// The TCP header contradicts itself or the IP header.
    BadTcpHeader,
    /// More VLAN tags, labels, extension headers or tunnels than any honest packet has.
    TooManyHeaders,
    /// An encrypted Wi-Fi frame.
    Encrypted,
}

impl Skip {
    /// All reasons, in the order of their discriminants.
    pub const ALL: [Self; 9] = [
        Self::UnsupportedLink,
        Self::NotIp,
        Self::NotTcp,
        Self::Fragment,
        Self::TruncatedHeader,
        Self::BadIpHeader,
        Self::BadTcpHeader,
        Self::TooManyHeaders,
        Self::Encrypted,
    ];

    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::UnsupportedLink => "unsupported-link",
            Self::NotIp => "not-ip",
            Self::NotTcp => "not-tcp",
            Self::Fragment => "fragment",
            Self::TruncatedHeader => "truncated-header",
            Self::BadIpHeader => "bad-ip-header",
            Self::BadTcpHeader => "bad-tcp-header",
            Self::TooManyHeaders => "too-many-headers",
            Self::Encrypted => "encrypted",
        }
    }
}

impl fmt::Display for Skip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A TCP segment, decoded or about to be.
#[derive(Clone, Copy, Debug)]
pub enum Decoded<'a> {
    /// The usual form: every field has its fixed place, and can be read there.
    Usual(Usual<'a>),
    /// Any other.
    Other(Segment),
}

impl Decoded<'_> {
    /// The whole segment.
    #[inline]
    pub fn segment(&self) -> Segment {
        match self {
            Self::Usual(usual) => usual.segment(),
            Self::Other(segment) => *segment,
        }
    }

    /// Its source.
    #[inline]
    pub fn src(&self) -> Endpoint {
        match self {
            Self::Usual(usual) => usual.src(),
            Self::Other(segment) => segment.src,
        }
    }

    /// Its flags.
    #[inline]
    pub fn flags(&self) -> Flags {
        match self {
            Self::Usual(usual) => usual.flags(),
            Self::Other(segment) => segment.flags,
        }
    }

    /// Bytes of payload on the wire.
    #[inline]
    pub fn payload_len(&self) -> u32 {
        match self {
            Self::Usual(usual) => usual.payload_len(),
            Self::Other(segment) => segment.payload_len,
        }
    }
}

/// The TCP segment in a packet, for callers that do not need all fields in the same form.
///
/// # Errors
/// Why the packet carries no segment, or none that can be read.
#[expect(clippy::inline_always, reason = "a segment is not copied from step to step")]
#[inline(always)]
pub fn decode_usual<'a>(packet: &'a RawPacket<'a>) -> Result<Decoded<'a>, Skip> {
    match Usual::recognise(packet) {
        Some(usual) => Ok(Decoded::Usual(usual)),
        None => other(packet),
    }
}

/// [`less_usual`], as [`Decoded`].
#[inline(never)]
fn other<'a>(packet: &RawPacket<'a>) -> Result<Decoded<'a>, Skip> {
    match usual::opening(packet) {
        Some(segment) => Ok(Decoded::Other(segment)),
        None => step_by_step(packet).map(Decoded::Other),
    }
}

/// The TCP segment in a packet.
///
/// # Errors
/// Why the packet carries no segment, or none that can be read.
#[expect(clippy::inline_always, reason = "a segment is not copied from step to step")]
#[inline(always)]
pub fn decode(packet: &RawPacket<'_>) -> Result<Segment, Skip> {
    match Usual::recognise(packet) {
        Some(usual) => Ok(usual.segment()),
        None => less_usual(packet),
    }
}

#[inline(never)]
fn less_usual(packet: &RawPacket<'_>) -> Result<Segment, Skip> {
    usual::opening(packet).map_or_else(|| step_by_step(packet), Ok)
}

/// The captured part of a TCP segment's payload; empty if the packet carries none.
#[inline]
pub fn payload<'a>(packet: &RawPacket<'a>) -> &'a [u8] {
    usual::payload(packet).unwrap_or_else(|| headers(packet).map_or(&[], |(_, tcp)| tcp.payload))
}

#[inline(never)]
fn step_by_step(packet: &RawPacket<'_>) -> Result<Segment, Skip> {
    let (ip, tcp) = headers(packet)?;
    Ok(Segment {
        packet: packet.number,
        at: packet.at,
        src: Endpoint { addr: ip.src, port: tcp.src_port },
        dst: Endpoint { addr: ip.dst, port: tcp.dst_port },
        seq: tcp.seq,
        ack: tcp.ack,
        window: tcp.window,
        flags: tcp.flags,
        payload_len: tcp.payload_len,
        options: tcp.options,
        ip_id: ip.id,
        ttl: ip.ttl,
        damaged: false,
    })
}

#[expect(clippy::inline_always, reason = "headers are not copied from step to step")]
#[inline(always)]
fn headers<'a>(packet: &RawPacket<'a>) -> Result<(ip::Ip<'a>, tcp::Tcp<'a>), Skip> {
    let (data, version) = link::network_layer(packet.link, packet.data)?;
    // The length on the wire without the link header: for IP headers that cannot express the
    // packet's length.
    let on_wire = packet.original_len.saturating_sub((packet.data.len() - data.len()) as u32);
    let mut ip = ip::decode(data, version, on_wire)?;
    if ip.protocol != ip::TCP {
        ip = tunnel::innermost(ip)?;
    }
    let tcp = tcp::decode(ip.payload, ip.payload_len)?;
    Ok((ip, tcp))
}
