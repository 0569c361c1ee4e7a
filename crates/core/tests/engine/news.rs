//! Does late data answer a request, or is it news, a heartbeat or a farewell that was not
//! requested? If that is unknown, the wait is at most possible.

use tcpwhy_core::Form;
use tcpwhy_core::cause::{Cause, Side};
use tcpwhy_core::report::Confidence::{self, Certain, Likely, Possible};
use tcpwhy_core::report::{Kind, Line};
use tcpwhy_wire::Duration;

use crate::packet_log::{End, each, log, ms};
use crate::seen::Seen;

/// If a small reply may be held by unknown round trips, a cork may hold it, but for no longer than
/// its timer, which is never doubled.
#[test]
fn no_cork_holds_an_answer_for_minutes() {
    for (wait, corked) in [(2_000, true), (23_800, false), (88_000, false)] {
        let seen = log(format!("@0 C 100\n +{wait} S 50\n +0 C ack")).rtt(ms(20)).seen_at(End::Client);
        let form = seen.exchange(1).of(Cause::ServerThink).detail.form;
        assert_eq!(form == Some(Form::OrCork), corked, "{wait}: {seen}");
    }
}

/// A client that waits ten seconds for an unreadable reply may wait for news, and after a record of
/// HTTP/2's own, for nothing.
#[test]
fn long_waits_that_nobody_reads_are_no_more_than_possible() {
    for (question, wait, most) in [(200, 9_000, Likely), (200, 11_000, Possible), (39, 1_500, Possible)] {
        let text = format!(
            "handshake\n +0 C 517\n +0 S 1300\n +0.1 C {question}\n +0 S ack\n +{wait} S 53\n +0 C ack"
        );
        log(text).rtt(ms(20)).both_ends(|seen| {
            let line = seen.exchange(2);
            assert!(line.of(Cause::ServerThink).confidence <= most, "{question} {wait}: {seen}");
            assert!(
                line.of(Cause::ServerThink).confidence == most || most == Likely,
                "{question} {wait}: {seen}"
            );
        });
    }
}

/// A controller reports every second and each report is confirmed at once; now and then a request
/// follows, and the next report comes at its time all the same (an S7 panel). A server that takes a
/// second to answer is late when its request is late.
#[test]
fn reports_by_the_second_are_no_server_that_thinks() {
    let think = |seen: &Seen| -> Duration {
        seen.report.bill.iter().filter(|line| line.cause == Cause::ServerThink).map(|line| line.ns).sum()
    };
    let beat = |n: i64| {
        let aside = if n % 3 == 0 { "+0.5 C 68\n +10 S 37\n +0.2 C 7\n" } else { "" };
        format!("@{} S 33\n +0.2 C 7\n {aside}", 1_000 * n)
    };
    let reports: String = (1..40).map(beat).collect();
    let seen =
        log(format!("handshake\n +1 C 36\n +3 S 36\n +0 C 7\n {reports}")).rtt(ms(2)).seen_at(End::Client);
    assert!(think(&seen) <= ms(16_000), "{}: {seen}", think(&seen));
    let finding = seen.report.findings.iter().find(|finding| finding.cause == Cause::ServerThink);
    assert_eq!(finding.map(|finding| finding.confidence), Some(Possible), "{seen}");
    let answer = |n: i64| format!("+{} C 7\n +40 S ack\n +960 S 33\n", if n % 3 == 0 { 15.0 } else { 0.2 });
    let answers: String = (1..40).map(answer).collect();
    let seen = log(format!("handshake\n +1 C 36\n +3 S 36\n {answers}")).rtt(ms(2)).seen_at(End::Client);
    assert!(think(&seen) >= ms(39_000), "{}: {seen}", think(&seen));
    let finding = seen.report.findings.iter().find(|finding| finding.cause == Cause::ServerThink);
    assert_eq!(finding.map(|finding| finding.confidence), Some(Likely), "{seen}");
}

/// Sporadic updates, each confirmed at once, are not certainly a server that takes one to three
/// seconds.
#[test]
fn words_that_are_confirmed_at_once_may_be_news() {
    let turns: String = [1_750, 1_350, 1_650, 3_000, 3_000, 1_500, 2_900]
        .map(|wait| format!("+0.1 C 9\n +{wait} S 17\n"))
        .concat();
    let seen =
        log(format!("handshake\n +1 C 5\n +3 S 24\n {turns} +0 C ack")).rtt(ms(0.2)).seen_at(End::Client);
    let finding = seen.report.findings.iter().find(|finding| finding.cause == Cause::ServerThink);
    assert_eq!(finding.map(|finding| finding.confidence), Some(Possible), "{seen}");
}

