//! Which segments of an epoch are worked on one after the other?
//!
//! Tens of thousands of connections take turns packet by packet, and what is kept of all of them fits no cache. An
//! epoch's segments are worked on by pair of hosts, so that most of a connection's segments find its state at hand.
//! Pairs of hosts know nothing of each other; those between the same two stay in order of capture.

use tcpwhy_wire::Segment;

const BITS: u32 = 8;

/// The segments of the present epoch by their pair of hosts.
pub(crate) struct Groups {
    segments: Vec<Vec<Segment>>,
    key: u64,
    /// Segments in this epoch, and the most of any.
    held: usize,
    held_max: usize,
}

impl Groups {
    pub(crate) const COUNT: usize = 1 << BITS;

    pub(crate) fn new(seed: u64) -> Self {
        let segments = (0..Self::COUNT).map(|_| Vec::new()).collect();
        Self { segments, key: (seed ^ 0xd6e8_feb8_6659_fd93) | 1, held: 0, held_max: 0 }
    }

    #[inline]
    pub(crate) fn put(&mut self, segment: &Segment) {
        let one = |addr: u128| (addr as u64 ^ (addr >> 64) as u64 ^ self.key).wrapping_mul(self.key);
        let both = one(segment.src.addr).wrapping_add(one(segment.dst.addr)).wrapping_mul(self.key);
        self.segments[(both >> (64 - BITS)) as usize].push(*segment);
        self.held += 1;
    }

    pub(crate) fn take(&mut self, i: usize) -> Vec<Segment> {
        std::mem::take(&mut self.segments[i])
    }

    /// Keeps the memory for the next epoch.
    pub(crate) fn give_back(&mut self, i: usize, mut group: Vec<Segment>) {
        group.clear();
        self.segments[i] = group;
    }

    /// Traffic that moves from pair to pair must not leave memory behind everywhere.
    pub(crate) fn end_epoch(&mut self) {
        self.held_max = self.held_max.max(self.held);
        self.held = 0;
        let memory: usize = self.segments.iter().map(Vec::capacity).sum();
        if memory > 4 * self.held_max.max(Self::COUNT * 8) {
            self.segments.fill_with(Vec::new);
        }
    }
}
