//! Does a server begin to answer after the first piece of a request, or only when it has all of it?
//!
//! Proof: in two requests sent in pieces, the last piece came at very different times after the
//! first, but the answer came equally late after the first piece: the server was not waiting for
//! the rest.
//! Refuted by: an answer whose time moves with the last piece of its request.
//! Source: arithmetic on this server's own answers; the program decides this, not its TCP stack.
//! Seen from: both ends; the pieces are timed as they pass the capture point.

use tcpwhy_wire::Duration;

use crate::bill::exchange::pieces::Timing;
use crate::words::limits::HELD_BACK_MIN;

/// The last piece must have moved by at least this many times as much as the answer did. Source:
/// none written down.
const MOVED_MORE: i64 = 8;
/// Two answer times count as equal if they differ by less than this, or by less than
/// 1/`ALIKE_SHARE`. Source: none written down.
const ALIKE_MIN: Duration = Duration::from_micros(500);
/// See `ALIKE_MIN`.
const ALIKE_SHARE: i64 = 64;

/// When one server's answers come, relative to the pieces of their requests.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Answers {
    /// Boxed: most connections have no request in pieces.
    seen: Option<Box<Seen>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Seen {
    last: Option<Timing>,
    /// The last request before `last` whose last piece came at a very different time.
    other: Option<Timing>,
    /// The server's own time, once it has been shown.
    own: Option<Duration>,
}

impl Answers {
    /// Whether the server sent this answer without waiting for the rest of the request.
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

/// By how much the time from first to last piece differs between two requests.
fn moved(a: Timing, b: Timing) -> Duration {
    let moved = a.pieces - b.pieces;
    moved.max(-moved)
}

fn agree(a: Duration, b: Duration) -> bool {
    let difference = a - b;
    difference.max(-difference) <= ALIKE_MIN.max(a.divided_by(ALIKE_SHARE))
}
