//! Is this byte before that one? Sequence numbers wrap at 2^32 and compare within half of that (RFC
//! 9293, 3.4).

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

/// A sequence or acknowledgement number.
///
/// `Seq` has no total order: compare with [`Seq::before`] and its relatives, which are valid within
/// 2^31 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Seq(pub u32);

impl Seq {
    /// Whether `self` comes strictly before `other`.
    #[inline]
    pub const fn before(self, other: Self) -> bool {
        (self.0.wrapping_sub(other.0) as i32) < 0
    }

    /// Whether `self` comes strictly after `other`.
    #[inline]
    pub const fn after(self, other: Self) -> bool {
        other.before(self)
    }

    /// Whether `self` is `other` or after it.
    #[inline]
    pub const fn at_or_after(self, other: Self) -> bool {
        !self.before(other)
    }

    /// Whether `self` is `other` or before it.
    #[inline]
    pub const fn at_or_before(self, other: Self) -> bool {
        !other.before(self)
    }

    /// The later of the two.
    #[must_use]
    #[inline]
    pub const fn latest(self, other: Self) -> Self {
        if self.before(other) { other } else { self }
    }
}

impl Add<u32> for Seq {
    type Output = Self;
    #[inline]
    fn add(self, bytes: u32) -> Self {
        Self(self.0.wrapping_add(bytes))
    }
}

impl AddAssign<u32> for Seq {
    #[inline]
    fn add_assign(&mut self, bytes: u32) {
        *self = *self + bytes;
    }
}

impl Sub for Seq {
    type Output = i32;
    /// Bytes from `earlier` to `self`; negative if `self` comes before it.
    #[inline]
    fn sub(self, earlier: Self) -> i32 {
        self.0.wrapping_sub(earlier.0) as i32
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_survives_the_wrap() {
        let last = Seq(u32::MAX);
        let next = last + 1;
        assert_eq!(next, Seq(0));
        assert!(last.before(next) && next.after(last) && !next.before(last));
        assert_eq!(next - last, 1);
        assert_eq!(last - next, -1);
        assert_eq!(last.latest(next), next);
    }
}
