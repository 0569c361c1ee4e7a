//! What was a path's last long silence charged to, in case the path proves to have stalled?

use tcpwhy_wire::{Duration, Instant, Seq};

use crate::bill::split::Split;
use crate::flow::direction::Flow;
use crate::flow::segment_class::LastData;
use crate::words::cause::Cause;

/// A silence that passes for its sender's pause.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Pause {
    /// The segment that ended it, and when that passed.
    pub at: Instant,
    pub seq: Seq,
    pub packet: u64,
    /// The time charged to each of [`CAUSES`].
    pub charged: [Duration; CAUSES.len()],
}

/// The causes to which a silence that nothing explains is charged.
pub(crate) const CAUSES: [Cause; 3] = [Cause::SenderThink, Cause::Bandwidth, Cause::Unexplained];

impl Pause {
    /// The silence that ended with segment `at` and was charged as in `split`.
    #[cold]
    #[inline(never)]
    pub(crate) fn of(split: &Split, at: &LastData, sender: &Flow) -> Option<Self> {
        let of = |cause| split.charges().filter(|charge| charge.cause == cause).map(|charge| charge.ns).sum();
        let seq = sender.snd_nxt? + at.len.wrapping_neg();
        Some(Self { at: at.at, seq, packet: at.packet, charged: CAUSES.map(of) })
    }
}
