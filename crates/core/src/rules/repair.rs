//! Was the sender waiting to repair a loss, and how: fast, or by its timer?
//!
//! Proof: near the sender the original and its copy; near the receiver the gap in the sequence space, or at the end of a
//! message the gap in the sender's IP identification.
//! Refuted by: a copy that comes sooner than any signal can reach its sender (it was overtaken), or by its IP identification
//! left before what overtook it.
//! Source: RFC 6675 and RFC 8985 (fast, and the probe two round trips behind the last segment, 7); RFC 6298;
//! tcp_schedule_loss_probe and tcp_send_loss_probe, net/ipv4/tcp_output.c, tcp_rearm_rto, net/ipv4/tcp_input.c, Linux 6.12.
//! Seen from: both ends; near the receiver of a lost tail only timers and missing packets tell, and it is likely.
//!
//! The timer takes RTO, 200 ms and a round trip at least on Linux; with one segment in flight the probe waits as long.

use tcpwhy_wire::{Duration, Instant, Segment};

use super::verdict::{Verdict, burst};
use super::wait::Wait;
use super::{black_hole, link_share, nagle, receiver_think, used_up};
use crate::bill::charge::Charge;
use crate::bill::split::Split;
use crate::flow::direction::Flow;
use crate::flow::segment_class::{SegmentClass, SendQueue};
use crate::words::cause::Cause;
use crate::words::form::Form;
use crate::words::limits::{
    BESIDE, BURST_GAP, DELAYED_ACK_MAX, HELD_BACK_MIN, HOST_VARIATION, NEAR_MAX, ROUND_TRIP_PLAY, RTO_MIN,
    TIMER_TICK,
};
use crate::words::report::{Confidence, Detail, Trigger};

/// By one part in so many the estimate of the smoothed round trip is off. Source: none written down; it moves by an eighth with each
/// sample (RFC 6298, 2.3).
const SRTT_PLAY: i64 = 8;

/// The floor of 200 ms may be so much shorter. Source: none written down; a tick at HZ=100.
const FLOOR_PLAY: Duration = Duration::from_millis(10);

pub(crate) fn judge(wait: &Wait<'_>) -> Option<Verdict> {
    let confidence = match wait.class {
        SegmentClass::Retransmission { original_at } => surest_of_copy(wait, original_at),
        SegmentClass::OutOfOrderOrRepair { noticed_at } => {
            let sooner = came_too_soon(wait.segment, wait.class, wait.rtt_to_sender);
            if sooner || wait.flow.left_before(wait.segment, wait.mss) {
                return Some(overtaken(wait));
            }
            let soon = wait.segment.at - noticed_at < wait.rtt() - wait.rtt().divided_by(ROUND_TRIP_PLAY);
            surest_of_gap(wait.flow, wait.segment, wait.mss, soon)
        }
        SegmentClass::New if repeats(wait) => Confidence::Likely,
        // A reader that holds back acknowledgements is probed too: that is for `receiver_think`.
        SegmentClass::New if receiver_think::probes_reader(wait) => return None,
        // It probes; what it finds is no part of it (RFC 8985, 7.3).
        SegmentClass::New if is_probe(wait) || is_probe_from_afar(wait) => Confidence::Possible,
        SegmentClass::New if came_elsewhere(wait) => Confidence::Likely,
        // A lost tail leaves no gap in the sequence space. Near its sender it would have been seen.
        SegmentClass::New if !wait.near_sender() && wait.flow.missed_since_data > 0 && timed(wait) => {
            surest_of_numbers(wait)
        }
        SegmentClass::New if wait.model.copies_due > 0 && continues(wait) && may_repair(wait) => {
            Confidence::Likely
        }
        _ => return None,
    };
    let (cause, form) = match kind(wait) {
        // It took what was queued: nothing was sent twice (tcp_send_loss_probe, net/ipv4/tcp_output.c).
        (cause, Form::TailProbe) if wait.class == SegmentClass::New && wait.near_sender() => {
            (cause, Form::NewDataProbe)
        }
        (Cause::Rto, _) if black_hole::is_repaired(wait) => (Cause::Rto, black_hole::FORM),
        kind => kind,
    };
    // A probe may find that nothing was lost, and the D-SACK that says so is not in the capture.
    let confidence =
        if form == Form::TailProbe && wait.flow.options_cut { Confidence::Possible } else { confidence };
    // Of one that takes new bytes with it none says so of all.
    let confidence = if form == Form::NewDataProbe { Confidence::Possible } else { confidence };
    // Nor does every host say so (RFC 2883): Linux does, and has time stamps.
    let silent = form == Form::TailProbe && !wait.flow.timestamps;
    let confidence = if silent { confidence.min(Confidence::Likely) } else { confidence };
    let detail = Detail {
        retransmits: (form != Form::NewDataProbe).then_some(1),
        timer: (cause == Cause::Rto).then(|| wait.flow.rto.rto()),
        form: Some(form),
        ..Detail::default()
    };
    let charge = Charge::new(cause, wait.flow.side, Duration::ZERO, confidence)
        .evidence(wait.last.packet, wait.segment.packet)
        .detail(detail);
    let trigger = if cause == Cause::Rto { Trigger::Timer } else { burst(wait.last, wait.segment.at) };
    let mut split = link_share::split(wait);
    if let Some(quiet) = before_loss(wait) {
        let own = Charge::new(Cause::SenderThink, wait.flow.side, quiet, Confidence::Possible);
        split.take(own.evidence(wait.last.packet, wait.segment.packet));
    }
    // Of what is left for the repair, it takes two round trips and more in any case.
    if let Some(held) = used_up::before_lost(wait).filter(|_| wait.class == SegmentClass::New)
        && split.left() - held.ns >= wait.rtt()
    {
        split.take(held);
    }
    Some(Verdict { split: split.rest(charge), trigger })
}

