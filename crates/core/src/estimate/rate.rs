//! How fast does the bottleneck let this direction through?
//!
//! Bytes that left together pass the bottleneck one after another: the spacing of their arrivals (near the
//! receiver) or of their ACKs (near the sender) shows its rate. Idle time inside a run makes it look slower
//! than the bottleneck, packets that were held up together on their way make it look faster: a run a little
//! above the median of the last ones is taken.

use tcpwhy_wire::{Duration, Instant};

use crate::estimate::maybe::Maybe;

/// A run has at least this many events and this length: a few ACKs that clumped on the way would pass for a
/// fast link. A run of a few events that ends early serves until there is a whole one.
const RUN_EVENTS: u32 = 16;
const RUN_TIME: Duration = Duration::from_millis(1);
const SHORT_RUN_EVENTS: u32 = 4;
/// Clumping on the way does not explain a run this long, however few its events are.
const SLOW_RUN_TIME: Duration = Duration::from_millis(3);
/// The intervals of a link differ by less than this for equal bytes, whatever jitter its path adds. Source: none written down.
const QUICK: u128 = 4;
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
        // Nearly always fits 64 bits, where the division is ten times as fast.
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

    /// Whether it is faster by more than two measurements of one rate differ.
    pub(crate) fn is_faster(self, than: Self) -> bool {
        u128::from(self.bytes) * than.over.as_nanos().max(0) as u128 * 4
            > u128::from(than.bytes) * self.over.as_nanos().max(0) as u128 * 5
    }

    /// Whether it is at most half of another one.
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
    /// When the last bytes got through, if the next interval can be measured from there.
    last: Maybe<Instant>,
    best: Option<Box<Best>>,
    /// Intervals may hold idle time that does not show: most runs are too slow.
    blurred: bool,
}

/// Intervals in which the bottleneck was busy, one or several at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Run {
    over: Duration,
    /// The longest of them, and its bytes.
    longest: Duration,
    slowest: u32,
    bytes: u64,
    intervals: u32,
    /// Bytes that took a quarter of the time or less that those before them had taken, or all behind them; 4 GB of them are enough.
    quick: u32,
}

impl Run {
    /// How many bytes came much faster than those before them, or than all with `bytes` that took `interval`.
    fn quick_with(&self, interval: Duration, bytes: u32) -> u32 {
        let ns = |time: Duration| time.as_nanos().max(0) as u128;
        let (own, before) = (ns(interval) * u128::from(self.bytes), ns(self.over) * u128::from(bytes));
        let all = (ns(interval) + ns(self.over)) * u128::from(self.bytes);
        if ns(self.over) * u128::from(self.bytes + u64::from(bytes)) * QUICK < all {
            u32::try_from(self.bytes).unwrap_or(u32::MAX)
        } else if own * QUICK < before {
            self.quick.saturating_add(bytes)
        } else {
            self.quick
        }
    }
}

/// The run under way, the last whole ones, the rate taken, and the fastest short run. Most connections never
/// have bytes that waited.
#[expect(clippy::struct_excessive_bools, reason = "each says something of its own")]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Best {
    run: Run,
    whole: Option<Rate>,
    short: Option<Rate>,
    /// Most of its bytes came much faster than those before them: a link of a fixed rate does not let them.
    jerks: bool,
    /// It was one interval, or mostly one that brought little: a moment in which a host or the path may have done nothing.
    stop: bool,
    runs: [Option<Rate>; RUNS],
    next: usize,
    /// A quarter of the runs are more than twice as fast as another quarter.
    uneven: bool,
    /// The runs differ so, and the last one is among the fastest.
    rising: bool,
    /// Time per event in the last whole run.
    spacing: Duration,
}

