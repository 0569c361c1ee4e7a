//! Was a congestion window of a segment or two waiting for a delayed acknowledgement?
//!
//! Proof: few bytes in flight, and their acknowledgement was late by more than the link needed for
//! them.
//! Refuted by: a prompt acknowledgement, one that is later than any host may hold it back, one that leaves
//! earlier segments unacknowledged, others within a moment before it (then at most possible), or a round of more than
//! four, of which the last may be acknowledged by themselves. On a long path
//! such a window costs a round trip even with a prompt acknowledgement: a delay below a quarter of
//! the wait is not named.
//! Source: RFC 9293, 3.8.6.3 (delayed acknowledgements, by less than half a second); RFC 5681, 3.1 and RFC 6928 (initial
//! windows of one segment before, ten since).
//! Seen from: both ends.
//!
//! A receiver may delay the acknowledgement of a single segment. A window that allows no second one
//! (a new connection's window of one segment, or one after a timeout) then waits for the receiver's
//! timer.

use tcpwhy_wire::Duration;

use super::wait::Wait;
use crate::flow::view::ClockingAck;
use crate::words::limits::{HELD_BACK_MAX, HELD_BACK_MIN};
use crate::words::report::Confidence;

/// A delay below one part in this many of the wait is not named: the window costs the rest anyway.
const NAMED_SHARE: i64 = 4;

/// Whether the window was waiting for an acknowledgement that was delayed by `held_back`.
pub(super) fn is_cause(wait: &Wait<'_>, ack: &ClockingAck, held_back: Duration) -> bool {
    // If a single segment leaves more than a round trip after the one before it, earlier data has
    // been acknowledged, or lost (a tail loss probe may be new data), unless the path is late: a timer's
    // acknowledgement is of all that has arrived. After a timeout, all but what was retransmitted counts as lost.
    let all = ack.left <= wait.mss;
    let few = wait.model.rounds.flight_with(ack.flight) <= 4 * wait.mss
        || (all && wait.last.len <= wait.mss && wait.last.spacing > wait.rtt() + HELD_BACK_MIN)
        || (ack.repaired && ack.flight.saturating_sub(ack.left) <= 2 * wait.mss);
    let named = held_back >= HELD_BACK_MIN.max(wait.gap.divided_by(NAMED_SHARE));
    named && held_back < HELD_BACK_MAX && few
}

/// How certain that is: more than a full segment is acknowledged at once (__tcp_ack_snd_check, net/ipv4/tcp_input.c), and
/// what acknowledges it late was late on its way, or its host was busy.
pub(super) fn surest(wait: &Wait<'_>, ack: &ClockingAck) -> Confidence {
    if came_with_others(wait, ack) {
        return Confidence::Possible;
    }
    let acked = ack.flight.saturating_sub(ack.left);
    if acked > wait.mss { Confidence::Possible } else { Confidence::Likely }
}

/// Whether others came within a moment before it: a timer's acknowledgement is of all that has arrived, so that what is
/// acknowledged piece by piece had just come.
fn came_with_others(wait: &Wait<'_>, ack: &ClockingAck) -> bool {
    let first = wait.flow.view.unanswered_since.get();
    first
        .is_some_and(|first| first < ack.earliest_departure && ack.earliest_departure - first < HELD_BACK_MIN)
}
