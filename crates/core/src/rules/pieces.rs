//! What holds a sender after a segment that had emptied its queue, although its application writes
//! on at once?
//!
//! Proof: the sender has continued at once after such a piece before, many segments are in flight,
//! and it continues a round trip later on an acknowledgement; or as many small packets are in
//! flight as the window counts.
//! Refuted by: a small flight, or no acknowledgement to follow.
//! Source: splice_direct_to_actor, fs/splice.c (sendfile by 16 pages); TCP_INIT_CWND,
//! include/net/tcp.h; tcp_minshall_check, net/ipv4/tcp_output.c; sk_wmem_alloc counts truesize,
//! net/core/sock.c, Linux 6.12.
//! Seen from: both ends.

use super::used_up::which;
use super::verdict::Held;
use super::wait::Wait;
use super::whole_round::{WHOLE_ROUND_MIN, lasts_a_round};
use crate::flow::view::ClockingAck;
use crate::words::cause::Cause;
use crate::words::form::Form;
use crate::words::limits::INITIAL_WINDOW_SEGMENTS;
use crate::words::report::Confidence;

/// A sender that continues at once after a piece that had emptied its queue
/// (`send_buffer::writes_on`) waits for the same acknowledgements after such a piece as after any
/// other.
pub(super) fn between_pieces(wait: &Wait<'_>, ack: &ClockingAck) -> Option<Held> {
    let many = wait.last.flight >= INITIAL_WINDOW_SEGMENTS * wait.mss && wait.last.len > wait.mss;
    let whole_round = lasts_a_round(wait) && wait.gap >= WHOLE_ROUND_MIN;
    if !(wait.model.writes_on && many && whole_round && wait.is_full()) {
        return None;
    }
    let (cause, form, _) = which(wait, ack);
    Some((cause, form, Confidence::Possible))
}

/// A sender without Nagle sends small packets one by one until the window's count is in flight
/// (TCP_INIT_CWND, 10, at first); what the application writes from then on is coalesced and leaves
/// on the next acknowledgement. If segments do not get larger, the application was blocked too:
/// small packets fill a send buffer by the kernel's overhead for each (sk_wmem_alloc counts
/// truesize).
pub(super) fn counted_out(wait: &Wait<'_>, ack: &ClockingAck) -> Option<Held> {
    let segments = wait.last.unheard.max(wait.last.flight_segments.into());
    let unheard = wait.last.snd_una.map_or(0, |snd_una| (wait.segment.seq - snd_una).max(0) as u32);
    // With Nagle, at most one small segment is in flight (tcp_minshall_check,
    // net/ipv4/tcp_output.c).
    let small = wait.last.flight.max(unheard) < segments.saturating_sub(1) * wait.mss;
    let nagle_is_off = wait.model.nagle_ignored > 0 || small;
    if segments < INITIAL_WINDOW_SEGMENTS || !nagle_is_off || !wait.follows(ack) {
        return None;
    }
    if wait.segment.payload_len > wait.last.len {
        return Some(which(wait, ack));
    }
    let whole_round = lasts_a_round(wait) && wait.gap >= WHOLE_ROUND_MIN;
    whole_round.then_some((Cause::SendBuffer, Some(Form::SmallWrites), Confidence::Possible))
}
