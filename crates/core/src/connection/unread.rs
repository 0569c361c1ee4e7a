//! Which messages may be the session's or the protocol's own, where no payload was captured?

use tcpwhy_wire::{Duration, Seq};

use super::Connection;
use super::asking::{CONFIRMS_MAX, REACTS};
use super::frame_sizes::{is_control, may_be_windows};
use super::opening::AT_ONCE;
use super::roles::PAUSE_LONG;
use super::turn::Paired;
use crate::bill::exchange::Open;
use crate::flow::ends::{CLIENT, SERVER};
use crate::words::mark::{Mark, Role};

/// A TLS 1.3 client's ChangeCipherSpec and Finished take at most this many bytes: SHA-384 (RFC 8446,
/// 4.4.4, 5.2 and D.4).
const FINISHED_MAX: u32 = 80;
/// It is the client's second message, or the third after a HelloRetryRequest (RFC 8446, 2.1).
const FINISHED_AT: std::ops::RangeInclusive<u64> = 2..=3;

/// The first message of a capture that begins midway may be the end of one, and what follows the next
/// one: both together fill at most so many segments. Source: none written down.
const FIRST_SEGMENTS: u64 = 2;

/// So many pieces of one length are hardly one message's. Source: none written down.
const ROW_MIN: u64 = 3;

/// Whether so many bytes are several pieces as long as the last one.
fn is_row(said: u64, piece: u32) -> bool {
    let piece = u64::from(piece.max(1));
    said.is_multiple_of(piece) && said / piece >= ROW_MIN
}

impl Connection {
    /// Takes marks of payload that was not captured, or is encrypted. Returns whether they are such.
    pub(super) fn take_unreadable(&mut self, marks: &[Mark], seq: Seq) -> bool {
        let have = |role| marks.iter().any(|mark| mark.role == role);
        if have(Role::Unread) {
            self.paired = self.paired.max(Paired::Unread);
        } else if have(Role::Sealed) {
            self.talk.get_or_insert_default();
        } else if have(Role::Alert) {
            self.talk.get_or_insert_default().alert = Some(seq);
        } else {
            return false;
        }
        true
    }

    /// Whether what each end said may be several messages, and its pauses no part of any: a segment's
    /// worth in pieces whose payload was not captured, or that are encrypted in a capture that begins midway,
    /// a row of such pieces of one length, and its first message.
    #[cold]
    #[inline(never)]
    pub(super) fn may_be_many(&self, open: &Open) -> [bool; 2] {
        let first = self.midway && open.n == 0;
        let sealed = self.midway && self.is_in_cipher(open);
        let unread = self.paired == Paired::Unread || sealed;
        let segments = if first { FIRST_SEGMENTS } else { u64::from(unread) };
        [CLIENT, SERVER].map(|end| {
            let asks = end == open.initiator;
            let (said, path) =
                if asks { (open.request_bytes, &open.request) } else { (open.reply_bytes, &open.reply) };
            let mss = self.mss(end);
            said < segments * u64::from(mss)
                || unread && path.last.is_some_and(|last| last.len < mss && is_row(said, last.len))
        })
    }

    /// Whether the client's few bytes, said in its own time, may have asked for nothing: a line of a chat, a
    /// replica's position. What follows `wait` later is then the other end's next word.
    #[cold]
    #[inline(never)]
    pub(super) fn may_be_word(&self, open: &Open, wait: Duration) -> bool {
        let unknown = self.paired == Paired::Unread || self.midway && wait >= PAUSE_LONG;
        unknown && (1..=CONFIRMS_MAX).contains(&open.request_bytes) && open.client_idle.times(REACTS) > wait
    }

    /// Whether possibly nobody waited for the reply: the client's message may be the Finished of
    /// TLS, which is followed by tickets, or a WINDOW_UPDATE of HTTP/2 for data that had arrived.
    #[inline]
    pub(super) fn may_be_own(&self, open: &Open) -> bool {
        self.paired == Paired::Unread && self.has_own_length(open)
    }

    #[cold]
    #[inline(never)]
    fn has_own_length(&self, open: &Open) -> bool {
        let finished = FINISHED_AT.contains(&open.n) && open.first_len <= FINISHED_MAX;
        let windows = is_control(open.request_bytes) || may_be_windows(open.request_bytes);
        open.initiator == CLIENT
            && (finished && self.frames.may_begin_tls()
                || windows && open.n > 1 && open.client_idle <= AT_ONCE)
    }
}
