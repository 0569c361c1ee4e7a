//! A round trip that becomes shorter within a connection: how certain is the least so far?

use tcpwhy_core::cause::Cause;
use tcpwhy_core::report::Confidence::{self, Certain, Likely, Possible};
use tcpwhy_core::report::Exchange;
use tcpwhy_wire::{Duration, Endpoint};

use crate::distance::merged;
use crate::packet_log::{CLIENT, End, SERVER, each, log, ms};
use crate::seen::Seen;

/// How long the path took, and how certain that is.
fn path(exchange: &Exchange) -> (Duration, Confidence) {
    let of = |cause| exchange.bill.iter().find(move |line| line.cause == cause);
    let line = of(Cause::RoundTrip).or_else(|| of(Cause::Handshake)).expect("a path");
    (line.ns, line.confidence)
}

/// The handshake takes 95 ms, the first request is acknowledged after 85, and all later ones after 40: the path
/// has become shorter twice, and may again (frames 1080 to 1400 of a browser's connections). Many answers after
/// 40 ms are certain again. The first request's bill is handed over when it is known that the path takes no more.
#[test]
fn the_least_of_a_round_trip_that_has_become_shorter_is_likely_until_others_agree() {
    let later = "\n +5 C 100\n +0 S ack\n +20 S 200\n +0 C ack".repeat(30);
    let text = format!(
        "@0 C syn\n +0 S syn late=55\n +0 C ack\n +0.5 C 500 #hello\n hello+0 S ack late=45
         hello+30 S 1000 late=45\n +0 C ack {later}"
    );
    let seen = log(text).rtt(ms(40)).without_timestamps().seen_at(End::Client);
    let exchanges = &seen.connection().exchanges;
    assert_eq!(path(&exchanges[1]), (ms(40), Likely), "{seen}");
    assert_eq!(path(&exchanges[2]), (ms(40), Likely), "{seen}");
    assert_eq!(path(exchanges.last().expect("the last")), (ms(40), Certain), "{seen}");
}

/// The opposite: the handshake took the least, and its first request no longer. Later queues leave that certain,
/// and so do 3 ms that only the first packet took longer.
#[test]
fn a_queue_behind_the_handshake_leaves_its_round_trip_certain() {
    let later = "\n +5 C 100\n +0 S ack late=45\n +20 S 200 late=45\n +0 C ack".repeat(4);
    let seen = log(format!("handshake\n +5 C 100\n +0 S ack\n +1 S 200\n +0 C ack {later}"))
        .rtt(ms(40))
        .without_timestamps()
        .seen_at(End::Client);
    for exchange in &seen.connection().exchanges {
        assert_eq!(path(exchange), (ms(40), Certain), "{seen}");
    }
    let later = "\n +5 C 100\n +0 S ack\n +20 S 200\n +0 C ack".repeat(9);
    let text = format!("@0 C syn\n +0 S syn late=3\n +0 C ack {later}");
    let seen = log(text).rtt(ms(40)).without_timestamps().seen_at(End::Client);
    for exchange in &seen.connection().exchanges[3..] {
        assert_eq!(path(exchange), (ms(40), Certain), "{seen}");
    }
}

/// By the client's time stamps, its ACK was delayed for 9 ms of the first round trip; but its SYN
/// may have been delayed as well, so the rest is likely at most (frames 1 to 28 of a web server's
/// capture).
#[test]
fn a_round_trip_reckoned_from_stamps_is_likely() {
    let text = "@0 C syn\n +0 S syn\n +0 C ack late=9\n +0.2 C 700 late=9 #q\n +0 S ack\n +16 S 1000\n +0 C ack late=12
         +80 C 700 late=9\n +16 S 1000\n +0 C ack late=12";
    let seen = log(text).rtt(ms(40)).seen_at(End::Server);
    let (took, sure) = path(&seen.connection().exchanges[0]);
    assert!(took < ms(44) && sure == Likely, "{seen}");
}

