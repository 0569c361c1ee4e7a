//! Are several requests under way at once, although nothing that is read of their protocol says so?
//!
//! Near the responder, the reply to a request passes the capture before the next request does. If the
//! next one left before its sender can have heard of the reply, each request was complete and gets a
//! bill of its own. Near the initiator, a request in two parts cannot be told from two requests, unless
//! the reply to an earlier one came in between and the second part had seen it: then the pairing is a
//! guess.

use tcpwhy_wire::{Segment, Seq};

use super::Connection;
use super::closing::doubt_pauses;
use super::frame_sizes::ALERTS;
use super::turn::Paired;
use crate::bill::exchange::Open;
use crate::flow::ends::side;
use crate::flow::segment_class::{LastData, SendQueue};
use crate::words::limits::BURST_GAP;

/// From this many parts that may have been requests on, it is unknown which reply answers which
/// request. Source: none written down.
const OTHERS_MIN: u8 = 3;
/// Which of several parts was answered is immaterial if they span at most one part in this many of the
/// wait. Source: none written down.
const LITTLE_SHARE: i64 = 10;

impl Connection {
    /// Whether the responder had finished its reply before this small message reached it, while the
    /// message's sender had not even heard that the request had arrived: then the reply answered a
    /// whole request, and this is another one.
    pub(super) fn asks_beside(&self, open: &Open, segment: &Segment, from: usize, first: Seq) -> bool {
        let (Some(asked), Some(said)) = (&open.request.last, &open.reply.last) else { return false };
        let is_whole = |of: &LastData, end: usize| of.len < self.mss(end) && of.queue == SendQueue::Emptied;
        // Of several streams that were requested, one has its reply.
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

    /// Whether only the reply acknowledges the request: a sender that has not seen the one has not seen
    /// the other, however near it seems in a capture that begins midway.
    fn was_acked_by_answer(&self, open: &Open, from: usize) -> bool {
        let said = open.reply.last.filter(|_| open.reply.index == 0);
        let acked = self.flows[from].view.clocking_ack();
        acked.zip(said).is_some_and(|(acked, said)| acked.packet == said.packet && acked.left == 0)
    }

    /// Whether a reply acknowledges the first pieces of a request but not the last ones, which may then
    /// be other requests.
    #[inline]
    pub(super) fn answers_part(&self, open: &Open, segment: &Segment) -> bool {
        open.request.index > 1 && self.answers_first_pieces(open, segment)
    }

    #[cold]
    #[inline(never)]
    fn answers_first_pieces(&self, open: &Open, segment: &Segment) -> bool {
        // Full segments continue a single request: the end of a handshake with a long first request
        // after it (False Start, RFC 7918).
        let short = open.request_bytes < u64::from(self.mss(open.initiator));
        short
            && segment.flags.ack()
            && open.request_end.is_some_and(|end| segment.ack.before(end))
            && self.is_in_pieces(open)
            && !self.asks_by_its_bytes(open.request_first)
    }

    /// Whether a reply comes in the middle of a long request of many writes, of which it acknowledges
    /// some.
    #[cold]
    #[inline(never)]
    pub(super) fn comes_between(&self, open: &Open, segment: &Segment) -> bool {
        segment.flags.ack()
            && open.request_end.is_some_and(|end| segment.ack.before(end))
            && self.is_in_pieces(open)
            && !self.asks_by_its_bytes(open.request_first)
    }

    /// Notes whether a reply came `between` the writes of its request. If that happens repeatedly, both
    /// ends speak whenever they have something to say, as in a conference, and the pauses may lie
    /// between messages.
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

    /// Whether the continuation of a request may be another request, which its sender made because the
    /// reply to an earlier one has come.
    pub(super) fn may_be_another(&self, open: &Open, segment: &Segment, from: usize) -> bool {
        // Data that leaves together was written earlier.
        let later = open.request.last.is_some_and(|last| segment.at - last.at >= BURST_GAP);
        from == open.initiator
            && later
            && segment.flags.ack()
            && open.request_acks.is_some_and(|acks| segment.ack.after(acks))
            && !self.frames.is_http2()
            && !self.goes_on_by_its_bytes(from, segment.seq)
    }

    /// Whether a request was written in pieces, so that segments before its last are not full.
    pub(super) fn is_in_pieces(&self, open: &Open) -> bool {
        let last = open.request.last.map_or(0, |last| u64::from(last.len));
        let before = open.request_bytes.saturating_sub(last);
        before < open.request.index as u64 * u64::from(self.mss(open.initiator))
    }

    /// A continuation `may_be` another request: then this exchange is a guess, and after a few of them
    /// all later ones are.
    pub(super) fn on_part(&mut self, may_be: bool) {
        let Some(open) = self.open.as_deref_mut().filter(|_| may_be) else { return };
        open.is_guess = true;
        self.others = self.others.saturating_add(1);
        if self.others >= OTHERS_MIN {
            self.paired = Paired::Guess;
        }
    }
}

/// Whether all parts that a reply may belong to were sent within a small part of the wait: whichever it
/// answers, it took about as long.
pub(super) fn matters_little(open: &Open, segment: &Segment) -> bool {
    let asked = open.request_at();
    open.request.index > 0 && (asked - open.passed).times(LITTLE_SHARE) <= segment.at - asked
}
