//! What does a line say besides its time: how much was held, which window was full, which timer
//! ran? Each figure is one of the log's own.

use tcpwhy_core::Form;
use tcpwhy_core::cause::Cause;
use tcpwhy_core::report::Detail;
use tcpwhy_wire::Duration;

use crate::packet_log::{End, MSS, PacketLog, each, log, ms, settled};

const FULL_WINDOW: u32 = 48 * MSS as u32;

/// The detail of a cause's line in one exchange, from both ends, without `waits`, which every line
/// has.
fn details(log: &PacketLog, exchange: usize, cause: Cause) -> [Detail; 2] {
    End::BOTH.map(|end| Detail { waits: None, ..log.seen_at(end).exchange(exchange).of(cause).detail })
}

/// The estimated timer of the sender's kernel: it cannot be shorter than 200 ms plus the RTT.
fn is_timer(timer: Option<Duration>, rtt: Duration) -> bool {
    timer.is_some_and(|timer| timer >= ms(200) + rtt && timer <= ms(210) + rtt)
}

#[test]
fn a_held_write_says_how_much_was_held_behind_what_and_by_how_much_its_acknowledgement_was_late() {
    let exchange = |delay: &str| format!("+5 C 20\n +{delay} S ack\n +0 C 100\n +0.05 S 64\n");
    let echo = log(format!("handshake\n {}{}", exchange("0"), exchange("40"))).rtt(ms(26));
    let held = Detail { held_bytes: Some(100), flight_bytes: Some(20), ..Detail::default() };
    for detail in details(&echo, 2, Cause::NagleDelayedAck) {
        assert_eq!(detail, Detail { ack_delay: Some(ms(40)), ..held });
    }
}

#[test]
fn a_cork_says_what_it_held_and_its_timer() {
    let rtt = ms(4);
    let tail = log(settled(20) + "+5 C 100\n +0 S 1448x2 more\n +0 C ack\n +208 S 100\n +0 C ack").rtt(rtt);
    for detail in details(&tail, 21, Cause::Cork) {
        assert!(is_timer(detail.timer, rtt), "{detail:?}");
        assert_eq!(Detail { timer: None, ..detail }, Detail { held_bytes: Some(100), ..Detail::default() });
    }
    let whole = each([2.7, 4.9, 3.1, 1.8, 2.4, 4.1], |pause| {
        let round = ms(4.0 + 208.0 + pause).as_nanos();
        // The next tick of 4 ms after the timer.
        let late = ms(0.000_001 * ((4_000_000 - round % 4_000_000) % 4_000_000) as f64);
        format!("+{pause} C 100\n +{} S 200\n +0 C ack", 208.0 + late.as_nanos() as f64 / 1e6)
    });
    for detail in details(&log(format!("handshake\n {whole}")).rtt(rtt), 6, Cause::Cork) {
        assert!(is_timer(detail.timer, rtt), "{detail:?}");
        let held = Detail { held_bytes: Some(200), form: Some(Form::WholeReply), ..Detail::default() };
        assert_eq!(Detail { timer: None, ..detail }, held);
    }
    let more = log("handshake\n +5 C 100\n +0 S 1448x3\n +0 C ack\n +0 S 656 more\n +0 C ack").rtt(rtt);
    for detail in details(&more, 1, Cause::Cork) {
        let held = Detail { held_bytes: Some(656), form: Some(Form::UntilAcknowledged), ..Detail::default() };
        assert_eq!(detail, held);
    }
}

#[test]
fn a_window_says_what_was_in_flight_and_what_the_peer_would_have_taken() {
    let start =
        log("handshake\n +5 C 100\n +0 S 1448x10 more\n +0 C ack\n +0 S 1448x20\n +0 C ack").rtt(ms(40));
    let flight = Detail { flight_bytes: Some(14_480), window_bytes: Some(1 << 20), ..Detail::default() };
    for detail in details(&start.window(End::Client, 1 << 20), 1, Cause::SlowStart) {
        assert_eq!(detail, flight);
    }
    let one = log("handshake\n +5 C 100\n +0 S 1448 more\n +200 C ack\n +0 S 1448x2\n +0 C ack").rtt(ms(2));
    for detail in details(&one.window(End::Client, 1 << 20), 1, Cause::DelayedAckCwnd) {
        assert_eq!(detail, Detail { flight_bytes: Some(1_448), ack_delay: Some(ms(200)), ..flight });
    }
}

