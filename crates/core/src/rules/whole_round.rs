//! Did a wait take about a round trip, so that the flight before it is all that its sender was
//! allowed to send?
//!
//! Proof: the wait is at least three quarters of the round trip, and the link needed less than half
//! of it.
//! Refuted by: a silence below 1 ms, which may end with an acknowledgement by chance.
//! Source: RFC 5681, 3.1: a window is used up once per round trip.
//! Seen from: both ends.

use tcpwhy_wire::Duration;

use super::link_share;
use super::verdict::Verdict;
use super::wait::Wait;
use crate::bill::held::DOUBTED;
use crate::words::cause::Cause;

/// A wait for a round's acknowledgement may be shorter than the measured round trip by one part in
/// this many. Source: none written down.
const ROUND_SHARE: i64 = 4;

/// A silence shorter than this may end with an acknowledgement by chance.
pub(super) const WHOLE_ROUND_MIN: Duration = Duration::from_millis(1);

/// The flight of a round after which its sender was silent, held by something that only the sender
/// knows.
pub(crate) fn flight(wait: &Wait<'_>, verdict: &Verdict) -> Option<u32> {
    let held = verdict.split.has(DOUBTED | Cause::SendBuffer.bit());
    let ack = wait.flow.view.clocking_ack().filter(|_| held && is_whole_round(wait))?;
    Some(wait.model.rounds.flight_with(ack.flight))
}

/// The flight of a round after which its sender was silent, held by the peer's window.
pub(crate) fn filled(wait: &Wait<'_>, verdict: &Verdict) -> Option<u32> {
    let held = verdict.split.has(Cause::ReceiveWindow.bit());
    let ack = wait.flow.view.clocking_ack().filter(|_| held && is_whole_round(wait))?;
    Some(wait.model.rounds.flight_with(ack.flight))
}

/// Whether a wait was about as long as a round trip.
pub(super) fn lasts_a_round(wait: &Wait<'_>) -> bool {
    wait.gap >= wait.rtt() - wait.rtt().divided_by(ROUND_SHARE)
}

/// Whether a wait was about a round trip, and was not mostly the link's.
pub(crate) fn is_whole_round(wait: &Wait<'_>) -> bool {
    lasts_a_round(wait)
        && wait.gap >= WHOLE_ROUND_MIN
        && link_share::split(wait).left() >= wait.gap.divided_by(2)
}
