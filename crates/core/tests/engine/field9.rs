//! What the readings of strangers' captures had left wrong, as packet logs.

use tcpwhy_core::cause::{Cause, Side};
use tcpwhy_core::report::Confidence::{Certain, Likely, Possible};
use tcpwhy_core::report::Kind;

use crate::packet_log::{End, each, log, ms, settled};
use crate::seen::Seen;

/// A program that was called home gives orders to the one that called (frames 20 to 286 of a shell that serves whoever it connects to): it begins
/// with itself, 180 kB, and each of its orders is answered 50 ms later, to a millisecond; the next one comes when a person has typed it.
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
        assert_eq!((last.initiator, last.request_bytes), (Side::Server, 128), "{seen}");
        let answered = last.bill.iter().find(|line| line.cause == Cause::ServerThink).expect("an answer");
        assert!(
            (answered.ns - ms(50)).as_nanos().abs() < 1_000_000 && answered.side == Side::Client,
            "{seen}"
        );
        // Until then it is a guess, but for what had come before it.
        let billed = seen.lines(Cause::ServerThink, Side::Server);
        let sure = billed.iter().filter(|line| line.confidence > Possible && line.ns >= ms(250));
        assert_eq!(sure.count(), 0, "{seen}");
        assert!(seen.spent(Cause::ServerThink, Side::Server) < ms(24_000), "{seen}");
    });
}

/// A client that asks again 50 ms behind each answer, of a server that has greeted it with a word and takes its time: that is what its user feels.
/// Where the server's times differ tenfold and more, it may be the one that asks.
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
            assert_eq!(last.exchange.initiator, Side::Client, "{seen}");
            assert_eq!(last.of(Cause::ServerThink).confidence >= Likely, sure, "{seen}");
        });
    }
}

/// Output that a program pushes over SSH for hours, in small segments with pauses of half a minute (frames 1681 to 3123): each is a message of its own,
/// also where a part of each pause was the link's.
#[test]
fn a_pause_is_its_sender_s_although_the_link_took_a_part_of_it() {
    let pushes = each(0..12, |n| format!("p{n}+30000 S 68 #p{}\n p{}+0 C ack", n + 1, n + 1));
    // A reply that shows the link's rate.
    let reply = each(1..20, |n| format!("s0+0 S 1448 more #s{n}"));
    let acks = each(0..20, |n| format!("s{n}+0 C ack"));
    let text = format!(
        "handshake\n +5 C 100\n +1 S 1448 more #s0\n {reply}\n s0+0 S 700 #tail\n {acks}\n tail+0 C ack\n +9000 S 68 #p0\n p0+0 C ack\n {pushes}"
    );
    log(text).rtt(ms(0.6)).bottleneck(End::Server, 3_000_000).both_ends(|seen| {
        assert!(seen.spent(Cause::SenderThink, Side::Server) < ms(1_000), "{seen}");
        assert!(seen.count(Kind::OneWay) >= 12, "{seen}");
    });
}

/// A proxy's answer in two writes, the second of which waits for an acknowledgement that is held back for 210 ms (frames 364 to 367), on a
/// connection whose beginning is not in the capture. Before, a small write had left beside a segment of 1,452 bytes: that is as large as they get there,
/// and no proof that Nagle is off.
#[test]
fn a_segment_with_more_behind_it_may_be_full_where_no_syn_says_so() {
    let text = "handshake\n +5 C 290\n +1 S 154\n +0 S 1452 more\n +0 C ack\n +0 S 325\n +0 C ack\n \
                +5 C 290 #ask\n ask+0 S ack\n ask+900 S 154 #head\n head+210 C ack\n +0 S 1109\n +38 C 290";
    let mut segments = log(text).rtt(ms(154)).without_timestamps().capture(End::Client);
    segments.drain(..3);
    let seen = Seen::of(segments, "behind the handshake");
    let held = seen.spent(Cause::NagleDelayedAck, Side::Server);
    assert!((held - ms(364)).as_nanos().abs() < 2_000_000, "{seen}");
}

