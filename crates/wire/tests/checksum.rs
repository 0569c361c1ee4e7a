//! Is this segment as it was sent? Annotated bytes, and etherparse's sums as a second opinion.

use etherparse::PacketBuilder;
use proptest::prelude::*;
use tcpwhy_wire::capture::{LinkType, RawPacket};
use tcpwhy_wire::decode::{Checksum, checksum};
use tcpwhy_wire::{Instant, decode};

/// Five bytes from 10.0.0.1:40000 to 10.0.0.2:80. Its words and those of the pseudo-header (0a00 0001 0a00 0002 0006 0019) add up to
/// 0x2459e without the checksum; folded 0x45a0, of which 0xba5f is the complement.
#[rustfmt::skip]
const PACKET: [u8; 45] = [
    0x45, 0, 0, 45, 0x12, 0x34, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, // IPv4
    0x9c, 0x40, 0, 80, 0, 0, 0, 1, 0, 0, 0, 2, // ports, sequence, acknowledgement
    0x50, 0x18, 1, 0,                          // 20 bytes, PSH ACK, window
    RIGHT[0], RIGHT[1], 0, 0,                  // checksum, urgent pointer
    b'h', b'e', b'l', b'l', b'o',
];
const RIGHT: [u8; 2] = [0xba, 0x5f];
const PLACE: usize = 36;

fn of(data: &[u8], original_len: usize) -> Option<Checksum> {
    let (at, original_len) = (Instant::from_nanos(0), original_len as u32);
    checksum(&RawPacket { number: 1, at, link: LinkType::RAW, data, original_len, interface: 0, dropped: 0 })
}

fn with(field: [u8; 2]) -> Option<Checksum> {
    let mut packet = PACKET;
    packet[PLACE..PLACE + 2].copy_from_slice(&field);
    of(&packet, packet.len())
}

#[test]
fn a_checksum_is_right_wrong_or_not_there_yet() {
    assert_eq!(with(RIGHT), Some(Checksum::Right));
    assert!(matches!(with([0x12, 0x34]), Some(Checksum::Wrong { .. })));
    // 0a00 + 0001 + 0a00 + 0002 + 0006 + 0019: the partial sum that Linux leaves for the interface;
    // the same without the length; nothing.
    for unfilled in [[0x14, 0x22], [0x14, 0x09], [0, 0]] {
        assert_eq!(with(unfilled), Some(Checksum::Unfilled));
    }
}

#[test]
fn only_a_whole_packet_tells() {
    for len in 0..PACKET.len() {
        assert_eq!(of(&PACKET[..len], PACKET.len()), None, "{len}");
    }
    // Followed by Ethernet padding.
    let padded = [&PACKET[..], &[9; 15]].concat();
    assert_eq!(of(&padded, padded.len()), Some(Checksum::Right));
    let mut udp = PACKET;
    udp[9] = 17;
    assert_eq!(of(&udp, udp.len()), None);
}

proptest! {
    #[test]
    fn etherparse_adds_up_alike(
        is_v6 in any::<bool>(),
        payload in prop::collection::vec(any::<u8>(), 0..3_000),
        (seq, window) in any::<(u32, u16)>(),
        flip in any::<(prop::sample::Index, u8)>(),
    ) {
        let builder = if is_v6 {
            PacketBuilder::ethernet2([2; 6], [4; 6]).ipv6([0xfd; 16], [0xfe; 16], 9).tcp(40_000, 80, seq, window)
        } else {
            PacketBuilder::ethernet2([2; 6], [4; 6]).ipv4([10, 0, 0, 1], [255, 255, 9, 2], 9).tcp(40_000, 80, seq, window)
        };
        let mut packet = Vec::new();
        builder.ack(7).write(&mut packet, &payload).expect("a packet");
        let raw = |data: &[u8]| {
            let (at, original_len) = (Instant::from_nanos(0), data.len() as u32);
            let raw = RawPacket { number: 1, at, link: LinkType::ETHERNET, data, original_len, interface: 0, dropped: 0 };
            (checksum(&raw), decode(&raw).is_ok())
        };
        prop_assert_eq!(raw(&packet), (Some(Checksum::Right), true));
        // Damage of one byte of the segment is detected, wherever it is.
        let tcp = 14 + if is_v6 { 40 } else { 20 };
        let place = tcp + flip.0.index(packet.len() - tcp);
        packet[place] ^= flip.1.max(1);
        let (damaged, is_segment) = raw(&packet);
        prop_assert!(!is_segment || damaged != Some(Checksum::Right));
    }
}
