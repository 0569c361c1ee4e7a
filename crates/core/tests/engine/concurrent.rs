//! Several requests under way at once, where something shows which message answers which.

use tcpwhy_core::cause::Cause;
use tcpwhy_core::cause::Side::{Path, Server, Unknown};
use tcpwhy_core::report::Confidence::Possible;
use tcpwhy_core::report::{Kind, Vantage};
use tcpwhy_wire::Duration;

use crate::packet_log::{End, MSS, each, log, ms};

/// Ten calls, begun every 10 ms, each answered 50 ms after it arrived: four others are under way
/// meanwhile.
fn multiplexed(id: impl Fn(u32) -> String) -> String {
    let call = |n: u32| {
        let (begun, label, id) = (200 + 10 * n, n, id(n));
        format!(
            "@{begun} C 60 asks{id} #q{label}\n q{label}+50 S 90 answers{id} #a{label}\n a{label}+0 C ack"
        )
    };
    format!("handshake\n{}", each(0..10, call))
}

/// A server that takes 50 ms, with a client that multiplexes, takes 50 ms, not the time from one
/// reply to the next.
#[test]
fn each_answer_belongs_to_its_own_question() {
    for rtt in [ms(0.2), ms(20), ms(80)] {
        for id in [|n: u32| format!("={n}"), |_| String::new()] {
            log(multiplexed(id)).rtt(rtt).both_ends(|seen| {
                assert_eq!(seen.count(Kind::Exchange), 10, "{seen}");
                for n in 1..=10 {
                    let bill = [(Cause::ServerThink, Server, ms(50)), (Cause::RoundTrip, Path, rtt)];
                    seen.number(n).is_within(ms(0.01), &bill);
                }
            });
        }
    }
}

/// Replies of 268 bytes come at once, one of them after 3 ms, though by its stamp it left as soon
/// as the others (frames 7 to 13 of an NFS mount, near the client): nothing was under way before
/// it, so the link was not busy.
#[test]
fn an_answer_that_comes_late_behind_nothing_shows_no_link() {
    let call = |n: u32, late: f64| {
        let idle = if n < 42 { 40.0 } else { 0.05 };
        format!("+{idle} C 168 asks={n}\n +0.1 S 268 late={late} answers={n}\n +0.01 C ack")
    };
    let several =
        "+5 C 168 asks=20 #q\n q+0 C 168 asks=21\n +0.1 S 268 answers=20\n +0 S 268 answers=21\n +0.01 C ack";
    let calls = each(0..16, |n| call(30 + n, if n == 13 { 2.8 } else { 0.0 }));
    let seen = log(format!("handshake\n {several}\n {calls}")).rtt(ms(0.4)).seen_at(End::Client);
    assert_eq!(seen.spent(Cause::Bandwidth, Path), ms(0), "{seen}");
}

/// Replies may overtake each other if identifiers distinguish them.
#[test]
fn answers_may_come_in_any_order() {
    let call = |n: i64| {
        let think = 100 - 10 * n;
        format!("@{} C 60 asks={n} #q{n}\n q{n}+{think} S 90 answers={n} #a{n}\n a{n}+0 C ack", 200 + n)
    };
    log(format!("handshake\n{}", each(0..8, call))).rtt(ms(4)).both_ends(|seen| {
        for n in 0..8 {
            let bill =
                [(Cause::ServerThink, Server, ms(100 - 10 * n as i32)), (Cause::RoundTrip, Path, ms(4))];
            seen.number(n + 1).is_within(ms(0.01), &bill);
        }
    });
}

/// A pipeline of HTTP/1.1 (RFC 9112, 9.3.2): the requests leave together, and the server handles
/// one after the other.
#[test]
fn a_pipeline_waits_for_all_that_is_before_it() {
    let text = "handshake
         @20 C 100 asks #q1
         q1+0 C 100 asks
         q1+0 C 100 asks
         q1+10 S 300 answers
         q1+20 S 300 answers
         q1+30 S 300 answers #last
         last+0 C ack
         last+5 C 100 asks #alone
         alone+10 S 300 answers";
    log(text).rtt(ms(6)).both_ends(|seen| {
        for (n, think) in [(1, 10), (2, 20), (3, 30), (4, 10)] {
            let bill = [(Cause::ServerThink, Server, ms(think)), (Cause::RoundTrip, Path, ms(6))];
            seen.number(n).is_within(ms(0.01), &bill);
        }
        assert_eq!(seen.number(4).exchange.client_idle, ms(5), "{seen}");
    });
}

