//! Capture formats, by annotated bytes and by generated captures in every variant.

mod vocabulary;

use proptest::prelude::*;
use tcpwhy_wire::Instant;
use tcpwhy_wire::capture::writer::{PacketNote, PcapWriter, PcapngWriter, Section};
use tcpwhy_wire::capture::{Damage, DamageKind, LinkType};
use vocabulary::{
    Order, Packet, Read, block, enhanced, interface, option, pcap, read, read_in_chunks, section,
};

/// pcap, microseconds, little-endian, as tcpdump writes it.
#[rustfmt::skip]
const PCAP: &[u8] = &[
    0xd4, 0xc3, 0xb2, 0xa1, // magic: little-endian, microseconds
    2, 0, 4, 0,             // version 2.4
    0, 0, 0, 0,             // time zone
    0, 0, 0, 0,             // accuracy
    0, 0, 4, 0,             // snap length 262144
    101, 0, 0, 0,           // raw IP
    // record
    0x40, 0xe2, 0x01, 0x00, // 123456 s
    0x87, 0xd6, 0x12, 0x00, // 1234567 us: more than a second is taken as it is
    3, 0, 0, 0,             // captured
    5, 0, 0, 0,             // on the wire
    0xaa, 0xbb, 0xcc,
];

/// pcapng: an application's name, one interface in nanoseconds, a packet with a comment and a drop count, statistics.
#[rustfmt::skip]
const PCAPNG: &[u8] = &[
    // section header block
    0x0a, 0x0d, 0x0d, 0x0a,
    44, 0, 0, 0,            // total length
    0x4d, 0x3c, 0x2b, 0x1a, // byte-order magic
    1, 0, 0, 0,             // version 1.0
    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, // section length unknown
    4, 0, 6, 0, b't', b'c', b'p', b'w', b'h', b'y', 0, 0, // shb_userappl, padded
    0, 0, 0, 0,             // opt_endofopt
    44, 0, 0, 0,
    // interface description block
    1, 0, 0, 0,
    40, 0, 0, 0,
    101, 0, 0, 0,           // raw IP, reserved
    96, 0, 0, 0,            // snap length
    2, 0, 2, 0, b'l', b'o', 0, 0, // if_name
    9, 0, 1, 0, 9, 0, 0, 0, // if_tsresol: 10^-9 s
    0, 0, 0, 0,
    40, 0, 0, 0,
    // enhanced packet block
    6, 0, 0, 0,
    60, 0, 0, 0,
    0, 0, 0, 0,             // interface
    1, 0, 0, 0, 2, 0, 0, 0, // time, high word first: 2^32 + 2 ns
    3, 0, 0, 0,             // captured
    5, 0, 0, 0,             // on the wire
    0xaa, 0xbb, 0xcc, 0,    // padded
    1, 0, 2, 0, b'h', b'i', 0, 0, // opt_comment
    4, 0, 8, 0, 7, 0, 0, 0, 0, 0, 0, 0, // epb_dropcount
    0, 0, 0, 0,
    60, 0, 0, 0,
    // interface statistics block
    5, 0, 0, 0,
    52, 0, 0, 0,
    0, 0, 0, 0,             // interface
    1, 0, 0, 0, 3, 0, 0, 0, // time
    4, 0, 8, 0, 1, 0, 0, 0, 0, 0, 0, 0, // isb_ifrecv
    5, 0, 8, 0, 9, 0, 0, 0, 0, 0, 0, 0, // isb_ifdrop
    0, 0, 0, 0,
    52, 0, 0, 0,
];

fn packet(number: u64, ns: i64, data: &[u8], original_len: u32) -> Packet {
    Packet { number, ns, link: LinkType::RAW, data: data.to_vec(), original_len, interface: 0, dropped: 0 }
}

fn damage(offset: u64, what: DamageKind) -> Damage {
    Damage { offset, what }
}

