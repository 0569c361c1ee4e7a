//! Segments in, report out.

use std::collections::BTreeMap;

use tcpwhy_wire::{Instant, Segment};

use crate::epoch::conductor::{Conductor, Epoch, Orders};
use crate::epoch::flows::Flows;
use crate::epoch::shard::Shard;
use crate::epoch::table::Keys;
use crate::tally::ledger::Listing;
use crate::words::report::{Note, Report};

/// What to keep, and how much.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Which exchanges are listed one by one.
    pub listing: Listing,
    /// Open connections at most, or up to a quarter more for a moment; one with much under way counts for several. Beyond it
    /// the ones that spoke longest ago are closed where they stand, and counted.
    pub max_connections: usize,
    /// Decides where connections are kept, and nothing that a report shows. Whoever reads captures of strangers gives
    /// one that they cannot know, so that no capture can be made to be slow.
    pub seed: u64,
    /// Take no shortcut: each segment is worked on when it comes, and each mechanism asked each time. That is the slow
    /// obvious model that tests compare with: the report is the same.
    pub plain: bool,
    /// Work on usual segments on both code paths, and panic where they leave different states: for tests.
    pub checked: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { listing: Listing::None, max_connections: 1_000_000, seed: 0, plain: false, checked: false }
    }
}

impl Options {
    /// The parts of an analysis whose shards may each work on a thread of their own. Every segment passes the front,
    /// then goes to the shard that owns its [`Arrival::place`], or into the [`Groups`](crate::Groups) that this one is given
    /// at the end of the epoch. After each [`Conductor::epoch`], which the front counts, and at the end,
    /// every shard calls its roll ([`Shard::end_epoch`]), then takes the orders about the epoch before, which
    /// [`Conductor::settle`] gives. When it has those about the last epoch too, the report can be drawn up. The listing
    /// of a single connection works with one shard only.
    pub fn parts(self, shards: usize) -> (Front, Vec<Shard>, Conductor) {
        let shards = shards.max(1);
        (
            Front::new(self.seed),
            (0..shards).map(|_| Shard::new(&self, shards)).collect(),
            Conductor::new(self),
        )
    }
}

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
    fn new(seed: u64) -> Self {
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

/// Takes segments in order of capture and draws up the bills, on the caller's thread.
pub struct Analysis {
    front: Front,
    shard: Shard,
    conductor: Conductor,
    /// What was settled about the last epoch.
    orders: Option<Orders>,
    /// Epochs so far, and the last packet of the present one.
    epochs: u32,
    packet: u64,
}

impl Analysis {
    /// An analysis that has seen nothing yet.
    pub fn new(options: Options) -> Self {
        let conductor = Conductor::new(options);
        let mut front = Front::new(options.seed);
        front.begin_epoch(conductor.epoch(0));
        Self { front, shard: Shard::new(&options, 1), conductor, orders: None, epochs: 0, packet: 0 }
    }

    /// Takes the next segment, in order of capture.
    #[inline]
    pub fn on_segment(&mut self, segment: &Segment) {
        let arrival = self.front.on_segment(segment);
        self.shard.take(arrival, segment);
        self.packet = segment.packet;
        if arrival.is_last {
            self.end_epoch();
        }
    }

    fn end_epoch(&mut self) {
        let roll = self.shard.end_epoch();
        if let Some(orders) = self.orders.take() {
            self.shard.take_orders(&orders);
        }
        self.orders = self.conductor.settle(&[roll], self.front.now, self.packet).pop();
        self.epochs = self.epochs.saturating_add(1);
        self.front.begin_epoch(self.conductor.epoch(self.epochs));
    }

    /// Closes everything and says what was found.
    pub fn finish(mut self) -> Report {
        self.end_epoch();
        if let Some(orders) = self.orders.take() {
            self.shard.take_orders(&orders);
        }
        self.conductor.report(vec![self.shard], &self.front)
    }
}
