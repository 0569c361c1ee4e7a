//! Which connection do these two endpoints belong to?
//!
//! Each packet asks once. The table holds eight bytes for an entry, so that a look-up touches one cache line of its
//! own and then the connection, which is needed anyway and which knows its ends. Both directions have the same hash.

use std::hash::{BuildHasher, Hasher};

use tcpwhy_wire::Endpoint;

/// A place in the slab, or a mark that there is none.
pub(crate) type Slot = u32;

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

/// What endpoints are mixed with: a capture cannot be made to collide for one that its author does not know.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keys([u64; 4]);

/// What two endpoints are mixed to, the same for both directions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mixed {
    /// Of their hosts alone.
    pub hosts: u64,
    /// Of hosts and ports.
    pub ends: u64,
}

impl Keys {
    pub(crate) fn new(seed: u64) -> Self {
        let mut state = seed;
        Self([(); 4].map(|()| split_mix(&mut state)))
    }

    #[inline]
    pub(crate) fn mix(&self, a: Endpoint, b: Endpoint) -> Mixed {
        let [k0, k1, k2, k3] = self.0;
        let host = |addr: u128| fold(addr as u64 ^ k0, (addr >> 64) as u64 ^ k1);
        let end = |host: u64, port: u16| fold(host ^ k2, u64::from(port) ^ k3);
        let (host_a, host_b) = (host(a.addr), host(b.addr));
        let ends = end(host_a, a.port).wrapping_add(end(host_b, b.port));
        Mixed { hosts: host_a.wrapping_add(host_b), ends }
    }
}

/// Maps of hosts are kept by the same keys.
impl BuildHasher for Keys {
    type Hasher = KeyedHasher;

    fn build_hasher(&self) -> KeyedHasher {
        let [k0, k1, k2, _] = self.0;
        KeyedHasher { state: k2, keys: [k0, k1] }
    }
}

/// Folds one number after the other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyedHasher {
    state: u64,
    keys: [u64; 2],
}

impl Hasher for KeyedHasher {
    #[inline]
    fn write_u128(&mut self, n: u128) {
        let [k0, k1] = self.keys;
        self.state = fold(self.state ^ fold(n as u64 ^ k0, (n >> 64) as u64 ^ k1), k0 | 1);
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u128(u128::from(*byte));
        }
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.state
    }
}

impl Mixed {
    /// Where a table looks for them first.
    #[inline]
    pub(crate) fn hash(self) -> u32 {
        (self.ends >> 32) as u32
    }
}

impl Table {
    /// `seed` decides which endpoints share a place, and nothing else.
    pub(crate) fn new(seed: u64) -> Self {
        let entries = vec![Entry { hash: 0, slot: FREE }; LEN_MIN];
        Self { entries, shift: 32 - LEN_MIN.ilog2(), len: 0, keys: Keys::new(seed) }
    }

    /// The same for both directions.
    #[inline]
    pub(crate) fn hash(&self, a: Endpoint, b: Endpoint) -> u32 {
        self.keys.mix(a, b).hash()
    }

    /// The slot with this hash that `is_it` recognises.
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

    pub(crate) fn insert(&mut self, hash: u32, slot: Slot) {
        if (self.len + 1) * 2 > self.entries.len() {
            self.grow();
        }
        self.len += 1;
        self.put(Entry { hash, slot });
    }

    /// Puts another slot in the place of one.
    pub(crate) fn replace(&mut self, hash: u32, slot: Slot, by: Slot) {
        if let Some(i) = self.place(hash, slot) {
            self.entries[i].slot = by;
        }
    }

    pub(crate) fn remove(&mut self, hash: u32, slot: Slot) {
        let Some(mut hole) = self.place(hash, slot) else { return };
        self.len -= 1;
        // Whatever would no longer be found across the hole moves into it.
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

    #[cold]
    fn grow(&mut self) {
        let len = self.entries.len() * 2;
        let old = std::mem::replace(&mut self.entries, vec![Entry { hash: 0, slot: FREE }; len]);
        self.shift = 32 - len.ilog2();
        for entry in old.into_iter().filter(|entry| entry.slot != FREE) {
            self.put(entry);
        }
    }
}

#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// Steele, Lea and Flood: Fast splittable pseudorandom number generators, 2014.
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// Which slots have been seen?
#[derive(Clone, Debug, Default)]
pub(crate) struct Marks(Vec<u64>);

impl Marks {
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// Marks a slot. Returns whether it had no mark yet.
    #[inline]
    pub(crate) fn mark(&mut self, slot: Slot) -> bool {
        let (word, bit) = ((slot / u64::BITS) as usize, 1 << (slot % u64::BITS));
        if word >= self.0.len() {
            self.0.resize(word + 1, 0);
        }
        let new = self.0[word] & bit == 0;
        self.0[word] |= bit;
        new
    }
}

/// Items in places that are used again, in pieces that never move.
#[derive(Clone, Debug)]
pub(crate) struct Slab<T> {
    chunks: Vec<Vec<T>>,
    free: Vec<Slot>,
    len: usize,
}

const CHUNK_BITS: u32 = 7;
const CHUNK: usize = 1 << CHUNK_BITS;

impl<T> Slab<T> {
    pub(crate) const fn new() -> Self {
        Self { chunks: Vec::new(), free: Vec::new(), len: 0 }
    }

    /// Items in use.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn insert(&mut self, item: T) -> Slot {
        self.len += 1;
        if let Some(slot) = self.free.pop() {
            *self.get_mut(slot) = item;
            return slot;
        }
        if self.chunks.last().is_none_or(|chunk| chunk.len() == CHUNK) {
            self.chunks.push(Vec::with_capacity(CHUNK));
        }
        let chunk = self.chunks.len() - 1;
        self.chunks[chunk].push(item);
        ((chunk << CHUNK_BITS) + self.chunks[chunk].len() - 1) as Slot
    }

    /// Gives a place up. The item stays until the place is used again.
    pub(crate) fn release(&mut self, slot: Slot) {
        self.len -= 1;
        self.free.push(slot);
    }

    #[inline]
    pub(crate) fn get(&self, slot: Slot) -> &T {
        &self.chunks[(slot >> CHUNK_BITS) as usize][slot as usize & (CHUNK - 1)]
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, slot: Slot) -> &mut T {
        &mut self.chunks[(slot >> CHUNK_BITS) as usize][slot as usize & (CHUNK - 1)]
    }

    /// All places, those given up included.
    pub(crate) fn slots(&self) -> std::ops::Range<Slot> {
        0..self.chunks.last().map_or(0, |last| ((self.chunks.len() - 1) * CHUNK + last.len()) as Slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against the standard library's map, over insertions, removals and look-ups in an order that collides.
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