/// Both ends of an idle connection send heartbeats of 53 bytes within TLS, every four and every
/// five seconds (frames 11 to 19 of a controller's capture): the server's next one answers nothing.
/// A client that asks again as soon as it has its reply waits.
#[test]
fn who_asks_seldom_may_not_have_asked() {
    for (idle, question, most) in [(4_000, 53, Possible), (5, 53, Likely), (4_000, 500, Likely)] {
        let text = format!(
            "handshake\n +0 C 110\n +0.2 S 110\n +0.1 C 318\n +0.3 S 314\n +0 C ack\n \
             +{idle} C {question}\n +40 S ack\n +920 S 53\n +0 C ack"
        );
        log(text).rtt(ms(0.3)).both_ends(|seen| {
            let bound = if most == Possible { Possible } else { Likely };
            assert_eq!(
                seen.exchange(3).of(Cause::ServerThink).confidence <= Possible,
                bound == Possible,
                "{idle} {question}: {seen}"
            );
        });
    }
}

/// Messages of 28 and 27 bytes within TLS, each end's on its own timer (frames 370 to 462 of a push
/// connection), 80 ms apart: neither waits for the other, whichever spoke last. A request of a few
/// hundred bytes may take as long.
#[test]
fn words_of_both_ends_by_their_own_timers_are_no_answers() {
    for (question, answer, most) in [(28, 27, Possible), (28, 700, Likely), (280, 27, Likely)] {
        let text = format!(
            "handshake\n +0 C 517\n +20 S 1300\n +0.1 C 80\n +20 S 250\n +0 C ack\n +4700 C 31\n +0 S ack\n \
             +2300 C {question}\n +0 S ack\n +8700 S {answer}\n +0 C ack"
        );
        log(text).rtt(ms(80)).both_ends(|seen| {
            assert_eq!(
                seen.exchange(3).of(Cause::ServerThink).confidence,
                most,
                "{question} {answer}: {seen}"
            );
        });
    }
}

/// A client confirms the server's pushes with messages of one length. Half of them are followed by
/// another push, always 3.3 seconds later, the others by nothing for half a minute (frames 3326 to
/// 3600 of a player's connection): they need no reply.
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

/// If the beginning of a connection was not seen, its purpose is unknown: a message three seconds
/// after a confirmation may be news.
#[test]
fn without_the_beginning_a_long_wait_may_be_for_news() {
    let whole = log(
        "handshake\n +1 C 246\n +3 S 300\n +0 C ack\n +172 C 161 #q\n +0 S ack\n q+3000 S 181\n +0 C ack",
    )
    .rtt(ms(18));
    for (first, most) in [(0, Likely), (3, Possible)] {
        let seen = Seen::of(whole.capture(End::Client)[first..].to_vec(), "the client");
        assert_eq!(seen.exchange(2).of(Cause::ServerThink).confidence, most, "{seen}");
    }
}

/// The data connection of FTP opens before the file is requested: 1.3 seconds after its handshake
/// it is unknown who waited.
#[test]
fn full_segments_behind_nothing_but_a_handshake_were_asked_for_elsewhere() {
    for (wait, most) in [(600, Likely), (1_300, Possible)] {
        log(format!("handshake\n +{wait} S 1448x3\n +0 C ack"))
            .rtt(ms(20))
            .both_ends(|seen| assert_eq!(seen.exchange(1).of(Cause::ServerThink).confidence, most, "{seen}"));
    }
}

/// A page asks for events with the same 398 bytes as soon as it has an answer: the first event
/// comes after 163 seconds, others soon (frames 225 to 3186 of a router's pages). The latter may
/// have been news as well.
#[test]
fn a_question_like_one_that_was_answered_with_news_may_be_answered_so_too() {
    for (first, other, most) in [(162_814, 398, Possible), (310, 398, Certain), (162_814, 300, Certain)] {
        let soon = each([296, 396, 453], |wait| {
            format!("+3 C {other} #q{wait}\n q{wait}+0 S ack\n q{wait}+{wait} S 936\n +0 C ack")
        });
        let text = format!(
            "handshake\n +1 C 398 #q\n q+0 S ack\n q+{first} S 936\n +0 C ack\n {soon}\n +3 C {other}"
        );
        let seen = log(text).rtt(ms(0.3)).seen_at(End::Server);
        for n in 2..=4 {
            assert_eq!(seen.exchange(n).of(Cause::ServerThink).confidence, most, "{first} {other}: {seen}");
        }
    }
}

