//! What do the messages of a connection say of each other, where their protocol is read?

use std::collections::VecDeque;

use tcpwhy_wire::{Instant, Segment, Seq};

use crate::bill::asked::Ask;
use crate::bill::split::Split;
use crate::bill::waits::Waits;
use crate::words::mark::{Mark, Role};

/// What is known of the messages of a connection whose protocol is read.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Talk {
    /// The question that has no answer yet, as long as there is one at a time.
    pub pending: Option<Pending>,
    /// Questions whose answer is not over, in the order in which they were asked, once there was more than one.
    pub asked: VecDeque<Ask>,
    pub is_concurrent: bool,
    /// What each end's next bytes belong to.
    pub parts: [Part; 2],
    pub waits: [Waits; 2],
    /// What each end has still to be read of.
    pub unread: [Unread; 2],
    /// What each end has sent again, and nobody knows yet whether that was needed.
    pub resent: [Vec<Resent>; 2],
}

/// Bytes that were sent again.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Resent {
    pub at: Instant,
    pub packet: u64,
    pub seq: Seq,
    pub stamp: Option<u32>,
    /// What its sender waited for before.
    pub split: Split,
}

/// Bytes of one end that are not given to their messages yet: something before them is missing.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Unread {
    /// Where they begin, once anything has been read.
    pub begin: Option<Seq>,
    /// How many of them the capture has.
    pub seen: u32,
    pub marks: Vec<Mark>,
}

/// A question without an answer, or in the middle of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Pending {
    pub asker: usize,
    pub id: Option<u64>,
    pub seq: Seq,
    pub end: Option<Seq>,
    pub is_answering: bool,
    pub answer_end: Option<Seq>,
    /// The answer ends there.
    pub answer_is_last: bool,
}

/// What the bytes of one end belong to that come next.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Part {
    /// The exchange, and whether it is its answer.
    pub of: Option<(u64, bool)>,
    /// Where it ends, if that is known, and whether the message ends with it.
    pub end: Option<Seq>,
    pub last: bool,
}

impl Pending {
    /// Whether its asker has all of its answer when it sends again with this acknowledgement; `unread` if the other end has sent
    /// more than that.
    fn is_answered(&self, acked: Option<Seq>, unread: bool) -> bool {
        match self.answer_end {
            _ if !self.is_answering => false,
            Some(end) if self.answer_is_last => acked.is_some_and(|acked| acked.at_or_after(end)),
            // An answer with an identifier says when it is over; one in order ends where nothing more comes.
            _ => self.id.is_none() && !unread,
        }
    }
}

impl Talk {
    /// Whether these marks of one end ask beside a question that has no answer yet.
    pub(super) fn asks_beside(
        &mut self,
        marks: &[Mark],
        from: usize,
        acked: Option<Seq>,
        unread: bool,
    ) -> bool {
        self.pending = self.pending.filter(|ask| ask.asker != from || !ask.is_answered(acked, unread));
        let mut asked = self.pending.filter(|ask| ask.asker == from).map(|ask| ask.id);
        marks.iter().filter(|mark| mark.role == Role::Asks && !mark.by_peer).any(|mark| {
            let beside = mark.first && asked.is_some_and(|id| id.is_none() || id != mark.id);
            asked = Some(mark.id);
            beside
        })
    }

    /// Takes note of the marks of one end while there is one question at a time.
    pub(super) fn note_in_turn(&mut self, marks: &[Mark], from: usize) {
        for mark in marks {
            match (mark.role, &mut self.pending) {
                (Role::Asks, Some(ask)) if ask.asker == from && ask.id == mark.id => ask.end = mark.end,
                (Role::Asks, _) if mark.first => {
                    self.pending = Some(Pending {
                        asker: from,
                        id: mark.id,
                        seq: mark.seq,
                        end: mark.end,
                        is_answering: false,
                        answer_end: None,
                        answer_is_last: false,
                    });
                }
                (Role::Answers, Some(ask)) if ask.asker != from && ask.id == mark.id => {
                    ask.is_answering = true;
                    (ask.answer_end, ask.answer_is_last) = (mark.end, mark.last);
                }
                _ => {}
            }
        }
    }

    /// The question that a mark of `from` answers: by its identifier, else the first one without an answer, and then those
    /// before it have all of theirs.
    pub(super) fn answered_by(&mut self, mark: &Mark, from: usize) -> Option<u64> {
        let is_of = |ask: &Ask| ask.asker != from && ask.id == mark.id && !ask.is_answered;
        if mark.id.is_none() && mark.first {
            let begun = self.asked.iter_mut().filter(|ask| is_of(ask) && ask.answer.is_some());
            begun.for_each(|ask| ask.is_answered = true);
        }
        self.asked.iter().find(|ask| is_of(ask)).map(|ask| ask.n)
    }

    /// The question of `from` that a mark goes on with.
    pub(super) fn goes_on_with(&self, mark: &Mark, from: usize) -> Option<u64> {
        let is_same = |ask: &&Ask| ask.asker == from && ask.id == mark.id && !ask.is_answered;
        let new = mark.id.is_none() && mark.first;
        self.asked.iter().rev().find(|ask| is_same(ask) && !new).map(|ask| ask.n)
    }

    /// An acknowledgement of what `from` sent tells whether what was sent again had been needed: not if it says so (RFC 2883), or
    /// answers the first copy (RFC 3522). What lies behind bytes that were is delivered only then.
    pub(super) fn settle_resent(&mut self, ack: &Segment, from: usize, but: u32) {
        let echoed = ack.options.timestamps.map(|stamps| stamps.ecr);
        let told = ack.options.sack().first().is_some_and(|block| block.end.at_or_before(ack.ack));
        let answers_first =
            self.resent[from].first().and_then(|first| Some(echoed?.wrapping_sub(first.stamp?)));
        if told || answers_first.is_some_and(|since| (since as i32) < 0) {
            self.resent[from].clear();
        }
        let needed = self.resent[from].iter().take_while(|resent| ack.ack.after(resent.seq)).count();
        for resent in self.resent[from].drain(..needed).collect::<Vec<_>>() {
            self.waits[from].keep(&resent.split, but, resent.at);
            for ask in &mut self.asked {
                let part = if ask.asker == from { Some(&mut ask.question) } else { ask.answer.as_mut() };
                if let Some(part) = part.filter(|part| part.end.after(resent.seq)) {
                    part.last = part.last.max((resent.at, resent.packet));
                }
            }
        }
    }

    /// Bytes that it takes besides the place in its connection.
    pub(super) fn heap(&self) -> usize {
        let accounts: usize = self.asked.iter().map(|ask| ask.account.heap()).sum();
        let waits: usize = self.waits.iter().map(Waits::heap).sum();
        let marks: usize = self.unread.iter().map(|unread| unread.marks.capacity()).sum();
        let waits = waits + marks * size_of::<Mark>();
        size_of::<Self>() + self.asked.capacity() * size_of::<Ask>() + accounts + waits
    }
}
