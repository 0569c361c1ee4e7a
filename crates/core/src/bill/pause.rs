//! What was the last long silence of a path charged, should the path have stood still?

use tcpwhy_wire::{Duration, Instant, Seq};

use crate::bill::split::Split;
use crate::flow::direction::Flow;
use crate::flow::segment_class::LastData;
use crate::words::cause::Cause;

/// What may have been its sender's pause.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Pause {
    /// What ended it, and when that passed.
    pub at: Instant,
    pub seq: Seq,
    pub packet: u64,
    /// What it was charged to.
    pub charged: [Duration; CAUSES.len()],
}

/// What a silence is charged to that nothing else explains.
pub(crate) const CAUSES: [Cause; 3] = [Cause::SenderThink, Cause::Bandwidth, Cause::Unexplained];

impl Pause {
    /// The one that ended with this segment after `split`.
    #[cold]
    #[inline(never)]
    pub(crate) fn of(split: &Split, at: &LastData, sender: &Flow) -> Option<Self> {
        let of = |cause| split.charges().filter(|charge| charge.cause == cause).map(|charge| charge.ns).sum();
        let seq = sender.snd_nxt? + at.len.wrapping_neg();
        Some(Self { at: at.at, seq, packet: at.packet, charged: CAUSES.map(of) })
    }
}
