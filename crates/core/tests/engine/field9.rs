//! What the readings of strangers' captures had left wrong, as packet logs.

use tcpwhy_core::cause::{Cause, Side};
use tcpwhy_core::report::Confidence::{Certain, Likely, Possible};
use tcpwhy_core::report::Kind;

use crate::packet_log::{End, each, log, ms};
use crate::seen::Seen;

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
