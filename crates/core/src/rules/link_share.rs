//! What part of a wait did the bottleneck need for the bytes themselves, whatever else held the sender?
//!
//! Proof: near the sender, the acknowledgements' rate and what had passed the capture say for how long the link was busy;
//! near the receiver, the segment's bytes over the rate at which bytes arrive.
//! Refuted by: acknowledgements that stay away for longer than the link's usual distance (it stood idle); a rate that still
//! rises, without time stamps.
//! Source: arithmetic: bytes over rate (`estimate/bottleneck.rs`, `estimate/rate.rs`).
//! Seen from: both ends; where acknowledgements come by fits and starts it is no more than possible.

use tcpwhy_wire::Duration;

use super::wait::Wait;
use crate::bill::charge::Charge;
use crate::bill::split::Split;
use crate::estimate::rate::Rate;
use crate::flow::segment_class::SegmentClass;
use crate::words::cause::Cause;
use crate::words::limits::BURST_GAP;
use crate::words::report::{Confidence, Detail};

/// A link that was idle for less than this beside as long as it worked may not have been. Source: none written down.
const IDLE_MIN: Duration = Duration::from_micros(300);

/// The bottleneck's rate as this vantage shows it.
pub(crate) fn rate(wait: &Wait<'_>) -> Option<Rate> {
    wait.flow.rate(wait.near_sender())
}

/// A wait less the time in which the bottleneck was busy with bytes of this transfer: whatever else held the sender
/// delayed nothing meanwhile.
pub(crate) fn split(wait: &Wait<'_>) -> Split {
    let mut split = Split::of(wait.gap);
    let busy = busy(wait);
    if busy.is_positive() {
        // What the capture did not see makes acknowledgements look late; and where they come by fits and starts, how fast the
        // link is is a guess.
        let flow = wait.flow;
        let uneven = wait.gap >= BURST_GAP
            && if wait.near_sender() {
                let few = flow.acknowledgements.is_outrun() && !flow.acknowledgements.is_settled();
                flow.acknowledgements.is_uneven() || flow.acknowledgements.is_guess() || few
            } else {
                // What the path holds up of paced segments comes together behind that: it shows no link.
                flow.is_paced() && !flow.arrivals.has_whole_runs()
                    || !flow.timestamps && (flow.arrivals.is_uneven() || flow.arrivals.is_outrun())
            };
        let guessed = wait.flow.missing_from_capture || uneven;
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

/// For how long the bottleneck was busy between the two segments. Near the sender, with what had passed the capture by
/// then; near the receiver, with the second one.
fn busy(wait: &Wait<'_>) -> Duration {
    if wait.near_sender() {
        if matches!(wait.class, SegmentClass::Retransmission { .. }) && wait.flow.was_timed() {
            return Duration::ZERO;
        }
        let busy = wait.flow.unusual.busy_from(wait.last.at).min(wait.gap);
        let silent = wait.flow.silent_from(wait.last.at, wait.segment.at, wait.rtt_to_receiver);
        return silent.map_or(busy, |silent| busy.min(silent));
    }
    // Without time stamps nothing but the spacing itself tells a link from a sender that paces.
    if !wait.flow.timestamps && wait.flow.arrivals.is_rising() {
        return Duration::ZERO;
    }
    let Some(rate) = rate(wait) else { return Duration::ZERO };
    let needed = rate.time_for(wait.flow.on_wire(wait.segment.payload_len, 1, wait.mss));
    // Where it hardly stood idle, it did not.
    let idle = wait.flow.is_paced() || wait.gap > needed.times(2) + IDLE_MIN;
    if idle { needed.min(wait.gap) } else { wait.gap }
}
