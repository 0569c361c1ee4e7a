//! Was the congestion window used up, and which part of its life was it in?
//!
//! Proof: more was queued, neither Nagle nor the advertised window stopped it, and sending resumed
//! when an acknowledgement of new data arrived.
//! Refuted by: an empty queue, unless small writes had piled up; no acknowledgement to follow (then
//! the sender paces itself, `pacing`).
//! Source: RFC 5681, 3.1 and 3.2; RFC 3042 (limited transmit).
//! Seen from: both ends; less exactly far from the sender, by the variation of the path.
//!
//! The bytes sent per round trip tell the cases apart, each in its own file: growth by half or more
//! is `slow_start`, a delayed acknowledgement of a single segment is `delayed_ack_cwnd`, an exactly
//! constant flight without loss is `send_buffer`, because a congestion window that is used up keeps
//! growing. The rest is congestion avoidance, or recovery after a loss.

use tcpwhy_wire::Duration;

use super::pieces::{between_pieces, counted_out};
use super::used_up::which;
use super::verdict::Verdict;
use super::wait::{SLOW_HOST, Wait};
use super::whole_round::lasts_a_round;
use super::{link_share, pacing, queueing, receiver_think, send_buffer};
use crate::bill::charge::Charge;
use crate::flow::segment_class::{SegmentClass, SendQueue};
use crate::flow::view::ClockingAck;
use crate::words::cause::Cause;
use crate::words::limits::{
    BURST_GAP, DELAYED_ACK_MIN, INITIAL_WINDOW_SEGMENTS, LATE_SHARE, QUEUED_MIN, RTO_MIN,
};
use crate::words::report::{Confidence, Detail, Trigger};

/// An acknowledgement is late by a good part of a wait from one part in this many of it.
const LATE_ACK_SHARE: i64 = 4;

pub(crate) fn judge(wait: &Wait<'_>) -> Option<Verdict> {
    if wait.class != SegmentClass::New || wait.gap < BURST_GAP {
        return None;
    }
    // The handshake's ACK covers nothing of the first flight, all of which may leave at once.
    let newest = wait.flow.view.clocking_ack().filter(|ack| ack.left < ack.flight);
    let Some(ack) = newest.filter(|ack| wait.follows(ack) || follows_late(wait, ack)) else {
        return is_queued(wait).then(|| pacing::spaced(wait));
    };
    if pacing::paced(wait) {
        return Some(pacing::spaced(wait));
    }
    let (cause, form, confidence) = match wait.last.queue {
        SendQueue::Emptied if piled_up(wait) => which(wait, &ack),
        SendQueue::Emptied => send_buffer::mid_write(wait, &ack)
            .or_else(|| send_buffer::on_the_last(wait, &ack))
            .or_else(|| counted_out(wait, &ack))
            .or_else(|| between_pieces(wait, &ack))?,
        _ => which(wait, &ack),
    };
    let mut split = link_share::split(wait);
    // Without the handshake the window scale is unknown, so the advertised window may be the limit.
    let doubtful = wait.flow.unusual.scale_bounds.is_in_use()
        || may_be_no_window(wait, &ack, cause, wait.gap - split.left());
    let confidence = if doubtful { Confidence::Possible } else { confidence };
    let detail = Detail {
        flight_bytes: Some(u64::from(wait.model.rounds.flight_with(ack.flight))),
        window_bytes: (ack.window > 0).then(|| u64::from(ack.window)),
        ack_delay: (cause == Cause::DelayedAckCwnd).then(|| wait.ack_delay(&ack)).flatten(),
        form,
        ..Detail::default()
    };
    if let Some(held) = receiver_think::unread(wait, &ack) {
        split.take(held);
    }
    if wait.near_sender() {
        if let Some(late) = queueing::late_acknowledgement(wait, &ack) {
            split.take(late);
        }
    } else if !wait.follows(&ack) {
        split.take(queueing::behind(wait, &ack));
    }
    let charge = Charge::new(cause, wait.flow.side, Duration::ZERO, confidence)
        .evidence(wait.last.packet, wait.segment.packet)
        .released_by(ack.packet)
        .detail(detail);
    Some(Verdict { split: split.rest(charge), trigger: Trigger::Packet(ack.packet) })
}

/// Whether what else delays an acknowledgement, or spaces segments, may have held this sender, of whose wait so much
/// was the link's.
fn may_be_no_window(wait: &Wait<'_>, ack: &ClockingAck, cause: Cause, links: Duration) -> bool {
    let late = || receiver_think::acknowledged_late(wait, ack) || came_late(wait, ack, links);
    cause != Cause::DelayedAckCwnd && late()
        || may_be_written_late(wait, ack)
        || matches!(cause, Cause::CongestionWindow | Cause::SendBuffer) && may_be_in_batches(wait)
}

