//! What holds for every conversation? Sums are sums; the order of unrelated connections does not
//! matter, nor where time and sequence numbers begin; and no interval is billed twice.

use proptest::prelude::*;
use tcpwhy_core::cause::{Cause, Side};
use tcpwhy_core::report::{Connection, Exchange, Report};
use tcpwhy_core::{Analysis, Credit, Listing, Mark, Options, Role};
use tcpwhy_wire::{Duration, Segment, Seq, TcpOptions};

use crate::generate::{conversation, conversation_with_steps, crowd, ends, merge, number};
use crate::invariants::{EVERYTHING, analyse, analyse_marked, check};
use crate::spread::spread;

proptest! {
    // Failures are printed as packet logs, to be kept as separate tests.
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn sums_are_sums(conversation in conversation_with_steps()) {
        check(&analyse(&conversation.capture(ends(1), Duration::ZERO)));
    }

    /// Whatever the marks say about messages: sums are sums, and the fast path does what the
    /// general one does.
    #[test]
    fn marks_of_any_kind_keep_the_books(
        conversation in conversation_with_steps(),
        marks in proptest::collection::vec(any_mark(), 1..40),
    ) {
        let capture = conversation.capture(ends(1), Duration::ZERO);
        let of = |segment: &Segment| -> Vec<Mark> {
            let n = segment.packet as usize % (2 * marks.len());
            let from = marks.get(n..(n + n % 3).min(marks.len())).unwrap_or_default();
            from.iter().map(|&(mark, at, len)| {
                let seq = segment.seq + at;
                Mark { seq, end: len.map(|len| seq + len), ..mark }
            }).collect()
        };
        check(&analyse_marked(&capture, of));
    }

    /// A connection's bill equals that of a separate capture, whatever other connections do
    /// meanwhile.
    #[test]
    fn strangers_do_not_matter(crowd in crowd()) {
        let together = analyse(&merge(&crowd));
        check(&together);
        let mut apart: Vec<Connection> = crowd
            .iter()
            .flat_map(|capture| analyse(capture).connections)
            .collect();
        let mut together = together.connections;
        for connections in [&mut apart, &mut together] {
            connections.iter_mut().for_each(forget_numbers);
            connections.sort_by_key(|c| (c.client.min(c.server), c.exchanges.first().map(|e| e.start), c.packets));
        }
        prop_assert_eq!(apart, together);
    }

    /// Packets of the same time may be captured in any order of the connections.
    #[test]
    fn the_order_of_strangers_does_not_matter(crowd in crowd()) {
        let one = analyse(&merge(&crowd));
        let backwards: Vec<Vec<Segment>> = crowd.iter().rev().cloned().collect();
        let other = analyse(&merge(&backwards));
        prop_assert_eq!((one.elapsed, one.exchanges, one.bill), (other.elapsed, other.exchanges, other.bill));
    }

    /// The report is the same for any number of shards, wherever the connections are kept, and
    /// whether or not pairs of hosts take turns; also with more connections than allowed.
    #[test]
    fn shards_places_and_turns_do_not_matter(
        crowd in crowd(),
        shards in 2..5usize,
        seed in any::<u64>(),
        max_connections in 1..5usize,
    ) {
        let segments = merge(&crowd);
        let options = Options { max_connections, ..EVERYTHING };
        let mut one_by_one = Analysis::new(options);
        for segment in &segments {
            one_by_one.on_segment(segment);
        }
        let expected = one_by_one.finish();
        check(&expected);
        // When looking for one connection, packets are processed in their own order.
        let mut in_order = Analysis::new(Options { seed, listing: Listing::Connection(u64::MAX), ..options });
        for segment in &segments {
            in_order.on_segment(segment);
        }
        let in_order = in_order.finish();
        prop_assert_eq!((&in_order.bill, &in_order.findings), (&expected.bill, &expected.findings));
        prop_assert_eq!(spread(&segments, Options { seed, ..options }, shards), expected);
    }

    /// Rounds of a transfer follow each other within its packets, and nothing reported of the ends
    /// exceeds what they sent.
    #[test]
    fn conduct_stays_within_the_packets(conversation in conversation_with_steps()) {
        let segments = conversation.capture(ends(1), Duration::ZERO);
        let mut analysis = Analysis::new(Options { listing: Listing::Connection(1), ..EVERYTHING });
        for segment in &segments {
            analysis.on_segment(segment);
        }
        for connection in &analysis.finish().connections {
            for side in [Side::Client, Side::Server] {
                let conduct = connection.conduct(side);
                let own = connection.ladder.iter().filter(|rung| rung.from == side).count();
                let told = conduct.acknowledging.map_or(0, |of| of.prompt + of.held + of.with_data);
                prop_assert!(told as usize <= own);
                prop_assert!(conduct.writes.iter().all(|write| write.times as usize <= own));
            }
            for exchange in &connection.exchanges {
                for pair in connection.rounds(exchange).windows(2) {
                    prop_assert_eq!(pair[0].start + pair[0].took, pair[1].start);
                }
            }
        }
    }

    #[test]
    fn time_may_begin_anywhere(conversation in conversation_with_steps(), shift_s in -1_700_000_000..4_000_000_000i64) {
        let shift = Duration::from_secs(shift_s) + Duration::from_nanos(shift_s);
        let segments = conversation.capture(ends(1), Duration::ZERO);
        let shifted = segments.iter().map(|segment| Segment { at: segment.at + shift, ..*segment });
        let mut expected = analyse(&segments);
        for connection in &mut expected.connections {
            connection.exchanges.iter_mut().for_each(|exchange| exchange.start = exchange.start + shift);
            connection.span = connection.span.map(|at| at + shift);
        }
        prop_assert_eq!(analyse(&shifted.collect::<Vec<_>>()), expected);
    }

    #[test]
    fn sequence_numbers_may_begin_anywhere(
        conversation in conversation_with_steps(),
        offsets in prop_oneof![any::<[u32; 2]>(), [0..60_000u32, 0..60_000u32]],
    ) {
        let segments = conversation.capture(ends(1), Duration::ZERO);
        let [client, server] = offsets;
        let renumbered = segments.iter().map(|segment| {
            let (own, peer) = if segment.src == ends(1)[0] { (client, server) } else { (server, client) };
            renumber(segment, own, peer)
        });
        prop_assert_eq!(analyse(&renumbered.collect::<Vec<_>>()), analyse(&segments));
    }

    /// A bill covers the time from its first to its last packet and the path beyond the capture
    /// point, which is in its lines for the path. Without that path the bills of a connection
    /// follow each other, except for two requests of which the second was sent before the first had
    /// its reply, and which that does not acknowledge.
    #[test]
    fn no_interval_is_billed_twice(conversation in conversation()) {
        let segments = conversation.capture(ends(1), Duration::ZERO);
        let report = analyse(&segments);
        for connection in &report.connections {
            let mut exchanges: Vec<&Exchange> = connection.exchanges.iter().collect();
            exchanges.sort_by_key(|exchange| exchange.n);
            let beside = |pair: &[&Exchange]| pair[0].packets[1] > pair[1].packets[0];
            // Nothing is billed for a message that nobody waited for.
            let billed = |pair: &&[&Exchange]| pair[0].elapsed.is_positive();
            for pair in exchanges.windows(2).filter(|pair| !beside(pair)).filter(billed) {
                let end = pair[0].start + (pair[0].elapsed - way(pair[0]));
                prop_assert!(
                    end <= pair[1].start,
                    "{} is billed until {} ns behind the start of {}", pair[0].n, (end - pair[1].start).as_nanos(), pair[1].n
                );
            }
            let all_apart = !exchanges.windows(2).any(beside);
            if let (Some(first), Some(last), true) = (segments.first(), segments.last(), all_apart) {
                let billed: Duration = exchanges.iter().map(|exchange| exchange.elapsed - way(exchange)).sum();
                prop_assert!(billed <= last.at - first.at, "{billed} in {}", last.at - first.at);
            }
        }
    }
}

