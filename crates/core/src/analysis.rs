//! Segments in, report out.

use tcpwhy_wire::{Decoded, Segment};

use crate::epoch::coordinator::Coordinator;
use crate::epoch::front::{Arrival, Front};
use crate::epoch::options::Options;
use crate::epoch::orders::Orders;
use crate::epoch::shard::Shard;
use crate::words::mark::Mark;
use crate::words::report::Report;

impl Options {
    /// The parts of an analysis whose shards may each work on a thread of their own. Every segment passes the front,
    /// then goes to the shard that owns its [`Arrival::place`](crate::Arrival::place), or into the [`Groups`](crate::Groups) that this one is given
    /// at the end of the epoch. After each [`Coordinator::epoch`], which the front counts, and at the end,
    /// every shard calls its roll ([`Shard::end_epoch`]), then takes the orders about the epoch before, which
    /// [`Coordinator::settle`] gives. When it has those about the last epoch too, the report can be drawn up. The listing
    /// of a single connection works with one shard only.
    pub fn parts(self, shards: usize) -> (Front, Vec<Shard>, Coordinator) {
        let shards = shards.max(1);
        (Front::new(&self), (0..shards).map(|_| Shard::new(&self, shards)).collect(), Coordinator::new(self))
    }
}

/// Takes segments in order of capture and draws up the bills, on the caller's thread.
#[derive(Clone)]
pub struct Analysis {
    front: Front,
    shard: Shard,
    coordinator: Coordinator,
    /// What was settled about the last epoch.
    orders: Option<Orders>,
    /// Epochs so far, and the last packet of the present one.
    epochs: u32,
    packet: u64,
}

impl Analysis {
    /// An analysis that has seen nothing yet.
    pub fn new(options: Options) -> Self {
        let coordinator = Coordinator::new(options);
        let mut front = Front::new(&options);
        front.begin_epoch(coordinator.epoch(0));
        Self { front, shard: Shard::new(&options, 1), coordinator, orders: None, epochs: 0, packet: 0 }
    }

    /// Takes the next segment, in order of capture.
    #[inline]
    pub fn on_segment(&mut self, segment: &Segment) {
        self.on_marked(segment, &[]);
    }

    /// The same, with the messages that begin in the segment.
    #[inline]
    pub fn on_marked(&mut self, segment: &Segment, marks: &[Mark]) {
        let arrival = self.front.on_segment(segment);
        self.shard.take(arrival, segment, marks);
        self.end_segment(arrival, segment.packet);
    }

    /// Takes the next segment as it was decoded.
    #[inline]
    pub fn on_decoded(&mut self, decoded: &Decoded<'_>) {
        match decoded {
            Decoded::Usual(usual) => {
                let arrival = self.front.on_usual(usual);
                self.shard.take_usual(arrival, usual, &[]);
                self.end_segment(arrival, usual.packet());
            }
            Decoded::Other(segment) => self.on_segment(segment),
        }
    }

    /// The same, and reads the heads in as much of its payload as was captured.
    #[inline]
    pub fn on_captured_decoded(&mut self, decoded: &Decoded<'_>, captured: &[u8]) {
        match decoded {
            Decoded::Usual(usual) => {
                let arrival = self.front.on_usual(usual);
                let marks = self.front.read_usual_heads(arrival, usual, captured);
                self.shard.take_usual(arrival, usual, marks);
                self.end_segment(arrival, usual.packet());
            }
            Decoded::Other(segment) => self.on_captured(segment, captured),
        }
    }

    /// The same, with as much of the segment's payload as was captured, whose heads are read.
    #[inline]
    pub fn on_captured(&mut self, segment: &Segment, captured: &[u8]) {
        let arrival = self.front.on_segment(segment);
        let marks = self.front.read_heads(arrival, segment, captured);
        self.shard.take(arrival, segment, marks);
        self.end_segment(arrival, segment.packet);
    }

    #[inline]
    fn end_segment(&mut self, arrival: Arrival, packet: u64) {
        self.packet = packet;
        if arrival.is_last {
            self.end_epoch();
        }
    }

    fn end_epoch(&mut self) {
        let roll = self.shard.end_epoch();
        if let Some(orders) = self.orders.take() {
            self.shard.take_orders(&orders);
        }
        self.orders = self.coordinator.settle(&mut [roll], self.front.end(self.packet)).pop();
        self.epochs = self.epochs.saturating_add(1);
        self.front.begin_epoch(self.coordinator.epoch(self.epochs));
    }

    /// What was kept, in bytes, when the last epoch was settled, by the budget's own books.
    pub fn counted_bytes(&self) -> usize {
        self.coordinator.counted_bytes()
    }

    /// What is held now, with the segments of the epoch and the room that tables keep.
    pub fn held_bytes(&self) -> usize {
        self.coordinator.others_bytes() + self.shard.places_bytes()
    }

    /// Closes everything and says what was found.
    pub fn finish(mut self) -> Report {
        self.end_epoch();
        if let Some(orders) = self.orders.take() {
            self.shard.take_orders(&orders);
        }
        self.coordinator.report(vec![self.shard], &self.front)
    }
}
