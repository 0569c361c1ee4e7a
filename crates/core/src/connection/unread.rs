//! Which messages may be the session's or the protocol's own, where no payload was captured?

use super::Connection;
use super::frame_sizes::{is_control, may_be_windows};
use super::opening::AT_ONCE;
use super::turn::Paired;
use crate::bill::exchange::Open;
use crate::flow::ends::CLIENT;

/// A TLS 1.3 client's ChangeCipherSpec and Finished take at most this many bytes: SHA-384 (RFC 8446,
/// 4.4.4, 5.2 and D.4).
const FINISHED_MAX: u32 = 80;
/// It is the client's second message, or the third after a HelloRetryRequest (RFC 8446, 2.1).
const FINISHED_AT: std::ops::RangeInclusive<u64> = 2..=3;

impl Connection {
    /// Whether possibly nobody waited for the reply: the client's message may be the Finished of
    /// TLS, which is followed by tickets, or a WINDOW_UPDATE of HTTP/2 for data that had arrived.
    #[inline]
    pub(super) fn may_be_own(&self, open: &Open) -> bool {
        self.paired == Paired::Unread && self.has_own_length(open)
    }

    #[cold]
    #[inline(never)]
    fn has_own_length(&self, open: &Open) -> bool {
        let finished = FINISHED_AT.contains(&open.n) && open.first_len <= FINISHED_MAX;
        let windows = is_control(open.request_bytes) || may_be_windows(open.request_bytes);
        open.initiator == CLIENT
            && (finished && self.frames.may_begin_tls()
                || windows && open.n > 1 && open.client_idle <= AT_ONCE)
    }
}