/// Connections to one server: the first takes 40 ms, the second steadily 55 (a browser's, 3.9 and 10.6 ms).
/// That one may have stood in a queue throughout, or lead elsewhere: its round trips are no more than likely.
/// 1.5 ms more are none.
#[test]
fn a_round_trip_above_a_sibling_s_is_likely() {
    let turns = "\n +5 C 100\n +0 S ack\n +20 S 200\n +0 C ack".repeat(4);
    let first = log(format!("handshake {turns}")).rtt(ms(40)).without_timestamps();
    for (rtt, sure) in [(55.0, Likely), (41.5, Certain)] {
        let text = format!("@900 C syn\n +0 S syn\n +0 C ack {turns}");
        let second = log(text).rtt(ms(rtt)).without_timestamps();
        let logs = [first.clone(), second.between([Endpoint { port: 40_001, ..CLIENT }, SERVER])];
        for end in End::BOTH {
            let seen = merged(&logs, end);
            let [first, second] = [0, 1].map(|n| &seen.report.connections[n].exchanges);
            for exchange in first {
                assert_eq!(path(exchange), (ms(40), Certain), "{seen}");
            }
            for exchange in second {
                assert_eq!(path(exchange), (ms(rtt), sure), "{seen}");
            }
        }
    }
}

/// Connections of one client to a server on its LAN: the first takes 1.5 ms, the second 43, as long as timers and a radio let it (frames
/// 1 to 30 of a broker's capture). Only 1.5 of it are likely the path's. Of 4 ms, all may be.
#[test]
fn a_client_that_was_ten_times_nearer_is_no_farther_away() {
    let turns = "\n +5 C 100\n +0 S ack\n +20 S 200\n +0 C ack".repeat(4);
    let first = log(format!("handshake {turns}")).rtt(ms(1.5)).without_timestamps();
    for (rtt, own) in [(43.0, 1.5), (4.0, 4.0)] {
        let text = format!("@900 C syn\n +0 S syn\n +0 C ack {turns}");
        let second = log(text).rtt(ms(rtt)).without_timestamps();
        let logs = [first.clone(), second.between([Endpoint { port: 40_001, ..CLIENT }, SERVER])];
        let seen = merged(&logs, End::Server);
        for exchange in &seen.report.connections[1].exchanges {
            assert!(path(exchange).0 == ms(own) && path(exchange).1 <= Likely, "{seen}");
            let queue = exchange.bill.iter().find(|line| line.cause == Cause::Queueing);
            assert!(queue.is_none_or(|line| line.confidence == Possible), "{seen}");
        }
    }
}

/// Beside a connection of 40 ms, one takes 70 and more, as if a queue stood in its way throughout (a Windows
/// host's capture: 41.7 ms of path, certain, that no sample of its connection shows): that the path takes 40 of
/// it is another connection's knowledge, and likely.
#[test]
fn a_path_that_no_round_trip_of_its_own_shows_is_likely() {
    let turns = "\n +5 C 100\n +0 S ack\n +20 S 200\n +0 C ack".repeat(4);
    let late = each(0..8, |n| {
        let late = [0, 30][n % 2];
        format!("+5 C 100\n +0 S ack late={late}\n +20 S 200 late={late}\n +0 C ack")
    });
    let first = log(format!("handshake {turns}")).rtt(ms(40)).without_timestamps();
    let second = log(format!("@900 C syn\n +0 S syn\n +0 C ack\n{late}")).rtt(ms(70)).without_timestamps();
    let logs = [first, second.between([Endpoint { port: 40_001, ..CLIENT }, SERVER])];
    let seen = merged(&logs, End::Client);
    let [first, second] = [0, 1].map(|n| &seen.report.connections[n].exchanges);
    assert!(first.iter().all(|exchange| path(exchange) == (ms(40), Certain)), "{seen}");
    let standing: Vec<_> = second.iter().map(path).filter(|(took, _)| *took == ms(40)).collect();
    assert!(standing.len() >= 3 && standing.iter().all(|(_, sure)| *sure == Likely), "{seen}");
}

