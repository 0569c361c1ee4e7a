//! Is a difference of two means more than chance?
//!
//! A permutation test: were both samples of one kind, any division of them would give such a difference as often. What follows each
//! other in time is alike (a queue, a burst of losses), so that not single values are exchanged but blocks of neighbours. The range is
//! that of 95 % of bootstrap resamplings, of blocks as well. The seed is fixed: the same captures give the same answer.

/// Divisions and resamplings tried.
const TRIALS: usize = 4_999;
/// A longer sample is cut into so many blocks.
const BLOCKS: usize = 64;
/// Below this many values on either side no division is rare enough to say anything (2 of the 252 divisions of five and five).
pub(crate) const VALUES_MIN: usize = 5;

/// What chance has to do with a difference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Chance {
    /// How often chance alone gives a difference as large.
    pub p: f64,
    /// 95 % of the resampled differences are from here...
    pub low: f64,
    /// ...to here.
    pub high: f64,
}

/// Of `after`'s mean less `before`'s; values in the order of time. `None` where they are too few.
pub fn of(before: &[f64], after: &[f64]) -> Option<Chance> {
    if before.len() < VALUES_MIN || after.len() < VALUES_MIN {
        return None;
    }
    let (before, after) = (blocks(before), blocks(after));
    let seen = (mean(&after) - mean(&before)).abs();
    let mut random = Random(0x7463_7077_6879_0001);
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
    let mut draws: Vec<f64> =
        (0..TRIALS).map(|_| resampled(&after, &mut random) - resampled(&before, &mut random)).collect();
    draws.sort_by(f64::total_cmp);
    let at = |share: f64| draws[((TRIALS - 1) as f64 * share) as usize];
    Some(Chance { p: as_large as f64 / (TRIALS + 1) as f64, low: at(0.025), high: at(0.975) })
}

/// Sum and number of neighbours.
type Block = (f64, f64);

fn blocks(values: &[f64]) -> Vec<Block> {
    let count = values.len().min(BLOCKS);
    (0..count)
        .map(|block| {
            let part = &values[block * values.len() / count..(block + 1) * values.len() / count];
            (part.iter().sum(), part.len() as f64)
        })
        .collect()
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

    /// Of samples of one kind one in twenty is below 0.05, by the definition of p: 25 of 500, and 11 to 42 in all but one of a thousand runs.
    #[test]
    fn chance_is_taken_for_chance() {
        for count in [8, 40, 1_000] {
            let below = (0..500)
                .filter(|seed| {
                    of(&noise(2 * seed, count), &noise(2 * seed + 1, count))
                        .is_some_and(|chance| chance.p < 0.05)
                })
                .count();
            assert!((11..=42).contains(&below), "{below} of 500 with {count} values each");
        }
    }

    #[test]
    fn a_difference_is_none() {
        let before = noise(1, 40);
        let after: Vec<f64> = noise(2, 40).iter().map(|value| value + 600_000.0).collect();
        let Some(chance) = of(&before, &after) else { panic!("40 are enough") };
        assert!(chance.p < 0.001 && chance.low < 600_000.0 && chance.high > 600_000.0, "{chance:?}");
        assert_eq!(of(&before, &after), Some(chance));
        assert!(of(&before[..4], &after).is_none());
        // All alike, and all alike but more: chance gives no difference at all, or that one as often as the division can.
        assert_eq!(of(&[5.0; 9], &[5.0; 9]).map(|chance| chance.p), Some(1.0));
        assert!(of(&[5.0; 9], &[6.0; 9]).is_some_and(|chance| chance.p < 0.001));
    }

    /// Exact for small samples: 2 of the 252 divisions of these are as far apart.
    #[test]
    fn p_is_the_share_of_divisions() {
        let chance = of(&[1.0, 2.0, 3.0, 4.0, 5.0], &[11.0, 12.0, 13.0, 14.0, 15.0]);
        assert!(chance.is_some_and(|chance| (chance.p - 2.0 / 252.0).abs() < 0.004), "{chance:?}");
    }
}
