//! Was a pause within a message a round trip, rather than its sender's own?
//!
//! What passes at the capture does not always show when its sender knew of it: a host in between may acknowledge for it, and a path
//! may be shorter than it has been so far.

use super::Connection;
use super::frame_sizes::is_control;
use crate::bill::exchange::Open;
use crate::estimate::rounds::RoundBeyond;
use crate::flow::ends::{CLIENT, SERVER};
use crate::flow::segment_class::{LastData, SendQueue};
use crate::rules::rounds_beyond;
use crate::rules::verdict::Verdict;
use crate::rules::wait::Wait;
use crate::words::cause::Cause;
use crate::words::limits::{DELAYED_ACK_MIN, HELD_BACK_MIN, WORD_MAX};

/// An end that answers at once has answered within so many, however much of them is its own time. Source: none
/// written down.
const ANSWERED_RTTS: i64 = 2;
/// A question with so many further pieces may be several. Source: none written down.
const SEVERAL_MIN: usize = 3;
/// ... and a longer one is data that takes some time to send. Source: none written down.
const SEVERAL_MAX: u64 = 32_768;

/// A round trip that varies proves no shorter than one part in this many of what it was. Source: none written down.
const SHRINKS_TO: i64 = 4;

impl Connection {
    /// The server may have waited for a round trip beyond a host that acknowledges for it; the round that begins then.
    pub(super) fn weigh_round_beyond(
        &self,
        wait: &Wait<'_>,
        from: usize,
        verdict: &mut Verdict,
    ) -> Option<RoundBeyond> {
        let open = self.open.as_deref().filter(|open| from == SERVER && from != open.initiator)?;
        let beyond = if wait.gap >= HELD_BACK_MIN { self.beyond()? } else { return None };
        let first = open.reply_first?;
        let fresh = RoundBeyond { began: first, began_at: open.request_at() + open.waited, before: 0 };
        let known = self.models[SERVER].round_beyond().filter(|round| round.began.after(first));
        let round = known.unwrap_or(fresh);
        if let Some(held) = rounds_beyond::judge(wait, &beyond, round) {
            verdict.split.hold(Cause::SenderThink, &held);
        }
        rounds_beyond::next(wait, &beyond, round)
    }

    /// Whether more than two segments were in flight before a pause that is no longer than the round trip to their sender, which
    /// has become shorter: an acknowledgement may have ended it.
    pub(super) fn may_be_round(&self, wait: &Wait<'_>, from: usize) -> bool {
        let way = wait.rtt_to_sender;
        let lasts = wait.gap <= way && wait.gap >= way.divided_by(SHRINKS_TO);
        lasts && wait.last.flight > 2 * wait.mss && self.varies(from)
    }

    /// The last packet of a request, where `first` is the segment that answers it; 0 if there is none.
    pub(super) fn asked_by(&self, from: usize, first: &LastData) -> u64 {
        let open = self.open.as_deref().filter(|open| from != open.initiator);
        let asked =
            open.and_then(|open| open.request.last.filter(|asked| first.at - asked.at == open.waited));
        asked.map_or(0, |asked| asked.packet)
    }

    /// Whether an end that asks paused between two whole writes, before it had heard anything: they may be two messages.
    pub(super) fn pauses_between_writes(&self, wait: &Wait<'_>, from: usize) -> bool {
        // Several full segments in one, and a rest, are a whole write as well.
        let whole = wait.last.queue == SendQueue::Emptied && !wait.last.len.is_multiple_of(wait.mss);
        let asks = |open: &Open| open.initiator == from && open.reply_first.is_none();
        wait.gap >= HELD_BACK_MIN && whole && self.open.as_deref().is_some_and(asks)
    }

    /// Whether what an end sends after such a pause may be a question of its own: the first one is as long as a message that was
    /// answered by itself, or this client has gone on without an answer before, though not always, or it reacts to what its
    /// server has just said by itself; or either may be a record of an encrypted session, whose client asks as often as it has
    /// something to ask (RFC 9113, 5).
    #[cold]
    #[inline(never)]
    pub(super) fn may_ask_again(&self, wait: &Wait<'_>, from: usize) -> bool {
        let Some(open) = self.open.as_deref().filter(|_| self.pauses_between_writes(wait, from)) else {
            return false;
        };
        if from == CLIENT && self.roles.goes_on.always_goes_on(self.next_n) {
            return false;
        }
        let alone = from == CLIENT && wait.index == 0 && self.is_whole_message(open.request_bytes);
        let goes_on = from == CLIENT && self.roles.goes_on.has_gone_on(self.next_n);
        let reacts = from == CLIENT && self.roles.has_parked();
        alone || goes_on || reacts || self.is_unreadable(open) && wait.gap >= DELAYED_ACK_MIN
    }

    /// Whether the client's last message of this length was answered, or needed no answer, without any further bytes.
    fn is_whole_message(&self, len: u64) -> bool {
        let unanswered = self.roles.seldom().unanswered;
        u64::from(self.roles.question_len) == len || unanswered.ever > 0 && u64::from(unanswered.len) == len
    }

