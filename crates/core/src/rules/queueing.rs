//! Was a segment or its acknowledgement delayed on its way, by other traffic or on a path that
//! stood still?
//!
//! Proof: time stamps: the smallest difference between the two clocks is the path's own; what a
//! packet exceeds it by is the time that it waited (`estimate/stamp_clock.rs`).
//! Refuted by: a receiver that delays the acknowledgement, or does not read (its window is smaller
//! then); a queue of the transfer's own bytes is `bandwidth`.
//! Source: RFC 7323, 5.4 (the clock of time stamps); RFC 9293, 3.8.6.3 (two segments or more are
//! acknowledged at once).
//! Seen from: far from the sender by time stamps; without them, and near the sender by
//! acknowledgements, at most possible.

use tcpwhy_wire::Duration;

use super::link_share;
use super::wait::Wait;
use crate::bill::charge::Charge;
use crate::flow::view::ClockingAck;
use crate::words::cause::Cause;
use crate::words::limits::{
    DELAYED_ACK_MAX, DELAYED_ACK_MIN, HELD_BACK_MAX, HELD_BACK_MIN, QUEUED_MIN, TIMER_TICK,
};
use crate::words::report::Confidence;

/// Smaller variation is normal.
const LATE_MIN: Duration = Duration::from_millis(1);

/// How much later the segment came than its release by `ack` allows.
pub(super) fn behind(wait: &Wait<'_>, ack: &ClockingAck) -> Charge {
    let late = wait.segment.at - ack.earliest_departure;
    Charge::new(Cause::Queueing, wait.flow.side, late, Confidence::Possible)
        .evidence(ack.packet, wait.segment.packet)
}

/// How long the acknowledgement that has just passed was delayed on its way, by its own time stamp.
/// A delay of just the shortest or longest delayed-acknowledgement timer was a delayed
/// acknowledgement, either by a middlebox that acknowledges for its receiver or by a host whose
/// delayed acknowledgements carry the time stamp of what they acknowledge (observed of Linux in
/// 2018). Beside its sender nothing can have been delayed.
pub(super) fn stood(wait: &Wait<'_>, ack: &ClockingAck) -> Option<Charge> {
    if wait.beside_receiver() {
        return None;
    }
    let came_last = wait.peer.nothing_out_at + wait.rtt_to_sender == ack.earliest_departure;
    let least = QUEUED_MIN.max(wait.gap.divided_by(4)); // less is counted as part of the acknowledgement delay
    let late = wait.peer.queued_on_way.get().filter(|&late| came_last && late >= least)?;
    let by_timer = |timer: Duration| (late - timer).max(timer - late) <= TIMER_TICK;
    let held_back = by_timer(DELAYED_ACK_MAX) || by_timer(DELAYED_ACK_MIN);
    let charge = Charge::new(Cause::Queueing, wait.flow.side, late.min(wait.gap), Confidence::Likely);
    (!held_back).then(|| charge.evidence(wait.last.packet, wait.segment.packet).released_by(ack.packet))
}

/// How much later an acknowledgement came than the path and the flight before it allow. Two
/// segments or more are acknowledged at once (RFC 9293, 3.8.6.3) unless the receiver does not read,
/// and then its window is smaller. Nor does any host hold one back for half a second, however little it
/// acknowledges.
pub(super) fn late_acknowledgement(wait: &Wait<'_>, ack: &ClockingAck) -> Option<Charge> {
    let rate = link_share::rate(wait);
    let acked = ack.flight.saturating_sub(ack.left);
    let unread = wait.flow.view.window < ack.window_peak - ack.window_peak / 4;
    let flight = || wait.flow.on_wire(ack.flight.max(wait.last.flight), 0, wait.mss);
    let own = rate.map_or(Duration::ZERO, |rate| rate.time_for(flight()));
    let late = wait.ack_delay(ack)? - own;
    let slight = rate.is_some() && acked >= 2 * wait.mss && (LATE_MIN..HELD_BACK_MIN).contains(&late);
    if wait.model.rounds.lost || unread || !slight && late < HELD_BACK_MAX {
        return None;
    }
    let charge = Charge::new(Cause::Queueing, wait.flow.side, late, Confidence::Possible);
    Some(charge.evidence(wait.last.packet, wait.segment.packet).released_by(ack.packet))
}