/// How sure it is that a first copy was lost that has passed the capture: the receiver's acknowledgements said so before the second one left,
/// or its answer to that would say otherwise, by its time stamp (RFC 3522) or a D-SACK (RFC 2883). Where neither can be seen, a timer may have
/// been too short, or an acknowledgement lost; what the capture cut off may have said so. A lone segment's acknowledgement may be held back for
/// longer than the timer ran: probes wait for it (WCDelAckT, RFC 8985, 7.2), and who does not cannot know.
fn surest_of_copy(wait: &Wait<'_>, original_at: Instant) -> Confidence {
    let flow = wait.flow;
    let told = flow.view.loss_signal.get().is_some_and(|at| at > original_at);
    let alone = flow.flight() <= wait.segment.payload_len;
    let soon = alone && wait.segment.at - original_at < DELAYED_ACK_MAX + wait.rtt() - FLOOR_PLAY;
    if told || flow.timestamps && !flow.options_cut {
        Confidence::Certain
    } else if flow.options_cut || soon {
        Confidence::Possible
    } else {
        Confidence::Likely
    }
}

/// How sure it is that what closes a gap is a copy of what was lost: its sender's clock or numbers say that it left behind what showed the gap.
/// Where they do not, it may have been overtaken, which within a round trip is nothing rare (RFC 8985, 4).
fn surest_of_gap(flow: &Flow, segment: &Segment, mss: u32, is_soon: bool) -> Confidence {
    if flow.left_behind(segment, mss) {
        Confidence::Certain
    } else if is_soon {
        Confidence::Possible
    } else {
        Confidence::Likely
    }
}

/// How sure it is that the packets that are missing by their numbers were copies of a lost tail. Of one small segment no more are missing than
/// timers ran: others went elsewhere, and the host counts all that it sends in one row. Behind a hole they are as well what the capture lacks.
fn surest_of_numbers(wait: &Wait<'_>) -> Confidence {
    let timer = wait.flow.rto.rto().max(RTO_MIN + wait.rtt());
    let enough = |&copies: &u16| timer_slack(timers_of(timer, copies)) >= wait.gap;
    let copies = (1..COPIES_MAX).find(enough).unwrap_or(COPIES_MAX);
    let small = wait.last.queue == SendQueue::Emptied && wait.segment.payload_len < wait.mss / 2;
    let too_many = wait.flow.missed_since_data > copies;
    let first_copies = wait.flow.snd_nxt.is_some_and(|next| wait.segment.seq.after(next));
    let others = small && wait.last.len < wait.mss / 2 && too_many;
    if first_copies || others { Confidence::Possible } else { Confidence::Likely }
}

