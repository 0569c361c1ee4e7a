//! Do the shortcuts change anything but the time? Against the model without any: each segment is
//! processed when it comes, and each mechanism is asked each time.

use proptest::prelude::*;
use tcpwhy_core::{Analysis, Listing, Options, Report};
use tcpwhy_gen::{Generator, Shape};
use tcpwhy_wire::capture::writer::PcapWriter;
use tcpwhy_wire::capture::{Event, LinkType, Reader};
use tcpwhy_wire::decode::decode;
use tcpwhy_wire::{Duration, Endpoint, Segment};

use crate::generate::{conversation_with_steps, crowd, ends, merge};
use crate::invariants::EVERYTHING;
use crate::packet_log::{CLIENT, End, SERVER, log, ms};
use crate::seen::Seen;

/// Several epochs, and connections from their first packet to their last.
const PACKETS: u64 = 60_000;

/// More cases than elsewhere.
fn twice_as_many() -> ProptestConfig {
    let usual = ProptestConfig::default();
    ProptestConfig { failure_persistence: None, cases: 2 * usual.cases, ..usual }
}

/// With all packets.
const DRAWN: Options = Options { listing: Listing::Drawn(1_000_000), ..EVERYTHING };

fn listing() -> impl Strategy<Value = Listing> {
    prop_oneof![Just(Listing::None), Just(Listing::Drawn(9)), (0..9u64).prop_map(Listing::UpTo)]
}

proptest! {
    #![proptest_config(twice_as_many())]

    #[test]
    fn shortcuts_change_no_conversation(conversation in conversation_with_steps()) {
        let segments = conversation.capture(ends(1), Duration::ZERO);
        prop_assert_eq!(report(&segments, EVERYTHING), plain_report(&segments, EVERYTHING));
        prop_assert_eq!(report(&segments, DRAWN), plain_report(&segments, DRAWN));
    }

    #[test]
    fn shortcuts_change_no_crowd(crowd in crowd(), listing in listing()) {
        let segments = merge(&crowd);
        let options = Options { listing, ..EVERYTHING };
        prop_assert_eq!(report(&segments, options), plain_report(&segments, options));
    }
}

#[test]
fn shortcuts_change_no_generated_capture() {
    for shape in Shape::ALL {
        let segments = segments(shape);
        let some = &segments[..segments.len().min(PACKETS as usize / 20)];
        assert!(report(some, EVERYTHING) == plain_report(some, EVERYTHING), "{shape}");
        let options = Options { checked: false, ..EVERYTHING };
        assert!(report(&segments, options) == plain_report(&segments, EVERYTHING), "{shape}");
        assert!(report(some, DRAWN) == plain_report(some, DRAWN), "{shape}");
        let drawn = report(&segments, Options { checked: false, ..DRAWN });
        assert_eq!(
            drawn
                .connections
                .iter()
                .map(|of| of.steps.as_ref().map_or(0, |steps| steps.packets().count()))
                .sum::<usize>(),
            segments.len()
        );
    }
}

fn plain_report(segments: &[Segment], options: Options) -> Report {
    report(segments, Options { plain: true, checked: false, ..options })
}

fn report(segments: &[Segment], options: Options) -> Report {
    let mut analysis = Analysis::new(options);
    for segment in segments {
        analysis.on_segment(segment);
    }
    analysis.finish()
}

fn segments(shape: Shape) -> Vec<Segment> {
    let mut writer = PcapWriter::new(LinkType::ETHERNET, shape.snaplen());
    let mut generator = Generator::new(shape, PACKETS, 1);
    while let Some(packet) = generator.next() {
        writer.packet(packet.at, packet.original_len, packet.data);
    }
    let (mut reader, mut rest, mut segments) = (Reader::new(), writer.bytes(), Vec::new());
    loop {
        let step = reader.next(rest, true);
        rest = &rest[step.consumed..];
        match step.event {
            Event::Packet(packet) => segments.extend(decode(&packet)),
            Event::Skipped | Event::Damaged(_) => {}
            Event::NeedMore(_) | Event::End => return segments,
        }
    }
}

/// A window advertised only by a SYN-ACK until then counts from the first segment that repeats it.
#[test]
fn shortcuts_change_no_window() {
    let log = log("@0 C syn\n +0 S syn\n +0 C ack\n +0 S ack win=1\n +0 S syn\n +0 S 1\n +0 C 1\n +1 C 1");
    let segments =
        log.rtt(Duration::ZERO).window(End::Server, 65_535).without_window_scale().capture(End::Client);
    assert_eq!(report(&segments, EVERYTHING), plain_report(&segments, EVERYTHING));
}

/// Within 0.2 ms, which is a burst: a write held by Nagle, a tail with more to come, a round of a
/// window.
#[test]
fn shortcuts_change_no_short_wait() {
    let nagle = "+5 C 20\n +0.05 S ack\n +0 C 100\n +0.05 S 64";
    let more = "+5 C 100\n +0 S 1448x3\n +0.05 C ack\n +0 S 656 more\n +0 C ack";
    let window = "+5 C 100\n +0 S 1448x10 more\n +0.05 C ack\n +0 S 1448x20\n +0 C ack";
    for text in [nagle, more, window] {
        for end in End::BOTH {
            let log = log(format!("handshake\n {text}")).rtt(Duration::from_micros(40));
            let segments = log.capture(end);
            assert_eq!(report(&segments, EVERYTHING), plain_report(&segments, EVERYTHING), "{text}");
        }
    }
}

