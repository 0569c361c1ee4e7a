//! Was the sender waiting to repair a loss, and how: by fast retransmit, or by its timer?
//!
//! Proof: near the sender the original and its retransmission; near the receiver the gap in the sequence
//! space, or at the end of a message the gap in the sender's IP identification.
//! Refuted by: a segment that fills the gap before any signal can have reached its sender (it was
//! reordered), or whose IP identification shows that it left before what overtook it.
//! Source: RFC 6675 and RFC 8985 (fast, and the probe two round trips after the last segment, 7); RFC
//! 6298; tcp_schedule_loss_probe and tcp_send_loss_probe, net/ipv4/tcp_output.c, tcp_rearm_rto,
//! net/ipv4/tcp_input.c, Linux 6.12.
//! Seen from: both ends; near the receiver of a lost tail, only timers and missing packets tell, and it
//! is likely.
//!
//! On Linux the RTO is at least 200 ms plus a round trip; with one segment in flight the probe waits as long.

use tcpwhy_wire::{Duration, Instant, Segment};

use super::verdict::{Verdict, burst};
use super::wait::Wait;
use super::{black_hole, link_share, nagle, next_repair, receiver_think, think, used_up};
use crate::bill::charge::Charge;
use crate::bill::split::Split;
use crate::flow::direction::Flow;
use crate::flow::segment_class::{SegmentClass, SendQueue};
use crate::words::cause::Cause;
use crate::words::form::Form;
use crate::words::limits::{
    BESIDE, BURST_GAP, COPIES_MAX, DELAYED_ACK_MAX, HELD_BACK_MIN, HOST_VARIATION, NEAR_MAX, PROBE_SHARE,
    ROUND_TRIP_PLAY, RTO_MIN, TIMER_TICK,
};
use crate::words::report::{Confidence, Detail, Trigger};

/// The smoothed round trip is off by up to one part in this many. Source: none written down; it moves by
/// an eighth with each sample (RFC 6298, 2.3).
const SRTT_PLAY: i64 = 8;

/// The floor of 200 ms may be this much shorter. Source: none written down; a tick at HZ=100.
const FLOOR_PLAY: Duration = Duration::from_millis(10);

pub(crate) fn judge(wait: &Wait<'_>) -> Option<Verdict> {
    let confidence = match wait.class {
        SegmentClass::Retransmission { original_at } => surest_of_copy(wait, original_at),
        SegmentClass::OutOfOrderOrRepair { noticed_at } => {
            let sooner = came_too_soon(wait.segment, wait.class, wait.rtt_to_sender);
            if sooner || wait.flow.left_before(wait.segment, wait.mss) {
                return Some(overtaken(wait, noticed_at));
            }
            let soon = wait.segment.at - noticed_at < wait.rtt() - wait.rtt().divided_by(ROUND_TRIP_PLAY);
            surest_of_gap(wait.flow, wait.segment, wait.mss, soon).min(next_repair::surest(wait))
        }
        SegmentClass::New if repeats(wait) => Confidence::Likely,
        // A reader that delays acknowledgements is probed too: `receiver_think` handles that.
        SegmentClass::New if receiver_think::probes_reader(wait) => return None,
        // The probe itself: what it triggers is not part of it (RFC 8985, 7.3).
        SegmentClass::New if is_probe(wait) || is_probe_from_afar(wait) => Confidence::Possible,
        SegmentClass::New if came_elsewhere(wait) => Confidence::Likely,
        // A lost tail leaves no gap in the sequence space. Near its sender it would have been captured.
        SegmentClass::New if !wait.near_sender() && wait.flow.missed_since_data > 0 && timed(wait) => {
            surest_of_numbers(wait).min(next_repair::surest_of_silence(wait, kind(wait).1))
        }
        SegmentClass::New if wait.model.copies_due > 0 && continues(wait) && may_repair(wait) => {
            Confidence::Likely
        }
        SegmentClass::New if wait.flow.missed_since_data > 0 || wait.flow.suspects_missing() => {
            next_repair::surest_of_data(wait, |timer, copies| timer_slack(timers_of(timer, copies)))?
        }
        _ => return None,
    };
    let (cause, form) = match kind(wait) {
        // The probe took queued data: nothing was retransmitted (tcp_send_loss_probe,
        // net/ipv4/tcp_output.c).
        (cause, Form::TailProbe) if wait.class == SegmentClass::New && wait.near_sender() => {
            (cause, Form::NewDataProbe)
        }
        (Cause::Rto, _) if black_hole::is_repaired(wait) => (Cause::Rto, black_hole::FORM),
        kind => kind,
    };
    let refused = form == Form::TailProbe && black_hole::is_in_pieces(wait);
    let confidence = confidence.min(surest_of_form(wait, form, refused));
    let detail = Detail {
        retransmits: (form != Form::NewDataProbe).then_some(1),
        timer: (cause == Cause::Rto).then(|| wait.flow.rto.rto()),
        form: (!refused).then_some(form),
        ..Detail::default()
    };
    let charge = Charge::new(cause, wait.flow.side, Duration::ZERO, confidence)
        .evidence(wait.last.packet, wait.segment.packet)
        .detail(detail);
    let trigger = if cause == Cause::Rto { Trigger::Timer } else { burst(wait.last, wait.segment.at) };
    let mut split = link_share::split(wait);
    for before in [before_loss(wait), next_repair::acknowledged_late(wait)].into_iter().flatten() {
        split.take(before);
    }
    // The repair itself takes at least two round trips of what is left.
    if let Some(held) = used_up::before_lost(wait).filter(|_| wait.class == SegmentClass::New)
        && split.left() - held.ns >= wait.rtt()
    {
        split.take(held);
    }
    Some(Verdict { split: split.rest(charge), trigger })
}

