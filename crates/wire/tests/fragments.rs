//! Are packets reassembled from their fragments as their receiver does it (RFC 791, 3.2; RFC 8200,
//! 4.5), in bounded memory and time?

use proptest::prelude::*;
use tcpwhy_wire::capture::{LinkType, RawPacket};
use tcpwhy_wire::decode::{Fragments, Put};
use tcpwhy_wire::{Duration, Instant, Segment, Skip, decode};

/// 60 bytes after the IP header: TCP from port 40000 to 80, and 40 bytes of payload.
#[rustfmt::skip]
const TCP: [u8; 60] = [
    0x9c, 0x40, 0, 80, 0, 0, 0, 1, 0, 0, 0, 2, 0x50, 0x10, 1, 0, 0, 0, 0, 0, // TCP
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20,
    21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40,
];

/// An IPv4 fragment with these bytes, at this offset of the whole packet.
fn v4(protocol: u8, id: u8, at: usize, more: bool, bytes: &[u8]) -> Vec<u8> {
    let [a, b] = (20 + bytes.len() as u16).to_be_bytes();
    let [f, g] = ((at / 8) as u16 | u16::from(more) << 13).to_be_bytes();
    let header = [0x45, 0, a, b, 0x12, id, f, g, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    [&header[..], bytes].concat()
}

/// An IPv6 packet with these bytes after a fragment header, and hop-by-hop options before it.
fn v6(id: u8, at: usize, more: bool, bytes: &[u8]) -> Vec<u8> {
    let [a, b] = (16 + bytes.len() as u16).to_be_bytes();
    let [f, g] = (at as u16 | u16::from(more)).to_be_bytes();
    let hop_by_hop = [44, 0, 1, 4, 0, 0, 0, 0];
    [&[0x60, 0, 0, 0, a, b, 0, 9], &[0xfd; 32][..], &hop_by_hop, &[6, 0, f, g, 0, 0, 0, id], bytes].concat()
}

fn raw(number: u64, at_ms: i64, data: &[u8], original_len: usize) -> RawPacket<'_> {
    let at = Instant::from_nanos(0) + Duration::from_millis(at_ms);
    RawPacket {
        number,
        at,
        link: LinkType::RAW,
        data,
        original_len: original_len as u32,
        interface: 0,
        dropped: 0,
    }
}

/// The result of these packets: segments, and the number of fragments of each.
fn put_together(packets: &[Vec<u8>]) -> Vec<(Segment, u64)> {
    let (mut fragments, mut whole) = (Fragments::default(), Vec::new());
    for (packet, number) in packets.iter().zip(1..) {
        let raw = raw(number, number as i64, packet, packet.len());
        let Err(skip) = decode(&raw) else { panic!("a whole packet") };
        if let Put::Whole(packet, pieces) = fragments.put(&raw, skip) {
            whole.push((decode(&packet).expect("a segment"), pieces));
        }
    }
    whole
}

/// The segment as it would have come unfragmented, with the number and the time of this packet.
fn in_one(data: &[u8], number: u64) -> Segment {
    decode(&raw(number, number as i64, data, data.len())).expect("a segment")
}

#[test]
fn two_fragments_are_a_segment_that_passed_with_the_second() {
    let pieces = [v4(6, 7, 0, true, &TCP[..24]), v4(6, 7, 24, false, &TCP[24..])];
    assert_eq!(put_together(&pieces), [(in_one(&v4(6, 7, 0, false, &TCP), 2), 2)]);
    let pieces = [v6(7, 0, true, &TCP[..24]), v6(7, 24, false, &TCP[24..])];
    let mut whole = v6(7, 0, false, &TCP);
    whole[6] = 6;
    whole[5] = TCP.len() as u8;
    whole.drain(40..56);
    assert_eq!(put_together(&pieces), [(in_one(&whole, 2), 2)]);
}

/// Another packet's fragments, a duplicate, and one beyond the end or overlapping another one.
#[test]
fn pieces_that_do_not_go_together_make_nothing() {
    let (first, last) = (v4(6, 7, 0, true, &TCP[..24]), v4(6, 7, 24, false, &TCP[24..]));
    let whole = in_one(&v4(6, 7, 0, false, &TCP), 3);
    assert_eq!(put_together(&[first.clone(), first.clone(), last.clone()]), [(whole, 3)]);
    let others = [
        v4(6, 8, 24, false, &TCP[24..]),
        v4(6, 7, 16, false, &TCP[16..]),
        v4(6, 7, 24, true, &TCP[24..59]),
        v4(6, 7, 0, false, &TCP[..8]),
        v4(6, 7, 65_528, false, &[0; 8]),
        v6(7, 24, false, &TCP[24..]),
    ];
    for other in others {
        assert_eq!(put_together(&[first.clone(), other]), []);
    }
    // An overlapping fragment: the packet is dropped, and the later fragments are too few.
    let across = v4(6, 7, 8, true, &TCP[8..32]);
    assert_eq!(put_together(&[first, across, last]), []);
}

