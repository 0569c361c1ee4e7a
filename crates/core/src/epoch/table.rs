//! Which connection do these two endpoints belong to?
//!
//! Each packet asks once. An entry takes eight bytes, so that a look-up touches one cache line of the
//! table and then the connection, which is needed anyway and which knows its ends. Both directions have
//! the same hash.

use tcpwhy_wire::Endpoint;

use crate::epoch::slab::Slot;
use crate::flow::hash::Keys;

const FREE: Slot = Slot::MAX;
const LEN_MIN: usize = 1 << 8;

#[derive(Clone, Copy, Debug)]
struct Entry {
    hash: u32,
    slot: Slot,
}

/// Open addressing, linear probing, at most half full.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    entries: Vec<Entry>,
    /// From a hash to its first place: the upper bits.
    shift: u32,
    len: usize,
    keys: Keys,
}

impl Table {
    /// `seed` decides which endpoints share a place, and nothing else.
    pub(crate) fn new(seed: u64) -> Self {
        let entries = vec![Entry { hash: 0, slot: FREE }; LEN_MIN];
        Self { entries, shift: 32 - LEN_MIN.ilog2(), len: 0, keys: Keys::new(seed) }
    }

    /// Its size in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>()
    }

    /// The same for both directions.
    #[inline]
    pub(crate) fn hash(&self, a: Endpoint, b: Endpoint) -> u32 {
        self.keys.mix(a, b).hash()
    }

    /// The slot with this hash that `is_it` accepts.
    #[inline]
    pub(crate) fn find(&self, hash: u32, mut is_it: impl FnMut(Slot) -> bool) -> Option<Slot> {
        let mask = self.entries.len() - 1;
        let mut i = (hash >> self.shift) as usize;
        loop {
            let entry = self.entries[i & mask];
            if entry.slot == FREE {
                return None;
            }
            if entry.hash == hash && is_it(entry.slot) {
                return Some(entry.slot);
            }
            i += 1;
        }
    }

    /// Prefetches the place where a hash is looked for first.
    #[inline]
    pub(crate) fn fetch(&self, hash: u32) {
        tcpwhy_ahead::fetch(&self.entries[(hash >> self.shift) as usize]);
    }

    pub(crate) fn insert(&mut self, hash: u32, slot: Slot) {
        if (self.len + 1) * 2 > self.entries.len() {
            self.grow();
        }
        self.len += 1;
        self.put(Entry { hash, slot });
    }

    /// Replaces one slot by another.
    pub(crate) fn replace(&mut self, hash: u32, slot: Slot, by: Slot) {
        if let Some(i) = self.place(hash, slot) {
            self.entries[i].slot = by;
        }
    }

    pub(crate) fn remove(&mut self, hash: u32, slot: Slot) {
        let Some(mut hole) = self.place(hash, slot) else { return };
        self.len -= 1;
        // Entries that would no longer be found across the hole move into it.
        let mask = self.entries.len() - 1;
        let mut i = hole;
        loop {
            i = (i + 1) & mask;
            let entry = self.entries[i];
            if entry.slot == FREE {
                break;
            }
            let home = (entry.hash >> self.shift) as usize;
            if (i.wrapping_sub(home) & mask) >= (i.wrapping_sub(hole) & mask) {
                self.entries[hole] = entry;
                hole = i;
            }
        }
        self.entries[hole].slot = FREE;
    }

    fn place(&self, hash: u32, slot: Slot) -> Option<usize> {
        let mask = self.entries.len() - 1;
        let mut i = (hash >> self.shift) as usize & mask;
        while self.entries[i].slot != FREE {
            if self.entries[i].slot == slot && self.entries[i].hash == hash {
                return Some(i);
            }
            i = (i + 1) & mask;
        }
        None
    }

    fn put(&mut self, entry: Entry) {
        let mask = self.entries.len() - 1;
        let mut i = (entry.hash >> self.shift) as usize & mask;
        while self.entries[i].slot != FREE {
            i = (i + 1) & mask;
        }
        self.entries[i] = entry;
    }

    /// Frees what so few entries do not need.
    #[cold]
    pub(crate) fn shrink(&mut self) {
        let len = (4 * self.len).next_power_of_two().max(LEN_MIN);
        if len < self.entries.len() / 2 {
            self.resize(len);
        }
    }

    #[cold]
    fn grow(&mut self) {
        self.resize(self.entries.len() * 2);
    }

    fn resize(&mut self, len: usize) {
        let old = std::mem::replace(&mut self.entries, vec![Entry { hash: 0, slot: FREE }; len]);
        self.shift = 32 - len.ilog2();
        for entry in old.into_iter().filter(|entry| entry.slot != FREE) {
            self.put(entry);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::hash::split_mix;

    /// Against the standard library's map, over insertions, removals and look-ups in an order that
    /// collides.
    #[test]
    fn finds_what_is_there_and_nothing_else() {
        let mut table = Table::new(1);
        let mut there = std::collections::BTreeMap::new();
        let mut state = 7;
        for _ in 0..20_000 {
            let slot = (split_mix(&mut state) % 600) as Slot;
            let hash = slot / 3 * 0x0100_0000; // three share a hash, and many a first place
            if there.insert(slot, hash).is_none() {
                table.insert(hash, slot);
            } else {
                there.remove(&slot);
                table.remove(hash, slot);
            }
            let probe = (split_mix(&mut state) % 600) as Slot;
            let found = table.find(probe / 3 * 0x0100_0000, |slot| slot == probe);
            assert_eq!(found, there.contains_key(&probe).then_some(probe));
        }
    }

    #[test]
    fn both_directions_have_one_hash() {
        let table = Table::new(3);
        let (a, b) = (Endpoint::v4([10, 0, 0, 1], 5000), Endpoint::v4([10, 0, 0, 2], 80));
        assert_eq!(table.hash(a, b), table.hash(b, a));
        assert_ne!(table.hash(a, b), table.hash(Endpoint { port: 5001, ..a }, b));
    }
}