/// A mark, where in its segment it begins, and how long its message is.
fn any_mark() -> impl Strategy<Value = (Mark, u32, Option<u32>)> {
    let roles = prop_oneof![
        4 => Just(Role::Asks),
        4 => Just(Role::Answers),
        1 => Just(Role::Subscribes),
        1 => Just(Role::Defers),
        1 => Just(Role::Tells),
        1 => Just(Role::Greets),
        1 => Just(Role::Neither),
        1 => Just(Role::Lost),
        1 => Just(Role::Sealed),
        1 => Just(Role::Alert),
    ];
    let id = proptest::option::of(0..4_u64);
    let len = proptest::option::of(prop_oneof![Just(0), 1..3_000_u32, Just(u32::MAX / 2)]);
    let at = prop_oneof![4 => Just(0), 1 => 0..2_000_u32, 1 => any::<u32>()];
    let credit = proptest::option::of(prop_oneof![
        any::<u32>().prop_map(Credit::Uses),
        any::<u32>().prop_map(Credit::Grants),
        any::<u32>().prop_map(Credit::Initial),
    ]);
    let says = (roles, id, any::<[bool; 4]>(), credit);
    (says, at, len).prop_map(|((role, id, [first, last, by_peer, session], credit), at, len)| {
        let released = false;
        (Mark { seq: Seq(0), end: None, role, id, first, last, by_peer, session, released, credit }, at, len)
    })
}

/// At most this much of a bill is beyond what the capture saw.
fn way(exchange: &Exchange) -> Duration {
    let lines = exchange.bill.iter();
    lines
        .filter(|line| matches!(line.cause, Cause::RoundTrip | Cause::Handshake | Cause::Queueing))
        .map(|line| line.ns)
        .sum()
}

/// Removes the fields that say where in the capture a connection was.
fn forget_numbers(connection: &mut Connection) {
    connection.id = 0;
    connection.packet_range = [0; 2];
    for exchange in &mut connection.exchanges {
        exchange.packets = [0; 2];
        for line in &mut exchange.bill {
            line.evidence.iter_mut().for_each(|packet| *packet = 0);
        }
    }
}

fn renumber(segment: &Segment, own: u32, peer: u32) -> Segment {
    let mut options = TcpOptions::default();
    (options.mss, options.window_scale) = (segment.options.mss, segment.options.window_scale);
    (options.sack_permitted, options.timestamps) =
        (segment.options.sack_permitted, segment.options.timestamps);
    for mut block in segment.options.sack().iter().copied() {
        block.start += peer;
        block.end += peer;
        options.push_sack(block);
    }
    let ack = if segment.flags.ack() { segment.ack + peer } else { Seq(0) };
    Segment { seq: segment.seq + own, ack, options, ..*segment }
}

#[test]
fn a_capture_without_packets_is_an_empty_report() {
    assert_eq!(analyse(&number(Vec::new())), Report::default());
}