/// Whole runs remembered.
const RUNS: usize = 15;
/// With fewer, most may be of a slow start that fills the bottleneck for only a part of each round.
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
    /// An estimator whose intervals may hold idle time that does not show.
    pub(crate) fn blurred() -> Self {
        Self { blurred: true, ..Self::default() }
    }

    /// When the last bytes got through.
    #[inline]
    pub(crate) fn last(&self) -> Option<Instant> {
        self.last.get()
    }

    /// Time that the bottleneck needs per event, in the run under way or in the last whole one.
    pub(crate) fn usual_spacing(&self) -> Option<Duration> {
        let whole = || self.best.as_ref().map(|best| best.spacing).filter(|spacing| spacing.is_positive());
        self.spacing().or_else(whole)
    }

    /// Time that the bottleneck needs per event, if the run under way shows it.
    #[inline]
    pub(crate) fn spacing(&self) -> Option<Duration> {
        let Run { over, intervals, .. } = self.best.as_ref()?.run;
        (intervals >= SHORT_RUN_EVENTS).then(|| over.divided_by(i64::from(intervals)))
    }

    /// Something got through at `now` that had not been waiting: [`on_bytes`](Self::on_bytes) of that.
    #[inline]
    pub(crate) fn on_lone(&mut self, now: Instant) {
        self.last.set(now);
    }

    /// `bytes` got through at `now`; `behind` if they had been waiting when those before them got through,
    /// so that the bottleneck needed the time in between for them.
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
        // Only a rate of short runs asks.
        if best.whole.is_none() {
            run.quick = run.quick_with(now - last, bytes);
        }
        run.over += now - last;
        if now - last > run.longest {
            (run.longest, run.slowest) = (now - last, bytes);
        }
        run.bytes += u64::from(bytes);
        run.intervals += 1;
        let Run { over, longest, slowest, bytes, intervals, quick } = *run;
        let enough = intervals + 1 >= SHORT_RUN_EVENTS && bytes >= 3 * u64::from(mss);
        let slow = over >= SLOW_RUN_TIME && (intervals + 1 >= SHORT_RUN_EVENTS || bytes >= u64::from(mss));
        if !(enough || slow) || !over.is_positive() {
            return;
        }
        let rate = Rate { bytes, over };
        // Mostly one interval: a moment in which a host or the path did nothing, unless it has come again.
        let whole = intervals + 1 >= RUN_EVENTS && over >= RUN_TIME && longest.times(2) <= over;
        // Nor do bytes that had piled up in it, and came at once, show a link.
        if !whole && intervals > 1 && longest.times(4) > over.times(3) {
            best.short = best.short.filter(|short| short.compare(rate).is_gt());
            return;
        }
        if best.stop && intervals + 1 >= SHORT_RUN_EVENTS {
            best.stop = best.short.is_none_or(|short| short.is_faster(rate));
        }
        let fastest = !whole && best.short.is_none_or(|short| rate.compare(short).is_gt());
        if fastest {
            best.short = Some(rate);
        }
        if best.whole.is_none() && (whole || fastest) {
            best.jerks = u64::from(quick) * 2 > bytes;
            let mostly_one = longest.times(2) > over && u64::from(slowest) * 2 < bytes;
            best.stop = !whole && (intervals == 1 || mostly_one);
        }
        if whole {
            best.on_whole(rate, self.blurred);
            best.spacing = over.divided_by(i64::from(intervals));
            best.run = Run::default();
        }
    }

    /// An interval of this length was not the bottleneck's: forgets what it may have shown outside whole
    /// runs.
    pub(crate) fn forget(&mut self, interval: Duration) {
        if let Some(best) = &mut self.best {
            best.run = Run::default();
            best.short = best.short.filter(|short| short.over < interval);
        }
    }

    /// The next interval cannot be measured from the last event.
    pub(crate) fn interrupt(&mut self) {
        self.last = Maybe::NONE;
    }

    /// Whether so many runs are known that one more changes little.
    #[inline]
    pub(crate) fn is_settled(&self) -> bool {
        self.best.as_ref().is_some_and(|best| best.runs[FEW_RUNS - 1].is_some())
    }

    /// Whether the rate comes by fits and starts: the link changes, or hosts are busy.
    #[inline]
    pub(crate) fn is_uneven(&self) -> bool {
        self.best.as_ref().is_some_and(|best| best.uneven)
    }

    /// Whether only a few events within a moment have shown it, or some that came by jerks.
    pub(crate) fn is_guess(&self) -> bool {
        self.best.as_ref().is_some_and(|best| {
            let few = best.short.is_some_and(|short| short.over < SLOW_RUN_TIME || best.jerks);
            best.whole.is_none() && few
        })
    }

    /// Whether a single interval has shown it, and nothing since.
    pub(crate) fn is_one_interval(&self) -> bool {
        self.best.as_ref().is_some_and(|best| best.stop)
    }

    /// Whether the run that has shown it came by jerks, and few have since.
    pub(crate) fn is_jerky(&self) -> bool {
        self.best.as_ref().is_some_and(|best| best.jerks && best.runs[FEW_RUNS - 1].is_none())
    }

    pub(crate) fn has_whole_runs(&self) -> bool {
        self.best.as_ref().is_some_and(|best| best.whole.is_some())
    }

    /// Whether some bytes came so much faster that no fixed rate lets both through.
    pub(crate) fn is_outrun(&self) -> bool {
        let both = self.best.as_ref().and_then(|best| best.short.zip(best.whole));
        both.is_some_and(|(short, whole)| {
            let quarter = Rate { bytes: short.bytes, over: short.over.times(4) };
            quarter.compare(whole).is_gt()
        })
    }

    /// Whether the rate rises further and further: a link's does not.
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
