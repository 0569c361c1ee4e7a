//! Does a server begin to answer with the first piece of a request, or when it has all of it?
//!
//! Proof: of two requests in pieces the rest came at quite another time, and the answer at the same, counted from the first
//! piece: nothing in it had waited for the rest.
//! Refuted by: an answer that moves with the rest of its request.
//! Source: arithmetic on this server's own answers; no stack decides it, the program does.
//! Seen from: both ends; the pieces as they pass the capture.

use tcpwhy_wire::Duration;

use crate::bill::exchange::Timing;
use crate::words::limits::HELD_BACK_MIN;

/// The rest of a request came at quite another time if it moved by so many times what the answer did. Source: none written down.
const MOVED_MORE: i64 = 8;
/// Answers that differ by less than this took the same time, or by less than one part in `ALIKE_SHARE`. Source: none written down.
const ALIKE_MIN: Duration = Duration::from_micros(500);
/// See `ALIKE_MIN`.
const ALIKE_SHARE: i64 = 64;

/// How the answers of one server lie to requests in pieces.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Answers {
    /// Most connections have no request in pieces.
    seen: Option<Box<Seen>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Seen {
    last: Option<Timing>,
    /// The last one before it whose rest came at quite another time.
    other: Option<Timing>,
    /// The server's own time, once that is shown.
    own: Option<Duration>,
}

impl Answers {
    /// Whether this answer had not waited for the rest of its request.
    pub(crate) fn is_own(&self, timing: Timing) -> bool {
        let shown = |last: Timing| {
            let moved = moved(last, timing);
            let differs = last.answer - timing.answer;
            let much = moved >= HELD_BACK_MIN && moved >= differs.max(-differs).times(MOVED_MORE);
            much && agree(last.answer, timing.answer)
        };
        let Some(seen) = &self.seen else { return false };
        [seen.last, seen.other].into_iter().flatten().any(shown)
            || seen.own.is_some_and(|own| agree(own, timing.answer))
    }

    pub(crate) fn on_answer(&mut self, timing: Timing, is_own: bool) {
        let seen = self.seen.get_or_insert_default();
        if let Some(last) = seen.last.replace(timing).filter(|last| moved(*last, timing) >= HELD_BACK_MIN) {
            seen.other = Some(last);
        }
        seen.own = is_own.then_some(timing.answer);
    }
}

/// By how much the rest of two requests came at different times.
fn moved(a: Timing, b: Timing) -> Duration {
    let moved = a.pieces - b.pieces;
    moved.max(-moved)
}

fn agree(a: Duration, b: Duration) -> bool {
    let difference = a - b;
    difference.max(-difference) <= ALIKE_MIN.max(a.divided_by(ALIKE_SHARE))
}
