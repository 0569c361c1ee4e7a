//! What do the packets of a connection show of one of its ends?

use tcpwhy_wire::Duration;

use crate::words::cause::Side;
use crate::words::report::Rung;

/// What the packets of a connection show of one end.
pub(super) struct Seen<'a> {
    pub rungs: &'a [Rung],
    pub end: Side,
    /// Round trip between the capture and that end.
    pub tap_rtt: Duration,
    pub segment: u64,
}

impl Seen<'_> {
    pub(super) fn is_own(&self, rung: &Rung) -> bool {
        rung.from == self.end
    }

    /// The approximate number of packets, however many of them an interface merged.
    pub(super) fn packets(&self, bytes: u64) -> u32 {
        u32::try_from((bytes + self.segment / 2) / self.segment).unwrap_or(u32::MAX).max(1)
    }
}

pub(super) fn end_of(rung: &Rung) -> u64 {
    rung.offset + u64::from(rung.len)
}

/// The middle value; of an even number the lower one.
pub(super) fn median<T: Copy + Ord>(values: &mut [T]) -> Option<T> {
    values.sort_unstable();
    values.get(values.len().checked_sub(1)? / 2).copied()
}
