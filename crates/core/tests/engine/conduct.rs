//! How the ends behave, and what each round trip carried: the report must match the packets.

use tcpwhy_core::cause::{Cause, Side};
use tcpwhy_core::conduct::Write;
use tcpwhy_core::report::{Connection, Kind};
use tcpwhy_core::{Analysis, Listing, Options};

use crate::packet_log::{End, PacketLog, each, log, ms};
use crate::seen::HAIR;

/// The only connection as a capture at this end shows it, with its packets.
fn whole(log: &PacketLog, end: End) -> Connection {
    let segments = log.seen_at(end).segments;
    let mut analysis = Analysis::new(Options { listing: Listing::Connection(1), ..Options::default() });
    for segment in &segments {
        analysis.on_segment(segment);
    }
    analysis.finish().connections.remove(0)
}

/// A Linux server: its first three single segments are acknowledged at once, the next five after 40
/// ms, and every second one of a burst.
#[test]
fn acknowledgements_are_prompt_held_back_or_of_several() {
    let lone = |wait: f64, times: usize| format!("+200 C 100\n +{wait} S ack\n").repeat(times);
    let burst = each(0..6, |_| "+0 C 1448x2 more\n +0 S ack".to_owned());
    let log =
        log(format!("handshake\n {} {} +200 C 10\n +0 S 10\n +200 {burst}", lone(0.0, 3), lone(40.0, 5))
            .replace("+200 +0", "+200"))
        .rtt(ms(20));
    for end in End::BOTH {
        let conduct = whole(&log, end).conduct(Side::Server);
        let acknowledging = conduct.acknowledging.expect("the log has acknowledgements");
        assert_eq!((acknowledging.quick, acknowledging.prompt, acknowledging.held), (3, 3, 5), "{end:?}");
        assert_eq!((acknowledging.with_data, acknowledging.every), (1, Some(2)), "{end:?}");
        let delay = acknowledging.delay.expect("five were held back");
        assert!(delay - ms(40) <= HAIR && ms(40) - delay <= HAIR, "{end:?}: {delay}");
    }
}

/// Ten, twenty, forty segments, each flight released by the acknowledgement of the one before it.
#[test]
fn rounds_carry_what_was_in_flight() {
    let rtt = ms(50);
    let flights = [10, 20, 40];
    let text = each(flights, |segments| format!("+0 S 1448x{segments} more\n +0 C ack"));
    let log = log(format!("handshake\n +5 C 100\n {text}\n +0 S 100\n +0 C ack")).rtt(rtt);
    for end in End::BOTH {
        let connection = whole(&log, end);
        let exchange = connection.exchanges.iter().find(|of| of.kind == Kind::Exchange).expect("one");
        let rounds = connection.rounds(exchange);
        let seen: Vec<u64> = rounds.iter().map(|round| round.flight).collect();
        assert_eq!(seen, [14_480, 28_960, 57_920, 100], "{end:?}");
        for round in &rounds[..3] {
            assert!(round.took - rtt <= HAIR && rtt - round.took <= HAIR, "{end:?}: {}", round.took);
            assert!(round.billed.is_some_and(|(cause, ns)| cause == Cause::SlowStart && ns >= rtt - ms(1)));
        }
    }
}

#[test]
fn windows_grow_close_or_stay() {
    let text = "handshake
         +5 C 100 win=64000
         +0 S 1448x4
         +0 C ack win=64000
         +100 S 1448x4
         +0 C ack win=0
         +100 C ack win=256000
         +5 S 100
         +0 C ack win=200064";
    let log = log(text).rtt(ms(10));
    for end in End::BOTH {
        let connection = whole(&log, end);
        let window = connection.conduct(Side::Client).window.expect("it acknowledges");
        // The handshake's last packet has the log's own window of 2 MB.
        assert_eq!((window.smallest, window.largest, window.closed), (0, 1 << 21, 1), "{end:?}");
        let server = connection.conduct(Side::Server).window.expect("it acknowledges");
        assert_eq!((server.first, server.grew_until), (1 << 21, None), "{end:?}");
    }
}

/// A header of 20 bytes and a body of 2,000 written apart, thirty times.
#[test]
fn writes_are_what_ends_with_a_push_that_is_not_full() {
    let text = "+5 C 20\n +0 C 1448 more\n +0 C 552\n +0 S 80\n +0 C ack\n".repeat(30);
    for end in End::BOTH {
        let connection = whole(&log(format!("handshake\n {text}")).rtt(ms(5)), end);
        let client = connection.conduct(Side::Client).writes;
        assert_eq!(client, [Write { bytes: 20, times: 30 }, Write { bytes: 2_000, times: 30 }], "{end:?}");
        assert_eq!(connection.conduct(Side::Server).writes, [Write { bytes: 80, times: 30 }], "{end:?}");
    }
}

/// Flights of 20 segments, the first of which is lost three times, and the flights after each
/// recovery.
#[test]
fn what_goes_on_after_a_loss_shows_the_controller() {
    for (kept, name) in [(10, "reno"), (14, "cubic"), (20, "bbr")] {
        let mut lines = vec!["handshake\n +5 C 100".to_owned()];
        let mut sent = 0;
        for _ in 0..3 {
            let (lost, end) = (sent, sent + 20 * 1448);
            lines.push(format!("+0 S {lost}..{} more lost\n +0 S 1448x19 more", lost + 1448));
            lines.push(format!("+0 C ack\n +0 S {lost}..{} more\n +0 C ack", lost + 1448));
            lines.push(format!("+0 S 1448x{kept} more\n +0 C ack"));
            sent = end + kept * 1448;
        }
        lines.push("+0 S 100\n +0 C ack".to_owned());
        let log = log(lines.join("\n")).rtt(ms(40));
        let controller = whole(&log, End::Server).conduct(Side::Server).controller.expect("three recoveries");
        assert_eq!((controller.looks_like, controller.recoveries), (Some(name), 3), "{controller:?}");
        // The client's capture does not show what is in flight.
        assert_eq!(whole(&log, End::Client).conduct(Side::Server).controller, None);
    }
}