/// How certain it can be that such a repair was needed, or that a router has `refused` what it repeats.
fn surest_of_form(wait: &Wait<'_>, form: Form, refused: bool) -> Confidence {
    let confidence = next_repair::surest_of_fast(wait, form);
    // A probe may find that nothing was lost, and the D-SACK that says so may be cut off.
    let confidence =
        if form == Form::TailProbe && wait.flow.options_cut { Confidence::Possible } else { confidence };
    // If the probe takes new data, no D-SACK can say so.
    let confidence = if form == Form::NewDataProbe { Confidence::Possible } else { confidence };
    // Not every host sends D-SACKs (RFC 2883): Linux does, and it has time stamps.
    let silent = refused || form == Form::TailProbe && !wait.flow.timestamps;
    if silent { confidence.min(Confidence::Likely) } else { confidence }
}

/// How certain it is that the first transmission, which passed the capture, was lost. The receiver's
/// acknowledgements said so before the retransmission, or its answer to that would say otherwise by time
/// stamp (RFC 3522) or D-SACK (RFC 2883). Where neither can be seen, the timer may have been too short,
/// an acknowledgement lost, or the answer cut off in the capture; within one host, what is captured has left the queue in which
/// netem drops. The acknowledgement of a single segment may be delayed for longer than the timer ran: probes allow for that
/// (WCDelAckT, RFC 8985, 7.2), other timers do not.
fn surest_of_copy(wait: &Wait<'_>, original_at: Instant) -> Confidence {
    let flow = wait.flow;
    let told = flow.view.loss_signal.get().is_some_and(|at| at > original_at);
    let alone = flow.flight() <= wait.segment.payload_len;
    let soon = alone && wait.segment.at - original_at < DELAYED_ACK_MAX + wait.rtt() - FLOOR_PLAY;
    if told || flow.timestamps && !flow.options_cut && !flow.on_one_host {
        Confidence::Certain
    } else if flow.options_cut || flow.on_one_host || soon {
        Confidence::Possible
    } else {
        Confidence::Likely
    }
}

