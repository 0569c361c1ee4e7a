//! Which number did the connection get that began with this packet?
//!
//! The queries come nearly in the order in which connections began, so the search starts at the last
//! answer: steps that double, then bisection, instead of a dozen places all over an epoch's
//! connections.

use std::cell::Cell;

use crate::epoch::slab::Slot;
use crate::words::ids::{PACKET, UNNUMBERED};

/// The numbers of connections that began in one epoch.
pub(crate) struct Numbering<'a> {
    /// First packet and place of each, in order.
    opened: &'a [(u64, Slot)],
    ids: &'a [u64],
    /// Where the last one was.
    near: Cell<usize>,
}

impl<'a> Numbering<'a> {
    pub(crate) fn new(opened: &'a [(u64, Slot)], ids: &'a [u64]) -> Self {
        Self { opened, ids, near: Cell::new(0) }
    }

    /// The number of a connection that may not have one yet; the same as before for another epoch's.
    pub(crate) fn of(&self, id: u64) -> u64 {
        if id & UNNUMBERED == 0 {
            return id;
        }
        self.find(id & PACKET).and_then(|at| self.ids.get(at).copied()).unwrap_or(id)
    }

    fn find(&self, packet: u64) -> Option<usize> {
        let opened = self.opened;
        // Everything before `low` begins earlier, and everything from `high` on later.
        let (mut high, mut step) = (opened.len(), 1);
        let mut low = self.near.get().min(high.checked_sub(1)?);
        if opened[low].0 <= packet {
            while low + step < high && opened[low + step].0 <= packet {
                low += step;
                step *= 2;
            }
            high = high.min(low + step);
        } else {
            high = low;
            while step <= high && opened[high - step].0 > packet {
                high -= step;
                step *= 2;
            }
            low = high.saturating_sub(step);
        }
        let at = low + opened[low..high].partition_point(|(first, _)| *first < packet);
        self.near.set(at);
        opened.get(at).filter(|(first, _)| *first == packet).map(|_| at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_found_whichever_was_found_before() {
        let opened: Vec<(u64, Slot)> = (0..50).map(|n| (10 + 3 * n, n as Slot)).collect();
        let ids: Vec<u64> = (1..=50).collect();
        let numbering = Numbering::new(&opened, &ids);
        for before in 0..170 {
            for packet in 0..170 {
                numbering.of(UNNUMBERED | before);
                let id = UNNUMBERED | packet;
                let known = opened.iter().position(|(first, _)| *first == packet);
                assert_eq!(numbering.of(id), known.map_or(id, |at| ids[at]), "{packet} behind {before}");
            }
        }
        assert_eq!(Numbering::new(&[], &[]).of(UNNUMBERED | 7), UNNUMBERED | 7);
        assert_eq!(numbering.of(7), 7);
    }
}
