//! Which small messages are HTTP/2's own, between the calls of the programs?
//!
//! An end of HTTP/2 acknowledges the other's SETTINGS, opens windows and asks with PING how far away the other is, at any time and in the middle of a call
//! (RFC 9113, 6.5, 6.7 and 6.9; gRPC sends PING with nearly every message). Such a frame answers no request, and the answer to a PING is no request. Their sizes
//! show them, and TLS adds the same to each record: 5 bytes of header, 16 of the cipher's tag, and 1 (RFC 8446, 5.2) or 8 (RFC 5288, 3) more.
//!
//! A size alone proves nothing: a request or a reply may be as large. So the connection must have shown that it is one of HTTP/2, and a frame of the
//! responder's is the answer for as long as no other comes.

mod passing;
mod unasked;

use tcpwhy_wire::{Duration, Instant, Segment};

use super::frame_sizes::{
    CHANGE_CIPHER_SPEC, Holds, LONG_MIN, PING, RECORDS, SETTINGS_ACK, TICKETS_MAX, WINDOW_UPDATE,
    acknowledging, holds, is_as_long_as_ping, is_control, many_windows,
};
use crate::bill::exchange::Open;
use crate::estimate::maybe::Maybe;
use crate::flow::ends::CLIENT;
use crate::flow::segment_class::{LastData, SegmentClass};

/// The client's preface and SETTINGS (RFC 9113, 3.4), or what TLS begins with.
const PREFACE_MIN: [u32; 3] = [24, 100, 100];
/// SETTINGS are acknowledged before so many segments with data.
const SETTINGS_WITHIN: u8 = 12;
/// So many in a row, without anything else, are messages.
const FRAMES_MAX: u8 = 4;
/// So many times a PING must have been answered where the connection's beginning is not in the capture.
const ECHOES_MIN: u8 = 2;
/// Not those of this connection: they were messages.
const REFUTED: u8 = u8::MAX;
/// Who answers so many messages with nothing but PINGs has no other words. Source: none written down.
const CONFIRMED_MIN: u8 = 8;
/// Whoever has sent so much is told that there is room for more.
const UPLOAD_MIN: u64 = 10_000;
/// What one end writes within this belongs together.
const TOGETHER: Duration = Duration::from_millis(1);
/// ... and what a server's TLS and its HTTP/2 say before the program has been asked, within this. Source: none written down.
const OPENING_GAP: Duration = Duration::from_millis(5);
/// Nobody gives a connection up sooner. Source: none written down.
const FAREWELL_AFTER: Duration = Duration::from_secs(1);
/// An answer that both ends' SETTINGS are a part of is no longer than this: some tickets (RFC 8446, 4.6.1) and the settings.
const OPENING_MAX: u64 = 4_000;
/// No ticket is as long as that: the answer has begun.
const NO_TICKET: u32 = u32::MAX;

/// What is known of a connection's frames.
#[derive(Clone, Debug, Default, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each says something of its own")]
pub(super) struct Frames {
    /// What a record adds, once the connection has shown to be one of HTTP/2, and whether that is a guess.
    record: Option<(u32, bool)>,
    counted: [u8; 2],
    is_preface: [bool; 3],
    /// By record, whether each end has sent what may acknowledge SETTINGS.
    settings: [[bool; 3]; 2],
    /// Segments that may be a PING and its answer, and the last data segment.
    echoes: u8,
    /// What of each end may be a PING, behind messages of the other end, and nothing else.
    confirmed: [u8; 2],
    last: (u8, u32),
    /// Frames of each end since the last message.
    run: [u8; 2],
    /// Whose PING is not answered yet.
    asked: Option<u8>,
    /// How long a part of the message under way is that may be a PING.
    part: u8,
    /// When each end's last frame passed that was left out.
    left_out: [Maybe<Instant>; 2],
    answer: Answer,
    /// The initiator has echoed a PING of the responder's: that was no answer.
    echoed: bool,
    /// The present segment answers the request, whatever came before.
    answers: bool,
    /// The present segment goes on with the request, although frames came from its responder.
    goes_on: bool,
    /// Something that was left out may have been a part of the request.
    doubtful: bool,
    /// What a server's TLS and HTTP/2 seem to have said by themselves may have answered the part of the request that it acknowledges.
    answers_part: bool,
    /// So many messages on, the server's TLS may have something to say by itself.
    opening: u8,
    /// How long all that it has said so is.
    ticket: Option<u32>,
    /// So many times in a row an upload has gone on behind windows.
    uploads: u8,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Answer {
    #[default]
    None,
    /// Nothing but frames.
    Frames,
    /// Those of a PING's echo, where the message is no more than that PING.
    Echo,
    Message,
}

impl Frames {
    /// Whether a segment of a connection of which nothing is known can be a PING or its echo.
    #[inline]
    fn may_be_echo(&mut self, from: usize, len: u32) -> bool {
        let ping = RECORDS.iter().any(|record| record + PING == len);
        if !ping {
            self.last = (from as u8, 0);
        }
        ping
    }