#[test]
fn a_full_window_says_how_large_it_is_and_that_the_flight_is_as_large() {
    let full = u64::from(FULL_WINDOW);
    let fetch = "+5 C 100\n +0 S 1448x48 more\n +0 C ack\n +0 S 1448x48\n +0 C ack";
    let fetch = log(format!("handshake\n {fetch}")).rtt(ms(26)).window(End::Client, FULL_WINDOW);
    for detail in details(&fetch, 1, Cause::ReceiveWindow) {
        assert_eq!((detail.window_bytes, detail.flight_bytes), (Some(full), Some(full)));
    }
    // If Nagle holds the rest after it: both lines say what they held.
    let tail = log("handshake
         +5 C 100
         +0 S 1448x20 more #flight
         +0 S 96
         flight+0 C ack ack=2896 win=60032
         +0.5 C ack win=60032
         +0 S 500
         +0 C ack")
    .rtt(ms(100))
    .window(End::Client, 29_056);
    for detail in details(&tail, 1, Cause::ReceiveWindow) {
        assert_eq!((detail.window_bytes, detail.flight_bytes), (Some(29_056), Some(29_056)));
        assert_eq!(detail.form, Some(Form::Growing));
    }
}

#[test]
fn a_repair_says_which_it_was() {
    let rtt = ms(40);
    let fast = log(format!(
        "handshake
         +5 C 100
         +0 S 1448 more lost #hole
         hole+0 S 1448x9 #rest
         rest+0 C ack
         rest+0 C ack
         rest+0 C ack
         +0 S 0..{MSS}
         +0 C ack"
    ));
    let repair = Detail { retransmits: Some(1), ..Detail::default() };
    for detail in details(&fast.rtt(rtt), 1, Cause::Loss) {
        assert_eq!(detail, Detail { form: Some(Form::Fast), ..repair });
    }
    let timeout = log(settled(20) + "+5 C 100 lost #request\n request+240 C 2000..2100\n +0 S 200").rtt(rtt);
    // The server's capture sees only the retransmission.
    for (detail, form) in
        details(&timeout, 21, Cause::Rto).into_iter().zip([Form::Timeout, Form::UnseenFirstCopy])
    {
        assert!(detail.timer.is_none_or(|timer| is_timer(Some(timer), rtt)), "{detail:?}");
        assert_eq!(Detail { timer: None, ..detail }, Detail { form: Some(form), ..repair });
    }
    let probe = settled(20)
        + "+5 C 100\n +0 S 1448x3 #first\n +0 S 1000 lost\n first+0 C ack\n first+82 S 8344..9344\n +0 C ack";
    for detail in details(&log(probe).rtt(rtt), 21, Cause::Loss) {
        assert_eq!(detail, Detail { form: Some(Form::TailProbe), ..repair });
    }
}

/// Ten segments, then the twenty that they release, all lost: the window before them is a line
/// besides the repair.
#[test]
fn a_window_before_a_lost_flight_says_what_was_in_flight() {
    let first = each(1..10, |n| format!("s0+0 S 1448 more #s{n}"));
    let second =
        each(0..10, |n| format!("s{n}+0 C ack #a{n}\n a{n}+0 S 1448 more lost\n a{n}+0 S 1448 #t{n} lost"));
    let text = format!(
        "handshake\n +5 C 100\n +0 S 1448 more #s0\n {first}\n {second}
         t9+84 S 41992..43440 #probe
         probe+0 C ack #answer
         answer+0 S 14480..41992 #again
         again+0 C ack"
    );
    for detail in details(&log(text).rtt(ms(40)), 1, Cause::SlowStart) {
        assert_eq!((detail.flight_bytes, detail.form), (Some(14_480), None), "{detail:?}");
    }
}
