//! Is this SYN the one before it, captured again?

use tcpwhy_wire::{Duration, Instant, Segment};

/// A packet crosses a host's interfaces, or a router, in less time.
pub(crate) const SIGHTED_WITHIN: Duration = Duration::from_millis(2);
/// A SYN with the same marks within this time is the same packet: no SYN timer is so short, and no clock of
/// a host that numbers its packets stands still for so long (RFC 6298, 2.1: 1 s; RFC 7323, 5.4: a tick of at
/// most 1 s, and of 1 to 10 ms on all current hosts).
const COPIED_WITHIN: Duration = Duration::from_millis(200);

/// What tells one SYN of a host from the next: its IP ID, if not 0, and its TSval, if any.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Marks {
    stamp: u32,
    ip_id: u16,
    has_stamp: bool,
}

impl Marks {
    pub(crate) fn of(syn: &Segment) -> Self {
        let stamps = syn.options.timestamps;
        Self {
            stamp: stamps.map_or(0, |stamps| stamps.val),
            ip_id: syn.ip_id.unwrap_or(0),
            has_stamp: stamps.is_some(),
        }
    }

    pub(crate) fn stamp(self) -> Option<u32> {
        self.has_stamp.then_some(self.stamp)
    }

    /// Whether `syn` is the SYN with these marks, which passed at `at`: no clock and no counter stands still
    /// for so long.
    pub(crate) fn are_of(self, syn: &Segment, at: Instant) -> bool {
        let told = self != Self::default() && self == Self::of(syn);
        syn.at - at < if told { COPIED_WITHIN } else { SIGHTED_WITHIN }
    }
}