/// How certain it is that a segment that fills a gap is a retransmission: the sender's clock or IP IDs
/// show that it left after what revealed the gap. Otherwise it may be reordered, which within a round
/// trip is common (RFC 8985, 4).
fn surest_of_gap(flow: &Flow, segment: &Segment, mss: u32, is_soon: bool) -> Confidence {
    if flow.left_behind(segment, mss) {
        Confidence::Certain
    } else if is_soon {
        Confidence::Possible
    } else {
        Confidence::Likely
    }
}

/// How certain it is that packets missing by their IP IDs were lost copies of a tail. A single small
/// segment has no more copies than timers ran; if more IDs are missing, the host uses one counter for
/// all destinations. After a hole, missing IDs may also be first transmissions.
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

/// Beside the receiver: how certain it can be that the path lost a segment that passed in order and was
/// not acknowledged. The receiver may have delayed the acknowledgement (RFC 1122, 4.2.3.2), dropped the
/// segment, or be gone.
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

/// Whether a segment fills a gap sooner than any signal can have reached its sender, or within the skew
/// of two queues of one interface: then it was reordered on its way and is not a retransmission.
pub(crate) fn came_too_soon(segment: &Segment, class: SegmentClass, rtt_to_sender: Duration) -> bool {
    let SegmentClass::OutOfOrderOrRepair { noticed_at } = class else { return false };
    let soonest = rtt_to_sender - rtt_to_sender.divided_by(ROUND_TRIP_PLAY);
    segment.at - noticed_at < soonest.max(HOST_VARIATION)
}

/// How long the sender had nothing under way before it sent what was lost: an empty packet with the next
/// sequence number shows it, or a packet beyond the hole that comes later than any series of timers.
fn before_loss(wait: &Wait<'_>) -> Option<Charge> {
    let SegmentClass::OutOfOrderOrRepair { noticed_at } = wait.class else { return None };
    let quiet = wait.flow.nothing_out_at.min(noticed_at) - wait.last.at;
    let longest = timer_slack(timers_of(wait.flow.rto.rto().max(RTO_MIN + wait.rtt()), COPIES_MAX));
    let noticed = noticed_at - wait.last.at;
    let quiet = if noticed > longest { noticed } else { quiet };
    let own = Charge::new(Cause::SenderThink, wait.flow.side, quiet, Confidence::Possible);
    (quiet > HELD_BACK_MIN).then(|| own.evidence(wait.last.packet, wait.segment.packet))
}

/// Near the sender: whether the segment starts with bytes sent before and continues with others that may
/// have been lost before the capture: small segments are coalesced on retransmission
/// (tcp_retrans_try_collapse, net/ipv4/tcp_output.c).
fn repeats(wait: &Wait<'_>) -> bool {
    let flow = wait.flow;
    let sent = flow.snd_nxt.is_some_and(|next| wait.segment.seq.before(next));
    let unacked = flow.highest_ack.is_some_and(|acked| wait.segment.seq.at_or_after(acked));
    sent && unacked && wait.near_sender() && wait.gap >= RTO_MIN
}

/// Whether the peer acknowledged, late, bytes after a hole that the capture lacks: they arrived, but did
/// not pass here.
fn came_elsewhere(wait: &Wait<'_>) -> bool {
    let acked_at = wait.flow.unusual.unseen_acked_at;
    wait.gap >= RTO_MIN + wait.rtt()
        && acked_at > wait.last.at
        && acked_at - wait.last.at >= wait.gap.divided_by(2)
}

/// Whether lost segments may still be retransmitted one by one, as acknowledgements and timers allow:
/// nothing shows that all have arrived, and the wait is within a series of timers.
fn may_repair(wait: &Wait<'_>) -> bool {
    let longest = timers_of(wait.flow.rto.rto().max(RTO_MIN + wait.rtt()), COPIES_MAX);
    wait.gap >= BURST_GAP && wait.gap <= timer_slack(longest) && wait.flow.nothing_out_at <= wait.last.at
}

