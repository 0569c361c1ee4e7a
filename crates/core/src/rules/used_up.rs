//! What used up a window that an acknowledgement opened: which part of a congestion window's life was it, or was it another
//! limit?
//!
//! Proof: how the bytes of each round go on: growing, flat, uneven, or below what was lost.
//! Refuted by: each reading is refuted by the next flight that does not go on so.
//! Source: RFC 5681, 3.1 and 3.2; RFC 6928.
//! Seen from: both ends; a flight that was lost to its end shows near the receiver only.

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

/// Rounds of the same flight that no congestion window explains.
const FLAT_ROUNDS: u8 = 3;

/// What held a sender that went on with `ack`.
pub(super) fn which(wait: &Wait<'_>, ack: &ClockingAck) -> Held {
    let rounds = &wait.model.rounds;
    let flight = rounds.flight_with(ack.flight);
    // In the middle of a round its flight is not complete: what the last ones did says more.
    if rounds.growing && !lasts_a_round(wait) {
        return (slow_start::cause(rounds, flight), None, Confidence::Likely);
    }
    if send_buffer::drained(wait, ack) {
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
    // A window of a segment or two opens with the next acknowledgements, however late they come.
    if !rounds.lost && rounds.flatness(flight, wait.mss) >= FLAT_ROUNDS {
        return send_buffer::flat(wait, ack, Confidence::Likely);
    }
    if delayed_ack_cwnd::is_cause(wait, ack, held_back) {
        return (Cause::DelayedAckCwnd, None, Confidence::Likely);
    }
    if !rounds.lost && !rounds.opens(flight) {
        match rounds.flatness(flight, wait.mss) {
            0 => {}
            1 => return send_buffer::flat(wait, ack, Confidence::Possible),
            _ => return send_buffer::flat(wait, ack, Confidence::Likely),
        }
    }
    if !rounds.lost && rounds.growth.with(flight, wait.mss) == Shape::Uneven && is_whole_round(wait) {
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
        // It grows slowly from where its start has ended, and would be as large as before without the idle time.
        return (Cause::SlowStartAfterIdle, None, Confidence::Likely);
    }
    if cause == Cause::SlowStartAfterIdle && slow_start::was_kept(rounds, flight) {
        return (Cause::CongestionWindow, Some(Form::Avoidance), Confidence::Possible);
    }
    if form == Some(Form::Avoidance) && pacing::spans_round(wait) {
        // A window that never closes has let more pass: its pace holds it, not that.
        let below = rounds.is_below_peak(flight, wait.mss);
        let (cause, form) = if below { (Cause::Pacing, None) } else { (cause, form) };
        return (cause, form, Confidence::Possible);
    }
    (cause, form, Confidence::Likely)
}

/// Which part of its life a congestion window is in that `flight` bytes have used up.
fn phase(rounds: &Rounds, flight: u32) -> (Cause, Option<Form>) {
    if rounds.lost && !rounds.reopens(flight) {
        return (Cause::CongestionWindow, Some(Form::AfterLoss));
    }
    if !rounds.opens(flight) {
        return (Cause::CongestionWindow, Some(Form::Avoidance));
    }
    (slow_start::cause(rounds, flight), None)
}

/// Near the receiver, what the window held before a flight that was lost to its end. The flight before it cannot have been
/// so long: a window begins with ten segments and is twice the largest flight at most (RFC 6928; RFC 5681, 3.1). So what
/// was lost left with the first acknowledgements of that one, and the repair began there.
pub(super) fn before_lost(wait: &Wait<'_>) -> Option<Charge> {
    let (flow, rounds) = (wait.flow, &wait.model.rounds);
    let hole = (wait.segment.seq - flow.snd_nxt?).max(0) as u32;
    // Where all of it goes out again, its packets are missing by their identification, and a copy or two with them.
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
