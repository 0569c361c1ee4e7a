//! Which segments of an epoch are worked on one after the other?
//!
//! Tens of thousands of connections alternate packet by packet, and their state fits no cache. So an
//! epoch's segments are worked on by pair of hosts, and most of a connection's segments find its state
//! cached. Pairs of hosts know nothing of each other; segments between the same two stay in capture
//! order.

use tcpwhy_wire::{Segment, Usual};

use crate::epoch::front::Arrival;
use crate::flow::packed::{PackedSegments, Spare};
use crate::words::mark::Mark;

/// Groups of all shards together.
const COUNT: usize = 1 << 8;

/// The segments of an epoch by pair of hosts. The reader gathers them, and hands all of them at once to
/// the shard that works on them.
#[derive(Clone, Debug)]
pub struct Groups {
    segments: Vec<PackedSegments>,
    /// Memory for more.
    spare: Spare,
}

impl Groups {
    /// Empty groups for one of so many shards, with the memory that the segments of all of them share.
    pub fn new(shards: usize, spare: &Spare) -> Self {
        let count = (COUNT / shards.max(1)).next_power_of_two();
        Self { segments: vec![PackedSegments::default(); count], spare: spare.share() }
    }

    /// Groups of no epoch.
    pub(crate) fn none() -> Self {
        Self { segments: Vec::new(), spare: Spare::default() }
    }

    /// Takes the next segment, in capture order.
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

    /// The same for a usual one.
    #[inline]
    pub fn put_usual(&mut self, arrival: Arrival, usual: &Usual<'_>) {
        if arrival.clock != usual.at() {
            return self.put(arrival, &usual.segment());
        }
        let mask = self.segments.len() - 1;
        self.segments[usize::from(arrival.place) & mask].push_usual(usual, arrival.hash, &self.spare);
    }

    /// Adds the messages that begin in the last segment.
    #[inline]
    pub fn mark(&mut self, arrival: Arrival, marks: &[Mark]) {
        let mask = self.segments.len() - 1;
        self.segments[usize::from(arrival.place) & mask].mark(marks);
    }

    /// The number of segments in this epoch.
    pub fn len(&self) -> usize {
        self.segments.iter().map(PackedSegments::len).sum()
    }

    /// Their size in bytes.
    pub fn bytes(&self) -> usize {
        self.segments.iter().map(PackedSegments::bytes).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Passes on all segments, those between the same two hosts in capture order. Their memory is left
    /// to later ones.
    pub(crate) fn work_off(&mut self, mut on_group: impl FnMut(&PackedSegments)) {
        for group in &mut self.segments {
            on_group(group);
            group.clear(&self.spare);
        }
    }
}
