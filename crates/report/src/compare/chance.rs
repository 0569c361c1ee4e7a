//! Is a difference of two means more than chance?
//!
//! A permutation test: if both samples were of one kind, any division of them would show such a
//! difference as often. Neighbours in time are alike (a queue, a burst of losses), so blocks of
//! neighbours are permuted instead of single values; a block is three times as long as the values
//! stay correlated (the integrated autocorrelation time; Sokal, Monte Carlo Methods in Statistical
//! Mechanics, 1997). A sample with few slow episodes does not show how long they last, so a few
//! long blocks are permuted as well, and the division that attributes most to chance counts. The
//! range is that of 95 % of bootstrap resamplings, of the same blocks. The seed is fixed: the same
//! captures give the same answer.

/// Number of divisions and of resamplings.
const TRIALS: usize = 4_999;
/// The maximum number of blocks of a longer sample, and the minimum of a shorter one.
const BLOCKS: usize = 64;
const BLOCKS_MIN: f64 = VALUES_MIN as f64;
/// Additional, smaller numbers of blocks, and how often chance puts the largest of them all on one
/// side: no test is made where that is too often to prove anything.
const FEW_BLOCKS: [(f64, f64); 5] = [
    (10.0, 2.0 / 184_756.0),
    (8.0, 2.0 / 12_870.0),
    (7.0, 2.0 / 3_432.0),
    (6.0, 2.0 / 924.0),
    (5.0, 2.0 / 252.0),
];
/// Length of a block in autocorrelation times: correlation across a block's end then matters
/// little.
const APART: f64 = 3.0;
/// Correlations are summed over lags up to this many times their sum (Sokal's window).
const WINDOW: f64 = 2.0;
/// Fewer values show no correlation, and neighbours are taken as independent.
const CORRELATED_MIN: usize = 20;
/// With more values, the means of this many groups of neighbours are correlated instead.
const CORRELATED_MAX: usize = 2_048;
/// With fewer values on either side, no division is rare enough to prove anything (2 of the 252
/// divisions of five and five).
pub(crate) const VALUES_MIN: usize = 5;

/// How a difference relates to chance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Chance {
    /// How often chance alone gives a difference this large.
    pub p: f64,
    /// 95 % of the resampled differences are from here...
    pub low: f64,
    /// ...to here.
    pub high: f64,
}

/// Chance of the mean of `after` minus that of `before`; values in order of time. `None` if there
/// are too few. The caller takes a `p` below `p_max` for more than chance.
pub fn of(before: &[f64], after: &[f64], p_max: f64) -> Option<Chance> {
    if before.len() < VALUES_MIN || after.len() < VALUES_MIN {
        return None;
    }
    // With too few blocks, the benefit of the doubt goes to chance.
    let alike = alike(before, after);
    let wanted = [before, after].map(|values| values.len() as f64 / alike);
    let doubt = wanted.iter().map(|count| (BLOCKS_MIN / count).max(1.0)).fold(1.0, f64::max).powi(2);
    let cut = |most: f64| {
        let cut = |values: &[f64], count: f64| blocks(values, count.min(most).max(BLOCKS_MIN) as usize);
        [cut(before, wanted[0]), cut(after, wanted[1])]
    };
    // A number of blocks that is not smaller shows nothing new.
    let differs = |most: f64| wanted.iter().any(|count| *count > most);
    let few = FEW_BLOCKS.iter().filter(|(most, least)| differs(*most) && least * doubt < p_max / 2.0);
    let few = few.map(|(most, _)| *most);
    let mut random = Random(0x7463_7077_6879_0001);
    let tested = std::iter::once(f64::MAX).chain(few).map(|most| {
        let cut = cut(most);
        (permuted(&cut, &mut random), cut)
    });
    let (p, [before, after]) = tested.max_by(|one, other| one.0.total_cmp(&other.0))?;
    let mut draws: Vec<f64> =
        (0..TRIALS).map(|_| resampled(&after, &mut random) - resampled(&before, &mut random)).collect();
    draws.sort_by(f64::total_cmp);
    let at = |share: f64| draws[((TRIALS - 1) as f64 * share) as usize];
    Some(Chance { p: (p * doubt).min(1.0), low: at(0.025), high: at(0.975) })
}