    /// Learns from a data segment whether the connection is one of HTTP/2; `request` as that is long so far. Returns what
    /// frames it holds.
    fn on_data(&mut self, len: u32, from: usize, request: u64) -> Option<Holds> {
        let last = std::mem::replace(&mut self.last, (from as u8, len));
        let acknowledges = acknowledging(len);
        let settings = Holds { settings: true, ping: false, more: false };
        if let Some((record, guessed)) = self.record {
            // Without anything in it, a frame begins no answer: HEADERS have a field at least.
            let empty = len == SETTINGS_ACK + record && self.answer != Answer::Message;
            let is_first = |&n: &usize| RECORDS[n] == record && (empty || !self.settings[from][n]);
            if let Some(n) = acknowledges.filter(is_first) {
                self.settings[from][n] = true;
                return Some(settings);
            }
            let held = holds(len, record);
            if !guessed || !self.says_nothing_else(last, from, held, record) {
                return held;
            }
            (self.record, self.echoes) = (None, REFUTED);
            return None;
        }
        if self.counted[from] < SETTINGS_WITHIN {
            self.count(len, from);
            if let Some(n) = acknowledges {
                self.settings[from][n] = true;
                if self.is_preface[n] && self.settings.iter().all(|seen| seen[n]) {
                    self.record = Some((RECORDS[n], false));
                    return Some(settings);
                }
            }
        }
        let record = RECORDS.into_iter().find(|record| record + PING == len)?;
        if last == (1 - from as u8, len) && request != u64::from(len) && self.echoes != REFUTED {
            self.echoes += 1;
            if self.echoes >= ECHOES_MIN {
                self.record = Some((record, true));
            }
        }
        None
    }

    /// Whether an end has said nothing but what would be PINGs for long, each of them behind a message of the other end's: they confirm those.
    fn says_nothing_else(&mut self, last: (u8, u32), from: usize, held: Option<Holds>, record: u32) -> bool {
        let ping = held.is_some_and(|held| held.ping && !held.more);
        let behind = usize::from(last.0) != from && holds(last.1, record).is_none();
        let confirmed = if ping { self.confirmed[from].saturating_add(behind.into()) } else { 0 };
        self.confirmed[from] = confirmed;
        confirmed >= CONFIRMED_MIN
    }

    /// Takes one of an end's first segments with data: whether the client's may be a preface, and whether records hold less than a frame's head.
    fn count(&mut self, len: u32, from: usize) {
        self.counted[from] += 1;
        if from == CLIENT && self.counted[from] == 1 {
            self.is_preface = PREFACE_MIN.map(|least| len >= least);
        }
        for (is_preface, record) in self.is_preface.iter_mut().zip(RECORDS) {
            *is_preface &= record == 0 || len <= CHANGE_CIPHER_SPEC || len >= record + SETTINGS_ACK;
        }
    }

    /// The server has set up TLS in clear: what it says to the next message may be TLS's own.
    pub(super) fn on_session(&mut self) {
        self.opening = 2;
    }

    /// Whether what the server says now may be.
    pub(super) fn is_opening(&self) -> bool {
        self.opening == 1
    }

    /// Whether all that the server has said to the message under way is its TLS's own: the client asks beside its Finished.
    pub(super) fn has_only_opened(&self) -> bool {
        self.opening == 1 && self.answer == Answer::Frames
    }

