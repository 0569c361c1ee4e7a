//! How long did the bottleneck work on a message's last flight after it had passed the capture?
//!
//! Proof: the flight is acknowledged, and the acknowledgements show the bottleneck busy after its
//! last segment.
//! Refuted by: bytes not acknowledged yet; duplicates after the last acknowledged byte, which
//! nobody waits for. More time than what was under way needs at that rate was not the link's alone: at
//! most possible.
//! Source: arithmetic: bytes over the rate that acknowledgements show (`estimate/rate.rs`).
//! Seen from: near the sender; near the receiver, the bottleneck comes before the capture.

use tcpwhy_wire::Duration;

use super::link_share::{exceeds, has_a_guessed_rate};
use crate::bill::charge::Charge;
use crate::bill::exchange::Open;
use crate::estimate::rate::Rate;
use crate::flow::direction::Flow;
use crate::words::cause::Cause;
use crate::words::report::{Confidence, Detail};

/// Charges the time that the last flight still needs at the bottleneck after passing the capture,
/// as its acknowledgements show. `flow` is its sender, at `rtt_to_sender` from the capture; its
/// peer is at `rtt_to_receiver`.
pub(crate) fn charge(
    flow: &Flow,
    mss: u32,
    [rtt_to_sender, rtt_to_receiver]: [Duration; 2],
    open: &mut Open,
) {
    let Some(last) = open.last_path().last.filter(|_| rtt_to_receiver > rtt_to_sender) else { return };
    // Unknown until all is acknowledged; a FIN counts as a byte.
    if flow.outstanding() > u32::from(flow.fin.is_some()) {
        return;
    }
    // Whatever the link carries after the last acknowledged byte is duplicates, which nobody waits
    // for.
    let late = match flow.acknowledgements.last() {
        Some(acked) => flow.unusual.link.busy_between(last.at, acked - rtt_to_receiver),
        None => flow.unusual.busy_from(last.at),
    };
    if !late.is_positive() {
        return;
    }
    let rate = flow.rate(true);
    let detail = Detail { rate_bps: rate.map(Rate::bits_per_second), ..Detail::default() };
    let flight = || flow.on_wire(last.flight, last.flight_segments.into(), mss);
    let too_long = rate.is_none_or(|rate| exceeds(late, rate, flight()));
    // An acknowledgement of what the capture has missed does not say when the rest had arrived.
    let too_long = too_long || flow.acked_unseen();
    let too_long = too_long || has_a_guessed_rate(flow);
    let confidence = if too_long { Confidence::Possible } else { Confidence::Likely };
    let drain = Charge::new(Cause::Bandwidth, flow.side, late, confidence)
        .evidence(last.packet, last.packet)
        .detail(detail);
    open.last_path().settle().charge(&drain);
}
