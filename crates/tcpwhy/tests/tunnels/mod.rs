//! Every tunnel that is decoded, written by hand around recorded packets.

use super::vocabulary::Packet;

/// A frame around another.
type Wrap = fn(&Packet) -> Vec<u8>;

/// The tunnels, by a name for failures.
pub(crate) const TUNNELS: [(&str, Wrap); 28] = [
    ("VXLAN", |p| udp(p, 4789, &[0x08, 0, 0, 0, 0, 0, 42, 0], &p.data)),
    ("VXLAN as Linux numbers it", |p| udp(p, 8472, &[0x88, 0, 0, 9, 0, 0, 42, 0], &p.data)),
    ("VXLAN over IPv6", |p| udp6(p, 4789, &[0x08, 0, 0, 0, 0, 0, 42, 0], &p.data)),
    ("VXLAN-GPE, IP", |p| udp(p, 4790, &[0x0c, 0, 0, if is_v6(p) { 2 } else { 1 }, 0, 0, 1, 0], ip_of(p))),
    ("VXLAN-GPE, Ethernet", |p| udp(p, 4790, &[0x0c, 0, 0, 3, 0, 0, 1, 0], &p.data)),
    ("Geneve", |p| udp(p, 6081, &[0, 0, 0x65, 0x58, 0, 0, 42, 0], &p.data)),
    ("Geneve with options", |p| {
        udp(p, 6081, &[2, 0, 0x65, 0x58, 0, 0, 42, 0, 0x01, 0x02, 0x80, 1, 1, 2, 3, 4], &p.data)
    }),
    ("Geneve, IP", |p| udp6(p, 6081, &[&[0, 0], &type_of(p)[..], &[0, 0, 42, 0]].concat(), ip_of(p))),
    ("GTP-U", |p| udp(p, 2152, &gtp(p, 0x30, &[]), ip_of(p))),
    ("GTP-U with a sequence number", |p| udp(p, 2152, &gtp(p, 0x32, &[0, 7, 0, 0]), ip_of(p))),
    ("GTP-U of 5G", |p| {
        // A PDU session container after the fields that come with it, then a UDP port's extension.
        udp6(p, 2152, &gtp(p, 0x34, &[0, 0, 0, 0x85, 1, 0, 9, 0x40, 1, 8, 0x68, 0]), ip_of(p))
    }),
    ("MPLS over UDP", |p| udp(p, 6635, &[0, 1, 0x01, 64], ip_of(p))),
    ("GRE", |p| ipv4(p, 47, &[&[0, 0], &type_of(p)[..]].concat(), ip_of(p))),
    ("GRE with all fields", |p| {
        ipv4(p, 47, &[&[0xb0, 0], &type_of(p)[..], &[0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 1]].concat(), ip_of(p))
    }),
    ("GRE of frames", |p| ipv6(p, 47, &[0x20, 0, 0x65, 0x58, 0, 0, 42, 0], &p.data)),
    ("GRE of MPLS", |p| ipv4(p, 47, &[0, 0, 0x88, 0x47, 0, 1, 0x00, 64, 0, 2, 0x01, 64], ip_of(p))),
    ("ERSPAN I", |p| ipv4(p, 47, &[0, 0, 0x88, 0xbe], &p.data)),
    ("ERSPAN II", |p| {
        ipv4(p, 47, &[0x10, 0, 0x88, 0xbe, 0, 0, 0, 1, 0x10, 42, 0x08, 1, 0, 0, 0, 7], &p.data)
    }),
    ("ERSPAN III", |p| {
        ipv4(p, 47, &[0x10, 0, 0x22, 0xeb, 0, 0, 0, 1, 0x20, 42, 0, 1, 0, 0, 0, 7, 0, 0, 0, 0], &p.data)
    }),
    ("ERSPAN III with a platform's header", |p| {
        let header = [0x10, 0, 0x22, 0xeb, 0, 0, 0, 1, 0x20, 42, 0, 1, 0, 0, 0, 7, 0, 0, 0, 1, 0x14];
        ipv4(p, 47, &[&header[..], &[0; 7]].concat(), &p.data)
    }),
    ("IP in IPv4", |p| ipv4(p, if is_v6(p) { 41 } else { 4 }, &[], ip_of(p))),
    ("IP in IPv6", |p| ipv6(p, if is_v6(p) { 41 } else { 4 }, &[], ip_of(p))),
    ("MPLS in IP", |p| ipv4(p, 137, &[0, 1, 0x01, 64], ip_of(p))),
    ("MPLS", |p| frame([0x88, 0x47], &[0, 1, 0x00, 64, 0, 2, 0x01, 64], ip_of(p))),
    ("MPLS behind a tag", |p| frame([0x81, 0], &[0, 9, 0x88, 0x47, 0, 1, 0x01, 64], ip_of(p))),
    ("MPLS of PPPoE", |p| {
        let len = (p.original_len - 14 + 4 + 2) as u16;
        frame(
            [0x88, 0x64],
            &[&[0x11, 0, 0, 1][..], &len.to_be_bytes(), &[2, 0x81, 0, 1, 0x01, 64]].concat(),
            ip_of(p),
        )
    }),
    ("a pseudowire with its control word", |p| pseudowire(p, &[0; 4])),
    ("a pseudowire without one", |p| pseudowire(p, &[])),
];