    /// A message begins that nothing is to be known of.
    #[inline]
    pub(super) fn on_message(&mut self) {
        self.answer = Answer::None;
        (self.doubtful, self.answers_part, self.echoed) = (false, false, false);
        self.part = 0;
    }

    /// A message begins. Returns whether that comes behind nothing but what the server's TLS may have said by itself, so that it may be no question.
    pub(super) fn begin_message(&mut self) -> bool {
        let behind_opening = self.opening == 1 && self.answer == Answer::Frames && self.record.is_none();
        self.opening = self.opening.saturating_sub(1);
        self.on_message();
        behind_opening
    }

    /// Whether the connection has shown to be one of HTTP/2.
    pub(super) fn is_http2(&self) -> bool {
        self.record.is_some()
    }

    /// Whether the server has begun its answer in one breath with what its TLS and its HTTP/2 say by themselves: what it has acknowledged since is the client's
    /// word about that.
    pub(super) fn has_begun_to_answer(&self) -> bool {
        self.opening == 1 && self.ticket == Some(NO_TICKET)
    }

    /// Whether so many bytes in cipher are windows and nothing else.
    pub(super) fn are_windows(&self, len: u32) -> bool {
        self.record.is_some_and(|(record, guessed)| {
            record > 0 && !guessed && holds(len, record).is_some_and(|held| !held.ping)
        })
    }

    /// What the server has said so far acknowledges a part of the request alone. Returns whether its TLS seems to have said all of that by itself.
    pub(super) fn answer_part(&mut self) -> bool {
        let opened = self.has_only_opened();
        self.answers_part |= opened;
        opened
    }

    /// Takes a segment out that its end has sent at `at`.
    pub(super) fn leave_out(&mut self, from: usize, at: Instant) {
        self.left_out[from] = Maybe::of(at);
    }

    /// Whether what the server said last may be a frame of nothing (RFC 9113, 6.1), which ends an answer whose length nobody knew before: the same as
    /// an acknowledgement of SETTINGS.
    pub(super) fn ended_a_stream(&self, last: &LastData) -> bool {
        self.record
            .is_some_and(|(record, guessed)| record > 0 && !guessed && last.len == SETTINGS_ACK + record)
    }

    /// Whether all that was said so far is a frame of HTTP/2's own, which a message of `len` bytes does not go on with.
    pub(super) fn is_frame_before(&self, open: &Open, len: u32) -> bool {
        self.record.is_some_and(|(record, _)| {
            let windows = |len: u32| (1..=u32::from(FRAMES_MAX)).any(|n| n * (WINDOW_UPDATE + record) == len);
            let is_frame =
                |len: u32| len == SETTINGS_ACK + record || holds(len, record).is_some() || windows(len);
            u32::try_from(open.request_bytes).is_ok_and(is_frame) && holds(len, record).is_none()
        })
    }

    /// Whether that is a guess, from what may be PINGs and their echoes.
    #[inline]
    pub(super) fn is_guess(&self) -> bool {
        self.record.is_some_and(|(_, guessed)| guessed)
    }

    /// Whether all that was asked and answered is a PING and its echo.
    pub(super) fn is_ping(&self) -> bool {
        self.answer == Answer::Echo
    }

    /// Whether a server's message asks nothing: in HTTP/2 a client alone asks (RFC 9113, 8.1). In clear, sizes tell less than what is read.
    pub(super) fn tells_who_asks(&self) -> bool {
        self.record.is_some_and(|(record, guessed)| record > 0 && !guessed)
    }

    /// Whether the present segment answers the request although frames came before it.
    pub(super) fn answers(&self) -> bool {
        self.answers
    }

    /// Whether the present segment goes on with the request although it has seen something that may be an answer.
    pub(super) fn goes_on(&self) -> bool {
        self.goes_on
    }

    /// Whether what the present segment seems to answer may be something else.
    pub(super) fn is_doubtful(&self) -> bool {
        self.doubtful || self.answers_part || self.answers && self.is_guess()
    }

