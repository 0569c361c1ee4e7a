//! Where is what is kept of each connection, in places that are used again?

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

    /// A place that was given up, with what is still there, to be used again.
    pub(crate) fn reuse(&mut self) -> Option<(Slot, &mut T)> {
        let slot = self.free.pop()?;
        self.len += 1;
        Some((slot, self.get_mut(slot)))
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
