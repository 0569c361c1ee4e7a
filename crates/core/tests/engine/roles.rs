//! Which end asks, which answers, and which waits? In each log the programs' own times tell.

use tcpwhy_core::Form;
use tcpwhy_core::cause::Cause;
use tcpwhy_core::cause::Side::{Client, Path, Server};
use tcpwhy_core::report::Confidence::{Likely, Possible};
use tcpwhy_core::report::{Kind, Report, Servers};
use tcpwhy_wire::{Duration, Endpoint};

use crate::packet_log::{CLIENT, End, SERVER, each, log, ms, settled};
use crate::seen::Seen;

const RTT: i32 = 20;

/// The time billed to one cause over the whole capture.
fn billed(seen: &Seen, cause: Cause) -> Duration {
    seen.report.bill.iter().filter(|line| line.cause == cause).map(|line| line.ns).sum()
}

/// A client signs on with 100 bytes, and the server asks at its own times; each request is answered after 3
/// ms.
#[test]
fn a_server_that_asks_is_answered_by_the_client() {
    let pauses = [1_700, 2_900, 300, 5_200, 600];
    let text = settled(1) + &each(pauses, |pause| format!("+{pause} S 80\n +3 C 12"));
    log(text).rtt(ms(RTT)).both_ends(|seen| {
        let answers = [(Cause::RoundTrip, Path, ms(RTT)), (Cause::ServerThink, Client, ms(3))];
        for n in 2..=6 {
            let bill = seen.exchange(n).is(&answers);
            assert_eq!(bill.exchange.initiator, Server, "{seen}");
            assert_eq!((bill.exchange.request_bytes, bill.exchange.reply_bytes), (80, 12), "{seen}");
            assert!(bill.of(Cause::ServerThink).confidence <= Likely, "{seen}");
        }
        assert_eq!(seen.count(Kind::Exchange), 6, "{seen}");
        // Nothing is billed if nobody waited.
        assert!(billed(seen, Cause::ServerThink) <= ms(3 * 5 + 1), "{seen}");
        let servers = Servers::One(SERVER);
        assert!(seen.report.findings.iter().all(|finding| finding.servers == servers), "{seen}");
    });
}

/// The server continues 300 ms after its reply, and the client reacts to that: no packet shows whether its
/// reaction is a reply, with the server asking again at its own time, or a request that takes the server
/// long.
#[test]
fn a_server_that_went_on_behind_a_silence_may_be_asking() {
    let turns =
        each([800, 450, 640, 700], |pause| format!("+35 C 220\n +0 S ack\n +{pause} S 150\n +0 C ack"));
    let text = format!("handshake\n +2 C 60\n +1 S 40\n +0 C ack\n +300 S 150\n +0 C ack\n {turns}");
    log(text).rtt(ms(RTT)).both_ends(|seen| {
        let lines = seen.report.connections[0].exchanges.iter().flat_map(|exchange| &exchange.bill);
        let thinks = lines
            .filter(|line| line.cause == Cause::ServerThink && line.side == Server && line.ns >= ms(200));
        for line in thinks {
            assert_eq!(line.confidence, Possible, "{line:?}{seen}");
        }
    });
}

/// The server's heartbeats, one a second, each answered at once: the first answer may be a request, and none
/// is certainly the server's time.
#[test]
fn a_heart_beat_that_is_answered_is_nobodys_wait() {
    let text = settled(1) + &each(0..8, |_| "+980 S 9\n +0.1 C 9".to_owned());
    log(text).rtt(ms(RTT)).both_ends(|seen| {
        assert!(billed(seen, Cause::ServerThink) <= ms(2), "{seen}");
    });
}

