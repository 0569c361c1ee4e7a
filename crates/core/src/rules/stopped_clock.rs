//! Did the sender's clock stop during the wait?
//!
//! Proof: beside the sender, two segments at least a second apart carry the same time stamp, from a
//! clock that has ticked before and would have ticked several times.
//! Refuted by: a clock with a tick of half a second, or one that never ticks.
//! Source: RFC 7323, 5.4 (a clock of 1 ms to 1 s); CLOCK_MONOTONIC, which time stamps count, stops
//! while a host or a virtual machine is suspended, and the clock of captures is set afterwards
//! (clock_gettime(2)).
//! Seen from: near the sender; far from it a segment may have been delayed on its way.
//!
//! Whether the host was suspended or the capture's clock was set, no application and no window took
//! that time: it is `unexplained`.

use tcpwhy_wire::Duration;

use super::verdict::{Verdict, burst};
use super::wait::Wait;
use crate::bill::charge::Charge;
use crate::bill::split::Split;
use crate::words::cause::Cause;
use crate::words::limits::NEAR_MAX;
use crate::words::report::Confidence;

/// No clock of time stamps ticks more slowly (RFC 7323, 5.4), and no host's own queue is longer.
/// Source of the latter: none written down.
const STOPPED_MIN: Duration = Duration::from_secs(1);

pub(super) fn judge(wait: &Wait<'_>) -> Option<Verdict> {
    let flow = wait.flow;
    if wait.gap < STOPPED_MIN || (!wait.near_sender() && wait.rtt_to_sender >= NEAR_MAX) {
        return None;
    }
    let (then, now) = wait.last.stamp.zip(wait.segment.options.timestamps)?;
    if then != now.val || !flow.clock.ticks_within(wait.gap) {
        return None;
    }
    let charge = Charge::new(Cause::Unexplained, flow.side, Duration::ZERO, Confidence::Possible)
        .evidence(wait.last.packet, wait.segment.packet);
    Some(Verdict { split: Split::of(wait.gap).rest(charge), trigger: burst(wait.last, wait.segment.at) })
}
