//! Did what left together take as long as a link of the known rate needs for it?
//!
//! Acknowledgements come spaced for many reasons: a link, a sender's own pace that they repeat, a receiver or a path that gathers them. Only
//! a link lets the last segment of a burst wait for those before it.

use tcpwhy_wire::{Duration, Instant};

use crate::estimate::rate::Rate;

/// What left within this time of its first segment left together. Source: none written down.
const TOGETHER: Duration = Duration::from_millis(2);
/// Bursts are summed over this much time on the link: earlier ones say nothing about the link now. Source: none written down.
const LATELY: Duration = Duration::from_millis(200);
/// Bursts that should have taken less than this prove nothing. Source: none written down.
const SAID_MIN: Duration = Duration::from_millis(4);
/// They agree with the rate if they were not sooner through than by one part in so many. Source: none written down.
const SOONER_SHARE: i64 = 4;

/// How long the last bursts should have taken at the link's rate, and how much sooner they were through.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Bursts {
    /// When the first segment of the burst under way had left.
    first: Instant,
    /// Its bytes on the wire, as far as they are acknowledged.
    bytes: u32,
    /// What these have added to the sums.
    needed: Duration,
    early: Duration,
    said: Duration,
    sooner: Duration,
}

impl Bursts {
    pub(crate) const NONE: Self = Self {
        first: Instant::MIN,
        bytes: 0,
        needed: Duration::ZERO,
        early: Duration::ZERO,
        said: Duration::ZERO,
        sooner: Duration::ZERO,
    };

    /// `bytes` that had left from `sent` on were through `by` then. The smallest round trip includes the first segment, of up to `segment` bytes;
    /// bytes timed together may have left sooner by `slack`.
    pub(crate) fn on_through(
        &mut self,
        [sent, by]: [Instant; 2],
        bytes: u32,
        segment: u32,
        slack: Duration,
        rate: Rate,
    ) {
        if self.bytes == 0 || sent > self.first + TOGETHER {
            (self.first, self.bytes, self.needed, self.early) = (sent, 0, Duration::ZERO, Duration::ZERO);
        }
        self.bytes = self.bytes.saturating_add(bytes);
        let needed = (rate.time_for(self.bytes.saturating_sub(segment)) - slack).at_least_zero().min(LATELY);
        let early = (needed - (by - self.first).at_least_zero()).at_least_zero();
        self.said += (needed - self.needed).at_least_zero();
        self.sooner = (self.sooner + (early - self.early)).at_least_zero();
        (self.needed, self.early) = (needed, early);
        if self.said > LATELY {
            (self.said, self.sooner) = (self.said.divided_by(2), self.sooner.divided_by(2));
        }
    }

    /// Whether they have taken as long as the rate says, and long enough to tell.
    pub(crate) fn confirm(&self) -> bool {
        self.sooner.times(SOONER_SHARE) <= self.said && self.said >= SAID_MIN
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::rate::RateEstimator;

    /// 1,000 bytes in 10 ms.
    fn known() -> Rate {
        let mut estimator = RateEstimator::default();
        for n in 0..20 {
            estimator.on_bytes(at(10 * n), 1_000, 1_000, n > 0);
        }
        estimator.best().expect("twenty events show it")
    }

    fn at(ms: i64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    /// Three segments that left at once were through after so many milliseconds.
    fn burst(through: [i64; 3]) -> Bursts {
        let mut bursts = Bursts::NONE;
        for by in through {
            bursts.on_through([at(100), at(100 + by)], 1_000, 1_000, Duration::ZERO, known());
        }
        bursts
    }

    #[test]
    fn segments_that_wait_for_each_other_confirm_a_rate_and_others_do_not() {
        assert!(burst([0, 10, 20]).confirm());
        assert!(!burst([0, 1, 2]).confirm());
        assert!(!Bursts::NONE.confirm());
    }
}
