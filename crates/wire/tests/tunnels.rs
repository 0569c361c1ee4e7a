//! Which tunnels are not decapsulated, and how is that reported? The others are compared with
//! tshark in crates/tcpwhy/tests/tshark.rs.

use tcpwhy_wire::capture::{LinkType, RawPacket};
use tcpwhy_wire::{Endpoint, Instant, Segment, Skip, TcpOptions, decode};

/// TCP from 10.0.0.1:40000 to 10.0.0.2:80, 40 bytes.
const INNER: [u8; 40] = [
    0x45, 0, 0, 40, 0x12, 0x34, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, // IPv4
    0x9c, 0x40, 0, 80, 0, 0, 0, 1, 0, 0, 0, 2, 0x50, 0x10, 1, 0, 0, 0, 0, 0, // TCP
];
const ETHERNET: [u8; 14] = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];

/// An IPv4 packet without options.
fn ipv4(protocol: u8, fragment: [u8; 2], payload: &[u8]) -> Vec<u8> {
    let [a, b] = (20 + payload.len() as u16).to_be_bytes();
    let [f, g] = fragment;
    let header = [0x45, 0, a, b, 0, 7, f, g, 64, protocol, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2];
    [&header, payload].concat()
}

fn udp(port: u16, payload: &[&[u8]]) -> Vec<u8> {
    let payload = payload.concat();
    let len = 8 + payload.len() as u16;
    [&[0xc0, 1], &port.to_be_bytes()[..], &len.to_be_bytes(), &[0, 0], &payload].concat()
}

fn segment(data: &[u8]) -> Result<Segment, Skip> {
    let (at, original_len) = (Instant::from_nanos(5), data.len() as u32);
    decode(&RawPacket { number: 3, at, link: LinkType::RAW, data, original_len, interface: 0, dropped: 0 })
}

#[test]
fn what_is_no_tunnel_of_tcp_is_named() {
    let plain = |protocol, payload: &[u8]| ipv4(protocol, [0x40, 0], payload);
    let vxlan = [8, 0, 0, 0, 0, 0, 1, 0];
    let cases: &[(&str, Vec<u8>, Skip)] = &[
        ("DNS", plain(17, &udp(53, &[&INNER])), Skip::NotTcp),
        ("a VXLAN port without its flag", plain(17, &udp(4789, &[&[0; 8], &ETHERNET, &INNER])), Skip::NotTcp),
        ("ARP in VXLAN", plain(17, &udp(4789, &[&vxlan, &[0xff; 12], &[8, 6], &[0; 28]])), Skip::NotIp),
        ("GTP-U's echo", plain(17, &udp(2152, &[&[0x32, 1, 0, 4, 0, 0, 0, 0, 0, 1, 0, 0]])), Skip::NotTcp),
        (
            "an extension without a length",
            plain(17, &udp(2152, &[&[0x34, 0xff, 0, 8, 0, 0, 0, 1, 0, 0, 0, 0x85, 0, 0, 0, 0]])),
            Skip::NotTcp,
        ),
        (
            "extensions without end",
            plain(
                17,
                &udp(2152, &[&[0x34, 0xff, 0, 8, 0, 0, 0, 1, 0, 0, 0, 0x85], &[1, 0, 0, 0x85].repeat(20)]),
            ),
            Skip::TooManyHeaders,
        ),
        (
            "PPTP's LCP",
            plain(47, &[0x30, 0x81, 0x88, 0x0b, 0, 4, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0xff, 3, 0xc0, 0x21]),
            Skip::NotIp,
        ),
        ("L2TP's control", plain(17, &udp(1701, &[&[0xc8, 2, 0, 12, 0, 1, 0, 0, 0, 0, 0, 0]])), Skip::NotTcp),
        ("L2TPv3", plain(17, &udp(1701, &[&[0, 3, 0, 0, 0, 0, 0, 1], &INNER])), Skip::NotTcp),
        ("GRE's keep-alive", plain(47, &[0, 0, 0, 0]), Skip::NotIp),
        ("UDP in IP in IP", plain(4, &plain(17, &udp(53, &[&INNER]))), Skip::NotTcp),
        ("IPv6 announced, IPv4 there", plain(41, &INNER), Skip::BadIpHeader),
        ("labels without end", plain(137, &[0, 1, 0, 64].repeat(40)), Skip::TooManyHeaders),
        ("a bad header inside", plain(4, &[0x44; 40]), Skip::BadIpHeader),
        ("a fragment inside", plain(4, &ipv4(6, [0x20, 0], &INNER[20..])), Skip::Fragment),
        (
            "the first fragment of a tunnel's packet",
            ipv4(17, [0x20, 0], &udp(4789, &[&vxlan, &ETHERNET, &INNER])),
            Skip::Fragment,
        ),
        ("a later fragment of UDP", ipv4(17, [0, 9], &udp(4789, &[&vxlan])), Skip::NotTcp),
        ("a fragment of GRE", ipv4(47, [0x20, 0], &[0, 0, 8, 0, 0x45]), Skip::Fragment),
    ];
    for (name, packet, skip) in cases {
        assert_eq!(segment(packet), Err(*skip), "{name}");
    }
}

