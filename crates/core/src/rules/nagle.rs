//! Was a small write held until an acknowledgement?
//!
//! Proof: the small segment follows the acknowledgement, not a time of its own.
//! Refuted by: the same sender elsewhere sends small segments while a small one is outstanding, also
//! later, or on another connection to the same server (then it is possible); or the segment answers
//! what the peer sent unasked (`crossed`).
//! Source: tcp_nagle_check and tcp_minshall_check, net/ipv4/tcp_output.c, Linux 2.6.11 to 6.18; RFC
//! 896; RFC 1122, 4.2.3.2 (delayed acknowledgements).
//! Seen from: both ends; far from the sender the segment may have been delayed on its way, so a
//! separate write and a hold look alike more often.
//!
//! Linux holds the last segment of its queue while it is below the MSS and another small one is
//! unacknowledged (Minshall's variant). Other stacks hold it while anything is unacknowledged (RFC
//! 896). If the peer delays that acknowledgement, the two wait for each other until its timer
//! fires.

use tcpwhy_wire::{Duration, Instant, Segment, Seq};

use super::pair::Pair;
use super::sender_model::NagleObservation;
use super::verdict::Verdict;
use super::wait::{SLOW_HOST, Wait};
use super::{link_share, queueing, receive_window};
use crate::bill::charge::Charge;
use crate::bill::split::Split;
use crate::flow::direction::Flow;
use crate::flow::segment_class::{LastData, SegmentClass, SendQueue};
use crate::flow::view::ClockingAck;
use crate::words::cause::Cause;
use crate::words::form::Form;
use crate::words::limits::{BURST_GAP, DELAYED_ACK_MIN, HELD_BACK_MIN, LATE_SHARE, ROUND_TRIP_PLAY, RTO_MIN};
use crate::words::report::{Confidence, Detail, Trigger};

/// A pause seen elsewhere that is shorter than this says more about a cold start than about the
/// application.
const PAUSE_MIN: Duration = Duration::from_millis(3);
/// No host may delay an acknowledgement for longer (RFC 1122, 4.2.3.2): the path lost or delayed
/// something.
const HOLDS_MAX: Duration = Duration::from_millis(500);

/// A host that was busy when the acknowledgement came is late by at most one part in this many of
/// the hold. Source: none written down.
const BUSY_SHARE: i64 = 16;

/// A key, or the few that are typed while an acknowledgement is held back. Source: none written down.
const TYPED_MAX: u32 = 4;

/// So short a first piece is hardly a message, rather the length prefix of one (RFC 1035, 4.2.2).
const PREFIX_MAX: u32 = 2;

/// Far from its sender, a pause that exceeds the round trip by less than this may not be one.
const PAUSE_LATE_MAX: Duration = Duration::from_millis(2);

