//! Was a segment delayed by nothing but the bottleneck?
//!
//! Proof: near the receiver, the segment's time stamp shows that it left soon after the one before
//! but arrived late, or that it was already on its way when the one before arrived; or equal
//! segments arrive equally spaced, with more queued behind each.
//! Refuted by: an acknowledgement that released the segment (a delayed one counts until the time
//! stamps have shown their tick); pacing by the sender; both ends on one host, with no link in
//! between; a short segment that left after all before it had arrived.
//! Source: RFC 7323, 5.4 (the clock of time stamps); packets are captured after the host's own
//! queues (dev_hard_start_xmit, net/core/dev.c, Linux 6.12).
//! Seen from: near the receiver; near the sender only what waited in its host's own queue.
//!
//! How much of any wait the bottleneck needed for the bytes themselves is computed in `link_share`.
//! In a round stopped by a window, the time that the bottleneck needed for the round's bytes is
//! bandwidth; only the rest belongs to the window. Where the transfer keeps a queue at the
//! bottleneck, acknowledgements come at its rate and nothing else delays the sender.

use tcpwhy_wire::Duration;

use super::verdict::{Verdict, burst};
use super::wait::Wait;
use super::{link_share, think};
use crate::bill::charge::Charge;
use crate::bill::split::Split;
use crate::estimate::rate::Rate;
use crate::estimate::stamp_clock::TICK_LONGEST_TODAY;
use crate::flow::segment_class::{SegmentClass, SendQueue};
use crate::flow::view::ClockingAck;
use crate::words::cause::Cause;
use crate::words::limits::{BURST_GAP, HELD_BACK_MIN, QUEUED_MIN, RTO_MIN};
use crate::words::report::{Confidence, Detail};

/// The resolution of a 1 ms time stamp.
const STAMP_TICK: Duration = Duration::from_millis(1);

/// A gap this many times longer on arrival than it was when sent is due to the path, whatever was
/// queued. Source: none written down.
const STRETCHED: i64 = 4;
/// A small segment sent this much later than the one before, by the sender's clock, was not queued
/// behind it. Source: none written down.
const ALONE_MIN: Duration = Duration::from_millis(200);
/// Links that deliver several segments at once do so with whole ones: a segment shorter than one part in this many comes by
/// itself. Source: none written down.
const SHORT_SHARE: u32 = 4;
/// Gaps that differ by less than one part in this many are equal. Source: none written down.
const SPACING_SHARE: i64 = 32;

/// Near the receiver, time stamps tell when packets left. A packet that was already on its way when
/// the one before it arrived, or that left soon after it but arrived late, was delayed by the path
/// alone, whatever the sender could have done. Near the sender, a packet can only have waited in
/// the host's own queue (for example a token bucket on its interface: captures are taken after it,
/// dev_hard_start_xmit, net/core/dev.c).
pub(crate) fn judge(wait: &Wait<'_>) -> Option<Verdict> {
    let flow = wait.flow;
    if wait.class != SegmentClass::New || wait.gap < BURST_GAP || flow.on_one_host {
        return None;
    }
    let queued = flow.queued_on_way.get().filter(|queued| queued.is_positive()).unwrap_or_default();
    let near = wait.near_sender();
    let waiting = queued.is_positive() && (queued >= wait.gap || !near && queued + STAMP_TICK >= wait.gap);
    let since = flow.clock.same_stamp_for(wait.segment.at);
    let tick = if flow.clock.has_ticked() { STAMP_TICK } else { TICK_LONGEST_TODAY };
    let stamped_before = since.is_some_and(|since| since >= wait.gap + tick);
    if near && !waiting && !(stamped_before && wait.last.queue == SendQueue::More) {
        return None;
    }
    // With more queued behind the last segment, the sender did not pause by itself.
    let apart_max = if wait.last.queue == SendQueue::More {
        wait.gap.divided_by(2)
    } else {
        wait.gap.divided_by(STRETCHED)
    };
    let stretched =
        flow.sent_apart(wait.last, wait.segment.options.timestamps).is_some_and(|apart| apart <= apart_max);
    let whole = waiting || (stretched || stamped_before) && !was_let_go(wait) || keeps_pace(wait);
    if !whole && queued < wait.gap.divided_by(2) {
        return None;
    }
    if !near && left_alone(wait, !waiting && !stamped_before) {
        let mut split = Split::of(wait.gap);
        let late = Charge::new(Cause::Queueing, flow.side, queued.min(wait.gap), Confidence::Possible);
        split.take(late.evidence(wait.last.packet, wait.segment.packet));
        let split = think::rest(wait, split);
        return Some(Verdict { split, trigger: burst(wait.last, wait.segment.at) });
    }
    let detail = Detail { rate_bps: link_share::rate(wait).map(Rate::bits_per_second), ..Detail::default() };
    let share = if whole { wait.gap } else { queued };
    let mut split = Split::of(wait.gap);
    if !near
        && share >= RTO_MIN
        && let Some(others) = of_others(wait, share, queued)
    {
        split.take(others.evidence(wait.last.packet, wait.segment.packet));
    }
    let busy = share.min(split.left());
    let confidence = if !near && is_too_long(wait, busy) { Confidence::Possible } else { Confidence::Likely };
    let charge = Charge::new(Cause::Bandwidth, flow.side, busy, confidence)
        .evidence(wait.last.packet, wait.segment.packet)
        .detail(detail);
    split.take(charge);
    // The sender had held the segment for the remaining time before it waited at the bottleneck.
    let split = think::rest(wait, split);
    Some(Verdict { split, trigger: burst(wait.last, wait.segment.at) })
}

