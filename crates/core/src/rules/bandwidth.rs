//! Was a segment held by the bottleneck alone?
//!
//! Proof: near the receiver, by its time stamp it left soon after the one before and came late behind it, or was on its way
//! already when that arrived; or segments of one size keep one distance with more queued behind each.
//! Refuted by: an acknowledgement that let it go (behind one that was held back, time stamps must have shown how often they tick), a pace of
//! its sender's own, one host at both ends (there is no link in between); a short segment that left when all before it had arrived.
//! Source: RFC 7323, 5.4 (the clock of time stamps); captures are taken behind the queues of the host
//! (dev_hard_start_xmit, net/core/dev.c, Linux 6.12).
//! Seen from: near the receiver; near the sender only what waited in its host's own queue.
//!
//! How much of any wait the bottleneck needed for the bytes themselves is `link_share`. In a round that a window stopped, the
//! time that the bottleneck needed for the round's bytes is bandwidth; only the rest belongs to the window. Where a queue of
//! the transfer's own stands at the bottleneck, acknowledgements come at its rate and nothing else delays the sender.

use tcpwhy_wire::Duration;

use super::verdict::{Verdict, burst};
use super::wait::Wait;
use super::{link_share, think};
use crate::bill::charge::Charge;
use crate::bill::split::Split;
use crate::estimate::rate::Rate;
use crate::flow::segment_class::{SegmentClass, SendQueue};
use crate::flow::view::ClockingAck;
use crate::words::cause::Cause;
use crate::words::limits::{BURST_GAP, HELD_BACK_MIN, RTO_MIN};
use crate::words::report::{Confidence, Detail};

/// What a time stamp leaves open.
const STAMP_TICK: Duration = Duration::from_millis(1);

/// A distance that was stretched on the way so many times is the path's, whatever was queued. Source: none written down.
const STRETCHED: i64 = 4;
/// Whoever sends the next small segment so much later by its own clock did not queue it behind the one before. Source: none written down.
const ALONE_MIN: Duration = Duration::from_millis(200);
/// Distances that differ by less than one part in so many are the same. Source: none written down.
const SPACING_SHARE: i64 = 32;

/// Near the receiver, packets' time stamps tell when they left. One that was waiting already when the one before it
/// arrived, or that left soon after it and arrived late behind it, was held by the path alone, whatever the sender
/// could have done. Near the sender, one that waited did so in a queue of its own host's (a token bucket on its interface:
/// captures are taken behind that, dev_hard_start_xmit, net/core/dev.c).
pub(crate) fn judge(wait: &Wait<'_>) -> Option<Verdict> {
    let flow = wait.flow;
    if wait.class != SegmentClass::New || wait.gap < BURST_GAP || flow.on_one_host {
        return None;
    }
    let queued = flow.queued_on_way.get().filter(|queued| queued.is_positive()).unwrap_or_default();
    let near = wait.near_sender();
    let waiting = queued.is_positive() && (queued >= wait.gap || !near && queued + STAMP_TICK >= wait.gap);
    let since = flow.clock.same_stamp_for(wait.segment.at);
    let stamped_before = since.is_some_and(|since| since >= wait.gap + STAMP_TICK);
    if near && !waiting && !(stamped_before && wait.last.queue == SendQueue::More) {
        return None;
    }
    // With more queued behind the last one, its sender did not wait of its own accord.
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
    let charge = Charge::new(Cause::Bandwidth, flow.side, share.min(split.left()), Confidence::Likely)
        .evidence(wait.last.packet, wait.segment.packet)
        .detail(detail);
    split.take(charge);
    // Before it waited there, its sender had held it back for as long as remains.
    let split = think::rest(wait, split);
    Some(Verdict { split, trigger: burst(wait.last, wait.segment.at) })
}

/// What of its `share` of the wait the bottleneck was not busy with bytes of this transfer, as far as the segment stood on its way by its stamp: of those no more
/// than its receiver's window can have been before it. Others fill the same queue, or the path stood still.
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

/// Whether it left when the last of its flow had arrived, by its own clock (`by_stamp`) or because it answers what was sent since:
/// whatever held it was no queue of the transfer's own, and it is too short to be long in the bottleneck by itself.
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

/// Whether it follows an acknowledgement that had been held back, and its sender's time stamps have not shown yet how often they tick.
fn was_let_go(wait: &Wait<'_>) -> bool {
    let held_back = |ack: &ClockingAck| wait.ack_delay(ack).is_some_and(|delay| delay >= HELD_BACK_MIN);
    let unmeasured = wait.flow.clock.ticks_apart(0, 0).is_none();
    unmeasured && wait.flow.view.clocking_ack().is_some_and(|ack| held_back(&ack) && wait.follows(&ack))
}

/// Segments of one size, each as long after the one before it, from a queue that was not empty, and no acknowledgement
/// that can have let them go one by one: a backlog comes so out of a bottleneck, however slow that is.
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
