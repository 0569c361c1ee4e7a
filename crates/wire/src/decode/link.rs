//! Where does the IP header start?

use super::Skip;
use crate::capture::LinkType;

/// 802.1ad allows two tags; providers stack one or two more.
const MAX_TAGS: usize = 8;

/// What the link layer says about the network layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    V4,
    V6,
    /// The IP header's own version field decides.
    Either,
}

/// The bytes from the IP header on, and which IP it must be.
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
            // RFC 1662: address and control are all ones and 3, unless they were negotiated away.
            let data = data.strip_prefix(&[0xff, 0x03]).unwrap_or(data);
            by_ppp_protocol(data)
        }
        _ => Err(Skip::UnsupportedLink),
    }
}

#[expect(clippy::inline_always, reason = "a segment is not copied from step to step")]
#[inline(always)]
fn by_ethertype(ethertype: u16, data: &[u8]) -> Result<(&[u8], Version), Skip> {
    match ethertype {
        0x0800 => Ok((data, Version::V4)),
        0x86dd => Ok((data, Version::V6)),
        _ => tagged(ethertype, data),
    }
}

fn tagged(mut ethertype: u16, mut data: &[u8]) -> Result<(&[u8], Version), Skip> {
    for _ in 0..=MAX_TAGS {
        match ethertype {
            0x0800 => return Ok((data, Version::V4)),
            0x86dd => return Ok((data, Version::V6)),
            // 802.1Q, 802.1ad, and what QinQ was before there was a standard.
            0x8100 | 0x88a8 | 0x9100 | 0x9200 => {
                let ([_, _, a, b], rest) = data.split_first_chunk::<4>().ok_or(Skip::TruncatedHeader)?;
                ethertype = u16::from_be_bytes([*a, *b]);
                data = rest;
            }
            // PPPoE session (RFC 2516): six bytes, then PPP.
            0x8864 => return by_ppp_protocol(data.get(6..).ok_or(Skip::TruncatedHeader)?),
            _ => return Err(Skip::NotIp),
        }
    }
    Err(Skip::TooManyHeaders)
}

fn by_ppp_protocol(data: &[u8]) -> Result<(&[u8], Version), Skip> {
    match data {
        // The first byte may be compressed away where it is zero (RFC 1661, 6.5).
        [0x00, 0x21, rest @ ..] | [0x21, rest @ ..] => Ok((rest, Version::V4)),
        [0x00, 0x57, rest @ ..] | [0x57, rest @ ..] => Ok((rest, Version::V6)),
        [] | [0x00 | 0xff] => Err(Skip::TruncatedHeader),
        _ => Err(Skip::NotIp),
    }
}

fn by_address_family(data: &[u8]) -> Result<(&[u8], Version), Skip> {
    let (family, rest) = data.split_first_chunk::<4>().ok_or(Skip::TruncatedHeader)?;
    let family = u32::from_be_bytes(*family);
    // NULL is in the capturing machine's order, which the file does not tell: families are small numbers.
    match family.min(family.swap_bytes()) {
        2 => Ok((rest, Version::V4)),
        // AF_INET6: Linux, NetBSD and OpenBSD, FreeBSD, macOS.
        10 | 24 | 28 | 30 => Ok((rest, Version::V6)),
        _ => Err(Skip::NotIp),
    }
}
