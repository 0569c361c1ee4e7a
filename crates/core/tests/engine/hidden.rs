//! Hosts hidden between two ends, or state of an end, where a capture allows two readings: the
//! doubtful one is at most possible.

use tcpwhy_core::cause::Cause;
use tcpwhy_core::cause::Side::{Client, Path, Server};
use tcpwhy_core::report::Confidence::{Likely, Possible};
use tcpwhy_wire::{Duration, Endpoint};

use crate::packet_log::{CLIENT, End, SERVER, log, ms};
use crate::seen::Seen;

/// A virtual machine and a server beyond its user network, with no router's trace in the packets.
fn virtual_machine() -> [Endpoint; 2] {
    [Endpoint::v4([10, 0, 2, 15], 50_156), Endpoint::v4([116, 203, 91, 91], 80)]
}

/// The second piece of a reply leaves with the ACK of the first, which came by a timer, and the
/// third 21 ms later (frames 220 to 226 of a Diameter peer): the hold may have delayed its program.
/// One that had written several pieces before writes by its own clock.
#[test]
fn a_write_behind_the_first_hold_does_not_take_it_back() {
    let held = "#a\n a+39.5 C ack\n +0.03 S 164\n +0 C ack\n +21 S 66\n +0 C ack";
    for (before, kept) in [("", true), ("S 273\n +0 C ack\n +21 ", false)] {
        let text = format!("handshake\n +1 C 30\n +100 {before}S 273 {held}");
        let seen = log(text).rtt(ms(0.2)).seen_at(End::Server);
        let holds = seen.lines(Cause::NagleDelayedAck, Server);
        assert_eq!(holds.len(), usize::from(kept), "{seen}");
        if kept {
            assert!(holds[0].confidence == Possible && holds[0].ns >= ms(39), "{seen}");
            assert!(seen.spent(Cause::SenderThink, Server) <= ms(21.5), "{seen}");
        }
    }
}

/// The reply to ten segments is the first to acknowledge any of them, and only the first (frames
/// 277 to 296 of a phone): the others had not arrived, as a host acknowledges every second one. A
/// server that acknowledges on arrival and answers 590 ms later took that time itself.
#[test]
fn a_request_of_which_nothing_was_acknowledged_was_on_its_way() {
    for (acked, late) in [("", true), ("q+0 S ack\n ", false)] {
        let ack = if late { "ack=1448" } else { "" };
        let text = format!(
            "handshake\n +1 C 1448x10 #q\n {acked}q+590 S 1448 {ack} more\n +0 S 500 {ack}\n +0 C ack"
        );
        let seen = log(text).rtt(ms(280)).without_timestamps().seen_at(End::Client);
        let think = seen.lines(Cause::ServerThink, Server)[0];
        if late {
            assert!(think.ns <= ms(201) && think.confidence == Possible, "{seen}");
            assert!(seen.spent(Cause::Queueing, Path) >= ms(380), "{seen}");
        } else {
            assert!(think.ns >= ms(580) && think.confidence >= Likely, "{seen}");
        }
    }
}

/// A host in between opens its own connection first, which takes 31 ms. A request in two pieces is
/// answered 18 ms after the second, 33 after the first (frames 16 to 20 of a phone's emulator): it
/// may be the first one's reply. For a request in one piece, it comes sooner than the hidden path
/// allows.
#[test]
fn what_comes_too_soon_behind_the_second_piece_may_answer_the_first() {
    let [first, second] = ["+100 C 93 #a\n a+0 S ack\n ", "a+14.7 C 163 #a\n a+0 S ack\n "];
    for (asked, sure) in [(format!("{first}{second}"), Possible), (first.to_owned(), Likely)] {
        let text = format!(
            "@0 C syn\n @31 S syn\n +0 C ack\n +1 C 517 #h\n h+0 S ack\n h+29 S 1400\n +0 C ack\n {asked}a+18.3 S 274\n +0 C ack"
        );
        let seen = log(text).rtt(ms(0.4)).seen_at(End::Client);
        let bill = seen.exchange(2);
        let think = bill.of(Cause::ServerThink);
        assert!(think.ns >= ms(17) && think.confidence == sure, "{seen}");
    }
}

/// With a NAT that terminates TCP a request of two segments takes exactly twice the RTT (frames 182
/// to 186 of a virtual machine, and of another one): a part of it may have left a round later. If
/// it takes half an RTT more, the server has likely taken the rest. A short one goes in one round, but what comes
/// two rounds later or more may have been asked or sent again there (frames 161 to 190 of a virtual machine: 61 ms
/// behind a path of 54), until most of the wait is the server's by any reading.
#[test]
fn a_long_question_that_takes_twice_the_way_may_have_gone_in_two_rounds() {
    for (bytes, waits, sure) in [
        (1937, 413, Possible),
        (1937, 310, Likely),
        (517, 310, Likely),
        (517, 413, Possible),
        (517, 450, Possible),
        (517, 700, Likely),
    ] {
        let text = format!(
            "@0 C syn\n @206.4 S syn\n +0 C ack\n +1 C {bytes} #q\n q+0 S ack\n q+{waits} S 99\n +0 C ack"
        );
        let seen = log(text).rtt(ms(0.2)).between(virtual_machine()).seen_at(End::Client);
        let bill = seen.exchange(1);
        let think = bill.of(Cause::ServerThink);
        assert!(think.ns >= ms(100) && think.confidence == sure, "{bytes} {waits}: {seen}");
    }
}

