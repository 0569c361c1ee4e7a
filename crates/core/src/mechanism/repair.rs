//! Was the sender waiting to repair a loss, and how: fast, or by its timer?
//!
//! Fast repair follows a signal (duplicate or selective acknowledgements, RFC 6675 and 8985) or the tail loss probe,
//! two round trips after the last segment (RFC 8985, 7). The timer takes RTO, 200 ms and a round trip at least on
//! Linux; with one segment in flight the probe waits as long (tcp_schedule_loss_probe, net/ipv4/tcp_output.c).
//!
//! Near the sender the original and its copy are both seen. Near the receiver only the copy is: the gap in the
//! sequence space, or at the end of a message the gap in the sender's IP identification, shows that it is one.

use tcpwhy_wire::Duration;

use super::{Verdict, Wait};
use crate::account::{Charge, Split};
use crate::cause::Cause;
use crate::half::{Half, Order};
use crate::report::{Confidence, Detail, Trigger};
use crate::rto::RTO_MIN;

pub(crate) fn judge(wait: &Wait<'_>) -> Option<Verdict> {
    let confidence = match wait.order {
        Order::Retransmission { .. } => Confidence::Certain,
        Order::HoleFill { noticed_at } => {
            // Sooner than any signal could reach the sender: overtaken on the way, not lost.
            if wait.segment.at - noticed_at < wait.own - wait.own.divided_by(8) {
                return Some(overtaken(wait));
            }
            Confidence::Certain
        }
        // A lost tail leaves no gap in the sequence space.
        Order::New if wait.half.missed_since_data > 0 && wait.gap > probe_after(wait) => Confidence::Likely,
        _ => return None,
    };
    let (cause, form) = kind(wait);
    let detail = Detail {
        retransmits: Some(1),
        timer: (cause == Cause::Rto).then(|| wait.half.rto.rto()),
        form: Some(form),
        ..Detail::default()
    };
    let charge = Charge::new(cause, wait.half.side, Duration::ZERO, confidence)
        .evidence(wait.last.packet, wait.segment.packet)
        .detail(detail);
    let trigger =
        if cause == Cause::Rto { Trigger::Timer } else { super::burst(&wait.last, wait.segment.at) };
    Some(Verdict { split: Split::of(wait.gap).rest(charge), trigger })
}

/// Which repair it was, by how long it took.
fn kind(wait: &Wait<'_>) -> (Cause, &'static str) {
    let srtt = wait.half.rto.srtt().unwrap_or(wait.rtt()).max(wait.rtt());
    // The estimate of the timer may be above the kernel's; its floor of 200 ms above the round trip is not.
    let timer = RTO_MIN + srtt - Duration::from_millis(10) - srtt.divided_by(8);
    if wait.gap >= timer {
        return (Cause::Rto, "timeout");
    }
    let signalled = wait.half.view.loss_signal.is_some_and(|at| at + wait.hair() >= wait.last.at);
    (
        Cause::Loss,
        if signalled || matches!(wait.order, Order::HoleFill { .. }) { "fast" } else { "tail-probe" },
    )
}

/// The part of the wait for a reply's first byte that went into its repair: the first copy was lost before the capture
/// saw it. A later segment's sequence number or the sender's IP identification shows that there was one.
pub(crate) fn first_reply(half: &Half, order: Order, wait: Duration, rtt: Duration) -> Option<Charge> {
    let confidence = match order {
        Order::HoleFill { .. } => Confidence::Certain,
        Order::New if half.missed_since_data > 0 && wait >= RTO_MIN => Confidence::Likely,
        _ => return None,
    };
    let timer = half.rto.rto().max(RTO_MIN + rtt);
    // The server may have thought before it sent the first copy; a timer's length of the wait is the repair's.
    let slack = timer.divided_by(8) + Duration::from_millis(8);
    let ns = if wait < timer + slack { wait } else { timer };
    let (cause, form) = if wait >= RTO_MIN { (Cause::Rto, "timeout") } else { (Cause::Loss, "fast") };
    let detail = Detail { timer: Some(timer), retransmits: Some(1), form: Some(form), ..Detail::default() };
    Some(Charge::new(cause, half.side, ns, confidence).detail(detail))
}

/// The earliest tail loss probe.
fn probe_after(wait: &Wait<'_>) -> Duration {
    wait.rtt().max(Duration::from_millis(1)) + wait.rtt().divided_by(2)
}

fn overtaken(wait: &Wait<'_>) -> Verdict {
    let detail = Detail { form: Some("reordered"), ..Detail::default() };
    let charge = Charge::new(Cause::Queueing, wait.half.side, Duration::ZERO, Confidence::Likely)
        .evidence(wait.last.packet, wait.segment.packet)
        .detail(detail);
    Verdict { split: Split::of(wait.gap).rest(charge), trigger: Trigger::Burst }
}
