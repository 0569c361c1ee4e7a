//! Which repairs did one loss need, and which of them waited for a timer?
//!
//! Proof: the segment begins where the repair before it ended; or IP identifications are missing between the data that showed a hole and
//! the repair that fills it, so that more was sent, and lost, behind that data.
//! Refuted by: new data in between, or a wait in which several copies of the same repair could have been lost.
//! Source: RFC 6298, 5.3; RFC 9293, 3.8.6.3 (delayed acknowledgements); tcp_rearm_rto, net/ipv4/tcp_input.c, Linux 6.12 (an acknowledgement of new data begins the timer again); RFC
//! 6675, 5 (as many repairs at once as the window has room for).
//! Seen from: near the receiver, where the first transmissions are in no packet.

use tcpwhy_wire::{Duration, Instant, Seq};

use super::wait::Wait;
use crate::bill::charge::Charge;
use crate::flow::segment_class::{SegmentClass, SendQueue};
use crate::flow::view::ClockingAck;
use crate::words::cause::Cause;
use crate::words::form::Form;
use crate::words::limits::{
    COPIES_MAX, DELAYED_ACK_MIN, HELD_BACK_MAX, HELD_BACK_MIN, INITIAL_WINDOW_SEGMENTS, PROBE_SHARE,
    ROUND_TRIP_PLAY, RTO_MIN, TIMER_TICK,
};
use crate::words::report::{Confidence, Detail};

/// Reordering spans at most this part of a round trip (RFC 8985, 6.2): repairs that are closer together left together.
const TOGETHER: i64 = 4;

/// Whether the segment goes on where the last one, a repair as well, ended.
fn is_next(wait: &Wait<'_>) -> bool {
    let filled: Option<(Seq, u64)> = wait.flow.unusual.filled;
    matches!(wait.class, SegmentClass::OutOfOrderOrRepair { .. })
        && filled == Some((wait.segment.seq, wait.last.packet))
}

/// How certain it can be that a repair was waited for: behind another one of the same flight, it is only as late as those are apart.
pub(super) fn surest(wait: &Wait<'_>) -> Confidence {
    let together = wait.gap.times(TOGETHER) < wait.rtt() && is_next(wait);
    if together { Confidence::Possible } else { Confidence::Certain }
}

/// When its sender last heard of new data that had arrived, or of a hole. Beside the sender, what has just passed may have reached it
/// sooner than its distance seems to allow.
pub(super) fn last_heard(wait: &Wait<'_>) -> Option<Instant> {
    let view = &wait.flow.view;
    let passed = Some(wait.flow.unusual.sack_or_dupack_at).filter(|_| wait.near_sender());
    view.clocking_ack().map(|ack| ack.earliest_departure).max(view.loss_signal.get()).max(passed)
}

/// Near the receiver: how certain it can be that a repair was a fast one. It leaves when its sender hears what is missing, or a
/// round trip or two later where one of the repairs or a probe was lost (RFC 8985, 7.2); what comes later waited for another
/// timer, or on its way.
pub(super) fn surest_of_fast(wait: &Wait<'_>, form: Form) -> Confidence {
    if form != Form::Fast || !matches!(wait.class, SegmentClass::OutOfOrderOrRepair { .. }) {
        // What else an acknowledgement of new data may have set off, nothing says.
        let told = |at: Instant| at + wait.tolerance() >= wait.last.at;
        let untold = form == Form::Fast && !wait.flow.view.loss_signal.get().is_some_and(told);
        return if untold { Confidence::Likely } else { Confidence::Certain };
    }
    if is_behind_timer(wait) {
        return Confidence::Possible;
    }
    let rtt = wait.flow.rto.srtt().unwrap_or(wait.rtt()).max(wait.rtt());
    let heard = last_heard(wait).unwrap_or(wait.last.at).max(wait.last.at);
    let late = wait.segment.at - heard - TIMER_TICK.times(2);
    if late <= rtt {
        Confidence::Certain
    } else if late <= rtt.times(3) {
        Confidence::Likely
    } else {
        Confidence::Possible
    }
}

