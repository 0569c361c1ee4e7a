//! Which segments of an epoch are worked on one after the other?
//!
//! Tens of thousands of connections take turns packet by packet, and what is kept of all of them fits no cache. An
//! epoch's segments are worked on by pair of hosts, so that most of a connection's segments find its state at hand.
//! Pairs of hosts know nothing of each other; those between the same two stay in order of capture.

use tcpwhy_wire::{Segment, Usual};

use crate::epoch::front::Arrival;
use crate::flow::packed::{PackedSegments, Spare};
use crate::words::mark::Mark;

/// Groups of all shards together.
const COUNT: usize = 1 << 8;

/// The segments of an epoch by their pair of hosts. Whoever reads gathers them, and hands all of them at once to the
/// shard that works on them.
#[derive(Clone, Debug)]
pub struct Groups {
    segments: Vec<PackedSegments>,
    /// Memory for more.
    spare: Spare,
}

impl Groups {
    /// None yet, for one of so many shards, with the memory that those of all of them are to lie in.
    pub fn new(shards: usize, spare: &Spare) -> Self {
        let count = (COUNT / shards.max(1)).next_power_of_two();
        Self { segments: vec![PackedSegments::default(); count], spare: spare.share() }
    }

    /// Of no epoch.
    pub(crate) fn none() -> Self {
        Self { segments: Vec::new(), spare: Spare::default() }
    }

    /// Takes the next segment, in order of capture.
    #[inline]
    pub fn put(&mut self, arrival: Arrival, segment: &Segment) {
        let mask = self.segments.len() - 1;
        self.segments[usize::from(arrival.place) & mask].push(
            segment,
            arrival.hash,
            arrival.clock,
            &self.spare,
        );
    }

    /// The same of a usual one.
    #[inline]
    pub fn put_usual(&mut self, arrival: Arrival, usual: &Usual<'_>) {
        if arrival.clock != usual.at() {
            return self.put(arrival, &usual.segment());
        }
        let mask = self.segments.len() - 1;
        self.segments[usize::from(arrival.place) & mask].push_usual(usual, arrival.hash, &self.spare);
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

    /// Bytes that they take.
    pub fn bytes(&self) -> usize {
        self.segments.iter().map(PackedSegments::bytes).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Gives all segments, those between the same two hosts in order of capture. Their memory is left to the next ones.
    pub(crate) fn work_off(&mut self, mut on_group: impl FnMut(&PackedSegments)) {
        for group in &mut self.segments {
            on_group(group);
            group.clear(&self.spare);
        }
    }
}
