//! A capture made worse (begun midway, cut to 64 bytes, stamped in whole milliseconds) says less than the
//! whole one, or the same, never something else.

use tcpwhy_core::cause::Cause;
use tcpwhy_core::cause::Side::{Client, Path, Server};
use tcpwhy_core::report::Confidence::{Certain, Likely, Possible};
use tcpwhy_core::report::Kind;
use tcpwhy_wire::{Instant, Segment, TcpOptions};

use crate::packet_log::{End, MSS, PacketLog, SERVER, each, log, ms, settled};
use crate::seen::{HAIR, Seen};

/// Without a handshake.
fn midway(log: &PacketLog, end: End) -> Seen {
    Seen::of(log.capture(end).split_off(3), &format!("the {end:?}, midway"))
}

/// By a clock of milliseconds.
fn in_whole_ms(log: &PacketLog, end: End) -> Seen {
    let whole = |at: Instant| Instant::from_nanos(at.as_nanos() / 1_000_000 * 1_000_000);
    let segments = log.capture(end).into_iter();
    Seen::of(segments.map(|one| Segment { at: whole(one.at), ..one }).collect(), "whole milliseconds")
}

/// 64 bytes of each frame lack a SYN's options, but not those of a segment that has none: it takes 1,460
/// bytes of payload, and one IP identification. The second copy of a segment is no second sighting of the
/// first.
#[test]
fn a_full_segment_without_options_is_one_packet() {
    let text = settled(4)
        + "+5 C 100 #q\n q+1 S 1460 lost more\n +0 S 1460x3\n +0 C ack\n +0 S 800..2260 lost #again
 again+400 S 800..2260\n +0 C ack";
    let talk = log(text).rtt(ms(80)).without_timestamps();
    let mut segments = talk.capture(End::Server);
    let of_server = |one: &&mut Segment| one.src == SERVER && !one.flags.syn();
    for (segment, id) in segments.iter_mut().filter(of_server).zip(700..) {
        segment.ip_id = Some(id); // one for each, as none is larger than a packet
    }
    let whole = Seen::of(segments.clone(), "the server").spent(Cause::Rto, Path);
    assert!(whole >= ms(399), "{whole}");
    for options in segments.iter_mut().map(|segment| &mut segment.options) {
        let announced = options.mss;
        if announced.is_some() || !options.sack().is_empty() {
            *options = TcpOptions::default();
            (options.mss, options.cut) = (announced, true);
        }
    }
    let seen = Seen::of(segments, "64 bytes of each frame");
    let cut = seen.spent(Cause::Rto, Path);
    assert!((cut - whole).max(whole - cut) <= HAIR, "{cut} for {whole}: {seen}");
    assert_eq!(seen.notes("duplicates"), 0, "{seen}");
}

/// Behind two pieces of 1,446 bytes, as the capture has them, one segment of 1,430 leaves with each
/// acknowledgement of the one before: that may be all that the path takes. One of 600 bytes is partial.
#[test]
fn a_segment_that_may_be_full_is_not_corked() {
    for (bytes, corked) in [(1430, false), (600, true)] {
        let more = each(0..6, |n| format!(" +0 S {bytes} more\n +0 C ack ack={}", 2892 + n * bytes));
        let text = format!(
            "handshake\n +5 C 100 #q\n q+1 S 1446x2 more\n +0 C ack ack=1446\n{more}\n +0 S 300\n +0 C ack"
        );
        let seen = midway(&log(text).rtt(ms(150)).without_timestamps(), End::Server);
        assert_eq!(seen.spent(Cause::Cork, Server) > ms(100), corked, "{bytes}: {seen}");
    }
}

/// The first acknowledgement of a capture that begins midway had a queue's delay. Nothing agrees with it, as
/// later ones do with each other.
#[test]
fn a_round_trip_that_none_agrees_with_is_no_more_than_possible() {
    let round = "+5 C 100\n +0 S ack\n +5 S 200\n +0 C ack\n".repeat(3);
    for (late, expected) in [(600, Possible), (0, Likely)] {
        let first = format!("+5 C 100 late={late}\n +0 S ack\n +0.3 S 200\n +0 C ack\n");
        let talk = log(format!("handshake\n {first}{round}")).rtt(ms(70));
        let seen = midway(&talk, End::Client);
        let n = if late > 0 { 1 } else { 3 };
        let way = seen.exchange(n);
        assert_eq!(way.of(Cause::RoundTrip).confidence, expected, "{seen}");
    }
}

/// By a clock of milliseconds both ends of a network of 0.2 ms are as near: neither is known to have dropped
/// a SYN that passed.
#[test]
fn a_coarse_clock_does_not_show_who_dropped_a_syn() {
    let text =
        "@0 C syn refused\n @1000 C syn\n +0 S syn\n +0 C ack\n +5 C 100\n +0 S ack\n +5 S 200\n +0 C ack";
    let lost = log(text).rtt(ms(0.2));
    for seen in [lost.seen_at(End::Client), in_whole_ms(&lost, End::Client)] {
        assert!(seen.lines(Cause::SynRetransmit, Server).is_empty(), "{seen}");
        assert!(seen.spent(Cause::SynRetransmit, Path) >= ms(999), "{seen}");
    }
    let dropped = lost.seen_at(End::Server);
    assert!(!dropped.lines(Cause::SynRetransmit, Server).is_empty(), "{dropped}");
}