/// A loss in one reply holds up those after it, and each is billed what it waited.
#[test]
fn a_loss_delays_every_answer_behind_it() {
    let text = "handshake
         @20 C 60 asks=1 #q1
         q1+1 C 60 asks=2 #q2
         q1+30 S 90 answers=1 lost #a1
         a1+4 S 90 answers=2 #a2
         a2+0 C ack
         a1+230 S 0..90
         +0 C ack";
    let rtt = ms(10);
    log(text).rtt(rtt).both_ends(|seen| {
        for (n, think) in [(1, 30), (2, 33)] {
            let bill = seen.number(n);
            assert_eq!(bill.exchange.elapsed, rtt + ms(260 - (n as i32 - 1)), "{seen}");
            let repair: Duration =
                [Cause::Rto, Cause::Loss].map(|cause| bill.ns(cause, Path)).into_iter().sum();
            assert!(repair >= ms(220) && bill.ns(Cause::ServerThink, Server) <= ms(think + 5), "{n}: {seen}");
        }
    });
}

/// With one request at a time the protocol need not be read: the bills are the same, byte for byte.
#[test]
fn marks_change_nothing_where_one_question_is_under_way() {
    let exchange = |marked: bool, n: u32| {
        let [asks, answers] = if marked { ["asks", "answers"] } else { ["", ""] };
        let rest = if n.is_multiple_of(3) { "+40 S ack\n +0 C 20" } else { "" };
        format!(
            "+5 C 100 {asks}\n {rest}\n +{n} S {MSS}x3 {answers}\n +0 C ack\n +{} S ack",
            u8::from(n == 7)
        )
    };
    let whole = |marked| format!("handshake\n{}", each(0..12, |n| exchange(marked, n)));
    for end in End::BOTH {
        let [plain, marked] = [false, true].map(|marked| log(whole(marked)).rtt(ms(3)).seen_at(end));
        assert_eq!(plain.report, marked.report, "{plain}");
    }
}

/// A tail loss probe without a loss (a client that slept): the acknowledgement shows that the bytes
/// came twice (RFC 2883).
#[test]
fn what_was_sent_again_for_nothing_delays_nobody() {
    let text = "handshake
         @20 C 60 asks=1 #q1
         q1+1 C 60 asks=2 #q2
         q1+30 S 90 answers=1 #a1
         a1+4 S 90 answers=2 #a2
         a2+15 S 90..180 #again
         again+0 C ack
         again+5 C 60 asks=3
         +20 S 90 answers=3";
    log(text).rtt(ms(0.2)).both_ends(|seen| {
        for (n, think) in [(1, 30), (2, 33), (3, 20)] {
            let bill = [(Cause::ServerThink, Server, ms(think)), (Cause::RoundTrip, Path, ms(0.2))];
            seen.number(n).is_within(ms(0.01), &bill);
        }
    });
}

/// A stream on which the server sends news every 5 s (gRPC): the reply is the first message, and
/// nobody waits for the others.
#[test]
fn news_on_an_open_stream_are_no_part_of_the_answer() {
    let news = each(1..=5, |n| format!("first+{} S 40 answers=1 part #n{n}\n n{n}+0 C ack", 5_000 * n));
    let text = format!(
        "handshake
         @50 C 60 asks=1 opens #q
         q+0 C 20 asks=3
         q+8 S 20 answers=1 opens
         q+8 S 40 answers=1 part #first
         first+0 C ack
         {news}"
    );
    log(text).rtt(ms(2)).both_ends(|seen| {
        assert_eq!(seen.count(Kind::OneWay), 5 + 1, "{seen}");
        let bills = seen.connection().exchanges.iter().flat_map(|exchange| &exchange.bill);
        let waits = bills.filter(|line| [Cause::ServerThink, Cause::SenderThink].contains(&line.cause));
        assert_eq!(waits.map(|line| line.ns).sum::<Duration>(), ms(8), "{seen}");
    });
}

/// Replies that leave when an acknowledgement arrives may have been held by Nagle or not: here
/// three of them by chance. A server that repeatedly continues without one has set TCP_NODELAY, and
/// nothing is missing from the capture.
#[test]
fn a_server_that_sends_beside_small_ones_does_not_mind_nagle() {
    let asks = each(0..20, |n| format!("@{} C 60 asks={n} #q{n}", 200 + n));
    let chance = each(0..3, |n| format!("a{n}+0 C ack #k{n}\n k{n}+0 S 90 answers={} #a{}", n + 1, n + 1));
    let others = each(4..20, |n| format!("q0+{} S 90 answers={n} #a{n}\n a{n}+0 C ack", 85 + 3 * n));
    let text = format!("handshake\n {asks}\n q0+25 S 90 answers=0 #a0\n {chance}\n a3+0 C ack\n {others}");
    log(text).rtt(ms(20)).both_ends(|seen| {
        let bill = seen.number(20);
        assert!(bill.ns(Cause::Unexplained, Unknown) <= ms(12), "{seen}");
        assert!(bill.ns(Cause::ServerThink, Server) >= ms(60), "{seen}");
    });
}