pub(crate) fn judge(wait: &Wait<'_>) -> Option<Verdict> {
    if wait.class != SegmentClass::New || wait.gap < BURST_GAP {
        return None;
    }
    let segment = wait.segment;
    // Full segments and the last one before a FIN are never held (tcp_nagle_test).
    let model = wait.model;
    let may_be_held = !wait.is_full() && !segment.flags.fin() && model.nagle_ignored <= model.nagle_held;
    let (ack, form) = may_be_held.then(|| released_by(wait))??;
    // The kernel checks the window before Nagle (tcp_snd_wnd_test in tcp_write_xmit).
    if i64::from(ack.room) < i64::from(segment.payload_len) {
        return None;
    }
    // It could as well be the next request of a client that reads before it writes again.
    let form = form.or(wait.beside_answer.then_some(Form::BesideAnswer));
    // Nobody delayed the acknowledgement for the time that it was delayed on the path.
    let stood = queueing::stood(wait, &ack);
    let late = stood.as_ref().map_or(Duration::ZERO, |charge| charge.ns);
    let held_back = (wait.ack_delay(&ack).unwrap_or(Duration::ZERO) - late).at_least_zero();
    let cause = if held_back >= least_held_back(wait) { Cause::NagleDelayedAck } else { Cause::Nagle };
    // With more of the same write after the last segment, the application did not pause.
    let pause = model.pause(wait.index, wait.last.len).filter(|_| wait.last.queue != SendQueue::More);
    // What leaves at the heels of an acknowledgement that was held back hardly comes by chance.
    let doubtful = form.is_some() || held_back > HOLDS_MAX || may_be_off(wait, cause) || may_be_typed(wait);
    let mut confidence = confidence(wait, cause, doubtful, pause.is_some());
    // While the bottleneck worked off what left before, the tail would have waited there.
    let mut split = if wait.near_sender() { link_share::split(wait) } else { Split::of(wait.gap) };
    let others = [receive_window::before_nagle(wait, &ack), until_repaired(wait, &ack), stood];
    for charge in others.into_iter().flatten() {
        split.take(charge);
    }
    if !wait.follows(&ack) {
        let late = wait.segment.at - ack.earliest_departure;
        if late > wait.gap.divided_by(LATE_SHARE) {
            confidence = Confidence::Possible;
        }
        split.take(if wait.near_sender() {
            Charge::new(Cause::SenderThink, wait.flow.side, late, Confidence::Possible)
                .evidence(ack.packet, segment.packet)
        } else {
            queueing::behind(wait, &ack)
        });
    }
    // Where the acknowledgement came at once (the first exchange on Linux: quick acknowledgements),
    // the application has shown how long it pauses before this write; that part of the wait is not
    // Nagle's. A pause longer than the whole wait belongs to something else.
    // Far from the sender, the previous segment may have been late and the wait shorter by as much.
    let late = wait.flow.queued_peak.min(wait.gap.divided_by(LATE_SHARE));
    let late = if wait.near_sender() { Duration::ZERO } else { late };
    let pause_max = wait.gap + wait.tolerance() + late;
    if let Some(pause) = pause.filter(|&pause| pause >= PAUSE_MIN && pause <= pause_max) {
        confidence = confidence.min(Confidence::Likely);
        let usual = if model.pauses_again(wait.index) { Confidence::Likely } else { Confidence::Possible };
        split.take(
            Charge::new(Cause::SenderThink, wait.flow.side, pause, usual)
                .evidence(wait.last.packet, segment.packet),
        );
    }
    let detail = Detail {
        held_bytes: Some(segment.payload_len),
        ack_delay: Some(held_back),
        flight_bytes: Some(u64::from(ack.flight)),
        form,
        ..Detail::default()
    };
    let charge = Charge::new(cause, wait.flow.side, Duration::ZERO, confidence)
        .evidence(wait.last.packet, segment.packet)
        .released_by(ack.packet)
        .detail(detail);
    Some(Verdict { split: split.rest(charge), trigger: Trigger::Packet(ack.packet) })
}

/// Acknowledgements later than this were held back. A round trip is known to within an eighth: an acknowledgement that is
/// late by less, and by less than the shortest usual timer, was late on its way.
fn least_held_back(wait: &Wait<'_>) -> Duration {
    HELD_BACK_MIN.max(wait.rtt().divided_by(ROUND_TRIP_PLAY).min(DELAYED_ACK_MIN))
}

/// Whether the sender's other connections do without Nagle's algorithm, and nothing shows it on this one.
fn may_be_off(wait: &Wait<'_>, cause: Cause) -> bool {
    wait.nodelay_beside && wait.model.nagle_held == 0 && cause == Cause::Nagle
}

/// Whether two segments are as short as what a person types: the second was written at any time since the first.
fn may_be_typed(wait: &Wait<'_>) -> bool {
    wait.last.len.max(wait.segment.payload_len) <= TYPED_MAX
}

