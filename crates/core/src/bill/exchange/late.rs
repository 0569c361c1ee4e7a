//! By how much did an exchange begin before its first segment passed?

use tcpwhy_wire::{Duration, Instant};

use super::Open;
use crate::bill::charge::Charge;

impl Open {
    /// It proves to have begun this much before its first segment passed.
    pub(crate) fn begin_earlier(&mut self, at: Instant, ns: Duration) {
        debug_assert!(ns >= Duration::ZERO, "it would begin later than it is billed for");
        self.start = at - ns;
        self.piece.0 = self.start;
        self.client_idle = (self.client_idle - ns).at_least_zero();
    }

    /// The same, by this much more.
    pub(crate) fn begins_earlier(&mut self, ns: Duration) {
        debug_assert!(ns >= Duration::ZERO, "it would begin later than it is billed for");
        self.start = self.start - ns;
        self.piece.0 = self.piece.0 - ns;
        self.client_idle = (self.client_idle - ns).at_least_zero();
    }

    /// It began with its only segment after all, and nothing was spent before.
    #[cold]
    pub(crate) fn begins_with(&mut self, at: Instant) {
        self.client_idle += at - self.start;
        (self.start, self.piece.0) = (at, at);
        self.request.forget();
    }

    /// For this part of its first segment's delay, its sender had not written the next one.
    #[cold]
    pub(crate) fn was_written_later(&mut self, own: &Charge) {
        let left = self.late.take().map(|late| Charge { ns: late.ns - own.ns, ..*late });
        self.late = left.filter(|late| late.ns.is_positive()).map(Box::new);
        self.request.settle().charge(own);
        self.begins_earlier(own.ns);
    }

    /// Nothing can refute any more that its first segment was delayed.
    #[inline]
    pub(crate) fn charge_late(&mut self) {
        if let Some(late) = self.late.take() {
            self.last_path().settle().charge(&late);
            self.begins_earlier(late.ns);
        }
    }
}
