//! What is still open when the capture ends?

use super::Shard;
use crate::epoch::slab::Slot;

impl Shard {
    /// Numbers of the open connections.
    pub(crate) fn open(&self) -> impl Iterator<Item = u64> {
        let id = |slot| self.connections.get(slot).id;
        self.connections.slots().map(id).filter(|id| *id != 0)
    }

    /// Closes the connections up to number `last`, in the order in which they began.
    pub(crate) fn close(&mut self, last: u64) {
        self.ledger.packet = u64::MAX;
        let connections = &self.connections;
        let mut open: Vec<(u64, Slot)> = connections
            .slots()
            .map(|slot| (connections.get(slot).id, slot))
            .filter(|(id, _)| *id != 0 && *id <= last)
            .collect();
        open.sort_unstable();
        for (_, slot) in open {
            self.end(slot);
        }
    }
}
