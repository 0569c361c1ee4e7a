//! Was the capture's clock set while nothing passed?
//!
//! A packet's stamp says that less time has passed than the capture's clock does: the packet was late, or that clock was set. Both senders'
//! packets are late by the same across one moment in the second case only. The same of less time, where earlier packets had been late.

use tcpwhy_wire::{Duration, Instant};

/// By how much the capture's clock says more or less than a sender's. Daemons that keep clocks right turn them more slowly where less is wrong:
/// ntpd(8) below 128 ms, systemd-timesyncd below 400 ms.
pub(crate) const JUMP_MIN: Duration = Duration::from_millis(100);
/// What two senders may differ by: their ticks, and what else either packet waited. Source: none written down.
const ALIKE: Duration = Duration::from_millis(5);
const ALIKE_SHARE: i64 = 20;

/// A silence of one sender's, by the end of which the capture's clock has gone on by so much more than the sender's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Jump {
    pub ns: Duration,
    pub before: Instant,
    pub at: Instant,
}

impl Jump {
    /// When the clock was set, and by how much, where both senders say so.
    pub(crate) fn with(self, other: Self) -> Option<(Instant, Duration)> {
        let at = self.at.min(other.at);
        let (less, more) = (self.ns.min(other.ns), self.ns.max(other.ns));
        let alike = more - less <= ALIKE.max(less.max(-more).divided_by(ALIKE_SHARE));
        (alike && self.before.max(other.before) < at)
            .then_some((at, if less.is_positive() { less } else { more }))
    }
}