/// A server answers the only request of a session a second late, with as many bytes, and closes
/// (frames 12 to 17 of a course's capture): that is no farewell. An alert of 31 bytes is one.
#[test]
fn what_is_as_long_as_its_question_answers_it_though_its_sender_closes() {
    for (bytes, answers) in [(106, true), (31, false)] {
        let text = format!(
            "handshake
             +0.2 C 289
             +1 S 974
             +1 C 326
             +4.2 S 234
             +0.2 C 90 #q
             q+38 S ack
             q+1020 S {bytes}
             +0.2 S fin
             +0 C fin"
        );
        let https = Endpoint { port: 443, ..SERVER };
        let seen = log(text).rtt(ms(0.5)).between([CLIENT, https]).seen_at(End::Client);
        let waited = !seen.longer(Cause::ServerThink, ms(1000)).is_empty();
        assert_eq!(waited, answers, "{bytes}: {seen}");
    }
}

/// A user network delivers 60 KB every 46 ms, acknowledged at once: the window is open, and nothing
/// is in flight (frames 420 to 837 of a virtual machine). Between other hosts these are rounds that
/// fill the window.
#[test]
fn a_host_in_between_that_has_nothing_under_way_waits_for_no_window() {
    let [client, server] = virtual_machine();
    for (client, held) in [(client, false), (Endpoint::v4([116, 203, 91, 7], 50_156), true)] {
        let rounds = "+46.4 S 1460x44 more\n +0 C ack\n ".repeat(8);
        let text = format!(
            "@0 C syn\n @46.4 S syn\n +0 C ack\n +1 C 404 #q\n q+47 S 1460x44 more\n +0 C ack\n {rounds}+46 S 110\n +0 C ack"
        );
        let seen = log(text)
            .rtt(ms(0.5))
            .between([client, server])
            .window(End::Client, 64_240)
            .without_window_scale()
            .without_timestamps()
            .seen_at(End::Client);
        assert_eq!(seen.spent(Cause::ReceiveWindow, Client) > ms(100), held, "{seen}");
        let sure =
            seen.exchange(1).exchange.bill.iter().any(|line| {
                line.side != Path && line.cause != Cause::ServerThink && line.confidence > Possible
            });
        assert!(held || !sure, "{seen}");
    }
}

/// A server pushes 561 bytes every second, over a path with 2 ms of jitter, and its client answers
/// each after 41 (frames 286 to 628 of an encrypted session): data a second after the last need not
/// answer it. A server that sleeps for a second is as late as its request was.
#[test]
fn what_comes_by_the_second_need_not_answer() {
    for (takes, sure) in [(960.8, Possible), (1000.0, Likely)] {
        let turns = format!("+41 C 66\n +0 S ack\n +{takes} S 561\n ").repeat(3);
        let text = format!("handshake\n +1 C 66\n +0 S ack\n +700 S 561\n {turns} +0 C ack");
        let seen = log(text).rtt(ms(0.4)).seen_at(End::Client);
        let bill = seen.exchange(2);
        assert_eq!(bill.of(Cause::ServerThink).confidence, sure, "{seen}");
    }
}

/// A virtual machine opens a connection after 321 ms, acknowledges a request after 3.6 ms and answers 566 ms later
/// (frames 325 to 339 of one): its clock ticks four times between the first two, twice between the others, so the
/// answer left within three of today's longest ticks. If it ticks on, there may be another host beyond.
#[test]
fn an_answer_that_left_soon_by_the_clock_of_the_acknowledgement_waited_behind_no_host() {
    for stopped in [true, false] {
        let text =
            "@0 C syn\n @319.1 S syn\n +0 C ack\n +0.7 C 416 #q\n q+0 S ack\n q+565.6 S 1124\n +0 C ack";
        let mut segments = log(text).rtt(ms(3.6)).capture(End::Client);
        let said = segments.iter_mut().filter(|segment| stopped && segment.src.port == 80);
        for (segment, val) in said.zip([64_215, 64_219, 64_221]) {
            segment.options.timestamps.as_mut().expect("a stamp").val = val;
        }
        let seen = Seen::of(segments, "a browser's");
        let (way, late) = (seen.spent(Cause::RoundTrip, Path), seen.lines(Cause::Queueing, Path));
        assert_eq!(way <= ms(4), stopped, "{seen}");
        assert_eq!(
            late.iter().any(|line| line.ns >= ms(535) && line.confidence == Possible),
            stopped,
            "{seen}"
        );
        assert!(!stopped || seen.spent(Cause::ServerThink, Server) <= ms(31), "{seen}");
    }
}