/// Beside the receiver: how sure it can be that the path lost what passed as the next one due, and what nothing answered. Its receiver had held
/// back the acknowledgement (RFC 1122, 4.2.3.2), dropped it, or was gone.
pub(crate) fn surest_of_arrived(wait: &Wait<'_>) -> Confidence {
    let copied = matches!(wait.class, SegmentClass::Retransmission { .. });
    let due = wait.flow.highest_ack == Some(wait.segment.seq);
    let beside = wait.rtt_to_receiver.times(BESIDE) <= wait.rtt() || wait.rtt_to_receiver < NEAR_MAX;
    if !copied || !due || wait.near_sender() || !beside {
        Confidence::Certain
    } else if wait.gap < DELAYED_ACK_MAX {
        Confidence::Possible
    } else {
        Confidence::Likely
    }
}

/// Whether a segment closes a gap sooner than any signal can have reached its sender, or than two queues of an interface are apart: it was
/// overtaken on its way, and is no copy of what was lost.
pub(super) fn came_too_soon(segment: &Segment, class: SegmentClass, rtt_to_sender: Duration) -> bool {
    let SegmentClass::OutOfOrderOrRepair { noticed_at } = class else { return false };
    let soonest = rtt_to_sender - rtt_to_sender.divided_by(ROUND_TRIP_PLAY);
    segment.at - noticed_at < soonest.max(HOST_VARIATION)
}

/// How long its sender had nothing under way before it sent what was lost: a packet without data that carries the next sequence
/// number says so, and that no timers in a row take so long as until a packet beyond the hole.
fn before_loss(wait: &Wait<'_>) -> Option<Duration> {
    let SegmentClass::OutOfOrderOrRepair { noticed_at } = wait.class else { return None };
    let quiet = wait.flow.nothing_out_at.min(noticed_at) - wait.last.at;
    let longest = timer_slack(timers_of(wait.flow.rto.rto().max(RTO_MIN + wait.rtt()), COPIES_MAX));
    let noticed = noticed_at - wait.last.at;
    let quiet = if noticed > longest { noticed } else { quiet };
    (quiet > HELD_BACK_MIN).then_some(quiet)
}

/// Near the sender: whether the segment begins with bytes that it has sent before, and goes on with others that may have been lost before
/// the capture: small segments are sent again as one (tcp_retrans_try_collapse, net/ipv4/tcp_output.c).
fn repeats(wait: &Wait<'_>) -> bool {
    let flow = wait.flow;
    let sent = flow.snd_nxt.is_some_and(|next| wait.segment.seq.before(next));
    let unacked = flow.highest_ack.is_some_and(|acked| wait.segment.seq.at_or_after(acked));
    sent && unacked && wait.near_sender() && wait.gap >= RTO_MIN
}

/// Whether the peer acknowledged late what the capture has not, behind a hole: it came, and not here.
fn came_elsewhere(wait: &Wait<'_>) -> bool {
    let acked_at = wait.flow.unusual.unseen_acked_at;
    wait.gap >= RTO_MIN + wait.rtt()
        && acked_at > wait.last.at
        && acked_at - wait.last.at >= wait.gap.divided_by(2)
}

/// Whether what was lost may still be sent again one by one, as acknowledgements and timers let it: nothing has shown since that all
/// had arrived, and no timers in a row take so long.
fn may_repair(wait: &Wait<'_>) -> bool {
    let longest = timers_of(wait.flow.rto.rto().max(RTO_MIN + wait.rtt()), COPIES_MAX);
    wait.gap >= BURST_GAP && wait.gap <= timer_slack(longest) && wait.flow.nothing_out_at <= wait.last.at
}

/// Which repair it was, by how long it took.
fn kind(wait: &Wait<'_>) -> (Cause, Form) {
    let srtt = wait.flow.rto.srtt().unwrap_or(wait.rtt()).max(wait.rtt());
    // The estimate of the timer may be above the kernel's; its floor of 200 ms above the round trip is not.
    let timer = RTO_MIN + srtt - FLOOR_PLAY - srtt.divided_by(SRTT_PLAY);
    let missing_for = missing_since(wait.class).map_or(Duration::ZERO, |since| wait.segment.at - since);
    if wait.gap >= timer || (missing_for >= timer && by_itself(wait)) {
        return (Cause::Rto, Form::Timeout);
    }
    let signalled = wait.flow.view.loss_signal.get().is_some_and(|at| at + wait.tolerance() >= wait.last.at);
    (
        Cause::Loss,
        if signalled || matches!(wait.class, SegmentClass::OutOfOrderOrRepair { .. }) {
            Form::Fast
        } else {
            Form::TailProbe
        },
    )
}

/// The probe's own slack of 2 ms (tcp_schedule_loss_probe), or two ticks, and the wheel's rounding.
const PROBE_SLACK: Duration = Duration::from_millis(16);

