//! Which IP packet is within this one?
//!
//! A host of an overlay network (VXLAN, Geneve, GRE), a mirror port (ERSPAN), a provider's core (MPLS), a mobile network (GTP-U) or
//! a dial-in (L2TP, PPTP) shows each connection inside another packet. The outer headers say nothing about TCP: the inner packet is read as if it had
//! been captured by itself, with the same checks, and what cannot be read is named as it is outside.
//!
//! MPLS and Ethernet within other headers are read in `link.rs`.

use super::link::{self, ETHERNET, IPV4, IPV6, MPLS, Version};
use super::{Skip, ip};

/// A mirrored packet of an overlay in a mobile network has three.
pub(super) const MAX_TUNNELS: usize = 8;
/// GTP-U's extension headers; 3GPP TS 29.281, 5.2 knows eight.
const MAX_GTP_EXTENSIONS: usize = 8;

/// IP protocol numbers (IANA).
const IPV4_IN_IP: u8 = 4;
const IPV6_IN_IP: u8 = 41;
const GRE: u8 = 47;
const MPLS_IN_IP: u8 = 137;

/// What a header says comes behind it, as Ethernet would say it, and the bytes from there on.
type Inner<'a> = Result<(u16, &'a [u8]), Skip>;

/// Whether a tunnel can be in an IP packet of this protocol.
#[inline]
pub(super) const fn may_be_in(protocol: u8) -> bool {
    matches!(protocol, ip::UDP | IPV4_IN_IP | IPV6_IN_IP | GRE | MPLS_IN_IP)
}

/// What to call a fragment of an IPv4 packet, `offset` words of eight bytes into it: only the first one of UDP shows whether a tunnel
/// is in it.
#[cold]
pub(super) fn fragment(protocol: u8, offset: u16, payload: Option<&[u8]>) -> Skip {
    if protocol != ip::UDP {
        return Skip::Fragment;
    }
    match udp_tunnel(payload.unwrap_or_default()) {
        _ if offset != 0 => Skip::NotTcp,
        Ok(_) => Skip::Fragment,
        Err(skip) => skip,
    }
}

/// The IP packet that carries TCP, within one that does not.
#[inline(never)]
pub(super) fn innermost(mut outer: ip::Ip<'_>) -> Result<ip::Ip<'_>, Skip> {
    for _ in 0..MAX_TUNNELS {
        let (data, version, on_wire) = within(&outer)?;
        outer = ip::decode(data, version, on_wire)?;
        if outer.protocol == ip::TCP {
            return Ok(outer);
        }
    }
    Err(Skip::TooManyHeaders)
}

/// The packet within this one, which IP it must be, and what it takes of the frame.
pub(super) fn within<'a>(outer: &ip::Ip<'a>) -> Result<(&'a [u8], Version, u32), Skip> {
    let (ethertype, inner) = match outer.protocol {
        IPV4_IN_IP => (IPV4, outer.payload),
        IPV6_IN_IP => (IPV6, outer.payload),
        MPLS_IN_IP => (MPLS, outer.payload),
        GRE => gre(outer.payload)?,
        _ => udp(outer.payload)?,
    };
    let (data, version): (&[u8], Version) = link::by_ethertype(ethertype, inner)?;
    let headers_len = (outer.payload.len() - data.len()) as u32;
    Ok((data, version, outer.payload_len.saturating_sub(headers_len)))
}

/// A tunnel's header behind UDP's.
type Open = fn(&[u8]) -> Inner<'_>;

fn udp(data: &[u8]) -> Inner<'_> {
    let open = udp_tunnel(data)?;
    open(data.get(8..).ok_or(Skip::TruncatedHeader)?)
}

/// By the port that it goes to; the source port is a hash of what is inside, so that routers spread the load. Of L2TP either port
/// says it: its client may have any.
fn udp_tunnel(data: &[u8]) -> Result<Open, Skip> {
    let [from, to, a, b] = data.first_chunk().ok_or(Skip::TruncatedHeader)?;
    match u16::from_be_bytes([*a, *b]) {
        1701 => Ok(l2tp),
        // IANA's, and the one that Linux and flannel have used from before.
        4789 | 8472 => Ok(vxlan),
        4790 => Ok(vxlan_gpe),
        6081 => Ok(geneve),
        2152 => Ok(gtp_u),
        // RFC 7510.
        6635 => Ok(|data| Ok((MPLS, data))),
        _ if u16::from_be_bytes([*from, *to]) == 1701 => Ok(l2tp),
        _ => Err(Skip::NotTcp),
    }
}

/// RFC 7348, 5: flags, of which one says that there is a network's number.
fn vxlan(data: &[u8]) -> Inner<'_> {
    let ([flags, ..], frame) = data.split_first_chunk::<8>().ok_or(Skip::TruncatedHeader)?;
    if flags & 0x08 == 0 {
        return Err(Skip::NotTcp);
    }
    Ok((ETHERNET, frame))
}

/// draft-ietf-nvo3-vxlan-gpe, 3: the same, and the kind of what follows.
fn vxlan_gpe(data: &[u8]) -> Inner<'_> {
    let ([flags, _, _, next, ..], inner) = data.split_first_chunk::<8>().ok_or(Skip::TruncatedHeader)?;
    // Version 0, and the kind is said.
    if flags & 0x34 != 0x04 {
        return Err(Skip::NotTcp);
    }
    match next {
        1 => Ok((IPV4, inner)),
        2 => Ok((IPV6, inner)),
        3 => Ok((ETHERNET, inner)),
        5 => Ok((MPLS, inner)),
        _ => Err(Skip::NotTcp),
    }
}

