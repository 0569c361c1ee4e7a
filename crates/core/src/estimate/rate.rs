//! How fast does the bottleneck let this direction through?
//!
//! Bytes that left together pass the bottleneck one behind the other: the spacing of their arrivals (near the receiver)
//! or of their acknowledgements (near the sender) shows its rate. Idle times inside a run make it look slower than the
//! bottleneck, packets that were held up together on their way make it look faster: a run a little above the median of
//! the last ones is taken.

use tcpwhy_wire::{Duration, Instant};

use crate::estimate::maybe::Maybe;

/// A run is this many events and this long at least: a few acknowledgements that were clumped on the way would pass for
/// a fast link. A run of a few events that ends early serves until there is a whole one.
const RUN_EVENTS: u32 = 16;
const RUN_TIME: Duration = Duration::from_millis(1);
const SHORT_RUN_EVENTS: u32 = 4;
/// What clumps on the way is no part of a run that takes so long, however few its events are.
const SLOW_RUN_TIME: Duration = Duration::from_millis(3);
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
        if bytes == 0 {
            return Duration::ZERO;
        }
        let (over, of) = (self.over.as_nanos().max(0) as u64, self.bytes.max(1));
        // Nearly always fits, and is divided ten times as fast then.
        let ns = match u64::from(bytes).checked_mul(over) {
            Some(product) => u128::from(product / of),
            None => u128::from(bytes) * u128::from(over) / u128::from(of),
        };
        Duration::from_nanos(i64::try_from(ns).unwrap_or(i64::MAX))
    }

    pub(crate) fn bits_per_second(self) -> u64 {
        if let Some(bits) = self.bytes.checked_mul(8 * NANOS_PER_SECOND as u64) {
            return bits / self.over.as_nanos().max(1) as u64;
        }
        let bits = u128::from(self.bytes) * 8 * NANOS_PER_SECOND / self.over.as_nanos().max(1) as u128;
        u64::try_from(bits).unwrap_or(u64::MAX)
    }

    /// Whether it is more than the same one measured again.
    pub(crate) fn is_faster(self, than: Self) -> bool {
        u128::from(self.bytes) * than.over.as_nanos().max(0) as u128 * 4
            > u128::from(than.bytes) * self.over.as_nanos().max(0) as u128 * 5
    }

    /// Whether it is half of another one at most.
    fn is_half_of(self, other: Self) -> bool {
        Self { bytes: self.bytes.saturating_mul(2), ..self }.compare(other).is_le()
    }

    fn compare(self, other: Self) -> std::cmp::Ordering {
        let own = u128::from(self.bytes) * other.over.as_nanos().max(0) as u128;
        own.cmp(&(u128::from(other.bytes) * self.over.as_nanos().max(0) as u128))
    }
}

/// The runs seen.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct RateEstimator {
    /// When the last bytes got through, as far as what comes next can be measured from there.
    last: Maybe<Instant>,
    best: Option<Box<Best>>,
    /// Intervals may hold idle time that does not show: most runs are too slow.
    blurred: bool,
}

/// Intervals in which the bottleneck was busy, one or several at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Run {
    over: Duration,
    /// The longest of them.
    longest: Duration,
    bytes: u64,
    intervals: u32,
}

/// The run under way, the last whole ones, the one that is taken, and the fastest short one. Most connections never have bytes that waited.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Best {
    run: Run,
    whole: Option<Rate>,
    short: Option<Rate>,
    runs: [Option<Rate>; RUNS],
    next: usize,
    /// A quarter of the runs are more than twice as fast as another quarter.
    uneven: bool,
    /// They differ so, and the last one is among the fastest.
    rising: bool,
    /// How long one event took in the last whole run.
    spacing: Duration,
}

/// Whole runs that are remembered.
const RUNS: usize = 15;
/// Of fewer, most may be of a start that fills the bottleneck for a part of each round only.
const FEW_RUNS: usize = 5;

