//! Several requests at once, messages that cross, and tails that several mechanisms may have held,
//! where the protocol is not read.

use tcpwhy_core::cause::Cause;
use tcpwhy_core::cause::Side::{Client, Path, Server};
use tcpwhy_core::report::{Confidence, Kind, Pairing};

use crate::packet_log::{End, log, ms, settled};
use crate::seen::Seen;

/// A client asks every 12 ms, 20 ms away from a server that takes 5 (frames 8 to 11 of a
/// WebSocket): the first reply acknowledges one request of three, so the others hardly belong to
/// it.
#[test]
fn what_an_answer_does_not_acknowledge_may_be_another_question() {
    let text = settled(4) + "+20 C 9 #first\n first+12 C 10\n first+24 C 9\n first+5 S 3";
    let seen = log(text).rtt(ms(20)).seen_at(End::Client);
    let asked = seen.exchange(5);
    assert_eq!(asked.exchange.by, Some(Pairing::Guess), "{seen}");
    assert!(asked.exchange.bill.iter().all(|line| line.confidence == Confidence::Possible), "{seen}");
}

/// Three pieces within 0.6 ms: the server's first short message acknowledges one of them, and a
/// reply 160 ms later all (frames 20 to 28 of HTTP/2 within TLS). Whichever it answers, that took
/// as long. For pieces 60 ms apart this is unknown.
#[test]
fn whichever_of_several_parts_is_answered_at_once_it_took_as_long() {
    for (apart, sure) in [(0.3, Confidence::Likely), (30.0, Confidence::Possible)] {
        let text = settled(4)
            + &format!(
                "+8 C 87 #a\n +{apart} C 155\n +{apart} C 648 #q\n a+0 S 38\n q+1 S ack\n q+160 S 470\n +0 C ack"
            );
        let seen = log(text).rtt(ms(118)).seen_at(End::Client);
        let bill = seen.exchange(5);
        assert_eq!(bill.exchange.by, Some(Pairing::Guess), "{seen}");
        let think = bill.of(Cause::ServerThink);
        assert!(think.confidence == sure && (sure == Confidence::Possible || think.ns >= ms(158)), "{seen}");
    }
}

/// A client ends a session's setup and sends a long request along with it (False Start, RFC 7918;
/// frames 162 to 167 of a browser): the server's last setup message acknowledges only the first
/// piece, and all pieces are one exchange.
#[test]
fn a_long_question_goes_on_behind_what_is_acknowledged() {
    let text = settled(4)
        + "+20 C 126 #first\n first+0.8 C 1448x3 more\n +0 C 16\n first+0 S 274\n first+20 S 1448x4\n +0 C ack";
    let seen = log(text).rtt(ms(70)).seen_at(End::Client);
    assert_eq!(seen.exchange(5).exchange.by, Some(Pairing::OnlyOpen), "{seen}");
}

/// Both ends send a greeting as soon as they are connected (frames 4 to 9 of ZeroMQ, RFC 23/ZMTP):
/// neither waits for a greeting that crosses its own. The client's next byte answers the server's
/// greeting, and left when its own was acknowledged as well.
#[test]
fn a_greeting_that_the_client_does_not_wait_for() {
    let text = "handshake\n @30.2 S 10\n @20.4 C 10 #hello\n hello+0 S ack #heard\n hello+0.05 S 1
                heard+0 C 1\n +0 S 53\n +0 C ack";
    let seen = log(text).rtt(ms(20)).seen_at(End::Server);
    let greeting = seen.exchange(1);
    assert!(greeting.exchange.bill.iter().all(|line| line.confidence == Confidence::Possible), "{seen}");
    let held = seen.lines(Cause::Nagle, Client);
    assert!(held.len() == 1 && held[0].confidence == Confidence::Possible, "{seen}");
}

/// If the client speaks first, the server's next message is the reply.
#[test]
fn a_greeting_that_the_client_waits_for() {
    let text = "handshake\n +120 S 40\n +5 C 20\n +0 S 30\n +0 C ack";
    log(text).rtt(ms(20)).both_ends(|seen| {
        let greeting = seen.exchange(1);
        assert!(greeting.of(Cause::ServerThink).confidence >= Confidence::Likely, "{seen}");
    });
}

