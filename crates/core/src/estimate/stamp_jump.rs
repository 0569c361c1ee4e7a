//! Was the capture's clock set while nothing passed?
//!
//! If a packet's stamp says that less time has passed than the capture's clock does, the packet was late, or
//! that clock was set. Only in the second case are both senders' packets late by the same, across one
//! moment. The same holds for a stamp that says more, if earlier packets had been late.

use tcpwhy_wire::{Duration, Instant};

/// How much more or less the capture's clock must say than a sender's. Daemons slew a clock that is off by
/// less: ntpd(8) below 128 ms, systemd-timesyncd below 400 ms.
pub(crate) const JUMP_MIN: Duration = Duration::from_millis(100);
/// How much two senders may differ: by their ticks, and by what else either packet waited for. Source: none
/// written down.
const ALIKE: Duration = Duration::from_millis(5);
const ALIKE_SHARE: i64 = 20;

/// A silence of one sender by whose end the capture's clock has gone on by `ns` more than the sender's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Jump {
    pub ns: Duration,
    pub before: Instant,
    pub at: Instant,
}

impl Jump {
    /// When the clock was set, and by how much, if both senders say so.
    pub(crate) fn with(self, other: Self) -> Option<(Instant, Duration)> {
        let at = self.at.min(other.at);
        let (less, more) = (self.ns.min(other.ns), self.ns.max(other.ns));
        let alike = more - less <= ALIKE.max(less.max(-more).divided_by(ALIKE_SHARE));
        (alike && self.before.max(other.before) < at)
            .then_some((at, if less.is_positive() { less } else { more }))
    }
}