impl Best {
    #[inline(never)]
    fn on_whole(&mut self, rate: Rate, blurred: bool) {
        self.runs[self.next] = Some(rate);
        self.next = (self.next + 1) % RUNS;
        let mut rates = self.runs;
        let known = rates.iter().flatten().count();
        rates[..known].sort_unstable_by(|a, b| match (a, b) {
            (Some(a), Some(b)) => a.compare(*b),
            _ => std::cmp::Ordering::Equal,
        });
        let fastest = known - 1;
        let quarters = rates[known / 4].zip(rates[known * 3 / 4]).filter(|_| known >= FEW_RUNS);
        self.uneven = quarters.is_some_and(|(slow, fast)| slow.is_half_of(fast));
        self.rising = self.uneven && quarters.is_some_and(|(_, fast)| rate.compare(fast).is_ge());
        let fifths = if blurred { 4 } else { 3 };
        self.whole = rates[if known < FEW_RUNS { fastest } else { known * fifths / 5 }];
    }
}

impl RateEstimator {
    /// One whose intervals may hold idle time that does not show.
    pub(crate) fn blurred() -> Self {
        Self { blurred: true, ..Self::default() }
    }

    /// When the last bytes got through.
    #[inline]
    pub(crate) fn last(&self) -> Option<Instant> {
        self.last.get()
    }

    /// How long the bottleneck needs from one event to the next in the run under way, or in the last whole one.
    pub(crate) fn usual_spacing(&self) -> Option<Duration> {
        let whole = || self.best.as_ref().map(|best| best.spacing).filter(|spacing| spacing.is_positive());
        self.spacing().or_else(whole)
    }

    /// How long the bottleneck needs from one event to the next, where that has shown.
    #[inline]
    pub(crate) fn spacing(&self) -> Option<Duration> {
        let Run { over, intervals, .. } = self.best.as_ref()?.run;
        (intervals >= SHORT_RUN_EVENTS).then(|| over.divided_by(i64::from(intervals)))
    }

    /// Something got through at `now`, behind nothing: [`on_bytes`](Self::on_bytes) where it had not been waiting.
    #[inline]
    pub(crate) fn on_lone(&mut self, now: Instant) {
        self.last.set(now);
    }

    /// `bytes` got through at `now`; `behind` if they had been waiting when those before them got through, so that the
    /// time in between is what the bottleneck needed for them.
    #[inline]
    pub(crate) fn on_bytes(&mut self, now: Instant, bytes: u32, mss: u32, behind: bool) {
        if bytes == 0 {
            return;
        }
        let last = self.last.get();
        self.last.set(now);
        let Some(last) = last.filter(|_| behind) else { return };
        let best = self.best.get_or_insert_default();
        let run = &mut best.run;
        run.over += now - last;
        run.longest = run.longest.max(now - last);
        run.bytes += u64::from(bytes);
        run.intervals += 1;
        let Run { over, longest, bytes, intervals } = *run;
        let enough = intervals + 1 >= SHORT_RUN_EVENTS && bytes >= 3 * u64::from(mss);
        let slow = over >= SLOW_RUN_TIME && (intervals + 1 >= SHORT_RUN_EVENTS || bytes >= u64::from(mss));
        if !(enough || slow) || !over.is_positive() {
            return;
        }
        let rate = Rate { bytes, over };
        // What takes most of it is a moment in which a host or the path did nothing, until it has come again.
        let whole = intervals + 1 >= RUN_EVENTS && over >= RUN_TIME && longest.times(2) <= over;
        // Nor does what had piled up meanwhile, and came at once, make it a link's.
        if !whole && intervals > 1 && longest.times(4) > over.times(3) {
            best.short = best.short.filter(|short| short.compare(rate).is_gt());
            return;
        }
        if !whole && best.short.is_none_or(|short| rate.compare(short).is_gt()) {
            best.short = Some(rate);
        }
        if whole {
            best.on_whole(rate, self.blurred);
            best.spacing = over.divided_by(i64::from(intervals));
            best.run = Run::default();
        }
    }

    /// An interval of this length was none of the bottleneck's: forgets what no whole run has shown with it.
    pub(crate) fn forget(&mut self, interval: Duration) {
        if let Some(best) = &mut self.best {
            best.run = Run::default();
            best.short = best.short.filter(|short| short.over < interval);
        }
    }

    /// What comes next cannot be measured from the last event.
    pub(crate) fn interrupt(&mut self) {
        self.last = Maybe::NONE;
    }

    /// Whether so many runs are known that one more changes little.
    #[inline]
    pub(crate) fn is_settled(&self) -> bool {
        self.best.as_ref().is_some_and(|best| best.runs[FEW_RUNS - 1].is_some())
    }