/// Whether the segment left with the acknowledgement of the repair before it, which a timer had sent: a timeout leaves a window of one segment
/// (RFC 5681, 3.1), and what is not reported as arrived counts as lost (RFC 6675, 5.1).
fn is_behind_timer(wait: &Wait<'_>) -> bool {
    let SegmentClass::OutOfOrderOrRepair { noticed_at } = wait.class else { return false };
    let ack = wait.flow.view.clocking_ack().filter(|ack| ack.packet > wait.last.packet);
    is_next(wait)
        && wait.last.at - noticed_at >= RTO_MIN + wait.rtt()
        && ack.is_some_and(|ack| follows(wait, &ack))
}

/// Whether its sender had heard of the repair before it too late for a timer to have expired since.
pub(super) fn is_let_go(wait: &Wait<'_>) -> bool {
    let heard = |at| at > wait.last.at && wait.segment.at - at < RTO_MIN;
    is_next(wait) && wait.flow.view.clocking_ack().is_some_and(|ack| heard(ack.earliest_departure))
}

/// What the acknowledgement of a repair took beyond a round trip, before the next one left at its heels, which no timer and no probe sent:
/// its receiver held it back, if it acknowledges that repair and nothing else, and the path does not vary by as much.
pub(super) fn acknowledged_late(wait: &Wait<'_>) -> Option<Charge> {
    let may_be_first = wait.class == SegmentClass::New && wait.model.copies_due == 0;
    if wait.gap < HELD_BACK_MIN + wait.rtt() || may_be_first {
        return None;
    }
    let ack = wait.flow.view.clocking_ack().filter(|ack| ack.packet > wait.last.packet)?;
    let held_back = ack.earliest_departure - wait.last.at - wait.rtt();
    if !(HELD_BACK_MIN..HELD_BACK_MAX).contains(&held_back) || !follows(wait, &ack) {
        return None;
    }
    let acked = ack.flight.saturating_sub(ack.left);
    let single = acked == wait.last.len && wait.flow.highest_ack == Some(wait.segment.seq);
    let shown = wait.beside_receiver() || held_back >= wait.rtt().max(DELAYED_ACK_MIN);
    let confidence = if single && shown { Confidence::Likely } else { Confidence::Possible };
    let detail = Detail { ack_delay: Some(held_back), ..Detail::default() };
    let charge = Charge::new(Cause::DelayedAckCwnd, wait.flow.side, held_back, confidence);
    Some(charge.evidence(wait.last.packet, wait.segment.packet).released_by(ack.packet).detail(detail))
}

/// Whether the segment left when this acknowledgement came. Nothing but the path is between the two, far from the sender, if that sends
/// nothing by itself.
fn follows(wait: &Wait<'_>, ack: &ClockingAck) -> bool {
    let late = wait.segment.at - ack.earliest_departure;
    wait.follows(ack) || late.is_positive() && late <= wait.rtt_to_sender.divided_by(ROUND_TRIP_PLAY)
}

/// How many segments behind a hole that this one fills were lost as well: its sender had nothing to acknowledge, and no time to lose
/// several copies of this one.
pub(super) fn lost_behind(wait: &Wait<'_>) -> u16 {
    let flow = wait.flow;
    let known = flow.missed_since_data > 0 && !wait.near_sender();
    let fills = matches!(wait.class, SegmentClass::OutOfOrderOrRepair { .. }) && !is_next(wait);
    if !(known && fills) {
        return 0;
    }
    let heard = wait.peer.last_data.is_none_or(|said| said.at + wait.rtt() <= wait.last.at);
    let once = wait.gap < (RTO_MIN + wait.rtt()).times(2);
    if heard && once { flow.missed_since_data } else { 0 }
}