    /// Whether a segment is HTTP/2's own, so that nobody's message begins or goes on with it. Where it may be what a server's TLS says by
    /// itself, `opening` is how long after its sender's last data it came, and there where a word comes at its heels.
    #[inline]
    pub(super) fn is_left_out(
        &mut self,
        open: Option<&Open>,
        segment: &Segment,
        from: usize,
        class: SegmentClass,
        opening: Option<Duration>,
    ) -> bool {
        let is_known = self.record.is_some() || self.counted[from] < SETTINGS_WITHIN || opening.is_some();
        if !is_known && !self.may_be_echo(from, segment.payload_len) {
            return false;
        }
        self.is_frame(open, segment, from, class, opening)
    }

    /// Takes what may be TLS's own tickets (RFC 8446, 4.6.1) and the server's SETTINGS (RFC 9113, 3.4): they come at once, and are the answer as long as nothing
    /// else comes. Tickets are all as long; what else comes at once may be the answer, and what follows that, news, unless that was said before the question
    /// was `heard` to its end.
    #[cold]
    #[inline(never)]
    fn open(&mut self, gap: Duration, len: u32, replied: u64, heard: bool) {
        match self.answer {
            Answer::None => {
                (self.answer, self.ticket) = (Answer::Frames, Some(len));
                self.doubtful |= heard && len > TICKETS_MAX;
            }
            Answer::Frames if gap < OPENING_GAP && self.is_longer_than_settings(len) => {
                (self.answer, self.ticket) = (Answer::Message, Some(NO_TICKET));
            }
            Answer::Frames if gap < OPENING_GAP || acknowledging(len).is_some() => {
                // Behind the settings a server has nothing more to say by itself but frames.
                let more = self.ticket.is_none() && !is_control(len.into());
                self.doubtful |= heard && more;
                self.ticket = self.ticket.filter(|ticket| *ticket == len);
            }
            Answer::Frames => {
                (self.answers, self.answer) = (replied <= OPENING_MAX, Answer::Message);
                self.doubtful |= self.ticket.is_none() && self.record.is_none();
                // SETTINGS that the client has acknowledged since were no answer, and no frame is as long as this.
                let known = self.answers && heard && self.tells_who_asks() && !is_control(len.into());
                self.answers_part &= !known;
            }
            Answer::Echo | Answer::Message => {}
        }
    }

    fn is_longer_than_settings(&self, len: u32) -> bool {
        len >= LONG_MIN && self.ticket.is_none_or(|ticket| !len.is_multiple_of(ticket))
    }

    /// What a record adds, by its place, where these bytes acknowledge a server's SETTINGS: as long as that, or a little longer if it has acknowledged the client's.
    #[cold]
    #[inline(never)]
    fn acknowledges_opening(&self, len: u32, from: usize, follows_at_once: bool) -> Option<usize> {
        if self.record.is_some() || self.opening != 1 || self.answer == Answer::None {
            return None;
        }
        let at_heels = follows_at_once && self.has_only_opened();
        let answered = || (1..RECORDS.len()).find(|&n| at_heels && self.settings[1 - from][n]);
        // With a window beside it, it is as long as many a question.
        acknowledging(len).filter(|&n| n > 0 && len == RECORDS[n] + SETTINGS_ACK).or_else(answered)
    }

