//! What does a server's TLS say before its program has been asked?
//!
//! TLS 1.3 sends tickets as soon as it has the client's Finished (RFC 8446, 4.6.1), and HTTP/2 begins
//! with SETTINGS (RFC 9113, 3.4). The client has sent its request along with its Finished and waits for
//! something else: taken for a reply, the tickets would make the server seem to begin at once and then
//! to pause.

use tcpwhy_wire::{Duration, Segment, Seq};

use super::Connection;
use super::frame_sizes::{TICKETS_MAX, acknowledging};
use crate::bill::exchange::Open;
use crate::flow::ends::{CLIENT, SERVER};
use crate::words::limits::WORD_MAX;

/// The length of a ChangeCipherSpec, a record of one byte (RFC 8446, D.4).
const CHANGE_CIPHER_SPEC_LEN: i32 = 6;
/// ... and that with a Finished of SHA-384 after it.
const FINISHED_LEN_MAX: i32 = 80;

/// A server's two tickets may each be as long as those of OpenSSL together. Source: observed.
const TICKETS: u64 = 2;

/// A server's TLS takes no longer to send its own messages. Source: none written down.
const TICKETS_WITHIN: Duration = Duration::from_millis(200);

/// A program that waits for nothing else reacts within this. Source: none written down.
pub(super) const AT_ONCE: Duration = Duration::from_millis(2);

impl Connection {
    /// How long after its sender's last data this segment came, if it may be what TLS 1.3 says by
    /// itself after the client's Finished. Zero for a short message of the client's right after that.
    #[cold]
    #[inline(never)]
    pub(super) fn opening_gap(&self, segment: &Segment, from: usize) -> Option<Duration> {
        if from == CLIENT {
            let is_word = segment.payload_len <= WORD_MAX && self.follows_at_once(segment, from);
            return (is_word && self.frames.has_only_opened()).then_some(Duration::ZERO);
        }
        let open = self.open.as_deref().filter(|open| open.initiator == CLIENT)?;
        let [hello, clear] = self.talk.as_deref()?.session;
        // The Finished begins where the ClientHello ends, or after a ChangeCipherSpec, the only record
        // read from there on: in TLS 1.2, keys come before that (RFC 5246, 7.3). It may be lost.
        let is_next = is_finished(hello?[1], open.request_first?);
        // The server's flight continued encrypted.
        let is_encrypted =
            self.flows[SERVER].snd_nxt.is_some_and(|next| next.after(clear.unwrap_or([next; 2])[1]));
        let last = self.flows[SERVER].last_data.as_ref()?;
        // Tickets come at once: a message this much later than an ACK of the Finished, which no timer
        // delays so long, was requested.
        let asked = &self.flows[CLIENT];
        let late = asked.newly_acked == 0
            && asked.outstanding() == 0
            && !self.frames.has_only_opened()
            && segment.at - open.request_at() >= self.tap_rtt(SERVER) + TICKETS_WITHIN;
        (is_next && is_encrypted && !late && !open.crosses(segment)).then(|| segment.at - last.at)
    }

    /// Whether a client asks without the server's Finished (TLS's False Start, RFC 7918): so far it has said nothing that
    /// does not set up the session, and more than the end of one that goes on from before (RFC 5246, 7.3), and all that
    /// the server has said is in clear.
    #[inline]
    pub(super) fn asks_behind_finished(&self, segment: &Segment, from: usize) -> bool {
        from == CLIENT && self.talk.is_some() && self.is_behind_finished(segment)
    }

    #[cold]
    #[inline(never)]
    fn is_behind_finished(&self, segment: &Segment) -> bool {
        let Some(open) = self.open.as_deref().filter(|open| open.initiator == CLIENT) else { return false };
        let said = self.talk.as_deref().map_or([None; 2], |talk| talk.session);
        let [Some([begin, end]), Some([_, clear])] = said else { return false };
        let full = open.request_bytes > (CHANGE_CIPHER_SPEC_LEN + FINISHED_LEN_MAX) as u64;
        full && segment.seq == end
            && open.request_end == Some(end)
            && open.request_first.is_some_and(|first| first.after(begin))
            && open.reply_first.is_none()
            && open.pieces.is_empty()
            && open.request.repaired_at().is_none()
            && self.flows[SERVER].snd_nxt == Some(clear)
    }