/// Wireshark tells a frame from a control word by the first bytes of the address: a vendor's.
const ADDRESSES: [u8; 12] = [0, 0x1b, 0x21, 0, 0, 8, 0, 0x1b, 0x21, 0, 0, 9];

/// The packet within a tunnel. A packet that would not fit, a super-segment, stays as it is.
pub(crate) fn wrapped(packet: &Packet, which: usize) -> Packet {
    if packet.original_len > 65_000 {
        return packet.clone();
    }
    let data = TUNNELS[which % TUNNELS.len()].1(packet);
    let original_len = packet.original_len + data.len() as u32 - packet.data.len() as u32;
    Packet { data, original_len, ..packet.clone() }
}

fn is_v6(packet: &Packet) -> bool {
    type_of(packet) == [0x86, 0xdd]
}

fn type_of(packet: &Packet) -> [u8; 2] {
    [packet.data[12], packet.data[13]]
}

/// From the network header on; for a frame in a tunnel, that is the outer one.
fn ip_of(packet: &Packet) -> &[u8] {
    &packet.data[14..]
}

fn pseudowire(packet: &Packet, control: &[u8]) -> Vec<u8> {
    frame([0x88, 0x47], &[&[0, 1, 0x01, 64], control, &ADDRESSES].concat(), &packet.data[12..])
}

fn gtp(packet: &Packet, flags: u8, optional: &[u8]) -> Vec<u8> {
    let len = (packet.original_len - 14) as usize + optional.len();
    [&[flags, 0xff], &(len as u16).to_be_bytes()[..], &[0, 0, 0, 42], optional].concat()
}

fn udp(packet: &Packet, port: u16, header: &[u8], inner: &[u8]) -> Vec<u8> {
    ipv4(packet, 17, &[&udp_header(packet, port, header, inner), header].concat(), inner)
}

fn udp6(packet: &Packet, port: u16, header: &[u8], inner: &[u8]) -> Vec<u8> {
    ipv6(packet, 17, &[&udp_header(packet, port, header, inner), header].concat(), inner)
}

/// Without a checksum, as allowed for tunnels (RFC 6935).
fn udp_header(packet: &Packet, port: u16, header: &[u8], inner: &[u8]) -> Vec<u8> {
    let len = (8 + header.len()) as u16 + sent(packet, inner);
    [49_321_u16.to_be_bytes(), port.to_be_bytes(), len.to_be_bytes(), [0; 2]].concat()
}

/// Bytes of `inner` on the wire.
fn sent(packet: &Packet, inner: &[u8]) -> u16 {
    (packet.original_len as usize - (packet.data.len() - inner.len())) as u16
}

fn ipv4(packet: &Packet, protocol: u8, header: &[u8], inner: &[u8]) -> Vec<u8> {
    let [a, b] = ((20 + header.len()) as u16 + sent(packet, inner)).to_be_bytes();
    let ip = [0x45, 0, a, b, 0, 7, 0x40, 0, 64, protocol, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2];
    frame([8, 0], &[&ip, header].concat(), inner)
}

fn ipv6(packet: &Packet, protocol: u8, header: &[u8], inner: &[u8]) -> Vec<u8> {
    let [a, b] = (header.len() as u16 + sent(packet, inner)).to_be_bytes();
    let mut ip = [0; 40];
    ip[..8].copy_from_slice(&[0x60, 0, 0, 0, a, b, protocol, 64]);
    (ip[8], ip[23], ip[24], ip[39]) = (0xfd, 1, 0xfd, 2);
    frame([0x86, 0xdd], &[&ip, header].concat(), inner)
}

fn frame(ethertype: [u8; 2], header: &[u8], inner: &[u8]) -> Vec<u8> {
    [&ADDRESSES, &ethertype[..], header, inner].concat()
}
