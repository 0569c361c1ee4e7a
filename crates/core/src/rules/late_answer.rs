//! Was an answer delayed on its way back, where the capture is at the far end of that way?
//!
//! Proof: its time stamp is older than the path's fastest packets allow, and the rate of its
//! sender's clock was seen to hold before. During a longer silence that clock may also have
//! stopped, but hardly for just as long as the answer was late.
//! Refuted by: a later time stamp: the server took the time.
//! Source: RFC 7323, 5.4 (the clock of time stamps); the estimate of the clock is
//! `estimate/stamp_clock.rs`.
//! Seen from: far from the answering end; beside it nothing has had time to queue.

use tcpwhy_wire::{Duration, Segment};

use super::pair::Pair;
use crate::bill::charge::Charge;
use crate::bill::exchange::Open;
use crate::bill::revise::Revision;
use crate::bill::split::Split;
use crate::flow::direction::Flow;
use crate::flow::handshake::Setup;
use crate::words::cause::Cause;
use crate::words::form::Form;
use crate::words::limits::{DELAYED_ACK_MIN, HELD_BACK_MIN};
use crate::words::report::{Confidence, Detail};

/// Two measurements agree within two ticks plus one part in this many of the time measured. Source:
/// none written down.
const AGREE_SHARE: i64 = 16;
/// Below this many ticks, agreement may be chance. Source: none written down.
const AGREE_TICKS: i64 = 16;
/// The longest tick of systems that are still in use, as elsewhere (`estimate/stamp_clock.rs`).
const TICK_MAX: Duration = Duration::from_millis(10);

/// The part of `left`, the wait for an answer less all else, that the answer spent on its way back.
pub(super) fn judge(pair: &Pair<'_>, open: &Open, segment: &Segment, left: Duration) -> Option<Charge> {
    let flow = &pair.flows[1 - open.initiator];
    let Some(late) = flow.queued_on_way.get() else { return sent_soon(pair, open, segment, left) };
    if !late.is_positive() {
        return None;
    }
    let proven = flow.proven_late(segment.at).map(|_| Confidence::Likely);
    let shown = proven.or_else(|| as_late_as_waited(pair, open, segment, [late, left]));
    let (late, confidence) = match shown {
        Some(confidence) => (late, confidence),
        None => (later_than_acknowledged(pair, open, segment)?.min(left), Confidence::Possible),
    };
    let detail = Detail { form: Some(Form::Reply), ..Detail::default() };
    Some(Charge::new(Cause::Queueing, flow.side, late, confidence).detail(detail))
}

/// The same before the tick of the server's clock is known: it went on by less between the request's
/// acknowledgement and the answer than between the SYN-ACK and that acknowledgement, in many times as long.
#[cold]
#[inline(never)]
fn sent_soon(pair: &Pair<'_>, open: &Open, segment: &Segment, left: Duration) -> Option<Charge> {
    if let Some(late) = left_at_once(pair, open, segment, left) {
        return Some(late);
    }
    let server = 1 - open.initiator;
    let flow = &pair.flows[server];
    let opened = pair.setup.as_ref().and_then(Setup::last_syn_ack).map(|(at, _)| at);
    let acked = pair.acked_by_itself(open, segment)?;
    let clock = &flow.clock;
    let behind = opened.is_some() && clock.began() == opened && clock.passed_before() == Some(acked);
    let own = clock.slowed_down(pair.tap_rtt[server]).filter(|_| behind)?;
    let late = left - own;
    let detail = Detail { form: Some(Form::Reply), ..Detail::default() };
    (late >= HELD_BACK_MIN)
        .then(|| Charge::new(Cause::Queueing, flow.side, late, Confidence::Possible).detail(detail))
}

/// The same for an answer with the very stamp of its request's acknowledgement: both left within a tick. How
/// long that is may not be known yet, but hardly any host's is longer than `TICK_MAX`.
fn left_at_once(pair: &Pair<'_>, open: &Open, segment: &Segment, left: Duration) -> Option<Charge> {
    let flow = &pair.flows[1 - open.initiator];
    let late = (apart_with_one_stamp(pair, open, segment)? - TICK_MAX).min(left);
    let detail = Detail { form: Some(Form::Reply), ..Detail::default() };
    (late >= HELD_BACK_MIN)
        .then(|| Charge::new(Cause::Queueing, flow.side, late, Confidence::Possible).detail(detail))
}

/// How long after its request's acknowledgement an answer with the same stamp came.
#[cold]
#[inline(never)]
pub(super) fn apart_with_one_stamp(pair: &Pair<'_>, open: &Open, segment: &Segment) -> Option<Duration> {
    let acked = pair.acked_by_itself(open, segment)?;
    let since = pair.flows[1 - open.initiator].clock.same_stamp_for(segment.at)?;
    let apart = segment.at - acked;
    (pair.is_far(1 - open.initiator) && apart <= since && apart >= TICK_MAX).then_some(apart)
}

