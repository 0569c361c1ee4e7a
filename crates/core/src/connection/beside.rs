//! Are several questions under way at once, where nothing that is read of their protocol says so?
//!
//! Near the responder the answer to a question passes before the next question does, which had left before its sender can have
//! heard of that: each of them was whole, and has a bill of its own. Near the initiator nobody can tell a question in two parts from two
//! questions, unless an answer to an earlier one comes in between, which the second part had seen: then it is a guess.

use tcpwhy_wire::{Segment, Seq};

use super::Connection;
use super::closing::doubt_pauses;
use super::frame_sizes::ALERTS;
use super::turn::Paired;
use crate::bill::exchange::Open;
use crate::flow::ends::side;
use crate::flow::segment_class::{LastData, SendQueue};
use crate::words::limits::BURST_GAP;

/// Where so many parts of questions may have been questions, nobody knows what answers which. Source: none written down.
const OTHERS_MIN: u8 = 3;
/// Which of several parts was answered matters by one part in so many of the wait, or less. Source: none written down.
const LITTLE_SHARE: i64 = 10;

impl Connection {
    /// Whether its responder had said all of its answer before this small message reached it, whose sender had not even heard that the
    /// request had arrived: what was answered was a whole question, and this is another one.
    pub(super) fn asks_beside(&self, open: &Open, segment: &Segment, from: usize, first: Seq) -> bool {
        let (Some(asked), Some(said)) = (&open.request.last, &open.reply.last) else { return false };
        let is_whole = |of: &LastData, end: usize| of.len < self.mss(end) && of.queue == SendQueue::Emptied;
        // Of several streams that were asked for, one has its answer.
        let one_of_several = self.frames.is_http2() && self.is_in_pieces(open);
        let may_be_alert = ALERTS.contains(&open.reply_bytes) && self.is_in_cipher(open);
        segment.ack.at_or_before(first)
            && !(one_of_several || may_be_alert)
            && !self.frames.has_only_opened()
            && segment.flags.psh()
            && segment.payload_len < self.mss(from)
            && is_whole(asked, from)
            && is_whole(said, 1 - from)
            && said.at >= asked.at
            && segment.at - asked.at >= BURST_GAP
            && (self.flows[from].acked_in_transit(asked.at).is_some() || self.was_acked_by_answer(open, from))
            && !self.goes_on_by_its_bytes(from, segment.seq)
    }

    /// Whether nothing but the answer acknowledges the request: who has not seen the one has not heard of the other, however near it seems to be where a capture begins in the
    /// middle.
    fn was_acked_by_answer(&self, open: &Open, from: usize) -> bool {
        let said = open.reply.last.filter(|_| open.reply.index == 0);
        let acked = self.flows[from].view.clocking_ack();
        acked.zip(said).is_some_and(|(acked, said)| acked.packet == said.packet && acked.left == 0)
    }

    /// Whether an answer acknowledges some pieces of a request and not the last ones: those may be other questions.
    #[inline]
    pub(super) fn answers_part(&self, open: &Open, segment: &Segment) -> bool {
        open.request.index > 1 && self.answers_first_pieces(open, segment)
    }

    #[cold]
    #[inline(never)]
    fn answers_first_pieces(&self, open: &Open, segment: &Segment) -> bool {
        // Full segments go on with one: a session's last words and a long first question behind them (False Start, RFC 7918).
        let short = open.request_bytes < u64::from(self.mss(open.initiator));
        short
            && segment.flags.ack()
            && open.request_end.is_some_and(|end| segment.ack.before(end))
            && self.is_in_pieces(open)
            && !self.asks_by_its_bytes(open.request_first)
    }

    /// Whether an answer comes in the middle of a long request of many writes: it acknowledges some of them.
    #[cold]
    #[inline(never)]
    pub(super) fn comes_between(&self, open: &Open, segment: &Segment) -> bool {
        segment.flags.ack()
            && open.request_end.is_some_and(|end| segment.ack.before(end))
            && self.is_in_pieces(open)
            && !self.asks_by_its_bytes(open.request_first)
    }

    /// An answer has come `between` writes of its request, or not. Where that happens again and again, both ends speak when they have something to say, as in a conference: the pauses
    /// may be between messages.
    #[inline]
    pub(super) fn on_answer_between(&mut self, from: usize, between: bool) {
        if between {
            self.doubt_pauses_between(from);
        }
    }

    #[cold]
    #[inline(never)]
    fn doubt_pauses_between(&mut self, from: usize) {
        self.between = self.between.saturating_add(1);
        let often = self.between >= OTHERS_MIN;
        if let Some(open) = self.open.as_deref_mut().filter(|_| often) {
            doubt_pauses(open.request.settle(), side(1 - from));
        }
    }

    /// Whether what goes on with a request may be another question, which its sender asks since the answer to an earlier one has come.
    pub(super) fn may_be_another(&self, open: &Open, segment: &Segment, from: usize) -> bool {
        // What leaves together was written before.
        let later = open.request.last.is_some_and(|last| segment.at - last.at >= BURST_GAP);
        from == open.initiator
            && later
            && segment.flags.ack()
            && open.request_acks.is_some_and(|acks| segment.ack.after(acks))
            && !self.frames.is_http2()
            && !self.goes_on_by_its_bytes(from, segment.seq)
    }

    /// Whether a request was written in more pieces than its segments are full.
    pub(super) fn is_in_pieces(&self, open: &Open) -> bool {
        let last = open.request.last.map_or(0, |last| u64::from(last.len));
        let before = open.request_bytes.saturating_sub(last);
        before < open.request.index as u64 * u64::from(self.mss(open.initiator))
    }

    /// What goes on `may_be` another question: this exchange is a guess then, and after a few of them all that follow are.
    pub(super) fn on_part(&mut self, may_be: bool) {
        let Some(open) = self.open.as_deref_mut().filter(|_| may_be) else { return };
        open.is_guess = true;
        self.others = self.others.saturating_add(1);
        if self.others >= OTHERS_MIN {
            self.paired = Paired::Guess;
        }
    }
}

/// Whether all parts that an answer may belong to were said within a small part of the wait for it: whichever it answers, that took about as long.
pub(super) fn matters_little(open: &Open, segment: &Segment) -> bool {
    let asked = open.request_at();
    open.request.index > 0 && (asked - open.passed).times(LITTLE_SHARE) <= segment.at - asked
}
