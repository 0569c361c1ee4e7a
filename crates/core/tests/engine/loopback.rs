//! Within one host: round trips of microseconds, and segments as large as everything that is in flight.

use tcpwhy_core::cause::Cause;
use tcpwhy_core::cause::Side::{Client, Server, Unknown};

use tcpwhy_core::report::Confidence;
use tcpwhy_wire::Endpoint;

use crate::packet_log::{CLIENT, End, SERVER, each, log, ms};
use crate::seen::Seen;

/// A window smaller than a segment is used up by one of half its size or all of it; each is pushed
/// and follows the acknowledgement of the one before, as if Nagle held it.
#[test]
fn a_window_below_the_segment_size_holds_each_segment() {
    let replies = each(1..=40, |n| format!("+0.01 S 1000\n +{} C ack", if n % 4 == 0 { 3.0 } else { 0.05 }));
    let text = format!("handshake\n +5 C 100\n {replies}\n +0.01 S 300\n +0.05 C ack");
    log(text).rtt(ms(0.012)).window(End::Client, 1024).both_ends(|seen| {
        let bill = seen.exchange(1);
        let window = bill.ns(Cause::ReceiveWindow, Client);
        assert!(window >= ms(31), "{window}{seen}");
    });
}

/// A send buffer that one segment fills: each waits for the acknowledgement of the one before,
/// which the receiver delays. A congestion window of one segment would have grown with the first of
/// them; three show that it does not.
#[test]
fn a_send_buffer_of_one_segment_is_no_congestion_window() {
    let replies = each(1..=12, |_| "+0.05 S 1448 more\n +44 C ack".to_owned());
    let text = format!("handshake\n +5 C 100\n {replies}\n +0.05 S 300\n +0 C ack");
    log(text).rtt(ms(0.012)).both_ends(|seen| {
        let bill = seen.exchange(1);
        let buffer = bill.ns(Cause::SendBuffer, Server);
        assert!(buffer >= ms(8.0 * 44.0), "{buffer}{seen}");
    });
}

/// The ACK of the first small write comes at once, and the second leaves before that seems to have
/// reached the sender: the application pauses no longer than that, so later waits are all Nagle's.
#[test]
fn a_second_write_that_came_at_once_shows_that_later_ones_are_held() {
    let held = each(2..=6, |_| "+0.02 C 20\n +42 S ack\n +0.02 C 100\n +0.01 S ack\n +0.03 S 64".to_owned());
    let first =
        "@0 C syn\n +0.012 S syn\n +0.012 C ack\n +0.5 C 20\n +0.01 S ack\n +0.011 C 100\n +0.005 S ack";
    let text = format!("{first}\n +0.4 S 64\n {held}");
    log(text).both_ends(|seen| {
        // The second hold is the first whose sender has shown before that it waits.
        let bill = seen.exchange(3);
        let line = bill.of(Cause::NagleDelayedAck);
        assert!(line.ns >= ms(41) && line.confidence == Confidence::Certain, "{}{seen}", line.ns);
    });
}

/// The receiver's program takes 20 ms for each flight, which is acknowledged when read: the window
/// had long had room.
#[test]
fn an_acknowledgement_that_waits_for_the_reader_is_no_congestion_window() {
    let flights = each(1..=8, |n| format!("+0.05 S 1448x{} more\n +20 C ack", 10 * n));
    let text = format!("handshake\n +5 C 100\n {flights}\n +0.05 S 300\n +0 C ack");
    let ends = [CLIENT, Endpoint { addr: CLIENT.addr, port: 80 }];
    log(text).rtt(ms(0.012)).between(ends).both_ends(|seen| {
        let bill = seen.exchange(1);
        assert!(bill.ns(Cause::ReceiverThink, Client) >= ms(8.0 * 20.0 - 3.0), "{seen}");
    });
}

/// No bare ACK and no handshake was captured: within one host no path can account for the time
/// before a reply.
#[test]
fn within_one_host_a_late_answer_is_its_programs_without_acknowledgements() {
    let calls = each(1..=6, |_| "+5 C 100\n +60 S 200".to_owned());
    let ends = [CLIENT, Endpoint { addr: CLIENT.addr, port: 80 }];
    let log = log(format!("handshake\n {calls}")).rtt(ms(0.012)).between(ends);
    for end in End::BOTH {
        let seen = Seen::of(log.capture(end).split_off(3), &format!("the {end:?}, midway"));
        let bill = seen.exchange(4);
        let line = bill.of(Cause::ServerThink);
        assert!(line.ns >= ms(59) && line.confidence == Confidence::Likely, "{seen}");
    }
}

