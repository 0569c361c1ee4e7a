//! What memory does a shard give back when most of its connections are gone?
//!
//! Traffic that moves from one pair of hosts to the next, and so from shard to shard, must not leave a
//! full shard's memory behind everywhere.

use super::{FINISHED, Shard};
use crate::words::ids::{PACKET, UNNUMBERED};

impl Shard {
    /// If most places are unused, compacts the rest.
    pub(super) fn give_back(&mut self) {
        debug_assert!(self.opened.is_empty(), "it is between two epochs");
        let (connections, finished) = (self.connections.is_sparse(), self.finished.is_sparse());
        if connections {
            self.gather_connections();
        }
        if finished {
            self.gather_finished();
        }
        if connections || finished {
            self.table.shrink();
        }
    }

    #[cold]
    fn gather_connections(&mut self) {
        let (table, unnumbered) = (&mut self.table, &mut self.unnumbered);
        let end = self.connections.len() as u32;
        self.connections.compact(
            |connection| connection.id != 0,
            |connection, from, to| {
                let [a, b] = connection.ends.get();
                table.replace(table.hash(a, b), from, to);
                let packet = connection.id & PACKET;
                let without_number = connection.id & UNNUMBERED != 0;
                for opened in unnumbered.iter_mut().filter(|_| without_number) {
                    if let Ok(i) = opened.binary_search_by_key(&packet, |(packet, _)| *packet) {
                        opened[i].1 = to;
                    }
                }
            },
        );
        debug_assert_eq!(self.connections.slots().end, end);
    }

    #[cold]
    fn gather_finished(&mut self) {
        let (table, lingering) = (&mut self.table, &mut self.lingering);
        self.finished.compact(
            |finished| finished.generation != 0,
            |finished, from, to| {
                table.replace(finished.hash, FINISHED + from, FINISHED + to);
                let known = lingering.binary_search_by_key(&finished.generation, |known| known.generation);
                if let Ok(i) = known {
                    lingering[i].place = to;
                }
            },
        );
        let finished = &self.finished;
        let is_there = |place| place < finished.slots().end;
        self.lingering.retain(|known| {
            is_there(known.place) && finished.get(known.place).generation == known.generation
        });
        self.lingering.shrink_to(2 * self.lingering.len());
    }
}