    /// Whether what shows it goes by fits and starts: a link that changes, or hosts that are busy.
    #[inline]
    pub(crate) fn is_uneven(&self) -> bool {
        self.best.as_ref().is_some_and(|best| best.uneven)
    }

    /// Whether nothing but a few events within a moment has shown it.
    pub(crate) fn is_guess(&self) -> bool {
        self.best.as_ref().is_some_and(|best| {
            best.whole.is_none() && best.short.is_some_and(|short| short.over < SLOW_RUN_TIME)
        })
    }

    pub(crate) fn has_whole_runs(&self) -> bool {
        self.best.as_ref().is_some_and(|best| best.whole.is_some())
    }

    /// Whether some bytes have come so much faster that no fixed rate lets both through.
    pub(crate) fn is_outrun(&self) -> bool {
        let both = self.best.as_ref().and_then(|best| best.short.zip(best.whole));
        both.is_some_and(|(short, whole)| {
            let quarter = Rate { bytes: short.bytes, over: short.over.times(4) };
            quarter.compare(whole).is_gt()
        })
    }

    /// Whether what shows it becomes faster and faster: that of a link stays as it is.
    pub(crate) fn is_rising(&self) -> bool {
        self.best.as_ref().is_some_and(|best| best.rising)
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
            estimator.on_bytes(Instant::from_nanos(i * 1_158_400), 1448, 1448, true);
        }
        for i in 0..20 {
            let at = Instant::from_nanos(5_000_000_000 + i * 1_158_400);
            estimator.on_bytes(at, 1448, 1448, i > 0);
        }
        assert_eq!(estimator.best().map(Rate::bits_per_second), Some(10_000_000));
    }

    #[test]
    fn what_was_held_up_together_does_not_make_the_link_fast() {
        // 10 Mb/s; of each hundred events the last thirty arrive together, and the next ones where they belong.
        let mut estimator = RateEstimator::default();
        for i in 0..1_000 {
            let due = if i % 100 >= 70 { i - i % 100 + 99 + i % 100 / 90 } else { i };
            let at = Instant::from_nanos(due * 1_158_400 + i * 1_000);
            estimator.on_bytes(at, 1448, 1448, true);
        }
        let rate = estimator.best().map_or(0, Rate::bits_per_second);
        assert!((9_500_000..=10_500_000).contains(&rate), "{rate}");
    }

    #[test]
    fn a_moment_in_which_nothing_moved_does_not_make_the_link_slow() {
        // 1448 bytes each 40 us is 290 Mb/s; once the path stands still for 2 ms.
        let mut estimator = RateEstimator::default();
        for i in 0..200 {
            let at = i * 40_000 + if i >= 10 { 2_000_000 } else { 0 };
            estimator.on_bytes(Instant::from_nanos(at), 1448, 1448, true);
        }
        let rate = estimator.best().map_or(0, Rate::bits_per_second);
        assert!(rate >= 280_000_000, "{rate}");
    }

    #[test]
    fn what_had_piled_up_behind_one_stop_shows_no_link() {
        // A sender paces 1448 bytes each 1.16 ms, and nothing waits. Once the path stands still for 8 ms.
        let mut estimator = RateEstimator::default();
        let mut at = 0;
        for i in 0..40 {
            at += if i == 20 { 8_000_000 } else { 20_000 + 1_140_000 * i64::from(!(21..27).contains(&i)) };
            estimator.on_bytes(Instant::from_nanos(at), 1448, 1448, (20..27).contains(&i));
        }
        assert_eq!(estimator.best().map(Rate::bits_per_second), None);
    }

    #[test]
    fn a_rate_is_uneven_where_it_goes_by_fits_and_starts() {
        // Every fourth stretch of a hundred events is three times as slow as the others, or none is.
        let estimate = |slow: i64| {
            let (mut estimator, mut at) = (RateEstimator::default(), 0);
            for i in 0..2_000 {
                at += if i / 100 % 4 == 3 { slow } else { 100_000 };
                estimator.on_bytes(Instant::from_nanos(at), 1448, 1448, true);
            }
            estimator
        };
        assert!(estimate(300_000).is_uneven());
        assert!(!estimate(130_000).is_uneven());
    }
}
