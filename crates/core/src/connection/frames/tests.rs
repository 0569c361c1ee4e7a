//! Is a segment that `passes` known beforehand, on both paths?

use tcpwhy_wire::{Endpoint, Flags, Seq, TcpOptions};

use super::*;

/// A segment that passes leaves the same state on the usual path and the general one, however a
/// connection has begun.
#[test]
fn what_passes_is_known_beforehand() {
    let [client, server] = [5000, 80].map(|port| Endpoint::v4([10, 0, 0, 1], port));
    let mut segment = Segment {
        packet: 1,
        at: Instant::from_nanos(0),
        src: client,
        dst: server,
        seq: Seq(1),
        ack: Seq(1),
        window: 500,
        flags: Flags(Flags::PSH | Flags::ACK),
        payload_len: 0,
        options: TcpOptions::default(),
        ip_id: None,
        ttl: 64,
        damaged: false,
    };
    let lengths = [9, 13, 17, 22, 24, 31, 38, 39, 44, 46, 51, 63, 64, 100, 1000];
    let (mut state, mut passed) = (1_u64, 0);
    let mut open = Open::new();
    for _ in 0..2_000 {
        let mut frames = Frames::default();
        for _ in 0..40 {
            // Knuth's MMIX generator: its upper bits are random enough.
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let from = (state >> 63) as usize;
            segment.payload_len = lengths[(state >> 33) as usize % lengths.len()];
            let mut usual = frames.clone();
            let passes = frames.passes(segment.payload_len, from);
            // A message of one piece under way, which the client's next one ends, or nothing.
            (open.first_len, open.request_bytes) = (39, 39);
            let under_way = (state >> 40 & 1 == 1).then_some(&open);
            let left_out = frames.is_left_out(under_way, &segment, from, SegmentClass::New, None);
            if passes {
                usual.on_passing(segment.payload_len, from);
                if from == CLIENT {
                    [&mut usual, &mut frames].into_iter().for_each(Frames::on_message);
                }
                assert_eq!((&usual, false), (&frames, left_out), "{} bytes", segment.payload_len);
                passed += 1;
            }
        }
    }
    assert!(passed > 10_000, "{passed}");
}