/// A SYN between two loopback addresses is answered after 11.2 ms (packets 7 and 9 of a browser's capture on `::1`): no
/// path took that. Between two hosts a queue may have.
#[test]
fn a_handshake_within_a_host_takes_no_path() {
    let here = |last| Endpoint::v4([127, 0, 0, last], 8_443);
    for (ends, own) in [([here(1), here(2)], true), ([CLIENT, SERVER], false)] {
        let text = "@0 C syn\n +11.2 S syn\n +0 C ack\n +0.7 C 300\n +0 S ack\n +3.5 S 200\n +0 C ack";
        let seen = log(text).rtt(ms(0.02)).between(ends).seen_at(End::Client);
        let bill = seen.setup();
        let way = bill.ns(Cause::Handshake, Client);
        let kept = bill.ns(Cause::Unexplained, Unknown);
        if own {
            assert!(way <= ms(0.1) && kept >= ms(11.1), "{seen}");
        } else {
            assert!(way <= ms(0.1) && kept == ms(0), "{seen}");
            assert_eq!(bill.of(Cause::Queueing).confidence, Confidence::Possible, "{seen}");
        }
    }
}

/// One that is answered within a millisecond is a handshake there as well.
#[test]
fn a_handshake_within_a_host_may_take_a_while() {
    let ends = [CLIENT, Endpoint { port: 8_443, ..CLIENT }];
    let seen = log("@0 C syn\n +0.9 S syn\n +0 C ack\n +0.7 C 300\n +0 S ack\n +3.5 S 200\n +0 C ack");
    let seen = seen.rtt(ms(0.02)).between(ends).seen_at(End::Client);
    assert!(seen.setup().ns(Cause::Handshake, Client) >= ms(0.9), "{seen}");
}

/// Where netem delays a host's loopback, its later round trips are as long: the handshake took that path.
#[test]
fn a_handshake_over_a_slow_loopback_takes_its_path() {
    let ends = [CLIENT, Endpoint { port: 8_443, ..CLIENT }];
    let text = "@0 C syn\n +0 S syn\n +0 C ack\n".to_owned()
        + &"+5 C 300 #q\n q+0 S ack\n q+3 S 200\n +0 C ack\n".repeat(3);
    let seen = log(text).rtt(ms(40)).between(ends).seen_at(End::Client);
    let setup = seen.setup();
    assert!(
        setup.ns(Cause::Handshake, Client) >= ms(40) && setup.ns(Cause::Unexplained, Unknown) == ms(0),
        "{seen}"
    );
}

/// By the capture a SYN is answered after 3.9 s, but its client's time stamps have gone on by a tick (a container's
/// capture of its loopback): no clock of time stamps ticks so slowly, so the capture's is wrong, or the host had
/// stopped. The same between two hosts; and none where the stamps go on.
#[test]
fn what_the_clients_stamps_do_not_know_of_is_unexplained() {
    let here = [CLIENT, Endpoint { port: 8_443, ..CLIENT }];
    for (ends, stands) in [(here, true), ([CLIENT, SERVER], true), ([CLIENT, SERVER], false)] {
        let text = "@0 C syn\n +3900 S syn\n +0 C ack\n +0.7 C 300\n +0 S ack\n +3.5 S 200\n +0 C ack";
        let mut segments = log(text).rtt(ms(0.02)).between(ends).capture(End::Client);
        let first = segments[0].options.timestamps.expect("a stamp").val;
        for stamps in segments.iter_mut().filter_map(|segment| segment.options.timestamps.as_mut()) {
            stamps.val = if stands { first + 1 } else { stamps.val };
            stamps.ecr = if stands { first + 1 } else { stamps.ecr };
        }
        let seen = Seen::of(segments, "with stamps");
        let bill = seen.setup();
        let kept = bill.ns(Cause::Unexplained, Unknown);
        assert_eq!(kept, if stands { ms(3_900.02) } else { ms(0) }, "{seen}");
        assert!(bill.exchange.bill.iter().all(|line| line.confidence == Confidence::Possible), "{seen}");
    }
}

/// Netem drops what a host sends to itself before a capture sees it, and the client's acknowledgements of an answer are lost: that
/// comes again after 208 ms, although it had arrived (packets 129 to 133 of a program's loopback). Between two hosts the first
/// copy was likely lost.
#[test]
fn what_was_captured_within_a_host_may_have_arrived() {
    let here = [CLIENT, Endpoint { port: 5_060, ..CLIENT }];
    for (ends, sure) in [(here, Confidence::Possible), ([CLIENT, SERVER], Confidence::Likely)] {
        let calls = "+5 C 100 #q\n q+0 S ack\n q+3 S 200\n +0 C ack\n".repeat(3);
        let text = format!(
            "handshake\n {calls} +1000 C 5 #asked\n asked+0.1 S ack\n asked+0.5 S 5 #said\n said+0.1 C ack lost unseen\n said+208.6 S 600..605 #again\n again+0.1 C ack lost unseen\n again+43 C 7"
        );
        let seen = log(text).rtt(ms(0.02)).between(ends).seen_at(End::Client);
        let line = seen.longer(Cause::Rto, ms(200)).into_iter().next().expect("a timer");
        assert_eq!(line.confidence, sure, "{seen}");
    }
}