/// A probe is late by one part in so many of its timer, which the kernel's wheel rounds up (kernel/time/timer.c), and by ticks.
const PROBE_SHARE: i64 = 8;

/// A tail loss probe takes new data where there is some, whatever held that: a window, Nagle, a cork (tcp_send_loss_probe,
/// net/ipv4/tcp_output.c). It leaves two round trips behind the last segment or acknowledgement, 200 ms later where one packet
/// is in flight, and no later than the timer would (tcp_schedule_loss_probe).
pub(super) fn is_probe(wait: &Wait<'_>) -> bool {
    let flow = wait.flow;
    if !wait.near_sender() || flow.flight() == 0 || wait.segment.payload_len > wait.mss {
        return false;
    }
    let srtt = flow.rto.srtt().unwrap_or(wait.rtt()).max(wait.rtt());
    let lone = flow.sent.len() == 1 && flow.flight() <= wait.mss;
    let (least, most) = if lone {
        (RTO_MIN + srtt - FLOOR_PLAY, (srtt.times(2) + RTO_MIN).min(flow.rto.rto()))
    } else {
        (srtt.times(2), srtt.times(2))
    };
    // What a window or a cork holds shows in the segment before it; what Nagle holds was written later.
    let queued = wait.last.queue != SendQueue::Emptied && flow.view.unanswered_since.is_none();
    let advanced =
        flow.view.clocking_ack().map_or(wait.last.at, |ack| ack.earliest_departure.max(wait.last.at));
    let since = if queued { wait.last.at } else { advanced };
    let waited = wait.segment.at - since;
    waited >= (least - srtt.divided_by(SRTT_PLAY)).max(HELD_BACK_MIN)
        && waited <= most + most.divided_by(PROBE_SHARE) + TIMER_TICK.times(3)
        && (queued || nagle::would_hold(wait))
}

/// Far from the sender the acknowledgement that it misses was seen, and a probe with new data is one segment that nothing let
/// go, two round trips behind a segment with more of its write behind it. Segments that are all as far apart come out of a link.
fn is_probe_from_afar(wait: &Wait<'_>) -> bool {
    let flow = wait.flow;
    let srtt = flow.rto.srtt().unwrap_or(wait.rtt()).max(wait.rtt());
    let timer = srtt.times(2);
    let (least, most) = (timer, timer + timer.divided_by(PROBE_SHARE) + TIMER_TICK.times(3));
    let queued = wait.last.queue == SendQueue::More && flow.flight() == 0 && flow.missed_since_data == 0;
    let opened = flow.view.window_opened().is_some_and(|opened| opened.earliest_departure > wait.last.at);
    !wait.near_sender()
        && queued
        && !opened
        && wait.last.spacing.times(4) <= wait.gap
        && wait.is_full()
        && wait.segment.payload_len <= wait.mss
        && wait.gap >= (least - srtt.divided_by(SRTT_PLAY)).max(HELD_BACK_MIN)
        && wait.gap <= most
        && !was_let_go(wait)
}

/// How many of the packets behind this one are second copies. Near the receiver of a tail that was lost nothing shows its
/// first copies but their number: after a timeout all of them go out again, in slow start (RFC 5681, 3.1;
/// tcp_enter_loss, net/ipv4/tcp_input.c).
pub(super) fn copies_due(wait: &Wait<'_>, verdict: &Verdict) -> u16 {
    let repaired = verdict.split.has(Cause::Rto.bit()) || verdict.split.has(Cause::Loss.bit());
    if !continues(wait) {
        return 0; // they are a hole now
    }
    let due = match wait.class {
        SegmentClass::New if repaired && wait.flow.missed_since_data > 0 && !wait.near_sender() => {
            wait.flow.missed_since_data
        }
        SegmentClass::New if wait.flow.nothing_out_at <= wait.last.at => wait.model.copies_due,
        SegmentClass::New => 0,
        _ => return wait.model.copies_due,
    };
    due.saturating_sub(wait.segment.payload_len.div_ceil(wait.mss.max(1)) as u16)
}

/// Whether no hole is left before the segment.
fn continues(wait: &Wait<'_>) -> bool {
    wait.class != SegmentClass::New
        || wait.flow.snd_nxt.is_none_or(|next| wait.segment.seq.at_or_before(next))
}

