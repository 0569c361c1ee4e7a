//! Does the path lose all large packets and no small one?
//!
//! Proof: near the sender, none of the first full segments was acknowledged, the missing one was
//! sent at least three times, and the data after it has arrived, or a smaller retransmission gets
//! through at once; near the receiver, the sender has more to send but no full segment ever
//! arrived, and what fills the hole is smaller.
//! Refuted by: an acknowledgement that covers a full segment; segments of the repair's length that arrived before.
//! Source: RFC 2923, 2.1; tcp_mtu_probing, net/ipv4/tcp_timer.c, Linux 6.12.
//! Seen from: both ends; near the receiver only where the handshake is captured.

use tcpwhy_wire::{Instant, Segment};

use super::wait::Wait;
use crate::flow::direction::Flow;
use crate::flow::segment_class::{SegmentClass, SendQueue};
use crate::words::form::Form;
use crate::words::limits::ROUND_TRIP_PLAY;

/// The form of a loss on such a path.
pub(crate) const FORM: Form = Form::BlackHole;

/// Whether the segment retransmits data that was too large for the path.
pub(super) fn is_repaired(wait: &Wait<'_>) -> bool {
    let flow = wait.flow;
    match wait.class {
        SegmentClass::Retransmission { .. } => {
            flow.large.is_stuck(wait.segment.payload_len, wait.mss, flow.sack_pending)
        }
        SegmentClass::OutOfOrderOrRepair { .. } | SegmentClass::New => {
            !wait.midway && is_first_small(flow, wait.segment, wait.mss)
        }
        SegmentClass::Duplicate | SegmentClass::Probe => false,
    }
}

/// Whether bytes of this direction were still missing when the reader closed, and whether they were
/// too large for the path, as far as the capture shows.
pub(crate) fn unrepaired(flow: &Flow, mss: u32, closed_at: Instant) -> Option<Form> {
    let repeated = flow.sent.front().is_some_and(|sent| sent.retransmitted) || flow.large.is_repeated();
    let hole = flow.had_hole(closed_at);
    if !hole && !repeated {
        return None;
    }
    let stuck = flow.large.is_stuck(mss, mss, flow.sack_pending);
    let none_came = hole && flow.mss_announced.is_some() && flow.large.is_none_seen();
    Some(if stuck || none_came { FORM } else { Form::Unrepaired })
}

/// Near the receiver: whether this is a short segment from a sender none of whose full segments has
/// arrived, nor one as short as this from a queue: some begin with segments of 536 bytes (RFC 9293, 3.7.1).
pub(super) fn is_first_small(flow: &Flow, segment: &Segment, mss: u32) -> bool {
    let known = flow.mss_announced.is_some();
    // What came into a hole had more behind it, whatever ended the message beyond.
    let filled = flow.unusual.filled.map(|(_, packet)| packet);
    let as_usual = || {
        flow.last_data.is_some_and(|last| {
            let queued = last.queue == SendQueue::More || filled == Some(last.packet);
            queued && last.len >= segment.payload_len
        })
    };
    known && flow.large.is_none_seen() && segment.payload_len < mss && !segment.flags.psh() && !as_usual()
}

/// Near the sender: whether less than a full segment is sent again where a full one is the first that is missing, sooner than anything can have come back
/// from the receiver. No probe does (2 SRTT: RFC 8985, 7.2), and no timer: a router has said that the segment was too large (RFC 1191, 6.3;
/// tcp_simple_retransmit, net/ipv4/tcp_output.c).
pub(super) fn is_in_pieces(wait: &Wait<'_>) -> bool {
    let SegmentClass::Retransmission { original_at } = wait.class else { return false };
    let soonest = wait.rtt() - wait.rtt().divided_by(ROUND_TRIP_PLAY);
    let first = wait.flow.sent.front().zip(wait.flow.highest_ack);
    let full = first.is_some_and(|(sent, acked)| i64::from(sent.end - acked) >= i64::from(wait.mss));
    let less = full && wait.segment.payload_len < wait.mss;
    wait.near_sender() && less && wait.segment.at - original_at < soonest
}
