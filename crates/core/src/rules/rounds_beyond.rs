//! Was a pause within an answer a round trip of the path beyond a host that acknowledges for the server?
//!
//! Proof: nearly ten full segments had come since the answer began, or since the last such pause, and
//! these and the pause took about as long as the handshake over that path, or up to twice as long if no
//! more had come before: what is sent at once waits for itself, and radios for their turn. Two full
//! segments are enough where they took just as long.
//! Refuted by: a round of another length; fewer segments than any congestion window has room for.
//! Source: RFC 5681, 3.1 (two to four segments at first); RFC 6928 (ten); RFC 3135 (PEPs).
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
use crate::words::limits::{FULL_MIN, INITIAL_WINDOW_SEGMENTS};
use crate::words::report::{Confidence, Detail};

/// The pause behind a round's segments is no shorter than one part in this many of the round trip, and the round no shorter
/// than it by more. Source: none written down.
const PAUSE_SHARE: i64 = 4;
/// A round trip varies by one part in this many. Source: none written down.
const VARIATION: i64 = 16;
/// A round whose flight has grown takes up to this many times the handshake. Source: none written down.
const LOADED_TIMES: i64 = 2;
/// A pause matches the handshake by chance, but hardly within one part in this many. Source: none written down.
const ALIKE_SHARE: i64 = 32;

/// What held the server during a pause after the segments since `round` began, on a path like `beyond`.
#[cold]
pub(crate) fn judge(wait: &Wait<'_>, beyond: &Beyond, round: RoundBeyond) -> Option<Charge> {
    let way = beyond.opened();
    let lasted = wait.segment.at - round.began_at;
    let flight = flight(wait, round);
    // The segments beyond may be smaller, by their options and where the path needs it.
    let many = flight > (INITIAL_WINDOW_SEGMENTS - 2) * wait.mss;
    let grown = flight >= round.before;
    let fits = many && is_whole(lasted, way, grown) || grown && is_start(wait, flight, lasted - way, way);
    if !fits || !pauses(wait, beyond) {
        return None;
    }
    let grows = u64::from(flight) * 2 > u64::from(round.before) * 3;
    let cause = if grows { Cause::SlowStart } else { Cause::CongestionWindow };
    let detail = Detail { flight_bytes: Some(u64::from(flight)), form: Some(FORM), ..Detail::default() };
    let charge = Charge::new(cause, wait.flow.side, Duration::ZERO, Confidence::Possible);
    Some(charge.evidence(wait.last.packet, wait.segment.packet).detail(detail))
}

/// Whether a round of many segments, no fewer than before if it has `grown`, took about as long as the handshake.
fn is_whole(lasted: Duration, way: Duration, grown: bool) -> bool {
    let most = if grown { way.times(LOADED_TIMES) } else { way + way.divided_by(VARIATION) };
    lasted >= way - way.divided_by(PAUSE_SHARE) && lasted <= most
}

/// Whether a small window was used up for just as long as the handshake took, or `longer` by little.
fn is_start(wait: &Wait<'_>, flight: u32, longer: Duration, way: Duration) -> bool {
    let full = wait.last.len >= FULL_MIN && flight >= 2 * FULL_MIN;
    full && longer.max(-longer) <= way.divided_by(ALIKE_SHARE)
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
