//! Which limit was used up when an acknowledgement opened a window: the congestion window, in which
//! phase, or another one?
//!
//! Proof: how the bytes of the rounds develop: growing, flat, uneven, or below what was lost.
//! Refuted by: the next flight, if it does not continue the pattern.
//! Source: RFC 5681, 3.1 and 3.2; RFC 6928.
//! Seen from: both ends; a flight whose tail was lost shows near the receiver only.

use tcpwhy_wire::Duration;

use super::verdict::Held;
use super::wait::Wait;
use super::whole_round::{is_whole_round, lasts_a_round};
use super::{delayed_ack_cwnd, link_share, pacing, receive_window, receiver_think, send_buffer, slow_start};
use crate::bill::charge::Charge;
use crate::estimate::growth::Shape;
use crate::estimate::rounds::Rounds;
use crate::flow::segment_class::SendQueue;
use crate::flow::view::ClockingAck;
use crate::words::cause::Cause;
use crate::words::form::Form;
use crate::words::limits::INITIAL_WINDOW_SEGMENTS;
use crate::words::report::{Confidence, Detail};

/// This many rounds of the same flight are not explained by a congestion window.
const FLAT_ROUNDS: u8 = 3;

/// What held a sender that continued on `ack`.
pub(super) fn which(wait: &Wait<'_>, ack: &ClockingAck) -> Held {
    let rounds = &wait.model.rounds;
    let flight = rounds.flight_with(ack.flight);
    let (cause, form, confidence) = limit(wait, ack, flight);
    let window = matches!(cause, Cause::CongestionWindow | Cause::DelayedAckCwnd | Cause::SlowStart);
    // In the middle of a round its flight is incomplete: the one before it counts as well.
    let had = if lasts_a_round(wait) { flight } else { flight.max(rounds.last) };
    let grows_again = cause == Cause::SlowStart && slow_start::had_more(rounds, flight);
    let may_be_reset = cause == Cause::SlowStartAfterIdle || grows_again;
    let doubtful = window && rounds.is_far_below_peak(had)
        || form == Some(Form::AfterLoss) && rounds.may_have_lost_nothing()
        || may_be_reset && is_below_restart(wait, flight)
        || cause == Cause::SlowStart && rounds.is_past_threshold(had, wait.mss);
    (cause, form, if doubtful { Confidence::Possible } else { confidence })
}

/// Whether a window that was reset would let more pass than `flight` bytes, or has: Linux resets it to that of a
/// new connection, and never below (tcp_cwnd_restart, net/ipv4/tcp_output.c).
fn is_below_restart(wait: &Wait<'_>, flight: u32) -> bool {
    let restart = INITIAL_WINDOW_SEGMENTS.saturating_sub(1) * wait.mss;
    let rounds = &wait.model.rounds;
    flight.max(rounds.last) < restart || rounds.is_far_below_peak(flight.max(rounds.last))
}

