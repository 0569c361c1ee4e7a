//! Was the congestion window used up, and which part of its life was it in?
//!
//! The sender had more to send, neither Nagle nor the advertised window stopped it, and it went on when an
//! acknowledgement of new data arrived. The bytes of each round tell the rest, each in its own file: growing by half or more is
//! `slow_start`, a lone segment's late acknowledgement `delayed_ack_cwnd`, exactly flat without a loss the `send_buffer`: a
//! congestion window that is used up always grows. What is left is congestion avoidance (RFC 5681, 3.1), and after a loss its
//! recovery. Without an acknowledgement to follow, the sender keeps its own pace (`pacing`).

use tcpwhy_wire::Duration;

use super::{
    Verdict, Wait, bandwidth, delayed_ack_cwnd, pacing, queueing, receive_window, receiver_think,
    send_buffer, slow_start,
};
use crate::bill::account::Charge;
use crate::estimate::growth::{Shape, is_whole_round};
use crate::estimate::rounds::Rounds;
use crate::flow::half::{Order, Queue, Release};
use crate::words::cause::Cause;
use crate::words::limits::{BURST_GAP, INITIAL_WINDOW_SEGMENTS};
use crate::words::report::{Confidence, Detail, Trigger};

/// Rounds of the same flight that no congestion window explains.
const FLAT_ROUNDS: u8 = 3;