/// A client in a closed loop asks again at once, and its server takes two seconds each time: a user waits
/// that long, whether or not the server has greeted before.
#[test]
fn a_slow_server_behind_a_closed_loop_stays_slow() {
    for greeting in ["", "+1 S 11\n"] {
        for (think, len) in [(40, 40), (200, 40), (2_000, 2), (5_000, 40)] {
            let turns = each(0..6, |_| format!("+0.1 C {len}\n +{think} S {len}"));
            let text = format!("handshake\n{greeting}{turns}\n+0 C ack");
            log(text).rtt(ms(RTT)).both_ends(|seen| {
                let first = if greeting.is_empty() { 1 } else { 2 };
                for n in first..first + 6 {
                    let bill = seen.exchange(n);
                    bill.is(&[(Cause::RoundTrip, Path, ms(RTT)), (Cause::ServerThink, Server, ms(think))]);
                    // What takes so long without an acknowledgement may be late on its way.
                    let told = think < 500 || seen.from == "the Server";
                    assert!(bill.of(Cause::ServerThink).confidence >= Likely || !told, "{seen}");
                }
            });
        }
    }
}

/// The server pauses in the middle of its reply, and the client's next request comes at once: it has about
/// the length of the one before, and is no answer.
#[test]
fn a_question_right_behind_a_slow_reply_is_no_answer() {
    for len in [150, 170] {
        let text = format!(
            "handshake\n+5 C 150\n +1 S 700\n +1200 S 700\n +1 C {len}\n +900 S 700\n +1 C 160\n +900 S 700\n +0 C ack"
        );
        log(text).rtt(ms(RTT)).both_ends(|seen| {
            assert_eq!(billed(seen, Cause::ServerThink).as_nanos() / 1_000_000, 1_801, "{seen}");
        });
    }
}

/// A notice makes the client ask: the server's reply comes as soon as others do.
#[test]
fn a_question_that_a_notice_causes_is_a_question() {
    let text = settled(1) + &each(0..3, |_| "+1500 S 30\n +2 C 300\n +15 S 900\n +0 C ack".to_owned());
    log(text).rtt(ms(RTT)).both_ends(|seen| {
        assert_eq!((seen.count(Kind::Exchange), seen.count(Kind::OneWay)), (4, 3), "{seen}");
        for n in 2..=4 {
            seen.exchange(n).is(&[(Cause::RoundTrip, Path, ms(RTT)), (Cause::ServerThink, Server, ms(15))]);
        }
    });
}

/// A server that speaks first, and late, may be slow or have had nothing to say.
#[test]
fn a_late_first_word_is_not_surely_a_wait() {
    log("handshake\n+1300 S 40\n +3 C 120\n +400 S 40\n +0 C ack").rtt(ms(RTT)).both_ends(|seen| {
        assert_eq!(seen.exchange(1).of(Cause::ServerThink).confidence, Likely, "{seen}");
        assert_eq!(seen.exchange(2).of(Cause::ServerThink).confidence, Possible, "{seen}");
    });
}

/// The client's heartbeats every 700 ms, and news now and then: neither answers the other.
#[test]
fn a_heart_beat_is_not_answered_by_what_comes_by_chance() {
    let beats = each(0..12, |n| format!("@{} C 8 #b{n}\n b{n}+0 S ack", 1_000 + 700 * n));
    let news = each([4, 7, 10], |n| format!("b{n}+330 S {}\n +0 C ack", 90 + n));
    let text = format!("{}\n{beats}\n{news}", settled(1));
    log(text).rtt(ms(RTT)).both_ends(|seen| {
        assert_eq!((seen.count(Kind::Exchange), seen.count(Kind::OneWay)), (1, 15), "{seen}");
        assert!(billed(seen, Cause::ServerThink) + billed(seen, Cause::SenderThink) < ms(1), "{seen}");
    });
}

/// The first attempt is lost in the server's program, and the client asks again after its own timeout: the
/// reply answers the second attempt.
#[test]
fn a_second_try_is_a_message_of_its_own() {
    for timeout in [300, 800, 2_500] {
        let text =
            format!("{}+5 C 60 #try\n try+0 S ack\n try+{timeout} C 60\n +30 S 200\n +0 C ack", settled(2));
        log(text).rtt(ms(RTT)).both_ends(|seen| {
            seen.one_way(1).is(&[(Cause::RoundTrip, Path, ms(RTT))]);
            seen.exchange(3).is(&[(Cause::RoundTrip, Path, ms(RTT)), (Cause::ServerThink, Server, ms(30))]);
        });
    }
}

