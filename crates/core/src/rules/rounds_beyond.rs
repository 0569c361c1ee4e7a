//! Was a pause within an answer a round trip of the path beyond a host that acknowledges for the server?
//!
//! Proof: nearly ten full segments had come since the answer began, or since the last such pause, and
//! these and the pause took about as long as the handshake over that path.
//! Refuted by: a round of another length; fewer segments than any congestion window has room for.
//! Source: RFC 5681, 3.1; RFC 6928; RFC 3135 (PEPs).
//! Seen from: near the client, and at most possible: neither the segments nor the acknowledgements of
//! the connection beyond are in the capture.
//!
//! The host in between acknowledges at once, so the window that seems to be open to the server is not the
//! one that holds it.

use tcpwhy_wire::Duration;

use super::proxy::{Beyond, FORM};
use super::wait::Wait;
use crate::bill::charge::Charge;
use crate::estimate::rounds::RoundBeyond;
use crate::words::cause::Cause;
use crate::words::limits::INITIAL_WINDOW_SEGMENTS;
use crate::words::report::{Confidence, Detail};

/// The pause behind a round's segments is no shorter than one part in this many of the round trip, and the round no shorter
/// than it by more. Source: none written down.
const PAUSE_SHARE: i64 = 4;
/// A round trip varies by one part in this many. Source: none written down.
const VARIATION: i64 = 16;

/// What held the server during a pause after the segments since `round` began, on a path like `beyond`.
#[cold]
pub(crate) fn judge(wait: &Wait<'_>, beyond: &Beyond, round: RoundBeyond) -> Option<Charge> {
    let way = beyond.opened();
    let lasted = wait.segment.at - round.began_at;
    let is_whole = lasted >= way - way.divided_by(PAUSE_SHARE) && lasted <= way + way.divided_by(VARIATION);
    let fits = is_whole && pauses(wait, beyond);
    let flight = flight(wait, round);
    // The segments beyond may be smaller, by their options and where the path needs it (1,220 bytes: RFC 8200, 5).
    if !fits || flight <= (INITIAL_WINDOW_SEGMENTS - 2) * wait.mss {
        return None;
    }
    let grows = u64::from(flight) * 2 > u64::from(round.before) * 3;
    let cause = if grows { Cause::SlowStart } else { Cause::CongestionWindow };
    let detail = Detail { flight_bytes: Some(u64::from(flight)), form: Some(FORM), ..Detail::default() };
    let charge = Charge::new(cause, wait.flow.side, Duration::ZERO, Confidence::Possible);
    Some(charge.evidence(wait.last.packet, wait.segment.packet).detail(detail))
}

/// The round that begins with this segment, if the pause before it was long enough to have ended another.
pub(crate) fn next(wait: &Wait<'_>, beyond: &Beyond, round: RoundBeyond) -> Option<RoundBeyond> {
    let (began, began_at) = (wait.segment.seq, wait.segment.at);
    pauses(wait, beyond).then(|| RoundBeyond { began, began_at, before: flight(wait, round) })
}

fn pauses(wait: &Wait<'_>, beyond: &Beyond) -> bool {
    wait.gap >= beyond.opened().divided_by(PAUSE_SHARE)
}

fn flight(wait: &Wait<'_>, round: RoundBeyond) -> u32 {
    (wait.segment.seq - round.began).max(0) as u32
}