#[test]
fn reads_pcap_byte_by_byte() {
    let expected = packet(1, 123_457_234_567_000, &[0xaa, 0xbb, 0xcc], 5);
    let damages = vec![damage(24, DamageKind::BeyondItsSecond { ticks: 1_234_567 })];
    assert_eq!(read(PCAP), Read { packets: vec![expected], damages, ..Read::default() });
}

#[test]
fn reads_every_pcap_variant() {
    for order in [Order::Little, Order::Big] {
        for (magic, ns_per_tick) in [(0xa1b2_c3d4, 1_000), (0xa1b2_3c4d, 1), (0xa1b2_cd34, 1_000)] {
            // The last second that fits into 32 bits is in 2106: unsigned, as Wireshark reads it.
            let capture = pcap(order, magic, 101, &[(u32::MAX, 999, 3, &[1, 2, 3]), (1, 0, 0, &[])]);
            let last = 4_294_967_295_000_000_000 + 999 * ns_per_tick;
            let packets = vec![packet(1, last, &[1, 2, 3], 3), packet(2, 1_000_000_000, &[], 0)];
            assert_eq!(read(&capture), Read { packets, ..Read::default() }, "{order:?} {magic:#x}");
        }
    }
}

#[test]
fn reads_pcapng_byte_by_byte() {
    let expected = Packet { dropped: 7, ..packet(1, (1 << 32) + 2, &[0xaa, 0xbb, 0xcc], 5) };
    assert_eq!(read(PCAPNG), Read { packets: vec![expected], damages: vec![], drops: 9 });
}

#[test]
fn writes_pcapng_byte_by_byte() {
    let mut writer = PcapngWriter::new();
    writer.section(&Section { application: Some("tcpwhy"), ..Section::default() });
    writer.interface(LinkType::RAW, 96, Some("lo"));
    let note = PacketNote { comment: Some("hi"), dropped: 7 };
    writer.packet(0, Instant::from_nanos((1 << 32) + 2), 5, &[0xaa, 0xbb, 0xcc], &note);
    writer.statistics(0, Instant::from_nanos((1 << 32) + 3), 1, 9);
    assert_eq!(writer.bytes(), PCAPNG);
    writer.clear();
    assert!(writer.bytes().is_empty());
}

#[test]
fn sections_interfaces_and_block_types_mix() {
    let mut capture = Vec::new();
    let order = Order::Big;
    capture.extend(section(order));
    // Two interfaces: milliseconds with an offset of a million seconds, and 1/1024 s.
    let offset = option(order, 14, &order.u64(1_000_000));
    capture.extend(interface(order, 101, 2, &[option(order, 9, &[3]), offset]));
    capture.extend(interface(order, 1, 0, &[option(order, 9, &[0x8a])]));
    capture.extend(enhanced(order, 1, 512, 1, &[1], &[]));
    capture.extend(enhanced(order, 0, 7, 2, &[2], &[]));
    // Simple packet block: cut by the snap length of interface 0, at the time of the previous
    // packet.
    capture.extend(block(order, 3, &[&order.u32(60), &[3, 3]]));
    // Obsolete packet block: interface and drop count are 16 bits each.
    let fields = [0, 9, 4, 4].map(|n| order.u32(n)).concat();
    capture.extend(block(order, 2, &[&order.u16(0), &order.u16(5), &fields, &[4, 4, 4, 4]]));
    capture.extend(block(order, 0xbad, &[b"whatever this is"]));
    // A second section in the other order with new interfaces, microseconds by default.
    let order = Order::Little;
    capture.extend(section(order));
    capture.extend(interface(order, 228, 0, &[]));
    capture.extend(enhanced(order, 0, 5, 1, &[5], &[]));
    capture.extend(block(order, 3, &[&order.u32(2), &[6, 6]]));

    let at = |ms: i64| (1_000_000_000 + ms) * 1_000_000;
    let ipv4 = |packet: Packet| Packet { link: LinkType::IPV4, ..packet };
    let packets = vec![
        Packet { link: LinkType::ETHERNET, interface: 1, ..packet(1, 500_000_000, &[1], 1) },
        packet(2, at(7), &[2], 2),
        packet(3, at(7), &[3, 3], 60),
        Packet { dropped: 5, ..packet(4, at(9), &[4, 4, 4, 4], 4) },
        ipv4(packet(5, 5_000, &[5], 1)),
        ipv4(packet(6, 5_000, &[6, 6], 2)),
    ];
    assert_eq!(read(&capture), Read { packets, damages: vec![], drops: 5 });
}

