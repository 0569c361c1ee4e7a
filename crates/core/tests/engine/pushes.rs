//! What comes by a timer, and what is said in pieces: does anybody wait for it? In each log the programs' own times say so.

use tcpwhy_core::cause::Cause;
use tcpwhy_core::cause::Side::{Path, Server};
use tcpwhy_core::report::{Confidence, Kind};
use tcpwhy_wire::Duration;

use crate::packet_log::{each, log, ms, settled};
use crate::seen::Seen;

const RTT: i32 = 2;

/// What was billed to causes over the whole capture.
fn billed(seen: &Seen, causes: &[Cause]) -> Duration {
    let of = |line: &&tcpwhy_core::report::TotalLine| causes.contains(&line.cause);
    seen.report.bill.iter().filter(of).map(|line| line.ns).sum()
}

/// "Transmission on": the first measurement comes at once, and then one every 20 ms; every second one is acknowledged.
#[test]
fn an_answer_ends_with_the_first_of_a_timers_messages() {
    let pushes = each(1..=100, |n| {
        let ack = if n % 2 == 0 { format!("\n p{n}+0 C ack") } else { String::new() };
        format!("first+{} S 54 #p{n}{ack}", 20 * n)
    });
    let text = format!("{}+5 C 18 #on\n on+0.7 S ack\n on+1.8 S 54 #first\n{pushes}", settled(2));
    log(text).rtt(ms(RTT)).both_ends(|seen| {
        seen.exchange(3).is(&[(Cause::RoundTrip, Path, ms(RTT)), (Cause::ServerThink, Server, ms(1.8))]);
        assert_eq!((seen.count(Kind::Exchange), seen.count(Kind::OneWay)), (3, 100), "{seen}");
        let others = [Cause::SenderThink, Cause::Bandwidth, Cause::Unexplained];
        assert_eq!(billed(seen, &others), Duration::ZERO, "{seen}");
    });
}

/// A subscription that nothing answers, and what is published from then on, by a loop that sleeps for 100 ms.
#[test]
fn published_messages_do_not_answer_the_subscription() {
    let distances = [102.7, 101.5, 103.3, 102.2, 101.2, 104.6, 101.2, 101.9, 100.8, 102.8, 102.1];
    let pushes = each(distances.into_iter().zip(0..), |(ms, n)| {
        format!("push+{ms} S {} #push\n push+0 C ack", 13 + n % 3 * 4)
    });
    let text = format!(
        "{}+5 C 12 #subscribe\n subscribe+41 S ack\n subscribe+101 S 20 #push\n +0 C ack\n{pushes}",
        settled(2)
    );
    log(text).rtt(ms(0.1)).both_ends(|seen| {
        assert_eq!((seen.count(Kind::Exchange), seen.count(Kind::OneWay)), (2, 13), "{seen}");
        assert!(billed(seen, &[Cause::SenderThink, Cause::ServerThink]) < ms(1), "{seen}");
    });
}

/// Few equal distances may be a timer's, or an answer's that comes in parts.
#[test]
fn a_short_row_of_equal_distances_is_not_surely_an_answer() {
    let parts = "+0 C ack #read\n read+298 S 700\n".repeat(6);
    let text = format!("{}+5 C 100\n +1 S 700\n{parts}+0 C ack", settled(2));
    log(text).rtt(ms(RTT)).both_ends(|seen| {
        let exchange = seen.exchange(3);
        let pause = exchange.of(Cause::SenderThink);
        assert_eq!(
            (pause.confidence, pause.detail.form),
            (Confidence::Possible, Some("or-pushes")),
            "{seen}"
        );
    });
}

/// A tick every three seconds; the client asks shortly before one, and is answered behind it.
#[test]
fn a_tick_does_not_answer_what_was_asked_shortly_before_it() {
    let ticks = each(1..=14, |n| format!("@{} S 80 #t{n}\n t{n}+0 C ack", 3_000 * n));
    let asked = "@39900 C 100 #ask\n ask+40 S ack\n ask+150 S 200 #answer\n answer+0 C ack";
    let text = format!("{}\n{ticks}\n{asked}", settled(2));
    log(text).rtt(ms(RTT)).both_ends(|seen| {
        assert_eq!((seen.count(Kind::Exchange), seen.count(Kind::OneWay)), (3, 14), "{seen}");
        // The log's answer waits for the tick between the two.
        let answered = seen.exchange(3);
        assert_eq!(answered.exchange.reply_bytes, 200, "{seen}");
        assert_eq!(answered.of(Cause::ServerThink).side, Server, "{seen}");
    });
}