/// The server answers after 30 ms, and acknowledges nothing by itself: only the SYN-ACK shows a path of 60 ms, which
/// a busy server or a waking radio may have made longer. One request that is acknowledged at once agrees with it.
#[test]
fn a_first_round_trip_that_no_other_agrees_with_is_likely() {
    for (ack, sure) in
        [("", Likely), ("\n +0 S ack", Certain), ("\n +3 S ack", Certain), ("\n +5 S ack", Likely)]
    {
        let text = format!(
            "handshake\n +0.5 C 500 #q {ack}\n q+30 S 1000\n +0 C ack\n +5 C 100\n +30 S 1000\n +0 C ack"
        );
        let seen = log(text).rtt(ms(60)).without_timestamps().seen_at(End::Client);
        for exchange in &seen.connection().exchanges {
            assert_eq!(path(exchange), (ms(60), sure), "{seen}");
        }
    }
}

/// Another connection's handshake agrees with it as well; one that is shorter by a tenth does not, nor one at the
/// same time, which waited for the same radio to wake or stood in the same queue (a browser's first connections:
/// twice 43.9 ms, and later 28.3).
#[test]
fn a_first_round_trip_that_a_sibling_s_agrees_with_is_certain() {
    let turn = "\n +0.5 C 500\n +30 S 1000\n +0 C ack";
    for (at, rtt, sure) in
        [(900, 59.0, Certain), (900, 61.0, Certain), (900, 66.0, Likely), (1, 61.0, Likely)]
    {
        let first = log(format!("handshake {turn}")).rtt(ms(60)).without_timestamps();
        let text = format!("@{at} C syn\n +0 S syn\n +0 C ack {turn}");
        let second = log(text).rtt(ms(rtt)).without_timestamps();
        let logs = [first, second.between([Endpoint { port: 40_001, ..CLIENT }, SERVER])];
        let seen = merged(&logs, End::Client);
        for exchange in &seen.report.connections[1].exchanges {
            assert_eq!(path(exchange), (ms(rtt), sure), "{seen}");
        }
    }
}

/// By its time stamp one answer stood on the path for 50 ms. The next request may have as well, for 90 ms, though for
/// 130 it did hardly: near the client, that looks like a slow server (requests over a path that stands still now and
/// then, whose server answered at once: 320 ms of it, likely).
#[test]
fn what_a_path_may_have_taken_that_held_an_answer_up_for_half_as_long_is_possible() {
    for (wait, sure) in [(90, Possible), (130, Likely)] {
        let turns = "\n +5 C 100\n +0 S 200\n +0 C ack".repeat(4);
        let text = format!(
            "handshake {turns}\n +5 C 100\n +0 S 200 late=50\n +0 C ack\n +5 C 100 late={wait}\n +0 S 200\n +0 C ack"
        );
        let seen = log(text).rtt(ms(40)).seen_at(End::Client);
        let bill = seen.exchange(6);
        let line = bill.of(Cause::ServerThink);
        assert!(
            (line.ns - ms(wait)).max(ms(wait) - line.ns) < ms(2) && line.confidence == sure,
            "{wait}{seen}"
        );
    }
}

