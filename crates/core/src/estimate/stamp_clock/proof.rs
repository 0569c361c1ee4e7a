//! How sure is it that a packet was late, and not its sender's clock slow? See `estimate/stamp_clock.rs`.

use tcpwhy_wire::{Duration, Instant};

use super::{CALM_AFTER, StampClock, TICK_USEC};

/// By how many hundredths a clock's true rate is off the one that it seems to have: 5 ms (HZ=200) for 4, or 1.29 ms (macOS counts
/// late while it is busy).
const OFF_MAX: i128 = 30;
/// A silence longer than this, and than the rate was seen to hold before, shows nothing: a host may have slept.
const UNPROVEN_MAX: Duration = Duration::from_secs(1);
/// So short a time shows no rate: eight ticks of 4 or 10 ms pass within it where the first packet was late.
const RATE_FROM: Duration = Duration::from_millis(12);
/// All packets so far having taken half as long again as their stamps say, a clock ticks no more slowly than it seems to. See `TICKS`.
const SLOWER: i64 = 3;

impl StampClock {
    /// Whether a packet at `at` was so `late` beyond doubt: for no longer than the rate was seen to hold.
    pub(crate) fn proves(&self, late: Duration, at: Instant) -> bool {
        let Some((held, since, _)) = self.held(at) else { return false };
        let longest = if self.is_rated() { UNPROVEN_MAX } else { CALM_AFTER };
        (since <= held || since <= longest) && self.is_beyond_rate(late, at)
    }

    /// Whether a packet at `at` was so `late` unless its sender's clock stood still. Since the last one that was not late, a rate that is a
    /// little off grows the difference as well: by as much as that one shows at most.
    pub(crate) fn is_beyond_rate(&self, late: Duration, at: Instant) -> bool {
        let Some((held, since, off)) = self.held(at) else { return false };
        let [held, since] = [held, since].map(|time| i128::from(time.as_nanos()));
        let off = i128::from((off.at_least_zero() + self.tick).as_nanos());
        i128::from(late.as_nanos()) > (since * off / held.max(1)).min(since * OFF_MAX / 100)
    }

    /// Whether no longer tick makes so `late` a packet at `at` punctual: that is three times as long at least as one of a millisecond.
    pub(crate) fn ticks_no_slower(&self, late: Duration, at: Instant) -> bool {
        self.first.is_some_and(|(_, first_at)| late.times(SLOWER) <= at - first_at)
    }

    /// For how long the rate was seen to hold, how long before `at`, and how far it was off then.
    #[inline]
    fn held(&self, at: Instant) -> Option<(Duration, Duration, Duration)> {
        let (_, first_at) = self.first.filter(|_| !self.unknown)?;
        let (agreed_at, off) = self.agreed.unwrap_or((first_at, Duration::ZERO));
        Some((agreed_at - first_at, at - agreed_at, off))
    }

    /// How long before the packet that has just passed, at `at`, the one before it with another stamp was sent; nothing where one had the
    /// same. A tick more or less.
    pub(crate) fn since_before(&self, at: Instant) -> Option<Duration> {
        let known = !self.unknown && self.tick > Duration::ZERO;
        let (stamp, since) = self.stamp.filter(|_| known)?;
        let ticks = if since < at { 0 } else { i64::from(stamp.wrapping_sub(self.before) as i32) };
        Some(self.tick.times(ticks.max(0)))
    }

    /// Zero until it is known.
    pub(crate) fn tick(&self) -> Duration {
        self.tick
    }

    /// Whether its rate was seen to hold for long enough to tell a late packet from another rate.
    pub(crate) fn is_rated(&self) -> bool {
        let held =
            self.agreed.zip(self.first).map_or(Duration::ZERO, |((at, _), (_, first_at))| at - first_at);
        held >= RATE_FROM || self.tick == TICK_USEC
    }
}