    /// Whether a pause in a reply may lie between the replies to several encrypted questions: they were written in pieces, one
    /// at the heels of another, or some time apart, or what may be a frame of HTTP/2's own came meanwhile. The same of what a
    /// client says behind a server's message in an encrypted session: it asks when it has something to ask.
    #[cold]
    #[inline(never)]
    pub(super) fn may_answer_several(&self, from: usize) -> bool {
        let Some(open) = self.open.as_deref().filter(|open| open.initiator != from) else { return false };
        let several = open.request.index >= SEVERAL_MIN && self.is_in_pieces(open)
            || open.request_bytes <= SEVERAL_MAX && open.request_at() - open.passed >= HELD_BACK_MIN;
        (several || from == CLIENT) && self.is_unreadable(open)
            || from == SERVER && self.frames.has_passed_since(open.start)
    }

    /// Whether a pause between two small whole writes may lie between two messages: all that was sent before it had been acknowledged
    /// without an answer, or both ask and are of one length, as keys and moves of a mouse are, and nothing says that more belonged to the first.
    #[cold]
    #[inline(never)]
    pub(super) fn may_have_ended(&self, wait: &Wait<'_>, from: usize) -> bool {
        let (before, next) = (wait.last.len, wait.segment.payload_len);
        // What leaves with a FIN ends an answer that its connection's end tells.
        let next_is_whole = wait.segment.flags.psh() && !wait.segment.flags.fin();
        let whole = wait.last.queue == SendQueue::Emptied && next_is_whole && before.max(next) < wait.mss;
        let asks = self.open.as_deref().is_some_and(|open| open.initiator == from);
        let acknowledged = wait.flow.flight() == 0;
        let alike = asks && before == next;
        let goes_on =
            from == CLIENT && self.roles.goes_on.always_goes_on(self.next_n) || self.tells_more(from);
        whole && (acknowledged || alike) && !goes_on
    }

    /// Whether what the server has said so far, or has said last, in an encrypted session is the end of a stream, or as long as
    /// HTTP/2's own frames (RFC 9113, 6.7 and 6.9): they may come before an answer that it was still at work on.
    #[inline]
    pub(super) fn may_begin_again(&self, last: &LastData) -> bool {
        self.frames.ended_a_stream(last) || self.may_have_only_framed(last)
    }

    #[cold]
    #[inline(never)]
    fn may_have_only_framed(&self, last: &LastData) -> bool {
        let frames = |open: &Open| is_control(open.reply_bytes) || is_control(last.len.into());
        let framed = |open: &Open| self.is_in_cipher(open) && frames(open);
        self.open.as_deref().is_some_and(|open| open.initiator == CLIENT && framed(open))
    }

    /// Whether the head of a message has said that there is more to come, whose end it does not tell.
    fn tells_more(&self, from: usize) -> bool {
        let open = self.open.as_deref().filter(|open| !self.is_unreadable(open));
        open.is_some() && self.talk.as_deref().is_some_and(|talk| talk.tells_more(from))
    }

    /// Whether the messages under way are encrypted, whether or not they are known to be HTTP/2.
    fn is_unreadable(&self, open: &Open) -> bool {
        self.is_in_cipher(open) || self.frames.tells_who_asks()
    }

    /// Whether the client's first word came at the heels of a message, which it may have confirmed: for longer than an
    /// answer to it would have taken, none came, and the client went on by itself; or it went on only after twice as long.
    #[cold]
    #[inline(never)]
    pub(super) fn may_have_confirmed(&self, wait: &Wait<'_>, from: usize) -> bool {
        let open =
            self.open.as_deref().filter(|open| from == CLIENT && open.initiator == CLIENT && open.n > 1);
        let alone = |open: &Open| open.reply_first.is_none() && wait.index == 0 && open.pieces.is_empty();
        let long = wait.gap >= wait.rtt().times(ANSWERED_RTTS);
        let heard = self.flows[SERVER].last_data;
        let always = self.roles.goes_on.always_goes_on(self.next_n);
        let sooner = |open: &Open| {
            !always
                && heard
                    .is_some_and(|heard| (open.passed - heard.at - self.tap_rtt(CLIENT)).times(2) <= wait.gap)
        };
        let confirms = |open: &Open| alone(open) && (long && self.came_at_heels(open) || sooner(open));
        wait.last.len <= WORD_MAX && open.is_some_and(confirms)
    }

    /// Whether a client's pause lies between encrypted records, each of which may be a request: HTTP/2 sends as many as it has
    /// before any is answered (RFC 9113, 5).
    pub(super) fn is_between_records(&self, wait: &Wait<'_>, from: usize) -> bool {
        let Some(open) = self.open.as_deref().filter(|open| from == CLIENT && open.initiator == from) else {
            return false;
        };
        let whole = wait.last.queue == SendQueue::Emptied && wait.last.len < wait.mss;
        whole && self.is_in_cipher(open)
    }
}
