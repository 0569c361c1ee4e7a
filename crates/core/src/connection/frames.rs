//! Which small messages are HTTP/2's own, between the calls of the programs?
//!
//! An HTTP/2 end acknowledges SETTINGS, sends WINDOW_UPDATEs and measures round trips by PING at any time,
//! even in a call (RFC 9113, 6.5, 6.7 and 6.9; gRPC sends PING with nearly every message). Such frames answer
//! no request, and the answer to a PING is no request. Their sizes give them away; TLS adds a constant to
//! each record: 5 bytes of header, 16 of the cipher's tag, and 1 (RFC 8446, 5.2) or 8 (RFC 5288, 3) more.
//!
//! A size alone proves nothing, since requests and replies may have it too. So the connection must first
//! prove to be HTTP/2, and a frame of the responder's is the reply until something else comes.

mod passing;
mod unasked;

use tcpwhy_wire::{Duration, Instant, Segment};

use super::frame_sizes::{
    ALERTS, CHANGE_CIPHER_SPEC, Holds, LONG_MIN, PING, RECORDS, SETTINGS_ACK, TICKETS_MAX, WINDOW_UPDATE,
    acknowledging, holds, is_as_long_as_ping, is_control, many_windows,
};
use crate::bill::exchange::Open;
use crate::estimate::maybe::Maybe;
use crate::flow::ends::CLIENT;
use crate::flow::segment_class::{LastData, SegmentClass};

/// The least length of a client's first segment: preface and SETTINGS (RFC 9113, 3.4), or TLS's ClientHello.
const PREFACE_MIN: [u32; 3] = [24, 100, 100];
/// SETTINGS are acknowledged within this many data segments.
const SETTINGS_WITHIN: u8 = 12;
/// After this many frames in a row, with nothing else, the next are messages.
const FRAMES_MAX: u8 = 4;
/// This many PINGs must have been answered if the capture lacks the connection's beginning.
const ECHOES_MIN: u8 = 2;
/// In `echoes`: this connection's supposed PINGs were messages.
const REFUTED: u8 = u8::MAX;
/// An end whose answers to this many messages are all PING-sized sends no PINGs. Source: none written down.
const CONFIRMED_MIN: u8 = 8;
/// The reader of a request this long sends WINDOW_UPDATEs.
pub(super) const UPLOAD_MIN: u64 = 10_000;
/// Segments that one end writes within this belong together.
const TOGETHER: Duration = Duration::from_millis(1);
/// ... and so do those of a server's TLS and HTTP/2 before its program is asked. Source: none written down.
const OPENING_GAP: Duration = Duration::from_millis(5);
/// No end gives up a connection sooner. Source: none written down.
const FAREWELL_AFTER: Duration = Duration::from_secs(1);
/// The longest reply that may include both ends' SETTINGS: some tickets (RFC 8446, 4.6.1) and the settings.
const OPENING_MAX: u64 = 4_000;
/// In `ticket`: a message too long for a ticket, so the reply has begun.
const NO_TICKET: u32 = u32::MAX;

