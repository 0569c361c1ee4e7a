//! Is what a sender waited for missing from the capture?

use tcpwhy_wire::Duration;

use super::verdict::{Verdict, burst};
use super::wait::Wait;
use super::{nagle, receive_window, repair};
use crate::bill::charge::Charge;
use crate::bill::split::Split;
use crate::words::cause::{Cause, Side};
use crate::words::limits::BURST_GAP;
use crate::words::report::{Confidence, Detail};

/// What the sender did in between is not in the capture, or what let it go on.
pub(super) fn judge(wait: &Wait<'_>) -> Option<Verdict> {
    if wait.gap < BURST_GAP {
        return None;
    }
    if !wait.flow.not_captured(wait.segment)
        && (!nagle::release_unseen(wait) || repair::is_probe(wait))
        && !receive_window::update_unseen(wait)
    {
        return None;
    }
    let charge = charge(wait.flow.side).evidence(wait.last.packet, wait.segment.packet);
    Some(Verdict { split: Split::of(wait.gap).rest(charge), trigger: burst(wait.last, wait.segment.at) })
}

/// The charge for time that packets would explain which are missing from the capture.
pub(crate) fn charge(sender: Side) -> Charge {
    let detail = Detail { form: Some("not-captured"), ..Detail::default() };
    Charge::new(Cause::Unexplained, sender, Duration::ZERO, Confidence::Possible).detail(detail)
}