#[test]
fn statistics_are_running_totals() {
    let order = Order::Little;
    let statistics = |id: u32, drops: u64| {
        let count = option(order, 5, &order.u64(drops));
        block(order, 5, &[&order.u32(id), &[0; 8], &count])
    };
    let mut capture = section(order);
    capture.extend(interface(order, 1, 0, &[]));
    capture.extend(interface(order, 1, 0, &[]));
    for (id, drops) in [(0, 10), (1, 5), (0, 25), (0, 25)] {
        capture.extend(statistics(id, drops));
    }
    assert_eq!(read(&capture), Read { drops: 30, ..Read::default() });
}

#[test]
fn what_is_no_capture_says_so() {
    assert_eq!(read(b"").damages, [damage(0, DamageKind::Empty)]);
    assert_eq!(read(b"PK\x03\x04 a zip file").damages, [damage(0, DamageKind::NotACapture(*b"PK\x03\x04"))]);
    assert_eq!(read(&PCAP[..3]).damages, [damage(0, DamageKind::CutShort { needs: 24, has: 3 })]);
    assert_eq!(read(&PCAP[..23]).damages, [damage(0, DamageKind::CutShort { needs: 24, has: 23 })]);
    let said = read(b"hello").damages[0].to_string();
    assert_eq!(said, "at byte 0: not a pcap or pcapng capture (it starts with the bytes 68656c6c)");
}

#[test]
fn a_cut_capture_gives_all_before_the_cut_and_its_place() {
    let records: Vec<(u32, u32, u32, &[u8])> = vec![(1, 0, 4, b"abcd"), (2, 0, 4, b"efgh")];
    let capture = pcap(Order::Little, 0xa1b2_c3d4, 101, &records);
    for cut in 44..64 {
        let read = read(&capture[..cut]);
        assert_eq!(read.packets.len(), 1, "cut at {cut}");
        let needs = if cut < 60 { 16 } else { 20 };
        let expected = damage(44, DamageKind::CutShort { needs, has: cut as u64 - 44 });
        assert_eq!(read.damages, if cut == 44 { vec![] } else { vec![expected] }, "cut at {cut}");
    }
    assert_eq!(read(&capture).packets.len(), 2);
}

#[test]
fn a_lying_pcap_length_stops_reading_where_it_stands() {
    let mut capture = pcap(Order::Little, 0xa1b2_c3d4, 101, &[(1, 0, 4, b"abcd"), (2, 0, 4, b"efgh")]);
    capture[44 + 8..][..4].copy_from_slice(&0xffff_ff00_u32.to_le_bytes());
    let read = read(&capture);
    assert_eq!(read.packets.len(), 1);
    assert_eq!(read.damages, [damage(44, DamageKind::RecordTooLong(0xffff_ff00))]);
}

#[test]
fn more_captured_than_sent_is_read_and_reported_once() {
    let lies: Vec<(u32, u32, u32, &[u8])> = vec![(1, 0, 2, b"abcd"), (2, 0, 1, b"efgh")];
    let kind = DamageKind::MoreCapturedThanSent { captured: 4, original: 2 };
    let read_pcap = read(&pcap(Order::Little, 0xa1b2_c3d4, 101, &lies));
    assert_eq!(read_pcap.damages, [damage(24, kind)]);
    assert_eq!(read_pcap.packets[1], packet(2, 2_000_000_000, b"efgh", 4));

    let order = Order::Little;
    let mut capture = [section(order), interface(order, 101, 0, &[])].concat();
    let offset = capture.len() as u64;
    capture.extend(enhanced(order, 0, 1, 2, b"abcd", &[]));
    capture.extend(enhanced(order, 0, 2, 1, b"efgh", &[]));
    let read_pcapng = read(&capture);
    assert_eq!(read_pcapng.damages, [damage(offset, kind)]);
    assert_eq!(read_pcapng.packets[1], packet(2, 2_000, b"efgh", 4));
}