/// What is known of a connection's frames.
#[derive(Clone, Debug, Default, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each says something of its own")]
pub(super) struct Frames {
    /// What a record adds, once the connection has proved to be HTTP/2, and whether that is a guess.
    record: Option<(u32, bool)>,
    counted: [u8; 2],
    is_preface: [bool; 3],
    /// The client's first segment is as long as a ClientHello.
    is_hello: bool,
    /// By record, whether each end has sent what may acknowledge SETTINGS.
    settings: [[bool; 3]; 2],
    /// Pairs of segments that may be a PING and its echo.
    echoes: u8,
    /// Each end's possible PINGs after messages of the other end, with nothing else in between.
    confirmed: [u8; 2],
    last: (u8, u32),
    /// Frames of each end since the last message.
    run: [u8; 2],
    /// The end whose PING is not answered yet.
    asked: Option<u8>,
    /// The length of a possible PING within the message under way.
    part: u8,
    /// When each end's last left-out frame passed.
    left_out: [Maybe<Instant>; 2],
    answer: Answer,
    /// The initiator has echoed a PING of the responder's, which therefore was no reply.
    echoed: bool,
    /// The present segment answers the request, whatever came before.
    answers: bool,
    /// The present segment continues the request, although frames came from its responder.
    goes_on: bool,
    /// Something left out may have been part of the request.
    doubtful: bool,
    /// What a server's TLS and HTTP/2 seem to send by themselves may answer part of the request.
    answers_part: bool,
    /// For this many more messages, the server's TLS may have something to say by itself.
    opening: u8,
    /// The one length of all that TLS has said so.
    ticket: Option<u32>,
    /// How often in a row an upload went on after window updates.
    uploads: u8,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Answer {
    #[default]
    None,
    /// Nothing but frames.
    Frames,
    /// The echo of a PING, if the message is no more than that PING.
    Echo,
    Message,
}

impl Frames {
    /// Whether a segment can be a PING or its echo, on a connection of which nothing is known.
    #[inline]
    fn may_be_echo(&mut self, from: usize, len: u32) -> bool {
        let ping = RECORDS.iter().any(|record| record + PING == len);
        if !ping {
            self.last = (from as u8, 0);
        }
        ping
    }

    /// Learns from a data segment whether this is HTTP/2; `request` is the request's length. Returns frames.
    fn on_data(&mut self, len: u32, from: usize, request: u64) -> Option<Holds> {
        let last = std::mem::replace(&mut self.last, (from as u8, len));
        let acknowledges = acknowledging(len);
        let settings = Holds { settings: true, ping: false, more: false };
        if let Some((record, guessed)) = self.record {
            // An empty frame begins no reply: HEADERS have at least one field.
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

    /// Whether an end has long sent only PING-sized messages, each after one of the other end, to confirm it.
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
            self.is_hello = self.is_preface[1];
        }
        for (is_preface, record) in self.is_preface.iter_mut().zip(RECORDS) {
            *is_preface &= record == 0 || len <= CHANGE_CIPHER_SPEC || len >= record + SETTINGS_ACK;
        }
    }

    /// Whether the client's first segment may be a ClientHello, by its length.
    pub(super) fn may_begin_tls(&self) -> bool {
        self.is_hello
    }

    /// The server has set up TLS in plain text: its response to the next message may be TLS's own.
    pub(super) fn on_session(&mut self) {
        self.opening = 2;
    }

    /// Whether the server's present message may be TLS's own.
    pub(super) fn is_opening(&self) -> bool {
        self.opening == 1
    }

    /// Whether all of the server's response so far is TLS's own: the client asks along with its Finished.
    pub(super) fn has_only_opened(&self) -> bool {
        self.opening == 1 && self.answer == Answer::Frames
    }

    /// A message begins, of which nothing is known yet.
    #[inline]
    pub(super) fn on_message(&mut self) {
        self.answer = Answer::None;
        (self.doubtful, self.answers_part, self.echoed) = (false, false, false);
        self.part = 0;
    }

    /// A message begins. Returns whether it follows only TLS's own messages, so that it may be no request.
    pub(super) fn begin_message(&mut self) -> bool {
        let behind_opening = self.opening == 1 && self.answer == Answer::Frames && self.record.is_none();
        self.opening = self.opening.saturating_sub(1);
        self.on_message();
        behind_opening
    }

    /// Whether the connection has proved to be HTTP/2.
    pub(super) fn is_http2(&self) -> bool {
        self.record.is_some()
    }

    /// Whether the server has begun its reply right along with TLS's and HTTP/2's own messages: what it has
    /// acknowledged since is the client's response to those.
    pub(super) fn has_begun_to_answer(&self) -> bool {
        self.opening == 1 && self.ticket == Some(NO_TICKET)
    }

    /// Whether so many encrypted bytes are WINDOW_UPDATEs and nothing else.
    pub(super) fn are_windows(&self, len: u32) -> bool {
        self.record.is_some_and(|(record, guessed)| {
            record > 0 && !guessed && holds(len, record).is_some_and(|held| !held.ping)
        })
    }

