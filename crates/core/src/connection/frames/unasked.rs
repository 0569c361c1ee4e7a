//! What do HTTP/2 frames tell that ask for nothing, or that come beside a request?

use tcpwhy_wire::{Instant, Segment};

use super::{Answer, FAREWELL_AFTER, Frames, Holds, OPENING_MAX, PING, RECORDS, REFUTED, UPLOAD_MIN, holds};
use crate::bill::exchange::Open;
use crate::flow::ends::{CLIENT, SERVER};

/// An upload that goes on after nothing but window updates this often in a row does so because of them.
/// Source: none written down.
const UPLOADS_MIN: u8 = 3;

impl Frames {
    /// Whether it is one of many window updates for a long request, however many came in a row.
    pub(super) fn is_room(open: &Open, from: usize, held: Holds) -> bool {
        from != open.initiator && open.request_bytes >= UPLOAD_MIN && !held.ping && !held.settings
    }

    /// A client that has not spoken for a while sends a PING along with its request, and first gets an
    /// echo of the PING alone: that is HTTP/2, as a guess, and the reply is still to come.
    #[cold]
    #[inline(never)]
    pub(super) fn weigh_ping_beside(&mut self, open: &Open, len: u32, from: usize) {
        let record = RECORDS.into_iter().find(|&record| record > 0 && record + PING == len);
        let Some(record) = record.filter(|_| self.opening == 0 && self.echoes != REFUTED) else { return };
        if from == open.initiator {
            self.part = len as u8;
        } else if self.answer == Answer::None
            && open.reply_first.is_none()
            && open.request_bytes > u64::from(len)
            && (u32::from(self.part) == len || open.first_len == len)
        {
            (self.record, self.asked) = (Some((record, true)), Some(open.initiator as u8));
        }
    }

    /// The client has acknowledged, in records of this type, the `bytes` that the server sent before it
    /// had read the request: these were SETTINGS, not the beginning of the reply.
    #[cold]
    pub(crate) fn on_word_about_settings(&mut self, n: usize, bytes: u64) {
        if self.record.is_none() && self.is_preface[n] && bytes <= OPENING_MAX {
            (self.record, self.answer) = (Some((RECORDS[n], false)), Answer::Frames);
        }
    }

    /// Whether a client that has acknowledged SETTINGS has sent nothing but WINDOW_UPDATEs, which ask
    /// for nothing, and the response is as long as GOAWAY (RFC 9113, 6.8 and 6.9), in records of the
    /// same type.
    #[cold]
    #[inline(never)]
    pub(crate) fn is_goaway_behind_windows(&self, [asked, said]: [u64; 2]) -> bool {
        let windows = |record: u32| {
            u32::try_from(asked).ok().and_then(|len| holds(len, record)).is_some_and(|held| !held.ping)
        };
        let goaway = |record: u32| said == u64::from(record + PING);
        let known = |n: usize| self.settings[CLIENT][n];
        (1..RECORDS.len()).any(|n| known(n) && windows(RECORDS[n]) && goaway(RECORDS[n]))
    }

    /// An upload went on after messages as long as window updates with this record overhead, or after
    /// something else: often enough in a row, this is HTTP/2.
    pub(crate) fn on_upload(&mut self, record: Option<u32>) {
        if self.record.is_some() {
            return;
        }
        self.uploads = if record.is_some() { self.uploads.saturating_add(1) } else { 0 };
        if self.uploads >= UPLOADS_MIN {
            self.record = record.map(|record| (record, false));
        }
    }

    /// An upload continued after many messages as long as WINDOW_UPDATEs with this record overhead,
    /// and nothing else: this is HTTP/2.
    pub(crate) fn on_many_windows(&mut self, record: Option<u32>) {
        self.record = self.record.or_else(|| record.map(|record| (record, false)));
    }

    /// Whether a client's segment has been left out since then, although nothing proves HTTP/2.
    pub(crate) fn has_passed_since(&self, at: Instant) -> bool {
        self.left_out[CLIENT].get().is_some_and(|last| last >= at) && !self.tells_who_asks()
    }

    /// When the client last sent window updates.
    pub(crate) fn last_window(&self) -> Option<Instant> {
        self.left_out[CLIENT].get().filter(|_| self.record.is_some_and(|(record, _)| record > 0))
    }

    /// When the server last sent window updates, if uploads have shown that they use up its windows.
    pub(crate) fn last_room(&self) -> Option<Instant> {
        self.left_out[SERVER].get().filter(|_| self.uploads >= UPLOADS_MIN)
    }

    /// Whether a frame as long as GOAWAY comes a silence behind nothing but windows, which ask for nothing.
    #[cold]
    #[inline(never)]
    pub(super) fn ends_unasked(&self, open: &Open, segment: &Segment, held: Holds) -> bool {
        let windows = u32::try_from(open.request_bytes).is_ok_and(|len| self.are_windows(len));
        windows && held.ping && segment.at - open.request_at() >= FAREWELL_AFTER
    }
}
