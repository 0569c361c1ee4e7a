//! How fast does the bottleneck let this direction through?
//!
//! Bytes that left together pass the bottleneck one behind the other: the spacing of their arrivals (near the receiver)
//! or of their acknowledgements (near the sender) shows its rate. The fastest run of several events is kept, because
//! idle times between rounds only ever make a run look slower.

use tcpwhy_wire::{Duration, Instant};

/// A run is this many events and this long at least: a few acknowledgements that were clumped on the way would pass for
/// a fast link. A run of a few events that ends early serves until there is a whole one.
const RUN_EVENTS: u32 = 16;
const RUN_TIME: Duration = Duration::from_millis(1);
const SHORT_RUN_EVENTS: u32 = 4;
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

/// The fastest run seen.
#[derive(Clone, Debug, Default)]
pub(crate) struct RateEstimator {
    /// The run under way.
    run: Option<Run>,
    best: Option<Box<Best>>,
}

/// Events in quick succession.
#[derive(Clone, Copy, Debug)]
struct Run {
    first: Instant,
    last: Instant,
    /// Bytes behind the first event.
    behind_first: u64,
    events: u32,
}

/// The fastest whole run and the fastest short one. Most connections never have either.
#[derive(Clone, Copy, Debug, Default)]
struct Best {
    whole: Option<Rate>,
    short: Option<Rate>,
}

impl RateEstimator {
    /// `bytes` got through at `now`. A pause of `idle` or more is the sender's, not the bottleneck's.
    #[inline]
    pub(crate) fn on_bytes(&mut self, now: Instant, bytes: u32, mss: u32, idle: Duration) {
        if bytes == 0 {
            return;
        }
        let goes_on = |last: Instant| now - last < idle.max(Duration::from_micros(200));
        let run = match &mut self.run {
            Some(run) if goes_on(run.last) => run,
            // The first event opens the run: its bytes got through before it.
            _ => {
                self.run = Some(Run { first: now, last: now, behind_first: 0, events: 1 });
                return;
            }
        };
        run.last = now;
        run.behind_first += u64::from(bytes);
        run.events += 1;
        let Run { behind_first, events, .. } = *run;
        let over = now - run.first;
        if events < SHORT_RUN_EVENTS || behind_first < 3 * u64::from(mss) || !over.is_positive() {
            return;
        }
        let rate = Rate { bytes: behind_first, over };
        let whole = events >= RUN_EVENTS && over >= RUN_TIME;
        let best = self.best.get_or_insert_default();
        let best = if whole { &mut best.whole } else { &mut best.short };
        if best.is_none_or(|best| rate.faster_than(best)) {
            *best = Some(rate);
        }
        if whole {
            *run = Run { first: now, last: now, behind_first: 0, events: 1 };
        }
    }

    /// What comes next does not belong to the run.
    pub(crate) fn interrupt(&mut self) {
        self.run = None;
    }

    pub(crate) fn best(&self) -> Option<Rate> {
        let best = self.best.as_ref()?;
        best.whole.or(best.short)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_paced_run_shows_the_link_and_an_idle_time_does_not_slow_it() {
        // 1448 bytes each 1.1584 ms is 10 Mb/s.
        let mut estimator = RateEstimator::default();
        for i in 0..20 {
            estimator.on_bytes(Instant::from_nanos(i * 1_158_400), 1448, 1448, Duration::from_millis(20));
        }
        for i in 0..20 {
            let at = Instant::from_nanos(5_000_000_000 + i * 1_158_400);
            estimator.on_bytes(at, 1448, 1448, Duration::from_millis(20));
        }
        assert_eq!(estimator.best().map(Rate::bits_per_second), Some(10_000_000));
    }
}
