//! Tails that come as late as a timer: held by a cork, or lost and retransmitted?

use tcpwhy_core::cause::Cause;
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