/// This many pieces without a reply are a stream, in which data that leaves at the same moment
/// begins a separate message.
#[test]
fn shortcuts_change_no_stream() {
    let pieces: String = (0..32)
        .flat_map(|n| ["\n+".to_owned(), (250 + 7 * n).to_string(), " C 10\n+0 S ack".to_owned()])
        .collect();
    let burst = "\n+600 C 1448\n+0 S ack\n+0 C 1448\n+0 S ack\n+0 C 1448\n+0 S ack";
    let segments = log(format!("handshake{pieces}{burst}")).rtt(Duration::ZERO).capture(End::Client);
    assert_eq!(report(&segments, EVERYTHING), plain_report(&segments, EVERYTHING));
}

/// A probe of a closed window leaves what comes next as it was, so a second sighting of it is not
/// new.
#[test]
fn shortcuts_change_no_probe() {
    let log = log(
        "handshake\n+1 C 1000\n+1 S ack win=0\n+250 C 1 twice\n+1 S ack win=0\n+500 C 1 twice\n+1 S ack win=65536",
    );
    let segments = log
        .rtt(Duration::ZERO)
        .window(End::Server, 1_000)
        .without_window_scale()
        .without_ip_ids()
        .capture(End::Client);
    assert_eq!(report(&segments, EVERYTHING), plain_report(&segments, EVERYTHING));
}

/// A reply shows that its server is less than half as far away as the handshake said: another host
/// may be beyond it.
#[test]
fn shortcuts_change_no_answer_that_comes_sooner_than_any_packet_before() {
    for text in ["handshake\n+0 C 1\n+0 S 2 lost", "handshake\n+0 C 100\n+0 S 20 lost"] {
        let segments = log(text).rtt(ms(136)).without_ip_ids().capture_at(1);
        assert_eq!(report(&segments, EVERYTHING), plain_report(&segments, EVERYTHING));
    }
}

/// A connection that is steadily 15 ms longer than another between the same hosts: likely, its handshake too.
#[test]
fn shortcuts_change_no_way_longer_than_a_sibling_s() {
    let turns = "\n +5 C 100\n +20 S 200\n +0 C ack".repeat(4);
    let second = log(format!("@900 C syn\n +0 S syn\n +0 C ack {turns}")).rtt(ms(55));
    let logs = [
        log(format!("handshake {turns}")).rtt(ms(40)),
        second.between([Endpoint { port: 40_001, ..CLIENT }, SERVER]),
    ];
    for end in End::BOTH {
        let mut segments: Vec<Segment> = logs.iter().flat_map(|log| log.capture(end)).collect();
        segments.sort_by_key(|segment| segment.at);
        assert_eq!(report(&segments, EVERYTHING), plain_report(&segments, EVERYTHING), "{end:?}");
    }
}

/// A packet captured before does not query other connections between the same hosts, in whatever
/// order they are processed.
#[test]
fn shortcuts_change_no_second_sighting() {
    let log = log(
        "handshake\n+0 C ack\n+0 C fin\n+0 S fin\n+0 C 5000\n+11000 S 1448x8\n+1500 S 0..0\n+0 C fin\n+0 C 0..1\n+12.722 S 1",
    );
    let segments = log.rtt(Duration::ZERO).without_window_scale().without_ip_ids().capture(End::Client);
    assert_eq!(report(&segments, EVERYTHING), plain_report(&segments, EVERYTHING));
}

/// The first part of a request in two parts has its reply; the next messages are the second part's
/// until that has one, however they are processed.
#[test]
fn shortcuts_change_no_question_in_parts() {
    let log = log("handshake\n+10 C ack\n+0 C 1448x7\n+0 S ack\n+50 C 10156..10157 more\n+0 C 10157..10158
        @370.6875 C 10136..10156\n@450 S 1 ack=10136\n+40 S ack\n+10 C 10");
    let segments = log.rtt(ms(150)).without_window_scale().without_ip_ids().capture(End::Client);
    assert_eq!(report(&segments, EVERYTHING), plain_report(&segments, EVERYTHING));
}

/// A reply that its server's stamps seem to show late answers a request in two pieces, after a SYN-ACK was lost: the usual path
/// remembers that as the general one does (each packet of a log takes both).
#[test]
fn a_reply_that_seems_late_is_remembered_on_both_paths() {
    let text = "@0 C syn\n +0 S syn lost\n @1000 C syn\n +0 S syn\n +0 C ack\n +0 C 196\n +0 C 1253\n +5 S ack\n +0 S 47";
    let path = log(text).rtt(ms(56.217)).without_ip_ids().without_window_scale();
    let seen = Seen::of(path.capture_at(1), "a sixteenth of the way from the client");
    assert_eq!(seen.connection().exchanges.len(), 2, "{seen}");
}