/// The limit that `flight` bytes show, before what earlier flights say against it.
fn limit(wait: &Wait<'_>, ack: &ClockingAck, flight: u32) -> Held {
    let rounds = &wait.model.rounds;
    // In the middle of a round its flight is incomplete: the last rounds say more.
    if rounds.growing && !lasts_a_round(wait) {
        return (slow_start::cause(rounds, flight), None, Confidence::Likely);
    }
    if !rounds.is_initial_window(flight, wait.mss) && send_buffer::drained(wait, ack) {
        let again = rounds.drained > 1;
        let confidence = if again { Confidence::Likely } else { Confidence::Possible };
        return (Cause::SendBuffer, Some(Form::Drained), confidence);
    }
    let serialised = link_share::rate(wait)
        .map_or(Duration::ZERO, |rate| rate.time_for(wait.flow.on_wire(ack.flight, 0, wait.mss)));
    let held_back = wait.ack_delay(ack).map_or(Duration::ZERO, |delay| delay - serialised);
    if receiver_think::on_one_host(wait, ack, held_back) {
        return (Cause::ReceiverThink, Some(Form::SlowReader), Confidence::Likely);
    }
    // A window of a segment or two grows with the next acknowledgements, however late they come.
    if !rounds.lost && rounds.flatness(flight, wait.mss) >= FLAT_ROUNDS {
        return send_buffer::flat(wait, ack, Confidence::Likely);
    }
    if delayed_ack_cwnd::is_cause(wait, ack, held_back) {
        return (Cause::DelayedAckCwnd, None, delayed_ack_cwnd::surest(wait, ack));
    }
    if !rounds.lost && !rounds.opens(flight) {
        match rounds.flatness(flight, wait.mss) {
            0 => {}
            1 => return send_buffer::flat(wait, ack, Confidence::Possible),
            _ => return send_buffer::flat(wait, ack, Confidence::Likely),
        }
    }
    if !rounds.lost && rounds.growth.with(flight, wait.mss) == Shape::Uneven && is_whole_round(wait) {
        if leaves_room(wait, ack, flight) {
            return (Cause::SendBuffer, Some(Form::Uneven), Confidence::Possible);
        }
        let (cause, form, confidence) = send_buffer::flat(wait, ack, Confidence::Possible);
        return (cause, form.or(Some(Form::Uneven)), confidence);
    }
    let (cause, form) = phase(rounds, flight);
    if form == Some(Form::Avoidance) && rounds.fill(flight, wait.flow.view.window) && !rounds.lost {
        return (Cause::ReceiveWindow, Some(receive_window::form(wait.flow, wait)), Confidence::Likely);
    }
    let is_reset = slow_start::cause(rounds, flight) == Cause::SlowStartAfterIdle;
    if form == Some(Form::Avoidance)
        && is_reset
        && rounds.since_idle.is_some()
        && !slow_start::was_kept(rounds, flight)
    {
        // The window grows slowly from where slow start ended; without the idle time it would be as
        // large as before.
        return (Cause::SlowStartAfterIdle, None, Confidence::Likely);
    }
    if cause == Cause::SlowStartAfterIdle && slow_start::was_kept(rounds, flight) {
        return (Cause::CongestionWindow, Some(Form::Avoidance), Confidence::Possible);
    }
    if form == Some(Form::Avoidance) && pacing::spans_round(wait) {
        // A window that is never full has let more pass: pacing holds the sender, not the window.
        let below = rounds.is_below_peak(flight, wait.mss);
        let (cause, form) = if below { (Cause::Pacing, None) } else { (cause, form) };
        return (cause, form, Confidence::Possible);
    }
    (cause, form, if rounds.may_be_reset { Confidence::Possible } else { Confidence::Likely })
}

/// The phase of a congestion window that `flight` bytes have used up.
fn phase(rounds: &Rounds, flight: u32) -> (Cause, Option<Form>) {
    if rounds.lost && !rounds.reopens(flight) {
        return (Cause::CongestionWindow, Some(Form::AfterLoss));
    }
    if !rounds.opens(flight) {
        return (Cause::CongestionWindow, Some(Form::Avoidance));
    }
    (slow_start::cause(rounds, flight), None)
}

/// Whether a whole round left a third of the peer's window unused, whatever the one before it did.
fn leaves_room(wait: &Wait<'_>, ack: &ClockingAck, flight: u32) -> bool {
    ack.window > 0
        && i64::from(ack.room) >= i64::from((ack.window / 3).max(2 * wait.mss))
        && flight < ack.window
}

/// Near the receiver: how long the window held the sender before a flight whose tail was lost. The
/// flight before it cannot have been so long: a window starts with ten segments and is at most
/// twice the largest flight (RFC 6928; RFC 5681, 3.1). So the lost data left on the first
/// acknowledgements of that flight, and the repair began then.
pub(super) fn before_lost(wait: &Wait<'_>) -> Option<Charge> {
    let (flow, rounds) = (wait.flow, &wait.model.rounds);
    let hole = (wait.segment.seq - flow.snd_nxt?).max(0) as u32;
    // If all of it is retransmitted, its packets are missing by their IP identification, and one or
    // two copies as well.
    let counted = u32::from(flow.missed_since_data.saturating_sub(2)).saturating_mul(wait.mss);
    let (lost, confidence) = if hole >= counted || flow.numbers_its_packets() {
        (hole.max(counted), Confidence::Likely)
    } else {
        (counted, Confidence::Possible)
    };
    let most = (INITIAL_WINDOW_SEGMENTS * wait.mss).max(rounds.largest.saturating_mul(2));
    let released = flow
        .view
        .unanswered_since
        .get()
        .filter(|_| !wait.near_sender() && wait.last.queue != SendQueue::Emptied)?;
    if lost == 0 || rounds.flight.saturating_add(lost).saturating_add(wait.segment.payload_len) <= most {
        return None;
    }
    let (cause, form) = phase(rounds, rounds.flight);
    let detail = Detail { flight_bytes: Some(u64::from(rounds.flight)), form, ..Detail::default() };
    let charge = Charge::new(cause, flow.side, released - wait.last.at, confidence);
    Some(charge.evidence(wait.last.packet, wait.segment.packet).detail(detail))
}
