//! How are a connection's totals found by its number, at the end of each exchange?
//!
//! This program gives out the numbers, one after the other, so that a hash needs no defence: in the
//! product with an odd number, each low bit differs between successive numbers (Knuth, The Art of
//! Computer Programming 3, 6.4).

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// By a connection's number. Code that iterates over it must not depend on the order.
pub(crate) type ByNumber<T> = HashMap<u64, T, BuildHasherDefault<NumberHasher>>;

/// The hash of a single number.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
