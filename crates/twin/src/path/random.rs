//! Where do an element's random numbers come from? From its own stream, derived from the seed and
//! the element's name, so that adding one element does not change what another does.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// A reproducible stream of random numbers: the same on every platform and in every version (integers only).
#[derive(Clone, Debug)]
pub struct Stream(Xoshiro256PlusPlus);

impl Stream {
    /// The stream of the element `name` under `seed`.
    pub fn new(seed: u64, name: &str) -> Self {
        // FNV-1a spreads the name over 64 bits; seed_from_u64 (SplitMix64) does the rest.
        let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        Self(Xoshiro256PlusPlus::seed_from_u64(seed ^ hash))
    }

    /// A number from 0 up to but not including `bound`; 0 if `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        // The high half of the product: uniform to within bound / 2^64.
        ((u128::from(self.0.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// True with this probability.
    pub fn chance(&mut self, chance: Chance) -> bool {
        self.0.next_u64() < chance.0
    }
}

/// A probability, kept as a threshold on 64 random bits so that drawing is exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Chance(u64);

impl Chance {
    /// From a probability between 0 and 1; other values are clamped.
    pub fn new(probability: f64) -> Self {
        // The cast saturates: 1.0 becomes all but one in 2^64.
        Self((probability.max(0.0) * 18_446_744_073_709_551_616.0) as u64)
    }
}