/// An upload in equal parts after a head of another length is one request.
#[test]
fn a_request_in_equal_parts_stays_one() {
    let parts = each(0..5, |n| format!("head+{} C 500 #p{n}\n p{n}+0 S ack", 250 * (n + 1)));
    let text = format!("handshake\n+5 C 200 #head\n head+0 S ack\n{parts}\np4+20 S 100\n +0 C ack");
    log(text).rtt(ms(RTT)).both_ends(|seen| {
        let upload = [
            (Cause::SenderThink, Client, ms(1_250)),
            (Cause::RoundTrip, Path, ms(RTT)),
            (Cause::ServerThink, Server, ms(20)),
        ];
        seen.exchange(1).is(&upload);
    });
}

/// Long polling: news after 4.3 s, or nothing within 10 s, and the client asks again at once with as many
/// bytes.
#[test]
fn a_question_that_is_answered_when_there_is_news_is_a_subscription() {
    let waits = [10_001, 4_300, 10_002, 7_100, 1_200];
    let text = settled(1) + &each(waits, |wait| format!("+0.2 C 150 #ask\n ask+40 S ack\n ask+{wait} S 60"));
    log(text + "\n+0.2 C 150").rtt(ms(RTT)).both_ends(|seen| {
        assert_eq!((seen.count(Kind::Exchange), seen.count(Kind::Subscription)), (3, 3), "{seen}");
        let first = seen.exchange(2);
        let think = first.of(Cause::ServerThink);
        assert_eq!((think.confidence, think.detail.form), (Possible, Some(Form::OrNews)), "{seen}");
        let subscriptions = seen.connection().exchanges.iter().filter(|e| e.kind == Kind::Subscription);
        for (subscription, wait) in subscriptions.zip([10_002, 7_100, 1_200]) {
            let off = subscription.awaited - ms(wait);
            assert!(off.max(-off) < ms(1) && subscription.elapsed < ms(RTT + 1), "{seen}");
        }
    });
}

/// It is unknown whether anybody waits for a reply for eleven minutes.
#[test]
fn a_very_long_wait_is_no_more_than_possibly_a_servers() {
    let text = settled(2) + "+5 C 40 #subscribe\n subscribe+40 S ack\n subscribe+694000 S 300\n +0 C ack";
    log(text).rtt(ms(RTT)).both_ends(|seen| {
        let think = seen.exchange(3).of(Cause::ServerThink).clone();
        assert_eq!((think.confidence, think.detail.form), (Possible, Some(Form::OrNews)), "{seen}");
    });
}

/// A timer's pushes after a reply, twice a second: the reply ends before them, as soon as they show.
#[test]
fn equal_pushes_at_equal_distances_are_a_stream() {
    let pushes = each(0..30, |_| "+500 S 64 #push\n push+0 C ack".to_owned()).replace("+500 S", "+480 S");
    let text = format!("{}+5 C 50\n +2 S 10\n +0 C ack\n{pushes}", settled(1));
    log(text).rtt(ms(RTT)).both_ends(|seen| {
        assert!(billed(seen, Cause::SenderThink) < ms(9 * 500), "{seen}");
        assert!(seen.count(Kind::OneWay) >= 20, "{seen}");
    });
}

/// A server that sends each reply in eight equal parts: the pattern of one reply counts for that one only,
/// and both are waited for to the end.
#[test]
fn equal_parts_of_short_replies_are_no_stream() {
    let part = "\n +0 C ack #read\n read+300 S 700";
    let reply = format!("\n +1500 C 150\n +1 S 700{}\n +0 C ack", part.repeat(7));
    log("handshake".to_owned() + &reply.repeat(3)).rtt(ms(RTT)).both_ends(|seen| {
        assert_eq!((seen.count(Kind::Exchange), seen.count(Kind::OneWay)), (3, 0), "{seen}");
    });
}

