//! Does the decoder read damaged packets like etherparse? Good packets with some bytes changed and
//! the end cut off.

use etherparse::{
    LaxSlicedPacket, NetSlice, PacketBuilder, SlicedPacket, TcpOptionElement, TcpSlice, TransportSlice,
};
use proptest::prelude::*;
use tcpwhy_wire::capture::{LinkType, RawPacket};
use tcpwhy_wire::{Endpoint, Flags, Instant, SackBlock, Segment, Seq, Skip, TcpOptions, Timestamps, decode};

/// Good packets over Ethernet: either IP, tags, options, extension headers.
fn good(which: usize) -> Vec<u8> {
    let link = PacketBuilder::ethernet2([2; 6], [4; 6]);
    let vlan = |id| etherparse::VlanId::try_new(id).expect("12 bits");
    let step = match which % 4 {
        0 => link.ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64),
        1 => link.ipv6([0x20; 16], [0x30; 16], 64),
        2 => link.single_vlan(vlan(1)).ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64),
        _ => link.double_vlan(vlan(1), vlan(2)).ipv6([0x20; 16], [0x30; 16], 64),
    };
    let tcp = step.tcp(40_000, 80, 0xffff_fff0, 500);
    let tcp = match which / 4 % 3 {
        0 => tcp.ack(7).psh(),
        1 => tcp
            .syn()
            .options(&[
                TcpOptionElement::MaximumSegmentSize(1_460),
                TcpOptionElement::SelectiveAcknowledgementPermitted,
                TcpOptionElement::Timestamp(1, 2),
                TcpOptionElement::Noop,
                TcpOptionElement::WindowScale(7),
            ])
            .expect("40 bytes at most"),
        _ => tcp
            .ack(9)
            .options(&[
                TcpOptionElement::Noop,
                TcpOptionElement::Noop,
                TcpOptionElement::SelectiveAcknowledgement((5, 6), [Some((8, 9)), Some((10, 12)), None]),
            ])
            .expect("40 bytes at most"),
    };
    let mut packet = Vec::new();
    tcp.write(&mut packet, &[0x55; 30]).expect("to memory");
    if which % 4 == 1 && which >= 12 {
        // Destination options before TCP: two headers of eight bytes.
        let next = std::mem::replace(&mut packet[20], 60);
        packet.splice(54..54, [60, 0, 1, 4, 0, 0, 0, 0, next, 0, 1, 4, 0, 0, 0, 0]);
        packet[19] += 16;
    }
    packet
}

fn ours(packet: &[u8]) -> Result<Segment, Skip> {
    let len = packet.len() as u32;
    let at = Instant::from_nanos(5);
    decode(&RawPacket {
        number: 1,
        at,
        link: LinkType::ETHERNET,
        data: packet,
        original_len: len,
        interface: 0,
        dropped: 0,
    })
}

/// etherparse's reading of the TCP header, and whether its options are well-formed.
fn theirs(tcp: &TcpSlice<'_>, src: Endpoint, dst: Endpoint, ip_id: Option<u16>, ttl: u8) -> (Segment, bool) {
    let flags = [
        (tcp.fin(), Flags::FIN),
        (tcp.syn(), Flags::SYN),
        (tcp.rst(), Flags::RST),
        (tcp.psh(), Flags::PSH),
        (tcp.ack(), Flags::ACK),
        (tcp.urg(), 0x20),
        (tcp.ece(), 0x40),
        (tcp.cwr(), 0x80),
    ];
    let flags = flags.into_iter().filter(|(set, _)| *set).fold(0, |sum, (_, bit)| sum | bit);
    let mut options = TcpOptions::default();
    let mut good = true;
    for option in tcp.options_iterator() {
        match option {
            Ok(TcpOptionElement::MaximumSegmentSize(mss)) if tcp.syn() => options.mss = Some(mss),
            Ok(TcpOptionElement::WindowScale(shift)) if tcp.syn() => {
                options.window_scale = Some(shift.min(14));
            }
            Ok(TcpOptionElement::SelectiveAcknowledgementPermitted) if tcp.syn() => {
                options.sack_permitted = true;
            }
            Ok(TcpOptionElement::Timestamp(val, ecr)) => options.timestamps = Some(Timestamps { val, ecr }),
            Ok(TcpOptionElement::SelectiveAcknowledgement(first, more)) => {
                for (start, end) in std::iter::once(first).chain(more.into_iter().flatten()) {
                    options.push_sack(SackBlock { start: Seq(start), end: Seq(end) });
                }
            }
            Ok(_) => {}
            Err(_) => good = false,
        }
    }
    if !tcp.syn() {
        let stamps = if options.timestamps.is_some() { 12 } else { 0 };
        options.beside_stamps = (tcp.data_offset() * 4 - 20).saturating_sub(stamps);
    }
    let segment = Segment {
        packet: 1,
        at: Instant::from_nanos(5),
        src: Endpoint { port: tcp.source_port(), ..src },
        dst: Endpoint { port: tcp.destination_port(), ..dst },
        seq: Seq(tcp.sequence_number()),
        ack: Seq(tcp.acknowledgment_number()),
        window: tcp.window_size(),
        flags: Flags(flags),
        payload_len: tcp.payload().len() as u32,
        options,
        ip_id,
        ttl,
        damaged: false,
    };
    (segment, good)
}