/// A server that takes 100 ms acknowledges after 40. Then one takes 180: if the acknowledgement comes as late as 40 ms
/// before the answer (an encrypted resolver's, 155 ms and 40; a hotspot's), the rest was the path's, or its host's. Nobody
/// knows what Windows does, which may wait for 200 ms, nor what acknowledges nothing by itself.
#[test]
fn a_server_that_acknowledges_in_time_was_not_at_work_before() {
    let turns = |ack: &str| format!("\n +5 C 100 #q\n {ack}\n q+100 S 200\n +0 C ack").repeat(3);
    let acks = "+40 S ack";
    for (turn, ack, ttl, took, sure) in [
        (acks, "+40 S ack", 64, 180, true),
        (acks, "+140 S ack", 64, 180, false),
        (acks, "", 64, 180, false),
        ("+0 S ack", "", 64, 180, false),
        ("+0 S ack", "", 128, 180, true),
        ("+0 S ack", "", 128, 260, false),
        ("", "", 64, 180, true),
        ("", "", 128, 440, true),
        ("", "", 128, 540, false),
    ] {
        let text = format!("handshake {}\n +5 C 100 #r\n {ack}\n r+{took} S 200\n +0 C ack", turns(turn));
        let seen = log(text).rtt(ms(20)).server_ttl(ttl).without_timestamps().seen_at(End::Client);
        let bill = seen.exchange(4);
        let think = bill.of(Cause::ServerThink);
        assert_eq!(think.ns > ms(100) && think.confidence == Likely, sure, "{turn} {ack} {ttl}{seen}");
    }
}

/// A handshake takes 117 ms, and the first request is answered after 101, with no acknowledgement before that; the next one is acknowledged
/// after 19 (frames 1354 to 1366 of a browser's capture). The path takes 19 ms of the first exchange too, and a queue or the server the
/// rest; 10 ms that the server seems to have taken besides may be that as well, 100 may not. Where the path takes 101 ms ever after, it is all
/// the path's.
#[test]
fn what_the_first_exchange_took_above_the_path_that_the_next_one_shows_is_possibly_a_queue() {
    for (later, own, way, above, sure) in
        [(0, 10, 19, 82, Possible), (0, 100, 19, 82, Likely), (82, 10, 101, 0, Likely)]
    {
        let text = format!(
            "@0 C syn #syn\n syn+0 S syn late=82\n +0 C ack\n +1 C 517 late=82 #hello\n hello+{own} S 1200 #answer\n answer+0 C ack
             +5 C 300 late={later} #next\n next+0 S ack\n next+20 S 900\n +0 C ack
             +5 C 300 late={later} #last\n last+0 S ack\n last+20 S 900\n +0 C ack"
        );
        let seen = log(text).rtt(ms(19)).without_timestamps().seen_at(End::Client);
        let first = seen.exchange(1);
        assert_eq!(path(first.exchange), (ms(way), Likely), "{seen}");
        assert_eq!(first.of(Cause::ServerThink).confidence, sure, "{seen}");
        let queue = first.exchange.bill.iter().find(|line| line.cause == Cause::Queueing);
        let queue = queue.map(|line| (line.ns, line.confidence));
        assert_eq!(queue, (above > 0).then_some((ms(above), Possible)), "{seen}");
    }
}

/// A request is acknowledged 12 ms late, on a path of 40, and then a request is answered after 10, or 3: the path may have been as long again (frames
/// 436 to 528 of a browser's connection). Not so an answer after 30, one whose request was acknowledged in time, or two seconds later.
#[test]
fn an_answer_no_later_than_acknowledgements_are_may_have_stood() {
    for (think, sure) in [(10, Possible), (3, Possible), (30, Likely)] {
        let text = format!(
            "handshake\n +5 C 100 late=12\n +0 S ack\n +2 S 200\n +0 C ack\n +100 C 100\n +{think} S 200\n +0 C ack
             +100 C 100\n +0 S ack\n +10 S 200\n +0 C ack\n +2000 C 100\n +10 S 200\n +0 C ack"
        );
        for log in [log(&text), log(&text).without_timestamps()] {
            let seen = log.rtt(ms(40)).seen_at(End::Client);
            for (n, expected) in [(2, (ms(think), sure)), (3, (ms(10), Likely)), (4, (ms(10), Likely))] {
                let bill = seen.exchange(n);
                let own = bill.of(Cause::ServerThink);
                assert_eq!((own.ns, own.confidence), expected, "{seen}");
            }
        }
    }
}

