//! How often does a client go on without an answer?
//!
//! Counted in exchanges: one that does so always asks in two pieces, and one that does so now and then has several things under way.

/// So many times it is no chance.
const TIMES_MIN: u32 = 4;
/// It does so in one exchange of so many at least, and in one of so many it does not. Source: none written down.
const SHARE: u64 = 8;

/// In how many exchanges a client went on.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct GoesOn {
    times: u32,
    /// The last of them.
    last: u32,
}

impl GoesOn {
    /// It did, while so many exchanges had begun.
    pub(crate) fn note(&mut self, exchanges: u64) {
        let exchange = exchanges as u32;
        if self.times == 0 || self.last != exchange {
            (self.times, self.last) = (self.times.saturating_add(1), exchange);
        }
    }

    /// Whether it may do so often enough.
    #[inline]
    pub(crate) fn is_suspect(self) -> bool {
        self.times >= TIMES_MIN
    }

    /// Whether it does, and not always, `exchanges` having begun.
    #[inline]
    pub(crate) fn is_loose(self, exchanges: u64) -> bool {
        self.is_suspect() && self.is_some_of(exchanges)
    }

    #[cold]
    fn is_some_of(self, exchanges: u64) -> bool {
        let times = u64::from(self.times).saturating_mul(SHARE);
        times >= exchanges && times <= exchanges.saturating_mul(SHARE - 1)
    }
}
