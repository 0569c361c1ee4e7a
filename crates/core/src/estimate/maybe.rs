//! How is a time kept that may not be known, in no more memory than one that is?
//!
//! An `Option` of eight bytes takes sixteen. A connection has some forty of these, nearly all of them times:
//! one value that no capture contains stands for none.

use std::fmt;

use tcpwhy_wire::{Duration, Instant};

/// A type with a value that stands for none.
pub(crate) trait Known: Copy + PartialEq {
    /// No capture contains it.
    const NONE: Self;
}

impl Known for Instant {
    const NONE: Self = Self::MIN;
}

impl Known for Duration {
    const NONE: Self = Self::from_nanos(i64::MIN);
}

/// A time or none.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct Maybe<T>(T);

impl<T: Known> Maybe<T> {
    pub(crate) const NONE: Self = Self(T::NONE);

    #[inline]
    pub(crate) const fn of(known: T) -> Self {
        Self(known)
    }

    #[inline]
    pub(crate) fn get(self) -> Option<T> {
        (self.0 != T::NONE).then_some(self.0)
    }

    /// The value, where there certainly is one.
    #[inline]
    pub(crate) fn known(self) -> T {
        debug_assert!(self.is_some(), "it is known");
        self.0
    }

    #[inline]
    pub(crate) fn is_some(&self) -> bool {
        self.0 != T::NONE
    }

    #[inline]
    pub(crate) fn is_none(&self) -> bool {
        self.0 == T::NONE
    }

    #[inline]
    pub(crate) fn set(&mut self, known: T) {
        self.0 = known;
    }

    /// Sets it if there is none yet.
    #[inline]
    pub(crate) fn set_first(&mut self, known: T) {
        if self.is_none() {
            self.0 = known;
        }
    }
}

impl<T: Known + PartialOrd> Maybe<T> {
    /// Whether it is known to be more than this. The value for none is less than any other.
    #[inline]
    pub(crate) fn exceeds(self, than: T) -> bool {
        self.0 > than
    }
}

impl<T: Known> Default for Maybe<T> {
    fn default() -> Self {
        Self::NONE
    }
}

impl<T: Known> From<Option<T>> for Maybe<T> {
    #[inline]
    fn from(known: Option<T>) -> Self {
        Self(known.unwrap_or(T::NONE))
    }
}

impl<T: Known + fmt::Debug> fmt::Debug for Maybe<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_no_more_than_what_is_known() {
        assert_eq!(size_of::<Maybe<Instant>>(), size_of::<Instant>());
        let mut since = Maybe::default();
        assert!(since.is_none() && since.get().is_none());
        since.set_first(Instant::from_nanos(7));
        since.set_first(Instant::from_nanos(9));
        assert_eq!(since.get(), Some(Instant::from_nanos(7)));
        assert_eq!((Maybe::from(since.get()), Maybe::<Instant>::from(None)), (since, Maybe::NONE));
    }
}