/// Since when the bytes of a segment were on their way or missing.
fn missing_since(class: SegmentClass) -> Option<Instant> {
    match class {
        SegmentClass::Retransmission { original_at } => Some(original_at),
        SegmentClass::OutOfOrderOrRepair { noticed_at } => Some(noticed_at),
        _ => None,
    }
}

/// Whether no acknowledgement let the segment leave: other segments had left since the one that is sent again, and the
/// timer that began with that one ran on (tcp_rearm_rto, net/ipv4/tcp_input.c).
fn by_itself(wait: &Wait<'_>) -> bool {
    let view = &wait.flow.view;
    let latest = view.clocking_ack().map(|ack| ack.earliest_departure).max(view.loss_signal.get());
    wait.gap >= HELD_BACK_MIN.max(wait.rtt_to_sender)
        && latest.is_none_or(|at| wait.segment.at - at > wait.tolerance())
}

/// When the timer began that ended with this segment. A tail loss probe begins it anew (tcp_send_loss_probe,
/// net/ipv4/tcp_output.c), and had repaired something if it arrived. One that was lost itself had not: all the while the
/// sender waited for its timer, and far from it nothing else is seen.
pub(crate) fn timer_from(
    class: SegmentClass,
    split: &Split,
    flow: &Flow,
    probed_at: Option<Instant>,
) -> Option<Instant> {
    let since = missing_since(class).filter(|_| split.has(Cause::Rto.bit()))?;
    let arrived = |probe: &Instant| flow.view.loss_signal.get().is_some_and(|signalled| signalled > *probe);
    Some(probed_at.filter(arrived).map_or(since, |probe| probe.max(since)))
}

/// The part of the wait for a reply's first byte that went into its repair: the first copy was lost before the capture
/// saw it. A later segment's sequence number or the sender's IP identification shows that there was one.
pub(crate) fn first_reply(
    flow: &Flow,
    client: &Flow,
    (class, segment, mss): (SegmentClass, &Segment, u32),
    wait: Duration,
    rtt_to_server: Duration,
    rtt: Duration,
) -> Option<Charge> {
    // The tail of a flight that was lost as a whole came again by a probe (RFC 8985, 7.3): all of it had left a timer before.
    let behind = if class == SegmentClass::New && wait >= RTO_MIN {
        flow.came_again_behind(segment, mss)
    } else {
        None
    };
    if class == SegmentClass::New && flow.missed_since_data == 0 && behind.is_none() {
        return None;
    }
    let timer = flow.rto.rto().max(RTO_MIN + rtt);
    // As long as the timers of several copies in a row is that many, of what the sequence space or the count of packets
    // shows to be missing.
    let off = |copies| wait - timers_of(timer, copies);
    let doubled = |&copies: &u16| off(copies).max(-off(copies)) <= timer_play(timer);
    let missed = match behind {
        Some(_) => 1,
        None if class == SegmentClass::New => flow.missed_since_data,
        None => COPIES_MAX,
    };
    let repeated = (2..=missed.min(COPIES_MAX)).find(doubled);
    // It had been sent before it was noticed to be missing: as many timers ran as take that long.
    let missing_for = missing_since(class).map_or(Duration::ZERO, |since| segment.at - since);
    let enough = |&copies: &u16| timers_of(timer, copies) + timer_play(timer) >= missing_for;
    let least = (1..COPIES_MAX).find(enough).unwrap_or(COPIES_MAX);
    let timers = timers_of(timer, repeated.unwrap_or(least));
    // A server that took its time before it sent the first copy took hardly longer than the repair: what is missing after
    // a long silence need not have been a reply.
    // One that acknowledges a request before it answers may have sent no more than that.
    // With nothing left to acknowledge it was no acknowledgement.
    let acknowledged = client.is_acked_bare() && client.newly_acked > 0;
    let short = wait <= timer_slack(timers).times(2) && !acknowledged;
    let confidence = match class {
        SegmentClass::OutOfOrderOrRepair { .. } if repeated.is_some() => Confidence::Likely,
        SegmentClass::OutOfOrderOrRepair { .. } => surest_of_gap(flow, segment, mss, false),
        SegmentClass::New if rtt_to_server > rtt - rtt_to_server && behind.is_some() && short => {
            // The numbers of a host that sends elsewhere as well fit a hole of one segment by chance.
            if behind > Some(1) { Confidence::Likely } else { Confidence::Possible }
        }
        SegmentClass::New
            if rtt_to_server > rtt - rtt_to_server
                && flow.missed_since_data > 0
                && wait >= RTO_MIN
                && short =>
        {
            // The few numbers of a short conversation may be the host's, which has sent elsewhere meanwhile.
            if client.is_acked_bare() && !flow.numbers_its_packets() {
                Confidence::Possible
            } else {
                Confidence::Likely
            }
        }
        _ => return None,
    };
    // The server may have thought before it sent the first copy; its timers' length of the wait is the repair's.
    let ns = if wait < timers + timer_play(timers) { wait } else { timers };
    let (cause, form) = if wait >= RTO_MIN { (Cause::Rto, Form::Timeout) } else { (Cause::Loss, Form::Fast) };
    let detail = Detail { timer: Some(timer), retransmits: Some(1), form: Some(form), ..Detail::default() };
    Some(Charge::new(cause, flow.side, ns, confidence).detail(detail))
}

