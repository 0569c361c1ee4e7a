//! Did the sender space its segments by its own pace?
//!
//! Proof: more was queued, no acknowledgement let the segment go, and the spacing is a beat, or near the bottleneck's rate.
//! Refuted by: a segment that follows an acknowledgement, a recovery, a window that each round uses up.
//! Source: bbr_set_pacing_rate and bbr_pacing_gain, net/ipv4/tcp_bbr.c; tcp_update_pacing_rate, net/ipv4/tcp_input.c, Linux
//! 6.12; SO_MAX_PACING_RATE, socket(7).
//! Seen from: both ends; a bottleneck near the receiver makes the same distances, so that it is never more than possible.
//!
//! What a sender with a queue waits for otherwise does not show. A beat that has shown was kept before (`bill/revise.rs`,
//! `Beat`).

use tcpwhy_wire::Duration;

use super::verdict::{Verdict, burst};
use super::wait::Wait;
use super::{link_share, receive_window, slow_start};
use crate::bill::charge::Charge;
use crate::flow::segment_class::SendQueue;
use crate::words::cause::Cause;
use crate::words::form::Form;
use crate::words::report::{Confidence, Detail};

/// Segments that stand so many times in a round trip are spread all over it. Source: none written down.
const SPREAD: i64 = 4;
/// A pace of one part in so many of the bottleneck's rate is near it (three quarters, bbr_pacing_gain, and an estimate below the rate).
const NEAR_RATE: i64 = 3;

/// Whether the sender keeps a beat of its own, to which acknowledgements come by chance. What a queue in front of the bottleneck gives
/// a beat is the link's, whoever asks (`link_share`).
pub(super) fn paced(wait: &Wait<'_>) -> bool {
    wait.last.queue != SendQueue::Emptied && wait.flow.unusual.cadence.is_kept(wait.rtt())
}

/// More was queued, no acknowledgement of new data released it: recovery from a loss goes on duplicate and selective
/// acknowledgements (RFC 6675), else the sender spaced its segments, or the bottleneck did.
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
        // The pace follows the window: twice of it in a round trip (tcp_update_pacing_rate, net/ipv4/tcp_input.c), or what
        // BBR's startup has found so far.
        (slow_start::cause(&wait.model.rounds, wait.model.rounds.flight), Some(Form::Paced))
    } else {
        (Cause::Pacing, None)
    };
    let charge = Charge::new(cause, wait.flow.side, Duration::ZERO, Confidence::Possible)
        .evidence(wait.last.packet, wait.segment.packet)
        .detail(Detail { form, ..Detail::default() });
    Verdict { split: split.rest(charge), trigger: burst(wait.last, wait.segment.at) }
}

/// Whether its sender spaces segments all over the round trip: what looks like its window may be its pace.
pub(super) fn spans_round(wait: &Wait<'_>) -> bool {
    wait.flow.is_paced() && wait.gap.times(SPREAD) <= wait.rtt()
}

/// Whether the last segment took hardly longer than the bottleneck needs for it: pacing keeps near that rate, at three quarters of
/// it while a queue is to be drained and below it while the rate is taken for lower (bbr_pacing_gain, net/ipv4/tcp_bbr.c).
pub(super) fn near_rate(wait: &Wait<'_>) -> bool {
    let needed =
        link_share::rate(wait).map(|rate| rate.time_for(wait.flow.on_wire(wait.last.len, 0, wait.mss)));
    needed.is_some_and(|needed| wait.gap <= needed.times(NEAR_RATE))
}