/// How often a division of all blocks gives means as far apart as these.
fn permuted([before, after]: &[Vec<Block>; 2], random: &mut Random) -> f64 {
    let seen = (mean(after) - mean(before)).abs();
    let mut all = [before.clone(), after.clone()].concat();
    let mut as_large = 1;
    for _ in 0..TRIALS {
        for at in 0..before.len() {
            let other = at + random.below(all.len() - at);
            all.swap(at, other);
        }
        let (one, other) = all.split_at(before.len());
        // Sums in another order differ in their last bits.
        as_large += usize::from((mean(other) - mean(one)).abs() >= seen * (1.0 - 1e-9));
    }
    as_large as f64 / (TRIALS + 1) as f64
}

/// Sum and number of neighbouring values.
type Block = (f64, f64);

fn blocks(values: &[f64], most: usize) -> Vec<Block> {
    groups(values, most.min(BLOCKS))
}

fn groups(values: &[f64], most: usize) -> Vec<Block> {
    let count = values.len().min(most);
    (0..count)
        .map(|block| {
            let part = &values[block * values.len() / count..(block + 1) * values.len() / count];
            (part.iter().sum(), part.len() as f64)
        })
        .collect()
}

/// How many consecutive values count as one.
fn alike(before: &[f64], after: &[f64]) -> f64 {
    if before.len().min(after.len()) < CORRELATED_MIN {
        return 1.0;
    }
    let size = (before.len().max(after.len()) as f64 / CORRELATED_MAX as f64).max(1.0);
    let samples = [before, after].map(|values| {
        let all = mean(&groups(values, values.len()));
        let groups = groups(values, (values.len() as f64 / size).ceil() as usize);
        groups.iter().map(|(sum, count)| sum / count - all).collect::<Vec<_>>()
    });
    // Of both samples, each about its own mean.
    let covariance = |lag: usize| -> f64 {
        samples.iter().map(|values| values.iter().zip(&values[lag..]).map(|(a, b)| a * b).sum::<f64>()).sum()
    };
    let variance = covariance(0);
    if variance <= 0.0 {
        return 1.0;
    }
    let longest = samples.iter().map(Vec::len).min().unwrap_or(0) / 2;
    let mut time = 1.0;
    for lag in 1..longest {
        time += 2.0 * covariance(lag) / variance;
        if lag as f64 >= WINDOW * time {
            break;
        }
    }
    APART * time.max(1.0) * size
}

fn mean(blocks: &[Block]) -> f64 {
    let (sum, count) = blocks.iter().fold((0.0, 0.0), |all, block| (all.0 + block.0, all.1 + block.1));
    sum / count
}

fn resampled(blocks: &[Block], random: &mut Random) -> f64 {
    let draw = (0..blocks.len()).map(|_| blocks[random.below(blocks.len())]);
    let (sum, count) = draw.fold((0.0, 0.0), |all: Block, block| (all.0 + block.0, all.1 + block.1));
    sum / count
}

