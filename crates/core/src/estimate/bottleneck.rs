//! Until when is the bottleneck beyond the capture busy with what has passed the capture?
//!
//! A link works off one packet after another, so one number says how much is still to come: the time at
//! which the last packet that passed the capture will have left the link. A packet sent moves that time by
//! its own time on the link; an ACK shows that what it covers had left one round trip before, and bounds
//! what can be left. Times are the capture's: the way to the link and the way back are the same for all
//! packets.

use tcpwhy_wire::{Duration, Instant};

use crate::estimate::rate::Rate;

/// A receiver acknowledges every second segment (RFC 9293, 3.8.6.3), or a few more that its interface
/// gathered within a moment. An ACK of more segments after a longer time does not date their arrival: they
/// came together long ago, or one by one, and the receiver held the ACK back until its application read.
/// Super-segments may cross virtual links whole.
pub(crate) const STRETCH_MAX: u32 = 16;
const GATHERED_MAX: Duration = Duration::from_millis(2);

/// Bursts are summed over this much time on the link: earlier ones say nothing about the link now. Source:
/// none written down.
const LATELY: Duration = Duration::from_millis(200);
/// Bursts that should have taken less than this prove nothing. Source: none written down.
const SAID_MIN: Duration = Duration::from_millis(8);

/// A direction's load on the bottleneck beyond the capture.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Link {
    /// It has been busy without a break since then ...
    since: Instant,
    /// ... until then.
    until: Instant,
    /// Retransmitted bytes that are not known to have passed it.
    resent: u32,
    /// When an ACK of a single segment last came that would be a delayed-ACK timer's, had no bytes followed
    /// that segment.
    timed: Instant,
    /// How long the bytes of the last ACKs should have taken at its rate, and how much sooner they were
    /// through.
    said: Duration,
    sooner: Duration,
}

/// What an ACK says about the bottleneck.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Passed {
    /// When the last byte that it is about had left the bottleneck, at the latest.
    pub by: Instant,
    /// Bytes after that one.
    pub behind: u32,
    /// It left just then: the receiver did not hold the ACK back, and no more than the flight can have
    /// delayed it.
    pub exact: bool,
}

/// An ACK of new data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acked {
    pub at: Instant,
    pub bytes: u32,
    /// Segments as captured.
    pub segments: u32,
    /// When the first of these bytes had left, and the last.
    pub oldest: Option<Instant>,
    pub newest_at: Option<Instant>,
    pub rtt: Option<Duration>,
    /// The window before it and its own, if it did nothing but acknowledge.
    pub windows: Option<[u32; 2]>,
}

impl Link {
    /// Nothing has been sent.
    pub(crate) const NONE: Self = Self {
        since: Instant::MIN,
        until: Instant::MIN,
        resent: 0,
        timed: Instant::MIN,
        said: Duration::ZERO,
        sooner: Duration::ZERO,
    };

    /// These bytes passed the capture; `again` if the first transmission is taken for lost before it reached
    /// the bottleneck.
    #[inline]
    pub(crate) fn on_sent(&mut self, at: Instant, bytes: u32, again: bool, rate: Rate) {
        let needed = rate.time_for(bytes);
        let until = if again && self.until > at { self.until - needed } else { self.until };
        if until < at {
            self.since = at;
        }
        self.until = until.max(at) + needed;
    }

    #[inline]
    pub(crate) fn on_passed(&mut self, passed: Passed, rate: Option<Rate>) {
        let needed = rate.map_or(Duration::ZERO, |rate| rate.time_for(passed.behind));
        // The bytes after it cannot be through sooner than this, ...
        let until = passed.by + needed;
        if passed.exact && until > self.until {
            self.since = self.since.min(passed.by);
            self.until = until;
        // ... nor later, if the link has had no break since, or nothing comes after it.
        } else if rate.is_some()
            && until < self.until
            && (passed.behind == 0 || self.until - needed > self.since)
        {
            self.until = until;
        }
    }

    /// Whether retransmitted bytes are not known to have passed it.
    #[inline]
    pub(crate) fn has_resent(&self) -> bool {
        self.resent > 0
    }

    /// These bytes were through `took` after the first of them had left. At the rate that has shown, they
    /// need `needed`.
    #[inline]
    pub(crate) fn on_through(&mut self, needed: Duration, took: Duration) {
        let needed = needed.min(LATELY);
        self.said += needed;
        self.sooner += (needed - took.at_least_zero()).at_least_zero();
        if self.said > LATELY {
            (self.said, self.sooner) = (self.said.divided_by(2), self.sooner.divided_by(2));
        }
    }

    /// Whether bursts have passed that no link of the known rate lets through: that rate was somebody else's
    /// pace.
    #[inline]
    pub(crate) fn is_refuted(&self) -> bool {
        self.sooner.times(2) > self.said && self.said >= SAID_MIN
    }

    /// Its rate has shown: what had passed it by `passed` is known, and it has been busy `since` then.
    pub(crate) fn begin(since: Instant, passed: Instant) -> Self {
        Self { since, until: passed, ..Self::NONE }
    }