/// A server reports its state every second, by its own timer, and each report is answered at once:
/// data 832 ms after the first of these answers (frames 20 to 25 of a robot's capture) may be the
/// next report. If it takes half of that, it is its server's time.
#[test]
fn what_takes_longer_than_timers_may_is_never_certain() {
    for (wait, most) in [(832, Likely), (416, Certain)] {
        let text = format!("handshake\n +1 C 20 #q\n q+40 S ack\n q+{wait} S 90\n +0 C ack");
        let seen = log(text).rtt(ms(1)).seen_at(End::Server);
        assert_eq!(seen.exchange(1).of(Cause::ServerThink).confidence, most, "{seen}");
    }
}

/// A server reports its state every second, by its own timer, and each report is answered within
/// 0.3 ms: the time from report to report is the timer's length, and that from the client's message
/// is shorter (frames 15 to 26 of a player's session). A server that sleeps for a second before it
/// answers sleeps no less, nor is one asked every second that takes most of it.
#[test]
fn what_comes_a_round_second_behind_the_word_before_may_be_a_timers() {
    for (reaction, wait, most) in [(0.3, 999.5, Possible), (0.3, 1_000.2, Likely), (400.0, 600.0, Likely)] {
        let text = format!(
            "handshake\n +1 C 20 #q\n q+40 S ack\n q+52 S 90 #a\n a+{reaction} C 196 #s\n s+40 S ack\n s+{wait} S 228\n +0 C ack"
        );
        let seen = log(text).rtt(ms(0.02)).seen_at(End::Server);
        assert_eq!(seen.exchange(2).of(Cause::ServerThink).confidence, most, "{seen}");
    }
}

/// Without the connection's beginning: a phone confirms a server's push with 32 bytes 5 ms later,
/// and the next push comes 1.49 seconds after that (frames 93 to 98 of a phone's capture). A phone
/// that takes longer may have asked.
#[test]
fn what_follows_the_other_ends_words_at_their_heels_may_confirm_them() {
    for (reaction, most) in [(5, Possible), (400, Likely)] {
        let text = format!(
            "handshake\n +1 C 246\n +3 S 300\n +0 C ack\n +700 S 979\n +0 C ack\n +{reaction} C 270 #q\n q+0 S ack\n q+1491 S 343\n +0 C ack"
        );
        let segments = log(text).rtt(ms(40)).capture(End::Client)[3..].to_vec();
        let seen = Seen::of(segments, "the client, midway");
        let think = seen.longer(Cause::ServerThink, ms(1_000));
        assert!(!think.is_empty() && think.iter().all(|line| line.confidence == most), "{reaction}: {seen}");
    }
}

/// A shell over SSH, captured from the middle on: keys are echoed, a command is silent for 5.1 s
/// (frames 82 to 100), then prints its result. Its user likely waits; for output after another
/// silence, or if no keys were echoed, possibly not.
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

/// A client publishes a message that the protocol does not answer (MQTT 3.1.1, 4.3.1), and its host
/// gets an ACK one round trip later (frames 77 to 86 of a broker's client): the RTT is known, but
/// not that anybody waits for it.
#[test]
fn nobody_says_that_a_message_without_an_answer_is_waited_for() {
    for [asks, answers] in [["", ""], ["asks", "answers"]] {
        let text = format!(
            "handshake\n +1 C 34 {asks}\n +0 S ack #connect\n connect+177 S 24 {answers}\n +45 C ack\n +5586 C 55\n +0 S ack"
        );
        log(text).rtt(ms(187)).both_ends(|seen| {
            assert_eq!((seen.count(Kind::Exchange), seen.count(Kind::OneWay)), (1, 1), "{seen}");
            let lines = &seen.one_way(1).exchange.bill;
            assert!(lines.iter().all(|line| line.confidence == Possible), "{seen}");
        });
    }
}

/// A file is uploaded over SSH; before all of it has arrived the server opens the channel's window
/// further, and 1.2 s later it answers (frames 59 to 111 of an upload). A host acknowledges what it
/// has, so the first message was sent before the whole file had arrived. If it had, the second is a
/// separate message.
#[test]
fn what_had_not_seen_all_of_a_request_does_not_answer_it() {
    for (seen_of_it, early) in [(60_000, true), (144_900, false)] {
        let text = format!(
            "handshake\n +5 C 100\n +1 S 200\n +0 C ack\n +5 C 1448x100 #file\n file+4 S 36 ack={seen_of_it} #grown\n grown+0 C ack\n grown+2 S ack\n grown+1220 S 668\n +0 C ack"
        );
        let logged = log(text).rtt(ms(0.6));
        logged.both_ends(|seen| {
            let waited = seen.lines(Cause::ServerThink, Side::Server);
            let longest = waited.iter().max_by_key(|line| line.ns).unwrap_or_else(|| panic!("{seen}"));
            assert_eq!(longest.ns >= ms(1_200), early, "{seen_of_it}: {seen}");
            assert!(longest.confidence <= Likely || !early, "{seen}");
        });
    }
}