/// Copies of one segment that are taken to be lost in a row, at most: with each further one the estimate doubles.
pub(crate) const COPIES_MAX: u16 = 4;

/// How long the timers of so many lost copies of one segment ran: the first is the tail loss probe's, as long as the one
/// behind it, and each further one is twice as long (tcp_schedule_loss_probe, net/ipv4/tcp_output.c; RFC 6298, 5.5).
pub(crate) fn timers_of(timer: Duration, copies: u16) -> Duration {
    timer.times(1 << (copies.clamp(1, COPIES_MAX) - 1))
}

/// No repair is quicker than this. Source: none written down.
const PROBE_MIN: Duration = Duration::from_millis(1);

/// How far the estimate of a timer is off.
fn timer_play(timer: Duration) -> Duration {
    timer.divided_by(SRTT_PLAY) + TIMER_TICK.times(2)
}

/// Whether a wait is as long as a repair takes: a tail loss probe's time or the timer's, where nothing was queued and any
/// other time may be the application's own.
fn timed(wait: &Wait<'_>) -> bool {
    if was_let_go(wait) {
        return false;
    }
    let rtt = wait.rtt();
    let probe = rtt.max(PROBE_MIN) + rtt.divided_by(2);
    let longest = timer_slack(wait.flow.rto.rto().max(RTO_MIN + rtt));
    // Lost twice, two timers ran, the second one twice as long; of a sender that has more, as many copies as numbers are missing.
    let has_more = wait.last.queue == SendQueue::More;
    let copies = if has_more { wait.flow.missed_since_data.clamp(2, COPIES_MAX) } else { 2 };
    if wait.gap <= probe || wait.gap > longest.times((1 << copies) - 1) {
        return false;
    }
    if wait.last.queue != SendQueue::Emptied || wait.gap <= rtt.times(3) + PROBE_SLACK {
        return true; // a sender that has more does not pause by itself
    }
    let srtt = wait.flow.rto.srtt().unwrap_or(rtt).max(rtt);
    let shortest = RTO_MIN + srtt - srtt.divided_by(SRTT_PLAY) - FLOOR_PLAY;
    // A packet that is missing may be an acknowledgement as well.
    let twice = wait.flow.missed_since_data > 1 && wait.gap >= shortest.times(3);
    twice || (shortest..=longest).contains(&wait.gap)
}

/// Whether an acknowledgement let the segment leave, and no timer.
fn was_let_go(wait: &Wait<'_>) -> bool {
    let view = &wait.flow.view;
    [view.window_opened(), view.clocking_ack()].iter().flatten().any(|ack| wait.follows(ack))
}

/// A timer is late by one part in so many: the wheel rounds up by an eighth (kernel/time/timer.c), and the estimate lags the kernel's.
const TIMER_SHARE: i64 = 4;
/// ... and by a host that is busy. Source: none written down.
const TIMER_SLACK: Duration = Duration::from_millis(30);

/// A timer as late as it may be: the estimate lags the kernel's, and the wheel is coarse (kernel/time/timer.c).
fn timer_slack(timer: Duration) -> Duration {
    timer + timer.divided_by(TIMER_SHARE) + TIMER_SLACK
}

fn overtaken(wait: &Wait<'_>) -> Verdict {
    let detail = Detail { form: Some(Form::Reordered), ..Detail::default() };
    let charge = Charge::new(Cause::Queueing, wait.flow.side, Duration::ZERO, Confidence::Likely)
        .evidence(wait.last.packet, wait.segment.packet)
        .detail(detail);
    Verdict { split: Split::of(wait.gap).rest(charge), trigger: Trigger::Burst }
}