/// The server ends an idle connection, and says so (TLS: close_notify of 24 bytes), after a message of the
/// client's that needs no reply.
#[test]
fn last_words_answer_nothing() {
    let idle = settled(5) + "+100 C 40 #thanks\n thanks+40 S ack\n thanks+4000 S 24 fin\n +0 C ack";
    log(idle).rtt(ms(RTT)).both_ends(|seen| {
        assert_eq!((seen.count(Kind::Exchange), seen.count(Kind::OneWay)), (5, 2), "{seen}");
        assert!(billed(seen, Cause::ServerThink) < ms(1), "{seen}");
    });
    // One that ends each connection with its reply (HTTP/1.0), or was as slow before.
    let slow = "handshake\n+0 C 100 #ask\n ask+40 S ack\n ask+4000 S 40 fin\n +0 C ack";
    log(slow).rtt(ms(RTT)).both_ends(|seen| {
        seen.exchange(1).is(&[(Cause::RoundTrip, Path, ms(RTT)), (Cause::ServerThink, Server, ms(4_000))]);
    });
    let again = "handshake\n+0 C 100 #ask\n ask+40 S ack\n ask+900 S 40\n +5 C 90 #more\n more+40 S ack\n more+4000 S 40 fin";
    log(again).rtt(ms(RTT)).both_ends(|seen| {
        seen.exchange(2).is(&[(Cause::RoundTrip, Path, ms(RTT)), (Cause::ServerThink, Server, ms(4_000))]);
    });
}

/// The client closes after 1.5 s without a reply, and resets the connection when that comes.
#[test]
fn an_answer_for_a_client_that_has_closed_is_nobodys_wait() {
    let text = "handshake\n+0 C 100 #ask\n ask+40 S ack\n ask+1500 C fin\n ask+2500 S 300\n +0 C rst";
    log(text).rtt(ms(RTT)).both_ends(|seen| {
        assert_eq!((seen.count(Kind::Exchange), seen.count(Kind::OneWay)), (0, 1), "{seen}");
        assert!(seen.report.elapsed <= ms(2 * RTT + 1), "{seen}");
    });
    // One that has only closed its own direction still reads.
    let text = "handshake\n+0 C 100 #ask\n ask+0 C fin\n ask+2500 S 300 fin\n +0 C ack\n +0 C rst";
    log(text).rtt(ms(RTT)).both_ends(|seen| {
        assert_eq!(seen.count(Kind::Exchange), 1, "{seen}");
    });
}

/// The client's second piece was held until 40 ms later, and the reply comes too soon after it for that to
/// have reached the server: it had not waited.
#[test]
fn a_reply_that_comes_too_soon_did_not_wait() {
    let text = settled(3) + "+5 C 40 #head\n head+40 S ack\n +0 C 60\n head+45 S 200\n +0 C ack";
    let seen = log(text).rtt(ms(RTT)).seen_at(End::Client);
    seen.exchange(4).is(&[(Cause::RoundTrip, Path, ms(RTT)), (Cause::ServerThink, Server, ms(45))]);
}

/// Without the handshake, other connections show which end is the server, then registered ports, and only
/// then the lower one.
#[test]
fn the_server_is_who_accepts_or_has_a_services_port() {
    let turn = |report: &Report| -> Vec<Endpoint> { report.connections.iter().map(|c| c.server).collect() };
    let midway = |ports: [u16; 2]| {
        let ends = [Endpoint { port: ports[0], ..CLIENT }, Endpoint { port: ports[1], ..SERVER }];
        log(settled(3)).rtt(ms(RTT)).between(ends)
    };
    // gRPC's port is above that of its client.
    let segments = midway([40_000, 50_051]).capture(End::Client)[4..].to_vec();
    assert_eq!(turn(&Seen::of(segments, "the client").report)[0].port, 50_051);
    // So is a port that another connection of the same two hosts uses.
    let mut segments = midway([39_000, 55_555]).capture(End::Client);
    let later = midway([41_000, 55_555]).capture(End::Client);
    let last = segments.last().map(|segment| segment.at);
    let first = later[0].at;
    segments.extend(later[4..].iter().map(|segment| {
        let at = last.map_or(segment.at, |last| last + (segment.at - first));
        tcpwhy_wire::Segment { at, ..*segment }
    }));
    let seen = Seen::of(segments, "the client");
    assert_eq!(
        turn(&seen.report).iter().map(|server| server.port).collect::<Vec<_>>(),
        [55_555, 55_555],
        "{seen}"
    );
}

