//! When did it happen, and how long did it take? Integer nanoseconds, signed, never floating point.
//!
//! Captured times can be wrong (clocks step back, time stamps reach the limits of 64 bits), so
//! arithmetic saturates.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Neg, Sub, SubAssign};

/// A point in time: nanoseconds since the Unix epoch, as the capture recorded it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(i64);

/// A span of time in nanoseconds. Signed: the difference of two capture times may be negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(i64);

impl Instant {
    /// The earliest representable time.
    pub const MIN: Self = Self(i64::MIN);
    /// The latest representable time.
    pub const MAX: Self = Self(i64::MAX);

    /// From nanoseconds since the epoch.
    #[inline]
    pub const fn from_nanos(ns: i64) -> Self {
        Self(ns)
    }

    /// Nanoseconds since the epoch.
    #[inline]
    pub const fn as_nanos(self) -> i64 {
        self.0
    }
}

impl Duration {
    /// No time at all.
    pub const ZERO: Self = Self(0);
    /// The longest representable span.
    pub const MAX: Self = Self(i64::MAX);

    /// From nanoseconds.
    #[inline]
    pub const fn from_nanos(ns: i64) -> Self {
        Self(ns)
    }

    /// From microseconds, saturating.
    #[inline]
    pub const fn from_micros(us: i64) -> Self {
        Self(us.saturating_mul(1_000))
    }

    /// From milliseconds, saturating.
    #[inline]
    pub const fn from_millis(ms: i64) -> Self {
        Self(ms.saturating_mul(1_000_000))
    }

    /// From seconds, saturating.
    #[inline]
    pub const fn from_secs(s: i64) -> Self {
        Self(s.saturating_mul(1_000_000_000))
    }

    /// Nanoseconds.
    #[inline]
    pub const fn as_nanos(self) -> i64 {
        self.0
    }

    /// Milliseconds, for showing to people.
    #[inline]
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// Whether the span is greater than zero.
    #[inline]
    pub const fn is_positive(self) -> bool {
        self.0 > 0
    }

    /// The span, or zero if it is negative.
    #[must_use]
    #[inline]
    pub const fn at_least_zero(self) -> Self {
        if self.0 < 0 { Self::ZERO } else { self }
    }

    /// The span times `n`, saturating.
    #[must_use]
    #[inline]
    pub const fn times(self, n: i64) -> Self {
        Self(self.0.saturating_mul(n))
    }

    /// The span divided by `n`, rounding towards zero. `n` must not be zero.
    #[must_use]
    #[inline]
    pub const fn divided_by(self, n: i64) -> Self {
        Self(self.0 / n)
    }
}

impl Sub for Instant {
    type Output = Duration;
    #[inline]
    fn sub(self, earlier: Self) -> Duration {
        Duration(minus(self.0, earlier.0))
    }
}

impl Add<Duration> for Instant {
    type Output = Self;
    #[inline]
    fn add(self, span: Duration) -> Self {
        Self(plus(self.0, span.0))
    }
}

impl Sub<Duration> for Instant {
    type Output = Self;
    #[inline]
    fn sub(self, span: Duration) -> Self {
        Self(minus(self.0, span.0))
    }
}

impl Add for Duration {
    type Output = Self;
    #[inline]
    fn add(self, other: Self) -> Self {
        Self(plus(self.0, other.0))
    }
}

impl AddAssign for Duration {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Duration {
    type Output = Self;
    #[inline]
    fn sub(self, other: Self) -> Self {
        Self(minus(self.0, other.0))
    }
}

impl SubAssign for Duration {
    #[inline]
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

impl Neg for Duration {
    type Output = Self;
    #[inline]
    fn neg(self) -> Self {
        Self(minus(0, self.0))
    }
}

impl Sum for Duration {
    #[inline]
    fn sum<I: Iterator<Item = Self>>(spans: I) -> Self {
        spans.fold(Self::ZERO, Add::add)
    }
}

impl fmt::Display for Duration {
    /// Three significant digits and a suitable unit: `43.9 ms`, `1.20 s`, `17 µs`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = self.0.unsigned_abs();
        let sign = if self.0 < 0 { "-" } else { "" };
        let (value, unit) = match ns {
            0 => return f.pad("0 ms"),
            1..=999 => return f.pad(&format!("{sign}{ns} ns")),
            1_000..=999_499 => (ns as f64 / 1e3, "µs"),
            999_500..=999_499_999 => (ns as f64 / 1e6, "ms"),
            _ => (ns as f64 / 1e9, "s"),
        };
        let digits = match value {
            v if v >= 99.95 => 0,
            v if v >= 9.995 => 1,
            _ => 2,
        };
        f.pad(&format!("{sign}{value:.digits$} {unit}"))
    }
}

/// Saturates, at no cost if nothing saturates: a branch that is never taken instead of five
/// instructions.
#[inline]
const fn plus(a: i64, b: i64) -> i64 {
    match a.checked_add(b) {
        Some(sum) => sum,
        None => edge(a),
    }
}

/// Like [`plus`].
#[inline]
const fn minus(a: i64, b: i64) -> i64 {
    match a.checked_sub(b) {
        Some(difference) => difference,
        None => edge(a),
    }
}

/// The result of a sum or difference out of range: the limit on the side of its first operand.
#[cold]
const fn edge(a: i64) -> i64 {
    if a < 0 { i64::MIN } else { i64::MAX }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_three_digits_and_a_unit() {
        let shown: Vec<String> =
            [0, 850, 17_000, 999_600, 43_912_345, 123_500_000, 1_204_000_000, -43_912_345]
                .into_iter()
                .map(|ns| Duration::from_nanos(ns).to_string())
                .collect();
        assert_eq!(
            shown,
            ["0 ms", "850 ns", "17.0 µs", "1.00 ms", "43.9 ms", "124 ms", "1.20 s", "-43.9 ms"]
        );
    }

    #[test]
    fn arithmetic_saturates_at_the_edges() {
        assert_eq!(Instant::MAX - Instant::MIN, Duration::MAX);
        assert_eq!(Instant::MAX + Duration::from_secs(1), Instant::MAX);
        assert_eq!(Duration::from_secs(i64::MAX), Duration::MAX);
        let edges = [i64::MIN, i64::MIN + 1, -1, 0, 1, i64::MAX - 1, i64::MAX];
        for (a, b) in edges.into_iter().flat_map(|a| edges.map(|b| (a, b))) {
            assert_eq!((plus(a, b), minus(a, b)), (a.saturating_add(b), a.saturating_sub(b)), "{a} {b}");
        }
    }
}