/// If little of each packet was captured, the head of a reply may be missing: it is a reply all the
/// same, and the next request does not wait for its rest. With identifiers it may belong to another
/// request.
#[test]
fn an_answer_without_a_head_that_can_be_read_is_one() {
    let calls = each(0..6, |_| "+5 C 41 asks\n +3 S 1448".to_owned());
    log(format!("handshake\n{calls}")).rtt(ms(40)).both_ends(|seen| {
        assert_eq!(seen.count(Kind::Exchange), 6, "{seen}");
        for n in 1..=6 {
            let bill = [(Cause::ServerThink, Server, ms(3)), (Cause::RoundTrip, Path, ms(40))];
            seen.number(n).is_within(ms(0.01), &bill);
        }
    });
}

/// A filtered capture has neither the first reply nor a bare ACK of it: the next request
/// acknowledges it, and is answered after 120 ms. Nothing shows when the first was.
#[test]
fn an_answer_that_is_in_no_packet_was_given_before_the_next_question() {
    let text = "handshake
         +5 C 700 asks
         +60 S 1400 unseen #a
         a+0 C ack unseen
         +900 C 701 asks
         +120 S 300 answers #b
         b+5 C 702 asks
         +120 S 300 answers";
    log(text).rtt(ms(20)).without_ip_ids().both_ends(|seen| {
        assert_eq!([Kind::Exchange, Kind::OneWay].map(|kind| seen.count(kind)), [2, 1], "{seen}");
        for n in 1..=2 {
            assert_eq!(seen.exchange(n).exchange.elapsed, ms(140), "{seen}");
        }
        let bill = [(Cause::ServerThink, Server, ms(120)), (Cause::RoundTrip, Path, ms(20))];
        seen.exchange(2).is_within(ms(0.01), &bill);
    });
}

/// One of two requests is never answered: the RTT is known, but that somebody waited for its
/// arrival is only possible.
#[test]
fn a_question_that_is_not_answered_is_hardly_waited_for() {
    let text = "handshake\n +5 C 60 asks=1 #q\n +1 C 80 asks=2\n q+30 S 90 answers=1 #a\n a+0 C ack\n +500 C fin\n +0 S fin\n +0 C ack";
    log(text).rtt(ms(20)).both_ends(|seen| {
        seen.exchange(1).is(&[(Cause::ServerThink, Server, ms(30)), (Cause::RoundTrip, Path, ms(20))]);
        let unanswered = seen.one_way(1).is(&[(Cause::RoundTrip, Path, ms(20))]);
        assert_eq!(unanswered.exchange.request_bytes, 80, "{seen}");
        assert!(unanswered.exchange.bill.iter().all(|line| line.confidence == Possible), "{seen}");
    });
}

/// Two requests of 48 bytes are always under way, 14 ms apart, each sent when the reply to the last
/// but one has come: a disk's reads.
fn two_at_a_time(think_ms: u32) -> String {
    let asked = |n: u32| {
        let when = if n < 2 { format!("@{}", 100 + 14 * n) } else { format!("a{}+0.1", n - 2) };
        format!("{when} C 48 #q{n}\n q{n}+{think_ms} S 1448 more #r{n}\n r{n}+0 S 600 #a{n}\n a{n}+0.1 C ack")
    };
    format!("handshake\n {}", each(0..16, asked))
}

/// A client that sends the next request before the reply has come does not pause within a request,
/// whatever the protocol. Before a reply to another request has come, nothing shows it.
#[test]
fn whoever_asks_beside_an_answer_does_not_pause() {
    for (think, rtt) in [(0, 20), (0, 30), (12, 20), (30, 20)] {
        log(two_at_a_time(think)).rtt(ms(rtt)).both_ends(|seen| {
            for exchange in seen.connection().exchanges.iter().filter(|exchange| exchange.n > 1) {
                let held = [Cause::SenderThink, Cause::Nagle, Cause::NagleDelayedAck];
                let mut pauses = exchange.bill.iter().filter(|line| held.contains(&line.cause));
                assert!(pauses.all(|line| line.confidence == Possible), "{think} {rtt} {seen}");
            }
        });
    }
}

/// Near the server each of them has its own bill once it is answered before the next one arrives.
#[test]
fn what_is_answered_before_the_next_one_comes_is_a_question() {
    log(two_at_a_time(12)).rtt(ms(20)).both_ends(|seen| {
        if seen.connection().vantage == Vantage::Server {
            assert_eq!(seen.count(Kind::Exchange), 16, "{seen}");
            for n in 1..=16 {
                seen.exchange(n)
                    .is(&[(Cause::RoundTrip, Path, ms(20)), (Cause::ServerThink, Server, ms(12))]);
            }
        }
    });
}

/// A client that keeps its request's stream open may receive something else on it: the next message
/// need not be a reply.
#[test]
fn what_comes_on_a_stream_that_stays_open_may_be_news() {
    let text = "handshake
         +0 S ack
         +0 C 60 asks=1 opens #q
         q+0.05 S 18
         +5 C ack";
    log(text).rtt(ms(0)).both_ends(|seen| {
        let bill = seen.exchange(1);
        bill.is_within(ms(0.01), &[(Cause::ServerThink, Server, ms(0.05))]);
        assert_eq!(bill.exchange.bill[0].confidence, Possible, "{seen}");
    });
}
