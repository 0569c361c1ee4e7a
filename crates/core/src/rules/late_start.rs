//! Did a message begin before its first segment passed the capture, because that segment was
//! delayed?
//!
//! Proof: its time stamp is older than the path's fastest packets allow, or a later packet was on
//! its way for less time than any before.
//! Refuted by: a sender whose next packet follows at once without such a delay: packets queued
//! behind the first would be as late. A sender's clock that gains on the capture's: what packets take less
//! grows with the time between them.
//! Source: RFC 7323, 5.4 (the clock of time stamps); the estimate of the clock is
//! `estimate/stamp_clock.rs`.
//! Seen from: far from the message's sender; beside it nothing has had time to queue.

use tcpwhy_wire::{Duration, Instant, Segment};

use super::wait::Wait;
use crate::bill::charge::Charge;
use crate::bill::exchange::Open;
use crate::flow::direction::Flow;
use crate::flow::segment_class::{SegmentClass, SendQueue};
use crate::words::cause::Cause;
use crate::words::form::Form;
use crate::words::limits::QUEUED_MIN;
use crate::words::report::{Confidence, Detail};

/// A time stamp cannot prove a delay shorter than this.
const STAMPED_LATE_MIN: Duration = Duration::from_micros(250);
/// A time stamp gives the least that a packet can have waited; the most is a tick of 1 ms longer.
const HALF_TICK: Duration = Duration::from_micros(500);
/// No packet is delayed for longer; a clock that was set back looks the same.
const LATE_MAX: Duration = Duration::from_secs(1);
/// A queue that delayed one packet this many times longer than the next one took to pass without
/// delay was not a queue.
const GONE_SOON: i64 = 10;

/// Far from the sender, a message began earlier than its first segment passed, by that segment's
/// delay, but not before what preceded it was over. `flow` is the sender; `is_far` says that it is
/// at least as far away as its peer.
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
    // A clock whose rate is not confirmed yet may tick more slowly, and a late first packet makes
    // it look so.
    let confidence = if flow.clock.is_rated() { Confidence::Likely } else { Confidence::Possible };
    let late = Charge::new(Cause::Queueing, flow.side, late, confidence);
    Some(late.evidence(segment.packet, 0).detail(detail))
}

/// A packet that took less time than any before shows that the first segment had been delayed.
/// `flow` is its sender.
pub(crate) fn charge(flow: &Flow, open: &mut Open) {
    let began_unseen = open.start < open.passed;
    open.charge_late();
    let (Some(then), Some(now)) = (open.way_base.get(), flow.clock.base()) else { return };
    let more = then - now;
    let grain = flow.grain().max(flow.clock.tick());
    if more < QUEUED_MIN.max(grain.times(2)) || more > LATE_MAX || flow.on_one_host {
        return;
    }
    if flow.clock.may_gain(more, open.passed) {
        return;
    }
    // It began with a copy that nobody saw, after the message before.
    let more = if began_unseen { more.min(open.client_idle) } else { more };
    if !more.is_positive() {
        return;
    }
    let detail = Detail { form: Some(Form::Request), ..Detail::default() };
    // A clock set back during a silence looks the same as a delay shown by one packet after it.
    let may_be_set = flow.clock.jump().is_some_and(|jump| jump.ns < Duration::ZERO && jump.at >= open.start);
    let confidence = if may_be_set { Confidence::Possible } else { Confidence::Likely };
    let late = Charge::new(Cause::Queueing, flow.side, more, confidence)
        .evidence(open.packets[0], open.packets[1])
        .detail(detail);
    open.last_path().settle().charge(&late);
    open.begins_earlier(more);
}

/// The part of a first segment's delay in which its sender had not written the next one: by their time stamps, that left
/// so much later. It came right behind the first one, before anything that could have released it.
#[cold]
#[inline(never)]
pub(crate) fn written_later(late: &Charge, wait: &Wait<'_>) -> Option<Charge> {
    let (last, flow) = (wait.last, wait.flow);
    let behind = wait.gap <= late.ns && last.queue == SendQueue::Emptied;
    let begun = behind && wait.index == 0 && !wait.beside_answer;
    let own = flow.left_apart(last, wait.segment)? - wait.gap;
    let unreleased = flow.flight() >= last.len && wait.class == SegmentClass::New;
    let sure = if unreleased { late.confidence } else { Confidence::Possible };
    let charge = Charge::new(Cause::SenderThink, flow.side, own.min(late.ns), sure);
    (begun && own >= QUEUED_MIN).then(|| charge.evidence(last.packet, wait.segment.packet))
}

/// A packet of the same sender at `at` was delayed by at most `most`. If that came too soon, the
/// queue in which the first segment is said to have waited did not exist: what is queued behind
/// that segment would be as late.
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
