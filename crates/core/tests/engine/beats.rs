//! Who speaks by a timer of its own, and is answered at once: nobody waits for the next beat.

use tcpwhy_core::cause::Cause;
use tcpwhy_core::cause::Side::Server;
use tcpwhy_core::report::Confidence::{Certain, Likely, Possible};

use crate::packet_log::{End, each, log, ms};

/// A server sends 561 bytes each second, and its client confirms each message after 41 ms (frames
/// 286 to 3197 of an encrypted session). A program that slept for a second after each would be
/// later by that. From the second such message on, the server is the one that asks. A server that
/// sleeps for 1,000 ms after each request, or whose messages differ in length, answers.
#[test]
fn who_speaks_by_the_second_asks() {
    for (takes, bytes, waits) in
        [(959.5, "561", 2), (1000.0, "561", 8), (930.0, "561", 8), (959.5, "56{n}", 8)]
    {
        let turn =
            |n: i32| format!("+41 C 66\n +0 S ack\n +{takes} S {}\n ", bytes.replace("{n}", &n.to_string()));
        let turns = each(0..7, turn);
        let text = format!("handshake\n +1 C 66\n +0 S ack\n +700 S 561\n {turns} +41 C 66\n +0 S ack");
        let seen = log(text).rtt(ms(0.4)).seen_at(End::Client);
        assert_eq!(seen.longer(Cause::ServerThink, ms(500)).len(), waits, "{takes}, {bytes}: {seen}");
    }
}

/// Four bytes every five seconds, which the other end returns after 1.2 ms (frames 141 to 4130 of a
/// telephone exchange), from a host whose timers are 10 ms late, and once it was asked something
/// else meanwhile. A program that sleeps for five seconds on a host that wakes it a millisecond
/// early looks the same otherwise.
#[test]
fn a_heart_beat_that_another_word_does_not_delay_asks() {
    for (between, waits) in [("+4633.7 C 36\n +14.7 S ack\n +360", 1), ("+5008.7", 6)] {
        let turns =
            "+1.2 C 4\n +18.6 S ack\n +4979.2 S 4\n +1.2 C 4\n +18.6 S ack\n +4989.2 S 4\n ".repeat(2);
        let text = format!(
            "handshake\n +1 C 38\n +10 S ack\n +3800 S 4\n +1.2 C 4\n {between} S 4\n {turns} +1.2 C 4"
        );
        let seen = log(text).rtt(ms(0.1)).seen_at(End::Server);
        assert_eq!(seen.longer(Cause::ServerThink, ms(1000)).len(), waits, "{between}: {seen}");
    }
}

/// A server says 19 bytes a second after its last word of 19; meanwhile its client says one thing after another, each acknowledged at once and
/// answered by nothing (frames 28 to 40 of a remote desktop's capture). Whether the next word answers the last of these, or comes by a timer, is
/// unknown. 20 ms later, of another length, or behind two that left together, it is an answer.
#[test]
fn what_comes_a_second_after_the_last_word_may_answer_nothing() {
    let alone = "last+729 C 6 #q\n q+0.1 S ack";
    let together = "last+729 C 192 more\n +0 C 6 #q\n q+0.1 S ack";
    for (asked, at, bytes, most) in [
        (alone, 1000, 19, Possible),
        (alone, 1020, 19, Certain),
        (alone, 1000, 21, Certain),
        (together, 1000, 19, Certain),
    ] {
        let text = format!(
            "handshake\n +1 C 60\n +1 S 19 #last\n +0 C ack\n last+143 C 192\n +0.1 S ack\n last+400 C 217\n +0.1 S ack\n {asked}\n last+{at} S {bytes}\n +0.2 C ack"
        );
        let seen = log(text).rtt(ms(0.02)).seen_at(End::Server);
        let waits = seen.longer(Cause::ServerThink, ms(200));
        assert_eq!(waits.last().map(|line| line.confidence), Some(most), "{asked}, {at}, {bytes}: {seen}");
    }
}