/// A sender whose send buffer limited flight after flight ends with a tail that leaves when a small
/// segment is acknowledged (frames 20 to 287 of a broker's answer, which took 1.1 s less without
/// its SO_SNDBUF): Nagle may have held it, or it had not been written yet.
#[test]
fn a_tail_behind_a_full_send_buffer_is_possibly_nagle_s() {
    let rtt = ms(26);
    // The protocol is not read, or two requests at once show that each has an account of its own.
    let unread = "handshake\n +5 C 100";
    let read = "handshake\n +5 C 100 asks=1 #q\n q+0 C 100 asks=2\n +0 S 50 answers=1 #one\n one+0 C ack\n one+60 S 50 answers=2\n +0 C ack\n +5 C 100 asks=3";
    for (asked, answers) in [(unread, ""), (read, " answers=3 part")] {
        for is_held in [true, false] {
            let flights =
                format!("+0 S 1448x20 more{answers}\n +0 C ack\n").repeat(if is_held { 5 } else { 0 });
            let text = format!(
                "{asked}\n {flights}\n +0 S 1448x40 more{answers}\n +0 S 900{answers} #small\n small+0 C ack\n +0 S 3{answers}\n +0 C ack"
            );
            log(text).rtt(rtt).both_ends(|seen| {
                let told = seen.lines(Cause::Nagle, Server).iter().map(|line| line.confidence).max();
                let is_sure = told.map(|told| told > Confidence::Possible);
                assert_eq!(is_sure, Some(!is_held), "{answers}: {seen}");
            });
        }
    }
}

/// A client says goodbye in two pieces and closes; a server that has already closed resets the
/// connection 2 ms later (frames 39 to 42 of JDBC): no timer ran out.
#[test]
fn what_is_refused_sooner_than_any_timer_runs_out_was_not_sent_for_nothing() {
    let text = settled(4) + "+70 C 40 #bye\n bye+0.02 C 40\n bye+0.03 C fin\n bye+2 S rst";
    let seen = log(text).rtt(ms(80)).seen_at(End::Server);
    assert_eq!(seen.spent(Cause::Rto, Path), ms(0), "{seen}");
}

/// A client confirms an event that came 218 ms after a reply, with a message as short as its
/// requests, and the next event comes 210 ms later (frames 17 to 24 of a WebSocket through TLS):
/// the client need not have waited for that.
#[test]
fn a_word_at_the_heels_of_an_event_may_confirm_it() {
    let text = "handshake\n +5 C 300\n +0.5 S 300\n +0 C ack\n +70 C 32\n +0.5 S 28 #pong\n +40 C ack\n pong+218 S 28\n +0.5 C 32 #confirms\n confirms+210 S 28\n +0 C ack";
    log(text).rtt(ms(80)).both_ends(|seen| {
        let waited = seen.longer(Cause::ServerThink, ms(200));
        assert!(waited.iter().all(|line| line.confidence == Confidence::Possible), "{seen}");
    });
}

/// A message of the server's own crosses a request that leaves in one go: all of the request was
/// written before.
#[test]
fn what_leaves_together_is_one_question() {
    let text = settled(4)
        + "@300 S 50 #news\n @309.95 C 1448 more\n @310.05 C 1448 more\n @310.1 C 500\n +5 S 200\n +0 C ack";
    let seen = log(text).rtt(ms(20)).seen_at(End::Client);
    let asked = seen.connection().exchanges.last().expect("it was asked");
    assert_eq!((asked.by, asked.request_bytes), (Some(Pairing::OnlyOpen), 3396), "{seen}");
}

/// Data a minute after a request in an unread protocol may be news: near the server no packet shows
/// that its way back was waited for, and the last exchange of a connection is no exception.
#[test]
fn the_way_back_of_what_may_be_no_answer_is_possible_at_most() {
    let text = settled(3) + "+5 C 300\n +60000 S 200\n +0 C ack";
    log(text).rtt(ms(80)).both_ends(|seen| {
        let last = seen.connection().exchanges.last().expect("it was asked");
        assert!(last.bill.iter().all(|line| line.confidence == Confidence::Possible), "{seen}");
    });
}

/// Two requests 257.5 ms apart with an RTT of 298 ms (frames 522 to 588 of a WebSocket in TLS):
/// each reply acknowledges only its own request, and leaves 5 ms after it.
#[test]
fn what_is_said_behind_a_pause_did_not_delay_an_answer_that_does_not_acknowledge_it() {
    let text = settled(3) + "+900 C 188 #a\n a+257.5 C 189 #b\n a+5 S 73\n b+6 S 73 #last\n last+40 C ack";
    log(text).rtt(ms(298)).both_ends(|seen| {
        for (n, own) in [(4, 5), (5, 6)] {
            let cost = [(Cause::RoundTrip, Path, ms(298)), (Cause::ServerThink, Server, ms(own))];
            assert_eq!(seen.exchange(n).is_within(ms(0.1), &cost).exchange.reply_bytes, 73, "{seen}");
        }
        assert_eq!(seen.longer(Cause::SenderThink, ms(200)).len(), 0, "{seen}");
    });
}

/// A terminal session captured near its server, from the middle on: keys are echoed at once, and
/// the next keys have left before an echo can have arrived (frames 888 to 910 of SSH). Nobody waits
/// for the next key.
#[test]
fn keys_that_leave_before_the_last_one_has_come_back_are_questions_of_their_own() {
    let keys = [123, 201, 250, 117, 74, 91, 116].map(|pause| format!("k+{pause} C 52 #k\n k+0.1 S 52\n"));
    let text = "handshake\n +5 C 52 #k\n k+0.1 S 52\n".to_owned() + &keys.concat();
    let midway = log(text).rtt(ms(192)).capture(End::Server).split_off(3);
    let seen = Seen::of(midway, "behind the handshake");
    assert!(seen.lines(Cause::SenderThink, Client).is_empty(), "{seen}");
    assert_eq!(seen.count(Kind::Exchange), 8, "{seen}");
}