    /// The server's response so far acknowledges part of the request. Returns whether that may be TLS's own.
    pub(super) fn answer_part(&mut self) -> bool {
        let opened = self.has_only_opened();
        self.answers_part |= opened;
        opened
    }

    /// Leaves out a segment that its end sent at `at`.
    pub(super) fn leave_out(&mut self, from: usize, at: Instant) {
        self.left_out[from] = Maybe::of(at);
    }

    /// Whether what the server said last may be a frame of nothing (RFC 9113, 6.1), which ends an answer whose length nobody knew before: the same as
    /// an acknowledgement of SETTINGS.
    pub(super) fn ended_a_stream(&self, last: &LastData) -> bool {
        self.record
            .is_some_and(|(record, guessed)| record > 0 && !guessed && last.len == SETTINGS_ACK + record)
    }

    /// Whether the message so far is HTTP/2's own frame, which a message of `len` bytes does not continue.
    pub(super) fn is_frame_before(&self, open: &Open, len: u32) -> bool {
        self.record.is_some_and(|(record, _)| {
            let windows = |len: u32| (1..=u32::from(FRAMES_MAX)).any(|n| n * (WINDOW_UPDATE + record) == len);
            let is_frame =
                |len: u32| len == SETTINGS_ACK + record || holds(len, record).is_some() || windows(len);
            u32::try_from(open.request_bytes).is_ok_and(is_frame) && holds(len, record).is_none()
        })
    }

    /// Whether HTTP/2 is a guess, from what may be PINGs and their echoes.
    #[inline]
    pub(super) fn is_guess(&self) -> bool {
        self.record.is_some_and(|(_, guessed)| guessed)
    }

    /// Whether all that was asked and answered is a PING and its echo.
    pub(super) fn is_ping(&self) -> bool {
        self.answer == Answer::Echo
    }

    /// Whether server messages ask nothing: in HTTP/2 only clients ask (RFC 9113, 8.1). Plain text is read.
    pub(super) fn tells_who_asks(&self) -> bool {
        self.record.is_some_and(|(record, guessed)| record > 0 && !guessed)
    }

    /// Whether the present segment answers the request although frames came before it.
    pub(super) fn answers(&self) -> bool {
        self.answers
    }

    /// Whether the present segment continues the request although its sender has seen a possible reply.
    pub(super) fn goes_on(&self) -> bool {
        self.goes_on
    }

    /// Whether the present segment may answer something else than it seems to.
    pub(super) fn is_doubtful(&self) -> bool {
        self.doubtful || self.answers_part || self.answers && self.is_guess()
    }

    /// Whether a segment is HTTP/2's own, outside all messages. If it may be the server's TLS's own, or a
    /// short message right after that, `opening` is how long after its sender's last data it came.
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

