//! What part of a wait did the bottleneck need for the bytes themselves, whatever else held the
//! sender?
//!
//! Proof: near the sender, the rate of the acknowledgements and the bytes that had passed the
//! capture show how long the link was busy; near the receiver, the segment's bytes over the rate at
//! which bytes arrive.
//! Refuted by: acknowledgements that stop for longer than the link's usual spacing (the link was
//! idle); a rate that still rises, without time stamps. A rate that one interval or clumps have shown is at most possible,
//! unless what left together has waited for each other as long as it says. Longer than all that was under way needs at
//! that rate is at most possible.
//! Source: arithmetic: bytes over rate (`estimate/bottleneck.rs`, `estimate/rate.rs`).
//! Seen from: both ends; at most possible where acknowledgements come irregularly.

use tcpwhy_wire::Duration;

use super::wait::Wait;
use crate::bill::charge::Charge;
use crate::bill::split::Split;
use crate::estimate::rate::Rate;
use crate::flow::direction::Flow;
use crate::flow::segment_class::SegmentClass;
use crate::words::cause::Cause;
use crate::words::limits::{BURST_GAP, QUEUED_MIN};
use crate::words::report::{Confidence, Detail};

/// A link was idle only if the wait exceeds twice the time it needed by more than this. Source:
/// none written down.
const IDLE_MIN: Duration = Duration::from_micros(300);

/// A link's rate is that of its last runs: at most this many times faster than it was for any other flight.
/// Source: none written down.
const RATE_PLAY: i64 = 2;

/// The bottleneck's rate as seen from this capture point.
pub(crate) fn rate(wait: &Wait<'_>) -> Option<Rate> {
    wait.flow.rate(wait.near_sender())
}

/// A wait with the time taken off in which the bottleneck was busy with bytes of this transfer:
/// whatever else held the sender delayed nothing meanwhile.
pub(crate) fn split(wait: &Wait<'_>) -> Split {
    let mut split = Split::of(wait.gap);
    let busy = busy(wait);
    if busy.is_positive() {
        // Packets missing from the capture make acknowledgements look late, and if acknowledgements
        // come irregularly, the rate of the link is a guess.
        let flow = wait.flow;
        let uneven = wait.gap >= BURST_GAP
            && if wait.near_sender() {
                let few = flow.acknowledgements.is_outrun() && !flow.acknowledgements.is_settled();
                few || flow.acknowledgements.is_uneven() || has_a_guessed_rate(flow)
            } else {
                // Paced segments that were held up on the path arrive back to back: that shows no
                // link.
                flow.is_paced() && !flow.arrivals.has_whole_runs()
                    || !flow.timestamps && (flow.arrivals.is_uneven() || flow.arrivals.is_outrun())
            };
        let guessed = wait.flow.missing_from_capture || uneven || is_too_long(wait, busy);
        let confidence = if guessed { Confidence::Possible } else { Confidence::Likely };
        let mut charge = Charge::new(Cause::Bandwidth, wait.flow.side, busy, confidence)
            .evidence(wait.last.packet, wait.segment.packet);
        if wait.gap >= BURST_GAP {
            let rate_bps = rate(wait).map(Rate::bits_per_second);
            charge = charge.detail(Detail { rate_bps, ..Detail::default() });
        }
        split.take(charge);
    }
    split
}

/// Whether the rate that acknowledgements show may be that of something else than a link: too few have shown it; or a single interval or jerks
/// have, which what left together has not confirmed.
pub(super) fn has_a_guessed_rate(flow: &Flow) -> bool {
    let acks = &flow.acknowledgements;
    let by_chance = acks.is_one_interval() || acks.is_jerky();
    acks.is_guess() || by_chance && !flow.unusual.bursts.confirm()
}

/// Whether the bottleneck, at its rate, would have been through much sooner with all that was under way.
fn is_too_long(wait: &Wait<'_>, busy: Duration) -> bool {
    let segments = wait.last.flight_segments.into();
    let flight = || wait.flow.on_wire(wait.last.flight, segments, wait.mss);
    busy > QUEUED_MIN && wait.near_sender() && rate(wait).is_some_and(|rate| exceeds(busy, rate, flight()))
}

/// Whether a link of this rate cannot have worked so long on so many bytes: something else held them, or
/// their acknowledgements, up.
pub(super) fn exceeds(busy: Duration, rate: Rate, bytes: u32) -> bool {
    busy > rate.time_for(bytes).times(RATE_PLAY) + QUEUED_MIN
}

/// How long the bottleneck was busy between the two segments: near the sender, with the bytes that
/// had passed the capture by then; near the receiver, with the second segment.
fn busy(wait: &Wait<'_>) -> Duration {
    if wait.near_sender() {
        if matches!(wait.class, SegmentClass::Retransmission { .. }) && wait.flow.was_timed() {
            return Duration::ZERO;
        }
        let busy = wait.flow.unusual.busy_from(wait.last.at).min(wait.gap);
        let silent = wait.flow.silent_from(wait.last.at, wait.segment.at, wait.rtt_to_receiver);
        return silent.map_or(busy, |silent| busy.min(silent));
    }
    // Without time stamps, only the spacing tells a link from a pacing sender.
    if !wait.flow.timestamps && wait.flow.arrivals.is_rising() {
        return Duration::ZERO;
    }
    let Some(rate) = rate(wait) else { return Duration::ZERO };
    let needed = rate.time_for(wait.flow.on_wire(wait.segment.payload_len, 1, wait.mss));
    // If it was hardly idle, count it as busy throughout.
    let idle = wait.flow.is_paced() || wait.gap > needed.times(2) + IDLE_MIN;
    if idle { needed.min(wait.gap) } else { wait.gap }
}