/// A microsecond field of a million and more: its writer did not know the unit. Nanoseconds have a billion.
#[test]
fn a_fraction_of_more_than_its_second_is_reported_once() {
    let records: Vec<(u32, u32, u32, &[u8])> =
        vec![(1, 999_999, 4, b"abcd"), (2, 1_000_000, 4, b"abcd"), (3, 3_500_000, 4, b"abcd")];
    let micros = read(&pcap(Order::Little, 0xa1b2_c3d4, 101, &records));
    assert_eq!(micros.damages, [damage(24 + 20, DamageKind::BeyondItsSecond { ticks: 1_000_000 })]);
    assert_eq!(
        micros.packets.iter().map(|packet| packet.ns).collect::<Vec<_>>(),
        [1_999_999_000, 3_000_000_000, 6_500_000_000]
    );
    assert_eq!(read(&pcap(Order::Little, 0xa1b2_3c4d, 101, &records)).damages, []);
    let records: Vec<(u32, u32, u32, &[u8])> = vec![(1, 1_000_000_000, 4, b"abcd")];
    let nanos = read(&pcap(Order::Little, 0xa1b2_3c4d, 101, &records));
    assert_eq!(nanos.damages, [damage(24, DamageKind::BeyondItsSecond { ticks: 1_000_000_000 })]);
}

/// The times, in seconds, of packets with these stamps, and what is reported, in either format; all of it
/// at once and as it arrives.
fn times(stamps: &[u32]) -> (Vec<i64>, Vec<i64>) {
    let order = Order::Little;
    let records: Vec<(u32, u32, u32, &[u8])> = stamps.iter().map(|at| (*at, 0, 4, &b"abcd"[..])).collect();
    let mut blocks = [section(order), interface(order, 101, 0, &[])].concat();
    for at in stamps {
        blocks.extend(enhanced(order, 0, u64::from(*at) * 1_000_000, 4, b"abcd", &[]));
    }
    let [one, other] = [pcap(order, 0xa1b2_c3d4, 101, &records), blocks].map(|capture| {
        let read = read(&capture);
        let seconds = |ns: i64| ns / 1_000_000_000;
        let ahead = read.damages.iter().map(|damage| match damage.what {
            DamageKind::WrongTime { ahead } => seconds(ahead.as_nanos()),
            _ => panic!("{damage}"),
        });
        (read.packets.iter().map(|packet| seconds(packet.ns)).collect(), ahead.collect())
    });
    assert_eq!(one, other);
    one
}

#[test]
fn a_stamp_of_another_year_between_two_of_the_same_second_is_wrong() {
    assert_eq!(times(&[100, 1_500_000_000, 100, 101]), (vec![100, 100, 100, 101], vec![1_499_999_900]));
    assert_eq!(
        times(&[100, 101, 9_000, 102, 9_000, 103]),
        (vec![100, 101, 101, 102, 102, 103], vec![8_899, 8_898])
    );
}

#[test]
fn after_hours_without_a_packet_the_clock_is_right() {
    assert_eq!(times(&[100, 1_500_000_000]), (vec![100, 1_500_000_000], vec![]));
    let stamps = [100, 101, 9_000, 9_001, 102, 103, 9_002, 20_000, 20_001];
    assert_eq!(times(&stamps), (stamps.map(i64::from).to_vec(), vec![]), "two are dated so");
    assert_eq!(times(&[9_000, 100, 101]), (vec![9_000, 100, 101], vec![]), "nothing comes before it");
}

/// A section, an interface and packets with the data 0, 1, 2, ... of four bytes each; and where
/// each block starts.
fn numbered_pcapng(packets: u32) -> (Vec<u8>, Vec<usize>) {
    let order = Order::Little;
    let mut capture = [section(order), interface(order, 101, 0, &[])].concat();
    let mut starts = Vec::new();
    for n in 0..packets {
        starts.push(capture.len());
        capture.extend(enhanced(order, 0, u64::from(n), 4, &n.to_be_bytes(), &[]));
    }
    (capture, starts)
}

