//! How often does a client go on without an answer, and a server without a question?
//!
//! The former is counted in exchanges: one that does so always asks in two pieces, and one that does so now and then has several things under way.

/// So many times it is no chance.
const TIMES_MIN: u32 = 4;
/// It does so in one exchange of so many at least, and in one of so many it does not. Source: none written down.
const SHARE: u64 = 8;

/// So many tokens of a server that nobody had asked for are no chance. Source: none written down.
const TOKENS_MIN: u16 = 3;

/// In how many exchanges a client went on.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct GoesOn {
    times: u32,
    /// The last of them.
    last: u16,
    /// How often a server gave out another token behind a pause.
    tokens: u16,
}

impl GoesOn {
    /// It did, while so many exchanges had begun.
    pub(crate) fn note(&mut self, exchanges: u64) {
        let exchange = exchanges as u16;
        if self.times == 0 || self.last != exchange {
            (self.times, self.last) = (self.times.saturating_add(1), exchange);
        }
    }

    /// The server gave out another token behind a pause of its own.
    pub(crate) fn note_token(&mut self) {
        self.tokens = self.tokens.saturating_add(1);
    }

    /// Whether either may do so often enough.
    #[inline]
    pub(crate) fn is_suspect(self) -> bool {
        self.times >= TIMES_MIN || self.tokens >= TOKENS_MIN
    }

    /// Whether a client does, and not always, `exchanges` having begun, or a server does: what comes next behind a question may answer nothing.
    #[inline]
    pub(crate) fn is_loose(self, exchanges: u64) -> bool {
        self.is_suspect() && (self.tokens >= TOKENS_MIN || self.is_some_of(exchanges))
    }

    #[cold]
    fn is_some_of(self, exchanges: u64) -> bool {
        let times = u64::from(self.times).saturating_mul(SHARE);
        times >= exchanges && times <= exchanges.saturating_mul(SHARE - 1)
    }
}