    /// Whether a segment does no more than set up its end's side of a session.
    #[inline]
    pub(super) fn is_of_session(&self, segment: &Segment, from: usize) -> bool {
        let said = self.talk.as_deref().and_then(|talk| talk.session[from]);
        said.is_some_and(|[begin, end]| {
            segment.seq.at_or_after(begin) && (segment.seq + segment.payload_len).at_or_before(end)
        })
    }

    /// The byte after what an end has said to set up the session.
    pub(super) fn session_end(&self, end: usize) -> Option<Seq> {
        Some(self.talk.as_deref()?.session[end]?[1])
    }

    /// Whether the client has sent only its Finished, which requests nothing.
    #[cold]
    #[inline(never)]
    pub(super) fn is_finished_alone(&self, open: &Open) -> bool {
        let hello = self.talk.as_deref().and_then(|talk| talk.session[CLIENT]);
        open.initiator == CLIENT
            && open.request_bytes <= FINISHED_LEN_MAX as u64
            && hello.zip(open.request_first).is_some_and(|([_, end], first)| is_finished(end, first))
    }

    /// Whether the client has sent only its Finished, and what came may be tickets, which nobody waits for.
    #[inline]
    pub(super) fn asks_nothing(&self, open: &Open) -> bool {
        self.talk.is_some()
            && open.request_bytes <= FINISHED_LEN_MAX as u64
            && open.reply_bytes <= TICKETS * u64::from(TICKETS_MAX)
            && self.is_finished_alone(open)
    }

    /// Whether this is the client's acknowledgement of SETTINGS, by its length in a record, right after
    /// a message that the server sent before it had read the end of the request (RFC 9113, 3.4 and
    /// 6.5.3; in TLS 1.2 along with its Finished): the server had acknowledged only what came earlier,
    /// so its reply is still to come.
    #[inline]
    pub(super) fn has_read_settings(&mut self, segment: &Segment, from: usize) -> bool {
        from == CLIENT && segment.payload_len <= WORD_MAX && self.is_word_about_settings(segment, from)
    }

    #[cold]
    #[inline(never)]
    fn is_word_about_settings(&mut self, segment: &Segment, from: usize) -> bool {
        let Some(open) = self.open.as_deref().filter(|open| open.initiator == from) else { return false };
        let asked = open.later.as_deref().unwrap_or(open);
        let Some((first, last)) = open.reply_first.zip(asked.request.last) else { return false };
        let acked = self.flows[from].highest_ack;
        let unread = asked
            .request_end
            .zip(acked)
            .is_some_and(|(end, acked)| end - acked >= i32::try_from(last.len).unwrap_or(i32::MAX));
        let word = acknowledging(segment.payload_len).filter(|&n| n > 0);
        let is_word = word.is_some()
            && (open.request.index > 0 || open.later.is_some())
            && segment.ack.after(first)
            && self.talk.is_some()
            && self.follows_at_once(segment, from);
        if let Some(n) = word.filter(|_| unread && is_word) {
            self.frames.on_word_about_settings(n, open.reply_bytes);
            self.frames.leave_out(from, segment.at);
        }
        unread && is_word
    }

    /// Whether a segment follows the other end's data at once, as a response to it does.
    #[cold]
    #[inline(never)]
    pub(super) fn follows_at_once(&self, segment: &Segment, from: usize) -> bool {
        let said = self.flows[1 - from].last_data.as_ref();
        said.is_some_and(|said| segment.at - said.at - self.tap_rtt(from) <= AT_ONCE)
    }
}

/// Whether a Finished begins at `first`, after a hello up to `end` or after a ChangeCipherSpec, which
/// is read as well.
fn is_finished(end: Seq, first: Seq) -> bool {
    (-FINISHED_LEN_MAX..=CHANGE_CIPHER_SPEC_LEN).contains(&(end - first))
}
