//! Where does the IP header start?

use super::{Skip, wlan, wrapped};
use crate::capture::LinkType;

/// 802.1ad allows two tags; providers stack one or two more. Label stacks and the frames in them
/// count too.
const MAX_TAGS: usize = 8;
/// Labels before a packet: two or three in a provider's network, up to ten with source routes (RFC
/// 8663).
const MAX_LABELS: usize = 16;

pub(super) const IPV4: u16 = 0x0800;
pub(super) const IPV6: u16 = 0x86dd;
/// MPLS unicast and multicast (RFC 5332).
pub(super) const MPLS: u16 = 0x8847;
const MPLS_UPSTREAM: u16 = 0x8848;
/// An Ethernet frame within another header (RFC 7637, 3.2).
pub(super) const ETHERNET: u16 = 0x6558;

/// The IP version according to the link layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    V4,
    V6,
    /// The IP header's own version field decides.
    Either,
}

/// The bytes from the IP header on, and their IP version.
#[expect(clippy::inline_always, reason = "a segment is not copied from step to step")]
#[inline(always)]
pub(super) fn network_layer(link: LinkType, data: &[u8]) -> Result<(&[u8], Version), Skip> {
    match link {
        LinkType::ETHERNET => {
            let [.., a, b] = data.first_chunk::<14>().ok_or(Skip::TruncatedHeader)?;
            by_ethertype(u16::from_be_bytes([*a, *b]), &data[14..])
        }
        LinkType::LINUX_SLL => {
            // Packet type, ARPHRD, address length, address (8), protocol.
            let [.., a, b] = data.first_chunk::<16>().ok_or(Skip::TruncatedHeader)?;
            by_ethertype(u16::from_be_bytes([*a, *b]), &data[16..])
        }
        LinkType::LINUX_SLL2 => {
            // Protocol, reserved, interface index, ARPHRD, packet type, address length, address (8).
            let [a, b, ..] = data.first_chunk::<20>().ok_or(Skip::TruncatedHeader)?;
            by_ethertype(u16::from_be_bytes([*a, *b]), &data[20..])
        }
        LinkType::RAW | LinkType::RAW_BSD | LinkType::RAW_OPENBSD => Ok((data, Version::Either)),
        LinkType::IPV4 => Ok((data, Version::V4)),
        LinkType::IPV6 => Ok((data, Version::V6)),
        LinkType::NULL | LinkType::LOOP => by_address_family(data),
        LinkType::PPP | LinkType::PPP_HDLC => {
            let (ethertype, data) = ppp(data)?;
            by_ethertype(ethertype, data)
        }
        LinkType::IEEE802_11 | LinkType::IEEE802_11_RADIOTAP | LinkType::PPI => {
            let (ethertype, data) = wlan::behind(link, data)?;
            by_ethertype(ethertype, data)
        }
        _ => wrapped::behind(link, data),
    }
}

/// The same, after a header with an Ethernet type.
#[expect(clippy::inline_always, reason = "a segment is not copied from step to step")]
#[inline(always)]
pub(super) fn by_ethertype(ethertype: u16, data: &[u8]) -> Result<(&[u8], Version), Skip> {
    match ethertype {
        IPV4 => Ok((data, Version::V4)),
        IPV6 => Ok((data, Version::V6)),
        _ => tagged(ethertype, data),
    }
}

fn tagged(mut ethertype: u16, mut data: &[u8]) -> Result<(&[u8], Version), Skip> {
    for _ in 0..=MAX_TAGS {
        (ethertype, data) = match ethertype {
            IPV4 => return Ok((data, Version::V4)),
            IPV6 => return Ok((data, Version::V6)),
            // 802.1Q, 802.1ad, and the types used for QinQ before it was standardized.
            0x8100 | 0x88a8 | 0x9100 | 0x9200 => {
                let ([_, _, a, b], rest) = data.split_first_chunk::<4>().ok_or(Skip::TruncatedHeader)?;
                (u16::from_be_bytes([*a, *b]), rest)
            }
            // PPPoE session (RFC 2516): six bytes, then PPP.
            0x8864 => ppp(data.get(6..).ok_or(Skip::TruncatedHeader)?)?,
            MPLS | MPLS_UPSTREAM => behind_labels(data)?,
            ETHERNET => {
                let ([.., a, b], rest) = data.split_first_chunk::<14>().ok_or(Skip::TruncatedHeader)?;
                (u16::from_be_bytes([*a, *b]), rest)
            }
            _ => return Err(Skip::NotIp),
        };
    }
    Err(Skip::TooManyHeaders)
}