/// Packets that only one of the two reads: etherparse reads MACsec and IPv4's authentication
/// header, this decoder odd tags and PPPoE.
fn is_read_by_one(packet: &[u8]) -> bool {
    let ethertypes = [12, 16, 20].map(|at| packet.get(at..at + 2).unwrap_or_default());
    let odd: [&[u8]; 4] = [&[0x88, 0xe5], &[0x92, 0x00], &[0x88, 0x64], &[0x91, 0x00]];
    let authentication = [23, 27, 31].iter().any(|at| packet.get(*at) == Some(&51));
    ethertypes.iter().any(|ethertype| odd.contains(ethertype)) || authentication
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]
    #[test]
    fn reads_damaged_packets_as_etherparse_does(
        which in 0..24_usize,
        changes in prop::collection::vec((12..90_usize, any::<u8>()), 0..4),
        cut in prop_oneof![3 => Just(usize::MAX), 1 => 14..140_usize],
    ) {
        let mut packet = good(which);
        for (at, byte) in changes {
            if let Some(place) = packet.get_mut(at) {
                *place = byte;
            }
        }
        packet.truncate(cut);
        if is_read_by_one(&packet) {
            return Ok(());
        }
        let ours = ours(&packet);
        match SlicedPacket::from_ethernet(&packet) {
            Ok(SlicedPacket { net: Some(net), transport: Some(TransportSlice::Tcp(tcp)), .. }) => {
                let (theirs, good_options) = match net {
                    NetSlice::Ipv4(ip) => {
                        let header = ip.header();
                        let (src, dst) = (Endpoint::v4(header.source(), 0), Endpoint::v4(header.destination(), 0));
                        theirs(&tcp, src, dst, Some(header.identification()), header.ttl())
                    }
                    NetSlice::Ipv6(ip) => {
                        let header = ip.header();
                        let (src, dst) = (Endpoint::v6(header.source(), 0), Endpoint::v6(header.destination(), 0));
                        theirs(&tcp, src, dst, None, header.hop_limit())
                    }
                    NetSlice::Arp(_) => panic!("TCP in ARP"),
                };
                let mut ours = ours.expect("etherparse reads it");
                if !good_options {
                    ours.options = theirs.options;
                }
                prop_assert_eq!(ours, theirs);
            }
            // Whole packets without TCP. Extension headers in any order are read here, but not by
            // etherparse.
            Ok(sliced) => {
                let v6 = matches!(sliced.net, Some(NetSlice::Ipv6(_)));
                prop_assert!(ours.is_err() || v6, "{:?}, but {:?}", ours, sliced);
            }
            // Truncated or contradictory ones: those that this decoder still reads, etherparse
            // reads in its lax mode.
            Err(_) => if let Ok(ours) = ours {
                let lax = LaxSlicedPacket::from_ethernet(&packet).expect("it has a link layer");
                if let Some(TransportSlice::Tcp(tcp)) = lax.transport {
                    prop_assert_eq!(ours.src.port, tcp.source_port());
                    prop_assert_eq!(ours.seq, Seq(tcp.sequence_number()));
                    prop_assert_eq!(ours.window, tcp.window_size());
                }
            },
        }
    }
}