/// A hold about as long as the application's own latency cannot be told from a separate write:
/// `pauses` says that the application's pause is known from where nothing held it.
fn confidence(wait: &Wait<'_>, cause: Cause, doubtful: bool, pauses: bool) -> Confidence {
    let model = wait.model;
    let without_first = wait.flow.mss_announced.is_none();
    match cause {
        _ if doubtful => Confidence::Possible,
        // Without the connection's first exchanges, which are acknowledged at once, the whole wait
        // may be the application's pause.
        _ if without_first && !(pauses || model.goes_with_acks()) => Confidence::Possible,
        _ if without_first => Confidence::Likely,
        // After an idle time, a window of one segment waits for the same acknowledgement.
        Cause::NagleDelayedAck if model.nagle_held > 0 && !model.may_be_restarted && pauses => {
            Confidence::Certain
        }
        _ => Confidence::Likely,
    }
}

/// The acknowledgement was released by a retransmission: until then the data, or its
/// acknowledgement, was lost. If the data had arrived, its acknowledgement may only have been late.
fn until_repaired(wait: &Wait<'_>, ack: &ClockingAck) -> Option<Charge> {
    let rtt = ack.rtt.get().filter(|_| ack.repaired)?;
    let acked_at = ack.earliest_departure - wait.rtt_to_sender;
    let copied = acked_at - rtt - wait.last.at;
    let spare = wait.flow.unusual.spare_acked_at == acked_at;
    let sure = if spare { Confidence::Possible } else { Confidence::Likely };
    let detail = Detail { retransmits: Some(1), form: Some(Form::Timeout), ..Detail::default() };
    let charge = Charge::new(Cause::Rto, wait.flow.side, copied, sure).detail(detail);
    (copied >= RTO_MIN).then(|| charge.evidence(wait.last.packet, ack.packet))
}

/// For a reply to a request that arrived while an earlier reply was outstanding: whether the reply
/// was released by the acknowledgement of the earlier one. An acknowledgement that came with the
/// request, or before it, released nothing, and one shortly after it held little.
pub(crate) fn holds_answer(wait: &Wait<'_>, request: &LastData) -> Option<Verdict> {
    let ack = wait.flow.view.small_acked()?;
    let held = ack.earliest_departure - wait.rtt_to_sender - request.at;
    let little = held < wait.gap.divided_by(2);
    if wait.last.len == 0 || ack.packet <= request.packet || little || !wait.follows(&ack) {
        return None;
    }
    judge(wait)
}

/// The rest of a request that waits while its first piece is answered: the answer carries the
/// acknowledgement that releases it, and what looks like the next request was written before. The
/// application must have shown this pattern where the acknowledgement came alone.
pub(crate) fn holds_rest(wait: &Wait<'_>, reply_first: Seq) -> bool {
    let answered = |ack: &ClockingAck| wait.segment.ack.after(reply_first) && wait.follows(ack);
    is_usual(wait)
        && wait.class == SegmentClass::New
        && wait.model.nagle_ignored <= wait.model.nagle_held
        && wait.flow.view.small_acked().is_some_and(|ack| answered(&ack))
}

/// Far from the sender the segment may have been delayed on the path; beside the sender, by its
/// host. After a long hold that is likelier than a write that happened to come just then, unless
/// this sender is known to ignore Nagle.
fn follows_late(wait: &Wait<'_>, ack: &ClockingAck) -> bool {
    let late = wait.segment.at - ack.earliest_departure;
    let held_back = wait.ack_delay(ack).is_some_and(|delay| delay >= HELD_BACK_MIN);
    // The application has shown that its own pauses are shorter.
    let prompt = || {
        let pause = wait.model.pause(wait.index, wait.last.len);
        pause.is_some_and(|pause| pause <= wait.gap.divided_by(4))
    };
    // A length prefix is no message: its two pieces are written at once, and the path may be slower
    // than it ever was.
    let prefix = wait.last.len <= PREFIX_MAX && wait.last.flight == wait.last.len;
    let soon = late <= wait.gap.divided_by(LATE_SHARE)
        && (wait.model.nagle_held > 0 || late <= wait.rtt_to_sender.divided_by(2) || prefix || prompt());
    // The rest of a write waits for nothing else.
    let rest = wait.last.queue == SendQueue::More
        && late <= wait.flow.queued_peak.max(wait.rtt_to_sender.divided_by(2));
    // The same two pieces were held before, and the acknowledgement of the first was late.
    let usual = is_usual(wait)
        && late <= wait.rtt_to_sender.max(wait.gap.divided_by(4))
        && ack.earliest_departure - wait.rtt_to_sender >= wait.last.at;
    // Near the sender: its host stalled between the two, as virtual machines do; the same pieces
    // were held before.
    let near = wait.near_sender();
    let stood_still =
        is_usual(wait) && held_back && wait.model.nagle_held > 0 && late <= wait.gap.divided_by(LATE_SHARE);
    // Or the host is slow: the rest of a write leaves shortly after, which pacing would not do.
    let slow = wait.last.queue == SendQueue::More && late <= wait.gap.divided_by(LATE_SHARE).min(SLOW_HOST);
    (if near { stood_still || slow } else { held_back && soon || rest || usual })
        && wait.model.nagle_ignored == 0
        && wait.may_wait_for(ack)
        && ack.earliest_departure > wait.last.at
        && late.is_positive()
        && !came_by_itself(wait, late)
}

