//! Which of several words does an answer acknowledge?
//!
//! Whoever answers has read what its host acknowledges, and nothing else (RFC 9293, 3.10.7.4): an answer that acknowledges what was said before
//! a pause, and nothing of what was said behind it, belongs to the former. A pause behind what it acknowledges delayed it by nothing,
//! and what came behind that is the next question.

use tcpwhy_wire::Segment;

use super::Connection;
use crate::bill::exchange::Open;
use crate::flow::segment_class::SegmentClass;
use crate::tally::ledger::Ledger;

impl Connection {
    /// Whether new bytes begin something of their own. Where they begin an answer, what that does not acknowledge, behind a pause, is a question
    /// of its own.
    #[inline]
    pub(super) fn begins_turn(
        &mut self,
        segment: &Segment,
        from: usize,
        class: SegmentClass,
        ledger: &mut Ledger,
    ) -> bool {
        if class == SegmentClass::New {
            self.part_questions(segment, from, ledger);
        }
        self.starts_message(segment, from, class)
    }

    #[inline]
    fn part_questions(&mut self, segment: &Segment, from: usize, ledger: &mut Ledger) {
        let Some(open) = self.open.as_deref() else { return };
        if open.later.is_some() {
            self.go_on_with_later(segment, from, ledger);
        } else if from != open.initiator && !open.pieces.is_empty() && open.reply_first.is_none() {
            self.part_behind_pause(segment);
        }
    }

    /// The later one of two questions is under way once it is answered, or goes on.
    #[cold]
    #[inline(never)]
    fn go_on_with_later(&mut self, segment: &Segment, from: usize, ledger: &mut Ledger) {
        let acks = |open: &Open| open.request_first.is_some_and(|first| segment.ack.after(first));
        let is_over = self.open.as_deref().is_some_and(|open| {
            from == open.initiator || segment.flags.ack() && open.later.as_deref().is_some_and(acks)
        });
        if is_over {
            self.take_later(ledger);
        }
    }

    /// Closes what is under way in front of a later question, which is under way from here on.
    #[inline]
    pub(super) fn take_later(&mut self, ledger: &mut Ledger) {
        if self.open.as_deref().is_some_and(|open| open.later.is_some()) {
            self.close_before_later(ledger);
        }
    }

    #[cold]
    #[inline(never)]
    fn close_before_later(&mut self, ledger: &mut Ledger) {
        let later = self.open.as_deref_mut().and_then(|open| open.later.take());
        self.close_open(None, ledger);
        self.open = later;
    }

    #[cold]
    #[inline(never)]
    fn part_behind_pause(&mut self, segment: &Segment) {
        let Some(open) = self.open.as_deref() else { return };
        let answers = segment.flags.ack() && !open.crosses(segment);
        // What HTTP/2 says by itself acknowledges what it likes, and what is read says by itself where it ends.
        if !answers || self.frames.is_http2() || self.asks_by_its_bytes(open.request_first) {
            return;
        }
        let until = open.pieces.iter().position(|piece| segment.ack.at_or_before(piece.end));
        if let (Some(until), Some(open)) = (until, self.open.as_deref_mut()) {
            open.part_at(until, self.next_n);
            self.next_n += 1;
        }
    }
}
