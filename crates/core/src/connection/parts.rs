//! Which of several messages does a reply acknowledge?
//!
//! A responder has read what its host acknowledges, and nothing more (RFC 9293, 3.10.7.4): a reply that
//! acknowledges data from before a pause, and none from after it, belongs to the former. The pause
//! delayed it by nothing, and the data after it is the next request.

use tcpwhy_wire::{Instant, Segment, Seq};

use super::Connection;
use crate::bill::exchange::Open;
use crate::flow::segment_class::{LastData, SegmentClass};
use crate::tally::ledger::Ledger;
use crate::words::limits::HELD_BACK_MIN;

impl Connection {
    /// Whether new bytes begin something of their own. If they begin a reply, request data that it does
    /// not acknowledge, sent after a pause, is a request of its own.
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
            self.part_behind_pause(segment, from);
        }
    }

    /// Once it is answered, or continued, the later of two requests is the one under way.
    #[cold]
    #[inline(never)]
    fn go_on_with_later(&mut self, segment: &Segment, from: usize, ledger: &mut Ledger) {
        let acks = |open: &Open| open.request_first.is_some_and(|first| segment.ack.after(first));
        let is_over = !self.is_of_session(segment, from)
            && self.open.as_deref().is_some_and(|open| {
                from == open.initiator || segment.flags.ack() && open.later.as_deref().is_some_and(acks)
            });
        if is_over {
            self.take_later(ledger);
        }
    }

    /// Closes the exchange under way if a later request waits, which then is under way.
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
    fn part_behind_pause(&mut self, segment: &Segment, from: usize) {
        let Some(open) = self.open.as_deref() else { return };
        let answers = segment.flags.ack() && !open.crosses(segment);
        // HTTP/2's own frames acknowledge anything, and a message that is read tells its own end.
        if !answers || self.frames.is_http2() || self.asks_by_its_bytes(open.request_first) {
            return;
        }
        // What sets up the session answers no request, whatever its host has acknowledged.
        // Behind a retransmission it may have waited for that, as the request has.
        let in_time = open.request.repaired_at().is_none();
        let (opens, opened) = (in_time && self.is_of_session(segment, from), self.session_end(1 - from));
        let is_last = |end: Seq| if opened == Some(end) { opens } else { segment.ack.at_or_before(end) };
        let until = open.pieces.iter().position(|piece| is_last(piece.end));
        if let (Some(until), Some(open)) = (until, self.open.as_deref_mut()) {
            open.part_at(until, self.next_n);
            self.next_n += 1;
        }
    }

    /// Whether the responder lacked part of the request when it last spoke: its host had then acknowledged
    /// only part (RFC 9293, 3.10.7.4), and a segment after a silence, with everything acknowledged, answers
    /// the whole.
    pub(super) fn said_part_early(&self, open: &Open, reply: &LastData, at: Instant) -> bool {
        // Data that the requester sent later, outside the request, has an ACK of its own.
        let is_last = |asked: &LastData| {
            self.flows[open.initiator].last_data.is_some_and(|last| last.packet == asked.packet)
        };
        at - reply.at >= HELD_BACK_MIN
            && self.flows[open.initiator].was_last_acked_behind(reply.at)
            && open.request.last.as_ref().is_some_and(is_last)
            && !self.frames.has_begun_to_answer()
            && !(self.frames.is_http2() && self.has_given_room(open))
    }
}
