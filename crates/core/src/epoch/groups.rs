//! Which segments of an epoch are worked on one after the other?
//!
//! Tens of thousands of connections take turns packet by packet, and what is kept of all of them fits no cache. An
//! epoch's segments are worked on by pair of hosts, so that most of a connection's segments find its state at hand.
//! Pairs of hosts know nothing of each other; those between the same two stay in order of capture.

use tcpwhy_wire::{Segment, Usual};

use crate::epoch::front::Arrival;
use crate::flow::packed::{CHUNK_BYTES, Chunk, PackedSegments};
use crate::words::mark::Mark;

/// Groups of all shards together.
const COUNT: usize = 1 << 8;

/// The segments of an epoch by their pair of hosts. Whoever reads gathers them, and hands all of them at once to the
/// shard that works on them.
#[derive(Clone, Debug)]
pub struct Groups {
    segments: Vec<PackedSegments>,
    /// Memory for segments that is not in use.
    spare: Vec<Chunk>,
}

impl Groups {
    /// None yet, for one of so many shards.
    pub fn new(shards: usize) -> Self {
        let count = (COUNT / shards.max(1)).next_power_of_two();
        Self { segments: vec![PackedSegments::default(); count], spare: Vec::new() }
    }

    /// Of no epoch.
    pub(crate) const fn none() -> Self {
        Self { segments: Vec::new(), spare: Vec::new() }
    }

    /// Takes the next segment, in order of capture.
    #[inline]
    pub fn put(&mut self, arrival: Arrival, segment: &Segment) {
        let mask = self.segments.len() - 1;
        self.segments[usize::from(arrival.place) & mask].push(
            segment,
            arrival.hash,
            arrival.clock,
            &mut self.spare,
        );
    }

    /// The same of a usual one.
    #[inline]
    pub fn put_usual(&mut self, arrival: Arrival, usual: &Usual<'_>) {
        if arrival.clock != usual.at() {
            return self.put(arrival, &usual.segment());
        }
        let mask = self.segments.len() - 1;
        self.segments[usize::from(arrival.place) & mask].push_usual(usual, arrival.hash, &mut self.spare);
    }

    /// The messages that begin in the segment that was put last.
    #[inline]
    pub fn mark(&mut self, arrival: Arrival, marks: &[Mark]) {
        let mask = self.segments.len() - 1;
        self.segments[usize::from(arrival.place) & mask].mark(marks);
    }

    /// Segments in this epoch.
    pub fn len(&self) -> usize {
        self.segments.iter().map(PackedSegments::len).sum()
    }

    /// Bytes that they take, and what is kept for the next ones.
    pub fn bytes(&self) -> usize {
        let segments = self.segments.iter().map(PackedSegments::bytes).sum::<usize>();
        segments + self.spare.len() * CHUNK_BYTES
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Gives all segments, those between the same two hosts in order of capture. As much memory as they took is kept for the
    /// next epoch.
    pub(crate) fn work_off(&mut self, mut on_group: impl FnMut(&PackedSegments)) {
        self.spare.clear();
        for group in &mut self.segments {
            on_group(group);
            group.clear(&mut self.spare);
        }
    }
}