/// A capture that starts with a keep-alive of one byte: nothing was asked.
#[test]
fn a_keep_alive_is_no_message_even_where_it_comes_first() {
    let text =
        settled(2) + "+9000 C 199..200 more #probe\n probe+0 S ack\n probe+9000 C 100\n +5 S 200\n +0 C ack";
    for end in End::BOTH {
        let segments = log(text.clone()).rtt(ms(RTT)).capture(end);
        let probe = segments.iter().position(|segment| segment.payload_len == 1).expect("the probe");
        let seen = Seen::of(segments[probe..].to_vec(), "behind the handshake");
        assert_eq!((seen.count(Kind::Exchange), seen.count(Kind::OneWay)), (1, 0), "{seen}");
        assert_eq!(seen.exchange(1).exchange.request_bytes, 100, "{seen}");
    }
}

/// EtherNet/IP's port is registered above the ports that old hosts begin with.
#[test]
fn a_registered_port_is_the_server_s_wherever_it_lies() {
    let turns = "@0 C 293\n +4 S 210\n +0 C ack\n +150 C 293\n +4 S 210\n +0 C ack\n";
    for [client, server] in [[3_033, 44_818], [1_533, 5_432], [40_000, 20_001], [52_000, 443]] {
        let ends = [client, server].map(|port| Endpoint { port, ..CLIENT });
        let seen = log(turns).between(ends).seen_at(End::Client);
        assert_eq!(seen.connection().client, ends[0], "{seen}");
    }
}

/// Two unregistered ports, without a handshake: the first end heard asks a heartbeat that is answered at
/// once.
#[test]
fn who_is_heard_first_asks_where_ports_say_nothing() {
    let [low, high] = [55_659, 65_480].map(|port| Endpoint { port, ..CLIENT });
    let text = "@0 C 9\n +0 S ack\n +2 S 3\n +0 C ack\n".to_owned()
        + &"+25000 C 9\n +0 S ack\n +2 S 3\n +0 C ack\n".repeat(4);
    for ends in [[low, high], [high, low]] {
        let seen = log(text.clone()).between(ends).seen_at(End::Client);
        assert_eq!(seen.connection().client, ends[0], "{seen}");
        assert!(seen.report.elapsed <= ms(11), "{seen}");
        assert!(seen.report.findings.iter().all(|finding| finding.side != Client), "{seen}");
    }
}

/// A wrong password is answered after 2.7 seconds, and the client closes, then the server (frames 106 to 111
/// of FTP): the client closed because of that reply, and had waited for it. A server that closes first has
/// given up.
#[test]
fn who_closes_behind_an_answer_had_waited_for_it() {
    for (closing, waited) in [("+0.2 C fin\n +0.4 S fin", true), ("+0 S fin\n +0 C ack", false)] {
        let text = format!(
            "handshake\n +3 S 20\n +0 C ack\n +350 C 16\n +0.5 S 34\n +0 C ack\n +0.1 C 17 #ask\n ask+41 S ack\n ask+2737 S 22\n {closing}"
        );
        let seen = log(text).rtt(ms(0.4)).seen_at(End::Client);
        assert_eq!(seen.spent(Cause::ServerThink, Server) >= ms(2_700), waited, "{closing}: {seen}");
    }
}

