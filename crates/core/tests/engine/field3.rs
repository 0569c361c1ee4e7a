//! What a third reading of strangers' captures showed, as packet logs.

use tcpwhy_core::cause::Cause;
use tcpwhy_core::cause::Side::{Client, Path};
use tcpwhy_core::report::Confidence::{Certain, Likely, Possible};
use tcpwhy_core::report::Kind;
use tcpwhy_wire::{Duration, Endpoint};

use crate::packet_log::{CLIENT, End, log, ms};
use crate::seen::Seen;

/// Each answer of TLS ends in records of HTTP/2, and the last of these come when the server gives the idle connection up: GOAWAY, and
/// the alert behind it. The first is left out as a PING would be; the silence is before both.
#[test]
fn a_farewell_in_two_records_is_no_part_of_the_answer() {
    let text = "handshake
         +0 C 517
         +0 S 1300
         +0 C 64
         +0 C 104 #preface
         +0 S 68
         +0 C 31
         preface+1 S 31 #ready
         ready+5 C 467
         +2 S 1448x3
         +0 C ack
         +45000 C ack
         +30000 S 39 #bye
         bye+0 S 24 fin
         +0 C ack";
    log(text).rtt(ms(30)).both_ends(|seen| {
        assert!(seen.report.elapsed < ms(1_000), "{}: {seen}", seen.report.elapsed);
        assert_eq!(seen.count(Kind::OneWay), 1, "{seen}");
    });
}

/// Two small segments are sent again as one, of which the capture has seen the first alone (a queueing discipline drops before it).
#[test]
fn what_begins_with_bytes_sent_before_is_sent_again() {
    let text = "handshake\n +5 C 100\n +0 S 10\n +0 C ack\n +5 C 500 lost #first\n first+0.1 C 8 lost unseen\n \
                first+4600 C 100..608\n +0 S ack\n +1 S 5\n +0 C ack";
    let seen = log(text).seen_at(End::Client);
    let bill = seen.exchange(2);
    let line = bill.of(Cause::Rto);
    assert_eq!((line.side, line.confidence), (Path, Likely), "{seen}");
    assert!(line.ns >= ms(4599), "{seen}");
}

/// An acknowledgement is lost, and the next one answers a copy, three seconds later: what Nagle holds meanwhile waits for the timer.
#[test]
fn a_hold_that_a_copy_ends_was_the_timer_s() {
    let text = "handshake\n +5 C 100\n +0 S 10\n +0 C ack\n +5 C 500 #held\n +0 S ack lost\n held+3160 C 100..600\n +0 S ack #again\n \
                again+0 C 7\n +0.2 S 5\n +0 C ack";
    let seen = log(text).seen_at(End::Client);
    let bill = seen.exchange(2);
    let line = bill.of(Cause::Rto);
    assert!(line.ns >= ms(3159), "{seen}");
    assert!(!bill.exchange.bill.iter().any(|line| line.cause == Cause::Nagle && line.ns > ms(1)), "{seen}");
}

/// Who waits ten seconds for an answer that nobody can read may wait for news, and behind a record of HTTP/2's own, for nothing.
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

