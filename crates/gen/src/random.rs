//! Which number comes next? SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number
//! generators, 2014): small, and the same on every machine.

/// A stream of numbers.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// Stream number `stream` of a seed.
    pub(crate) fn new(seed: u64, stream: u64) -> Self {
        let mut mixed = Self(seed ^ stream.wrapping_mul(0xd1b5_4a32_d192_ed03));
        Self(mixed.next())
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From `low` up to but not including `high`.
    pub(crate) fn between(&mut self, low: i64, high: i64) -> i64 {
        low + ((u128::from(self.next()) * (high - low) as u128) >> 64) as i64
    }

    /// True once in `n` times.
    pub(crate) fn one_in(&mut self, n: i64) -> bool {
        self.between(0, n) == 0
    }
}
