//! Had the application simply not written yet?
//!
//! Stacks set PSH when the send queue is empty behind a segment (tcp_mark_push from tcp_push, net/ipv4/tcp.c; RFC 9293,
//! 3.9.1). A pushed segment followed by silence means that the application had nothing to send. Silence behind a
//! segment without PSH means that more was queued, and that something else held it.

use super::{Verdict, Wait, burst, nagle};
use crate::bill::account::{Charge, Split};
use crate::bill::exchange::Timing;
use crate::flow::half::Queue;
use crate::words::cause::Cause;
use crate::words::limits::{BURST_GAP, HELD_BACK_MIN, RTO_MIN};
use crate::words::report::Confidence;
use tcpwhy_wire::Duration;

/// Does a server begin to answer with the first piece of a request, or when it has all of it?
///
/// Where the rest came at quite another time and the answer at the same, counted from the first piece, nothing in it had
/// waited for the rest.
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
            let much = moved >= HELD_BACK_MIN && moved >= differs.max(-differs).times(8);
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
    difference.max(-difference) <= Duration::from_micros(500).max(a.divided_by(64))
}

pub(crate) fn judge(wait: &Wait<'_>) -> Verdict {
    let split = super::bandwidth::split(wait);
    // Far from the sender, a part of a wait is as well what the application took: only what came as fast as the bottleneck
    // lets it through was no wait of its own.
    let linked = wait.near_sender() || wait.last.queue == Queue::More || !split.left().is_positive();
    let split = if linked { split } else { Split::of(wait.gap) };
    let split = rest(wait, split);
    Verdict { split, trigger: burst(wait.last, wait.segment.at) }
}

/// A write that comes by itself falls into the time that an acknowledgement takes to the sender in one case of so many.
const CHANCE: i64 = 16;

/// Charges what is left of a wait that nothing else explains.
pub(crate) fn rest(wait: &Wait<'_>, split: Split) -> Split {
    let (cause, confidence) = match wait.last.queue {
        // A window that was used up may have opened just then, how large windows are not being known.
        Queue::Emptied if wait.half.scale_bounds.is_in_use() && follows_ack(wait) => {
            (Cause::SenderThink, Confidence::Possible)
        }
        Queue::Emptied if may_be_released(wait) => (Cause::SenderThink, Confidence::Possible),
        Queue::Emptied if nagle::may_have_held(wait) => (Cause::SenderThink, Confidence::Possible),
        Queue::Emptied if wait.near_sender() && !nagle::is_off_for_the_first_time(wait) => {
            (Cause::SenderThink, Confidence::Certain)
        }
        Queue::Emptied => (Cause::SenderThink, Confidence::Likely),
        _ if wait.gap < BURST_GAP => (Cause::Bandwidth, Confidence::Likely),
        // The queue behind it may have been empty or not.
        Queue::Unknown => (Cause::SenderThink, Confidence::Possible),
        // With the last segment all that is in flight, no window holds the next one, and a cork had no timer yet: a
        // segment that leaves because it is full waited for the bytes of its own (MSG_MORE, SPLICE_F_MORE).
        Queue::More if wait.half.flight() <= wait.last.len && wait.gap < RTO_MIN => {
            (Cause::SenderThink, Confidence::Possible)
        }
        Queue::More => (Cause::Unexplained, Confidence::Possible),
    };
    let charge = Charge::new(cause, wait.half.side, Duration::ZERO, confidence)
        .evidence(wait.last.packet, wait.segment.packet);
    split.rest(charge)
}

/// Whether an acknowledgement may have released it that has hardly reached the sender yet, as far as the way to it is known:
/// that is known from above, and without time stamps from a few packets. Chance alone seldom lets a write fall into so short
/// a time, or so near to the end of a longer one.
fn may_be_released(wait: &Wait<'_>) -> bool {
    wait.half.acked_in_transit(wait.last.at).is_some_and(|passed| {
        let nearly = (wait.segment.at - passed).times(4) >= wait.own.times(3);
        wait.gap >= wait.own.times(CHANCE) || nearly && !wait.half.timestamps
    })
}

fn follows_ack(wait: &Wait<'_>) -> bool {
    wait.half.view.advanced().is_some_and(|release| wait.follows(&release))
}