/// The same beside another connection between the hosts whose SYN is answered late (frames 280 to 297 of a client that opens one for each request).
#[test]
fn an_answer_no_later_than_a_sibling_s_syn_ack_may_have_stood() {
    let first = log("handshake\n @900 C 100\n +10 S 200\n +0 C ack").rtt(ms(40)).without_timestamps();
    for (late, sure) in [(12, Possible), (3, Likely)] {
        let other =
            log(format!("@500 C syn\n +0 S syn late={late}\n +0 C ack\n +5 C 100\n +0 S 100\n +0 C ack"));
        let other =
            other.rtt(ms(40)).without_timestamps().between([Endpoint { port: 40_001, ..CLIENT }, SERVER]);
        let seen = merged(&[first.clone(), other], End::Client);
        let bill = &seen.report.connections[0].exchanges[1].bill;
        let own = bill.iter().find(|line| line.cause == Cause::ServerThink).expect("a server's time");
        assert_eq!((own.ns, own.confidence), (ms(10), sure), "{seen}");
    }
}

/// The least round trip of two that agree is certain, but not while acknowledgements come later by more than an eighth of it: 8 ms of 56, not 6 (frames
/// 869 to 898 of a browser's connection, whose path proved to be 48).
#[test]
fn the_least_is_likely_while_acknowledgements_vary() {
    for (late, sure) in [(8, Likely), (6, Certain)] {
        let text = format!(
            "handshake\n +1 C 500 late={late}\n +0 S ack\n +1 S 1000\n +0 C ack\n +50 C 64\n +0 S ack\n +5 S 300\n +0 C ack\n +5 C 64\n +5 S 200\n +0 C ack"
        );
        let seen = log(text).rtt(ms(56)).without_timestamps().seen_at(End::Client);
        for exchange in [0, 2].map(|n| &seen.connection().exchanges[n]) {
            let way = exchange.bill.iter().find(|line| line.ns == ms(56)).expect("the path");
            assert_eq!(way.confidence, sure, "{seen}");
        }
    }
}

/// The same beside a controller whose answers all take 10 ms on a path of 2, but for an acknowledgement that took 14 (a PLC's 10,000 answers): they keep
/// its time.
#[test]
fn answers_that_are_always_as_late_keep_their_server_s_time() {
    let turns = "\n +1 C 31\n +8 S 26\n +0 C ack".repeat(30);
    let text = format!(
        "handshake\n +5 C 31\n +8 S 26\n +0 C ack {turns}\n +1 C 31 late=12\n +0 S ack\n +1 S 26\n +0 C ack {turns}"
    );
    let seen = log(text).rtt(ms(2)).without_timestamps().seen_at(End::Client);
    let bill = seen.exchange(50);
    let own = bill.of(Cause::ServerThink);
    assert_eq!((own.ns, own.confidence), (ms(8), Likely), "{seen}");
}

/// Captured between the ends, 10 ms from the client and 30 from the server: the client's part is known by its own answers, its host and its radio
/// included, and when it began to wait passed nowhere (handshakes and first round trips of browsers, seen from their routers). Beside the client all is
/// certain, and so it is where its part is no longer than 1 ms.
#[test]
fn a_capture_between_the_ends_is_not_certain_of_the_clients_part() {
    let turns = "\n +5 C 100\n +0 S ack\n +20 S 200\n +0 C ack".repeat(6);
    for (away, sure) in [(0.0, Certain), (1.0, Certain), (10.0, Likely)] {
        let mut segments =
            log(format!("handshake {turns}")).rtt(ms(40)).without_timestamps().capture(End::Client);
        for segment in &mut segments {
            let shift = ms(away / 2.0);
            segment.at = if segment.src == CLIENT { segment.at + shift } else { segment.at - shift };
        }
        segments.sort_by_key(|segment| segment.at);
        let seen = Seen::of(segments, "a router");
        for exchange in &seen.connection().exchanges {
            assert_eq!(path(exchange), (ms(40), sure), "{seen}");
        }
    }
}
