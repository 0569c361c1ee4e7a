//! Does an end send at equal intervals, by a timer of its own?
//!
//! A program that reports by a timer, or sleeps in a loop, sends at intervals whether it is asked or not. A
//! reply comes when it is ready, and its parts seldom at one interval many times in a row.

use tcpwhy_wire::{Duration, Instant};

/// A program that sends more often than this does not do so by a timer that shows.
pub(crate) const DISTANCE_MIN: Duration = Duration::from_millis(10);
/// This many equal intervals in a row may be a timer's, and `KEPT_MIN` are.
pub(crate) const MAY_MIN: u8 = 5;
const KEPT_MIN: u8 = 8;
/// After this many it can be told how far another one is off.
const OFF_AFTER: u8 = 2;
/// A loop that sleeps is late by what it does meanwhile: intervals are off by at most this part, either way.
const PART: i64 = 25;
/// ... or by this, as hosts and paths are.
const OFF_MIN: Duration = Duration::from_millis(1);
/// Two moments are at most this many intervals apart: ticks in between may be missing.
const MISSED_MAX: i64 = 4;

/// Moments in a row at one interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Grid {
    pub every: Duration,
    last: Option<Instant>,
    /// Intervals so far.
    count: u8,
}

impl Grid {
    /// No moment yet.
    pub(crate) const NONE: Self = Self { every: Duration::ZERO, last: None, count: 0 };

    /// Something happened at `at`, this long after what happened before it. Returns how many equal intervals
    /// there have been in a row.
    pub(crate) fn on_distance(&mut self, at: Instant, after: Duration) -> u8 {
        let off = after - self.every;
        if self.count > 0 && off.max(-off) <= self.off_max() {
            self.count = self.count.saturating_add(1);
            self.every += off.divided_by(4);
        } else {
            (self.every, self.count) = (after, 1);
        }
        self.last = Some(at);
        self.count
    }

    /// The same, counted from the last moment; what comes before the next one is ignored.
    pub(crate) fn on_moment(&mut self, at: Instant) {
        let Some(last) = self.last else {
            self.last = Some(at);
            return;
        };
        let after = at - last;
        match self.steps(after) {
            Some(1) if self.is_kept() => {
                self.every += (after - self.every).divided_by(4);
                self.last = Some(at);
            }
            Some(steps) if steps > 1 => self.last = Some(at),
            None if self.count > 0 && after < self.every => {}
            _ => {
                self.on_distance(at, after);
            }
        }
    }

    /// Whether a timer has shown.
    pub(crate) fn is_kept(&self) -> bool {
        self.count >= KEPT_MIN
    }

    /// How far `at` is off the nearest moment, once some intervals have been equal.
    pub(crate) fn off(&self, at: Instant) -> Option<Duration> {
        let after = at - self.last.filter(|_| self.count >= OFF_AFTER && self.every.is_positive())?;
        let steps = (after + self.every.divided_by(2)).as_nanos() / self.every.as_nanos();
        (1..=MISSED_MAX).contains(&steps).then(|| after - self.every.times(steps))
    }

    /// Whether `at` is the next moment, or one of the few after that.
    pub(crate) fn fits(&self, at: Instant) -> bool {
        self.is_due(at, KEPT_MIN)
    }

    /// The same after at least this many equal intervals.
    pub(crate) fn is_due(&self, at: Instant, least: u8) -> bool {
        self.count >= least && self.last.is_some_and(|last| self.steps(at - last).is_some())
    }

    pub(crate) fn is_last(&self, at: Instant) -> bool {
        self.last == Some(at)
    }

    /// Whether a wait is about as long as one interval, or longer.
    pub(crate) fn is_step(&self, wait: Duration) -> bool {
        wait >= self.every - self.off_max()
    }

    fn steps(&self, after: Duration) -> Option<i64> {
        // A known timer may be late for once.
        let off_max = if self.is_kept() { self.off_max().times(2) } else { self.off_max() };
        (1..=MISSED_MAX).find(|&steps| {
            let off = after - self.every.times(steps);
            self.count > 0 && off.max(-off) <= off_max
        })
    }

    fn off_max(&self) -> Duration {
        OFF_MIN.max(self.every.divided_by(PART))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(distances_us: impl IntoIterator<Item = i64>) -> bool {
        let (mut grid, mut at) = (Grid::default(), Instant::MIN);
        for us in distances_us {
            at = at + Duration::from_micros(us);
            grid.on_distance(at, Duration::from_micros(us));
        }
        grid.is_kept()
    }

    #[test]
    fn a_timer_and_a_loop_that_sleeps_keep_a_grid() {
        assert!(kept([20_100, 19_900, 19_920, 20_016, 19_972, 20_168, 19_966, 20_020]));
        assert!(kept([102_756, 101_545, 103_296, 102_194, 101_191, 105_619, 101_217, 101_901]));
    }

    #[test]
    fn a_person_and_a_short_row_do_not() {
        assert!(!kept([20_000; 7]));
        assert!(!kept([310_000, 420_000, 180_000, 240_000, 400_000, 300_000, 330_000, 290_000, 310_000]));
    }

    #[test]
    fn what_comes_in_between_is_let_pass() {
        let mut grid = Grid::default();
        for ms in (0_i64..12).flat_map(|n| [n * 3_000, n * 3_000 + 1_100]) {
            grid.on_moment(Instant::MIN + Duration::from_millis(ms));
        }
        let after = |ms: i64| grid.fits(Instant::MIN + Duration::from_millis(33_000 + ms));
        assert!(after(3_010) && after(5_950) && !after(1_500) && !after(20_000));
    }
}
