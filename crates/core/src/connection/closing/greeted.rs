//! Does a server that speaks first greet its client, or does it ask?
//!
//! A greeting is waited for, and the client goes on at once. A program that accepts connections and then gives work
//! to those who have opened them speaks first as well: what follows its questions are answers, and what seem to be its
//! replies are the next questions.

use tcpwhy_wire::Segment;

use crate::bill::exchange::Open;
use crate::bill::revise::Revision;
use crate::connection::Connection;
use crate::flow::ends::{CLIENT, SERVER, side};
use crate::words::form::Form;
use crate::words::limits::{HELD_BACK_MIN, WORD_MAX};
use crate::words::report::Kind;

impl Connection {
    /// Doubts a greeting that its client need not have waited for. Returns whether it did.
    #[cold]
    #[inline(never)]
    pub(super) fn doubts_greeting(&self, open: &mut Open, next: &Segment) -> bool {
        let unheard = self.has_not_waited_for_greeting(open, next);
        open.is_unheard |= unheard;
        let doubtful = unheard || self.is_answered_slowly(open, next);
        if doubtful {
            doubt(open);
        }
        doubtful
    }

    /// Whether the client spoke before it can have heard the server's greeting, as a client does that does
    /// not wait for it.
    fn has_not_waited_for_greeting(&self, open: &Open, next: &Segment) -> bool {
        next.src == self.ends.end(CLIENT)
            && open.initiator == CLIENT
            && next.flags.ack()
            && open.reply_first.is_some_and(|first| next.ack.at_or_before(first))
    }

    /// Whether the client took longer to go on than the server had taken to speak: that was perhaps a question.
    fn is_answered_slowly(&self, open: &Open, next: &Segment) -> bool {
        let took = open.reply.last.map(|said| next.at - said.at - self.tap_rtt(CLIENT));
        self.talk.is_none()
            && next.src == self.ends.end(CLIENT)
            && open.reply_bytes > u64::from(WORD_MAX)
            && took.is_some_and(|took| took >= (open.waited - self.tap_rtt(SERVER)).max(HELD_BACK_MIN))
    }

    /// Doubts a reply where all that the server has said is as long as that, from its first words on: it may have
    /// been its next question.
    #[cold]
    #[inline(never)]
    pub(super) fn doubt_asked(&self, open: &mut Open) {
        let first = open.reply_first.zip(self.flows[SERVER].first).map(|(reply, first)| reply - first);
        let before = i128::from(open.reply_bytes) * i128::from(open.n.saturating_sub(1));
        let alike =
            first.is_some_and(|said| i128::from(said) == before) && open.reply_bytes > u64::from(WORD_MAX);
        let asks = open.kind() == Kind::Exchange && open.initiator == CLIENT && open.n > 1;
        if asks && alike && self.talk.is_none() {
            doubt(open);
        }
    }
}

/// Nobody need have waited for what the server said.
fn doubt(open: &mut Open) {
    let unasked = Revision::MayBeOther { server: side(SERVER), form: Form::OrPushes };
    open.last_path().settle().revise(unasked);
}
