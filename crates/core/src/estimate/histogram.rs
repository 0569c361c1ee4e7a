//! How is a duration distributed over many exchanges?
//!
//! A few values are kept as they are: percentiles are values that were measured. Beyond that they are
//! counted in steps of a 64th of an octave, exact below 64 ns, and never above the largest.

use tcpwhy_wire::Duration;

/// The values, or counts by step.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Spread {
    /// The values, while they are few.
    exact: Vec<u64>,
    /// By octave, from the shortest; octaves without a hit have no steps.
    octaves: Vec<Vec<u64>>,
    total: u64,
    largest: u64,
}

/// This many values are kept one by one, in as much memory as the steps of eight octaves take.
const EXACT: usize = 512;

/// The slow part of many durations, if most of the time is in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlowPart {
    pub count: u64,
    pub median: Duration,
    pub median_of_rest: Duration,
}

impl Spread {
    const STEP_BITS: u32 = 6;
    /// Values above this many medians are slow.
    const SLOW: u64 = 4;

    /// Returns which of at most 64 octaves it is counted in.
    #[inline]
    pub(crate) fn add(&mut self, ns: Duration) -> usize {
        self.add_value(ns.as_nanos().max(0) as u64)
    }

    #[inline]
    fn add_value(&mut self, ns: u64) -> usize {
        self.total += 1;
        self.largest = self.largest.max(ns);
        let (octave, step) = Self::place(Self::step(ns));
        if let Some(count) = self.octaves.get_mut(octave).and_then(|steps| steps.get_mut(step)) {
            *count += 1;
        } else if self.octaves.is_empty() && self.exact.len() < self.exact.capacity().min(EXACT) {
            self.exact.push(ns);
        } else {
            self.add_to_many(ns);
        }
        octave
    }

    /// There is no room, or values are counted by step.
    #[inline(never)]
    fn add_to_many(&mut self, ns: u64) {
        if self.octaves.is_empty() {
            if self.exact.len() < EXACT {
                return self.exact.push(ns);
            }
            self.count_exact();
        }
        self.count(Self::step(ns), 1);
    }

    /// From here on, counts by step.
    #[cold]
    fn count_exact(&mut self) {
        for ns in std::mem::take(&mut self.exact) {
            self.count(Self::step(ns), 1);
        }
    }

    fn count(&mut self, step: u16, more: u64) {
        let (octave, step) = Self::place(step);
        if self.octaves.len() <= octave {
            self.octaves.resize(octave + 1, Vec::new());
        }
        let steps = &mut self.octaves[octave];
        if steps.is_empty() {
            steps.resize(1 << Self::STEP_BITS, 0);
        }
        steps[step] += more;
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for ns in &other.exact {
            self.add_value(*ns);
        }
        if other.octaves.is_empty() {
            return;
        }
        self.count_exact();
        for (step, count) in other.steps() {
            self.count(step, count);
            self.total += count;
        }
        self.largest = self.largest.max(other.largest);
    }

    /// All that were counted by step, from the shortest.
    fn steps(&self) -> impl Iterator<Item = (u16, u64)> {
        let octave = |(octave, steps): (usize, &Vec<u64>)| {
            let step = move |(step, count)| (((octave << Self::STEP_BITS) + step) as u16, count);
            steps.clone().into_iter().enumerate().map(step)
        };
        self.octaves.iter().enumerate().flat_map(octave).filter(|(_, count)| *count > 0)
    }

    #[inline]
    fn step(ns: u64) -> u16 {
        if ns < 1 << Self::STEP_BITS {
            return ns as u16;
        }
        let octave = ns.ilog2() - Self::STEP_BITS;
        let mantissa = (ns >> octave) as u16 & ((1 << Self::STEP_BITS) - 1);
        ((octave as u16 + 1) << Self::STEP_BITS) + mantissa
    }

    /// Its octave, and its step within that.
    #[inline]
    fn place(step: u16) -> (usize, usize) {
        (usize::from(step >> Self::STEP_BITS), usize::from(step) % (1 << Self::STEP_BITS))
    }

    /// The middle of a step.
    fn value(step: u16) -> Duration {
        if step < 1 << Self::STEP_BITS {
            return Duration::from_nanos(i64::from(step));
        }
        let octave = u32::from(step >> Self::STEP_BITS) - 1;
        let mantissa = u64::from(step & ((1 << Self::STEP_BITS) - 1)) + (1 << Self::STEP_BITS);
        let middle = ((mantissa << 1) + 1) << octave >> 1;
        Duration::from_nanos(i64::try_from(middle).unwrap_or(i64::MAX))
    }

