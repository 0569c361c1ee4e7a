//! Where does the IP header start behind a header that says what it wraps?
//!
//! PPP with the direction of each packet (pppd's recordings), packets that a Linux firewall rule has logged (`tcpdump -i nflog`),
//! and those of all of a Mac's interfaces (`tcpdump -i pktap`). Source: the registry of link types at tcpdump.org;
//! linux/netfilter/nfnetlink_log.h.

use super::Skip;
use super::link::{IPV4, IPV6, Version, by_ethertype, network_layer, ppp};
use crate::capture::LinkType;

/// Of a logged packet: address family, version, and the number of its group; then fields of a length and a type each, which
/// include these four bytes and begin at multiples of four.
const LOGGED_LEN: usize = 4;
const FIELD_LEN: usize = 4;
/// The field that has the packet, NFULA_PAYLOAD.
const PAYLOAD: u16 = 9;
/// More fields than the kernel has kinds of.
const FIELDS_MAX: usize = 64;
/// AF_INET and AF_INET6 of Linux.
const FAMILIES: [(u8, u16); 2] = [(2, IPV4), (10, IPV6)];

/// Of a Mac's packet: the length of its header, whether a packet follows (1), and that packet's link type.
const TAPPED_LEN: usize = 12;
const HAS_PACKET: u32 = 1;

/// The bytes from the IP header on, and their IP version.
#[cold]
#[inline(never)]
pub(super) fn behind(link: LinkType, data: &[u8]) -> Result<(&[u8], Version), Skip> {
    match link {
        LinkType::PPP_WITH_DIR => {
            let (ethertype, data) = ppp(data.get(1..).ok_or(Skip::TruncatedHeader)?)?;
            by_ethertype(ethertype, data)
        }
        LinkType::NFLOG => logged(data),
        LinkType::PKTAP => tapped(data),
        _ => Err(Skip::UnsupportedLink),
    }
}

fn logged(data: &[u8]) -> Result<(&[u8], Version), Skip> {
    let ([family, ..], mut rest) = data.split_first_chunk::<LOGGED_LEN>().ok_or(Skip::TruncatedHeader)?;
    let (_, ethertype) = FAMILIES.iter().find(|(known, _)| known == family).ok_or(Skip::NotIp)?;
    // Fields are in the byte order of the host: the one in which the first, of a few bytes, is not long.
    let first: [u8; 2] = *rest.first_chunk().ok_or(Skip::TruncatedHeader)?;
    let number = if u16::from_le_bytes(first) <= u16::from_be_bytes(first) {
        u16::from_le_bytes
    } else {
        u16::from_be_bytes
    };
    for _ in 0..FIELDS_MAX {
        let ([a, b, c, d], field) = rest.split_first_chunk::<FIELD_LEN>().ok_or(Skip::TruncatedHeader)?;
        let (len, kind) = (usize::from(number([*a, *b])), number([*c, *d]));
        if kind == PAYLOAD {
            return by_ethertype(*ethertype, field);
        }
        if len < FIELD_LEN {
            return Err(Skip::NotIp);
        }
        rest = rest.get(len.next_multiple_of(FIELD_LEN)..).ok_or(Skip::TruncatedHeader)?;
    }
    Err(Skip::TooManyHeaders)
}

fn tapped(data: &[u8]) -> Result<(&[u8], Version), Skip> {
    let header: &[u8; TAPPED_LEN] = data.first_chunk().ok_or(Skip::TruncatedHeader)?;
    let [len, what, link] =
        [0, 4, 8].map(|at| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]));
    if what != HAS_PACKET || (len as usize) < TAPPED_LEN {
        return Err(Skip::NotIp);
    }
    let link = u16::try_from(link).map(LinkType).ok().filter(|&link| link != LinkType::PKTAP);
    let rest = data.get(len as usize..).ok_or(Skip::TruncatedHeader)?;
    network_layer(link.ok_or(Skip::UnsupportedLink)?, rest)
}
