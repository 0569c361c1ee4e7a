//! Had the application simply not written yet?
//!
//! Stacks set PSH when the send queue is empty behind a segment (tcp_mark_push from tcp_push, net/ipv4/tcp.c; RFC 9293,
//! 3.9.1). A pushed segment followed by silence means that the application had nothing to send. Silence behind a
//! segment without PSH means that more was queued, and that something else held it.

use super::{BURST_GAP, Verdict, Wait, burst};
use crate::account::{Charge, Split};
use crate::cause::Cause;
use crate::half::Queue;
use crate::report::Confidence;
use tcpwhy_wire::Duration;

pub(crate) fn judge(wait: &Wait<'_>) -> Verdict {
    let (cause, confidence) = match wait.last.queue {
        Queue::Emptied if wait.near_sender() => (Cause::SenderThink, Confidence::Certain),
        Queue::Emptied => (Cause::SenderThink, Confidence::Likely),
        _ if wait.gap < BURST_GAP => (Cause::Bandwidth, Confidence::Likely),
        Queue::Unknown => (Cause::SenderThink, Confidence::Likely),
        Queue::More => (Cause::Unexplained, Confidence::Possible),
    };
    let charge = Charge::new(cause, wait.half.side, Duration::ZERO, confidence)
        .evidence(wait.last.packet, wait.segment.packet);
    Verdict { split: Split::of(wait.gap).rest(charge), trigger: burst(&wait.last, wait.segment.at) }
}