fn survivors(read: &Read) -> Vec<u32> {
    read.packets.iter().map(|p| u32::from_be_bytes(p.data[..].try_into().expect("four bytes"))).collect()
}

#[test]
fn pcapng_goes_on_behind_a_damaged_block() {
    let (whole, starts) = numbered_pcapng(4);
    let len = starts[2] - starts[1];
    let lies = [
        (0, DamageKind::BlockLength(0)),
        (11, DamageKind::BlockLength(11)),
        (0xffff_fffc, DamageKind::BlockLength(0xffff_fffc)), // the block that claims 4 GB
        (0x0100_0000, DamageKind::CutShort { needs: 0x0100_0000, has: (len * 3) as u64 }),
        (len as u32 + 4, DamageKind::BlockLengthsDiffer(len as u32 + 4, 6)),
    ];
    for (lie, what) in lies {
        let mut capture = whole.clone();
        capture[starts[1] + 4..][..4].copy_from_slice(&u32::to_le_bytes(lie));
        let read = read(&capture);
        assert_eq!(read.damages[0].offset, starts[1] as u64);
        match (what, read.damages[0].what) {
            (DamageKind::BlockLengthsDiffer(first, _), DamageKind::BlockLengthsDiffer(said, _)) => {
                assert_eq!(first, said);
            }
            (expected, said) => assert_eq!(expected, said),
        }
        assert_eq!(read.damages.len(), 1, "{lie:#x}");
        assert_eq!(survivors(&read), [0, 2, 3], "{lie:#x}");
    }
}

#[test]
fn pcapng_goes_on_behind_a_block_that_contradicts_itself() {
    let (whole, starts) = numbered_pcapng(3);
    for (at, value, what) in [
        (8, 7, DamageKind::NoSuchInterface(7)),
        (20, 5, DamageKind::BlockBody(6)),
        (20, u32::MAX, DamageKind::RecordTooLong(u32::MAX)),
    ] {
        let mut capture = whole.clone();
        capture[starts[1] + at..][..4].copy_from_slice(&u32::to_le_bytes(value));
        let read = read(&capture);
        assert_eq!(read.damages, [damage(starts[1] as u64, what)]);
        assert_eq!(survivors(&read), [0, 2]);
    }
}

#[test]
fn a_cut_pcapng_gives_all_before_the_cut_and_its_place() {
    let (whole, starts) = numbered_pcapng(2);
    for cut in starts[1] + 1..whole.len() {
        let read = read(&whole[..cut]);
        assert_eq!(survivors(&read), [0], "cut at {cut}");
        assert_eq!(read.damages.len(), 1, "cut at {cut}");
        assert_eq!(read.damages[0].offset, starts[1] as u64);
        assert!(matches!(read.damages[0].what, DamageKind::CutShort { .. }));
    }
}

/// The captures that the tests below damage: each format once, small.
fn one_of_each() -> Vec<Vec<u8>> {
    let records: Vec<(u32, u32, u32, &[u8])> = vec![(1, 5, 4, b"abcd"), (2, 6, 9, b"efgh"), (3, 7, 0, b"")];
    let mut captures = vec![PCAPNG.to_vec(), numbered_pcapng(3).0];
    for order in [Order::Little, Order::Big] {
        captures.extend([0xa1b2_c3d4, 0xa1b2_3c4d, 0xa1b2_cd34].map(|magic| pcap(order, magic, 1, &records)));
        let obsolete = [0, 9, 4, 4].map(|n| order.u32(n)).concat();
        let pcapng = [
            section(order),
            interface(order, 101, 0, &[option(order, 9, &[9]), option(order, 14, &[0xff; 8])]),
            enhanced(order, 0, u64::MAX, 5, b"abcde", &[option(order, 1, b"comment")]),
            block(order, 3, &[&order.u32(2), &[6, 6]]),
            block(order, 2, &[&order.u32(0), &obsolete, &[4, 4, 4, 4]]),
            block(order, 5, &[&order.u32(0), &[0; 8], &option(order, 5, &order.u64(3))]),
        ];
        captures.push(pcapng.concat());
    }
    captures
}

