//! Which segments of an epoch are worked on one after the other?
//!
//! Tens of thousands of connections take turns packet by packet, and what is kept of all of them fits no cache. An
//! epoch's segments are worked on by pair of hosts, so that most of a connection's segments find its state at hand.
//! Pairs of hosts know nothing of each other; those between the same two stay in order of capture.

use tcpwhy_wire::Segment;

use crate::packed::PackedSegments;

const BITS: u32 = 8;

/// The segments of an epoch by their pair of hosts. Whoever reads gathers them, and hands all of them at once to the
/// shard that works on them.
#[derive(Debug)]
pub struct Groups {
    segments: Vec<PackedSegments>,
    key: u64,
    /// Segments in this epoch, and the most of any.
    held: usize,
    held_max: usize,
}

impl Groups {
    const COUNT: usize = 1 << BITS;

    /// None yet. `seed` is that of the analysis.
    pub fn new(seed: u64) -> Self {
        let segments = (0..Self::COUNT).map(|_| PackedSegments::default()).collect();
        Self { segments, key: (seed ^ 0xd6e8_feb8_6659_fd93) | 1, held: 0, held_max: 0 }
    }

    /// Of no epoch.
    pub(crate) const fn none() -> Self {
        Self { segments: Vec::new(), key: 0, held: 0, held_max: 0 }
    }

    /// Takes the next segment, in order of capture.
    #[inline]
    pub fn put(&mut self, segment: &Segment) {
        let one = |addr: u128| (addr as u64 ^ (addr >> 64) as u64 ^ self.key).wrapping_mul(self.key);
        let both = one(segment.src.addr).wrapping_add(one(segment.dst.addr)).wrapping_mul(self.key);
        self.segments[(both >> (64 - BITS)) as usize].push(segment);
        self.held += 1;
    }

    /// Gives all segments, those between the same two hosts in order of capture. The memory is kept for the next epoch.
    pub(crate) fn work_off(&mut self, mut on_group: impl FnMut(&PackedSegments)) {
        for group in &mut self.segments {
            on_group(group);
            group.clear();
        }
        self.held_max = self.held_max.max(self.held);
        self.held = 0;
        // Traffic that moves from pair to pair must not leave memory behind everywhere.
        let memory: usize = self.segments.iter().map(PackedSegments::capacity).sum();
        if memory > 4 * self.held_max.max(Self::COUNT * 8) {
            self.segments.fill_with(PackedSegments::default);
        }
    }
}
