//! Which thread analyses which connection?
//!
//! The calling thread reads and decodes, and has a share of the connections itself; workers have the rest. Segments are
//! gathered for the thread that has their pair of hosts and handed over by the epoch, while the thread works on the
//! epoch before: what changes hands are the lists, not the segments. What concerns all connections is settled at fixed
//! packets (`tcpwhy_core::Conductor`): the report is the same, byte for byte, with any number of threads.

use std::collections::VecDeque;
use std::sync::mpsc::{self, Receiver, Sender, SyncSender};
use std::thread::JoinHandle;

use tcpwhy_core::{Analysis, Conductor, Front, Groups, Listing, Options, Orders, Report, Roll, Shard};
use tcpwhy_wire::{Instant, Segment};

/// Epochs on their way to a worker, besides the one that it works on. Reading waits for a worker that is further behind.
const QUEUED: usize = 1;
/// More threads wait for the one that reads.
pub const USEFUL_MAX: usize = 6;
/// In thousandths, what of the connections the reading thread takes with one, two and three others. Reading takes about
/// a third of what analysing does; with more threads, it takes all of its time.
const OWN_SHARE: [u32; 3] = [330, 110, 0];

/// An analysis on one or more threads.
pub enum Engine {
    /// All on the calling thread.
    Single(Box<Analysis>),
    /// With workers.
    Several(Box<Several>),
}

/// The calling thread and workers.
pub struct Several {
    front: Front,
    conductor: Conductor,
    seed: u64,
    own: Shard,
    workers: Vec<Worker>,
    /// Places below this are the calling thread's.
    own_places: u32,
    /// Epochs so far, and the last packet of the present one.
    epochs: u32,
    packet: u64,
    /// Epochs that are not settled yet: the own roll, and when it was called.
    unsettled: VecDeque<(Roll, Instant, u64)>,
}

struct Worker {
    /// Its segments of the present epoch.
    groups: Groups,
    epochs: SyncSender<Groups>,
    orders: Sender<Orders>,
    rolls: Receiver<Roll>,
    /// To be filled again.
    empty: Receiver<Groups>,
    thread: JoinHandle<Shard>,
}

impl Engine {
    /// An analysis on `threads` threads, the calling one included.
    pub fn new(options: Options, threads: usize) -> Self {
        // Only the order in which connections begin tells which one is to be listed with its packets.
        let single = threads <= 1 || matches!(options.listing, Listing::Connection(_));
        if single {
            return Self::Single(Box::new(Analysis::new(options)));
        }
        Self::Several(Box::new(Several::new(options, threads)))
    }

    /// Takes the next segment, in order of capture.
    #[inline]
    pub fn on_segment(&mut self, segment: &Segment) {
        match self {
            Self::Single(analysis) => analysis.on_segment(segment),
            Self::Several(several) => several.on_segment(segment),
        }
    }

    /// Closes everything and says what was found.
    pub fn finish(self) -> Report {
        match self {
            Self::Single(analysis) => analysis.finish(),
            Self::Several(several) => several.finish(),
        }
    }
}

impl Several {
    fn new(options: Options, threads: usize) -> Self {
        let (mut front, shards, conductor) = options.parts(threads);
        let mut shards = shards.into_iter();
        let own = shards.next().unwrap_or_else(|| unreachable!("there is a shard for each thread"));
        let workers: Vec<Worker> = shards.map(|shard| Worker::start(shard, options.seed)).collect();
        let share = OWN_SHARE.get(workers.len() - 1).copied().unwrap_or(0);
        front.begin_epoch(conductor.epoch(0));
        Self {
            front,
            conductor,
            seed: options.seed,
            own,
            workers,
            own_places: share * PLACES / 1000,
            epochs: 0,
            packet: 0,
            unsettled: VecDeque::new(),
        }
    }

    #[inline]
    fn on_segment(&mut self, segment: &Segment) {
        let last = self.front.on_segment(segment);
        let place = u32::from(self.front.place(segment));
        if let Some(place) = place.checked_sub(self.own_places) {
            let worker = place as usize * self.workers.len() / (PLACES - self.own_places) as usize;
            self.workers[worker].groups.put(segment);
        } else {
            self.own.take(segment);
        }
        self.packet = segment.packet;
        if last {
            self.end_epoch();
        }
    }

    fn end_epoch(&mut self) {
        for worker in &mut self.workers {
            worker.end_epoch(self.seed);
        }
        let roll = self.own.end_epoch();
        self.settle();
        self.unsettled.push_back((roll, self.front.now(), self.packet));
        self.epochs = self.epochs.saturating_add(1);
        self.front.begin_epoch(self.conductor.epoch(self.epochs));
    }

    /// Gives the orders about the epoch before the one that ends now.
    fn settle(&mut self) {
        let Some((own, now, packet)) = self.unsettled.pop_front() else { return };
        let mut rolls = vec![own];
        rolls.extend(self.workers.iter().map(Worker::roll));
        let mut orders = self.conductor.settle(&rolls, now, packet).into_iter();
        if let Some(orders) = orders.next() {
            self.own.take_orders(&orders);
        }
        for (worker, orders) in self.workers.iter().zip(orders) {
            worker.order(orders);
        }
    }

    fn finish(mut self) -> Report {
        self.end_epoch();
        self.settle();
        let mut shards = vec![self.own];
        shards.extend(self.workers.into_iter().map(Worker::finish));
        self.conductor.report(shards, &self.front)
    }
}

/// How many [`Front::place`]s there are.
const PLACES: u32 = 1 << 16;

impl Worker {
    fn start(shard: Shard, seed: u64) -> Self {
        let (epochs, inbox) = mpsc::sync_channel(QUEUED);
        let (orders, orders_inbox) = mpsc::channel();
        let (rolls_outbox, rolls) = mpsc::channel();
        let (empty_outbox, empty) = mpsc::channel();
        let thread =
            std::thread::spawn(move || work(shard, &inbox, &orders_inbox, &rolls_outbox, &empty_outbox));
        Self { groups: Groups::new(seed), epochs, orders, rolls, empty, thread }
    }

    /// Hands the epoch's segments over.
    fn end_epoch(&mut self, seed: u64) {
        let next = self.empty.try_recv().unwrap_or_else(|_| Groups::new(seed));
        // A worker that is gone has panicked, which `finish` passes on.
        let _ = self.epochs.send(std::mem::replace(&mut self.groups, next));
    }

    fn roll(&self) -> Roll {
        self.rolls.recv().unwrap_or_default()
    }

    fn order(&self, orders: Orders) {
        let _ = self.orders.send(orders);
    }

    fn finish(self) -> Shard {
        drop(self.epochs);
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

fn work(
    mut shard: Shard,
    inbox: &Receiver<Groups>,
    orders: &Receiver<Orders>,
    rolls: &Sender<Roll>,
    empty: &Sender<Groups>,
) -> Shard {
    let mut awaits_orders = false;
    // The other side closes the channels when it wants the shard back, or when it has panicked itself.
    for mut groups in inbox {
        let roll = shard.end_epoch_with(&mut groups);
        let _ = empty.send(groups);
        let _ = rolls.send(roll);
        if awaits_orders && let Ok(orders) = orders.recv() {
            shard.take_orders(&orders);
        }
        awaits_orders = true;
    }
    if awaits_orders && let Ok(orders) = orders.recv() {
        shard.take_orders(&orders);
    }
    shard
}
