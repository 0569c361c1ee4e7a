//! What a fourth reading of strangers' captures showed, as packet logs.

use tcpwhy_core::cause::Cause;
use tcpwhy_core::report::Confidence::{self, Certain, Likely, Possible};
use tcpwhy_core::report::Line;
use tcpwhy_wire::{Duration, Segment};

use crate::packet_log::{End, each, log, ms};
use crate::seen::Seen;

fn think(seen: &Seen, n: usize) -> Confidence {
    seen.exchange(n).of(Cause::ServerThink).confidence
}

/// Both ends of an idle connection send heart-beats of 53 bytes within TLS, every four and every five seconds (frames 11 to 19 of a
/// controller's): the next one of the server's answers nothing. A client that asks anew as soon as it has its answer waits.
#[test]
fn who_asks_seldom_may_not_have_asked() {
    for (idle, question, most) in [(4_000, 53, Possible), (5, 53, Likely), (4_000, 500, Likely)] {
        let text = format!(
            "handshake\n +0 C 110\n +0.2 S 110\n +0.1 C 318\n +0.3 S 314\n +0 C ack\n \
             +{idle} C {question}\n +40 S ack\n +920 S 53\n +0 C ack"
        );
        log(text).rtt(ms(0.3)).both_ends(|seen| {
            let bound = if most == Possible { Possible } else { Likely };
            assert_eq!(think(seen, 3) <= Possible, bound == Possible, "{idle} {question}: {seen}");
        });
    }
}

/// Words of 28 and 27 bytes within TLS, each end's on a timer of its own (frames 370 to 462 of a pusher's connection), 80 ms apart:
/// neither waits for the other, whoever spoke last. A question of a few hundred bytes may take as long.
#[test]
fn words_of_both_ends_by_their_own_timers_are_no_answers() {
    for (question, answer, most) in [(28, 27, Possible), (28, 700, Likely), (280, 27, Likely)] {
        let text = format!(
            "handshake\n +0 C 517\n +20 S 1300\n +0.1 C 80\n +20 S 250\n +0 C ack\n +4700 C 31\n +0 S ack\n \
             +2300 C {question}\n +0 S ack\n +8700 S {answer}\n +0 C ack"
        );
        log(text)
            .rtt(ms(80))
            .both_ends(|seen| assert_eq!(think(seen, 3), most, "{question} {answer}: {seen}"));
    }
}

/// A client confirms what the server pushes with messages of one length. Half of them are followed by another push, 3.3 seconds later and
/// always as late, the others by nothing for half a minute (frames 3326 to 3600 of a player's connection): they need no answer.
#[test]
fn what_goes_without_an_answer_every_other_time_needs_none() {
    let cycle = "+30000 C 280\n +3 S 435\n +0 C ack\n +50 C 116\n +0 S ack\n +3280 S 535\n +0 C ack\n +100 C 116\n +0 S ack\n";
    let text = format!("handshake\n +0 C 517\n +3 S 1300\n +0 C ack\n {}", cycle.repeat(4));
    let seen = log(text).rtt(ms(4)).seen_at(End::Client);
    let long = |line: &&Line| line.cause == Cause::ServerThink && line.ns > ms(1_000);
    let lines: Vec<Confidence> = seen
        .connection()
        .exchanges
        .iter()
        .flat_map(|e| e.bill.iter().filter(long))
        .map(|l| l.confidence)
        .collect();
    assert_eq!(lines, [Likely, Likely, Possible, Possible], "{seen}");
}

/// A game tells the other players where its units are, every 200 ms and in between, and nothing ever comes back on that connection.
#[test]
fn what_nobody_answers_in_small_pieces_may_be_as_many_messages() {
    let moves = each(0..40, |n| format!("+{} C {}", 150 + 40 * (n % 2), 72 + n % 3));
    for answer in ["", "+0 S 20\n +0 C ack"] {
        log(format!("handshake\n {moves}\n {answer}")).rtt(ms(8)).both_ends(|seen| {
            let pauses = |line: &&Line| line.cause == Cause::SenderThink && line.ns > ms(500);
            let exchanges = &seen.connection().exchanges;
            let mut lines = exchanges.iter().flat_map(|exchange| exchange.bill.iter().filter(pauses));
            assert_eq!(lines.all(|line| line.confidence == Possible), answer.is_empty(), "{seen}");
        });
    }
}