/// How certain the rest of a wait can be beside a delay that was measured with ticks longer than those of most hosts: if
/// nothing but the answer shows how long they are, it was perhaps much later, or the capture's clock was set.
#[inline]
pub(super) fn surest_of_rest(server: &Flow, split: &Split) -> Confidence {
    let clock = &server.clock;
    let guessed = split.has(Cause::Queueing.bit()) && clock.ticks_slowly() && !clock.is_rated();
    if guessed { Confidence::Possible } else { Confidence::Certain }
}

/// By how much a reply that is billed to its server seems late by the server's time stamps.
pub(crate) fn seems(flow: &Flow, answer: &Segment, split: &Split) -> Option<Duration> {
    flow.seems_late(answer.at).filter(|late| *late >= HELD_BACK_MIN && split.has(Cause::ServerThink.bit()))
}

/// A reply that seemed late was, if later packets of its server are on time: the server's clock had not
/// stood still.
#[cold]
pub(crate) fn weigh_seemed(server: &Flow, open: &mut Open, late: Duration) {
    let came_at = open.request_at() + open.waited;
    if server.clock.has_caught_up(came_at) {
        let packets = [open.request.last.map_or(0, |last| last.packet), open.packets[1]];
        open.reply.revise(Revision::AnswerStood { server: server.side, ns: late, packets });
    }
}

/// How certain the delay is if the answer's time stamp puts it at just the time that the answer
/// took, less the server's own time since it acknowledged the request, by its clock: two clocks
/// then agree. After a separate acknowledgement, the delay may be relative to that acknowledgement
/// only.
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
    // A slightly wrong rate would make it look late as well.
    let rated = own.is_none() && clock.is_rated() && clock.is_beyond_rate(late, segment.at);
    agrees.then_some(if rated { Confidence::Likely } else { Confidence::Possible })
}

/// Whether two clocks measured the same time, and not by chance.
pub(crate) fn agree(left: Duration, late: Duration, tick: Duration) -> bool {
    let apart = (left - late).max(late - left);
    left >= tick.times(AGREE_TICKS) && apart <= tick.times(2) + left.divided_by(AGREE_SHARE)
}

/// Whether the server's own clock shows that `left` of the wait was its own: that much lies between
/// the time stamp of a separate acknowledgement of the request and that of the answer. The
/// acknowledgement cannot have been stamped before the request arrived, and the path delay of
/// either packet does not matter. If the request was retransmitted, the answer must echo the first
/// transmission, or it may have waited for the retransmission.
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

/// How much longer the answer was on its way than the separate acknowledgement of its request: the
/// server's own time between the two is given by its time stamps, and the rest of the gap seen here
/// is path. It need not be known which packets were on time.
#[cold]
#[inline(never)]
fn later_than_acknowledged(pair: &Pair<'_>, open: &Open, segment: &Segment) -> Option<Duration> {
    let asked = open.request.last?;
    pair.acked_by_itself(open, segment)?;
    pair.flows[1 - open.initiator].clock.later_than_before(asked.at).filter(|late| *late >= HELD_BACK_MIN)
}

/// The path is no longer than what remains of `wait` after the server's own time by its time
/// stamps: if an acknowledgement says more, it was late. A timer may have delayed it before it was
/// stamped.
#[cold]
#[inline(never)]
pub(super) fn bound_path(pair: &Pair<'_>, open: &Open, segment: &Segment, wait: Duration, path: &mut Charge) {
    let tick = pair.flows[1 - open.initiator].clock.tick();
    if let Some(own) = own_time(pair, open, segment).filter(|own| *own >= tick.times(AGREE_TICKS)) {
        let left = (wait - own + tick).at_least_zero();
        // A handshake may have stood where this request did not, by more than two clocks differ. Whatever
        // acknowledges sooner than its path allows is another host.
        let shown = pair.shown[1 - open.initiator];
        let apart = if shown { tick.times(2) + own.divided_by(AGREE_SHARE) } else { Duration::ZERO };
        if shown && (open.request_bytes == 0 || is_acked_sooner(pair, open, segment, path.ns)) {
            return;
        }
        if path.ns - left > apart {
            let most = if shown { Confidence::Likely } else { path.confidence };
            path.confidence = path.confidence.min(most);
            path.ns = left;
            let timed = left >= DELAYED_ACK_MIN;
            path.confidence = if timed { Confidence::Possible } else { path.confidence };
        }
    }
}

/// Whether the request was acknowledged separately in less than the path takes.
fn is_acked_sooner(pair: &Pair<'_>, open: &Open, segment: &Segment, path: Duration) -> bool {
    let acked = pair.acked_by_itself(open, segment).zip(open.request.last);
    acked.is_some_and(|(acked, last)| acked - last.at < path)
}

/// The server's time between a separate acknowledgement of the request and the answer, by its time
/// stamps, within a tick.
pub(super) fn own_time(pair: &Pair<'_>, open: &Open, segment: &Segment) -> Option<Duration> {
    pair.acked_by_itself(open, segment)?;
    pair.flows[1 - open.initiator].clock.since_before(segment.at)
}
