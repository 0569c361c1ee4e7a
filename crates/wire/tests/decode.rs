//! Link, IP and TCP headers: annotated bytes, every encapsulation, and etherparse as a second opinion.

use etherparse::{NetSlice, PacketBuilder, SlicedPacket, TcpOptionElement, TransportSlice};
use proptest::prelude::*;
use tcpwhy_wire::capture::{LinkType, RawPacket};
use tcpwhy_wire::{Endpoint, Flags, Instant, SackBlock, Segment, Seq, Skip, TcpOptions, Timestamps, decode};

/// A SYN from 10.0.0.1:40000 to 10.0.0.2:80 as Linux sends it.
#[rustfmt::skip]
const SYN: &[u8] = &[
    0x45, 0, 0, 60,         // IPv4, header 20 bytes, total length 60
    0x12, 0x34, 0x40, 0,    // identification, do not fragment
    64, 6, 0, 0,            // time to live, TCP, checksum
    10, 0, 0, 1,
    10, 0, 0, 2,
    0x9c, 0x40, 0, 80,      // ports
    0xff, 0xff, 0xff, 0xfe, // sequence number
    0, 0, 0, 0,
    0xa0, 0x02, 0xfa, 0xf0, // header 40 bytes, SYN, window 64240
    0, 0, 0, 0,
    2, 4, 0x05, 0xb4,       // MSS 1460
    4, 2,                   // SACK permitted
    8, 10, 0, 0, 0, 7, 0, 0, 0, 0, // time stamps
    1,                      // padding
    3, 3, 7,                // window scale
];

fn syn() -> Segment {
    let mut options = TcpOptions::default();
    options.mss = Some(1460);
    options.window_scale = Some(7);
    options.sack_permitted = true;
    options.timestamps = Some(Timestamps { val: 7, ecr: 0 });
    Segment {
        packet: 3,
        at: Instant::from_nanos(5),
        src: Endpoint::v4([10, 0, 0, 1], 40_000),
        dst: Endpoint::v4([10, 0, 0, 2], 80),
        seq: Seq(0xffff_fffe),
        ack: Seq(0),
        window: 64_240,
        flags: Flags(Flags::SYN),
        payload_len: 0,
        options,
        ip_id: Some(0x1234),
        ttl: 64,
        damaged: false,
    }
}

fn segment_of(link: LinkType, data: &[u8], original_len: u32) -> Result<Segment, Skip> {
    let at = Instant::from_nanos(5);
    decode(&RawPacket { number: 3, at, link, data, original_len, interface: 0, dropped: 0 })
}

fn segment(link: LinkType, data: &[u8]) -> Result<Segment, Skip> {
    segment_of(link, data, data.len() as u32)
}

/// SYN with some bytes replaced.
fn changed(changes: &[(usize, &[u8])]) -> Vec<u8> {
    let mut bytes = SYN.to_vec();
    for (at, with) in changes {
        bytes[*at..at + with.len()].copy_from_slice(with);
    }
    bytes
}

/// An IPv6 packet: next header, and what follows the fixed header.
fn v6(next: u8, rest: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x60, 0, 0, 0];
    bytes.extend((rest.len() as u16).to_be_bytes());
    bytes.extend([next, 61]);
    bytes.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    bytes.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
    bytes.extend(rest);
    bytes
}

const TCP: &[u8] = SYN.split_at(20).1;

#[test]
fn reads_a_syn_byte_by_byte() {
    assert_eq!(segment(LinkType::RAW, SYN), Ok(syn()));
}

#[test]
fn reads_an_ipv6_segment() {
    let expected = Segment {
        src: "[2001:db8::1]:40000".parse().map(endpoint).expect("an address"),
        dst: "[2001:db8::2]:80".parse().map(endpoint).expect("an address"),
        ip_id: None,
        ttl: 61,
        damaged: false,
        ..syn()
    };
    assert_eq!(segment(LinkType::RAW, &v6(6, TCP)), Ok(expected));
}