/// RFC 8926, 3.4: version and length of the options, flags, what follows, the network's number, options.
fn geneve(data: &[u8]) -> Inner<'_> {
    let ([first, _, a, b, ..], rest) = data.split_first_chunk::<8>().ok_or(Skip::TruncatedHeader)?;
    if first >> 6 != 0 {
        return Err(Skip::NotTcp);
    }
    let options_len = usize::from(first & 0x3f) * 4;
    Ok((u16::from_be_bytes([*a, *b]), rest.get(options_len..).ok_or(Skip::TruncatedHeader)?))
}

/// 3GPP TS 29.281, 5.1: a user's packet, as it is.
fn gtp_u(data: &[u8]) -> Inner<'_> {
    let ([flags, kind, ..], mut rest) = data.split_first_chunk::<8>().ok_or(Skip::TruncatedHeader)?;
    // Version 1, not GTP', a packet of a user: the rest is the tunnel's own (echo, error, end).
    if flags & 0xf0 != 0x30 || *kind != 0xff {
        return Err(Skip::NotTcp);
    }
    // Sequence number, N-PDU number and the next extension's kind come together; extensions end with the kind of the next.
    if flags & 0x07 != 0 {
        let [.., next] = rest.first_chunk::<4>().ok_or(Skip::TruncatedHeader)?;
        let mut next = if flags & 0x04 != 0 { *next } else { 0 };
        rest = &rest[4..];
        for _ in 0..MAX_GTP_EXTENSIONS {
            if next == 0 {
                break;
            }
            let len = usize::from(*rest.first().ok_or(Skip::TruncatedHeader)?) * 4;
            if len == 0 {
                return Err(Skip::NotTcp);
            }
            next = *rest.get(len - 1).ok_or(Skip::TruncatedHeader)?;
            rest = &rest[len..];
        }
        if next != 0 {
            return Err(Skip::TooManyHeaders);
        }
    }
    match rest.first().ok_or(Skip::TruncatedHeader)? >> 4 {
        4 => Ok((IPV4, rest)),
        6 => Ok((IPV6, rest)),
        _ => Err(Skip::NotTcp),
    }
}

/// RFC 2661, 3.1: flags and version, the length if there is one, the tunnel's and the session's number, sequence numbers and padding
/// if there are any; then PPP.
fn l2tp(data: &[u8]) -> Inner<'_> {
    let ([flags, version], rest) = data.split_first_chunk::<2>().ok_or(Skip::TruncatedHeader)?;
    // Messages of the tunnel's own, and L2TPv3.
    if flags & 0x80 != 0 || version & 0x0f != 2 {
        return Err(Skip::NotTcp);
    }
    let has = |flag: u8, len: usize| if flags & flag != 0 { len } else { 0 };
    let rest = rest.get(has(0x40, 2) + 4 + has(0x08, 4)..).ok_or(Skip::TruncatedHeader)?;
    if flags & 0x02 == 0 {
        return link::ppp(rest);
    }
    let ([a, b], rest) = rest.split_first_chunk::<2>().ok_or(Skip::TruncatedHeader)?;
    link::ppp(rest.get(usize::from(u16::from_be_bytes([*a, *b]))..).ok_or(Skip::TruncatedHeader)?)
}

/// RFC 2784 and 2890: checksum, key and sequence number are there if their flags are.
fn gre(data: &[u8]) -> Inner<'_> {
    let ([flags, version, a, b], rest) = data.split_first_chunk::<4>().ok_or(Skip::TruncatedHeader)?;
    let has = |flag: u8| usize::from(flags & flag != 0) * 4;
    // PPTP (RFC 2637, 4.1): a key always, the numbers of this packet and of the last one that came if there are any; then PPP.
    if version & 0x07 == 1 && [*a, *b] == [0x88, 0x0b] {
        let acked = usize::from(version & 0x80 != 0) * 4;
        return link::ppp(rest.get(4 + has(0x10) + acked..).ok_or(Skip::TruncatedHeader)?);
    }
    // Source routes (RFC 1701) carry nothing that is read here.
    if flags & 0x40 != 0 || version & 0x07 != 0 {
        return Err(Skip::NotTcp);
    }
    let is_numbered = has(0x10) > 0;
    let inner = rest.get(has(0x80) + has(0x20) + has(0x10)..).ok_or(Skip::TruncatedHeader)?;
    match u16::from_be_bytes([*a, *b]) {
        // ERSPAN's first type has no header of its own, and GRE no sequence number then (draft-foschiano-erspan-03, 4.1).
        0x88be if !is_numbered => Ok((ETHERNET, inner)),
        0x88be => Ok((ETHERNET, inner.get(8..).ok_or(Skip::TruncatedHeader)?)),
        0x22eb => erspan_3(inner),
        ethertype => Ok((ethertype, inner)),
    }
}

/// draft-foschiano-erspan-03, 4.3: the last word says what was mirrored, and whether eight bytes more follow.
fn erspan_3(data: &[u8]) -> Inner<'_> {
    let (header, rest) = data.split_first_chunk::<12>().ok_or(Skip::TruncatedHeader)?;
    let more = if header[11] & 1 != 0 { 8 } else { 0 };
    let inner = rest.get(more..).ok_or(Skip::TruncatedHeader)?;
    // P (1 bit) and the frame's type (5 bits).
    match header[10] >> 2 & 0x1f {
        0 => Ok((ETHERNET, inner)),
        2 => match inner.first().ok_or(Skip::TruncatedHeader)? >> 4 {
            6 => Ok((IPV6, inner)),
            _ => Ok((IPV4, inner)),
        },
        _ => Err(Skip::NotTcp),
    }
}