/// An answer, its probe and the copy that its sender's timer sent come in one instant (frames 186 to 207): the answer had left 200 ms before, at least.
/// One that comes alone is the server's, as far as is known.
#[test]
fn an_answer_that_comes_with_its_copy_had_stood_on_the_path() {
    for stood in [true, false] {
        let copy = if stood { "reply+200 S 300..1760 more late=54" } else { "reply+300 C ack" };
        let text = format!(
            "handshake\n +5 C 100\n +1 S 300\n +0 C ack\n +20 C 800 #ask\n ask+0 S ack\n ask+19 S 1460x3 more late=254 #reply\n reply+0 S 130 late=254\n {copy}\n +5 C ack"
        );
        let seen = log(text).rtt(ms(19)).without_timestamps().seen_at(End::Client);
        let server =
            seen.lines(Cause::ServerThink, Side::Server).into_iter().filter(|line| line.ns >= ms(20));
        let surest = server.map(|line| line.confidence).max();
        assert_eq!(surest, Some(if stood { Possible } else { Likely }), "{seen}");
        let queued = seen.spent(Cause::Queueing, Side::Path);
        assert_eq!(queued >= ms(198), stood, "{seen}");
    }
}

/// What says nothing of when an answer left, 200 ms behind its request: a copy of the answer before it that comes with it, one that a timer of
/// a data centre lets go after 0.9 ms (rto_min, ip-route(8)), a probe (RFC 8985, 7.3), and one of the request, whose bytes have the numbers of the answer's.
#[test]
fn an_answer_stood_by_no_other_copy_than_its_own() {
    let settled = settled(6);
    for (rtt, first_seq, copy) in [
        (20.0, 5_000, "reply+0.3 S 1000..1200"),
        (0.2, 5_000, "reply+0.9 S 1200..1400"),
        (20.0, 5_000, "reply+60 S 1200..1400"),
        (20.0, 450, "ask+200.5 C 600..700"),
    ] {
        let text = format!("{settled} +5 C 100 #ask\n ask+200 S 200 #reply\n {copy}\n reply+2 C ack");
        log(text).rtt(ms(rtt)).first_seq(End::Server, first_seq).both_ends(|seen| {
            assert_eq!(seen.spent(Cause::Queueing, Side::Path), ms(0), "{copy}: {seen}");
            assert!(seen.spent(Cause::ServerThink, Side::Server) >= ms(199), "{copy}: {seen}");
        });
    }
}

/// The same behind a request that had gone out again meanwhile (frames 239 to 276): the answer had left before that arrived.
#[test]
fn an_answer_that_stood_had_answered_the_first_copy() {
    let text = "handshake\n +5 C 100\n +1 S 300\n +0 C ack\n +20 C 541 #ask\n ask+253 C 100..641 #again\n \
                ask+3 S 868 late=272 #reply\n reply+203 S 300..1168 late=69.2\n reply+204 S ack late=74\n +50 C ack";
    let seen = log(text).rtt(ms(19)).without_timestamps().seen_at(End::Client);
    assert_eq!(seen.spent(Cause::Rto, Side::Path), ms(0), "{seen}");
    assert!(seen.spent(Cause::Queueing, Side::Path) >= ms(250), "{seen}");
    assert!(
        seen.lines(Cause::ServerThink, Side::Server)
            .iter()
            .all(|line| line.confidence < Certain || line.ns < ms(5)),
        "{seen}"
    );
}