    /// An ACK at this time may have been a timer's.
    #[inline]
    pub(crate) fn on_timer(&mut self, at: Instant) {
        self.timed = at;
    }

    /// Whether the ACK at this time may have been a timer's.
    pub(crate) fn was_timed(&self, acknowledged: Option<Instant>) -> bool {
        acknowledged == Some(self.timed)
    }

    /// The last ACK was not one of a timer that could be taken for the link.
    #[inline]
    pub(crate) fn forget_timer(&mut self) {
        self.timed = Instant::MIN;
    }

    pub(crate) fn resend(&mut self, bytes: u32) {
        self.resent = self.resent.saturating_add(bytes);
    }

    /// Retransmitted bytes that are not known to have passed it.
    pub(crate) fn resent(&self) -> u32 {
        self.resent
    }

    /// `acked` more bytes were acknowledged; `missing` if something after them is missing.
    #[inline]
    pub(crate) fn on_advance(&mut self, acked: u32, missing: bool) {
        if self.resent > 0 {
            self.resent = if missing { self.resent.saturating_sub(acked) } else { 0 };
        }
    }

    /// How long it is busy from `at` on.
    #[inline]
    pub(crate) fn busy_from(&self, at: Instant) -> Duration {
        self.busy_between(at, self.until)
    }

    /// The same, as far as it is before `end`.
    #[inline]
    pub(crate) fn busy_between(&self, at: Instant, end: Instant) -> Duration {
        // An `Instant` that was never set is far below every other. Work before the last break is left out:
        // the gap is that of a sender that has sent since.
        let until = self.until.min(end);
        if until <= at || self.is_refuted() {
            Duration::ZERO
        } else {
            (until - at.max(self.since)).at_least_zero()
        }
    }
}

/// Whether an ACK of so many segments as captured, `acked` bytes in all, so long after the last ACK, came
/// later than they arrived: each super-segment that crosses a link whole is acknowledged by itself.
pub(crate) fn is_gathered(segments: u32, acked: u32, mss: u32, since_last: Option<Duration>) -> bool {
    segments > 1 && acked > STRETCH_MAX * mss && since_last.is_some_and(|since| since >= GATHERED_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::rate::RateEstimator;

    fn ms(n: i64) -> Duration {
        Duration::from_millis(n)
    }

    fn at(n: i64) -> Instant {
        Instant::from_nanos(n * 1_000_000)
    }

    /// 1,000 bytes in 10 ms.
    fn rate() -> Option<Rate> {
        let mut estimator = RateEstimator::default();
        for n in 0..20 {
            estimator.on_bytes(at(10 * n), 1_000, 1_000, n > 0);
        }
        estimator.best()
    }

    fn known() -> Rate {
        rate().expect("twenty events show it")
    }

    #[test]
    fn what_is_sent_adds_up_and_an_idle_link_begins_anew() {
        let mut link = Link::NONE;
        link.on_sent(at(100), 1_000, false, known());
        link.on_sent(at(101), 1_000, false, known());
        assert_eq!(link.busy_from(at(101)), ms(19));
        assert_eq!(link.busy_from(at(130)), ms(0));
        link.on_sent(at(150), 1_000, false, known());
        assert_eq!(link.busy_from(at(150)), ms(10));
    }

    #[test]
    fn a_copy_takes_the_place_of_what_was_lost() {
        let mut link = Link::NONE;
        link.on_sent(at(100), 3_000, false, known());
        link.on_sent(at(110), 1_000, true, known());
        assert_eq!(link.busy_from(at(110)), ms(20));
    }

    #[test]
    fn an_acknowledgement_bounds_what_is_left_from_both_sides() {
        let mut link = Link::NONE;
        link.on_sent(at(100), 3_000, false, known());
        link.on_passed(Passed { by: at(105), behind: 2_000, exact: false }, rate());
        assert_eq!(link.busy_from(at(105)), ms(20));
        // Held back, it does not say that the link was slower; otherwise it does.
        link.on_passed(Passed { by: at(130), behind: 1_000, exact: false }, rate());
        assert_eq!(link.busy_from(at(120)), ms(5));
        link.on_passed(Passed { by: at(130), behind: 1_000, exact: true }, rate());
        assert_eq!(link.busy_from(at(120)), ms(20));
    }

    #[test]
    fn what_stood_idle_before_a_copy_was_not_busy() {
        let mut link = Link::NONE;
        link.on_sent(at(100), 1_000, false, known());
        link.on_sent(at(150), 1_000, true, known());
        assert_eq!(link.busy_from(at(100)), ms(10));
    }

    #[test]
    fn what_was_sent_after_a_break_is_not_through_with_what_was_before() {
        let mut link = Link::NONE;
        link.on_sent(at(100), 1_000, false, known());
        link.on_sent(at(200), 2_000, false, known());
        link.on_passed(Passed { by: at(110), behind: 2_000, exact: true }, rate());
        assert_eq!(link.busy_from(at(200)), ms(20));
    }
}