#[test]
fn cut_anywhere_the_rest_is_as_before() {
    for capture in one_of_each() {
        let whole = read(&capture);
        assert_eq!(whole.damages, [], "{capture:x?}");
        for cut in 0..capture.len() {
            let cut_short = read(&capture[..cut]);
            assert!(whole.packets.starts_with(&cut_short.packets), "cut at {cut} of {capture:x?}");
            assert!(cut_short.damages.len() <= 1, "cut at {cut}: {:?}", cut_short.damages);
        }
    }
}

#[test]
fn any_flipped_bit_is_survived_and_read_alike_in_any_chunks() {
    for mut capture in one_of_each() {
        for bit in 0..capture.len() * 8 {
            capture[bit / 8] ^= 1 << (bit % 8);
            let whole = read(&capture);
            assert_eq!(read_in_chunks(&capture, 1), whole, "bit {bit} of {capture:x?}");
            assert_eq!(read_in_chunks(&capture, 7), whole, "bit {bit} of {capture:x?}");
            capture[bit / 8] ^= 1 << (bit % 8);
        }
    }
}

proptest! {
    #[test]
    fn what_the_writers_write_is_what_the_reader_reads(
        packets in prop::collection::vec(
            (0..i64::from(u32::MAX) * 1_000_000_000, prop::collection::vec(any::<u8>(), 0..80), 0..100_000_u32, any::<u32>()),
            0..20,
        ),
        comment in prop::option::of(".{0,20}"),
        chunk in 1..200_usize,
    ) {
        // A single one out of order by hours has a wrong time stamp.
        let packets = { let mut packets = packets; packets.sort_by_key(|(at, ..)| *at); packets };
        let mut pcapng = PcapngWriter::new();
        pcapng.section(&Section { application: Some("test"), os: Some("none"), comment: comment.as_deref() });
        pcapng.interface(LinkType::RAW, 0, None);
        let mut pcap = PcapWriter::new(LinkType::RAW, 262_144);
        let mut expected = Vec::new();
        for (i, (ns, data, more, dropped)) in packets.iter().enumerate() {
            let original_len = data.len() as u32 + more;
            let note = PacketNote { comment: comment.as_deref(), dropped: u64::from(*dropped) };
            pcapng.packet(0, Instant::from_nanos(*ns), original_len, data, &note);
            pcap.packet(Instant::from_nanos(*ns), original_len, data);
            expected.push(packet(i as u64 + 1, *ns, data, original_len));
        }
        let from_pcap = read_in_chunks(pcap.bytes(), chunk);
        prop_assert_eq!(&from_pcap.packets, &expected);
        prop_assert_eq!(from_pcap.damages, []);
        for (packet, (.., dropped)) in expected.iter_mut().zip(&packets) {
            packet.dropped = *dropped;
        }
        let from_pcapng = read_in_chunks(pcapng.bytes(), chunk);
        prop_assert_eq!(from_pcapng.packets, expected);
        prop_assert_eq!(from_pcapng.damages, []);
        prop_assert_eq!(from_pcapng.drops, packets.iter().map(|(.., dropped)| u64::from(*dropped)).sum::<u64>());
    }

    #[test]
    fn no_bytes_make_it_panic_or_hang(
        magic in prop::sample::select(vec![&b"\x0a\x0d\x0d\x0a"[..], b"\xd4\xc3\xb2\xa1", b"\xa1\xb2\x3c\x4d", b""]),
        noise in prop::collection::vec(prop_oneof![Just(0), Just(6), Just(12), any::<u8>()], 0..400),
        chunk in 1..100_usize,
    ) {
        let capture = [magic, &noise].concat();
        prop_assert_eq!(read_in_chunks(&capture, chunk), read(&capture));
    }
}