/// A request that goes out again after 240 ms, and a D-SACK for that with the first acknowledgement of all, 288 ms behind the first copy on a path of 15 ms (frames 198
/// to 214): no host holds back an acknowledgement for as long, so that the path had held the request, whatever the server took. One that comes 40
/// ms behind the first copy leaves the rest to the server.
#[test]
fn no_host_acknowledges_so_late_what_it_had() {
    for (held, surest) in [(260.0, Possible), (0.0, Likely)] {
        let acked = if held > 0.0 { "" } else { "ask+40 S ack\n" };
        let text = format!(
            "handshake\n +5 C 100\n +1 S 300\n +0 C ack\n +20 C 488 late={held} #ask\n {acked} ask+240 C 100..588 late=25 #again\n again+0 S ack\n +0.1 S 964\n +0 C ack"
        );
        let seen = log(text).rtt(ms(15)).without_timestamps().seen_at(End::Client);
        let server =
            seen.lines(Cause::ServerThink, Side::Server).into_iter().filter(|line| line.ns >= ms(20));
        assert_eq!(server.map(|line| line.confidence).max(), Some(surest), "{seen}");
    }
}

/// SSH's client says its version at once, and waits 400 ms for its server's (frames 37 to 39). Behind a server that had been first it waits for nothing.
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
            assert_eq!(exchange.ns(Cause::ServerThink, Side::Server), ms(408), "{seen}");
        });
    }
}

/// A server that works for 195 to 230 ms and sleeps by its kernel's ticks, 4 ms each: replies leave on them as a timer's do, and differ by
/// more than one timer's can.
#[test]
fn replies_on_a_tick_that_differ_by_more_than_its_step_are_no_timer_s() {
    let hashed = |n: i64, salt: i64| ((n * 7_919 + salt * 104_729) % 1_009) as f64 / 1_009.0;
    for (salt, rtt) in [(1, 0.2), (2, 4.0), (3, 20.0), (4, 40.0)] {
        let mut at = 0.0;
        let turn = |n: i64| {
            let pause = 1.1 + 9.0 * hashed(n, salt);
            let asked = at + pause + rtt / 2.0;
            let left: f64 = ((asked + 200.0 + rtt + 25.0 * hashed(n, salt + 9)) / 4.0).ceil() * 4.0;
            at = left + rtt / 2.0;
            format!("+{pause:.6} C 100\n +{:.6} S 200\n +0 C ack\n", left - asked)
        };
        let text: String = (0..40).map(turn).collect();
        log(format!("handshake\n {text}")).rtt(ms(rtt)).both_ends(|seen| {
            assert_eq!(seen.spent(Cause::Cork, Side::Server), ms(0), "{rtt}: {seen}");
        });
    }
}

/// A shell over SSH, whose capture begins in the middle: keys come back, a command is silent for 5.1 s (frames 82 to 100), and then says what it has
/// found. Its user waits, as far as can be told; for what it says after another silence it may be that nobody does, nor where no keys came back.
#[test]
fn whoever_has_started_a_command_may_wait_for_its_first_words() {
    for (pause, back, echoed) in [(180, 36, true), (180, 52, false), (9_000, 36, false)] {
        let keys = format!("+{pause} C 36\n +0.3 S {back}\n +0 C ack\n");
        let text = format!(
            "handshake\n {}+700 C 36\n +0.3 S 36\n +0 C ack\n +5 S 68\n +0 C ack\n +5100 S 52\n +0 C ack\n +0.3 S 800\n +0 C ack\n +4000 S 52\n +0 C ack",
            keys.repeat(6)
        );
        let mut segments = log(text).rtt(ms(0.3)).capture(End::Client);
        segments.drain(..3);
        let seen = Seen::of(segments, "behind the handshake");
        let waited = seen.spent(Cause::SenderThink, Side::Server);
        assert!(
            waited < if echoed { ms(5_110) } else { ms(10) } && (waited >= ms(5_100)) == echoed,
            "{seen}"
        );
        let lines = seen.lines(Cause::SenderThink, Side::Server);
        assert!(lines.iter().all(|line| line.confidence == Possible || line.ns < ms(10)), "{seen}");
    }
}