#[test]
fn depth_is_bounded() {
    let nested = |times| (0..times).fold(INNER.to_vec(), |inner, _| ipv4(4, [0x40, 0], &inner));
    for times in 0..=8 {
        let read = segment(&nested(times)).map(|segment| (segment.src, segment.payload_len, segment.ip_id));
        assert_eq!(read, Ok((Endpoint::v4([10, 0, 0, 1], 40_000), 0, Some(0x1234))), "{times}");
    }
    assert_eq!(segment(&nested(9)), Err(Skip::TooManyHeaders));
    assert_eq!(segment(&nested(1_000)), Err(Skip::TooManyHeaders));
    // Frames in frames, each after a label.
    let frames = [&[0, 1, 1, 64][..], &[2; 12], &[0x88, 0x47]].concat().repeat(2_000);
    assert_eq!(segment(&ipv4(137, [0x40, 0], &frames)), Err(Skip::TooManyHeaders));
}

/// Wherever it is cut, and whatever a byte is, there is a result; a cut packet is reported as such,
/// or only its options are affected.
#[test]
fn damaged_tunnels_are_read_or_named() {
    let vxlan = udp(4789, &[&[8, 0, 0, 0, 0, 0, 1, 0], &ETHERNET, &INNER]);
    let erspan = [
        &[0x10, 0, 0x22, 0xeb, 0, 0, 0, 1, 0x20, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1][..],
        &[0; 8],
        &ETHERNET,
        &INNER,
    ];
    let gtp = udp(2152, &[&[0x34, 0xff, 0, 48, 0, 0, 0, 1, 0, 0, 0, 0x85, 1, 0, 9, 0], &INNER]);
    let mpls = [&[0, 1, 0, 64, 0, 1, 1, 64, 0, 0, 0, 0][..], &ETHERNET, &INNER].concat();
    // A length, tunnel and session identifiers, two sequence numbers, two bytes of padding, address
    // and control, IPv4.
    let l2tp = [0x4a, 2, 0, 62, 0, 1, 0, 2, 0, 3, 0, 4, 0, 2, 9, 9, 0xff, 3, 0, 0x21];
    let l2tp = udp(1701, &[&l2tp, &INNER]);
    // Payload length, call identifier, sequence number, acknowledgement number; address and control
    // left out.
    let pptp = [0x30, 0x81, 0x88, 0x0b, 0, 41, 0, 1, 0, 0, 0, 1, 0, 0, 0, 7, 0x21];
    let pptp = [&pptp[..], &INNER].concat();
    let kinds = [(17, vxlan), (47, erspan.concat()), (17, gtp), (137, mpls), (17, l2tp), (47, pptp)];
    for packet in kinds.map(|(protocol, payload)| ipv4(protocol, [0x40, 0], &payload)) {
        let whole = segment(&packet);
        assert_eq!(whole.map(|segment| segment.dst), Ok(Endpoint::v4([10, 0, 0, 2], 80)));
        for cut in 0..packet.len() {
            let read = segment(&packet[..cut]);
            let is_the_same = read.map(|read| Segment { options: TcpOptions::default(), ..read }) == whole;
            assert!(is_the_same || read == Err(Skip::TruncatedHeader), "cut at {cut}: {read:?}");
        }
        for (at, byte) in (0..packet.len()).flat_map(|at| (0..=255).map(move |byte| (at, byte))) {
            let mut packet = packet.clone();
            packet[at] = byte;
            let _ = segment(&packet);
        }
    }
}
