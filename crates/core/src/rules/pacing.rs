//! Did the sender space its segments at a pace of its own?
//!
//! Proof: more was queued, no acknowledgement released the segment, and the spacing is steady, or
//! near the bottleneck's rate.
//! Refuted by: a segment that follows an acknowledgement, a recovery, a window used up every round
//! trip.
//! Source: bbr_set_pacing_rate and bbr_pacing_gain, net/ipv4/tcp_bbr.c; tcp_update_pacing_rate,
//! net/ipv4/tcp_input.c, Linux 6.12; SO_MAX_PACING_RATE, socket(7).
//! Seen from: both ends; a bottleneck near the receiver produces the same spacing, so this is never
//! more than possible.
//!
//! What else a sender with a queue may wait for does not show. A steady spacing, once shown, also
//! counts for earlier waits (`bill/revise.rs`, `Beat`).

use tcpwhy_wire::Duration;

use super::verdict::{Verdict, burst};
use super::wait::Wait;
use super::{link_share, receive_window, slow_start};
use crate::bill::charge::Charge;
use crate::flow::segment_class::SendQueue;
use crate::words::cause::Cause;
use crate::words::form::Form;
use crate::words::report::{Confidence, Detail};

/// Segments that fit this many times into a round trip are spread all over it. Source: none written
/// down.
const SPREAD: i64 = 4;
/// A pace of at least one part in this many of the bottleneck's rate is near it (three quarters,
/// bbr_pacing_gain, and an estimate below the rate).
const NEAR_RATE: i64 = 3;

/// Whether the sender keeps a steady spacing of its own, with which acknowledgements coincide by
/// chance. A steady spacing made by a queue before the bottleneck is the link's (`link_share`).
pub(super) fn paced(wait: &Wait<'_>) -> bool {
    wait.last.queue != SendQueue::Emptied && wait.flow.unusual.cadence.is_kept(wait.rtt())
}

/// More was queued, but no acknowledgement of new data released it: recovery continues on duplicate
/// and selective acknowledgements (RFC 6675); otherwise the sender spaced its segments, or the
/// bottleneck did.
pub(super) fn spaced(wait: &Wait<'_>) -> Verdict {
    let split = link_share::split(wait);
    let (cause, form) = if wait.recovering() {
        (Cause::CongestionWindow, Some(Form::Recovery))
    } else if wait.model.rounds.fill(wait.model.rounds.flight, wait.flow.view.window)
        && !wait.model.rounds.growing
    {
        (Cause::ReceiveWindow, Some(receive_window::form(wait.flow, wait)))
    } else if wait.gap >= wait.rtt().divided_by(2)
        && (wait.flow.unusual.cadence.is_steady() || near_rate(wait))
    {
        (Cause::Pacing, None)
    } else if wait.gap >= wait.rtt().divided_by(2) {
        (Cause::Unexplained, None)
    } else if wait.model.rounds.growing {
        // The pace follows the window: two windows per round trip (tcp_update_pacing_rate,
        // net/ipv4/tcp_input.c), or what BBR's startup has found so far.
        (slow_start::cause(&wait.model.rounds, wait.model.rounds.flight), Some(Form::Paced))
    } else {
        (Cause::Pacing, None)
    };
    let charge = Charge::new(cause, wait.flow.side, Duration::ZERO, Confidence::Possible)
        .evidence(wait.last.packet, wait.segment.packet)
        .detail(Detail { form, ..Detail::default() });
    Verdict { split: split.rest(charge), trigger: burst(wait.last, wait.segment.at) }
}

/// Whether the sender spreads its segments over the whole round trip: a seeming window may be its
/// pace.
pub(super) fn spans_round(wait: &Wait<'_>) -> bool {
    wait.flow.is_paced() && wait.gap.times(SPREAD) <= wait.rtt()
}

/// Whether the gap is hardly longer than the bottleneck needs for the last segment: pacing stays
/// near that rate, at three quarters of it while a queue drains, and below it while the rate is
/// underestimated (bbr_pacing_gain, net/ipv4/tcp_bbr.c).
pub(super) fn near_rate(wait: &Wait<'_>) -> bool {
    let needed =
        link_share::rate(wait).map(|rate| rate.time_for(wait.flow.on_wire(wait.last.len, 0, wait.mss)));
    needed.is_some_and(|needed| wait.gap <= needed.times(NEAR_RATE))
}