/// SplitMix64 (Steele, Lea and Flood, 2014).
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((u128::from(z ^ (z >> 31)) * n as u128) >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(seed: u64, count: usize) -> Vec<f64> {
        let mut random = Random(seed);
        (0..count).map(|_| random.below(1_000_000) as f64).collect()
    }

    /// For samples of one kind, at most one in twenty is below 0.05: 25 of 500, and no more than 42
    /// in all but one of a thousand runs.
    #[test]
    fn chance_is_taken_for_chance() {
        for count in [8, 40, 1_000] {
            let below = (0..500)
                .filter(|seed| {
                    of(&noise(2 * seed, count), &noise(2 * seed + 1, count), 0.05)
                        .is_some_and(|chance| chance.p < 0.05)
                })
                .count();
            assert!(below <= 42, "{below} of 500 with {count} values each");
        }
    }

    /// Exchanges of a service that is slow in episodes of this many exchanges.
    fn service(seed: u64, count: usize, episode: usize) -> Vec<f64> {
        let mut random = Random(seed);
        let mut slow = 0;
        (0..count)
            .map(|_| {
                if slow == 0 && random.below(50) == 0 {
                    slow = episode;
                }
                let usual = 100_000.0 * f64::from(1_u32 << random.below(4)) + random.below(100_000) as f64;
                let held = if slow > 0 { 20_000_000.0 + random.below(40_000_000) as f64 } else { 0.0 };
                slow = slow.saturating_sub(1);
                usual + held
            })
            .collect()
    }

    /// The same service twice: at least 95 of 100 comparisons call it chance. (With fixed blocks of
    /// a 64th of the sample, 10 and 17 of 100 differed with episodes of 3 and 10, and 49 with 40
    /// exchanges; with blocks by autocorrelation alone, 22 of 200 with 200 exchanges and episodes
    /// of 10, of which either side has three or four.)
    #[test]
    fn episodes_are_chance_too() {
        for (count, episode) in [(40, 1), (40, 3), (200, 1), (200, 3), (200, 10), (1_000, 10), (1_000, 30)] {
            let differ = |seed: &u64| {
                let of_one_kind = [0, 1].map(|half| service(2 * seed + half, count, episode));
                of(&of_one_kind[0], &of_one_kind[1], 0.05).is_some_and(|chance| chance.p < 0.05)
            };
            let differ = (0..400).filter(differ).count();
            println!("{differ} of 400 with {count} exchanges and episodes of {episode}");
            assert!(differ <= 20, "{differ} of 400 with {count} exchanges and episodes of {episode}");
        }
    }

    /// With a hundred services, each needs a smaller p: a few blocks cannot reach it, so they are
    /// not tried.
    #[test]
    fn a_change_of_one_of_many_services_is_found() {
        let before = noise(1, 200);
        let after: Vec<f64> = noise(2, 200).iter().map(|value| value + 900_000.0).collect();
        assert!(of(&before, &after, 0.05 / 100.0).is_some_and(|chance| chance.p < 0.05 / 100.0));
    }

    /// A real change is found: ten milliseconds more, in an exchange of six on average.
    #[test]
    fn a_change_beside_episodes_is_found() {
        let found = (0..50).filter(|seed| {
            let before = service(2 * seed, 400, 3);
            let after: Vec<f64> = service(2 * seed + 1, 400, 3).iter().map(|ns| ns + 10_000_000.0).collect();
            of(&before, &after, 0.05).is_some_and(|chance| chance.p < 0.05)
        });
        let found = found.count();
        assert!(found >= 48, "{found} of 50");
    }

    #[test]
    fn a_difference_is_none() {
        let before = noise(1, 40);
        let after: Vec<f64> = noise(2, 40).iter().map(|value| value + 600_000.0).collect();
        let Some(chance) = of(&before, &after, 0.05) else { panic!("40 are enough") };
        assert!(chance.p < 0.01 && chance.low < 600_000.0 && chance.high > 600_000.0, "{chance:?}");
        assert_eq!(of(&before, &after, 0.05), Some(chance));
        assert!(of(&before[..4], &after, 0.05).is_none());
        // All equal, and all equal but larger: chance gives no difference at all, or that one as
        // often as the division allows.
        assert_eq!(of(&[5.0; 9], &[5.0; 9], 0.05).map(|chance| chance.p), Some(1.0));
        assert!(of(&[5.0; 9], &[6.0; 9], 0.05).is_some_and(|chance| chance.p < 0.02));
    }

    /// Exact for small samples: 2 of the 252 divisions of these are as far apart.
    #[test]
    fn p_is_the_share_of_divisions() {
        let chance = of(&[1.0, 2.0, 3.0, 4.0, 5.0], &[11.0, 12.0, 13.0, 14.0, 15.0], 0.05);
        assert!(chance.is_some_and(|chance| (chance.p - 2.0 / 252.0).abs() < 0.004), "{chance:?}");
    }
}