/// Whether a probe repeats the end of a flight, behind the first transmission of that and with nothing in between, while more before it is
/// unacknowledged: a timer repeats that first (RFC 6298, 5.4), a probe the last segment, two round trips behind it (RFC 8985, 7.2 and 7.3).
pub(super) fn is_probe_of_tail(wait: &Wait<'_>) -> bool {
    let SegmentClass::Retransmission { original_at } = wait.class else { return false };
    let (flow, segment) = (wait.flow, wait.segment);
    let is_tail = flow.snd_nxt == Some(segment.seq + segment.payload_len) && segment.payload_len <= wait.mss;
    let is_first = flow.highest_ack.is_none_or(|acked| segment.seq.at_or_before(acked));
    let timer = flow.rto.srtt().unwrap_or(wait.rtt()).max(wait.rtt()).times(2);
    let latest = timer + timer.divided_by(PROBE_SHARE) + TIMER_TICK.times(3);
    original_at == wait.last.at && is_tail && !is_first && wait.gap <= latest
}

/// Far from its sender: how certain it can be that a probe or a timer ended a silence, where nothing but numbers shows that something was lost.
/// A probe repeats the last segment of a flight (RFC 8985, 7.3), so that behind several lost ones a hole is left, but for one acknowledgement.
/// And a flight of which nothing arrives is hardly larger than an initial window: many numbers are those of packets to others.
pub(super) fn surest_of_silence(wait: &Wait<'_>, form: Form) -> Confidence {
    let leaves_no_hole = wait.flow.snd_nxt.is_none_or(|next| wait.segment.seq.at_or_before(next));
    let most = if form == Form::TailProbe { 2 } else { INITIAL_WINDOW_SEGMENTS as u16 + COPIES_MAX };
    let many = wait.flow.missed_since_data > most;
    if many && leaves_no_hole { Confidence::Possible } else { Confidence::Certain }
}

/// How many copies of others are due behind one that a timer or a probe sent: as many as are missing, but none behind the end of a flight, or among
/// packets to others.
pub(super) fn copies_behind(wait: &Wait<'_>, form: Form) -> u16 {
    if surest_of_silence(wait, form) > Confidence::Possible { wait.flow.missed_since_data } else { 0 }
}

/// How certain it is that the next segment of a message is a copy, its first transmission lost before the capture. Without PSH, the sender had
/// more to send; with it, it may have written later, unless the numbers are known to be the connection's own.
/// `timers` is how long a timer runs at most for so many copies.
#[cold]
#[inline(never)]
pub(super) fn surest_of_data(
    wait: &Wait<'_>,
    timers: impl Fn(Duration, u16) -> Duration,
) -> Option<Confidence> {
    let (flow, missed) = (wait.flow, wait.flow.missed_since_data);
    let timer = flow.rto.rto().max(RTO_MIN + wait.rtt());
    let own = missed > 0 && flow.numbers_its_packets();
    if !lacks_data(wait, timers(timer, COPIES_MAX)) || !own && wait.last.queue != SendQueue::More {
        return None;
    }
    // Its own time before is hardly longer than the timers.
    let soon = wait.gap <= timers(timer, missed).times(2);
    Some(if own && soon { Confidence::Likely } else { Confidence::Possible })
}

/// Whether numbers are missing before the next segment of a message, after a wait as long as a timer, though its sender had nothing to acknowledge:
/// they carried data. A segment whose stamp is as old as the one before it stood on its way, and one that follows an acknowledgement was let go.
fn lacks_data(wait: &Wait<'_>, longest: Duration) -> bool {
    let (flow, peer) = (wait.flow, wait.peer);
    let next =
        wait.class == SegmentClass::New && flow.snd_nxt == Some(wait.segment.seq) && flow.flight() == 0;
    let unasked = peer.newly_acked == 0 && peer.snd_nxt == peer.highest_ack;
    let timed = wait.gap >= RTO_MIN + wait.rtt() && wait.gap <= longest;
    let stamps = wait.segment.options.timestamps;
    let same = stamps.is_some() && wait.last.stamp == stamps.map(|stamps| stamps.val);
    let apart = flow.sent_apart(wait.last, stamps).unwrap_or(wait.gap);
    let stood = same || apart.times(2) < wait.gap;
    let sent = next && unasked && timed && !wait.near_sender() && !wait.midway;
    let released = [flow.view.window_opened(), flow.view.clocking_ack()];
    sent && !stood && !released.iter().flatten().any(|ack| wait.follows(ack))
}