/// The fragments of a tunnel's packet are UDP, and only the first one shows that it is a tunnel.
#[test]
fn a_tunnel_s_packet_is_put_together() {
    let inner = v4(6, 1, 0, false, &TCP);
    let ethernet = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
    let [a, b] = (16 + 14 + inner.len() as u16).to_be_bytes();
    let vxlan = [&[0xc0, 1, 0x12, 0xb5, a, b, 0, 0, 8, 0, 0, 0, 0, 0, 1, 0], &ethernet[..], &inner].concat();
    let pieces = [v4(17, 7, 0, true, &vxlan[..64]), v4(17, 7, 64, false, &vxlan[64..])];
    assert_eq!(put_together(&pieces), [(in_one(&inner, 2), 2)]);
    assert_eq!(put_together(&[v4(17, 7, 64, false, &vxlan[64..])]), []);
}

/// The snap length cuts the captured bytes, never the original length.
#[test]
fn what_was_cut_is_missing_and_counted() {
    let pieces = [v4(6, 7, 0, true, &TCP[..32]), v4(6, 7, 32, false, &TCP[32..])];
    let mut fragments = Fragments::default();
    for (number, piece) in (1..).zip(&pieces) {
        let cut = raw(number, 0, &piece[..44], piece.len());
        if let Put::Whole(packet, _) = fragments.put(&cut, Skip::Fragment) {
            assert_eq!(packet.data.len(), 44);
            assert_eq!(decode(&packet).map(|segment| segment.payload_len), Ok(40));
            return;
        }
    }
    panic!("both are there");
}

#[test]
fn nothing_waits_for_longer_than_thirty_seconds_or_in_more_than_four_megabytes() {
    for (after_s, complete) in [(29, true), (31, false)] {
        let mut fragments = Fragments::default();
        let (first, last) = (v4(6, 7, 0, true, &TCP[..24]), v4(6, 7, 24, false, &TCP[24..]));
        assert_eq!(fragments.put(&raw(1, 0, &first, first.len()), Skip::Fragment), Put::Waits);
        let other = v4(6, 9, 0, true, &TCP[..24]);
        fragments.put(&raw(2, after_s * 1_000, &other, other.len()), Skip::Fragment);
        let put = fragments.put(&raw(3, after_s * 1_000, &last, last.len()), Skip::Fragment);
        assert_eq!(matches!(put, Put::Whole(..)), complete, "{after_s} s");
    }
    let mut fragments = Fragments::default();
    let large = vec![0; 60_000];
    for n in 0..20_000u32 {
        let mut piece = v4(6, 0, 0, true, if n % 3 == 0 { &large } else { &TCP[..24] });
        piece[12..16].copy_from_slice(&n.to_be_bytes());
        fragments.put(&raw(1, 0, &piece, piece.len()), Skip::Fragment);
        assert!(fragments.memory() < (4 << 20) + 200_000, "{} bytes", fragments.memory());
    }
}

proptest! {
    #[test]
    fn in_any_order_and_in_whatever_pieces(cuts in prop::collection::btree_set(1..8usize, 0..7), order in any::<u64>(), is_v6 in any::<bool>()) {
        let mut ends: Vec<usize> = cuts.iter().map(|cut| cut * 8).filter(|end| *end < TCP.len()).collect();
        prop_assume!(!ends.is_empty());
        ends.push(TCP.len());
        let begins = std::iter::once(0).chain(ends.iter().copied());
        let mut pieces: Vec<Vec<u8>> = begins
            .zip(&ends)
            .map(|(begin, end)| {
                let (more, bytes) = (*end < TCP.len(), &TCP[begin..*end]);
                if is_v6 { v6(7, begin, more, bytes) } else { v4(6, 7, begin, more, bytes) }
            })
            .collect();
        let mut state = order | 1;
        for i in (1..pieces.len()).rev() {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            pieces.swap(i, (state >> 33) as usize % (i + 1));
        }
        let made = put_together(&pieces);
        prop_assert_eq!(made.len(), 1);
        prop_assert_eq!((made[0].0.payload_len, made[0].0.packet, made[0].1), (40, pieces.len() as u64, pieces.len() as u64));
    }

    #[test]
    fn no_bytes_make_it_panic(packets in prop::collection::vec((prop::collection::vec(any::<u8>(), 0..80), any::<i64>()), 0..40)) {
        let mut fragments = Fragments::default();
        for (mut data, at) in packets {
            if let Some(first) = data.first_mut() {
                *first = [0x45, 0x60][usize::from(*first) % 2];
            }
            let at = Instant::from_nanos(at);
            let raw = RawPacket { number: 1, at, link: LinkType::RAW, data: &data, original_len: 80, interface: 0, dropped: 0 };
            let skip = decode(&raw).err().unwrap_or(Skip::Fragment);
            fragments.put(&raw, skip);
        }
    }
}