/// A reverse shell gives orders to the program that connected (frames 20 to 286 of one): it begins by sending
/// itself, 180 kB, and each of its orders is answered 50 ms later, to a millisecond; the next one comes when
/// a person has typed it.
#[test]
fn who_begins_and_is_answered_after_one_time_is_the_one_that_asks() {
    let reactions = [50.6, 51.2, 50.6, 50.3, 50.6, 51.3, 49.9, 51.0, 50.3, 50.6];
    let waits = [12.0, 334.0, 379.0, 2.0, 21_496.0, 905.0, 12_096.0, 6_686.0, 31.0, 2_511.0];
    let lens = [423, 160, 3_936, 192, 384, 160, 2_752, 5_696, 208, 192];
    let turns = each(0..10, |n| {
        format!("+{} C {} #said{n}\n said{n}+0 S ack\n said{n}+{} S 128", reactions[n], lens[n], waits[n])
    });
    let text = format!(
        "handshake\n +243 S 4\n +1.6 S 1448x20 more\n +0 S 700\n +0 C ack\n +500 S 571\n {turns}\n +50 C 160"
    );
    log(text).rtt(ms(0.3)).both_ends(|seen| {
        // From the third long wait on it has shown.
        let last = seen.connection().exchanges.iter().rev().find(|exchange| exchange.kind == Kind::Exchange);
        let last = last.expect("orders");
        assert_eq!((last.initiator, last.request_bytes), (Server, 128), "{seen}");
        let answered = last.bill.iter().find(|line| line.cause == Cause::ServerThink).expect("an answer");
        assert!((answered.ns - ms(50)).as_nanos().abs() < 1_000_000 && answered.side == Client, "{seen}");
        // Until then it is a guess, except for what had come before it.
        let billed = seen.lines(Cause::ServerThink, Server);
        let sure = billed.iter().filter(|line| line.confidence > Possible && line.ns >= ms(250));
        assert_eq!(sure.count(), 0, "{seen}");
        assert!(seen.spent(Cause::ServerThink, Server) < ms(24_000), "{seen}");
    });
}

/// A client that asks again 50 ms after each reply, with a server that has greeted it and takes its time: its
/// user waits that long. If the server's times differ tenfold and more, it may be the one that asks.
#[test]
fn a_client_that_pauses_for_one_time_still_asks() {
    for (waits, sure) in [
        ([400.0, 900.0, 600.0, 700.0, 1_100.0, 500.0], true),
        ([400.0, 9_000.0, 600.0, 700.0, 4_100.0, 500.0], false),
    ] {
        let turns = each(waits, |wait| format!("+50 C 160 #q\n q+0 S ack\n q+{wait} S 128"));
        let text = format!("handshake\n +1 S 40\n {turns}\n +0 C ack");
        log(text).rtt(ms(0.3)).both_ends(|seen| {
            assert_eq!(seen.count(Kind::Exchange), 7, "{seen}");
            let last = seen.exchange(7);
            assert_eq!(last.exchange.initiator, Client, "{seen}");
            assert_eq!(last.of(Cause::ServerThink).confidence >= Likely, sure, "{seen}");
        });
    }
}

/// An SSH client sends its version at once, and waits 400 ms for its server's (frames 37 to 39). If the
/// server's came first, it waits for nothing.
#[test]
fn a_client_that_greets_waits_for_its_server_s_greeting() {
    let rest = "+0.1 S 680\n +0.1 C 1200\n +5 C 48 asks\n +30 S 264 answers\n +0 C ack";
    for first in [true, false] {
        let greetings = if first {
            "+0.7 C 41 greets #c\n c+408 S 25 greets"
        } else {
            "+408 S 25 greets\n +0.7 C 41 greets"
        };
        log(format!("handshake\n {greetings}\n {rest}")).rtt(ms(20)).both_ends(|seen| {
            let exchange = seen.exchange(1);
            assert_eq!(exchange.exchange.request_bytes, if first { 41 } else { 0 }, "{seen}");
            assert_eq!(exchange.ns(Cause::ServerThink, Server), ms(408), "{seen}");
        });
    }
}

/// An FTP client asks for a listing, gives up after a minute, and resets data that comes one round trip later
/// (frames 33 to 38 of a mirror's FTP): it had waited until it closed. If the protocol is not known to owe a
/// reply, it is unknown what it waited for, and a client that closes sooner than the reply takes has stopped
/// waiting.
#[test]
fn who_gives_up_on_an_answer_that_is_owed_had_waited_until_then() {
    for (asks, answers, closes, waited) in
        [("asks", "answers", 30_000, true), ("", "", 30_000, false), ("asks", "answers", 100, false)]
    {
        let text = format!(
            "handshake\n +5 C 30 {asks}\n +1 S 51 {answers}\n +0 C 6 {asks} #q\n q+0 S ack\n q+{closes} C fin #close\n close+0 S ack\n close+1 S 37 {answers}\n +0 C rst"
        );
        let seen = log(text).rtt(ms(283)).seen_at(End::Client);
        assert_eq!(seen.count(Kind::Exchange), if waited { 2 } else { 1 }, "{closes}: {seen}");
        let server = seen.spent(Cause::ServerThink, Server);
        assert_eq!(server >= ms(29_000), waited, "{seen}");
    }
}

