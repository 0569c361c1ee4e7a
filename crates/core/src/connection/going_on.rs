//! Does a client wait for each answer before it goes on?
//!
//! One that now and then says more behind a pause, with everything acknowledged and nothing heard, has several things under way, as a relay, a
//! terminal or streams within TLS have: which message answers which nothing tells, and what a server seems to think is no more than possible. A
//! client that always asks in two pieces is none of these.

use tcpwhy_wire::Duration;

use super::Connection;
use crate::bill::split::Split;
use crate::flow::ends::{CLIENT, SERVER};
use crate::words::cause::Cause;

/// Whoever writes one message in pieces does not pause for so many round trips ... Source: none written down.
const PAUSE_RTTS: i64 = 4;
/// ... and so long. Source: none written down.
const PAUSE_MIN: Duration = Duration::from_millis(2);

impl Connection {
    /// The interval of `gap` before a further part of the question was its sender's own.
    #[inline]
    pub(super) fn note_going_on(&mut self, from: usize, gap: Duration, split: &Split) {
        if gap >= PAUSE_MIN && from == CLIENT && split.has_only(Cause::SenderThink.bit()) {
            self.note_pause(gap);
        }
    }

    #[cold]
    #[inline(never)]
    fn note_pause(&mut self, gap: Duration) {
        let path = self.tap_rtt(CLIENT) + self.tap_rtt(SERVER);
        let heard =
            self.open.as_deref().is_none_or(|open| open.initiator != CLIENT || open.reply_first.is_some());
        let small = self.flows[CLIENT].has_emptied_its_queue() && self.flows[CLIENT].outstanding() == 0;
        if self.talk.is_some() || heard || !small || gap < path.times(PAUSE_RTTS) {
            return;
        }
        self.roles.goes_on.note(self.next_n);
    }
}
