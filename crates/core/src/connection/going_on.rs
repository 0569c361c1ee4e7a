//! Does a client wait for each reply before it goes on?
//!
//! A client that occasionally sends more after a pause, with everything acknowledged and nothing
//! received, has several things under way, as a relay, a terminal or streams within TLS do. Nothing
//! tells then which message answers which, and a server's own time is at most possible. A client that
//! always asks in two pieces is none of these.
//!
//! A server that sends nothing but single tokens, with pauses of its own between them, also sends the
//! next one after a client has said something: nobody knows which of them answers that.

use tcpwhy_wire::Duration;

use super::Connection;
use crate::bill::exchange::Open;
use crate::bill::split::Split;
use crate::flow::ends::{CLIENT, SERVER};
use crate::words::cause::Cause;

/// A sender of one message in pieces does not pause for this many round trips ... Source: none written
/// down.
const PAUSE_RTTS: i64 = 4;
/// ... and this long. Source: none written down.
const PAUSE_MIN: Duration = Duration::from_millis(2);

/// The most bytes of a token: a number, a key. Source: none written down.
const TOKEN_MAX: u64 = 4;

impl Connection {
    /// Notes an interval of `gap`, its sender's own, before a further part of a message.
    #[inline]
    pub(super) fn note_going_on(&mut self, from: usize, gap: Duration, split: &Split) {
        if gap >= PAUSE_MIN && split.has_only(Cause::SenderThink.bit()) {
            if from == CLIENT { self.note_pause(gap) } else { self.note_token(gap) }
        }
    }

    #[cold]
    #[inline(never)]
    fn note_token(&mut self, gap: Duration) {
        let path = self.tap_rtt(CLIENT) + self.tap_rtt(SERVER);
        let tokens = |open: &Open| open.reply_bytes <= (open.reply.index as u64 + 1) * TOKEN_MAX;
        let none = self.talk.is_none() && self.flows[SERVER].outstanding() == 0;
        let alone = self.open.as_deref().is_some_and(|open| open.initiator == CLIENT && tokens(open));
        if none && alone && gap >= path.times(PAUSE_RTTS) && !self.roles.echoes_keys() {
            self.roles.goes_on.note_token();
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