/// The part of `share` in which the bottleneck was not busy with this transfer's bytes, limited to
/// how late the segment was by its time stamp. At most one receive window of this transfer can have
/// been queued ahead of it; the rest of the delay is other traffic, or a path that stood still.
#[cold]
#[inline(never)]
fn of_others(wait: &Wait<'_>, share: Duration, queued: Duration) -> Option<Charge> {
    let flow = wait.flow;
    let window = flow.last_window();
    let own = link_share::rate(wait)?.time_for(flow.on_wire(window, 1, wait.mss));
    let late = queued.min(share - own);
    let sure = flow.proven_late(wait.segment.at).map_or(Confidence::Possible, |_| Confidence::Likely);
    (late >= HELD_BACK_MIN).then(|| Charge::new(Cause::Queueing, flow.side, late, sure))
}

/// Whether the bottleneck, at its rate, would have been through much sooner with a whole receive window; or with a short
/// segment, as what was queued before that had passed when the one before arrived. Where no rate has shown, the path may have stood as well.
fn is_too_long(wait: &Wait<'_>, busy: Duration) -> bool {
    let len = wait.segment.payload_len;
    let queued = || if len < wait.mss / SHORT_SHARE { len } else { wait.flow.last_window() };
    let bytes = || wait.flow.on_wire(queued(), 1, wait.mss);
    busy > QUEUED_MIN && link_share::rate(wait).is_none_or(|rate| link_share::exceeds(busy, rate, bytes()))
}

/// Whether the segment left after the one before it had arrived, by the sender's clock (`by_stamp`)
/// or because it answers data sent since. Then no queue of this transfer delayed it, and it is too
/// short to occupy the bottleneck for long.
fn left_alone(wait: &Wait<'_>, by_stamp: bool) -> bool {
    let (peer, segment) = (wait.peer, wait.segment);
    let is_short = segment.payload_len < wait.mss;
    let answers_since = || {
        let asked_since = peer.last_data.as_ref().is_some_and(|asked| asked.at >= wait.last.at);
        asked_since && peer.snd_nxt.is_some_and(|end| segment.ack.at_or_after(end))
    };
    let apart = || wait.flow.sent_apart(wait.last, segment.options.timestamps);
    wait.last.queue == SendQueue::Emptied
        && (by_stamp && (is_short || apart().is_some_and(|apart| apart >= ALONE_MIN))
            || is_short && answers_since())
}

/// Whether the segment follows a delayed acknowledgement while the tick of the sender's time stamps
/// is still unknown.
fn was_let_go(wait: &Wait<'_>) -> bool {
    let held_back = |ack: &ClockingAck| wait.ack_delay(ack).is_some_and(|delay| delay >= HELD_BACK_MIN);
    let unmeasured = wait.flow.clock.ticks_apart(0, 0).is_none();
    unmeasured && wait.flow.view.clocking_ack().is_some_and(|ack| held_back(&ack) && wait.follows(&ack))
}

/// Equal segments at equal spacing from a non-empty queue, not released one by one by
/// acknowledgements: this is how a backlog leaves a bottleneck, however slow.
fn keeps_pace(wait: &Wait<'_>) -> bool {
    let difference = wait.gap - wait.last.spacing;
    let released = wait.flow.view.clocking_ack().is_some_and(|ack| wait.follows(&ack));
    wait.last.queue == SendQueue::More
        && !wait.flow.is_paced()
        && wait.last.len == wait.segment.payload_len
        && difference.max(-difference) <= wait.gap.divided_by(SPACING_SHARE)
        && wait.gap < RTO_MIN
        && !released
}