/// A subscription, whose first event comes 238 ms later and the next ones every second, with the
/// same length (frames 34 to 54 of ZMQ on another port): the first may have answered nothing
/// either. If different messages follow a reply, there is no such doubt.
#[test]
fn the_first_of_events_that_are_all_as_long_may_answer_nothing() {
    for (next, doubtful) in [(32, true), (200, false)] {
        let events = format!("\n +1000 S {next}\n +0 C ack").repeat(3);
        let text =
            format!("handshake\n +1 C 64\n +0 S 80\n +0 C 44\n +40 S ack\n +198 S 32\n +40 C ack{events}");
        log(text).rtt(ms(0.05)).both_ends(|seen| {
            let lines = seen.longer(Cause::ServerThink, ms(100));
            assert!(!lines.is_empty(), "{seen}");
            let sure = lines.iter().map(|line| line.confidence).max();
            assert_eq!(sure == Some(Possible), doubtful, "{next}: {seen}");
        });
    }
}

/// A client that synchronises its files asks in two pieces 5 ms after each reply, and is answered
/// when something has changed: after 88, 56 and 31 s (frames 246 to 737 of three connections). The
/// same first piece right after a reply is the same request.
#[test]
fn a_question_in_two_pieces_is_asked_again_as_well() {
    let asked: String = [87_900, 55_700, 30_600]
        .map(|wait| format!("+5 C 465 #q\n q+0 S ack #heard\n heard+0.1 C 585\n +0 S ack\n q+{wait} S 257\n"))
        .concat();
    let text = format!("handshake\n +0 C 465\n +0.1 C 585\n +1 S 257\n {asked} +5 C 465\n +0 S ack");
    log(text).rtt(ms(13)).both_ends(|seen| {
        assert_eq!(seen.count(Kind::Subscription), 1, "{seen}");
        let long = seen.longer(Cause::ServerThink, ms(1_000));
        let is_news = |line: &&Line| line.confidence == Possible && line.detail.form == Some(Form::OrNews);
        assert!(long.iter().all(is_news), "{seen}");
    });
}

/// A page polls for news with the same 306 bytes, a little later each time, and is answered after
/// 147, 24 and 148 seconds (frames 285 to 1729 of a messenger's capture): the second wait is like
/// the first, whatever was sent. A request of another length is not.
#[test]
fn what_waited_for_minutes_may_have_been_for_news_each_time() {
    for (other, most) in [(306, Possible), (700, Likely)] {
        let text = format!(
            "handshake\n +1 C 306 asks\n +5 S 181 answers\n +0 C ack\n +156 C 306 asks #first\n first+0.5 S ack\n first+146800 S 181 answers\n +0 C ack\n \
             +127 C {other} asks #second\n second+0.5 S ack\n second+23800 S 154 more answers\n +0 S 1448\n +0.2 S 671\n +0 C ack\n \
             +125 C 306 asks #third\n third+0.5 S ack\n third+147500 S 181 answers\n +0 C ack"
        );
        let seen = log(text).rtt(ms(201)).seen_at(End::Client);
        let long = seen.longer(Cause::ServerThink, ms(1_000));
        let sure: Vec<Confidence> = long.iter().map(|line| line.confidence).collect();
        assert_eq!(sure, [Possible, most, Possible], "{other}: {seen}");
        let news = long.iter().filter(|line| line.detail.form == Some(Form::OrNews)).count();
        assert_eq!(news, if most == Possible { 3 } else { 2 }, "{seen}");
    }
}

/// A chat's server tells news of its own all the time. What follows its reply of 40 bytes 48 ms later (frames
/// 7210 to 7214 of a browser's capture) may be the next; of a server that has only answered, it is the rest.
#[test]
fn what_follows_the_reply_of_a_server_that_often_speaks_unasked_may_be_news() {
    for news in [10, 0] {
        let news = each(0..news, |n| format!("+{} S {}\n +0 C ack\n", 700 + 130 * n, 50 + 13 * n));
        let text = format!(
            "handshake\n +0 C 300\n +20 S 500\n +0 C ack\n {news} +3000 C 54\n +0 S ack\n +110 S 40\n +0 C ack\n \
             +43 S 1448\n +0 C ack"
        );
        log(text).rtt(ms(5)).both_ends(|seen| {
            let last = seen.exchange(seen.count(Kind::Exchange));
            let pause = last.of(Cause::SenderThink);
            assert_eq!(pause.ns, ms(48), "{seen}");
            assert_eq!(pause.confidence <= Possible, !news.is_empty(), "{seen}");
        });
    }
}

