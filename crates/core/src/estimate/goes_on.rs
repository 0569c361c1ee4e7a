//! How often does a client go on without a reply, and a server without a request?
//!
//! Clients are counted in exchanges: one that always does so asks in two pieces, and one that does so now
//! and then has several requests under way.

/// This many times are not by chance.
const TIMES_MIN: u32 = 4;
/// It does so in at least one exchange in this many, and does not in at least one in this many. Source: none
/// written down.
const SHARE: u64 = 8;

/// This many tokens of a server that nobody had asked for are not by chance. Source: none written down.
const TOKENS_MIN: u16 = 3;

/// In how many exchanges a client went on.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct GoesOn {
    times: u32,
    /// The last of them.
    last: u16,
    /// How often a server gave out another token after a pause.
    tokens: u16,
    /// A server has gone on for so long that nobody can have waited for its last word.
    pub streams: bool,
}

impl GoesOn {
    /// The client went on, when this many exchanges had begun.
    pub(crate) fn note(&mut self, exchanges: u64) {
        let exchange = exchanges as u16;
        if self.times == 0 || self.last != exchange {
            (self.times, self.last) = (self.times.saturating_add(1), exchange);
        }
    }

    /// The server gave out another token after a pause of its own.
    pub(crate) fn note_token(&mut self) {
        self.tokens = self.tokens.saturating_add(1);
    }

    /// Whether either may do so often enough.
    #[inline]
    pub(crate) fn is_suspect(self) -> bool {
        self.times >= TIMES_MIN || self.tokens >= TOKENS_MIN
    }

    /// Whether a client does, but not in all of `exchanges`, or a server does: what comes after a request
    /// may then answer nothing.
    #[inline]
    pub(crate) fn is_loose(self, exchanges: u64) -> bool {
        self.is_suspect() && (self.tokens >= TOKENS_MIN || self.is_some_of(exchanges))
    }

    /// Whether a client has done so more than once, but not in all of `exchanges`.
    pub(crate) fn has_gone_on(self, exchanges: u64) -> bool {
        self.times > 1 && self.is_some_of(exchanges)
    }

    /// Whether a client has done so in nearly all of `exchanges`, of which the setup and the present one may not count.
    pub(crate) fn always_goes_on(self, exchanges: u64) -> bool {
        let times = u64::from(self.times).saturating_add(2).saturating_mul(SHARE);
        self.times > 1 && times >= exchanges.saturating_mul(SHARE - 1)
    }

    #[cold]
    fn is_some_of(self, exchanges: u64) -> bool {
        let times = u64::from(self.times).saturating_mul(SHARE);
        times >= exchanges && times <= exchanges.saturating_mul(SHARE - 1)
    }
}
