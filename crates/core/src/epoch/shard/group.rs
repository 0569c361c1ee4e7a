//! In which order is an epoch's group worked on, and what is prefetched for it?
//!
//! A connection's state is far from the caches when its first segment of the epoch comes. While one
//! piece of the group is worked on, the state that the next two need is on its way from memory, and for
//! the third, the way to where that is.

use super::{FINISHED, Shard};
use crate::epoch::slab::Slot;
use crate::flow::packed::{PackedSegments, Piece};

/// Segments worked on while the state for later ones is on its way.
const AHEAD: usize = 16;

/// Segments that are next: where their connections most likely are, and which of these were prefetched
/// for them.
struct Ahead<'a> {
    piece: Piece<'a>,
    slots: [Slot; AHEAD],
    /// A bit for each.
    fetched: u16,
}

/// None was there.
const NOWHERE: Slot = FINISHED;

impl Shard {
    /// Works on segments between the same hosts, or a few pairs of them. While one piece is worked on,
    /// the state that the next two need is on its way from memory.
    pub(super) fn on_group(&mut self, group: &PackedSegments) {
        // The next piece takes the place of the one before last, so that none is moved.
        let mut aheads = [const { None }; 3];
        let [mut near, mut far, mut next] = [0, 1, 2];
        let mut n = 0;
        while n < 2 || group.piece(n - 2, AHEAD).is_some() {
            if let Some(piece) = group.piece(n + 3, AHEAD) {
                piece.packed().iter().for_each(tcpwhy_ahead::fetch);
            }
            aheads[next] = group.piece(n, AHEAD).map(|piece| self.fetch_connections(piece));
            if let Some(behind) = group.piece(n + 1, AHEAD) {
                behind.packed().iter().for_each(|packed| self.table.fetch(packed.hash));
            }
            if let Some(far) = &aheads[far] {
                self.fetch_exchanges(far);
            }
            if let Some(now) = &aheads[near] {
                self.on_piece(now);
            }
            (near, far, next) = (far, next, near);
            n += 1;
        }
    }

    fn on_piece(&mut self, ahead: &Ahead<'_>) {
        let piece = &ahead.piece;
        for (packed, slot) in piece.packed().iter().zip(ahead.slots) {
            // A connection begun since then was not there to be prefetched.
            let slot = if slot == NOWHERE { self.find_open(packed.hash) } else { slot };
            let marks = piece.marks(packed);
            if slot == NOWHERE || !self.on_usual(packed, marks, slot) {
                piece.with(packed, |segment, clock| self.on_segment(segment, marks, packed.hash, clock));
            }
        }
    }

    /// Finds the connections that segments most likely belong to, and prefetches those that are new in
    /// this epoch.
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

    /// Where the open connection with this hash of endpoints most likely is.
    #[inline]
    fn find_open(&self, hash: u32) -> Slot {
        self.table.find(hash, |slot| slot < FINISHED).unwrap_or(NOWHERE)
    }

    /// Prefetches a finished connection between the same ends, with which the new one is compared.
    #[inline]
    fn fetch_finished(&self, hash: u32) {
        if let Some(slot) = self.table.find(hash, |slot| slot >= FINISHED) {
            tcpwhy_ahead::fetch(self.finished.get(slot - FINISHED));
        }
    }

    /// Prefetches what connections point to, once these have arrived.
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