/// Whether the segment's time stamp shows that it left `late` after the acknowledgement, at the
/// application's usual pause after the piece before. Without such a pause, the host was slow.
fn came_by_itself(wait: &Wait<'_>, late: Duration) -> bool {
    let pause = wait.model.pause(wait.index, wait.last.len);
    pause.is_some_and(|pause| pause >= wait.gap - late.divided_by(2))
        && wait.flow.left_late(wait.last, wait.segment, late)
}

/// Whether the same two pieces of a message were seen before, with the second one held.
fn is_usual(wait: &Wait<'_>) -> bool {
    wait.model.held_shape == Some((wait.last.len, wait.segment.payload_len))
}

/// Whether a small segment left soon after a long-delayed acknowledgement, but not immediately: a
/// host that was busy just then would be as late, and later if it is known to hold such pieces.
pub(crate) fn may_have_held(wait: &Wait<'_>) -> bool {
    let model = wait.model;
    // An imprecise clock may show what was released as if it had left before the acknowledgement came.
    let usual = model.nagle_held > 0 && model.nagle_ignored <= model.nagle_held;
    let share = if usual { LATE_SHARE } else { BUSY_SHARE };
    let soon = |ack: &ClockingAck| {
        let late = wait.segment.at - ack.earliest_departure;
        let held_back = wait.ack_delay(ack).is_some_and(|delay| delay >= HELD_BACK_MIN);
        held_back
            && ack.earliest_departure > wait.last.at
            && late.is_positive()
            && late <= wait.gap.divided_by(share)
    };
    (model.nagle_ignored == 0 || usual)
        && !wait.is_full()
        && !wait.segment.flags.fin()
        && wait.flow.view.small_acked().is_some_and(|ack| soon(&ack))
}

/// Whether a small segment was held by the one before it, whose acknowledgement was sent by the
/// receiver's timer, although it follows that acknowledgement sooner than any round trip of this
/// connection so far, but no sooner than `least`, the least between these hosts. A first round trip
/// takes longer than later ones, so it only gives an upper bound for when an acknowledgement takes
/// effect.
#[cold]
#[inline(never)]
pub(crate) fn released_sooner(wait: &Wait<'_>, least: Option<Duration>) -> Option<Verdict> {
    let acked = wait.flow.small_acked_at()?;
    let late = wait.segment.at - acked.0;
    let at_once = late <= wait.gap.divided_by(BUSY_SHARE);
    let in_time = least.is_some_and(|least| least <= late && (least.is_positive() || at_once));
    let sure = if wait.last.len <= PREFIX_MAX { Confidence::Likely } else { Confidence::Possible };
    if in_time { held_by_timer(wait, acked, sure) } else { None }
}

