//! What do a sender's stamps say about the capture's clock? See `estimate/stamp_jump.rs`.

use tcpwhy_wire::{Duration, Instant};

use super::{CALM_AFTER, NEVER_AGREED, StampClock};
use crate::estimate::maybe::Maybe;
use crate::estimate::stamp_drift::Drift;
use crate::estimate::stamp_jump::{JUMP_MIN, Jump};

impl StampClock {
    /// The capture's clock stepped: it is no longer known when the present stamp first came.
    pub(crate) fn interrupt(&mut self) {
        (self.stamp, self.stamp_since) = (0, Maybe::NONE);
    }

    /// The first stamp after that, or at all.
    #[cold]
    #[inline(never)]
    pub(super) fn begin_first_stamp(&mut self, at: Instant, val: u32) {
        (self.before, self.stamp, self.stamp_since) = ((val, at), val, Maybe::of(at));
    }

    /// Whether no packet has had a stamp as late as this one.
    pub(crate) fn is_unseen(&self, val: u32) -> bool {
        self.stamp_since.is_some() && self.is_newer(val)
    }

    /// Whether the last packet had this stamp.
    pub(crate) fn is_present(&self, val: u32) -> bool {
        self.stamp_since.is_some() && self.stamp == val
    }

    /// Keeps a silence before this packet on which the two clocks disagree, once this one's rate is known.
    #[inline]
    pub(super) fn note_jump(&mut self, at: Instant, val: u32) {
        if self.tick > Duration::ZERO {
            self.note_any_jump(at, val);
        }
    }

    #[inline(never)]
    fn note_any_jump(&mut self, at: Instant, val: u32) {
        if let Some(jump) = self.jumped(at, val) {
            self.jump = Some(Box::new(jump));
        }
    }

    /// The silence before this packet, if the capture's clock says so much more or less of it than this one
    /// that a slightly wrong rate does not explain it.
    fn jumped(&self, at: Instant, val: u32) -> Option<Jump> {
        let expected = self.expected(val)?;
        if at.max(expected) - self.last < CALM_AFTER {
            return None;
        }
        let ns = at - expected;
        let far = ns.as_nanos().abs();
        if far < JUMP_MIN.as_nanos() {
            return None;
        }
        let (_, first_at) = self.first()?;
        let (agreed_at, off) = self.agreed().unwrap_or((self.last, self.difference));
        let (held, since) = ((agreed_at - first_at).as_nanos(), (at - agreed_at).as_nanos());
        let off = i128::from((off.at_least_zero() + self.tick).as_nanos()) * i128::from(since)
            / i128::from(held.max(1));
        (i128::from(far) > 2 * off).then_some(Jump { ns, before: self.last, at })
    }

    /// When a packet with this stamp should pass, to within a tick, if nothing holds it up and the capture's
    /// clock is not set.
    pub(crate) fn expected(&self, val: u32) -> Option<Instant> {
        let known = !self.unknown && self.tick > Duration::ZERO;
        let (stamp, since) = self.stamp().filter(|_| known)?;
        let ticks = i64::from(val.wrapping_sub(stamp) as i32);
        (ticks >= 0).then(|| since + self.tick.times(ticks))
    }

    /// What the last silence says about the capture's clock.
    pub(crate) fn jump(&self) -> Option<Jump> {
        self.jump.as_deref().copied()
    }

    /// The capture's clock was set, forward or back, at a moment before the last packet: adjusts what was
    /// known.
    pub(crate) fn on_set(&mut self, set_at: Instant, by: Duration) {
        self.first_at = self.first_at.get().map(|first_at| first_at + by).into();
        let agreed = self.agreed().filter(|(at, _)| *at < set_at);
        self.agreed = agreed.map_or(NEVER_AGREED, |(at, off)| (Maybe::of(at + by), off));
        if self.stamp_since.get().is_some_and(|since| since < set_at) {
            self.interrupt();
        }
        (self.drift, self.jump, self.unknown) = (Drift::default(), None, false);
        self.difference -= by;
        if !by.is_positive() {
            self.smallest = [self.difference.at_least_zero(), Duration::MAX]; // since then: seemed the fastest
        }
    }
}