/// Whether the acknowledgement took so much longer than the path, and what is the link's of the wait, that this is a
/// good part of it: a path that delivers in batches, a link whose rate does not show or a busy host may be why, and
/// no window. Less than two segments may be acknowledged late by themselves (RFC 9293, 3.8.6.3), by a timer.
fn came_late(wait: &Wait<'_>, ack: &ClockingAck, links: Duration) -> bool {
    let least = wait.gap.divided_by(LATE_ACK_SHARE).max(QUEUED_MIN);
    let acked = ack.flight.saturating_sub(ack.left);
    let late =
        |delay: &Duration| *delay - links >= least && (acked >= 2 * wait.mss || *delay < DELAYED_ACK_MIN);
    wait.near_sender() && wait.ack_delay(ack).is_some_and(|delay| late(&delay))
}

/// Whether a message's short end came later, behind an acknowledgement of all before it, than any path so far: nothing is left
/// of a window that is used up then, and its program may have written it late.
fn may_be_written_late(wait: &Wait<'_>, ack: &ClockingAck) -> bool {
    let ends = wait.segment.flags.psh() && !wait.is_full() && ack.left == 0;
    let late = ends && !wait.near_sender() && wait.has_nothing_under_way() && !wait.follows(ack);
    late && !wait.model.rounds.is_initial_window(ack.flight, wait.mss)
}

/// Whether several such waits fit in a round trip, where nothing tells how long segments were on their way: a link that
/// delivers in batches spaces them as well, and their period then divides the round trip.
fn may_be_in_batches(wait: &Wait<'_>) -> bool {
    !wait.near_sender() && !wait.flow.timestamps && !lasts_a_round(wait)
}

/// Whether more was queued after the last segment, where no acknowledgement released the next one.
fn is_queued(wait: &Wait<'_>) -> bool {
    match wait.last.queue {
        SendQueue::More => wait.flow.flight() > 0,
        // A duplicate acknowledgement lets one more segment leave (limited transmit, RFC 3042).
        SendQueue::Unknown if after_loss_signal(wait) => true,
        // Segments in quick succession with several in flight come from a queue.
        SendQueue::Unknown if wait.flow.flight() > 2 * wait.mss && wait.gap < wait.rtt().divided_by(2) => {
            true
        }
        // So do full segments at the bottleneck's rate or during recovery.
        SendQueue::Unknown
            if wait.is_full()
                && wait.flow.is_backlogged(wait.mss)
                && (pacing::near_rate(wait) || wait.recovering()) =>
        {
            true
        }
        // So do evenly spaced full segments when nothing in flight could hold them.
        SendQueue::Unknown => {
            wait.is_full() && wait.flow.flight() <= wait.last.len && wait.flow.unusual.cadence.is_steady()
        }
        SendQueue::Emptied => false,
    }
}

/// Whether small writes have piled up although each small segment emptied the queue: a full segment
/// that leaves on an acknowledgement is made of several of them, and only a congestion window
/// counted in packets can have held them.
fn piled_up(wait: &Wait<'_>) -> bool {
    wait.segment.payload_len >= wait.mss && wait.last.len < wait.mss / 2 && wait.last.flight_segments >= 3
}

/// Far from the sender, a segment of a non-empty queue may follow its acknowledgement late because
/// either was delayed on the path: nothing else can have released it. Near a slow host it follows
/// shortly after, which pacing would not.
fn follows_late(wait: &Wait<'_>, ack: &ClockingAck) -> bool {
    let late = wait.segment.at - ack.earliest_departure;
    let most = if wait.near_sender() {
        wait.gap.divided_by(LATE_SHARE).min(SLOW_HOST)
    } else if wait.last.queue == SendQueue::More && used_an_initial_window(wait, ack) {
        // Without any acknowledgement, its timer would have retransmitted instead.
        wait.rtt_to_sender.min(RTO_MIN).max(wait.rtt_to_sender.divided_by(2))
    } else {
        wait.rtt_to_sender.divided_by(2)
    };
    wait.last.queue != SendQueue::Emptied
        && wait.may_wait_for(ack)
        && ack.earliest_departure > wait.last.at
        && late.is_positive()
        && late <= most
}

/// Whether the flight was as large as any new connection's window has room for: a program may pause before that.
fn used_an_initial_window(wait: &Wait<'_>, ack: &ClockingAck) -> bool {
    wait.model.rounds.flight_with(ack.flight) >= INITIAL_WINDOW_SEGMENTS * wait.mss
}

/// Whether the segment left when a duplicate or selective acknowledgement arrived.
fn after_loss_signal(wait: &Wait<'_>) -> bool {
    wait.flow
        .view
        .loss_signal
        .get()
        .is_some_and(|at| at > wait.last.at && wait.segment.at - at <= wait.tolerance())
}
