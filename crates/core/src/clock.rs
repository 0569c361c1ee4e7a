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
#[derive(Clone, Copy, Debug)]
pub(crate) struct StampClock {
    first: Option<(u32, Instant)>,
    /// Zero until it is known.
    tick: Duration,
    /// Smallest difference of the present period and of the one before it; the longest time where there is none.
    smallest: [Duration; 2],
    period_started: Instant,
    /// The present stamp, and when its first packet passed.
    stamp: Option<(u32, Instant)>,
}

impl Default for StampClock {
    fn default() -> Self {
        Self {
            first: None,
            tick: Duration::ZERO,
            smallest: [Duration::MAX; 2],
            period_started: Instant::MIN,
            stamp: None,
        }
    }
}

impl StampClock {
    /// Reads a word of every part.
    #[inline]
    pub(crate) fn fetch(&self) -> u64 {
        (self.smallest[1].as_nanos() ^ self.period_started.as_nanos()) as u64
    }

    /// A packet that its sender stamped `val` passed at `at`. Returns how much longer than the fastest recent one it
    /// was on its way, where that can be told; short of the truth by a tick at most.
    #[inline]
    pub(crate) fn on_packet(&mut self, at: Instant, val: u32) -> Option<Duration> {
        if self.stamp.is_none_or(|(stamp, _)| stamp != val) {
            self.stamp = Some((val, at));
        }
        let Some((first_val, first_at)) = self.first else {
            self.first = Some((val, at));
            return None;
        };
        let (passed, ticks) = (at - first_at, i64::from(val.wrapping_sub(first_val) as i32));
        let mut difference = passed - self.tick.times(ticks);
        // A tick that fits is not revised.
        if ticks >= LEARN_FROM_TICKS && (self.tick == Duration::ZERO || difference < Duration::ZERO) {
            self.revise(passed, ticks);
            difference = passed - self.tick.times(ticks);
        }
        if self.tick == Duration::ZERO {
            return None;
        }
        if at - self.period_started >= REMEMBER_FOR {
            self.smallest = [Duration::MAX, self.smallest[0]];
            self.period_started = at;
        }
        self.smallest[0] = self.smallest[0].min(difference);
        // In the first period the very first packet is a sample too: its difference is nothing by definition.
        let first = if passed < REMEMBER_FOR { Duration::ZERO } else { Duration::MAX };
        let smallest = self.smallest[0].min(self.smallest[1]).min(first);
        Some((difference - smallest - self.tick).at_least_zero())
    }

    /// A growing queue makes ticks look long, never short: the longest known one that fits, revised downwards.
    fn revise(&mut self, passed: Duration, ticks: i64) {
        let longest = passed.as_nanos() / ticks;
        let fitting = if longest < TICKS[2].as_nanos() / 10 {
            TICK_USEC
        } else {
            TICKS.into_iter().find(|tick| tick.as_nanos() <= longest + longest / 8).unwrap_or(TICKS[2])
        };
        if self.tick == Duration::ZERO || fitting < self.tick {
            self.tick = fitting;
            self.smallest = [Duration::MAX; 2];
        }
    }

    /// The capture's clock stepped: when the present stamp came first is no longer known.
    pub(crate) fn interrupt(&mut self) {
        self.stamp = None;
    }

    /// For how long packets with the present stamp have been passing, unless its tick is known to be long.
    pub(crate) fn same_stamp_for(&self, now: Instant) -> Option<Duration> {
        self.stamp.filter(|_| self.tick <= TICKS[2]).map(|(_, since)| now - since)
    }

    /// The longest time that can lie between the sending of two packets with these stamps.
    pub(crate) fn sent_apart(&self, earlier: u32, later: u32) -> Duration {
        let ticks = i64::from(later.wrapping_sub(earlier) as i32);
        // Without a measured tick, the one that nearly all senders have; where it counts, the longest.
        let assumed = if ticks == 0 { TICKS[2] } else { TICKS[0] };
        let tick = if self.tick == Duration::ZERO { assumed } else { self.tick };
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
