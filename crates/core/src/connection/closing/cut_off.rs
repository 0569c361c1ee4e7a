//! What may a message still have shown, had the capture not ended?

use crate::bill::exchange::Open;
use crate::bill::revise::Revision;
use crate::connection::Connection;
use crate::connection::turn::STREAM_MIN;
use crate::flow::ends::side;
use crate::words::form::Form;

impl Connection {
    /// Doubts what the rest of a message decides that nothing follows: a receiver may still have said that it had what
    /// was `copied` last (RFC 2883), and what comes in many pieces may have gone on for as long as a stream does.
    #[cold]
    #[inline(never)]
    pub(super) fn weigh_cut_off(&self, open: &mut Open, copied: bool) {
        let (speaker, answers) = (open.last_speaker(), open.reply_first.is_some());
        let unheard = copied && self.flows[speaker].outstanding() > 0;
        let streams = answers
            && speaker != open.initiator
            && self.roles.closed_at[speaker].get().is_none()
            && open.reply.last.is_some_and(|last| last.at - open.request_at() >= STREAM_MIN);
        if !(unheard || streams) {
            return;
        }
        let account = open.last_path().settle();
        if unheard {
            account.revise(Revision::MayBeDropped);
        }
        if streams {
            account.revise(Revision::MayBeMany { sender: side(speaker), form: Form::OrMessages });
        }
    }

    /// Says of a message that was sent again and again, by its timer, that nothing of it was ever acknowledged.
    #[cold]
    #[inline(never)]
    pub(super) fn tell_ignored(&self, open: &mut Open) {
        let speaker = open.last_speaker();
        let first = if speaker == open.initiator { open.request_first } else { open.reply_first };
        let acked = self.flows[speaker].highest_ack;
        if first.is_some_and(|first| acked.is_none_or(|acked| acked.at_or_before(first))) {
            // The path has just let a handshake through.
            let opened = self.flows.iter().all(|flow| flow.first.is_some() && flow.first == flow.highest_ack);
            open.last_path().settle().revise(Revision::Ignored { first: opened });
        }
    }
}
