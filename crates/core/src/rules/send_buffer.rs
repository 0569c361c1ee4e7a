//! Was the sending socket's buffer full, so that its application could not continue to write?
//!
//! Proof: flights that stay constant where a congestion window would have grown, or a sender that
//! lets acknowledgements pass and continues when a third of its buffer is free.
//! Refuted by: an advertised window that the same flight uses up; pacing, or a steady spacing of
//! the sender's own, makes it at most possible.
//! Source: RFC 5681, 3.1; sk_stream_write_space, net/core/stream.c; tcp_sendmsg_locked,
//! net/ipv4/tcp.c, Linux 6.12.
//! Seen from: both ends; far from the sender, when it had the acknowledgements is only known as
//! well as the path to it.
//!
//! A buffer holds unacknowledged data (sk_wmem_queued against sk_sndbuf), so its size bounds the
//! flight. How flights grow is computed in `estimate/growth.rs`.

use tcpwhy_wire::Duration;

use super::verdict::{Held, Verdict};
use super::wait::Wait;
use super::{pacing, receive_window};
use crate::flow::segment_class::SendQueue;
use crate::flow::view::ClockingAck;
use crate::words::cause::Cause;
use crate::words::form::Form;
use crate::words::limits::{BURST_GAP, HELD_BACK_MIN, SEND_BUFFER_MIN};
use crate::words::report::Confidence;

/// Rounds of constant flight: the advertised window is the limit, or the send buffer. A sender with
/// less room than it likes to send at once waits for more (tcp_tso_should_defer,
/// net/ipv4/tcp_output.c), so a window counts as used up when little of it is left.
pub(super) fn flat(wait: &Wait<'_>, ack: &ClockingAck, confidence: Confidence) -> Held {
    let rounds = &wait.model.rounds;
    let little = ack.window > 0 && i64::from(ack.room) <= i64::from(ack.window / 8);
    if little || rounds.fill(rounds.flight_with(ack.flight), wait.flow.view.window) {
        return (Cause::ReceiveWindow, Some(receive_window::form(wait.flow, wait)), confidence);
    }
    // A full buffer sends trains as room comes; segments spread over the whole round trip are
    // paced.
    if pacing::spans_round(wait) {
        return (Cause::Pacing, None, Confidence::Possible);
    }
    // A steady spacing looks the same if it is nearly as slow as the path is long.
    let beat = wait.flow.is_paced() || wait.flow.unusual.cadence.is_steady();
    (Cause::SendBuffer, None, if beat { Confidence::Possible } else { confidence })
}

/// Whether the sender let acknowledgements of half its flight pass before it continued. A
/// window-limited sender sends on each of them; a writer that sleeps for room in its send buffer is
/// woken when a third of it is free (sk_stream_write_space, net/core/stream.c).
pub(super) fn drained(wait: &Wait<'_>, ack: &ClockingAck) -> bool {
    let flow = wait.flow;
    let by_release = ack.flight.saturating_sub(ack.left);
    let passed = flow.acked_since(wait.last).saturating_sub(by_release);
    // Far from the sender, when it had them is only known as well as the path to it.
    let blurred = if wait.near_sender() { BURST_GAP } else { wait.tolerance().times(3) };
    let went_on = ack.earliest_departure.min(wait.segment.at); // its delay on the way does not count
    let since = flow.view.unanswered_since.get().filter(|&since| went_on - since >= blurred);
    since.is_some() && !wait.recovering() && passed >= ack.flight.saturating_add(passed) / 2
}

/// The bytes left in flight when a sender continued after letting acknowledgements pass.
pub(super) fn drained_to(wait: &Wait<'_>, verdict: &Verdict) -> Option<u32> {
    let by_buffer = verdict.split.has(Cause::SendBuffer.bit());
    let ack = wait.flow.view.clocking_ack().filter(|_| by_buffer)?;
    drained(wait, &ack).then_some(ack.left)
}

/// A writer that finds its send buffer full pushes what fitted (tcp_sendmsg_locked,
/// net/ipv4/tcp.c), as if that were the end of the message, and continues when a third of it is
/// free (sk_stream_write_space, net/core/stream.c): on the very acknowledgement that makes it a
/// third. Data acknowledged as a whole long after it arrived had not been read.
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

/// A writer that continues on the very acknowledgement of all that it had sent, after others, was asleep until then: no
/// program sees an acknowledgement. Windows' buffer of 8 KB lets a program that writes more than that at once write
/// again when all of it has been acknowledged. Once may be by chance.
pub(super) fn on_the_last(wait: &Wait<'_>, ack: &ClockingAck) -> Option<Held> {
    let all = ack.left == 0 && wait.near_sender() && wait.gap >= HELD_BACK_MIN && wait.follows(ack);
    // What the peer says meanwhile, programs do see.
    let said = wait.peer.last_data.as_ref().is_some_and(|said| said.at > wait.last.at);
    if !all || said || !drained(wait, ack) {
        return None;
    }
    let again = wait.model.rounds.drained > 1;
    Some((
        Cause::SendBuffer,
        Some(Form::Drained),
        if again { Confidence::Likely } else { Confidence::Possible },
    ))
}

/// How long the last write waited for the acknowledgement of all that had been sent, and the next one behind that: no program sees an
/// acknowledgement, so a write that follows them whenever they come waits for them, if only for room in a buffer that holds one of them.
pub(super) fn at_heels(wait: &Wait<'_>) -> Option<(Duration, Duration)> {
    let whole = wait.last.queue == SendQueue::Emptied && wait.gap >= BURST_GAP && wait.flow.flight() == 0;
    // What the peer says meanwhile, programs do see.
    let said = wait.peer.last_data.as_ref().is_some_and(|said| said.at > wait.last.at);
    let ack = wait
        .flow
        .view
        .clocking_ack()
        .filter(|ack| whole && !said && ack.left == 0 && wait.may_wait_for(ack))?;
    let acked = ack.earliest_departure - wait.last.at;
    acked.is_positive().then(|| (acked, wait.segment.at - ack.earliest_departure))
}

/// Whether a sender continued at once after a piece that had emptied its queue: sendfile hands over
/// what its pipe holds (16 pages of 4 KB; splice_direct_to_actor, fs/splice.c), and the last packet
/// of each such piece is small and pushed.
pub(super) fn writes_on(wait: &Wait<'_>) -> bool {
    wait.last.queue == SendQueue::Emptied
        && wait.last.len > wait.mss
        && wait.is_full()
        && wait.gap < BURST_GAP
}