/// The same when nothing is acknowledged for 1.2 s (frames 1156 to 1395 of a client whose uplink
/// stalls): four messages within 60 ms, and a fifth 900 ms later; the first reply acknowledges two
/// of them and the second four.
#[test]
fn a_pause_behind_what_is_answered_is_no_part_of_the_wait() {
    let text = settled(3)
        + "+900 C 234 #a\n +0.05 C 257\n a+60 C 131 #d\n +0.06 C 257\n d+900 C 674 #late
           a+1100 S ack ack=791 #heard\n heard+0.1 S 530 ack=791\n +0 C ack\n heard+40 S 532 ack=1179\n +0 C ack
           late+400 S 20 ack=1853\n +0 C ack";
    let seen = log(text).rtt(ms(100)).seen_at(End::Client);
    let first = seen.exchange(4);
    assert_eq!((first.exchange.request_bytes, first.exchange.reply_bytes), (879, 1062), "{seen}");
    assert!(
        first.exchange.bill.iter().all(|line| line.cause != Cause::SenderThink || line.ns < ms(65)),
        "{seen}"
    );
    let second = seen.exchange(5);
    assert_eq!((second.exchange.request_bytes, second.exchange.reply_bytes), (674, 20), "{seen}");
    assert_eq!(seen.longer(Cause::SenderThink, ms(200)).len(), 0, "{seen}");
}

/// A message sent before any reply, with everything acknowledged, continues the request if the
/// reply acknowledges both.
#[test]
fn an_answer_to_all_of_a_question_is_one_answer() {
    let text = settled(3) + "+900 C 188 #a\n a+257.5 C 189 #b\n b+5 S 73 #last\n last+40 C ack";
    log(text).rtt(ms(298)).both_ends(|seen| {
        assert_eq!(seen.exchange(4).exchange.request_bytes, 377, "{seen}");
        assert_eq!(seen.longer(Cause::SenderThink, ms(257)).len(), 1, "{seen}");
    });
}

/// On a connection whose handshake and replies took 30 ms and more, a keep-alive probe is answered
/// after 4.6 (frames 212 to 224 of a page): the next request did not travel longer either. Without time stamps the
/// answer shows it by itself, unless it may have passed the probe on its way.
#[test]
fn a_probe_that_is_answered_at_once_shows_how_far_away_its_peer_is() {
    let text = "@0 C syn\n +0 S syn late=25\n +0 C ack\n +5 C 437 #a\n a+0 S ack late=26\n a+0 S 1000 late=31\n +0 C ack\n \
                +10000 C 436..436\n +0 S ack\n +4800 C 588 #q\n q+202 S ack\n q+330 S 448\n +0 C ack";
    for log in [log(text), log(text).without_timestamps()] {
        let seen = log.rtt(ms(4.6)).seen_at(End::Client);
        seen.exchange(2).is(&[(Cause::RoundTrip, Path, ms(4.6)), (Cause::ServerThink, Server, ms(330))]);
    }
    let text = "handshake\n +5 C 437 #a\n a+0 S ack\n a+0 S 1000 #r\n r+0 C ack #k\n k+50 C 436..436\n r+60 S ack\n +30 S ack\n \
                +4800 C 588 #q\n q+202 S ack\n q+330 S 448\n +0 C ack";
    let seen = log(text).rtt(ms(30)).without_timestamps().seen_at(End::Client);
    seen.exchange(2).is(&[(Cause::RoundTrip, Path, ms(30)), (Cause::ServerThink, Server, ms(330))]);
}

/// A request of two segments and, 136 ms later, of a third, with an RTT of 60 ms: the reply comes 60 ms after that but
/// acknowledges only the first two (frames 679 to 705 of a phone's hotspot): it had left before the third arrived, and did
/// not wait for it. One that acknowledges all three did.
#[test]
fn an_answer_that_leaves_out_what_came_behind_a_pause_did_not_wait_for_that() {
    for (ack, most) in [("ack=2272", Confidence::Possible), ("", Confidence::Likely)] {
        let text = format!(
            "handshake\n +9 C 1286 more\n +0 C 986 #hello\n hello+136 C 98 #rest\n rest+0 S 1000 more {ack}\n +0 S 300\n +0 C ack"
        );
        let seen = log(text).rtt(ms(60)).seen_at(End::Client);
        let bill = seen.exchange(1);
        let pause = bill.of(Cause::SenderThink);
        assert!(pause.ns >= ms(135) && pause.confidence == most, "{seen}");
    }
}