/// Nobody who has not seen a connection begin knows what it is for: a word three seconds behind a confirmation may be news.
#[test]
fn without_the_beginning_a_long_wait_may_be_for_news() {
    let whole = log(
        "handshake\n +1 C 246\n +3 S 300\n +0 C ack\n +172 C 161 #q\n +0 S ack\n q+3000 S 181\n +0 C ack",
    )
    .rtt(ms(18));
    for (first, most) in [(0, Likely), (3, Possible)] {
        let seen = Seen::of(whole.capture(End::Client)[first..].to_vec(), "the client");
        assert_eq!(think(&seen, 2), most, "{seen}");
    }
}

/// Windows counts the packets of all connections in one row, and lets them live 128 hops (two connections of a game between two such
/// hosts, captured where one of them receives).
#[test]
fn numbers_of_a_host_that_counts_all_its_packets_tell_of_no_loss() {
    let text = "handshake\n +0.1 C 32\n +1.9 C 134\n +0 S ack\n +3 C 32\n +0.7 C 144\n +0 S ack\n +98 C 76\n +0.3 C 76\n +0 S ack\n \
                +0.3 C 76\n +170 S ack\n +600 C 72\n +0.4 C 72\n +0 S ack";
    for (ttl, lost) in [(64, true), (128, false)] {
        let mut elsewhere = 0;
        let numbered = |mut segment: Segment| {
            if segment.src == crate::packet_log::CLIENT {
                elsewhere += u16::from(segment.payload_len == 72) * 9;
                segment.ip_id = segment.ip_id.map(|id| id + elsewhere);
                segment.ttl = ttl;
            }
            segment
        };
        let segments = log(text).rtt(ms(0.7)).capture(End::Server).into_iter().map(numbered).collect();
        let seen = Seen::of(segments, "the server");
        let timeouts = seen.report.bill.iter().any(|line| line.cause == Cause::Rto);
        assert_eq!(timeouts, lost, "{ttl}: {seen}");
    }
}

/// A request goes out again after 219 ms, and 284 ms later somebody acknowledges it, on a path of 5 ms: a radio that held all of it looks
/// the same as a copy that was lost, and as a host that took its time (frames 23 to 26 of a drone's controller).
#[test]
fn which_of_two_copies_was_acknowledged_late_is_not_known() {
    for (late, known) in [(284, false), (3, true)] {
        let text = format!(
            "handshake\n +1 C 106\n +5 S 106\n +1 C 106 lost #q\n q+219 C 106..212 #again\n again+{late} S ack\n +7 S 106\n +0 C ack"
        );
        let seen = log(text).rtt(ms(5)).without_timestamps().seen_at(End::Client);
        let bill = seen.exchange(2);
        assert_eq!(bill.of(Cause::Rto).confidence, Likely, "{seen}");
        assert_eq!(think(&seen, 2) == Possible, !known, "{seen}");
    }
}

/// A stalled radio: the client's timer runs out thrice, and then all answers come at once, of which the first echoes the first copy
/// (frames 108 to 126 of a phone's connection). The host had acknowledged in time.
#[test]
fn behind_a_spurious_timeout_the_path_may_have_held_the_answer() {
    let text = "handshake\n +1 C 100\n +5 S 200\n +0 C ack\n +5 C 169 #q\n q+284 C 100..269 late=500 #again\n q+5 S 1448 late=770\n +0 C ack";
    let seen = log(text).rtt(ms(20)).seen_at(End::Client);
    assert_eq!(think(&seen, 2), Possible, "{seen}");
}

/// The data connection of FTP opens before anybody asks for the file: 1.3 seconds behind its handshake nobody knows who waited.
#[test]
fn full_segments_behind_nothing_but_a_handshake_were_asked_for_elsewhere() {
    for (wait, most) in [(600, Likely), (1_300, Possible)] {
        log(format!("handshake\n +{wait} S 1448x3\n +0 C ack"))
            .rtt(ms(20))
            .both_ends(|seen| assert_eq!(think(seen, 1), most, "{seen}"));
    }
}

/// A clock that steps back twice by more than packets can overtake each other measures nothing.
#[test]
fn a_clock_that_steps_back_again_and_again_is_not_believed() {
    let text = "handshake\n +1 C 100\n +5 S 200\n +0 C ack\n +1 C 100\n +300 S 200\n +0 C ack\n";
    for (steps, most) in [(1, Certain), (2, Possible)] {
        let mut segments = log(text).rtt(ms(1)).capture(End::Server);
        for (n, segment) in segments.iter_mut().enumerate() {
            let stepped = (1..=steps).filter(|step| n >= *step * 2).count();
            segment.at = segment.at - Duration::from_millis(50).times(stepped as i64);
        }
        let seen = Seen::of(segments, "the server");
        assert_eq!(think(&seen, 2), most, "{seen}");
    }
}