/// The same behind as many bytes as those behind which another connection of this end `held` a segment, if it left soon after that acknowledgement: a
/// capture beside a radio does not show how far away its station is at a time.
#[cold]
#[inline(never)]
pub(crate) fn held_as_beside(wait: &Wait<'_>, held: Option<u32>) -> Option<Verdict> {
    let arrived =
        || wait.flow.view.small_acked().map(|ack| (ack.earliest_departure - wait.rtt_to_sender, ack.packet));
    let acked = wait.flow.small_acked_at().or_else(arrived)?;
    let late = wait.segment.at - acked.0;
    let soon = late.is_positive() && late <= wait.gap.divided_by(LATE_SHARE);
    if soon && wait.model.nagle_held == 0 && held == Some(wait.last.len) {
        held_by_timer(wait, acked, Confidence::Possible)
    } else {
        None
    }
}

/// A small segment behind a single one whose acknowledgement, which passed `acked_at`, was sent by the receiver's timer.
fn held_by_timer(
    wait: &Wait<'_>,
    (acked_at, packet): (Instant, u64),
    confidence: Confidence,
) -> Option<Verdict> {
    let held_back = acked_at - wait.last.at - wait.rtt_to_receiver;
    let by_timer = (DELAYED_ACK_MIN..=HOLDS_MAX).contains(&held_back);
    let small = !wait.is_full() && !wait.segment.flags.fin() && wait.last.flight == wait.last.len;
    if !(by_timer && small && wait.model.nagle_ignored == 0) {
        return None;
    }
    let detail = Detail {
        held_bytes: Some(wait.segment.payload_len),
        ack_delay: Some(held_back),
        flight_bytes: Some(u64::from(wait.last.flight)),
        ..Detail::default()
    };
    let charge = Charge::new(Cause::NagleDelayedAck, wait.flow.side, Duration::ZERO, confidence)
        .evidence(wait.last.packet, wait.segment.packet)
        .released_by(packet)
        .detail(detail);
    Some(Verdict { split: Split::of(wait.gap).rest(charge), trigger: Trigger::Packet(packet) })
}

fn released_by(wait: &Wait<'_>) -> Option<(ClockingAck, Option<Form>)> {
    // Behind a small segment that no acknowledgement covers yet, one of an earlier segment releases nothing.
    let small_acked = wait.flow.view.small_acked().filter(|_| !small_outstanding(wait.flow));
    if let Some(ack) = small_acked.filter(|ack| wait.follows(ack) || follows_late(wait, ack)) {
        return Some((ack, None));
    }
    // RFC 896: a full segment was outstanding, and all of it had to be acknowledged first. The
    // segment before was pushed, so no window stopped the sender; a single delayed acknowledgement
    // was all that passed.
    let ack = wait.flow.view.all_acked().filter(|ack| wait.follows(ack))?;
    let held_back = wait.ack_delay(&ack).is_some_and(|delay| delay >= HELD_BACK_MIN);
    (held_back && ack.flight <= 2 * wait.mss).then_some((ack, Some(Form::Rfc896)))
}

/// Whether a small segment leaves while a small one is outstanding.
pub(crate) fn is_off(flow: &Flow, segment: &Segment, class: SegmentClass, mss: u32) -> bool {
    would_be_held(flow, segment, class, mss) && small_outstanding(flow)
}

/// Whether a sender shows that it ignores Nagle: by `is_off`, or, far from it, because the
/// acknowledgement of the small segment passed less than half its travel time ago.
pub(crate) fn is_ignored(pair: &Pair<'_>, from: usize, segment: &Segment, class: SegmentClass) -> bool {
    let flow = &pair.flows[from];
    let known = pair.shown[from] && !pair.bound[from];
    let under_way =
        |(passed, _): (Instant, u64)| known && segment.at - passed < pair.tap_rtt[from].divided_by(2);
    would_be_held(flow, segment, class, pair.sizes[from])
        && (small_outstanding(flow) || flow.small_acked_at().is_some_and(under_way))
}

