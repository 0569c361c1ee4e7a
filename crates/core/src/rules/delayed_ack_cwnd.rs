//! Was a window of a segment or two waiting for an acknowledgement that the receiver held back?
//!
//! Proof: few bytes in flight, and their acknowledgement late by more than the link needed for them.
//! Refuted by: a prompt acknowledgement, or a flight of more than four segments. On a long path the window costs its round
//! trip with a prompt one too: a hold below a quarter of the wait is not named.
//! Source: RFC 9293, 3.8.6.3 (delayed acknowledgements); RFC 5681, 3.1 and RFC 6928 (initial windows of one segment before,
//! ten since).
//! Seen from: both ends.
//!
//! A receiver may hold back the acknowledgement of a lone segment, and a window that lets no second one leave waits for its
//! timer: a new connection's of one segment, or one after a timeout.

use tcpwhy_wire::Duration;

use super::wait::Wait;
use crate::flow::view::ClockingAck;
use crate::words::limits::HELD_BACK_MIN;

/// A hold that is less than one part in so many of the wait is not named: the window would have cost the rest without it.
const NAMED_SHARE: i64 = 4;

/// Whether an acknowledgement that was held back for so long is what the window had waited for.
pub(super) fn is_cause(wait: &Wait<'_>, ack: &ClockingAck, held_back: Duration) -> bool {
    // What left a round trip and more before a lone segment has been acknowledged, and that was lost: the tail loss probe may
    // be new data. After a timeout all but what was sent again counts as lost.
    let few = ack.flight <= 4 * wait.mss
        || (wait.last.len <= wait.mss && wait.last.spacing > wait.rtt() + HELD_BACK_MIN)
        || (ack.repaired && ack.flight.saturating_sub(ack.left) <= 2 * wait.mss);
    held_back >= HELD_BACK_MIN.max(wait.gap.divided_by(NAMED_SHARE)) && few
}