    /// Takes possible TLS tickets (RFC 8446, 4.6.1) and server SETTINGS (RFC 9113, 3.4): they come at once,
    /// and are the reply until something else comes. Tickets all have one length; anything else at once may
    /// be the reply, and later messages news, unless the request had not been `heard` to its end.
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
                // After SETTINGS, a server has nothing more to say by itself but frames.
                let more = self.ticket.is_none() && !is_control(len.into());
                self.doubtful |= heard && more;
                self.ticket = self.ticket.filter(|ticket| *ticket == len);
            }
            Answer::Frames => {
                (self.answers, self.answer) = (replied <= OPENING_MAX, Answer::Message);
                self.doubtful |= self.ticket.is_none() && self.record.is_none();
                // SETTINGS that the client has acknowledged since were no reply, and no frame is this long.
                let known = self.answers && heard && self.tells_who_asks() && !is_control(len.into());
                self.answers_part &= !known;
            }
            Answer::Echo | Answer::Message => {}
        }
    }

    fn is_longer_than_settings(&self, len: u32) -> bool {
        len >= LONG_MIN && self.ticket.is_none_or(|ticket| !len.is_multiple_of(ticket))
    }

    /// The record type's index if this acknowledges a server's SETTINGS: by its length, or by coming at once.
    #[cold]
    #[inline(never)]
    fn acknowledges_opening(&self, len: u32, from: usize, follows_at_once: bool) -> Option<usize> {
        if self.record.is_some() || self.opening != 1 || self.answer == Answer::None {
            return None;
        }
        let at_heels = follows_at_once && self.has_only_opened();
        let answered = || (1..RECORDS.len()).find(|&n| at_heels && self.settings[1 - from][n]);
        // With a WINDOW_UPDATE beside it, it is as long as many requests.
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
        let is_late = matches!(class, SegmentClass::OutOfOrderOrRepair { .. });
        let is_new = class == SegmentClass::New || is_late && self.may_be_late_echo(segment, from);
        let Some(open) = open.filter(|_| is_new) else {
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
        let by_tls = |gap: &Duration| from != open.initiator && !self.is_farewell(held, *gap, segment);
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
            // It answers nothing of this message, but perhaps a PING before it.
            self.asked =
                self.asked.filter(|asker| usize::from(*asker) == from || !held.is_some_and(|held| held.ping));
            return false;
        }
        // The reader of a long request often sends WINDOW_UPDATEs.
        if from != open.initiator && open.request_bytes >= UPLOAD_MIN {
            held = held.or_else(|| many_windows(segment.payload_len, record));
        }
        let asks = u32::try_from(open.request_bytes).is_ok_and(|len| holds(len, record).is_none());
        let is_run = |held: &Holds| self.run[from] < FRAMES_MAX || Self::is_room(open, from, *held);
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

    /// Whether bytes that come late, behind a later acknowledgement or segment, may echo the other end's PING.
    fn may_be_late_echo(&self, segment: &Segment, from: usize) -> bool {
        let known = self.record.is_some_and(|(record, _)| segment.payload_len == record + PING);
        known && self.asked == Some(1 - from as u8)
    }

    /// Whether an HTTP/2 server that has sent only its own frames sends one more, as long as PING, after a
    /// silence that no reply explains: GOAWAY has that length (RFC 9113, 6.8), and answers nothing. The same of an alert (RFC 8446, 6.1).
    fn is_farewell(&self, held: Option<Holds>, gap: Duration, segment: &Segment) -> bool {
        let known = self.record.is_some_and(|(record, guessed)| record > 0 && !guessed);
        let goaway = known && held.is_some_and(|held| held.ping);
        let ends = goaway || ALERTS.contains(&u64::from(segment.payload_len));
        gap >= FAREWELL_AFTER && self.answer == Answer::Frames && ends
    }

    /// Whether a segment of frames alone is outside the exchange; `asks` if the request is more than frames.
    fn is_beside(&mut self, open: &Open, segment: &Segment, from: usize, held: Holds, asks: bool) -> bool {
        self.run[from] = self.run[from].saturating_add(1);
        let echoes = held.ping && self.asked == Some(1 - from as u8);
        if echoes {
            self.asked = held.more.then_some(from as u8);
        } else if held.ping {
            self.asked = Some(from as u8);
        }
        if from == open.initiator {
            // Before both ends acknowledged SETTINGS, all was the server's own (RFC 9113, 3.4).
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
            // Of several calls made at once, others still wait.
            let several = held.ping && open.request.index > 1 && open.request_bytes < UPLOAD_MIN;
            asks && (echoes || together || waits || several || held.settings)
        } else {
            self.doubtful &= !echoes;
            let first = self.answer == Answer::None;
            // A PING that left long after the question is what its echo answers.
            let later = |pinged: Instant| pinged - open.request_at() >= FAREWELL_AFTER;
            if first && asks && echoes && self.left_out[open.initiator].get().is_some_and(later) {
                return true;
            }
            if first {
                self.answer =
                    if held.ping && self.asks_with_ping(open) { Answer::Echo } else { Answer::Frames };
            }
            self.is_ping() || asks && !first || self.ends_unasked(open, segment, held)
        }
    }

    /// Whether the request is a PING, with or without other frames.
    fn asks_with_ping(&self, open: &Open) -> bool {
        let len = u32::try_from(open.request_bytes).ok().zip(self.record);
        len.and_then(|(len, (record, _))| holds(len, record)).is_some_and(|held| held.ping)
    }
}

#[cfg(test)]
mod tests;
