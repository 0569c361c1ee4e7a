//! Which conversations can a capture contain? Random ones, built as packet logs, so that a failure
//! can be read, cut down and kept as a test.

use proptest::prelude::*;
use tcpwhy_wire::{Duration, Endpoint, Segment};

use crate::packet_log::{End, PacketLog, log, ms};

/// Payload bytes of one line, for offsets of retransmissions.
const BYTES_MAX: u32 = 40_000;

/// A log and what the capture does to it.
#[derive(Clone, Debug)]
pub(crate) struct Conversation {
    pub(crate) log: PacketLog,
    /// The capture point, in sixteenths of the path from the client.
    sixteenths: i64,
    /// One direction is missing.
    only: Option<End>,
    /// Packets missing at the start of the capture.
    starts_at: usize,
    /// The clock steps by this much before this packet.
    clock_step: Option<(usize, Duration)>,
}

impl Conversation {
    /// The capture, with these two hosts, beginning this long after the log's start.
    pub(crate) fn capture(&self, ends: [Endpoint; 2], delay: Duration) -> Vec<Segment> {
        let mut segments = self.log.clone().between(ends).capture_at(self.sixteenths);
        if let Some((packet, step)) = self.clock_step {
            for segment in segments.iter_mut().skip(packet) {
                segment.at = segment.at + step;
            }
        }
        if let Some(end) = self.only {
            segments.retain(|segment| segment.src == ends[end as usize]);
        }
        segments.drain(..self.starts_at.min(segments.len()));
        for (segment, packet) in segments.iter_mut().zip(1..) {
            segment.packet = packet;
            segment.at = segment.at + delay;
        }
        segments
    }
}

/// The n-th conversation's client and server, on separate hosts.
pub(crate) fn ends(n: u8) -> [Endpoint; 2] {
    [Endpoint::v4([10, 1, 0, n], 40_000 + u16::from(n)), Endpoint::v4([10, 2, 0, n], 80)]
}

/// Any conversation, with an undisturbed clock.
pub(crate) fn conversation() -> impl Strategy<Value = Conversation> {
    let troubles = (
        prop_oneof![3 => Just(0), 3 => Just(16), 2 => 1..16i64],
        prop::option::weighted(0.1, prop_oneof![Just(End::Client), Just(End::Server)]),
        prop_oneof![4 => Just(0usize), 1 => 1..30usize],
    );
    (packet_log(), troubles).prop_map(|(log, (sixteenths, only, starts_at))| Conversation {
        log,
        sixteenths,
        only,
        starts_at,
        clock_step: None,
    })
}

/// Any conversation, and perhaps a clock that steps.
pub(crate) fn conversation_with_steps() -> impl Strategy<Value = Conversation> {
    let step = (0..60usize, prop_oneof![-3_000_000_000..3_000_000_000i64, -200_000..200_000i64]);
    (conversation(), prop::option::weighted(0.3, step)).prop_map(|(conversation, step)| Conversation {
        clock_step: step.map(|(packet, ns)| (packet, Duration::from_nanos(ns))),
        ..conversation
    })
}

fn packet_log() -> impl Strategy<Value = PacketLog> {
    let opening = prop_oneof![
        6 => Just("handshake".to_owned()),
        1 => Just("@0 C syn\n+0.1 S syn\n+0.1 C ack".to_owned()),
        1 => Just("@0 C syn lost\n@1000 C syn\n+0 S syn\n+0 C ack".to_owned()),
        1 => Just("@0 C syn\n+0 S syn lost\n@1000 C syn\n+0 S syn\n+0 C ack".to_owned()),
        1 => Just("@0 C syn\n@0.5 S syn\n+0.5 C syn\n+0 S ack".to_owned()),
    ];
    let text = (opening, prop::collection::vec(line(), 0..40))
        .prop_map(|(opening, lines)| opening + "\n" + &lines.join("\n"));
    let path = (0..200_000i64, prop::option::weighted(0.2, 1_000_000..1_000_000_000u64));
    let numbers = [first_seq(), first_seq()];
    let options =
        (any::<bool>(), any::<bool>(), any::<bool>(), prop_oneof![Just(1 << 21), 3_000..200_000u32]);
    (text, path, numbers, options).prop_map(
        |(text, (rtt_us, rate), [client, server], (stamps, ip_ids, scale, window))| {
            let mut log = log(text)
                .rtt(Duration::from_micros(rtt_us))
                .first_seq(End::Client, client)
                .first_seq(End::Server, server)
                .window(End::Client, window)
                .window(End::Server, window);
            if let Some(rate) = rate {
                log = log.bottleneck(End::Server, rate);
            }
            if !stamps {
                log = log.without_timestamps();
            }
            if !ip_ids {
                log = log.without_ip_ids();
            }
            if !scale {
                log = log.without_window_scale();
            }
            log
        },
    )
}

