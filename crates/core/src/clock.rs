//! By how much longer than usual was this packet on its way from its sender?
//!
//! The sender's time stamps (RFC 7323) are its clock at the time of sending. The smallest difference between the
//! capture's clock and the sender's is the path's own; what a packet exceeds it by, it waited on the way. The sender's
//! tick is its granularity, and its clock drifts, so that only the recent past is compared with.

use tcpwhy_wire::{Duration, Instant};

/// Clock rates in use: 1 ms (Linux, Windows, FreeBSD, macOS), 4 and 10 ms (jiffies of old), 1 us (TCP_USEC_TS).
const TICKS: [Duration; 4] =
    [Duration::from_micros(1), Duration::from_millis(1), Duration::from_millis(4), Duration::from_millis(10)];
/// How much of the clock must have passed to tell its rate.
const LEARN_FOR: Duration = Duration::from_millis(100);
/// How long a smallest difference is compared with: at 100 ppm of drift that is 1 ms and more.
const REMEMBER_FOR: Duration = Duration::from_secs(10);

/// One sender's time-stamp clock as the capture sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StampClock {
    first: Option<(u32, Instant)>,
    /// Zero until it is known.
    tick: Duration,
    /// Smallest difference of the present period and of the one before it; none is the longest.
    smallest: [Duration; 2],
    period_started: Instant,
}

impl Default for StampClock {
    fn default() -> Self {
        Self { first: None, tick: Duration::ZERO, smallest: [Duration::MAX; 2], period_started: Instant::MIN }
    }
}

impl StampClock {
    /// A packet that its sender stamped `val` passed at `at`. Returns how much longer than the fastest recent one it
    /// was on its way, where that can be told; short of the truth by a tick at most.
    #[inline]
    pub(crate) fn on_packet(&mut self, at: Instant, val: u32) -> Option<Duration> {
        let Some((first_val, first_at)) = self.first else {
            self.first = Some((val, at));
            return None;
        };
        let (passed, ticks) = (at - first_at, i64::from(val.wrapping_sub(first_val) as i32));
        if self.tick == Duration::ZERO && !self.learn_tick(passed, ticks, (val, at)) {
            return None;
        }
        let difference = passed - self.tick.times(ticks);
        if at - self.period_started >= REMEMBER_FOR {
            self.smallest = [Duration::MAX, self.smallest[0]];
            self.period_started = at;
        }
        self.smallest[0] = self.smallest[0].min(difference);
        let smallest = self.smallest[1].min(self.smallest[0]);
        Some((difference - smallest - self.tick).at_least_zero())
    }

    /// Whether the clock's rate is known now.
    fn learn_tick(&mut self, passed: Duration, ticks: i64, now: (u32, Instant)) -> bool {
        if passed < LEARN_FOR || ticks <= 0 {
            return false;
        }
        let rate = passed.as_nanos() / ticks;
        // Within a fifth: the first packets may have been queued themselves.
        let tick = TICKS.into_iter().find(|tick| {
            let tick = tick.as_nanos();
            rate >= tick - tick / 5 && rate <= tick + tick / 5
        });
        match tick {
            Some(tick) => self.tick = tick,
            None => self.first = Some(now),
        }
        tick.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_that_waited_30_ms_shows_29_to_30_of_them() {
        let mut clock = StampClock::default();
        let ms = |n: i64| Instant::from_nanos(n * 1_000_000);
        for i in 0..40 {
            clock.on_packet(ms(1000 + 10 * i), 5000 + 10 * i as u32);
        }
        let waited = clock.on_packet(ms(1400 + 30), 5400).expect("the rate is known");
        assert!(waited >= Duration::from_millis(29) && waited <= Duration::from_millis(30), "{waited}");
        assert_eq!(clock.on_packet(ms(1500), 5500), Some(Duration::ZERO));
    }
}
