//! Does a server that speaks first greet its client, or does it ask?
//!
//! A greeting is waited for, and the client goes on at once. A program that accepts connections and then gives work
//! to those who have opened them speaks first as well: what follows its questions are answers, and what seem to be its
//! replies are the next questions.

use tcpwhy_wire::{Segment, Seq};

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

    /// Whether an end's messages before one of so many bytes, which begins there, are as many of that length.
    fn is_alike(&self, end: usize, begins: Option<Seq>, bytes: u64, before: u64) -> bool {
        let said = begins.zip(self.flows[end].first).map(|(begins, first)| i128::from(begins - first));
        said.is_some_and(|said| said == i128::from(bytes) * i128::from(before))
    }

    /// Doubts a reply where all that the server has said is as long as that, from its first words on: it may have
    /// been its next question.
    #[cold]
    #[inline(never)]
    pub(super) fn doubt_asked(&self, open: &mut Open) {
        // Where the setup has no number of its own, the greeting has the first one.
        let before = [open.n.saturating_sub(1), open.n];
        let is_alike =
            |before: u64| before > 0 && self.is_alike(SERVER, open.reply_first, open.reply_bytes, before);
        let alike = open.reply_bytes > u64::from(WORD_MAX) && before.into_iter().any(is_alike);
        let asks = open.kind() == Kind::Exchange && open.initiator == CLIENT && open.request_bytes > 0;
        if asks && alike && self.talk.is_none() {
            doubt(open);
        }
    }

    /// Whether what the client says behind an unrequested message of the server's may be its own: many of those needed
    /// no answer, and no protocol says that this one asks; or packets are missing, and it answers one of them.
    pub(in crate::connection) fn may_not_be_asked(&self) -> bool {
        let missing = self.flows.iter().any(|flow| flow.missing_from_capture);
        let asks = self.talk.as_ref().is_some_and(|talk| talk.pending.is_some());
        missing || !asks && self.roles.pushes_often()
    }

    /// Whether the client's message may be an answer, where the beginning is missing and no protocol is read: it came
    /// as late as a program's that works on something, the server took longer to go on, and each end's messages have
    /// all been of one length.
    #[cold]
    #[inline(never)]
    pub(super) fn may_answer_unseen(&self, open: &Open) -> bool {
        let wait = open.waited - self.tap_rtt(SERVER);
        let reaction = open.client_idle;
        self.talk.is_none()
            && open.kind() == Kind::Exchange
            && open.initiator == CLIENT
            && reaction >= HELD_BACK_MIN
            && reaction <= wait
            && self.is_alike(CLIENT, open.request_first, open.request_bytes, open.n)
            && self.is_alike(SERVER, open.reply_first, open.reply_bytes, open.n)
    }
}

/// Nobody need have waited for what the server said.
fn doubt(open: &mut Open) {
    let unasked = Revision::MayBeOther { server: side(SERVER), form: Form::OrPushes };
    open.last_path().settle().revise(unasked);
}
