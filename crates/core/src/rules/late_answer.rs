//! Was an answer late on its way back, where the capture stands behind that way?
//!
//! Proof: its stamp is older than the path's fastest packets allow, as long as the rate of its sender's clock was seen to hold before. Behind a
//! longer silence that clock may have stood still as well, at any time; but not by chance for just as long as the answer was late.
//! Refuted by: a later stamp, which the server took the time for.
//! Source: RFC 7323, 5.4 (the clock of time stamps); the estimate of the clock is `estimate/stamp_clock.rs`.
//! Seen from: far from the answering end; beside it nothing has had time to wait.

use tcpwhy_wire::{Duration, Segment};

use super::pair::Pair;
use crate::bill::charge::Charge;
use crate::bill::exchange::Open;
use crate::words::cause::Cause;
use crate::words::form::Form;
use crate::words::limits::{DELAYED_ACK_MIN, HELD_BACK_MIN};
use crate::words::report::{Confidence, Detail};

/// Two measures agree within two ticks and one part in so many of what they measure. Source: none written down.
const AGREE_SHARE: i64 = 16;
/// Fewer ticks agree by chance. Source: none written down.
const AGREE_TICKS: i64 = 16;

/// What of `left`, the wait for an answer less all else, it spent on its way back.
pub(super) fn judge(pair: &Pair<'_>, open: &Open, segment: &Segment, left: Duration) -> Option<Charge> {
    let flow = &pair.flows[1 - open.initiator];
    let late = flow.queued_on_way.get().filter(|late| late.is_positive())?;
    let proven = flow.proven_late(segment.at).map(|_| Confidence::Likely);
    let shown = proven.or_else(|| as_late_as_waited(pair, open, segment, [late, left]));
    let (late, confidence) = match shown {
        Some(confidence) => (late, confidence),
        None => (later_than_acknowledged(pair, open, segment)?.min(left), Confidence::Possible),
    };
    let detail = Detail { form: Some(Form::Reply), ..Detail::default() };
    Some(Charge::new(Cause::Queueing, flow.side, late, confidence).detail(detail))
}

/// How sure it is that the answer was late where its stamp says so of just as long as it took, less what the server took by its own clock since
/// it acknowledged the question: two clocks measure the same. Behind such an acknowledgement it may be that alone which the stamp is compared with.
#[cold]
#[inline(never)]
fn as_late_as_waited(
    pair: &Pair<'_>,
    open: &Open,
    segment: &Segment,
    [late, left]: [Duration; 2],
) -> Option<Confidence> {
    let clock = &pair.flows[1 - open.initiator].clock;
    let own = own_time(pair, open, segment);
    let left = left - own.unwrap_or_default();
    let agrees = agree(left, late, clock.tick());
    let agrees = agrees && (own.is_none() || clock.ticks_no_slower(late, segment.at));
    // A rate that is a little off makes it look late as well.
    let rated = own.is_none() && clock.is_rated() && clock.is_beyond_rate(late, segment.at);
    agrees.then_some(if rated { Confidence::Likely } else { Confidence::Possible })
}

/// Whether what the one clock measures and what the other one does is the same, and not by chance.
pub(crate) fn agree(left: Duration, late: Duration, tick: Duration) -> bool {
    let apart = (left - late).max(late - left);
    left >= tick.times(AGREE_TICKS) && apart <= tick.times(2) + left.divided_by(AGREE_SHARE)
}

/// Whether the server's own clock says that `left` of the wait was its: as much lies between the stamp of the acknowledgement that its question had by itself
/// and that of its answer. The first was not stamped before the question had come, and the way of neither packet matters. A copy of the question is none that
/// the answer waited for, where that echoes the first one.
#[cold]
#[inline(never)]
pub(super) fn is_told(pair: &Pair<'_>, open: &Open, segment: &Segment, left: Duration) -> bool {
    let clock = &pair.flows[1 - open.initiator].clock;
    let behind = open.request.last.is_some_and(|asked| clock.passed_before().is_some_and(|at| at > asked.at));
    let echoed = segment.options.timestamps.map(|stamps| stamps.ecr);
    let first = open.request.repaired_at().is_none()
        || echoed.is_some_and(|echoed| open.request.answered_before_repair(echoed));
    behind && first && own_time(pair, open, segment).is_some_and(|own| agree(left, own, clock.tick()))
}

/// By how much longer an answer was on its way than the acknowledgement that its question had by itself: between the two the server took what its own stamps
/// say, and what else passed here no server took. Which packets were on time need not be known.
#[cold]
#[inline(never)]
fn later_than_acknowledged(pair: &Pair<'_>, open: &Open, segment: &Segment) -> Option<Duration> {
    let asked = open.request.last?;
    pair.acked_by_itself(open, segment)?;
    pair.flows[1 - open.initiator].clock.later_than_before(asked.at).filter(|late| *late >= HELD_BACK_MIN)
}

/// The way is no longer than what is left of `wait` when the server's own time by its stamps is taken off: an acknowledgement that says more of it was
/// late. Before that was stamped, a timer may have held it back.
#[cold]
#[inline(never)]
pub(super) fn bound_path(pair: &Pair<'_>, open: &Open, segment: &Segment, wait: Duration, path: &mut Charge) {
    let tick = pair.flows[1 - open.initiator].clock.tick();
    if let Some(own) = own_time(pair, open, segment).filter(|own| *own >= tick.times(AGREE_TICKS)) {
        let left = (wait - own + tick).at_least_zero();
        if left < path.ns {
            path.ns = left;
            let timed = left >= DELAYED_ACK_MIN;
            path.confidence = if timed { Confidence::Possible } else { path.confidence };
        }
    }
}

/// What the server took between the question's acknowledgement, where that came by itself, and the answer, as its stamps say: a tick more or less.
pub(super) fn own_time(pair: &Pair<'_>, open: &Open, segment: &Segment) -> Option<Duration> {
    pair.acked_by_itself(open, segment)?;
    pair.flows[1 - open.initiator].clock.since_before(segment.at)
}