/// A mail server writes the first line of its greeting, `220-`, and the second one, `220 `, only after six seconds, to see
/// whether the client can wait (postscreen's greet delay). A client may not speak before the last line (RFC 5321, 4.2.1). The
/// same within a reply, whether there is one command at a time or several (RFC 2920).
#[test]
fn lines_that_are_still_to_come_are_waited_for() {
    let (rtt, first, pause) = (ms(20), ms(8), ms(6_000));
    let wait = [
        (Cause::SenderThink, Side::Server, pause),
        (Cause::RoundTrip, Side::Path, rtt),
        (Cause::ServerThink, Side::Server, first),
    ];
    let lines = "+8 S 39 answers opens #first\n +0 C ack\n first+6000 S 39 answers ends\n +0 C ack";
    let next = "+0.1 C 16 asks\n +3 S 198 answers\n +0 C ack";
    log(format!("handshake\n {lines}\n {next}")).rtt(rtt).both_ends(|seen| {
        let greeting = seen.exchange(1).is(&wait);
        assert_eq!(greeting.of(Cause::SenderThink).confidence, Likely, "{seen}");
        seen.exchange(2)
            .is(&[(Cause::RoundTrip, Side::Path, rtt), (Cause::ServerThink, Side::Server, ms(3))]);
    });
    let three = "+8 S 39 answers opens #first\n +0 C ack\n first+3000 S 30\n +0 C ack\n first+6000 S 39 answers ends\n +0 C ack";
    log(format!("handshake\n +5 S 30 answers\n {next}\n +1 C 16 asks\n {three}\n {next}"))
        .rtt(rtt)
        .both_ends(|seen| {
            assert!(seen.exchange(3).of(Cause::SenderThink).ns >= pause, "{seen}");
        });
    for beside in ["", "+0 C 30 asks\n +0 C 40 asks\n +1 S 20 answers\n +0 S 20 answers\n +0 C ack\n"] {
        let text =
            format!("handshake\n +5 S 30 answers\n {next}\n {beside} +1 C 16 asks #q\n {lines}\n {next}");
        log(text).rtt(rtt).both_ends(|seen| {
            let asked = seen.exchange(if beside.is_empty() { 3 } else { 5 });
            let spent = asked.of(Cause::SenderThink).ns.max(asked.of(Cause::ServerThink).ns);
            assert!(spent >= pause, "{beside}: {seen}");
        });
    }
}

/// Both ends of a failover say 49 bytes each minute by timers of their own, one or the other first, some milliseconds apart,
/// while questions are answered at once (DHCP failover's CONTACT): neither answers the other.
#[test]
fn what_either_end_says_each_minute_may_answer_nothing() {
    let (by_client, by_server) = ("+60000 C 49\n +9 S 49\n +0 C ack\n", "+60000 S 49\n +7 C 49\n +0 S ack\n");
    let asks = "+5000 C 215\n +1 S 57\n +0 C ack\n";
    let text = format!(
        "handshake\n {asks} {by_server} {asks} {by_client} {by_client} {by_server} {by_client} {asks}"
    );
    let seen = log(text).rtt(ms(0.3)).seen_at(End::Client);
    let waits: Vec<&Line> = [Side::Client, Side::Server]
        .into_iter()
        .flat_map(|side| seen.lines(Cause::ServerThink, side))
        .filter(|line| line.ns > ms(2))
        .collect();
    assert_eq!(waits.len(), 5, "{seen}");
    assert!(waits.iter().filter(|line| line.confidence > Possible).count() <= 2, "{seen}");
}

/// A device sends its measurements every 80 ms, in two segments each, and answers a command now and then: once it has sent them for
/// longer than anybody waits, those behind the next command are no answer to that either (frames 878 to 1029 of a PMU).
#[test]
fn a_stream_that_has_gone_on_before_goes_on() {
    let measures = |count: usize| "+80 S 1448 more #full\n +0 C ack\n full+0.45 S 364\n".repeat(count);
    let command = "+10 C 18\n +3 S 456\n +0 C ack\n";
    for (before, sure) in [(90, Possible), (40, Likely)] {
        let text = format!("handshake\n {command}{}{command}{}{command}", measures(before), measures(45));
        let seen = log(text).rtt(ms(0.4)).seen_at(End::Client);
        assert_eq!(seen.exchange(2).of(Cause::SenderThink).confidence, sure, "{before}: {seen}");
    }
}
