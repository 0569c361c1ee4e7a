//! How much memory do the connections of a shard take, including the spare capacity of its tables?
//!
//! The budget counts what is the same with any number of shards. The rest is known by its parts as
//! well, so that a test can compare all of it with what the allocator has given.

use super::{FINISHED_BYTES, Shard};
use crate::epoch::budget::CONNECTION;

impl Shard {
    /// The bytes that open connections take here, including free places and those of the tables.
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