/// One in two wraps within the conversation.
fn first_seq() -> impl Strategy<Value = u32> {
    prop_oneof![any::<u32>(), u32::MAX - BYTES_MAX..=u32::MAX]
}

fn line() -> impl Strategy<Value = String> {
    let pause_ms = prop_oneof![
        3 => Just(0.0),
        2 => Just(0.05),
        2 => Just(5.0),
        2 => Just(40.0),
        1 => Just(210.0),
        1 => Just(1_500.0),
        1 => Just(11_000.0),
        3 => (0..100_000i32).prop_map(|us| f64::from(us) / 1e3),
    ];
    let side = prop_oneof![Just("C"), Just("S")];
    let what = prop_oneof![
        5 => Just("ack".to_owned()),
        5 => prop_oneof![1..2_000u32, Just(1448u32), Just(20), Just(1), Just(5_000)].prop_map(|len| len.to_string()),
        3 => (1..30u32).prop_map(|count| format!("1448x{count}")),
        1 => (2..9u32, 1..3u32).prop_map(|(count, len)| format!("{len}x{count}")),
        2 => (0..BYTES_MAX / 4, 0..3_000u32).prop_map(|(start, len)| format!("{start}..{}", start + len)),
        1 => Just("fin".to_owned()),
    ];
    let rare = prop_oneof![40 => Just(None), 1 => Just(Some("rst")), 1 => Just(Some("syn"))];
    let what = (what, rare).prop_map(|(what, rare)| rare.map_or(what, str::to_owned));
    let window = prop_oneof![Just(0u32), Just(1), Just(500), Just(65_536), 0..5_000_000u32];
    let modifiers = (
        prop::bool::weighted(0.3),
        prop::bool::weighted(0.1),
        prop::bool::weighted(0.05),
        prop::bool::weighted(0.05),
        prop::option::weighted(0.15, window),
        prop::option::weighted(0.1, 0..50i32),
        prop::option::weighted(0.1, prop_oneof![Just(0.01), Just(1.0), Just(20.0)]),
    );
    (pause_ms, side, what, modifiers).prop_map(
        |(pause, side, what, (more, lost, unseen, twice, window, late, every))| {
            let mut line = format!("+{pause} {side} {what}");
            for (set, word) in [(more, " more"), (lost, " lost"), (unseen, " unseen"), (twice, " twice")] {
                line += if set { word } else { "" };
            }
            let numbers = [
                window.map(|bytes| format!(" win={bytes}")),
                late.map(|late| format!(" late={late}")),
                every.map(|every| format!(" every={every}")),
            ];
            line + &numbers.into_iter().flatten().collect::<Vec<_>>().concat()
        },
    )
}

/// Conversations on separate hosts, each beginning at its own time.
pub(crate) fn crowd() -> impl Strategy<Value = Vec<Vec<Segment>>> {
    prop::collection::vec((conversation(), 0..3_000i32), 1..5).prop_map(|crowd| {
        let each = crowd.iter().zip(1..);
        each.map(|((conversation, delay), n)| conversation.capture(ends(n), ms(*delay))).collect()
    })
}

/// Several captures merged by time; at equal times in the order of `captures`.
pub(crate) fn merge(captures: &[Vec<Segment>]) -> Vec<Segment> {
    let mut all: Vec<Segment> = captures.iter().flatten().copied().collect();
    all.sort_by_key(|segment| segment.at);
    number(all)
}

/// The packets numbered as in the capture.
pub(crate) fn number(mut segments: Vec<Segment>) -> Vec<Segment> {
    for (segment, packet) in segments.iter_mut().zip(1..) {
        segment.packet = packet;
    }
    segments
}
