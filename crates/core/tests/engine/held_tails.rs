//! Tails that come as late as a timer: held by a cork, or lost and retransmitted?

use tcpwhy_core::cause::Cause;
use tcpwhy_core::cause::Side::Server;
use tcpwhy_core::report::Confidence;

use crate::packet_log::{End, log, ms, settled};

/// A tail leaves with its sender's timer, which began when all before it was acknowledged: a
/// cork's, or the RTO after the original was lost before the capture point. Near the sender the
/// original would have been captured; far from it, its numbers show it, if it counts its packets.
#[test]
fn a_tail_that_may_have_been_lost_is_possibly_a_cork_s() {
    let held =
        || log(settled(20) + "+5 C 100\n +0 S 1448x2 more\n +0 C ack\n +208 S 100\n +0 C ack").rtt(ms(4));
    for (log, far) in [(held(), Confidence::Likely), (held().without_ip_ids(), Confidence::Possible)] {
        for (end, sure) in [(End::Server, Confidence::Likely), (End::Client, far)] {
            let seen = log.seen_at(end);
            assert_eq!(seen.exchange(21).of(Cause::Cork).confidence, sure, "{seen}");
        }
    }
}

/// Four exchanges whose second pieces leave with the acknowledgement of the first, and a fifth in which that left 4 ms
/// later: its host was busy, or the program wrote it then. An imprecise clock showed one piece, of the first exchange,
/// as if it had left before the acknowledgement came.
#[test]
fn a_piece_that_is_always_held_is_not_certainly_written_late() {
    let quick = "handshake\n +5 C 100\n +0.1 S 400 #a\n a+0.1 S 400 #b\n a+0.1 C ack\n b+0.1 C ack";
    let held = "\n +5 C 100\n +0.1 S 400\n +42.5 C ack\n +0 S 800\n +0 C ack";
    let late = "\n +5 C 100\n +0.1 S 400\n +42.5 C ack\n +4 S 800\n +0 C ack";
    for end in End::BOTH {
        let seen = log(format!("{quick}{}{late}{held}", held.repeat(4))).rtt(ms(0.05)).seen_at(end);
        let bill = seen.exchange(6);
        let think = bill.exchange.bill.iter().find(|line| line.cause == Cause::SenderThink);
        assert!(think.is_none_or(|line| line.confidence == Confidence::Possible), "{seen}");
    }
}

/// A proxy writes 1,448 and 64 bytes, full segments, and 1,303 bytes at last, which leave when the 64 bytes are acknowledged; those are
/// overtaken by the full segment behind them (frames 1314 to 1416 of a browser behind a VPN): Nagle held the tail, and no window.
#[test]
fn a_small_segment_that_is_overtaken_holds_the_tail_all_the_same() {
    let text = format!(
        "{} +5 C 500 #q\n q+80 S 1448 more #a\n +0 S 64 late=5 #small\n +0 S 1448 more\n +7 S 1448x4 more #full\n small+0 C ack #acked\n \
         full+0 C ack\n acked+0 S 1303\n +0 C ack",
        settled(40)
    );
    let seen = log(text).rtt(ms(200)).seen_at(End::Client);
    let bill = seen.exchange(41);
    let held = bill.ns(Cause::Nagle, Server) + bill.ns(Cause::NagleDelayedAck, Server);
    assert!(held >= ms(185), "{seen}");
    assert!(bill.ns(Cause::SlowStart, Server) < ms(5), "{seen}");
}