/// A tunnel's client answers messages within two milliseconds, and now and then sends more 8 ms later, before
/// anything comes (frames 165 to 200 of an editor's tunnel): the pairing is unknown, and 700 ms of the other
/// end are at most possible. A client that asks and waits, or always asks in two pieces, waits for its
/// server.
#[test]
fn a_client_that_goes_on_without_an_answer_may_not_wait_for_one() {
    for (each_in, most) in [(3, Possible), (100, Likely), (1, Likely)] {
        let turn = |n: u32| {
            let more = if n % each_in == each_in - 1 { "p+8 C 278 #q\n +0 S ack\n" } else { "" };
            let asked = if more.is_empty() { "p" } else { "q" };
            format!("+2 C 116 #p\n +0 S ack\n {more} {asked}+{} S 322\n +0 C ack\n", 20 + n * 7 % 40)
        };
        let turns: String = (0..24).map(turn).collect();
        let text = format!("handshake\n {turns} +2 C 116 #last\n +0 S ack\n last+700 S 194\n +0 C ack");
        let seen = log(text).rtt(ms(1.2)).seen_at(End::Client);
        let bill = seen.exchange(25);
        let think = bill.of(Cause::ServerThink);
        assert_eq!(think.confidence.min(Likely), most, "{each_in}: {seen}");
    }
}

/// An editor beyond a relay, on the service's port, sends encrypted requests through a tunnel that begins
/// before the capture: each is answered within 3.5 ms in two records, and the next one comes when somebody
/// does something (frames 10 to 38 of a tunnel). If its replies took as long before, or the other end was
/// seen to open the connection, that may wait.
#[test]
fn who_serves_by_its_port_alone_may_be_the_one_that_asks() {
    for (slow, from, most) in [(17, 3, Possible), (150, 3, Likely), (17, 0, Likely)] {
        let turns = each([20, slow, 7, 8, 511, 20], |wait| {
            format!("+3.4 C 116\n +0.5 C 68 #q{wait}\n q{wait}+0.2 S ack\n q{wait}+{wait} S 242")
        });
        let log = log(format!("handshake\n {turns}\n +0 C ack"))
            .rtt(ms(0.2))
            .between([CLIENT, Endpoint::v4([10, 0, 0, 2], 443)]);
        let seen = Seen::of(log.capture(End::Client)[from..].to_vec(), "the client");
        let long = seen.longer(Cause::ServerThink, ms(400));
        assert_eq!(
            long.iter().map(|line| line.confidence).collect::<Vec<_>>(),
            [most],
            "{slow} {from}: {seen}"
        );
    }
}

/// A program hands out one-byte tokens at its own times, 62 ms and multiples, and its client sends four such
/// bytes when it has done the work for one, or none (frames 19 to 161 of one): the next token certainly
/// answers nothing. With longer messages it may.
#[test]
fn tokens_that_come_by_their_own_time_answer_nothing_for_certain() {
    for len in [1, 40] {
        let four = format!("+0.4 C {len} #q\n +0.2 C {len}\n +0.1 C {len}\n +0.1 C {len}\n +0.1 S ack\n");
        let times =
            [[62.0, 63.0], [61.6, 126.3], [121.9, 248.4], [62.1, 125.4], [62.1, 123.5], [184.0, 62.0]];
        let tasks: String = times
            .map(|[first, next]| {
                format!("{four} +{first} S {len}\n +0.1 C ack\n +{next} S {len}\n +0.1 C ack\n")
            })
            .concat();
        let seen = log("handshake\n".to_owned() + &tasks).rtt(ms(0.1)).seen_at(End::Client);
        let last =
            seen.lines(Cause::ServerThink, Server).last().map(|line| (line.ns >= ms(183), line.confidence));
        assert_eq!(last.map(|(long, _)| long), Some(true), "{seen}");
        assert!(last.is_some_and(|(_, told)| (told == Possible) == (len == 1)), "{seen}");
    }
}