fn endpoint(addr: std::net::SocketAddrV6) -> Endpoint {
    Endpoint::v6(addr.ip().octets(), addr.port())
}

#[test]
fn every_link_type_leads_to_the_same_segment() {
    let ethernet: &[u8] = &[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    // Packet type "sent by us", ARPHRD_LOOPBACK, address length 6, address.
    let sll: &[u8] = &[0, 4, 3, 4, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0];
    let headers: &[(LinkType, &[&[u8]])] = &[
        (LinkType::ETHERNET, &[ethernet, &[8, 0]]),
        (LinkType::ETHERNET, &[ethernet, &[0x81, 0, 0, 42, 8, 0]]),
        (LinkType::ETHERNET, &[ethernet, &[0x88, 0xa8, 0, 7, 0x81, 0, 0, 42, 8, 0]]),
        (LinkType::ETHERNET, &[ethernet, &[0x88, 0x64, 0x11, 0, 0, 1, 0, 62, 0, 0x21]]),
        (LinkType::LINUX_SLL, &[sll, &[8, 0]]),
        (LinkType::LINUX_SLL, &[sll, &[0x81, 0, 0, 42, 8, 0]]),
        (LinkType::LINUX_SLL2, &[&[8, 0, 0, 0, 0, 0, 0, 1, 3, 4, 4, 6, 0, 0, 0, 0, 0, 0, 0, 0]]),
        (LinkType::NULL, &[&[2, 0, 0, 0]]),
        (LinkType::NULL, &[&[0, 0, 0, 2]]),
        (LinkType::LOOP, &[&[0, 0, 0, 2]]),
        (LinkType::PPP, &[&[0xff, 3, 0, 0x21]]),
        (LinkType::PPP, &[&[0, 0x21]]),
        (LinkType::PPP_HDLC, &[&[0xff, 3, 0x21]]),
        (LinkType::PPP_WITH_DIR, &[&[1, 0xff, 3, 0, 0x21]]),
        (LinkType::PPP_WITH_DIR, &[&[0, 0, 0x21]]),
        // A group; a prefix of three bytes, padded; the packet: on hosts of either byte order.
        (LinkType::NFLOG, &[&[2, 0, 0, 5], &[7, 0, 10, 0, b'i', b'n', 0, 0], &[64, 0, 9, 0]]),
        (LinkType::NFLOG, &[&[2, 0, 0, 5], &[0, 7, 0, 10, b'i', b'n', 0, 0], &[0, 64, 0, 9]]),
        (LinkType::PKTAP, &[&[16, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, b'e', b'n', b'0', 0], ethernet, &[8, 0]]),
        (LinkType::RAW, &[]),
        (LinkType::RAW_BSD, &[]),
        (LinkType::RAW_OPENBSD, &[]),
        (LinkType::IPV4, &[]),
    ];
    for (link, header) in headers {
        let packet = [&header.concat(), SYN].concat();
        assert_eq!(segment(*link, &packet), Ok(syn()), "{link:?} {header:x?}");
        // Cut in the link header, and in the headers after it.
        for cut in 0..packet.len() - 24 {
            assert_eq!(
                segment_of(*link, &packet[..cut], packet.len() as u32),
                Err(Skip::TruncatedHeader),
                "{link:?} {header:x?} cut at {cut}"
            );
        }
    }
    for family in [10, 24, 28, 30] {
        let packet = [&[family, 0, 0, 0], &v6(6, TCP)[..]].concat();
        assert_eq!(segment(LinkType::NULL, &packet).map(|s| s.ttl), Ok(61));
    }
    let packet = [ethernet, &[0x86, 0xdd], &v6(6, TCP)].concat();
    assert_eq!(segment(LinkType::ETHERNET, &packet).map(|s| s.ttl), Ok(61));
    assert_eq!(segment(LinkType::IPV6, &v6(6, TCP)).map(|s| s.ttl), Ok(61));
    let packet = [&[10, 0, 0, 5, 64, 0, 9, 0], &v6(6, TCP)[..]].concat();
    assert_eq!(segment(LinkType::NFLOG, &packet).map(|s| s.ttl), Ok(61));
}

/// A frame's header with two bytes of frame control, and these bytes after its three addresses and number.
fn frame([kind, flags]: [u8; 2], rest: &[u8]) -> Vec<u8> {
    [&[kind, flags, 0x2c, 0][..], &[2; 18], &[0x10, 0], rest].concat()
}

const SNAP: [u8; 8] = [0xaa, 0xaa, 3, 0, 0, 0, 8, 0];

#[test]
fn frames_of_wi_fi_lead_to_the_same_segment() {
    let (qos, aggregate): (&[u8], &[u8]) = (&[0, 0], &[&[0x80, 0][..], &[2; 12], &[0, 68]].concat());
    let frames = [
        (frame([0x08, 1], &SNAP), false),
        (frame([0x08, 0x0a], &SNAP), false), // from an access point, retransmitted
        (frame([0x88, 1], &[qos, &SNAP].concat()), false),
        (frame([0x88, 0x81], &[qos, &[0; 4], &SNAP].concat()), false), // HT control
        (frame([0x88, 3], &[&[2; 6], qos, &SNAP].concat()), false),    // from one access point to another
        (frame([0x88, 1], &[aggregate, &SNAP].concat()), false),
        (frame([0x88, 0x41], &[qos, &SNAP].concat()), false), // decrypted
        (frame([0x88, 1], &[qos, &[0; 2], &SNAP].concat()), true),
    ];
    for (header, padded) in frames {
        let flags = if padded { 0x20 } else { 0 };
        let clock = [7; 8];
        let radio = [
            [&[0, 0, 17, 0, 3, 0, 0, 0][..], &clock, &[flags]].concat(),
            [&[0, 0, 9, 0, 2, 0, 0, 0][..], &[flags]].concat(),
            // Three words of fields present; the clock begins at a multiple of 8.
            [&[0, 0, 25, 0, 3, 0, 0, 0x80, 0, 0, 0, 0x80, 0, 0, 0, 0][..], &clock, &[flags]].concat(),
        ];
        let mut packets: Vec<_> = radio
            .iter()
            .map(|radio| (LinkType::IEEE802_11_RADIOTAP, [radio, &header[..]].concat()))
            .collect();
        if !padded {
            packets.push((LinkType::PPI, [&[0, 0, 12, 0, 105, 0, 0, 0, 9, 9, 9, 9], &header[..]].concat()));
            packets.push((LinkType::IEEE802_11, header));
        }
        for (link, header) in packets {
            let packet = [&header[..], SYN].concat();
            assert_eq!(segment(link, &packet), Ok(syn()), "{link:?} {header:x?}");
            for cut in 0..packet.len() - 24 {
                let cut_short = segment_of(link, &packet[..cut], packet.len() as u32);
                assert_eq!(cut_short, Err(Skip::TruncatedHeader), "{link:?} {header:x?} cut at {cut}");
            }
        }
    }
}

#[test]
fn frames_of_wi_fi_without_a_segment_say_why() {
    let cases = [
        (frame([0x80, 0], &SNAP), Skip::NotIp),               // a beacon
        (vec![0xd4, 0, 0, 0, 2, 2, 2, 2, 2, 2], Skip::NotIp), // an ACK frame
        (frame([0x48, 1], &SNAP), Skip::NotIp),               // no data
        (frame([0x08, 1], &[0x42, 0x42, 3, 0, 0, 0, 0, 0]), Skip::NotIp), // a bridge's
        (frame([0x08, 5], &SNAP), Skip::Fragment),
    ];
    for (frame, why) in cases {
        let packet = [&frame[..], SYN].concat();
        assert_eq!(segment(LinkType::IEEE802_11, &packet), Err(why), "{frame:x?}");
    }
    assert_eq!(segment(LinkType::PPI, &[0, 0, 8, 0, 1, 0, 0, 0, 0]), Err(Skip::UnsupportedLink));
    assert_eq!(segment(LinkType::IEEE802_11_RADIOTAP, &[0, 0, 4, 0, 8, 1]), Err(Skip::NotIp));
}

#[test]
fn what_is_no_tcp_segment_says_why() {
    let arp = [&[0xff; 12][..], &[8, 6], &[0; 28]].concat();
    let udp = changed(&[(9, &[17])]);
    let encrypted = frame([0x08, 0x41], &[9; 60]);
    let endless_tags = [&[0; 12][..], &[0x81, 0, 0, 1].repeat(40)].concat();
    let endless_fields = [&[2, 0, 0, 5][..], &[4, 0, 1, 0].repeat(100)].concat();
    let cases: &[(LinkType, &[u8], Skip)] = &[
        (LinkType(119), SYN, Skip::UnsupportedLink), // Prism
        (LinkType::IEEE802_11, &encrypted, Skip::Encrypted),
        (LinkType::ETHERNET, &arp, Skip::NotIp),
        (LinkType::NULL, &[7, 0, 0, 0, 0x45], Skip::NotIp),
        (LinkType::PPP, &[0xff, 3, 0xc0, 0x21, 1], Skip::NotIp), // LCP
        (LinkType::NFLOG, &[2, 0, 0, 5, 3, 0, 1, 0, 0x45], Skip::NotIp), // a field shorter than its head
        (LinkType::NFLOG, &[7, 0, 0, 5, 5, 0, 9, 0, 0x45], Skip::NotIp), // of a bridge
        (LinkType::NFLOG, &endless_fields, Skip::TooManyHeaders),
        (LinkType::PKTAP, &[12, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0x45], Skip::NotIp), // no packet
        (LinkType::PKTAP, &[12, 0, 0, 0, 1, 0, 0, 0, 2, 1, 0, 0, 0x45], Skip::UnsupportedLink), // within itself
        (LinkType::RAW, &udp, Skip::NotTcp),
        (LinkType::RAW, &v6(58, &[128, 0, 0, 0]), Skip::NotTcp), // ICMPv6
        (LinkType::RAW, &v6(59, &[]), Skip::NotTcp),             // no next header
        (LinkType::ETHERNET, &endless_tags, Skip::TooManyHeaders),
        (LinkType::RAW, &v6(0, &[0; 400]), Skip::TooManyHeaders),
        (LinkType::RAW, &changed(&[(6, &[0x20, 0])]), Skip::Fragment), // the first fragment
        (LinkType::RAW, &changed(&[(6, &[0, 185])]), Skip::Fragment),  // a later one
        (LinkType::RAW, &changed(&[(0, &[0x55])]), Skip::BadIpHeader), // IP version 5
        (LinkType::RAW, &changed(&[(0, &[0x44])]), Skip::BadIpHeader), // header of 16 bytes
        (LinkType::RAW, &changed(&[(2, &[0, 19])]), Skip::BadIpHeader), // shorter than its header
        (LinkType::IPV6, SYN, Skip::BadIpHeader),
        (LinkType::RAW, &changed(&[(32, &[0x40])]), Skip::BadTcpHeader), // header of 16 bytes
        (LinkType::RAW, &changed(&[(2, &[0, 59])]), Skip::BadTcpHeader), // header longer than the segment
    ];
    for (link, data, why) in cases {
        assert_eq!(segment(*link, data), Err(*why), "{data:x?}");
    }
    let named: Vec<_> = cases.iter().map(|(.., why)| why.name()).collect();
    for skip in Skip::ALL {
        assert!(skip == Skip::TruncatedHeader || named.contains(&skip.name()), "{skip} has no case here");
    }
}

#[test]
fn extension_headers_are_passed_over() {
    // Hop-by-hop, destination options (twice as long), routing, authentication (length in words of 4, less 2),
    // an atomic fragment (RFC 6946).
    let mut headers = Vec::new();
    headers.extend([60, 0, 1, 4, 0, 0, 0, 0]);
    headers.extend([43, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    headers.extend([51, 0, 0, 0, 0, 0, 0, 0]);
    headers.extend([44, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    headers.extend([6, 0, 0, 0, 0, 0, 0, 9]);
    let packet = v6(0, &[&headers, TCP, b"hello"].concat());
    assert_eq!(segment(LinkType::RAW, &packet).map(|s| (s.seq, s.payload_len)), Ok((Seq(0xffff_fffe), 5)));

    let first_fragment = v6(44, &[&[6, 0, 0, 1, 0, 0, 0, 9], TCP].concat());
    let later_fragment = v6(44, &[&[6, 0, 5, 0xa8, 0, 0, 0, 9], TCP].concat());
    assert_eq!(segment(LinkType::RAW, &first_fragment), Err(Skip::Fragment));
    assert_eq!(segment(LinkType::RAW, &later_fragment), Err(Skip::Fragment));
}

#[test]
fn ip_options_are_passed_over() {
    let mut packet = changed(&[(0, &[0x47]), (2, &[0, 68])]);
    packet.splice(20..20, [7, 7, 4, 0, 0, 0, 0, 0]); // record route
    assert_eq!(segment(LinkType::RAW, &packet), Ok(syn()));
}

#[test]
fn the_payload_is_as_long_as_the_ip_header_says() {
    let len = |data: &[u8], original_len: u32| {
        segment_of(LinkType::ETHERNET, &[&[0; 12][..], &[8, 0], data].concat(), original_len)
            .map(|s| s.payload_len)
    };
    // A bare ACK of 40 bytes is padded to Ethernet's minimum of 60.
    let ack = changed(&[(2, &[0, 40]), (32, &[0x50, 0x10])]);
    assert_eq!(len(&[&ack[..40], &[0; 6]].concat(), 60), Ok(0));
    // A snap length of 64 leaves 14 + 50 of 1514.
    let full = changed(&[(2, &[5, 220])]);
    assert_eq!(len(&full[..50], 1514), Ok(1440));
    // The largest super-segment.
    let large = changed(&[(2, &[255, 255])]);
    assert_eq!(len(&large, 65_549), Ok(65_475));
    // BIG TCP: no length in the header.
    let big = changed(&[(2, &[0, 0])]);
    assert_eq!(len(&big, 14 + 180_060), Ok(180_000));
    assert_eq!(len(&big, u32::MAX), Err(Skip::BadIpHeader));
}

#[test]
fn an_ipv6_jumbogram_takes_its_length_from_the_frame() {
    // Hop-by-hop with the jumbo payload option (RFC 2675), as Linux writes BIG TCP.
    let mut packet = v6(0, &[&[6, 0, 0xc2, 4, 0, 2, 0xbf, 0x68], TCP].concat());
    packet[4..6].copy_from_slice(&[0, 0]);
    let read = segment_of(LinkType::RAW, &packet, 40 + 8 + 40 + 180_000);
    assert_eq!(read.map(|s| s.payload_len), Ok(180_000));
}

#[test]
fn options_cut_by_the_snap_length_are_read_as_far_as_they_go() {
    let options = |cut: usize| segment_of(LinkType::RAW, &SYN[..cut], 60).map(|s| s.options);
    let mut expected = TcpOptions::default();
    for cut in 36..=60 {
        match cut {
            44 => expected.mss = Some(1460),
            46 => expected.sack_permitted = true,
            56 => expected.timestamps = Some(Timestamps { val: 7, ecr: 0 }),
            60 => expected.window_scale = Some(7),
            _ => {}
        }
        expected.cut = cut < SYN.len();
        assert_eq!(options(cut), Ok(expected), "cut at {cut}");
    }
}

#[test]
fn option_lengths_that_lie_end_the_list() {
    // MSS 1460, an option of the given length, then a window scale.
    let options = |kind: u8, len: u8| {
        let bytes = [2, 4, 5, 180, kind, len, 3, 3, 200, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1];
        let options = segment(LinkType::RAW, &changed(&[(40, &bytes)])).expect("a segment").options;
        (options.mss, options.window_scale)
    };
    for lie in [0, 1, 17, 255] {
        assert_eq!(options(254, lie), (Some(1460), None), "length {lie}");
    }
    // Unknown, and known with a wrong length: both are skipped. A shift beyond 14 is 14.
    assert_eq!(options(254, 2), (Some(1460), Some(14)));
    assert_eq!(options(8, 2), (Some(1460), Some(14)));
    assert_eq!(options(0, 2), (Some(1460), None), "the end of the list");
}

#[test]
fn sack_blocks_and_options_that_belong_on_syn() {
    // A segment with SACK and, wrongly, MSS and window scale.
    let blocks = [5, 18, 0, 0, 0, 1, 0, 0, 0, 2, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 3];
    let mut packet = changed(&[(32, &[0xb0, 0x10]), (2, &[0, 64]), (40, &[2, 4, 5, 180])]);
    packet.splice(44.., [&blocks[..], &[1, 1]].concat());
    let options = segment(LinkType::RAW, &packet).expect("a segment").options;
    let block = |start, end| SackBlock { start: Seq(start), end: Seq(end) };
    assert_eq!(options.sack(), [block(1, 2), block(u32::MAX, 3)]);
    assert_eq!((options.mss, options.window_scale), (None, None));
}

#[test]
fn no_flipped_bit_and_no_cut_panics() {
    let packet =
        [&[0; 12][..], &[0x81, 0, 0, 1, 0x86, 0xdd], &v6(60, &[&[6, 0, 1, 4, 0, 0, 0, 0], TCP].concat())];
    let mut packet = packet.concat();
    let links = [0, 1, 9, 12, 101, 108, 113, 228, 229, 276].map(LinkType);
    for bit in 0..packet.len() * 8 {
        packet[bit / 8] ^= 1 << (bit % 8);
        for cut in 0..=packet.len() {
            for link in links {
                let _segment_or_reason = segment_of(link, &packet[..cut], 2_000);
            }
        }
        packet[bit / 8] ^= 1 << (bit % 8);
    }
}

/// Options that etherparse builds.
fn any_options() -> impl Strategy<Value = Vec<TcpOptionElement>> {
    prop::sample::subsequence(
        vec![
            TcpOptionElement::MaximumSegmentSize(1_448),
            TcpOptionElement::Noop,
            TcpOptionElement::WindowScale(9),
            TcpOptionElement::SelectiveAcknowledgementPermitted,
            TcpOptionElement::Timestamp(0x0102_0304, 0xf1f2_f3f4),
            TcpOptionElement::SelectiveAcknowledgement((5, 6), [None, None, None]),
        ],
        0..6,
    )
    .prop_shuffle()
}

proptest! {
    /// etherparse builds the packet, etherparse's slices say what is in it, and this decoder must say the same.
    #[test]
    fn agrees_with_etherparse(
        v6 in any::<bool>(),
        vlans in 0..3,
        (src, dst, ttl) in any::<(u128, u128, u8)>(),
        (src_port, dst_port, seq, ack, window) in any::<(u16, u16, u32, u32, u16)>(),
        (syn, fin, rst, psh, has_ack) in any::<(bool, bool, bool, bool, bool)>(),
        options in any_options(),
        payload in prop::collection::vec(any::<u8>(), 0..100),
        padding in 0..20_usize,
    ) {
        let link = PacketBuilder::ethernet2([2; 6], [4; 6]);
        let vlan = |id| etherparse::VlanId::try_new(id).expect("12 bits");
        let ip = |link: etherparse::PacketBuilderStep<etherparse::Ethernet2Header>| {
            let (src4, dst4) = ((src as u32).to_be_bytes(), (dst as u32).to_be_bytes());
            let (src6, dst6) = (src.to_be_bytes(), dst.to_be_bytes());
            match (vlans, v6) {
                (0, false) => link.ipv4(src4, dst4, ttl),
                (0, true) => link.ipv6(src6, dst6, ttl),
                (1, false) => link.single_vlan(vlan(1)).ipv4(src4, dst4, ttl),
                (1, true) => link.single_vlan(vlan(1)).ipv6(src6, dst6, ttl),
                (_, false) => link.double_vlan(vlan(1), vlan(2)).ipv4(src4, dst4, ttl),
                (_, true) => link.double_vlan(vlan(1), vlan(2)).ipv6(src6, dst6, ttl),
            }
        };
        let mut tcp = ip(link).tcp(src_port, dst_port, seq, window);
        if syn { tcp = tcp.syn(); }
        if fin { tcp = tcp.fin(); }
        if rst { tcp = tcp.rst(); }
        if psh { tcp = tcp.psh(); }
        if has_ack { tcp = tcp.ack(ack); }
        let tcp = tcp.options(&options).expect("40 bytes at most");
        let mut packet = Vec::new();
        tcp.write(&mut packet, &payload).expect("to memory");
        packet.resize(packet.len() + padding, 0);

        let ours = segment(LinkType::ETHERNET, &packet).expect("a segment");
        let theirs = SlicedPacket::from_ethernet(&packet).expect("a packet");
        let Some(TransportSlice::Tcp(tcp)) = theirs.transport else { panic!("no TCP") };
        let flags = [
            (tcp.fin(), Flags::FIN), (tcp.syn(), Flags::SYN), (tcp.rst(), Flags::RST),
            (tcp.psh(), Flags::PSH), (tcp.ack(), Flags::ACK),
        ];
        let flags = flags.into_iter().filter(|(set, _)| *set).fold(0, |sum, (_, bit)| sum | bit);
        let (src, dst, id, ttl) = match theirs.net {
            Some(NetSlice::Ipv4(ip)) => {
                let header = ip.header();
                (
                    Endpoint::v4(header.source(), tcp.source_port()),
                    Endpoint::v4(header.destination(), tcp.destination_port()),
                    Some(header.identification()),
                    header.ttl(),
                )
            }
            Some(NetSlice::Ipv6(ip)) => {
                let header = ip.header();
                (
                    Endpoint::v6(header.source(), tcp.source_port()),
                    Endpoint::v6(header.destination(), tcp.destination_port()),
                    None,
                    header.hop_limit(),
                )
            }
            _ => panic!("no IP"),
        };
        let mut read = TcpOptions::default();
        for option in tcp.options_iterator() {
            match option.expect("a good option") {
                TcpOptionElement::MaximumSegmentSize(mss) if syn => read.mss = Some(mss),
                TcpOptionElement::WindowScale(shift) if syn => read.window_scale = Some(shift),
                TcpOptionElement::SelectiveAcknowledgementPermitted if syn => read.sack_permitted = true,
                TcpOptionElement::Timestamp(val, ecr) => read.timestamps = Some(Timestamps { val, ecr }),
                TcpOptionElement::SelectiveAcknowledgement((start, end), _) => {
                    read.push_sack(SackBlock { start: Seq(start), end: Seq(end) });
                }
                _ => {}
            }
        }
        if !syn {
            let stamps = if read.timestamps.is_some() { 12 } else { 0 };
            read.beside_stamps = (tcp.data_offset() * 4 - 20).saturating_sub(stamps);
        }
        prop_assert_eq!(ours, Segment {
            packet: 3,
            at: Instant::from_nanos(5),
            src,
            dst,
            seq: Seq(tcp.sequence_number()),
            ack: Seq(tcp.acknowledgment_number()),
            window: tcp.window_size(),
            flags: Flags(flags),
            payload_len: tcp.payload().len() as u32,
            options: read,
            ip_id: id,
            ttl,
            damaged: false,
        });
    }

    #[test]
    fn no_bytes_make_it_panic(link in 0..300_u16, data in prop::collection::vec(any::<u8>(), 0..200), len in any::<u32>()) {
        let _segment_or_reason = segment_of(LinkType(link), &data, len);
    }
}
