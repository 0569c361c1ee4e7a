//! What is decided of a segment before it goes to a shard: its place, its hash, and whether its epoch ends?

use std::collections::BTreeMap;

use tcpwhy_wire::{Instant, Segment};

use crate::epoch::flows::Flows;
use crate::epoch::hash::Keys;
use crate::epoch::orders::Epoch;
use crate::words::report::{Note, Report};

/// What the front has found out about a segment.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// Pairs of hosts are spread over 2^16 places. All segments between two hosts have one.
    pub place: u16,
    pub(crate) hash: u32,
    /// Whether the epoch ends with it.
    pub is_last: bool,
}

/// What every segment passes first, in order of capture.
#[derive(Clone, Debug)]
pub struct Front {
    segments: u64,
    /// The latest time so far.
    now: Instant,
    keys: Keys,
    /// Segments of the present epoch until it ends.
    left: usize,
    flows: Flows,
    notes: BTreeMap<&'static str, (u64, u64)>,
}

impl Front {
    pub(crate) fn new(seed: u64) -> Self {
        let (keys, flows) = (Keys::new(seed), Flows::new());
        Self { segments: 0, now: Instant::MIN, keys, left: 0, flows, notes: BTreeMap::new() }
    }

    /// The segments from now on are an epoch.
    pub fn begin_epoch(&mut self, epoch: Epoch) {
        self.left = epoch.segments;
        self.flows.begin((epoch.connections < epoch.segments).then_some(epoch.connections));
    }

    /// Takes note of a segment.
    #[inline]
    pub fn on_segment(&mut self, segment: &Segment) -> Arrival {
        self.segments += 1;
        if segment.at < self.now {
            self.note("time-steps-back", segment.packet);
        } else {
            self.now = segment.at;
        }
        self.left -= 1;
        let mixed = self.keys.mix(segment.src, segment.dst);
        let is_last = self.flows.on_segment(mixed.ends) || self.left == 0;
        Arrival { place: (mixed.hosts >> 48) as u16, hash: mixed.hash(), is_last }
    }

    /// The latest time so far.
    pub fn now(&self) -> Instant {
        self.now
    }

    #[cold]
    fn note(&mut self, kind: &'static str, packet: u64) {
        self.notes.entry(kind).or_insert((0, packet)).0 += 1;
    }

    pub(crate) fn put_into(&self, report: &mut Report, more: BTreeMap<&'static str, (u64, u64)>) {
        report.segments = self.segments;
        let mut notes = self.notes.clone();
        notes.extend(more);
        let note = |(kind, (count, first_packet))| Note { kind, count, first_packet };
        report.notes = notes.into_iter().map(note).collect();
    }
}