/// Whether Nagle would hold the segment if a small one were outstanding.
fn would_be_held(flow: &Flow, segment: &Segment, class: SegmentClass, mss: u32) -> bool {
    // Without a SYN, a longer one is several segments as its host's offload has them: full ones, and an end
    // that leaves with them where only short writes are held (RFC 896).
    class == SegmentClass::New
        && segment.payload_len < mss
        && !segment.flags.fin()
        && flow.last_data.is_some()
        // If no SYN gives the MSS, a segment with more after it may be full.
        && (flow.mss_announced.is_some() || segment.flags.psh())
        && flow.shows_nodelay(segment.payload_len)
}

/// Whether a sender known to obey Nagle sent a small segment while one was outstanding: the
/// acknowledgement that it waited for is missing from the capture.
pub(crate) fn release_unseen(wait: &Wait<'_>) -> bool {
    wait.model.nagle_held > wait.model.nagle_ignored && is_off(wait.flow, wait.segment, wait.class, wait.mss)
}

/// Whether a small segment leaves while one is outstanding, of a sender never seen to do so: Nagle
/// is off, something forced the segment out, or an acknowledgement is missing from the capture.
pub(crate) fn would_hold(wait: &Wait<'_>) -> bool {
    wait.model.nagle_ignored == 0 && is_off(wait.flow, wait.segment, wait.class, wait.mss)
}

/// Judged by what passed the capture, not by what reached the sender: no acknowledgement existed at
/// all.
fn small_outstanding(flow: &Flow) -> bool {
    flow.snd_sml.is_some_and(|end| flow.highest_ack.is_none_or(|acked| end.after(acked)))
}

/// Learns from a small segment whether its sender obeys Nagle, and how long its application pauses.
pub(crate) fn observe(wait: &Wait<'_>, verdict: &Verdict) -> NagleObservation {
    let mut observation = NagleObservation::default();
    if wait.class != SegmentClass::New || wait.last.len == 0 {
        return observation;
    }
    let flow = wait.flow;
    let billed = |cause: Cause| verdict.split.has(cause.bit());
    // Counted even while the sender seems to ignore Nagle: a missing acknowledgement can have made
    // it seem so.
    let follows_held_back = || {
        let ack = flow.view.small_acked().filter(|ack| wait.follows(ack));
        ack.and_then(|ack| wait.ack_delay(&ack)).is_some_and(|delay| delay >= HELD_BACK_MIN)
    };
    let off = is_off(flow, wait.segment, wait.class, wait.mss);
    let may_be_held = !wait.is_full() && !off && wait.gap >= BURST_GAP;
    observation.held = billed(Cause::NagleDelayedAck) || (may_be_held && follows_held_back());
    if observation.held && !billed(Cause::SenderThink) {
        let ack = flow.view.small_acked().filter(|ack| wait.follows(ack));
        let delay = ack.and_then(|ack| wait.ack_delay(&ack));
        observation.released =
            ack.zip(delay).map(|(ack, delay)| (delay, wait.segment.at - ack.earliest_departure));
    }
    if observation.held || billed(Cause::Nagle) {
        observation.shape = Some((wait.last.len, wait.segment.payload_len));
    }
    if wait.last.queue == SendQueue::More {
        return observation;
    }
    // Whatever held the segment, the application did not pause longer than this.
    if !observation.held && wait.gap < PAUSE_MIN && !flow.is_full(wait.last.len, wait.mss) {
        observation.pause = Some(wait.gap);
    }
    if observation.shape.is_some() || observation.pause.is_some() {
        return observation;
    }
    // Nothing held it: the small segment before it had been acknowledged at once. On a path that
    // delays packets, both may have been late.
    let varies = wait.rtt_to_sender.divided_by(2).min(PAUSE_LATE_MAX);
    let late_max = if wait.near_sender() { Duration::ZERO } else { flow.queued_peak.max(varies) };
    let acked_at_once = flow.view.small_acked().is_some_and(|ack| {
        ack.earliest_departure > wait.last.at
            && ack.earliest_departure + late_max < wait.segment.at
            && !wait.follows(&ack)
            && wait.ack_delay(&ack).is_some_and(|delay| delay < HELD_BACK_MIN)
    });
    observation.pause = acked_at_once.then_some(wait.gap);
    observation
}