/// Which repair it was, by its duration.
fn kind(wait: &Wait<'_>) -> (Cause, Form) {
    let srtt = wait.flow.rto.srtt().unwrap_or(wait.rtt()).max(wait.rtt());
    // The estimated timer may exceed the kernel's; its floor, 200 ms above the round trip, does not.
    let timer = RTO_MIN + srtt - FLOOR_PLAY - srtt.divided_by(SRTT_PLAY);
    let missing_for = missing_since(wait.class).map_or(Duration::ZERO, |since| wait.segment.at - since);
    let expired = wait.gap >= timer || (missing_for >= timer && by_itself(wait));
    let let_go = next_repair::acknowledged_late(wait).is_some();
    if expired && !let_go && !next_repair::is_let_go(wait) && !next_repair::is_probe_of_tail(wait) {
        return (Cause::Rto, Form::Timeout);
    }
    let signalled =
        let_go || wait.flow.view.loss_signal.get().is_some_and(|at| at + wait.tolerance() >= wait.last.at);
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

/// A tail loss probe takes new data if there is some, whatever held it: a window, Nagle, a cork
/// (tcp_send_loss_probe, net/ipv4/tcp_output.c). It leaves two round trips after the last segment or
/// acknowledgement, 200 ms later if one packet is in flight, and no later than the timer
/// (tcp_schedule_loss_probe).
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
    // Data held by a window or a cork shows in the segment before it; data held by Nagle was written
    // later.
    let queued = wait.last.queue != SendQueue::Emptied && flow.view.unanswered_since.is_none();
    let advanced =
        flow.view.clocking_ack().map_or(wait.last.at, |ack| ack.earliest_departure.max(wait.last.at));
    let since = if queued { wait.last.at } else { advanced };
    let waited = wait.segment.at - since;
    waited >= (least - srtt.divided_by(SRTT_PLAY)).max(HELD_BACK_MIN)
        && waited <= most + most.divided_by(PROBE_SHARE) + TIMER_TICK.times(3)
        && (queued || nagle::would_hold(wait))
}

/// Far from the sender, the acknowledgement that it lacks has passed. A probe with new data is one
/// segment that nothing released, two round trips after a segment with more of its write to come.
/// Segments that are all that far apart come out of a link.
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

