//! What a third reading of strangers' captures showed, as packet logs.

use tcpwhy_core::cause::Cause;
use tcpwhy_core::cause::Side::{Client, Path};
use tcpwhy_core::report::Confidence::{Likely, Possible};
use tcpwhy_core::report::Kind;
use tcpwhy_wire::Endpoint;

use crate::packet_log::{CLIENT, End, log, ms};

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
