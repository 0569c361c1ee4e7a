//! By how much longer than usual was this packet on its way from its sender?
//!
//! The sender's time stamps (RFC 7323) are its clock at the time of sending. The smallest difference between the
//! capture's clock and the sender's is the path's own; what a packet exceeds it by, it waited on the way. The sender's
//! tick is its granularity, and its clock drifts, so that only the recent past is compared with.

use tcpwhy_wire::{Duration, Instant};

/// Clock rates in use, the slowest first: 10 and 4 ms (jiffies of old), 1 ms (Linux, Windows, FreeBSD, macOS).
const TICKS: [Duration; 3] = [Duration::from_millis(10), Duration::from_millis(4), Duration::from_millis(1)];
/// TCP_USEC_TS (Linux 6.7, per route): far from all others, which a late first packet can make look half as long.
const TICK_USEC: Duration = Duration::from_micros(1);
/// Ticks that must have passed to tell their length.
const LEARN_FROM_TICKS: i64 = 8;
/// How long a smallest difference is compared with: at 100 ppm of drift that is 1 ms and more.
const REMEMBER_FOR: Duration = Duration::from_secs(10);

/// One sender's time-stamp clock as the capture sees it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StampClock {
    first: Option<(Instant, u32)>,
    tick: Option<Duration>,
    /// Smallest difference of the present period and of the one before it.
    smallest: [Option<Duration>; 2],
    period_started: Option<Instant>,
}

impl StampClock {
    /// Reads a word of every part.
    #[inline]
    pub(crate) fn fetch(&self) -> u64 {
        u64::from(self.first.is_some())
            ^ u64::from(self.period_started.is_some())
            ^ u64::from(self.smallest[0].is_some())
    }

    /// A packet that its sender stamped `val` passed at `at`. Returns how much longer than the fastest recent one it
    /// was on its way, where that can be told; short of the truth by a tick at most.
    pub(crate) fn on_packet(&mut self, at: Instant, val: u32) -> Option<Duration> {
        let Some((first_at, first_val)) = self.first else {
            self.first = Some((at, val));
            return None;
        };
        let (passed, ticks) = (at - first_at, i64::from(val.wrapping_sub(first_val) as i32));
        // A tick that fits is not revised.
        let fits = self.tick.is_some_and(|tick| passed >= tick.times(ticks));
        if ticks >= LEARN_FROM_TICKS && !fits {
            // A growing queue makes ticks look long, never short: the longest known one that fits, revised downwards.
            let longest = passed.as_nanos() / ticks;
            let fitting = if longest < TICKS[2].as_nanos() / 10 {
                Some(TICK_USEC)
            } else {
                TICKS.into_iter().find(|tick| tick.as_nanos() <= longest + longest / 8).or(Some(TICKS[2]))
            };
            if fitting.is_some() && (self.tick.is_none() || fitting < self.tick) {
                self.tick = fitting;
                self.smallest = [None; 2];
            }
        }
        let tick = self.tick?;
        let difference = passed - tick.times(ticks);
        if self.period_started.is_none_or(|started| at - started >= REMEMBER_FOR) {
            self.smallest = [None, self.smallest[0]];
            self.period_started = Some(at);
        }
        self.smallest[0] = Some(self.smallest[0].map_or(difference, |smallest| smallest.min(difference)));
        // In the first period the very first packet is a sample too: its difference is nothing by definition.
        let first = (passed < REMEMBER_FOR).then_some(Duration::ZERO);
        let smallest = self.smallest.into_iter().flatten().chain(first).min()?;
        Some((difference - smallest - tick).at_least_zero())
    }

    /// The longest time that can lie between the sending of two packets with these stamps.
    pub(crate) fn sent_apart(&self, earlier: u32, later: u32) -> Duration {
        let ticks = i64::from(later.wrapping_sub(earlier) as i32);
        // Without a measured tick, the one that nearly all senders have; where it counts, the longest.
        let tick = self.tick.unwrap_or(if ticks == 0 { TICKS[2] } else { TICKS[0] });
        tick.times(ticks.max(0) + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: i64) -> Instant {
        Instant::from_nanos(n * 1_000_000)
    }

    #[test]
    fn a_packet_that_waited_30_ms_shows_29_to_30_of_them() {
        let mut clock = StampClock::default();
        for i in 0..40 {
            clock.on_packet(ms(1000 + 10 * i), 5000 + 10 * i as u32);
        }
        let waited = clock.on_packet(ms(1400 + 30), 5400).expect("the rate is known");
        assert!(waited >= Duration::from_millis(29) && waited <= Duration::from_millis(30), "{waited}");
        assert_eq!(clock.on_packet(ms(1500), 5500), Some(Duration::ZERO));
    }

    #[test]
    fn a_queue_that_grows_while_the_clock_is_learned_does_not_slow_the_clock() {
        // 1 ms ticks, sent every 10 ms, each 5 ms longer on its way than the one before.
        let mut clock = StampClock::default();
        let mut waited = None;
        for i in 0..20 {
            waited = clock.on_packet(ms(1000 + 15 * i), 5000 + 10 * i as u32);
        }
        let waited = waited.expect("the rate is known");
        assert!(waited >= Duration::from_millis(80), "{waited}");
    }
}
