//! Where is the state of each connection kept, in places that are reused?

/// A place in the slab, or a mark that there is none.
pub(crate) type Slot = u32;

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

/// Items in reusable places, in chunks that never move.
#[derive(Clone, Debug)]
pub(crate) struct Slab<T> {
    chunks: Vec<Vec<T>>,
    free: Vec<Slot>,
    len: usize,
}

const CHUNK_BITS: u32 = 7;
const CHUNK: usize = 1 << CHUNK_BITS;
/// This many places are kept whether they are used or not.
const SPARSE_MIN: usize = 8 * CHUNK;

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

    /// A freed place to reuse, with the item that is still there.
    pub(crate) fn reuse(&mut self) -> Option<(Slot, &mut T)> {
        let slot = self.free.pop()?;
        self.len += 1;
        Some((slot, self.get_mut(slot)))
    }

    /// Frees a place. The item stays until the place is reused.
    pub(crate) fn release(&mut self, slot: Slot) {
        self.len -= 1;
        self.free.push(slot);
    }

    #[inline]
    pub(crate) fn get(&self, slot: Slot) -> &T {
        &self.chunks[(slot >> CHUNK_BITS) as usize][slot as usize & (CHUNK - 1)]
    }

    /// The same if this place has not been given back.
    pub(crate) fn known_mut(&mut self, slot: Slot) -> Option<&mut T> {
        if slot < self.slots().end { Some(self.get_mut(slot)) } else { None }
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, slot: Slot) -> &mut T {
        &mut self.chunks[(slot >> CHUNK_BITS) as usize][slot as usize & (CHUNK - 1)]
    }

    /// Places that memory is allocated for.
    pub(crate) fn places(&self) -> usize {
        self.chunks.len() * CHUNK
    }

    /// Whether more than a quarter of its places are free, and worth giving back. What eviction frees
    /// at once is less.
    pub(crate) fn is_sparse(&self) -> bool {
        self.slots().len() > SPARSE_MIN && self.slots().len() / 4 * 3 > self.len
    }

    /// Moves used items to the front and frees the memory after them; `moved` is told of each move,
    /// from where to where.
    #[cold]
    pub(crate) fn compact(&mut self, is_used: impl Fn(&T) -> bool, mut moved: impl FnMut(&T, Slot, Slot)) {
        let (mut to, mut end) = (0, self.slots().end);
        loop {
            while to < end && is_used(self.get(to)) {
                to += 1;
            }
            while to < end && !is_used(self.get(end - 1)) {
                end -= 1;
            }
            if to == end {
                break;
            }
            let last = self.take_last(end);
            end -= 1;
            *self.get_mut(to) = last;
            moved(self.get(to), end, to);
        }
        self.cut(end);
        self.free = Vec::new();
        debug_assert_eq!(end as usize, self.len, "what is used is in front");
    }

    /// Takes the item before this place, after which nothing is used.
    fn take_last(&mut self, end: Slot) -> T {
        self.cut(end);
        let last = self.chunks.last_mut().and_then(Vec::pop);
        if self.chunks.last().is_some_and(Vec::is_empty) {
            self.chunks.pop();
        }
        let Some(last) = last else { unreachable!("there is one in front of it") };
        last
    }

    /// Drops the items in this place and after it.
    fn cut(&mut self, end: Slot) {
        self.chunks.truncate((end as usize).div_ceil(CHUNK));
        if let Some(last) = self.chunks.last_mut() {
            last.truncate(end as usize - ((end as usize).div_ceil(CHUNK) - 1) * CHUNK);
        }
    }

    /// All places, including free ones.
    pub(crate) fn slots(&self) -> std::ops::Range<Slot> {
        0..self.chunks.last().map_or(0, |last| ((self.chunks.len() - 1) * CHUNK + last.len()) as Slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// When only a few of many items are left, they are found at the places reported, and the rest is
    /// freed.
    #[test]
    fn what_is_left_moves_together() {
        for stays in [1, 7, 127, 128, 129, 100_000] {
            let mut slab = Slab::new();
            let mut places: Vec<(u32, Slot)> = (1..=10_000).map(|n| (n, slab.insert(n))).collect();
            for &(n, slot) in &places {
                if n % stays != 0 {
                    *slab.get_mut(slot) = 0;
                    slab.release(slot);
                }
            }
            places.retain(|(n, _)| n % stays == 0);
            slab.compact(
                |n| *n != 0,
                |n, from, to| {
                    let Some(place) = places.iter_mut().find(|(known, _)| known == n) else {
                        panic!("{n} moves")
                    };
                    assert_eq!(place.1, from);
                    place.1 = to;
                },
            );
            assert_eq!((slab.len(), slab.slots().len()), (places.len(), places.len()), "{stays}");
            assert!(places.iter().all(|&(n, slot)| *slab.get(slot) == n), "{stays}");
            assert!(slab.chunks.len() <= places.len() / CHUNK + 1);
            assert_eq!(slab.insert(7) as usize, places.len());
        }
    }
}
