//! How fast does the bottleneck let this direction through?
//!
//! Bytes that left together pass the bottleneck one behind the other: the spacing of their arrivals (near the receiver)
//! or of their acknowledgements (near the sender) shows its rate. The fastest run of several events is kept, because
//! idle times between rounds only ever make a run look slower.

use tcpwhy_wire::{Duration, Instant};

/// Events in one run. Fewer would take a few acknowledgements that were clumped on the way for a fast link; they serve
/// until there is a whole run.
const RUN: usize = 16;
const SHORT_RUN: usize = 4;
const NANOS_PER_SECOND: u128 = 1_000_000_000;

/// Bytes over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rate {
    bytes: u64,
    over: Duration,
}

impl Rate {
    /// How long `bytes` take at this rate.
    pub(crate) fn time_for(self, bytes: u32) -> Duration {
        let ns = u128::from(bytes) * self.over.as_nanos().max(0) as u128 / u128::from(self.bytes.max(1));
        Duration::from_nanos(i64::try_from(ns).unwrap_or(i64::MAX))
    }

    pub(crate) fn bits_per_second(self) -> u64 {
        let bits = u128::from(self.bytes) * 8 * NANOS_PER_SECOND / self.over.as_nanos().max(1) as u128;
        u64::try_from(bits).unwrap_or(u64::MAX)
    }

    fn faster_than(self, other: Self) -> bool {
        u128::from(self.bytes) * other.over.as_nanos().max(0) as u128
            > u128::from(other.bytes) * self.over.as_nanos().max(0) as u128
    }
}

/// The fastest run seen. Most connections never have two events close to each other, and need no memory for runs.
#[derive(Clone, Debug)]
pub(crate) struct RateEstimator {
    last: (Instant, u32),
    filled: u8,
    runs: Option<Box<Runs>>,
}

impl Default for RateEstimator {
    fn default() -> Self {
        Self { last: (Instant::MIN, 0), filled: 0, runs: None }
    }
}

#[derive(Clone, Debug, Default)]
struct Runs {
    /// A ring: the oldest event is at `next` once it is full, at 0 before.
    events: [(Instant, u32); RUN],
    next: u8,
    /// Bytes of all events in the ring.
    sum: u64,
    best: Option<Rate>,
    best_short: Option<Rate>,
}

impl RateEstimator {
    /// `bytes` got through at `now`. A pause of `idle` or more is the sender's, not the bottleneck's.
    #[inline]
    pub(crate) fn on_bytes(&mut self, now: Instant, bytes: u32, mss: u32, idle: Duration) {
        if bytes == 0 {
            return;
        }
        if self.filled > 0 && now - self.last.0 >= idle.max(Duration::from_micros(200)) {
            self.filled = 0;
        }
        if self.filled > 0 {
            let runs = self.runs.get_or_insert_default();
            if self.filled == 1 {
                runs.restart(self.last);
            }
            runs.on_event((now, bytes), mss, self.filled);
        }
        self.last = (now, bytes);
        self.filled = (self.filled + 1).min(RUN as u8);
    }

    /// What comes next does not belong to the run.
    #[inline]
    pub(crate) fn interrupt(&mut self) {
        self.filled = 0;
    }

    pub(crate) fn best(&self) -> Option<Rate> {
        let runs = self.runs.as_ref()?;
        runs.best.or(runs.best_short)
    }
}

impl Runs {
    fn restart(&mut self, first: (Instant, u32)) {
        self.events[0] = first;
        self.next = 1;
        self.sum = u64::from(first.1);
    }

    /// Another event, behind `filled` others.
    fn on_event(&mut self, event: (Instant, u32), mss: u32, filled: u8) {
        let slot = &mut self.events[self.next as usize % RUN];
        let gone = if filled as usize == RUN { u64::from(slot.1) } else { 0 };
        *slot = event;
        self.sum = self.sum + u64::from(event.1) - gone;
        self.next = (self.next + 1) % RUN as u8;
        let known = (filled as usize + 1).min(RUN);
        if known < SHORT_RUN {
            return;
        }
        let first = self.events[if known == RUN { self.next as usize % RUN } else { 0 }];
        // The first event opens the run: its bytes got through before it.
        let bytes = self.sum - u64::from(first.1);
        let over = event.0 - first.0;
        if bytes < 3 * u64::from(mss) || !over.is_positive() {
            return;
        }
        let rate = Rate { bytes, over };
        let best = if known == RUN { &mut self.best } else { &mut self.best_short };
        if best.is_none_or(|best| rate.faster_than(best)) {
            *best = Some(rate);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_paced_run_shows_the_link_and_an_idle_time_does_not_slow_it() {
        // 1448 bytes each 1.1584 ms is 10 Mb/s.
        let mut estimator = RateEstimator::default();
        for i in 0..10 {
            estimator.on_bytes(Instant::from_nanos(i * 1_158_400), 1448, 1448, Duration::from_millis(20));
        }
        for i in 0..10 {
            let at = Instant::from_nanos(5_000_000_000 + i * 1_158_400);
            estimator.on_bytes(at, 1448, 1448, Duration::from_millis(20));
        }
        assert_eq!(estimator.best().map(Rate::bits_per_second), Some(10_000_000));
    }
}