/// A handshake of 80 ms and acknowledgements within 0.5 ms: a host in between acknowledges, or the server
/// took its time to accept. A clock of milliseconds does not make either less likely.
#[test]
fn a_handshake_longer_than_a_coarse_clock_s_way_is_not_certain() {
    let text = "@0 C syn\n +80 S syn\n +0 C ack\n".to_owned()
        + &"+5 C 100 #q\n q+0 S ack\n q+90 S 200\n +0 C ack\n".repeat(3);
    let talk = log(text).rtt(ms(0.4));
    for seen in [talk.seen_at(End::Client), in_whole_ms(&talk, End::Client)] {
        let setup = seen.setup();
        assert_eq!(setup.exchange.kind, Kind::Setup);
        let way = seen.lines(Cause::Handshake, Client);
        assert!(way.iter().all(|line| line.confidence <= Likely), "{seen}");
    }
}

/// A capture that begins midway, of a program that sends one byte and the rest apart, between hosts that acknowledge
/// every 45 ms (frames 1 to 12 of a remote screen): the distance to the client is known only from such
/// acknowledgements, which say nothing, and the rest left at once behind one.
#[test]
fn acknowledgements_of_a_timer_are_no_distance() {
    let text = "handshake\n".to_owned()
        + "+5 S 1 #a\n a+45.2 C ack\n +0.9 S 29 #b\n b+45.8 C ack\n +238 C 1\n +0.35 C 2847\n +0.7 S ack\n +0.05 C 1\n +0.9 S ack\n +2900 C 1 #q\n q+47.2 S ack\n +0.05 C 76\n +47 S ack\n +170 S 40\n +45 C ack";
    let seen = midway(&log(text).rtt(ms(0.1)).without_timestamps(), End::Client);
    assert!(seen.spent(Cause::NagleDelayedAck, Client) >= ms(47), "{seen}");
}

/// The acknowledgement that let the second 20 segments go is not in the capture, and so these went beyond every
/// window: the next acknowledgement need not be the one that opened the window for the rest.
#[test]
fn whoever_went_beyond_the_window_had_read_an_update_that_is_missing() {
    for (missing, most) in [(" unseen", Possible), ("", Certain)] {
        let [first, second] = [20 * MSS, 40 * MSS];
        let text = format!(
            "handshake\n +5 C 100\n +0 S 1448x20 more\n +0 C ack win={second}{missing}\n +0 S 1448x40 more\n +0 C ack win={second}\n +0 S 1448x40 more\n +0 C ack\n +0 S 100\n +0 C ack"
        );
        let log = log(text).rtt(ms(40)).window(End::Client, first as u32).without_window_scale();
        let seen = log.seen_at(End::Client);
        let lines = seen.lines(Cause::ReceiveWindow, Client);
        assert!(lines.iter().any(|line| line.confidence == most), "{missing}: {seen}");
        assert!(lines.iter().all(|line| line.confidence <= most), "{missing}: {seen}");
    }
}

/// Ten segments are missing from the capture, though acknowledged, and with them the acknowledgement of the piece
/// behind which the program seems to pause. Where all passed, it does.
#[test]
fn a_pause_behind_a_stretch_that_the_capture_missed_is_no_more_than_possible() {
    for (missing, most) in [(" unseen", Possible), ("", Certain)] {
        let text = settled(2)
            + &format!(
                "+5 C 100\n +0 S 1448x10 more{missing}\n +0 C ack{missing}\n +0 S 337 #p\n p+0 C ack\n p+60 S 1448\n +0 C ack"
            );
        let seen = log(text).rtt(ms(20)).seen_at(End::Server);
        let lines = seen.lines(Cause::SenderThink, Server);
        assert!(!lines.is_empty() && lines.iter().all(|line| line.confidence <= most), "{missing}: {seen}");
        assert!(missing.is_empty() == lines.iter().any(|line| line.confidence > Possible), "{seen}");
    }
}

/// The rest of the reply is missing, and a late acknowledgement of all of it does not say that a link needed so long
/// for what was captured.
#[test]
fn an_acknowledgement_of_what_is_missing_shows_no_link() {
    let round = "+5 C 100\n +0 S 1448x2 more\n +0 S 100\n +0 C ack\n".repeat(2);
    let text = format!(
        "handshake\n {round}+5 C 100 #q\n q+0 S 1448x2 more #a\n a+0 S 100 #b\n a+0.1 C ack ack=8888\n b+300 S 1448x4 unseen #c\n c+0 C ack\n"
    );
    let seen = log(text).rtt(ms(80)).seen_at(End::Server);
    let lines = seen.lines(Cause::Bandwidth, Path);
    assert!(lines.iter().all(|line| line.ns < ms(2) || line.confidence == Possible), "{seen}");
}

/// Whether the window was reset after a second of silence is not known if packets of that second are missing: flights
/// that end below the largest one are in avoidance, or start again.
#[test]
fn what_is_missing_from_a_silence_leaves_open_whether_a_window_was_reset() {
    for (missing, most) in [(" unseen", Possible), ("", Likely)] {
        let flights = |n: &[u32]| each(n, |n| format!("+0 S 1448x{n} more\n +0 C ack"));
        let text = format!(
            "handshake\n +5 C 100\n {}\n +0 S 100\n +0 C ack\n +600 C 100{missing}\n +0 S 1448x10{missing}\n +0 C ack{missing}\n +900 C 100 #q\n {}\n +0 S 100\n +0 C ack",
            flights(&[10, 20, 40]),
            flights(&[10, 20, 30])
        );
        let seen = log(text).rtt(ms(60)).seen_at(End::Server);
        let last = seen.connection().exchanges.last().expect("an exchange");
        let held = [Cause::SlowStart, Cause::SlowStartAfterIdle, Cause::CongestionWindow];
        let lines = last.bill.iter().filter(|line| held.contains(&line.cause) && line.ns > ms(50));
        assert!(lines.clone().count() > 0 && lines.clone().all(|line| line.confidence == most), "{seen}");
    }
}