/// Skips a stack of labels, up to the one marked as the last.
fn behind_labels(mut data: &[u8]) -> Result<(u16, &[u8]), Skip> {
    for _ in 0..MAX_LABELS {
        // Label (20 bits), traffic class (3), bottom of the stack (1), time to live (8): RFC 3032, 2.1.
        let ([_, _, label, _], rest) = data.split_first_chunk::<4>().ok_or(Skip::TruncatedHeader)?;
        data = rest;
        if label & 1 == 0 {
            continue;
        }
        return behind_the_last_label(data);
    }
    Err(Skip::TooManyHeaders)
}

/// Labels do not say which protocol follows. Its first four bits do (RFC 4928, 3), unless they belong
/// to the address of an Ethernet frame without a control word: then the frame's type field matches
/// what follows it.
fn behind_the_last_label(data: &[u8]) -> Result<(u16, &[u8]), Skip> {
    // A frame's header, the word before it, and the first byte after it.
    let ([first, ..], _) = data.split_first_chunk::<19>().ok_or(Skip::TruncatedHeader)?;
    match first >> 4 {
        _ if is_frame(data) && !is_frame(&data[4..]) => Ok((ETHERNET, data)),
        4 => Ok((IPV4, data)),
        6 => Ok((IPV6, data)),
        // An Ethernet pseudowire's control word (RFC 4448, 4.6).
        0 => Ok((ETHERNET, &data[4..])),
        // Control traffic of the pseudowire itself (RFC 4385, 5).
        1 => Err(Skip::NotIp),
        _ => Ok((ETHERNET, data)),
    }
}

fn is_frame(data: &[u8]) -> bool {
    match data.get(12..15) {
        Some([0x08, 0x00, next]) => next >> 4 == 4,
        Some([0x86, 0xdd, next]) => next >> 4 == 6,
        Some([0x81, 0x00, _] | [0x88, 0x47 | 0x48 | 0x64 | 0xa8, _]) => true,
        _ => false,
    }
}

/// The protocol that PPP carries, as an Ethernet type.
pub(super) fn ppp(data: &[u8]) -> Result<(u16, &[u8]), Skip> {
    // RFC 1662: address and control are all ones and 3, unless they were negotiated away.
    match data.strip_prefix(&[0xff, 0x03]).unwrap_or(data) {
        // The first byte may be compressed away where it is zero (RFC 1661, 6.5).
        [0x00, 0x21, rest @ ..] | [0x21, rest @ ..] => Ok((IPV4, rest)),
        [0x00, 0x57, rest @ ..] | [0x57, rest @ ..] => Ok((IPV6, rest)),
        // RFC 3032, 4.3.
        [0x02, 0x81, rest @ ..] => Ok((MPLS, rest)),
        [] | [0x00 | 0x02 | 0xff] => Err(Skip::TruncatedHeader),
        _ => Err(Skip::NotIp),
    }
}

fn by_address_family(data: &[u8]) -> Result<(&[u8], Version), Skip> {
    let (family, rest) = data.split_first_chunk::<4>().ok_or(Skip::TruncatedHeader)?;
    let family = u32::from_be_bytes(*family);
    // NULL uses the capturing machine's byte order, which the file does not tell: families are
    // small numbers.
    match family.min(family.swap_bytes()) {
        2 => Ok((rest, Version::V4)),
        // AF_INET6: Linux, NetBSD and OpenBSD, FreeBSD, macOS.
        10 | 24 | 28 | 30 => Ok((rest, Version::V6)),
        _ => Err(Skip::NotIp),
    }
}