/// Pings of 127 bytes each second through a host that forwards them up to 6 ms late, returned after 0.7 to 4.5 ms
/// (packets 319 to 339 of a VPN's capture at its server): either end may be the one that asks, and nobody waits for a
/// second with any certainty. Requests of another length than their replies are answered after a second.
#[test]
fn pings_that_a_host_forwards_late_may_be_the_servers() {
    for (asked, most) in [(127, Possible), (90, Likely)] {
        let turn = |n: i32| {
            let (late, reaction) = ([1.1, 3.2, 0.6][n as usize % 3], [0.7, 3.1, 4.6][n as usize % 3]);
            format!("+{reaction} C {asked} #q\n q+0.2 S ack\n q+{} S 127\n +0.2 C ack", 1000.0 + late)
        };
        let text = format!("handshake\n +1 C 60\n +1 S 127\n +0 C ack\n {}", each(0..4, turn));
        let seen = log(text).rtt(ms(0.2)).seen_at(End::Server);
        let waits = seen.longer(Cause::ServerThink, ms(500));
        assert!(waits.iter().all(|line| line.confidence <= most), "{asked}: {seen}");
        assert!(most == Possible || waits.iter().any(|line| line.confidence == Likely), "{asked}: {seen}");
    }
}

/// A server sends three segments every five seconds, unasked. What a client then says is acknowledged, and the
/// next three come when they were due (frames 1803 to 1866 of a monitor's capture). 40 ms later they would
/// likely answer.
#[test]
fn what_was_due_anyway_may_answer_nothing() {
    for (late, most) in [(0.6, Possible), (40.0, Likely)] {
        let beat = |n: i32| format!("@{} S 684x3\n +0 C ack\n ", 500 + 5000 * n);
        let text = format!(
            "handshake\n +1 C 60\n +1 S 90\n +0 C ack\n {}@20280 C 96\n +40 S ack\n @{} S 684x3\n +0 C ack",
            each(0..4, beat),
            20500.0 + late
        );
        let seen = log(text).rtt(ms(0.2)).seen_at(End::Server);
        let waits = seen.longer(Cause::ServerThink, ms(200));
        assert_eq!(waits.last().map(|line| line.confidence), Some(most), "{late}: {seen}");
    }
}

/// Two ends send each other 160 bytes every 20 ms, each by a timer of its own (a multiplex of sound and pictures over a loopback interface): the
/// client's come 20 ms before the server's, or 13, and the server's are never late for that. Whether these answer is unknown. A server that
/// takes 13 ms is as late as its client was.
#[test]
fn who_speaks_every_20_ms_at_whatever_time_it_was_asked_may_answer_nothing() {
    let late = |n: i32| if n / 10 % 2 == 0 { 0.1 } else { 7.0 };
    let apart =
        each(1..60, |n| format!("@{} C 160\n @{} S 160\n ", f64::from(20 * n) + late(n), 20 * n + 20));
    let answers = each(1..60, |n| format!("+{} C 160\n +13 S 160\n ", late(n)));
    for (turns, most) in [(apart, Possible), (answers, Certain)] {
        let seen = log(format!("handshake\n {turns}")).rtt(ms(0.04)).seen_at(End::Server);
        let waits = seen.longer(Cause::ServerThink, ms(10));
        assert_eq!(waits.last().map(|line| line.confidence), Some(most), "{seen}");
        assert!(waits.len() > 50, "{seen}");
    }
}

/// Two ends send each other 160 bytes every 20 ms by timers of their own, 3.3 ms apart, until what the client sends follows its
/// server's at once (frames 2075 to 3185 of two voices in one connection): that answers nothing. A server that takes 3.3 ms moves
/// with its client.
#[test]
fn who_sends_as_much_as_it_gets_and_keeps_its_time_may_answer_nothing() {
    for (moves, most) in [(false, Possible), (true, Certain)] {
        let turns = each(1..90, |n| {
            let own = f64::from(n * 20);
            let [asks, answers] = match (n > 40, moves) {
                (false, _) => [own - 3.3, own],
                (true, true) => [own + 0.02, own + 3.32],
                (true, false) => [own - 19.98, own],
            };
            format!("@{asks} C 160\n @{answers} S 160")
        });
        let seen = log(format!("handshake\n {turns}")).rtt(ms(0.03)).seen_at(End::Server);
        let answers = seen.lines(Cause::ServerThink, Server);
        assert_eq!(answers.last().expect("an answer").confidence, most, "{moves}{seen}");
    }
}
