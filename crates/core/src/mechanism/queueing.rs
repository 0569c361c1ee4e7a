//! Was a segment late on its way, behind what others sent or on a path that stood still?
//!
//! Far from its sender a segment comes later behind what let it go than the path is long. What proves it are time stamps: the
//! smallest difference of the two clocks is the path's own, what a packet exceeds it by it waited (`clock`). Without them, what
//! follows an acknowledgement by more than the round trip may as well have left late, and no more than possible is said.
//! What waits for bytes of its own transfer is `bandwidth`.

use super::Wait;
use crate::account::Charge;
use crate::cause::Cause;
use crate::half::Release;
use crate::report::Confidence;

/// By how much the segment came later than what let it go allows.
pub(super) fn behind(wait: &Wait<'_>, release: &Release) -> Charge {
    let late = wait.segment.at - release.effective;
    Charge::new(Cause::Queueing, wait.half.side, late, Confidence::Possible)
        .evidence(release.packet, wait.segment.packet)
}
