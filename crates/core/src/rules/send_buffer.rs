//! Was the sending socket's buffer full, so that its application could not write on?
//!
//! Proof: flights that stay the same where a congestion window would have grown, or a sender that lets acknowledgements pass
//! and goes on when a third of its buffer is free.
//! Refuted by: an advertised window that the same flight uses up; whoever paces its segments, or keeps a beat of its own,
//! makes it no more than possible.
//! Source: RFC 5681, 3.1; sk_stream_write_space, net/core/stream.c; tcp_sendmsg_locked, net/ipv4/tcp.c, Linux 6.12.
//! Seen from: both ends; far from the sender, when it had the acknowledgements is known as well as the way to it.
//!
//! A buffer holds what is not acknowledged (sk_wmem_queued against sk_sndbuf), so that no more than its size is ever in
//! flight. How flights grow is told in `estimate/growth.rs`.

use super::verdict::{Held, Verdict};
use super::wait::Wait;
use super::{pacing, receive_window};
use crate::flow::segment_class::SendQueue;
use crate::flow::view::ClockingAck;
use crate::words::cause::Cause;
use crate::words::form::Form;
use crate::words::limits::{BURST_GAP, HELD_BACK_MIN, SEND_BUFFER_MIN};
use crate::words::report::Confidence;

/// Rounds of one flight: the advertised window's, or the send buffer's. A sender that has less room than it likes to send
/// at once waits for more of it (tcp_tso_should_defer, net/ipv4/tcp_output.c), so that a window is used up when little
/// is left of it.
pub(super) fn flat(wait: &Wait<'_>, ack: &ClockingAck, confidence: Confidence) -> Held {
    let rounds = &wait.model.rounds;
    let little = ack.window > 0 && i64::from(ack.room) <= i64::from(ack.window / 8);
    if little || rounds.fill(rounds.flight_with(ack.flight), wait.flow.view.window) {
        return (Cause::ReceiveWindow, Some(receive_window::form(wait.flow, wait)), confidence);
    }
    // What fills a buffer leaves in trains, as room comes; who spaces segments all over the round trip paces them.
    if pacing::spans_round(wait) {
        return (Cause::Pacing, None, Confidence::Possible);
    }
    // Whoever keeps a beat looks the same if that is nearly as slow as the path is long.
    let beat = wait.flow.is_paced() || wait.flow.unusual.cadence.is_steady();
    (Cause::SendBuffer, None, if beat { Confidence::Possible } else { confidence })
}

/// Whether the sender let acknowledgements of half its flight pass before it went on. Whom a window holds sends for each
/// of them; a writer that sleeps for room in its send buffer is woken when a third of it is free (sk_stream_write_space,
/// net/core/stream.c).
pub(super) fn drained(wait: &Wait<'_>, ack: &ClockingAck) -> bool {
    let flow = wait.flow;
    let by_release = ack.flight.saturating_sub(ack.left);
    let passed = flow.acked_since(wait.last).saturating_sub(by_release);
    // Far from the sender, the time at which it had them is known as well as the way to it.
    let blurred = if wait.near_sender() { BURST_GAP } else { wait.tolerance().times(3) };
    let went_on = ack.earliest_departure.min(wait.segment.at); // what it was late by on its way is no part of it
    let since = flow.view.unanswered_since.get().filter(|&since| went_on - since >= blurred);
    since.is_some() && !wait.recovering() && passed >= ack.flight.saturating_add(passed) / 2
}

/// How many bytes were left in flight when a sender went on that had let acknowledgements pass.
pub(super) fn drained_to(wait: &Wait<'_>, verdict: &Verdict) -> Option<u32> {
    let by_buffer = verdict.split.has(Cause::SendBuffer.bit());
    let ack = wait.flow.view.clocking_ack().filter(|_| by_buffer)?;
    drained(wait, &ack).then_some(ack.left)
}

/// A writer that finds its send buffer full pushes what fitted (tcp_sendmsg_locked, net/ipv4/tcp.c), as if that were the end of
/// the message, and goes on when a third of it is free (sk_stream_write_space, net/core/stream.c): with the very
/// acknowledgement that makes it a third. What is acknowledged as a whole long after it arrived had not been read.
pub(super) fn mid_write(wait: &Wait<'_>, ack: &ClockingAck) -> Option<Held> {
    let by_release = ack.flight.saturating_sub(ack.left);
    let before = wait.flow.acked_since(wait.last).saturating_sub(by_release);
    let third = wait.last.flight / 3;
    let full = wait.last.flight >= SEND_BUFFER_MIN && wait.is_full() && wait.gap >= HELD_BACK_MIN;
    if !full || before >= third || before + by_release < third || !wait.follows(ack) {
        return None;
    }
    let held_back = wait.ack_delay(ack).is_some_and(|delay| delay >= HELD_BACK_MIN);
    if held_back && ack.left < ack.flight / 4 {
        return Some((Cause::ReceiverThink, Some(Form::SlowReader), Confidence::Possible));
    }
    Some((Cause::SendBuffer, Some(Form::Drained), Confidence::Possible))
}

/// Whether a sender went on at once behind a piece that had emptied its queue: sendfile hands over what its pipe holds (16 pages
/// of 4 KB; splice_direct_to_actor, fs/splice.c), and the last packet of each such piece is small and pushed.
pub(super) fn writes_on(wait: &Wait<'_>) -> bool {
    wait.last.queue == SendQueue::Emptied
        && wait.last.len > wait.mss
        && wait.is_full()
        && wait.gap < BURST_GAP
}
