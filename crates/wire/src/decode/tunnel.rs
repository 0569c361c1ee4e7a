//! Which IP packet is inside this one?
//!
//! In an overlay network (VXLAN, Geneve, GRE), behind a mirror port (ERSPAN), in a provider's core
//! (MPLS), in a mobile network (GTP-U) or a dial-in (L2TP, PPTP), each connection is inside other
//! packets. The outer headers say nothing about TCP: the inner packet is read as if it had been
//! captured itself, with the same checks and the same reasons for skipping it.
//!
//! MPLS and Ethernet inside other headers are handled in `link.rs`.

use super::link::{self, ETHERNET, IPV4, IPV6, MPLS, Version};
use super::{Skip, ip};

/// A mirrored packet of an overlay in a mobile network has three.
pub(super) const MAX_TUNNELS: usize = 8;
/// GTP-U's extension headers; 3GPP TS 29.281, 5.2 defines eight.
const MAX_GTP_EXTENSIONS: usize = 8;

/// IP protocol numbers (IANA).
const IPV4_IN_IP: u8 = 4;
const IPV6_IN_IP: u8 = 41;
const GRE: u8 = 47;
const MPLS_IN_IP: u8 = 137;

/// The Ethernet type of what follows a header, and the bytes from there on.
type Inner<'a> = Result<(u16, &'a [u8]), Skip>;

/// Whether a tunnel can be in an IP packet of this protocol.
#[inline]
pub(super) const fn may_be_in(protocol: u8) -> bool {
    matches!(protocol, ip::UDP | IPV4_IN_IP | IPV6_IN_IP | GRE | MPLS_IN_IP)
}

/// The reason for skipping a fragment of an IPv4 packet, `offset` words of eight bytes into it:
/// only the first fragment of a UDP packet shows whether it is a tunnel.
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

/// The IP packet that carries TCP, inside one that does not.
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

/// The packet inside this one, its IP version, and its length in the frame.
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

/// Parses a tunnel's header after the UDP header.
type Open = fn(&[u8]) -> Inner<'_>;

fn udp(data: &[u8]) -> Inner<'_> {
    let open = udp_tunnel(data)?;
    open(data.get(8..).ok_or(Skip::TruncatedHeader)?)
}

/// By destination port; the source port is a hash of the inner packet, so that routers spread the
/// load. For L2TP either port counts: its client may use any.
fn udp_tunnel(data: &[u8]) -> Result<Open, Skip> {
    let [from, to, a, b] = data.first_chunk().ok_or(Skip::TruncatedHeader)?;
    match u16::from_be_bytes([*a, *b]) {
        1701 => Ok(l2tp),
        // IANA's port, and the older one of Linux and flannel.
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

/// RFC 7348, 5: flags, one of which says that there is a network identifier.
fn vxlan(data: &[u8]) -> Inner<'_> {
    let ([flags, ..], frame) = data.split_first_chunk::<8>().ok_or(Skip::TruncatedHeader)?;
    if flags & 0x08 == 0 {
        return Err(Skip::NotTcp);
    }
    Ok((ETHERNET, frame))
}

/// draft-ietf-nvo3-vxlan-gpe, 3: the same, plus the protocol that follows.
fn vxlan_gpe(data: &[u8]) -> Inner<'_> {
    let ([flags, _, _, next, ..], inner) = data.split_first_chunk::<8>().ok_or(Skip::TruncatedHeader)?;
    // Version 0, with the protocol given.
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

/// RFC 8926, 3.4: version and option length, flags, protocol, network identifier, options.
fn geneve(data: &[u8]) -> Inner<'_> {
    let ([first, _, a, b, ..], rest) = data.split_first_chunk::<8>().ok_or(Skip::TruncatedHeader)?;
    if first >> 6 != 0 {
        return Err(Skip::NotTcp);
    }
    let options_len = usize::from(first & 0x3f) * 4;
    Ok((u16::from_be_bytes([*a, *b]), rest.get(options_len..).ok_or(Skip::TruncatedHeader)?))
}

/// 3GPP TS 29.281, 5.1: a user's packet, unchanged.
fn gtp_u(data: &[u8]) -> Inner<'_> {
    let ([flags, kind, ..], mut rest) = data.split_first_chunk::<8>().ok_or(Skip::TruncatedHeader)?;
    // Version 1, not GTP', a user's packet: other messages belong to the tunnel itself (echo,
    // error, end).
    if flags & 0xf0 != 0x30 || *kind != 0xff {
        return Err(Skip::NotTcp);
    }
    // Sequence number, N-PDU number and next extension type are present together; each extension
    // ends with the type of the next.
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

/// RFC 2661, 3.1: flags and version, optional length, tunnel and session identifiers, optional
/// sequence numbers and padding; then PPP.
fn l2tp(data: &[u8]) -> Inner<'_> {
    let ([flags, version], rest) = data.split_first_chunk::<2>().ok_or(Skip::TruncatedHeader)?;
    // Control messages of the tunnel, and L2TPv3.
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

/// RFC 2784 and 2890: checksum, key and sequence number are present if their flags are set.
fn gre(data: &[u8]) -> Inner<'_> {
    let ([flags, version, a, b], rest) = data.split_first_chunk::<4>().ok_or(Skip::TruncatedHeader)?;
    let has = |flag: u8| usize::from(flags & flag != 0) * 4;
    // PPTP (RFC 2637, 4.1): always a key, optional sequence and acknowledgement numbers; then PPP.
    if version & 0x07 == 1 && [*a, *b] == [0x88, 0x0b] {
        let acked = usize::from(version & 0x80 != 0) * 4;
        return link::ppp(rest.get(4 + has(0x10) + acked..).ok_or(Skip::TruncatedHeader)?);
    }
    // Source routes (RFC 1701) are not supported.
    if flags & 0x40 != 0 || version & 0x07 != 0 {
        return Err(Skip::NotTcp);
    }
    let is_numbered = has(0x10) > 0;
    let inner = rest.get(has(0x80) + has(0x20) + has(0x10)..).ok_or(Skip::TruncatedHeader)?;
    match u16::from_be_bytes([*a, *b]) {
        // ERSPAN type I has no header of its own, and GRE has no sequence number then
        // (draft-foschiano-erspan-03, 4.1).
        0x88be if !is_numbered => Ok((ETHERNET, inner)),
        0x88be => Ok((ETHERNET, inner.get(8..).ok_or(Skip::TruncatedHeader)?)),
        0x22eb => erspan_3(inner),
        ethertype => Ok((ethertype, inner)),
    }
}

/// draft-foschiano-erspan-03, 4.3: the last word says what was mirrored, and whether eight more
/// bytes follow.
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