    /// All values from the shortest, each with its count, as exactly as they are known.
    fn values(&self) -> Vec<(Duration, u64)> {
        if self.octaves.is_empty() {
            let mut exact = self.exact.clone();
            exact.sort_unstable();
            return exact.into_iter().map(|ns| (Duration::from_nanos(ns as i64), 1)).collect();
        }
        let largest = Duration::from_nanos(self.largest as i64);
        self.steps().map(|(step, count)| (Self::value(step).min(largest), count)).collect()
    }

    /// Nearest-rank percentile.
    pub(crate) fn percentile(&self, percent: u64) -> Duration {
        at_rank(&self.values(), (self.total * percent).div_ceil(100))
    }

    /// The values above several times the median, if they are at least half of the sum.
    pub(crate) fn slow_part(&self) -> Option<SlowPart> {
        let values = self.values();
        let median = at_rank(&values, self.total.div_ceil(2));
        let limit = median.times(Self::SLOW as i64);
        let first = values.partition_point(|(value, _)| *value <= limit);
        let (rest, slow) = values.split_at(first);
        let count = |part: &[(Duration, u64)]| part.iter().map(|(_, count)| count).sum::<u64>();
        let sum = |part: &[(Duration, u64)]| -> i128 {
            part.iter().map(|(value, count)| i128::from(value.as_nanos()) * i128::from(*count)).sum()
        };
        (!slow.is_empty() && sum(slow) >= sum(rest)).then(|| SlowPart {
            count: count(slow),
            median: at_rank(slow, count(slow).div_ceil(2)),
            median_of_rest: at_rank(rest, count(rest).div_ceil(2)),
        })
    }
}

/// The value of this rank, counted from 1.
fn at_rank(values: &[(Duration, u64)], rank: u64) -> Duration {
    let mut seen = 0;
    for (value, count) in values {
        seen += count;
        if seen >= rank.max(1) {
            return *value;
        }
    }
    Duration::ZERO
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread(values: impl Iterator<Item = i64>) -> Spread {
        let mut spread = Spread::default();
        values.map(Duration::from_nanos).for_each(|ns| {
            spread.add(ns);
        });
        spread
    }

    #[test]
    fn percentiles_of_few_are_values_that_were_measured() {
        let spread = spread((1..=100).map(|i| i * 1_234_567));
        for percent in [50, 99, 100] {
            assert_eq!(spread.percentile(percent).as_nanos(), percent as i64 * 1_234_567);
        }
    }

    #[test]
    fn percentiles_of_many_are_within_a_sixty_fourth_and_never_above_the_largest() {
        let spread = spread((1..=10_000).map(|i| i * 1_000_000));
        for (percent, expected_ms) in [(50, 5_000.0), (99, 9_900.0), (100, 10_000.0)] {
            let shown = spread.percentile(percent).as_millis_f64();
            assert!((shown / expected_ms - 1.0f64).abs() < 1.0 / 64.0, "p{percent}: {shown}");
        }
        assert!(spread.percentile(100) <= Duration::from_millis(10_000));
    }

    #[test]
    fn it_is_the_same_in_whatever_parts_it_was_counted() {
        for len in [100, EXACT as i64, EXACT as i64 + 1, 3_000] {
            let whole = spread((1..=len).map(|i| i * i));
            for parts in [2, 7] {
                let mut sum = Spread::default();
                for part in 0..parts {
                    sum.merge(&spread((1..=len).filter(|i| i % parts == part).map(|i| i * i)));
                }
                assert_eq!(sum.values(), whole.values(), "{len} in {parts}");
            }
        }
    }

    #[test]
    fn the_slow_part_is_told_where_most_of_the_time_is_in_it() {
        let tail = spread((0..200).map(|i| if i % 10 == 0 { 211_000_000 } else { 1_200_000 }));
        let slow =
            tail.slow_part().map(|slow| (slow.count, slow.median.as_nanos(), slow.median_of_rest.as_nanos()));
        assert_eq!(slow, Some((20, 211_000_000, 1_200_000)));
        assert_eq!(spread((0..200).map(|i| 40_000_000 + i)).slow_part(), None);
        // One that is ten times as slow, and a twentieth of the time.
        assert_eq!(spread((0..200).map(|i| if i == 7 { 10_000 } else { 1_000 })).slow_part(), None);
        assert_eq!(Spread::default().slow_part(), None);
    }
}