    fn is_frame(
        &mut self,
        open: Option<&Open>,
        segment: &Segment,
        from: usize,
        class: SegmentClass,
        opening: Option<Duration>,
    ) -> bool {
        (self.answers, self.goes_on) = (false, false);
        let Some(open) = open.filter(|_| class == SegmentClass::New) else {
            if class == SegmentClass::New {
                self.on_data(segment.payload_len, from, 0);
            }
            return false;
        };
        let may_be_ping = is_as_long_as_ping(segment.payload_len);
        if may_be_ping && self.record.is_none() && opening.is_none() {
            self.weigh_ping_beside(open, segment.payload_len, from);
        }
        let mut held = self.on_data(segment.payload_len, from, open.request_bytes);
        let by_tls = |gap: &Duration| from != open.initiator && !self.is_farewell(held, *gap);
        if let Some(gap) = opening.filter(by_tls) {
            let heard = open.request_end.is_none_or(|end| segment.ack.at_or_after(end));
            self.open(gap, segment.payload_len, open.reply_bytes, heard);
            return false;
        }
        if let Some(n) = self.acknowledges_opening(segment.payload_len, from, opening.is_some()) {
            self.record = Some((RECORDS[n], false));
            held = Some(Holds { settings: true, ping: false, more: false });
        }
        let Some((record, _)) = self.record else { return false };
        if from != open.initiator && open.crosses(segment) {
            // It answers nothing of this message, but perhaps a PING in front of it.
            self.asked =
                self.asked.filter(|asker| usize::from(*asker) == from || !held.is_some_and(|held| held.ping));
            return false;
        }
        // Whoever reads a long question says often that there is room.
        if from != open.initiator && open.request_bytes >= UPLOAD_MIN {
            held = held.or_else(|| many_windows(segment.payload_len, record));
        }
        let asks = u32::try_from(open.request_bytes).is_ok_and(|len| holds(len, record).is_none());
        let is_run = |held: &Holds| self.run[from] < FRAMES_MAX || unasked::is_room(open, from, *held);
        let Some(held) = held.filter(is_run) else {
            self.run = [0; 2];
            let after_frames = asks && self.answer == Answer::Frames;
            if from == open.initiator {
                self.goes_on = after_frames && (self.echoed || open.request_bytes >= UPLOAD_MIN);
            } else if self.answer != Answer::Echo {
                self.answers = after_frames;
                self.answer = Answer::Message;
            }
            return false;
        };
        let left_out = self.is_beside(open, segment, from, held, asks);
        if left_out {
            self.left_out[from] = Maybe::of(segment.at);
        }
        left_out
    }

    /// Whether a server of HTTP/2 that has said what it says by itself speaks of one frame's length after a silence that no answer had kept: GOAWAY is as long as PING
    /// (RFC 9113, 6.8), and answers nothing.
    fn is_farewell(&self, held: Option<Holds>, gap: Duration) -> bool {
        let known = self.record.is_some_and(|(record, guessed)| record > 0 && !guessed);
        known && gap >= FAREWELL_AFTER && self.answer == Answer::Frames && held.is_some_and(|held| held.ping)
    }

    /// Whether a segment that holds nothing but frames is no part of the exchange under way; `asks` if that has a request that is more than that.
    fn is_beside(&mut self, open: &Open, segment: &Segment, from: usize, held: Holds, asks: bool) -> bool {
        self.run[from] = self.run[from].saturating_add(1);
        let echoes = held.ping && self.asked == Some(1 - from as u8);
        if echoes {
            self.asked = held.more.then_some(from as u8);
        } else if held.ping {
            self.asked = Some(from as u8);
        }
        if from == open.initiator {
            // What came before both ends had acknowledged SETTINGS was the server's own: they are its first word (RFC 9113, 3.4).
            if held.settings
                && self.answer == Answer::Message
                && self.opening != 1
                && open.reply_bytes <= OPENING_MAX
            {
                self.answer = Answer::Frames;
            }
            let together = self.left_out[from].get().is_some_and(|last| segment.at - last < TOGETHER);
            let waits = held.ping && self.answer != Answer::Message;
            // Until the responder has echoed it, it may be the rest of the request.
            self.echoed |= echoes && self.answer == Answer::Frames;
            self.doubtful |= asks && waits && !echoes && !together;
            // Of several calls that were made at once, others are waited for still.
            let several = held.ping && open.request.index > 1 && open.request_bytes < UPLOAD_MIN;
            asks && (echoes || together || waits || several || held.settings)
        } else {
            self.doubtful &= !echoes;
            let first = self.answer == Answer::None;
            if first {
                self.answer =
                    if held.ping && self.asks_with_ping(open) { Answer::Echo } else { Answer::Frames };
            }
            self.is_ping() || asks && !first || self.ends_unasked(open, segment, held)
        }
    }

    /// Whether what was said first is a PING, with other frames beside it or not.
    fn asks_with_ping(&self, open: &Open) -> bool {
        let len = u32::try_from(open.request_bytes).ok().zip(self.record);
        len.and_then(|(len, (record, _))| holds(len, record)).is_some_and(|held| held.ping)
    }
}

#[cfg(test)]
mod tests;
