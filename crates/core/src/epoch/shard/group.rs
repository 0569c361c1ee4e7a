//! In which order is an epoch's group worked on, and what is fetched for it beforehand?
//!
//! What is kept of a connection is far away when its first segment of the epoch comes. While one piece of the group is worked on,
//! what the two behind it need is on its way from memory, and the way to where that is, for the third.

use super::{FINISHED, Shard};
use crate::epoch::slab::Slot;
use crate::flow::packed::{PackedSegments, Piece};

/// Segments that are worked on while what those behind them need is on its way.
const AHEAD: usize = 16;

/// Segments whose turn comes soon: where their connections most likely are, and which of these were fetched for them.
struct Ahead<'a> {
    piece: Piece<'a>,
    slots: [Slot; AHEAD],
    /// A bit for each.
    fetched: u16,
}

/// None was there.
const NOWHERE: Slot = FINISHED;

impl Shard {
    /// Works on segments between the same hosts, or a few of them. While one piece is worked on, what the two behind it need is on its
    /// way from memory.
    pub(super) fn on_group(&mut self, group: &PackedSegments) {
        let (mut near, mut far) = (None, None);
        let mut pieces = group.pieces(AHEAD).map(Some).chain([None, None]).peekable();
        let mut far_away = group.pieces(AHEAD).skip(3);
        while let Some(next) = pieces.next() {
            if let Some(piece) = far_away.next() {
                piece.packed().iter().for_each(tcpwhy_ahead::fetch);
            }
            let next = next.map(|piece| self.fetch_connections(piece));
            if let Some(Some(behind)) = pieces.peek() {
                behind.packed().iter().for_each(|packed| self.table.fetch(packed.hash));
            }
            if let Some(far) = &far {
                self.fetch_exchanges(far);
            }
            if let Some(now) = std::mem::replace(&mut near, std::mem::replace(&mut far, next)) {
                self.on_piece(&now);
            }
        }
    }

    fn on_piece(&mut self, ahead: &Ahead<'_>) {
        let piece = &ahead.piece;
        for (packed, slot) in piece.packed().iter().zip(ahead.slots) {
            // One that has begun since then was not there to be fetched.
            let slot = if slot == NOWHERE { self.find_open(packed.hash) } else { slot };
            let marks = piece.marks(packed);
            if slot == NOWHERE || !self.on_usual(packed, marks, slot) {
                piece.with(packed, |segment, clock| self.on_segment(segment, marks, packed.hash, clock));
            }
        }
    }

    /// Finds the connections that segments most likely belong to, and has those fetched that the epoch has not had yet.
    #[inline]
    fn fetch_connections<'a>(&mut self, piece: Piece<'a>) -> Ahead<'a> {
        let mut ahead = Ahead { piece, slots: [NOWHERE; AHEAD], fetched: 0 };
        let (mut hash, mut slot) = (0, NOWHERE);
        for (n, (place, packed)) in ahead.slots.iter_mut().zip(piece.packed()).enumerate() {
            if hash != packed.hash || slot == NOWHERE {
                hash = packed.hash;
                slot = self.find_open(hash);
                if slot != NOWHERE && self.fetched.mark(slot) {
                    tcpwhy_ahead::fetch(self.connections.get(slot));
                    ahead.fetched |= 1 << n;
                } else if slot == NOWHERE && packed.flags.syn() {
                    self.fetch_finished(hash);
                }
            }
            *place = slot;
        }
        ahead
    }

    /// Where the open connection most likely is whose endpoints are mixed to this.
    #[inline]
    fn find_open(&self, hash: u32) -> Slot {
        self.table.find(hash, |slot| slot < FINISHED).unwrap_or(NOWHERE)
    }

    /// What is kept of a connection between the same ends that is over: the one that begins is compared with it.
    #[inline]
    fn fetch_finished(&self, hash: u32) {
        if let Some(slot) = self.table.find(hash, |slot| slot >= FINISHED) {
            tcpwhy_ahead::fetch(self.finished.get(slot - FINISHED));
        }
    }

    /// What connections point to, once these are there.
    #[inline]
    fn fetch_exchanges(&self, ahead: &Ahead<'_>) {
        let mut fetched = ahead.fetched;
        while fetched != 0 {
            let slot = ahead.slots[fetched.trailing_zeros() as usize];
            self.connections.get(slot).fetch_exchange();
            fetched &= fetched - 1;
        }
    }
}