/// How many of the packets after this one are second transmissions. Near the receiver of a lost tail,
/// nothing but the count shows the first transmissions: after a timeout all are retransmitted, in slow
/// start (RFC 5681, 3.1; tcp_enter_loss, net/ipv4/tcp_input.c).
pub(super) fn copies_due(wait: &Wait<'_>, verdict: &Verdict) -> u16 {
    let repaired = verdict.split.has(Cause::Rto.bit()) || verdict.split.has(Cause::Loss.bit());
    if !continues(wait) {
        return 0; // they are a hole now
    }
    let due = match wait.class {
        SegmentClass::New if repaired && wait.flow.missed_since_data > 0 && !wait.near_sender() => {
            next_repair::copies_behind(wait, kind(wait).1)
        }
        SegmentClass::New if wait.flow.nothing_out_at <= wait.last.at => wait.model.copies_due,
        SegmentClass::New => 0,
        _ if repaired => return wait.model.copies_due.max(next_repair::lost_behind(wait)),
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

/// Whether no acknowledgement released the segment: others were sent after the one that is
/// retransmitted, and its timer ran on (tcp_rearm_rto, net/ipv4/tcp_input.c).
fn by_itself(wait: &Wait<'_>) -> bool {
    let latest = next_repair::last_heard(wait);
    wait.gap >= HELD_BACK_MIN.max(wait.rtt_to_sender)
        && latest.is_none_or(|at| wait.segment.at - at > wait.tolerance())
}

/// When the timer started that ended with this segment. A probe restarts it (tcp_send_loss_probe, net/ipv4/tcp_output.c),
/// for nothing unless it arrived, which a duplicate acknowledgement without SACK does not say; far away it is not seen.
pub(crate) fn timer_from(
    class: SegmentClass,
    split: &Split,
    flow: &Flow,
    probed_at: Option<Instant>,
) -> Option<Instant> {
    let since = missing_since(class).filter(|_| split.has(Cause::Rto.bit()))?;
    let told = |at: &Instant| flow.sack_pending && flow.view.loss_signal.get().is_some_and(|told| told > *at);
    let moved = |at: &Instant| flow.view.clocking_ack().is_some_and(|ack| ack.earliest_departure > *at);
    Some(probed_at.filter(|at| told(at) || moved(at)).map_or(since, |probe| probe.max(since)))
}

/// The part of the wait for a reply's first byte that its retransmission took: the first transmission
/// was lost before the capture point, as a later segment's sequence number or the IP identification
/// shows.
pub(crate) fn first_reply(
    flow: &Flow,
    client: &Flow,
    (class, segment, mss): (SegmentClass, &Segment, u32),
    wait: Duration,
    rtt_to_server: Duration,
    rtt: Duration,
) -> Option<Charge> {
    // The tail of a flight lost as a whole came first, by a probe (RFC 8985, 7.3): the flight had left a
    // timer before.
    let behind = if class == SegmentClass::New && wait >= RTO_MIN {
        flow.came_again_behind(segment, mss)
    } else {
        None
    };
    // What is missing before its bytes is the first transmission of other bytes.
    let hole = flow.snd_nxt.map_or(0, |nxt| segment.seq - nxt).max(0) as u32;
    let missed_since_data = flow.missed_since_data.saturating_sub(hole.div_ceil(mss.max(1)) as u16);
    if class == SegmentClass::New && missed_since_data == 0 && behind.is_none() {
        return None;
    }
    let timer = flow.rto.rto().max(RTO_MIN + rtt);
    // A wait as long as the timers of several copies in a row means that many, as far as the sequence
    // space or IP IDs show them missing.
    let off = |copies| wait - timers_of(timer, copies);
    let doubled = |&copies: &u16| off(copies).max(-off(copies)) <= timer_play(timer);
    let missed = match behind {
        Some(_) => 1,
        None if class == SegmentClass::New => missed_since_data,
        None => COPIES_MAX,
    };
    let repeated = (2..=missed.min(COPIES_MAX)).find(doubled);
    // It was sent before the gap showed: as many timers ran as take that long.
    let missing_for = missing_since(class).map_or(Duration::ZERO, |since| segment.at - since);
    let enough = |&copies: &u16| timers_of(timer, copies) + timer_play(timer) >= missing_for;
    let least = (1..COPIES_MAX).find(enough).unwrap_or(COPIES_MAX);
    let timers = timers_of(timer, repeated.unwrap_or(least));
    // A server's own time before the first transmission is hardly longer than the repair: what is missing after a long
    // silence need not have been a reply, but an acknowledgement, if something was left to acknowledge.
    let acknowledged = client.is_acked_bare() && client.newly_acked > 0;
    let short = wait <= timer_slack(timers).times(2) && !acknowledged;
    let confidence = match class {
        SegmentClass::OutOfOrderOrRepair { .. } if repeated.is_some() => Confidence::Likely,
        SegmentClass::OutOfOrderOrRepair { .. } => surest_of_gap(flow, segment, mss, false),
        SegmentClass::New if rtt_to_server > rtt - rtt_to_server && behind.is_some() && short => {
            // IP IDs shared with other destinations fit a hole of one segment by chance.
            if behind > Some(1) { Confidence::Likely } else { Confidence::Possible }
        }
        SegmentClass::New
            if rtt_to_server > rtt - rtt_to_server && missed_since_data > 0 && wait >= RTO_MIN && short =>
        {
            // The few IP IDs of a short conversation may be shared with other destinations, and what is missing before its bytes may have been
            // any number of packets.
            let shared = client.is_acked_bare() && !flow.numbers_its_packets();
            if hole > 0 || shared { Confidence::Possible } else { Confidence::Likely }
        }
        _ => return None,
    };
    // The server may have taken its own time first; the repair takes the length of its timers.
    let ns = if wait < timers + timer_play(timers) { wait } else { timers };
    let (cause, form) = if wait >= RTO_MIN { (Cause::Rto, Form::Timeout) } else { (Cause::Loss, Form::Fast) };
    let detail = Detail { timer: Some(timer), retransmits: Some(1), form: Some(form), ..Detail::default() };
    Some(Charge::new(cause, flow.side, ns, confidence).detail(detail))
}

/// How long the timers for this many lost copies of one segment ran: the first is the tail loss probe's,
/// as long as the one after it, and each further one is twice as long (tcp_schedule_loss_probe,
/// net/ipv4/tcp_output.c; RFC 6298, 5.5).
pub(crate) fn timers_of(timer: Duration, copies: u16) -> Duration {
    timer.times(1 << (copies.clamp(1, COPIES_MAX) - 1))
}

/// No repair is quicker than this. Source: none written down.
const PROBE_MIN: Duration = Duration::from_millis(1);

/// How far the estimate of a timer may be off.
fn timer_play(timer: Duration) -> Duration {
    timer.divided_by(SRTT_PLAY) + TIMER_TICK.times(2)
}

/// Whether a wait is as long as a repair: a tail loss probe's time or the timer's. With an empty queue,
/// any other time may be the application's own.
fn timed(wait: &Wait<'_>) -> bool {
    if was_let_go(wait) {
        return false;
    }
    let rtt = wait.rtt();
    let probe = rtt.max(PROBE_MIN) + rtt.divided_by(2);
    let longest = timer_slack(wait.flow.rto.rto().max(RTO_MIN + rtt));
    // Lost twice: two timers, the second twice as long. A sender with more data has one copy per missing
    // IP ID.
    let has_more = wait.last.queue == SendQueue::More;
    let copies = if has_more { wait.flow.missed_since_data.clamp(2, COPIES_MAX) } else { 2 };
    if wait.gap <= probe || wait.gap > longest.times((1 << copies) - 1) {
        return false;
    }
    if wait.last.queue != SendQueue::Emptied || wait.gap <= rtt.times(3) + PROBE_SLACK {
        return true; // a sender with more data does not pause by itself
    }
    let srtt = wait.flow.rto.srtt().unwrap_or(rtt).max(rtt);
    let shortest = RTO_MIN + srtt - srtt.divided_by(SRTT_PLAY) - FLOOR_PLAY;
    // A missing packet may be an acknowledgement as well.
    let twice = wait.flow.missed_since_data > 1 && wait.gap >= shortest.times(3);
    twice || (shortest..=longest).contains(&wait.gap)
}

/// Whether an acknowledgement released the segment, not a timer.
fn was_let_go(wait: &Wait<'_>) -> bool {
    let view = &wait.flow.view;
    [view.window_opened(), view.clocking_ack()].iter().flatten().any(|ack| wait.follows(ack))
}

/// A timer is late by up to one part in this many: the wheel rounds up by an eighth
/// (kernel/time/timer.c), and the estimate lags the kernel's.
const TIMER_SHARE: i64 = 4;
/// A busy host adds up to this to `TIMER_SHARE`. Source: none written down.
const TIMER_SLACK: Duration = Duration::from_millis(30);

/// A timer as late as it may be: the estimate lags the kernel's, and the wheel is coarse
/// (kernel/time/timer.c).
fn timer_slack(timer: Duration) -> Duration {
    timer + timer.divided_by(TIMER_SHARE) + TIMER_SLACK
}

/// It left before the packet that revealed the gap, and was on its way since then at least. What came before that is its
/// sender's, if it had sent all it had.
fn overtaken(wait: &Wait<'_>, noticed_at: Instant) -> Verdict {
    let late = (wait.segment.at - noticed_at).min(wait.gap);
    let detail = Detail { form: Some(Form::Reordered), ..Detail::default() };
    let charge = Charge::new(Cause::Queueing, wait.flow.side, late, Confidence::Likely)
        .evidence(wait.last.packet, wait.segment.packet)
        .detail(detail);
    let mut split = Split::of(wait.gap);
    let split = if wait.gap - late < BURST_GAP || wait.last.queue != SendQueue::Emptied {
        split.rest(charge)
    } else {
        split.take(charge);
        think::rest(wait, split)
    };
    Verdict { split, trigger: Trigger::Burst }
}
