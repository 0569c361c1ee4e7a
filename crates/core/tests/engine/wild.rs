//! What holds for packets that no host would send? Options of any value, SACK blocks and
//! acknowledgements of anything, clocks that jump, hosts that share addresses.

use proptest::prelude::*;
use tcpwhy_core::Options;
use tcpwhy_wire::{Duration, Endpoint, Flags, Instant, SackBlock, Segment, Seq, TcpOptions, Timestamps};

use crate::generate::number;
use crate::invariants::{EVERYTHING, analyse, check};
use crate::spread::spread;

/// One packet, and its deviation from a sensible one.
#[derive(Clone, Debug)]
struct Packet {
    pair: u8,
    from_client: bool,
    clock: Clock,
    flags: u8,
    /// Its sequence number, relative to its end's next one, and its acknowledgement number,
    /// likewise.
    seq: i32,
    ack: i32,
    len: u32,
    window: u16,
    mss: Option<u16>,
    scale: Option<u8>,
    sack: Vec<(u32, u32)>,
    stamps: Option<(u32, u32)>,
}

#[derive(Clone, Debug)]
enum Clock {
    After(i64),
    At(i64),
}

fn packet() -> impl Strategy<Value = Packet> {
    let clock = prop_oneof![
        12 => (0..100_000_000i64).prop_map(Clock::After),
        2 => (-20_000_000_000..20_000_000_000i64).prop_map(Clock::After),
        1 => prop_oneof![Just(i64::MIN), Just(i64::MAX), any::<i64>()].prop_map(Clock::At),
    ];
    let flags = prop_oneof![
        12 => Just(Flags::ACK),
        4 => Just(Flags::ACK | Flags::PSH),
        2 => Just(Flags::SYN),
        2 => Just(Flags::SYN | Flags::ACK),
        1 => any::<u8>(),
    ];
    let off = || prop_oneof![12 => Just(0), 2 => -5_000..5_000i32, 1 => any::<i32>()];
    let len = prop_oneof![4 => Just(0u32), 4 => 0..3_000u32, 1 => 0..70_000u32];
    let mss = prop::option::of(prop_oneof![0..14u16, Just(1_460), any::<u16>()]);
    let sack = prop::collection::vec((any::<u32>(), any::<u32>()), 0..4);
    let sack = prop_oneof![6 => Just(Vec::new()), 2 => sack, 1 => Just(vec![(1, 1 << 30); 4])];
    let options = (any::<u16>(), mss, prop::option::of(any::<u8>()), sack, any::<Option<(u32, u32)>>());
    (0..6u8, any::<bool>(), clock, flags, off(), off(), len, options).prop_map(
        |(pair, from_client, clock, flags, seq, ack, len, (window, mss, scale, sack, stamps))| Packet {
            pair,
            from_client,
            clock,
            flags,
            seq,
            ack,
            len,
            window,
            mss,
            scale,
            sack,
            stamps,
        },
    )
}

/// A capture of such packets, whose ends keep track of their sequence numbers.
fn capture() -> impl Strategy<Value = Vec<Segment>> {
    prop::collection::vec(packet(), 1..150).prop_map(|packets| {
        let mut next = [[0u32; 2]; 6];
        let mut now = Instant::from_nanos(1_700_000_000_000_000_000);
        let segments = packets.iter().map(|packet| {
            now = match packet.clock {
                Clock::After(ns) => now + Duration::from_nanos(ns),
                Clock::At(ns) => Instant::from_nanos(ns),
            };
            packet.segment(now, &mut next[usize::from(packet.pair)])
        });
        number(segments.collect())
    })
}

impl Packet {
    fn segment(&self, at: Instant, next: &mut [u32; 2]) -> Segment {
        // Three pairs of hosts with two ports each; the last one talks to itself.
        let host = self.pair / 2;
        let client = Endpoint::v4([10, 0, 0, 1 + host], 40_000 + u16::from(self.pair));
        let server = Endpoint::v4([10, 0, 0, 3], 80);
        let own = usize::from(!self.from_client);
        let mut options = TcpOptions::default();
        (options.mss, options.window_scale) = (self.mss, self.scale);
        options.timestamps = self.stamps.map(|(val, ecr)| Timestamps { val, ecr });
        let ack = Seq(next[1 - own].wrapping_add_signed(self.ack));
        for &(start, len) in &self.sack {
            options.push_sack(SackBlock { start: ack + start, end: ack + start + len });
        }
        let segment = Segment {
            packet: 0,
            at,
            src: [client, server][own],
            dst: [server, client][own],
            seq: Seq(next[own].wrapping_add_signed(self.seq)),
            ack,
            window: self.window,
            flags: Flags(self.flags),
            payload_len: self.len,
            options,
            ip_id: None,
            ttl: 64,
            damaged: false,
        };
        next[own] = Seq(next[own]).latest(segment.seq_end()).0;
        segment
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn sums_of_nonsense_are_sums(segments in capture()) {
        check(&analyse(&segments));
    }

    #[test]
    fn shards_and_places_do_not_matter_to_nonsense(segments in capture(), seed in any::<u64>()) {
        let expected = spread(&segments, EVERYTHING, 1);
        for shards in [2, 3, 8] {
            prop_assert_eq!(&spread(&segments, Options { seed, ..EVERYTHING }, shards), &expected);
        }
    }
}
