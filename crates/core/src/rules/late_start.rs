//! Did a message begin before its first segment passed the capture, because that had waited on its way?
//!
//! Proof: its time stamp is older than the path's fastest packets allow, or a later packet was on its way for less than any
//! before it.
//! Refuted by: the next packet of its sender comes at once without such a wait: what stands behind the first takes as long as
//! what stands before it.
//! Source: RFC 7323, 5.4 (the clock of time stamps); the estimate of the clock is `estimate/stamp_clock.rs`.
//! Seen from: far from the message's sender; beside it nothing has had time to wait.

use tcpwhy_wire::{Duration, Instant, Segment};

use crate::bill::charge::Charge;
use crate::bill::exchange::Open;
use crate::flow::direction::Flow;
use crate::words::cause::Cause;
use crate::words::form::Form;
use crate::words::limits::QUEUED_MIN;
use crate::words::report::{Confidence, Detail};

/// Less than this a segment's time stamp cannot show for certain.
const STAMPED_LATE_MIN: Duration = Duration::from_micros(250);
/// A time stamp tells the least that a packet can have waited, a tick of 1 ms short of the most.
const HALF_TICK: Duration = Duration::from_micros(500);
/// Longer than this no packet waits on its way; a clock that was set back looks like it.
const LATE_MAX: Duration = Duration::from_secs(1);
/// A queue that held one packet so many times longer than it takes the next one to come without was none.
const GONE_SOON: i64 = 10;

/// Far from its sender, a message began earlier than its first segment passed by what that waited on its way.
/// What came before it was over by then. `flow` is that sender, and `is_far` whether it is at least as far away as its peer.
pub(crate) fn on_its_way(
    flow: &Flow,
    is_far: bool,
    segment: &Segment,
    idle_since: Option<Instant>,
) -> Option<Charge> {
    let most = idle_since.map_or(Duration::MAX, |since| segment.at - since);
    let queued = flow.proven_late(segment.at).filter(|queued| *queued >= STAMPED_LATE_MIN)?;
    let late = (queued + HALF_TICK).min(most);
    if !is_far || !late.is_positive() {
        return None;
    }
    let detail = Detail { form: Some(Form::Request), ..Detail::default() };
    // A clock whose rate has not held yet may tick more slowly, and a first packet that was late makes it look so.
    let confidence = if flow.clock.is_rated() { Confidence::Likely } else { Confidence::Possible };
    let late = Charge::new(Cause::Queueing, flow.side, late, confidence);
    Some(late.evidence(segment.packet, 0).detail(detail))
}

/// A packet that was on its way here for less than any before it shows that the first segment had waited longer. `flow` is
/// its sender.
pub(crate) fn charge(flow: &Flow, open: &mut Open) {
    open.charge_late();
    let (Some(then), Some(now)) = (open.way_base.get(), flow.clock.base()) else { return };
    let more = then - now;
    if more < QUEUED_MIN.max(flow.grain().times(2)) || more > LATE_MAX || flow.on_one_host {
        return;
    }
    let detail = Detail { form: Some(Form::Request), ..Detail::default() };
    // What one packet behind a silence shows of so many milliseconds, a clock that was set back shows as well.
    let may_be_set = flow.clock.jump().is_some_and(|jump| jump.ns < Duration::ZERO && jump.at >= open.start);
    let confidence = if may_be_set { Confidence::Possible } else { Confidence::Likely };
    let late = Charge::new(Cause::Queueing, flow.side, more, confidence)
        .evidence(open.packets[0], open.packets[1])
        .detail(detail);
    open.last_path().settle().charge(&late);
    open.begins_earlier(more);
}

/// A packet of its sender at `at` waited for `most` at most. The queue that its first segment is to have waited in was a pause if
/// it was gone so soon: what stood behind that segment takes as long as what stood before it.
#[inline]
pub(crate) fn refute(open: &mut Open, at: Instant, most: Duration) {
    if open.late.is_some() {
        forget_if_gone(open, at, most);
    }
}

#[cold]
#[inline(never)]
fn forget_if_gone(open: &mut Open, at: Instant, most: Duration) {
    let soon = (at - open.passed).max(most).times(GONE_SOON);
    if at > open.passed && open.late.as_ref().is_some_and(|late| soon < late.ns) {
        open.late = None;
    }
}
