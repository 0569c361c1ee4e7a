//! Which segments belong to the exchange under way, and which turn out not to?

use tcpwhy_wire::{Duration, Instant, Segment, Seq};

use super::Open;
use crate::bill::account::Account;
use crate::bill::piece::Piece;
use crate::bill::split::Split;
use crate::flow::segment_class::LastData;
use crate::words::limits::SEND_BUFFER_MIN;

/// When an answer came, relative to the pieces of its request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Timing {
    /// From the first piece to the last.
    pub pieces: Duration,
    /// From the first piece to the answer.
    pub answer: Duration,
}

impl Open {
    /// How long the first answer to a request in pieces took, where nothing happened before its first piece.
    pub(crate) fn timing(&self, answered_at: Instant) -> Option<Timing> {
        let last = self.request.last.filter(|_| self.request.index > 0 && self.pieces.is_empty())?;
        // A request that exceeds a send buffer leaves at the pace of the path, not of its application.
        let short = self.request_bytes < u64::from(SEND_BUFFER_MIN);
        let first = short && self.reply.last.is_none() && self.start == self.piece.0;
        first.then(|| Timing { pieces: last.at - self.passed, answer: answered_at - self.passed })
    }

    /// Whether a reply that acknowledges up to `ack` had left before the rest of the request arrived, and did
    /// not wait for that. Of retransmitted requests, the acknowledgements say more.
    pub(crate) fn leaves_out(&self, ack: Seq) -> bool {
        self.request_end.is_some_and(|end| ack.before(end)) && !self.request.has_copies()
    }

    /// The reply begins with a segment that passes at `at`.
    #[inline]
    pub(crate) fn on_reply(&mut self, first: Seq, at: Instant) {
        if self.reply_first.is_none() {
            self.reply_first = Some(first);
            self.waited = (at - self.request_at()).at_least_zero();
        }
    }

    /// The reply's path starts after `split`: at the end of the request's, or at its beginning if
    /// `from_beginning`.
    pub(crate) fn begin_reply(&mut self, split: &Split, last: LastData, from_beginning: bool) {
        self.join_pieces();
        if from_beginning {
            self.reply.begin_with(split, last);
        } else {
            self.reply.branch(&mut self.request, split, last);
        }
    }

    /// What looked like the reply was not.
    pub(crate) fn drop_reply(&mut self) {
        self.reply.clear();
        self.reply_first = None;
        self.reply_bytes = 0;
        self.packets[1] = self.request.last.map_or(self.packets[0], |last| last.packet);
    }

    /// One part had ended with `last`, in `packet`, at this cost: the bytes since then do not
    /// belong to it.
    pub(crate) fn end_before(
        &mut self,
        replies: bool,
        account: &Account,
        last: LastData,
        bytes: u64,
        packet: u64,
    ) {
        let (path, counted) = if replies {
            (&mut self.reply, [Some(&mut self.reply_bytes), None])
        } else {
            (&mut self.request, [Some(&mut self.request_bytes), Some(&mut self.piece.2)])
        };
        path.clear();
        path.account.copy_from(account);
        path.begin(last);
        for counted in counted.into_iter().flatten() {
            *counted = counted.saturating_sub(bytes);
        }
        self.packets[1] = packet;
    }

    /// Sets aside the request's cost so far; the next piece begins with `segment` after `silence`.
    pub(crate) fn set_piece_aside(&mut self, silence: &Split, segment: &Segment) {
        let (Some(last), Some(end)) = (self.request.last, self.request_end) else { return };
        let (start, first, bytes) = self.piece;
        let mut account = Account::default();
        account.absorb(self.request.settle());
        let start = self.late.take().map_or(start, |late| {
            account.charge(&late);
            self.start = self.start - late.ns;
            self.client_idle = (self.client_idle - late.ns).at_least_zero();
            start - late.ns
        });
        self.pieces.push(Piece {
            account,
            start,
            bytes,
            packets: [first, self.packets[1]],
            silence: silence.clone(),
            last,
            end,
        });
        self.piece = (segment.at, segment.packet, 0);
    }

    /// An answer acknowledges its pieces up to the one at `until`, and nothing after the next
    /// pause: the rest is exchange `n`.
    pub(crate) fn part_at(&mut self, until: usize, n: u64) {
        let mut behind = self.pieces.split_off(until);
        let mut piece = behind.remove(0);
        let mut later = Box::new(Self::new());
        let (start, first, _) = behind.first().map_or(self.piece, |next| (next.start, next.packets[0], 0));
        later.restart(n, self.initiator, start, Duration::ZERO, (start, first));
        later.piece = self.piece;
        later.request_bytes = self.piece.2 + behind.iter().map(|piece| piece.bytes).sum::<u64>();
        later.pieces = behind;
        (later.request_first, later.request_end) = (Some(piece.end), self.request_end);
        (later.request_acks, later.packets[1]) = (self.request_acks, self.packets[1]);
        later.is_parted = true;
        std::mem::swap(&mut later.request, &mut self.request);
        self.request.clear();
        self.request.account.absorb(&mut piece.account);
        self.request.begin(piece.last);
        self.request.index = until;
        self.piece = (piece.start, piece.packets[0], piece.bytes);
        self.request_bytes -= later.request_bytes;
        (self.request_end, self.packets[1]) = (Some(piece.end), piece.packets[1]);
        self.is_parted = true;
        self.later = Some(later);
    }

    /// An answer came: the pieces and the pauses between them are one request.
    pub(crate) fn join_pieces(&mut self) {
        if self.pieces.is_empty() {
            return;
        }
        let mut whole = Account::default();
        for mut piece in self.pieces.drain(..) {
            whole.absorb(&mut piece.account);
            whole.charge_split(&piece.silence);
        }
        let rest = self.request.settle();
        whole.absorb(rest);
        rest.absorb(&mut whole);
    }
}