/// What held a sender, in which form, and how sure that is.
pub(super) type Held = (Cause, Option<&'static str>, Confidence);

/// What a slow host takes to answer an acknowledgement with the next segment.
pub(super) const SLOW_HOST: Duration = Duration::from_millis(4);

pub(crate) fn judge(wait: &Wait<'_>) -> Option<Verdict> {
    if wait.order != Order::New || wait.gap < BURST_GAP {
        return None;
    }
    let advanced = wait.half.view.advanced();
    let release = advanced.filter(|release| wait.follows(release) || follows_late(wait, release));
    let Some(release) = release else {
        let queued = match wait.last.queue {
            Queue::More => wait.half.flight() > 0,
            // A duplicate acknowledgement lets one segment more leave (limited transmit, RFC 3042).
            Queue::Unknown if after_loss_signal(wait) => true,
            // Segments in quick succession with several in flight are a queue being sent.
            Queue::Unknown if wait.half.flight() > 2 * wait.mss && wait.gap < wait.rtt().divided_by(2) => {
                true
            }
            // So are full ones and nothing else, as fast as the bottleneck or in a recovery.
            Queue::Unknown
                if wait.is_full()
                    && wait.half.is_backlogged(wait.mss)
                    && (pacing::near_rate(wait) || recovering(wait)) =>
            {
                true
            }
            // So are full ones to a beat, where nothing in flight could hold them.
            Queue::Unknown => {
                wait.is_full() && wait.half.flight() <= wait.last.len && wait.half.cadence.is_steady()
            }
            Queue::Emptied => false,
        };
        return queued.then(|| pacing::spaced(wait));
    };
    if pacing::paced(wait, &release) {
        return Some(pacing::spaced(wait));
    }
    let (cause, form, confidence) = match wait.last.queue {
        Queue::Emptied if piled_up(wait) => which(wait, &release),
        Queue::Emptied => send_buffer::mid_write(wait, &release)
            .or_else(|| send_buffer::counted_out(wait, &release))
            .or_else(|| send_buffer::between_pieces(wait, &release))?,
        _ => which(wait, &release),
    };
    // Where no handshake says how the windows are scaled, it may be one of those.
    let confidence = if wait.half.scale_bounds.is_in_use() { Confidence::Possible } else { confidence };
    let detail = Detail {
        flight_bytes: Some(u64::from(wait.habits.rounds.flight_with(release.flight))),
        window_bytes: (release.window > 0).then(|| u64::from(release.window)),
        ack_delay: (cause == Cause::DelayedAckCwnd).then(|| wait.ack_delay(&release)).flatten(),
        form,
        ..Detail::default()
    };
    let mut split = bandwidth::split(wait);
    if let Some(held) = receiver_think::unread(wait, &release) {
        split.take(held);
    }
    if wait.near_sender() {
        if let Some(late) = queueing::late_acknowledgement(wait, &release) {
            split.take(late);
        }
    } else if !wait.follows(&release) {
        split.take(queueing::behind(wait, &release));
    }
    let charge = Charge::new(cause, wait.half.side, Duration::ZERO, confidence)
        .evidence(release.packet, wait.segment.packet)
        .detail(detail);
    Some(Verdict { split: split.rest(charge), trigger: Trigger::Packet(release.packet) })
}

pub(super) fn which(wait: &Wait<'_>, release: &Release) -> Held {
    let rounds = &wait.habits.rounds;
    let flight = rounds.flight_with(release.flight);
    // In the middle of a round its flight is not complete: what the last ones did says more.
    if rounds.growing && wait.gap < wait.rtt() - wait.rtt().divided_by(4) {
        return (slow_start::cause(rounds, flight), None, Confidence::Likely);
    }
    if send_buffer::drained(wait, release) {
        let again = rounds.drained > 1;
        let confidence = if again { Confidence::Likely } else { Confidence::Possible };
        return (Cause::SendBuffer, Some("drained"), confidence);
    }
    let serialised = bandwidth::rate(wait)
        .map_or(Duration::ZERO, |rate| rate.time_for(wait.half.on_wire(release.flight, 0, wait.mss)));
    let held_back = wait.ack_delay(release).map_or(Duration::ZERO, |delay| delay - serialised);
    if receiver_think::on_one_host(wait, release, held_back) {
        return (Cause::ReceiverThink, Some("slow-reader"), Confidence::Likely);
    }
    // A window of a segment or two opens with the next acknowledgements, however late they come.
    if !rounds.lost && rounds.flatness(flight, wait.mss) >= FLAT_ROUNDS {
        return send_buffer::flat(wait, release, Confidence::Likely);
    }
    if delayed_ack_cwnd::is_cause(wait, release, held_back) {
        return (Cause::DelayedAckCwnd, None, Confidence::Likely);
    }
    if !rounds.lost && !rounds.opens(flight) {
        match rounds.flatness(flight, wait.mss) {
            0 => {}
            1 => return send_buffer::flat(wait, release, Confidence::Possible),
            _ => return send_buffer::flat(wait, release, Confidence::Likely),
        }
    }
    if !rounds.lost && rounds.growth.with(flight, wait.mss) == Shape::Uneven && is_whole_round(wait) {
        let (cause, form, confidence) = send_buffer::flat(wait, release, Confidence::Possible);
        return (cause, form.or(Some("uneven")), confidence);
    }
    let (cause, form) = phase(rounds, flight);
    if form == Some("avoidance") && rounds.fill(flight, wait.half.view.window) && !rounds.lost {
        return (Cause::ReceiveWindow, Some(receive_window::form(wait.half, wait)), Confidence::Likely);
    }
    if cause == Cause::SlowStartAfterIdle && slow_start::was_kept(rounds, flight) {
        return (Cause::CongestionWindow, Some("avoidance"), Confidence::Possible);
    }
    if form == Some("avoidance") && pacing::spans_round(wait) {
        // A window that never closes has let more pass: its pace holds it, not that.
        let below = rounds.is_below_peak(flight, wait.mss);
        let (cause, form) = if below { (Cause::Pacing, None) } else { (cause, form) };
        return (cause, form, Confidence::Possible);
    }
    (cause, form, Confidence::Likely)
}

/// Which part of its life a congestion window is in that `flight` bytes have used up.
fn phase(rounds: &Rounds, flight: u32) -> (Cause, Option<&'static str>) {
    if rounds.lost {
        return (Cause::CongestionWindow, Some("after-loss"));
    }
    if !rounds.opens(flight) {
        return (Cause::CongestionWindow, Some("avoidance"));
    }
    (slow_start::cause(rounds, flight), None)
}

/// Near the receiver, what the window held before a flight that was lost to its end. The flight before it cannot have been
/// so long: a window begins with ten segments and is twice the largest flight at most (RFC 6928; RFC 5681, 3.1). So what
/// was lost left with the first acknowledgements of that one, and the repair began there.
pub(super) fn before_lost(wait: &Wait<'_>) -> Option<Charge> {
    let (half, rounds) = (wait.half, &wait.habits.rounds);
    let hole = (wait.segment.seq - half.snd_nxt?).max(0) as u32;
    // Where all of it goes out again, its packets are missing by their identification, and a copy or two with them.
    let counted = u32::from(half.missed_since_data.saturating_sub(2)).saturating_mul(wait.mss);
    let (lost, confidence) = if hole >= counted || half.numbers_its_packets() {
        (hole.max(counted), Confidence::Likely)
    } else {
        (counted, Confidence::Possible)
    };
    let most = (INITIAL_WINDOW_SEGMENTS * wait.mss).max(rounds.largest.saturating_mul(2));
    let released =
        half.view.unanswered_since.filter(|_| !wait.near_sender() && wait.last.queue != Queue::Emptied)?;
    if lost == 0 || rounds.flight.saturating_add(lost).saturating_add(wait.segment.payload_len) <= most {
        return None;
    }
    let (cause, form) = phase(rounds, rounds.flight);
    let detail = Detail { flight_bytes: Some(u64::from(rounds.flight)), form, ..Detail::default() };
    let charge = Charge::new(cause, half.side, released - wait.last.at, confidence);
    Some(charge.evidence(wait.last.packet, wait.segment.packet).detail(detail))
}

/// Whether writes have piled up behind small segments, each of which emptied the queue: a full segment that leaves with
/// an acknowledgement is several of them, and a congestion window of so many packets was all that held them.
fn piled_up(wait: &Wait<'_>) -> bool {
    wait.segment.payload_len >= wait.mss && wait.last.len < wait.mss / 2 && wait.last.flight_segments >= 3
}

/// Far from the sender, a segment of a queue that was not empty may have been late on its way, or the acknowledgement
/// was: nothing else can have let it leave. Near a slow host it comes shortly behind, as nothing paced would.
fn follows_late(wait: &Wait<'_>, release: &Release) -> bool {
    let late = wait.segment.at - release.effective;
    let most =
        if wait.near_sender() { wait.gap.divided_by(8).min(SLOW_HOST) } else { wait.own.divided_by(2) };
    wait.last.queue != Queue::Emptied
        && release.effective > wait.last.at
        && late.is_positive()
        && late <= most
}

/// Whether the segment left as a duplicate or selective acknowledgement arrived.
fn after_loss_signal(wait: &Wait<'_>) -> bool {
    wait.half.view.loss_signal.is_some_and(|at| at > wait.last.at && wait.segment.at - at <= wait.hair())
}

/// Whether a loss was signalled within the last round trip.
pub(super) fn recovering(wait: &Wait<'_>) -> bool {
    wait.half.view.loss_signal.is_some_and(|at| at + wait.rtt() + wait.hair() >= wait.segment.at)
}
