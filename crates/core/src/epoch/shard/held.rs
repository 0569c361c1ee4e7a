//! What do the connections of a shard hold, with the room that its tables keep for more?
//!
//! The budget counts what is the same with any number of shards. What comes on top of that is known by its parts as well, so that a
//! test can hold all of it against what the allocator has given.

use super::{FINISHED_BYTES, Shard};
use crate::epoch::budget::CONNECTION;

impl Shard {
    /// Bytes that open connections take here, with the places that are free, and the tables'.
    pub fn places_bytes(&self) -> usize {
        let finished = self.finished.places() - self.finished.len();
        let waiting = self.unnumbered.iter().map(Vec::capacity).sum::<usize>() + self.opened.capacity();
        self.connections.places() * CONNECTION
            + self.heap
            + self.table.bytes()
            + finished * FINISHED_BYTES
            + waiting * size_of::<(u64, u32)>()
            + self.listed.spare_bytes()
            + self.groups.bytes()
            + self.spare.bytes()
    }
}
