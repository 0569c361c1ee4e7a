//! Is what a sender waited for missing from the capture?
//!
//! Proof: the peer acknowledges bytes that did not pass, a sender that obeys Nagle goes on while a
//! small segment is outstanding, or a segment exceeds every window that passed.
//! Refuted by: a tail loss probe, which explains a segment that no acknowledgement released.
//! Source: RFC 9293, 3.8.6 (nobody sends beyond the window) and 3.10.7.4 (nobody acknowledges what
//! was not sent).
//! Seen from: both ends.
//!
//! The charge is `unexplained`: the missing packets would tell.

use tcpwhy_wire::Duration;

use super::verdict::{Verdict, burst};
use super::wait::Wait;
use super::{nagle, receive_window, repair};
use crate::bill::charge::Charge;
use crate::bill::split::Split;
use crate::words::cause::{Cause, Side};
use crate::words::form::Form;
use crate::words::limits::BURST_GAP;
use crate::words::report::{Confidence, Detail};

/// What the sender did in between, or what released it, is missing from the capture.
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

/// Whether a wait began within a round trip of a stretch that the capture missed: the acknowledgement that
/// released its sender, and what the peer's window was until then, may be missing as well.
pub(super) fn behind_stretch(wait: &Wait<'_>) -> bool {
    let missed_at = wait.flow.unusual.stretch_missed_at;
    missed_at <= wait.segment.at && wait.last.at < missed_at + wait.rtt() + wait.tolerance()
}

/// The charge for time that packets missing from the capture would explain.
pub(crate) fn charge(sender: Side) -> Charge {
    let detail = Detail { form: Some(Form::NotCaptured), ..Detail::default() };
    Charge::new(Cause::Unexplained, sender, Duration::ZERO, Confidence::Possible).detail(detail)
}
