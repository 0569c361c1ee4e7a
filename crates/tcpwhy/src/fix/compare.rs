//! Is it better, worse, or no different? Two samples of times are compared by their ranks.

use super::measure::Measured;

/// The outcome of a fix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Better,
    NoDifference,
    Worse,
    /// Too few exchanges to tell.
    TooFew,
}

/// Fewer exchanges tell nothing.
const LEAST: usize = 3;
/// Rank sums this many standard deviations apart occur by chance once in a thousand times.
const DEVIATIONS: f64 = 3.29;
/// In a smaller sample, all values have to lie on one side.
const FEW: usize = 12;
/// Two periods on a busy machine differ by more than chance; only a difference of this share of
/// their medians counts ...
const SHARE_MIN: f64 = 0.2;
/// ... or of this time in nanoseconds. Waits caused by TCP are longer.
const NS_MIN: f64 = 100_000.0;

/// Compares the measurements before and after.
pub(super) fn compare(before: &Measured, after: &Measured) -> Verdict {
    let (old, new) = (&before.exchanges_ns, &after.exchanges_ns);
    if old.len() < LEAST || new.len() < LEAST {
        return Verdict::TooFew;
    }
    let (old_median, new_median) = (before.quantile_ns(500) as f64, after.quantile_ns(500) as f64);
    let share = (old_median - new_median).abs() / old_median.max(1.0);
    let apart = if old.len().min(new.len()) < FEW {
        new.last() < old.first() || old.last() < new.first()
    } else {
        deviations(old, new).abs() > DEVIATIONS
    };
    match () {
        () if share < SHARE_MIN || (old_median - new_median).abs() < NS_MIN || !apart => {
            Verdict::NoDifference
        }
        () if new_median < old_median => Verdict::Better,
        () => Verdict::Worse,
    }
}

/// The statistic of Mann and Whitney (1947) in standard deviations, with mean ranks for ties. Both
/// samples are sorted.
fn deviations(old: &[u64], new: &[u64]) -> f64 {
    let (m, n) = (old.len() as f64, new.len() as f64);
    // Pairs in which the old value is larger, plus half of the ties.
    let pairs: f64 = new
        .iter()
        .map(|value| {
            let below = old.partition_point(|other| other <= value);
            let equal = below - old.partition_point(|other| other < value);
            (old.len() - below) as f64 + equal as f64 / 2.0
        })
        .sum();
    (pairs - m * n / 2.0) / (m * n * (m + n + 1.0) / 12.0).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(values: impl IntoIterator<Item = u64>) -> Measured {
        let mut exchanges_ns: Vec<u64> = values.into_iter().collect();
        exchanges_ns.sort_unstable();
        Measured { exchanges_ns, ..Measured::default() }
    }

    #[test]
    fn a_stall_that_is_gone_is_better_and_noise_is_no_difference() {
        let stalled = || sample((0..40).map(|n| 44_000_000 + n * 10_000));
        let quick = || sample((0..4_000).map(|n| 16_000 + n));
        assert_eq!(compare(&stalled(), &quick()), Verdict::Better);
        assert_eq!(compare(&quick(), &stalled()), Verdict::Worse);
        // Two draws from the same distribution.
        let draw = |seed: u64| sample((0..500).map(|n: u64| 20_000 + (n * 7_919 + seed) % 9_973));
        assert_eq!(compare(&draw(1), &draw(4_000)), Verdict::NoDifference);
    }

    #[test]
    fn few_exchanges_have_to_differ_all_of_them() {
        let ms = |values: &[u64]| sample(values.iter().map(|ms| ms * 1_000_000));
        assert_eq!(compare(&ms(&[1_700, 1_710, 1_690]), &ms(&[290, 280, 300, 310])), Verdict::Better);
        assert_eq!(compare(&ms(&[1_700, 1_710, 250]), &ms(&[290, 280, 300, 310])), Verdict::NoDifference);
        assert_eq!(compare(&ms(&[1_700, 1_710]), &ms(&[290, 280, 300])), Verdict::TooFew);
    }

    #[test]
    fn the_statistic_is_that_of_a_worked_example() {
        // All pairs in one direction: U = m n, and z = sqrt(3 m n / (m + n + 1)).
        let z = deviations(&[4, 5, 6], &[1, 2, 3]);
        assert!((z - (27.0_f64 / 7.0).sqrt()).abs() < 1e-12, "{z}");
    }
}
