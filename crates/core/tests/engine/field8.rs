//! What an eighth reading of strangers' captures showed, as packet logs.

use tcpwhy_core::cause::{Cause, Side};
use tcpwhy_core::report::Confidence::{Certain, Likely};
use tcpwhy_wire::Duration;

use crate::packet_log::{End, log, ms};
use crate::seen::Seen;

/// A Wi-Fi stands still for 300 ms: the client's timer runs out, and the acknowledgement of the first copy comes 68 ms behind the second one, on
/// a path of 19 ms (frames 241 to 299 of a laptop's TLS). Without time stamps nothing tells which copy it is for, so that the timer is no
/// more than likely, until a D-SACK for the second: the path was late, and lost nothing.
#[test]
fn which_copy_was_acknowledged_says_the_d_sack() {
    for (first, told, timers, late) in
        [("lost", "", Some(Likely), 0.0), ("late=286", "again+0 S ack\n +20 S 900", None, 237.0)]
    {
        let answers = if told.is_empty() { "again+0 S 800" } else { "q+0 S ack\n +0 S 1000 more" };
        let text = format!(
            "handshake\n +1 C 106\n +5 S 106\n +1 C 560 {first} #q\n q+237 C 106..666 late=80 #again\n {answers}\n {told}\n +0 C ack"
        );
        let seen = log(text).rtt(ms(19)).without_timestamps().seen_at(End::Client);
        let most = seen.lines(Cause::Rto, Side::Path).iter().map(|line| line.confidence).max();
        assert_eq!(most, timers, "{seen}");
        let queued = seen.spent(Cause::Queueing, Side::Path);
        assert!((queued - ms(late)).as_nanos().abs() <= ms(20).as_nanos(), "{seen}");
    }
}

/// An upload's segment goes out again after 680 ms, and is acknowledged 121 ms later on a path of 258 ms (frames 3121 to 3191 of a laptop's TLS):
/// that is for the first copy, and the path was late. An acknowledgement a round trip behind the copy is for the
/// copy, or the first one's was lost.
#[test]
fn no_copy_is_acknowledged_sooner_than_it_can_have_arrived() {
    for (lost, acked, timers) in [("late=545", "q+0 S ack", 0.0), ("lost", "again+0 S ack", 680.0)] {
        let text = format!(
            "handshake\n +1 C 106\n +5 S 106\n +1 C 1400 more {lost} #q\n q+680 C 106..1506 #again\n {acked}\n +0 C 1400\n +0 S 300\n +0 C ack"
        );
        let seen = log(text).rtt(ms(258)).without_timestamps().seen_at(End::Client);
        let timer = seen.spent(Cause::Rto, Side::Path);
        assert!((timer - ms(timers)).as_nanos().abs() <= ms(1).as_nanos(), "{seen}");
        // A host that has these bytes acknowledges a second copy at once as well (RFC 9293, 3.10.7.4).
        let sure = seen.lines(Cause::Rto, Side::Path).iter().any(|line| line.confidence == Certain);
        assert!(!sure, "{seen}");
        let queued = seen.spent(Cause::Queueing, Side::Path);
        assert_eq!(queued >= ms(680), timers == 0.0, "{seen}");
    }
}

/// Time stamps of both ends stand still for two seconds in the middle of a page on one host (frames 1014 to 1018 and 1055 to 1059 of a file
/// whose times had been moved; a virtual machine that is suspended looks the same): no acknowledgement was held back, no buffer full.
/// Where they go on, the client had held it back.
#[test]
fn nobody_waits_while_the_clocks_stand_still() {
    for stands in [true, false] {
        let pages = "+100 C 100\n +0.2 S 3000\n +0 C ack\n".repeat(4);
        let text = format!(
            "handshake\n {pages} +100 C 100\n +0.2 S 1448x2 more\n +0 C ack\n +0 S 1448x2 more\n +2000 C ack #late\n +0 S 1448x2 more\n +0 S 700\n +0 C ack"
        );
        let mut segments = log(text).rtt(ms(0.02)).capture(End::Client);
        let late = segments.iter().position(|segment| segment.at - segments[0].at > ms(2_400));
        let late = late.expect("what comes behind the silence");
        for segment in segments.iter_mut().skip(late).filter(|_| stands) {
            let stamps = segment.options.timestamps.as_mut().expect("time stamps");
            (stamps.val, stamps.ecr) = (stamps.val - 2_000, stamps.ecr.saturating_sub(2_000));
        }
        let seen = Seen::of(segments, "the client");
        assert_eq!(seen.spent(Cause::Unexplained, Side::Unknown) >= ms(1_990), stands, "{seen}");
        let total: Duration = seen.exchange(5).exchange.bill.iter().map(|line| line.ns).sum();
        assert!(total >= ms(2_000), "{seen}");
    }
}

/// A mail's upload in writes of 8 kB: a window of 500 bytes holds it for 420 ms, then a write comes 1.5 ms after the one before (frames 486 to 500
/// of a puzzle's mail). Whoever writes by a clock of its own writes as well while a window is shut: the hold had delayed it. A program that
/// goes on 40 ms later may have done so without it.
#[test]
fn a_short_pause_behind_a_long_hold_does_not_forgive_it() {
    for (pause, held) in [(0.4, 420.0), (40.0, 0.0)] {
        let text = format!(
            "handshake\n +5 C 100\n +1 S 50\n +1 C 1448x5 more every=0.1\n +0.1 C 900\n +0.4 S ack win=512\n +420 S ack win=46080\n \
             +0 C 1448x5 more every=0.1\n +0.1 C 900\n +0.4 S ack win=46080\n +{pause} C 1448x5 more every=0.1\n +0.1 C 900\n +1 S 20 win=46080"
        );
        let seen =
            log(text).rtt(ms(0.4)).window(End::Server, 8_576).without_timestamps().seen_at(End::Client);
        let shut =
            seen.spent(Cause::ReceiverThink, Side::Server) + seen.spent(Cause::ReceiveWindow, Side::Server);
        assert!((shut - ms(held)).as_nanos().abs() <= ms(2).as_nanos(), "{pause}: {seen}");
    }
}