/// The user network of a virtual machine acknowledges at once, and answers come one way to the server and back later, as the
/// SYN-ACK had (frames 1 to 19 of a machine behind VirtualBox's NAT).
#[test]
fn who_acknowledges_may_be_nearer_than_who_answers() {
    let turns = "+1 C 246 #q\n +0 S ack\n q+{} S 1440 more\n +0 S 1400\n +0 C ack\n";
    let text = |waits: [u32; 3]| {
        let turns: String = waits.iter().map(|wait| turns.replace("{}", &wait.to_string())).collect();
        format!("@0 C syn\n @195 S syn\n +0 C ack\n {turns}")
    };
    let seen = log(text([222, 196, 191])).rtt(ms(0.4)).seen_at(End::Client);
    for (n, wait, most) in [(1, 222.0, Possible), (2, 196.0, Likely), (3, 191.0, Likely)] {
        let bill = seen.exchange(n);
        let (way, think) =
            (bill.of(Cause::RoundTrip).ns, bill.exchange.elapsed - bill.of(Cause::RoundTrip).ns);
        assert!(way >= ms(190) && think <= ms(wait - 190.0), "{n}: {way}, {think}: {seen}");
        assert_eq!(bill.of(Cause::RoundTrip).confidence, most, "{seen}");
    }
    // A server that needs longer than the way to it, and a handshake that waited for something else.
    let seen = log(text([900, 700, 800])).rtt(ms(0.4)).seen_at(End::Client);
    let think = seen.exchange(2);
    assert!(think.of(Cause::ServerThink).ns >= ms(500), "{seen}");
    assert_eq!(think.of(Cause::ServerThink).confidence, Likely, "{seen}");
    let seen = log(text([5, 196, 191])).rtt(ms(0.4)).seen_at(End::Client);
    for (n, wait) in [(1, 5), (2, 196), (3, 191)] {
        let bill = seen.exchange(n);
        let line = bill.of(Cause::ServerThink);
        assert!(line.ns >= ms(wait - 1) && line.confidence == Certain, "{n}: {seen}");
    }
}

/// Without the SYN nobody can tell that the server itself acknowledges.
#[test]
fn without_the_syn_no_server_thinks_for_certain() {
    let whole = log("handshake\n +1 C 246 #q\n +0 S ack\n q+60 S 1440\n +0 C ack").rtt(ms(0.4));
    let segments = whole.capture(End::Client);
    for (first, most) in [(0, Certain), (1, Likely)] {
        let seen = Seen::of(segments[first..].to_vec(), "the client");
        assert_eq!(seen.exchange(1).of(Cause::ServerThink).confidence, most, "{seen}");
    }
}

/// A scan sends one SYN and never takes the answer, which its target repeats for half a minute: nobody waits for that.
#[test]
fn a_syn_that_is_not_repeated_waits_for_nothing() {
    let repeats = "@1008 S syn\n @3024 S syn\n @7216 S syn\n @15408 S syn\n @31536 S syn";
    log(format!("@0 C syn\n +0 S syn\n {repeats}")).rtt(ms(0.1)).both_ends(|seen| {
        assert!(seen.report.elapsed <= ms(1), "{}: {seen}", seen.report.elapsed);
    });
}

/// A controller reports by the second and each report is confirmed at once; now and then something is asked behind that, and the next
/// report comes at its time all the same (an S7 panel). A server that takes a second to answer is late when it is asked late.
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
    let answer = |n: i64| if n % 3 == 0 { "+15 C 7\n +1000 S 33\n" } else { "+0.2 C 7\n +1000 S 33\n" };
    let answers: String = (1..40).map(answer).collect();
    let seen = log(format!("handshake\n +1 C 36\n +3 S 36\n {answers}")).rtt(ms(2)).seen_at(End::Client);
    assert!(think(&seen) >= ms(39_000), "{}: {seen}", think(&seen));
    let finding = seen.report.findings.iter().find(|finding| finding.cause == Cause::ServerThink);
    assert_eq!(finding.map(|finding| finding.confidence), Some(Likely), "{seen}");
}

/// Updates that come when there are any, each confirmed at once, are no server that takes one to three seconds for certain.
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

/// EtherNet/IP is registered above the ports that old hosts begin with.
#[test]
fn a_registered_port_is_the_server_s_wherever_it_lies() {
    let turns = "@0 C 293\n +4 S 210\n +0 C ack\n +150 C 293\n +4 S 210\n +0 C ack\n";
    for [client, server] in [[3_033, 44_818], [1_533, 5_432], [40_000, 20_001], [52_000, 443]] {
        let ends = [client, server].map(|port| Endpoint { port, ..CLIENT });
        let seen = log(turns).between(ends).seen_at(End::Client);
        assert_eq!(seen.connection().client, ends[0], "{seen}");
    }
}

/// Two ports that nobody registers, without a handshake: a heart-beat that is answered at once is asked by who is heard first.
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