/// The third segment of a server's first flight comes 3 ms behind the second (frames 205 to 211 of a browser's
/// capture): only the handshake's ACK had reached the server by then, and that covers none of the flight.
#[test]
fn the_acknowledgement_of_a_handshake_releases_nothing_within_the_first_flight() {
    let text = "handshake\n +1.3 C 517 #q\n q+0 S 1448x2 more\n +0.2 S 1448 more\n +3 S 1300\n +0 C ack";
    let seen = log(text).rtt(ms(200)).without_timestamps().seen_at(End::Client);
    assert!(seen.lines(Cause::SlowStart, Server).is_empty(), "{seen}");
}

/// A user network acknowledges for a server 290 ms away, whose reply comes in rounds of 10, 20, 20 and 20 segments, each
/// a round trip of the path beyond after the one before it (frames 32 to 430 of a virtual machine): its congestion
/// window, possibly. A pause of half that time is its program's, and so is one after a few segments, unless it takes just as long as the
/// handshake (frames 131 to 142 of another, whose server begins with two segments).
#[test]
fn pauses_of_a_round_trip_beyond_a_host_in_between_are_rounds() {
    for (segments, pause, rounds) in [(10, 276, true), (10, 150, false), (4, 276, false), (2, 292, true)] {
        let twice = 2 * segments;
        let text = format!(
            "@0 C syn
             @290 S syn
             +0 C ack
             +1 C 404 #q
             q+0 S ack
             q+291 S 1448x{segments}
             +0 C ack
             +{pause} S 1448x{twice}
             +0 C ack
             +{pause} S 1448x{twice}
             +0 C ack
             +{pause} S 1448x{twice}
             +0 C ack"
        );
        let seen = log(text).rtt(ms(0.2)).between(virtual_machine()).seen_at(End::Client);
        let bill = seen.exchange(1);
        let own = bill.ns(Cause::SenderThink, Server);
        let [opening, used_up] =
            [Cause::SlowStart, Cause::CongestionWindow].map(|cause| bill.ns(cause, Server));
        let expected = if rounds { [ms(2 * pause), ms(pause), ms(0)] } else { [ms(0), ms(0), ms(3 * pause)] };
        let close = |held: Duration, expected: Duration| held - expected <= ms(2) && expected - held <= ms(2);
        let held = [opening, used_up, own];
        assert!(held.iter().zip(expected).all(|(held, expected)| close(*held, expected)), "{seen}");
    }
}

/// The longer a round's flight takes to pass, the shorter is the pause behind it: nine rounds that begin 124 to 131 ms
/// after one another, with pauses of 115 to 63 (frames 718 to 1514 of a virtual machine behind a user network).
#[test]
fn the_longer_a_flight_beyond_a_host_in_between_is_the_shorter_the_pause_behind_it() {
    let flight =
        |segments: u32, pace: f64| format!("+{pace} S 1276 more\n +0 C ack\n").repeat(segments as usize - 1);
    let [second, third] = [flight(20, 2.0), flight(40, 1.5)];
    let text = format!(
        "@0 C syn
         @140 S syn
         +0 C ack
         +1 C 404 #q
         q+0 S ack
         q+141 S 1276x10
         +0 C ack
         +128 S 1276 #two
         {second} two+128 S 1276 #three
         {third} three+128 S 1276
         +0 C ack"
    );
    let seen = log(&text).rtt(ms(0.2)).between(virtual_machine()).seen_at(End::Client);
    let bill = seen.exchange(1);
    let held: Duration =
        [Cause::SlowStart, Cause::CongestionWindow].map(|cause| bill.ns(cause, Server)).into_iter().sum();
    assert!(held >= ms(270), "{seen}");
}

/// A radio beyond a virtual machine's NAT: 39 ms of handshake, and rounds of 10, 12, 24 and 20 segments, three of which take 71, 55 and 62 ms (frames
/// 15 to 80 of a download): no flight is smaller than the one before until the last one, behind which its program may pause.
#[test]
fn a_round_that_grows_may_take_longer_than_the_handshake_beyond_a_host_in_between() {
    let text = "@0 C syn
         @39 S syn
         +0 C ack
         +1 C 161 #q
         q+0 S ack
         q+56 S 1388x10
         +0 C ack
         +70 S 1388x12
         +0 C ack
         +55 S 1388x24
         +0 C ack
         +62 S 1388x20
         +0 C ack
         +65 S 1388x24
         +0 C ack";
    let seen = log(text).rtt(ms(0.2)).between(virtual_machine()).seen_at(End::Client);
    let bill = seen.exchange(1);
    assert!(
        (bill.ns(Cause::SlowStart, Server) + bill.ns(Cause::CongestionWindow, Server) - ms(187))
            .as_nanos()
            .abs()
            <= 2_000_000,
        "{seen}"
    );
    assert!((bill.ns(Cause::SenderThink, Server) - ms(65)).as_nanos().abs() <= 2_000_000, "{seen}");
}
