//! For how long did the bottleneck work on a message's last flight after that had passed the capture?
//!
//! Proof: all of it is acknowledged, and the acknowledgements show the bottleneck busy behind its last segment.
//! Refuted by: bytes that are not acknowledged yet; copies behind the last byte that was, for which nobody waits.
//! Source: arithmetic: bytes over the rate that acknowledgements show (`estimate/rate.rs`).
//! Seen from: near the sender; near the receiver the bottleneck is in front of the capture.

use tcpwhy_wire::Duration;

use crate::bill::charge::Charge;
use crate::bill::exchange::Open;
use crate::estimate::rate::Rate;
use crate::flow::direction::Flow;
use crate::words::cause::Cause;
use crate::words::report::{Confidence, Detail};

/// Behind the capture the last flight still has to pass the bottleneck: its acknowledgements show for how long. `flow` is its
/// sender, `rtt_to_sender` away from the capture, and its peer `rtt_to_receiver`.
pub(crate) fn charge(flow: &Flow, [rtt_to_sender, rtt_to_receiver]: [Duration; 2], open: &mut Open) {
    let Some(last) = open.last_path().last.filter(|_| rtt_to_receiver > rtt_to_sender) else { return };
    // Until it is acknowledged nobody knows; a FIN behind it counts as a byte.
    if flow.outstanding() > u32::from(flow.fin.is_some()) {
        return;
    }
    // What passes the link behind the last byte that was acknowledged is copies, for which nobody waits.
    let late = match flow.acknowledgements.last() {
        Some(acked) => flow.unusual.link.busy_between(last.at, acked - rtt_to_receiver),
        None => flow.unusual.busy_from(last.at),
    };
    if !late.is_positive() {
        return;
    }
    let detail = Detail { rate_bps: flow.rate(true).map(Rate::bits_per_second), ..Detail::default() };
    let drain = Charge::new(Cause::Bandwidth, flow.side, late, Confidence::Likely)
        .evidence(last.packet, last.packet)
        .detail(detail);
    open.last_path().settle().charge(&drain);
}
