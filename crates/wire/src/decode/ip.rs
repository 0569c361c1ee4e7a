//! What are the source and the destination, and which protocol follows?

use super::link::Version;
use super::{Skip, tunnel};

/// RFC 8200 defines six extension headers, each used once.
pub(super) const MAX_EXTENSION_HEADERS: usize = 8;
/// Linux's largest super-segment (`GSO_MAX_SIZE`, include/linux/netdevice.h) with its headers: the
/// limit for an IP header without a length.
const MAX_WITHOUT_LENGTH: u32 = 8 * 65536;

pub(super) const TCP: u8 = 6;
pub(super) const UDP: u8 = 17;

/// The fields of an IP header.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ip<'a> {
    pub(super) src: u128,
    pub(super) dst: u128,
    /// The protocol of its payload: TCP, or one that a tunnel may use.
    pub(super) protocol: u8,
    /// Captured bytes from the next header on; link-layer padding is cut off.
    pub(super) payload: &'a [u8],
    /// Bytes sent after the IP header.
    pub(super) payload_len: u32,
    pub(super) id: Option<u16>,
    pub(super) ttl: u8,
}

/// Reads an IP packet that takes `on_wire` bytes of its frame.
#[expect(clippy::inline_always, reason = "a segment is not copied from step to step")]
#[inline(always)]
pub(super) fn decode(data: &[u8], version: Version, on_wire: u32) -> Result<Ip<'_>, Skip> {
    let first = *data.first().ok_or(Skip::TruncatedHeader)?;
    match (first >> 4, version) {
        (4, Version::V4 | Version::Either) => v4(data, on_wire),
        (6, Version::V6 | Version::Either) => v6(data, on_wire),
        _ => Err(Skip::BadIpHeader),
    }
}

#[expect(clippy::inline_always, reason = "a segment is not copied from step to step")]
#[inline(always)]
fn v4(data: &[u8], on_wire: u32) -> Result<Ip<'_>, Skip> {
    let header = data.first_chunk::<20>().ok_or(Skip::TruncatedHeader)?;
    let header_len = usize::from(header[0] & 0x0f) * 4;
    let mut total_len = u32::from(u16::from_be_bytes([header[2], header[3]]));
    if total_len == 0 {
        // The length does not fit (BIG TCP), or the interface fills it in when it splits the
        // segment.
        total_len = without_length(on_wire)?;
    }
    if header_len < 20 || total_len < header_len as u32 {
        return Err(Skip::BadIpHeader);
    }
    let protocol = header[9];
    if protocol != TCP && !tunnel::may_be_in(protocol) {
        return Err(Skip::NotTcp);
    }
    // More fragments, or a fragment offset (RFC 791, 3.1).
    let fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3fff;
    if fragment != 0 {
        return Err(tunnel::fragment(protocol, fragment & 0x1fff, data.get(header_len..)));
    }
    let payload = data.get(header_len..data.len().min(total_len as usize)).ok_or(Skip::TruncatedHeader)?;
    let address = |i: usize| {
        let bytes = [header[i], header[i + 1], header[i + 2], header[i + 3]];
        0xffff_0000_0000 | u128::from(u32::from_be_bytes(bytes))
    };
    Ok(Ip {
        src: address(12),
        dst: address(16),
        protocol,
        payload,
        payload_len: total_len - header_len as u32,
        id: Some(u16::from_be_bytes([header[4], header[5]])),
        ttl: header[8],
    })
}

fn v6(data: &[u8], on_wire: u32) -> Result<Ip<'_>, Skip> {
    let (header, rest) = data.split_first_chunk::<40>().ok_or(Skip::TruncatedHeader)?;
    let mut payload_len = u32::from(u16::from_be_bytes([header[4], header[5]]));
    if payload_len == 0 {
        // A jumbogram (RFC 2675), which is how Linux shows BIG TCP.
        payload_len = without_length(on_wire)?.checked_sub(40).ok_or(Skip::BadIpHeader)?;
    }
    let mut payload = &rest[..rest.len().min(payload_len as usize)];
    let mut next = header[6];
    for _ in 0..=MAX_EXTENSION_HEADERS {
        let words = |unit: usize, plus: usize| {
            payload.get(1).map(|len| (usize::from(*len) + plus) * unit).ok_or(Skip::TruncatedHeader)
        };
        let len = match next {
            protocol if protocol == TCP || tunnel::may_be_in(protocol) => {
                let [_, _, _, _, _, _, _, ttl, addresses @ ..] = header;
                let (src, dst) = addresses.split_at(16);
                let number = |bytes: &[u8]| bytes.iter().fold(0, |n, byte| n << 8 | u128::from(*byte));
                return Ok(Ip {
                    src: number(src),
                    dst: number(dst),
                    protocol,
                    payload,
                    payload_len,
                    id: None,
                    ttl: *ttl,
                });
            }
            // Hop-by-hop, routing, destination options, mobility, HIP, shim6.
            0 | 43 | 60 | 135 | 139 | 140 => words(8, 1)?,
            // Authentication (RFC 4302, 2.2).
            51 => words(4, 2)?,
            44 => {
                let [_, _, a, b, ..] = payload.first_chunk::<8>().ok_or(Skip::TruncatedHeader)?;
                // An atomic fragment is a whole packet (RFC 6946).
                if u16::from_be_bytes([*a, *b]) & 0xfff9 != 0 {
                    return Err(Skip::Fragment);
                }
                8
            }
            _ => return Err(Skip::NotTcp),
        };
        payload_len = payload_len.checked_sub(len as u32).ok_or(Skip::BadIpHeader)?;
        next = *payload.first().ok_or(Skip::TruncatedHeader)?;
        payload = payload.get(len..).ok_or(Skip::TruncatedHeader)?;
    }
    Err(Skip::TooManyHeaders)
}

#[cold]
fn without_length(on_wire: u32) -> Result<u32, Skip> {
    if on_wire <= MAX_WITHOUT_LENGTH { Ok(on_wire) } else { Err(Skip::BadIpHeader) }
}
