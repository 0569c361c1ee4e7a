//! Did a message wait for window space before its first segment left?
//!
//! Proof: the window had no room for a byte, and the segment follows the acknowledgement that
//! opened it.
//! Refuted by: a segment at another time; earlier room for part of it.
//! Source: RFC 9293, 3.8.6.1 (into a zero window only probes are sent). A front end that answers a
//! SYN before it has a back end opens its window after the handshake.
//! Seen from: both ends.
//!
//! The program may have written just then, so this is at most likely.

use tcpwhy_wire::{Instant, Segment};

use super::pair::Pair;
use crate::bill::charge::Charge;
use crate::words::cause::Cause;
use crate::words::form::Form;
use crate::words::limits::{HOST_VARIATION, QUEUED_MIN, ROUND_TRIP_PLAY};
use crate::words::report::{Confidence, Detail};

/// How long the message of `from` waited for window space before its first segment, with nothing
/// under way since `idle_since`.
pub(crate) fn judge(
    pair: &Pair<'_>,
    segment: &Segment,
    from: usize,
    idle_since: Option<Instant>,
) -> Option<Charge> {
    let flow = &pair.flows[from];
    let opened = flow.view.window_opened().filter(|opened| opened.room <= 0)?;
    let waited = opened.earliest_departure - idle_since?;
    let late = segment.at - opened.earliest_departure;
    let play = HOST_VARIATION + pair.tap_rtt[from].divided_by(ROUND_TRIP_PLAY);
    if waited < QUEUED_MIN || late > play || late < -play {
        return None;
    }
    // Before anything was sent there was nothing to read.
    let begins = flow.last_data.is_none();
    let cause = if begins { Cause::ReceiveWindow } else { Cause::ReceiverThink };
    let detail = Detail {
        window_bytes: Some(u64::from(opened.window)),
        flight_bytes: Some(0),
        form: (!begins).then_some(Form::ZeroWindow),
        ..Detail::default()
    };
    let ns = segment.at - idle_since?;
    let charge = Charge::new(cause, flow.side, ns, Confidence::Likely);
    Some(charge.evidence(opened.packet, segment.packet).released_by(opened.packet).detail(detail))
}
