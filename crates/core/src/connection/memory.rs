//! How much memory does a connection take besides its own struct?

use super::Connection;
use crate::bill::places::Places;
use crate::flow::direction::Flow;
use crate::flow::handshake::Setup;
use crate::words::mark::Mark;

impl Connection {
    /// Frees that memory: the connection is over, and its place may stay unused for long.
    pub(crate) fn free(&mut self, places: &mut Places) {
        if let Some(spare) = self.spare.take() {
            places.leave(spare);
        }
        (self.open, self.talk) = (None, None);
        self.roles.free();
        self.held_back = None;
        self.flows.iter_mut().for_each(Flow::free);
        self.heap = 0;
    }

    /// Counts that memory every now and then. Returns the earlier count when it does.
    #[inline]
    pub(crate) fn count_heap(&mut self, marks: &[Mark]) -> Option<usize> {
        let packets = self.packets;
        // Most are neither: one comparison after the other.
        if packets.is_multiple_of(16) || packets < 16 && packets.is_power_of_two() || marks.len() > 1 {
            return Some(self.count_all_heap());
        }
        None
    }

    /// The same after an unusual segment, which may have added to it.
    pub(crate) fn count_heap_often(&mut self, marks: &[Mark]) -> Option<usize> {
        let now = self.packets.is_multiple_of(4) || self.packets < 4 && self.open.is_some();
        (now || marks.len() > 1).then(|| self.count_all_heap())
    }

    #[inline(never)]
    fn count_all_heap(&mut self) -> usize {
        let open = [&self.open, &self.spare].into_iter().flatten().map(|open| open.memory()).sum::<usize>();
        let talk = self.talk.as_ref().map_or(0, |talk| talk.heap());
        let flows = self.flows.iter().map(Flow::heap).sum::<usize>() + self.ends.heap();
        let held_back = self.held_back.as_ref().map_or(0, |held| held.heap());
        let setup = self.setup.as_ref().map_or(0, Setup::heap);
        std::mem::replace(&mut self.heap, open + talk + self.roles.heap() + flows + held_back + setup)
    }
}
