//! Which thread analyses which connection?
//!
//! The calling thread reads and decodes, and gathers the segments of an epoch by shard. At its end
//! each shard's segments become a task for the next free thread: a worker, or the calling thread if
//! it has read the next epoch before all tasks are done. Threads exchange lists, not single
//! segments. What concerns all connections is settled at fixed packets
//! (`tcpwhy_core::Coordinator`): the report is the same, byte for byte, with any number of threads.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use tcpwhy_core::{
    Analysis, Arrival, Coordinator, End, Front, Groups, Listing, Options, Orders, Report, Roll, Shard, Spare,
};
use tcpwhy_wire::{Decoded, Segment, Usual};

/// More threads would only wait for the one that reads.
pub const USEFUL_MAX: usize = 6;
/// Enough shards that the last task of an epoch is a small part of it; few enough that their sums
/// stay in the caches.
const SHARDS_A_THREAD: usize = 4;
/// If more than half of the memory is in use, free gaps go back to the system once in this many
/// epochs.
#[cfg(target_os = "linux")]
const GIVEN_BACK_EVERY: u32 = 8;

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
    coordinator: Coordinator,
    /// The segments of the current epoch, by shard.
    gathered: Vec<Groups>,
    /// Spare memory for them and the segments that follow.
    spare: Spare,
    /// Where the shards are when no task has them.
    homes: Vec<Home>,
    workers: Workers,
    /// Epochs so far, and the last packet of the current one.
    epochs: u32,
    packet: u64,
    /// The end of the epoch that is being worked on.
    ended: Option<End>,
    #[cfg(target_os = "linux")]
    memory: usize,
}

#[derive(Default)]
struct Home {
    shard: Option<Box<Shard>>,
    /// To be filled again.
    empty: Option<Groups>,
    roll: Roll,
}

/// An epoch of one shard.
struct Task {
    place: usize,
    shard: Box<Shard>,
    groups: Groups,
    /// About the previous epoch.
    orders: Option<Orders>,
}

struct Done {
    place: usize,
    shard: Box<Shard>,
    groups: Groups,
    roll: Roll,
}

impl Engine {
    /// An analysis on `threads` threads, the calling one included.
    pub fn new(options: Options, threads: usize) -> Self {
        // To list one connection with its packets, its number must be known when it begins, and
        // only a single thread numbers connections in order.
        let single = threads <= 1 || matches!(options.listing, Listing::Connection(_));
        if single {
            return Self::Single(Box::new(Analysis::new(options)));
        }
        Self::Several(Box::new(Several::new(options, threads)))
    }

    /// Takes the next segment, in order of capture, with as much of its payload as was captured.
    #[inline]
    pub fn on_segment(&mut self, segment: &Segment, captured: &[u8]) {
        match self {
            Self::Single(analysis) => analysis.on_captured(segment, captured),
            Self::Several(several) => several.on_segment(segment, captured),
        }
    }

    /// Takes the next segment as it was decoded.
    #[inline]
    pub fn on_decoded(&mut self, decoded: &Decoded<'_>, captured: &[u8]) {
        match (self, decoded) {
            (Self::Single(analysis), _) => analysis.on_captured_decoded(decoded, captured),
            (Self::Several(several), Decoded::Usual(usual)) => several.on_usual(usual, captured),
            (Self::Several(several), Decoded::Other(segment)) => several.on_segment(segment, captured),
        }
    }

    /// What would be reported if the capture ended here; on one thread only.
    pub fn so_far(&self) -> Option<Report> {
        match self {
            Self::Single(analysis) => Some(analysis.as_ref().clone().finish()),
            Self::Several(_) => None,
        }
    }

    /// Memory in use in bytes, as the budget counts it.
    pub fn counted_bytes(&self) -> usize {
        match self {
            Self::Single(analysis) => analysis.counted_bytes(),
            Self::Several(several) => several.coordinator.counted_bytes(),
        }
    }

    /// Memory held now, with the segments of two epochs and the reserve of tables.
    pub fn held_bytes(&mut self) -> usize {
        match self {
            Self::Single(analysis) => analysis.held_bytes(),
            Self::Several(several) => several.held_bytes(),
        }
    }

    /// Ends the analysis and reports what was found.
    pub fn finish(self) -> Report {
        match self {
            Self::Single(analysis) => analysis.finish(),
            Self::Several(several) => several.finish(),
        }
    }
}

impl Several {
    fn new(options: Options, threads: usize) -> Self {
        let count = SHARDS_A_THREAD * threads;
        let (mut front, shards, coordinator) = options.parts(count);
        let home = |shard| Home { shard: Some(Box::new(shard)), ..Home::default() };
        front.begin_epoch(coordinator.epoch(0));
        let spare = Spare::default();
        Self {
            front,
            coordinator,
            gathered: (0..count).map(|_| Groups::new(count, &spare)).collect(),
            spare,
            homes: shards.into_iter().map(home).collect(),
            workers: Workers::start(threads - 1),
            epochs: 0,
            packet: 0,
            ended: None,
            #[cfg(target_os = "linux")]
            memory: options.memory,
        }
    }

    #[inline]
    fn on_segment(&mut self, segment: &Segment, captured: &[u8]) {
        let arrival = self.front.on_segment(segment);
        let marks = self.front.read_heads(arrival, segment, captured);
        let shard = (usize::from(arrival.place) * self.gathered.len()) >> 16;
        self.gathered[shard].put(arrival, segment);
        if !marks.is_empty() {
            self.gathered[shard].mark(arrival, marks);
        }
        self.end_segment(arrival, segment.packet);
    }

    #[inline]
    fn on_usual(&mut self, usual: &Usual<'_>, captured: &[u8]) {
        let arrival = self.front.on_usual(usual);
        let marks = self.front.read_usual_heads(arrival, usual, captured);
        let shard = (usize::from(arrival.place) * self.gathered.len()) >> 16;
        self.gathered[shard].put_usual(arrival, usual);
        if !marks.is_empty() {
            self.gathered[shard].mark(arrival, marks);
        }
        self.end_segment(arrival, usual.packet());
    }

    #[inline]
    fn end_segment(&mut self, arrival: Arrival, packet: u64) {
        self.packet = packet;
        if arrival.is_last {
            self.end_epoch();
        }
    }

    /// Hands over the epoch's segments, once those of the previous epoch have been worked on.
    fn end_epoch(&mut self) {
        let mut orders = self.settle().into_iter();
        #[cfg(target_os = "linux")]
        if self.epochs.is_multiple_of(GIVEN_BACK_EVERY) && self.coordinator.counted_bytes() > self.memory / 2
        {
            tcpwhy_sandbox::give_gaps_back();
        }
        self.spare.give_back();
        let count = self.homes.len();
        let mut tasks = Vec::with_capacity(count);
        for (place, (home, gathered)) in self.homes.iter_mut().zip(&mut self.gathered).enumerate() {
            let Some(shard) = home.shard.take() else { unreachable!("all tasks are done") };
            let empty = home.empty.take().unwrap_or_else(|| Groups::new(count, &self.spare));
            let groups = std::mem::replace(gathered, empty);
            tasks.push(Task { place, shard, groups, orders: orders.next() });
        }
        self.workers.give(tasks);
        self.ended = Some(self.front.end(self.packet));
        self.epochs = self.epochs.saturating_add(1);
        self.front.begin_epoch(self.coordinator.epoch(self.epochs));
    }

    /// Helps until the epoch that was handed over last has been worked on.
    fn work_off(&mut self) {
        while let Some(Done { place, shard, groups, roll }) = self.workers.help() {
            self.homes[place] = Home { shard: Some(shard), empty: Some(groups), roll };
        }
    }

    fn held_bytes(&mut self) -> usize {
        self.work_off();
        let groups = self.homes.iter().filter_map(|home| home.empty.as_ref()).chain(&self.gathered);
        let shards = self.homes.iter().filter_map(|home| home.shard.as_deref());
        let shards: usize = shards.map(Shard::places_bytes).sum();
        self.coordinator.others_bytes()
            + shards
            + groups.map(Groups::bytes).sum::<usize>()
            + self.spare.bytes()
    }

    /// The orders about the epoch that was handed over last.
    fn settle(&mut self) -> Vec<Orders> {
        let Some(end) = self.ended else { return Vec::new() };
        self.work_off();
        let mut rolls: Vec<Roll> = self.homes.iter_mut().map(|home| std::mem::take(&mut home.roll)).collect();
        self.coordinator.settle(&mut rolls, end)
    }

    fn finish(mut self) -> Report {
        self.end_epoch();
        let orders = self.settle();
        let mut shards: Vec<Shard> = self.homes.into_iter().filter_map(|home| Some(*home.shard?)).collect();
        shards.iter_mut().zip(&orders).for_each(|(shard, orders)| shard.take_orders(orders));
        self.coordinator.report(shards, &self.front)
    }
}

impl Task {
    fn work(mut self) -> Done {
        let roll = self.shard.end_epoch_with(&mut self.groups);
        if let Some(orders) = &self.orders {
            self.shard.take_orders(orders);
        }
        Done { place: self.place, shard: self.shard, groups: self.groups, roll }
    }
}

/// The threads besides the calling one.
struct Workers {
    tasks: Arc<Tasks>,
    done: Receiver<thread::Result<Done>>,
    /// Tasks that were given and are not done.
    pending: usize,
}

/// Tasks that no thread has taken yet; `None` when no more will come.
struct Tasks {
    waiting: Mutex<Option<Vec<Task>>>,
    changed: Condvar,
}

impl Workers {
    fn start(count: usize) -> Self {
        let tasks = Arc::new(Tasks { waiting: Mutex::new(Some(Vec::new())), changed: Condvar::new() });
        let (outbox, done) = mpsc::channel();
        for _ in 0..count {
            let (tasks, outbox) = (Arc::clone(&tasks), outbox.clone());
            // If the system gives no more threads, the existing ones do all the work; if need be,
            // the calling thread alone.
            if thread::Builder::new().spawn(move || work(&tasks, &outbox)).is_err() {
                break;
            }
        }
        Self { tasks, done, pending: 0 }
    }

    /// To be called when all earlier tasks are done.
    fn give(&mut self, mut tasks: Vec<Task>) {
        // The largest tasks are taken first, so that the last one to finish is short.
        tasks.sort_by_key(|task| task.groups.len());
        self.pending = tasks.len();
        *self.tasks.waiting() = Some(tasks);
        self.tasks.changed.notify_all();
    }

    /// Does the next task, or waits for one that another thread does.
    fn help(&mut self) -> Option<Done> {
        self.pending = self.pending.checked_sub(1)?;
        let task = self.tasks.waiting().as_mut().and_then(Vec::pop);
        task.map(Task::work).or_else(|| {
            let done = self.done.recv().unwrap_or_else(|_| unreachable!("workers wait for tasks"));
            Some(done.unwrap_or_else(|panic| resume_unwind(panic)))
        })
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        *self.tasks.waiting() = None;
        self.tasks.changed.notify_all();
    }
}

impl Tasks {
    fn waiting(&self) -> MutexGuard<'_, Option<Vec<Task>>> {
        // No thread panics while holding it.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the next task.
    fn next(&self) -> Option<Task> {
        let mut waiting = self.waiting();
        loop {
            match waiting.as_mut()?.pop() {
                Some(task) => return Some(task),
                None => waiting = self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }
}

fn work(tasks: &Tasks, outbox: &Sender<thread::Result<Done>>) {
    while let Some(task) = tasks.next() {
        // A panic is passed on to the calling thread, which waits for the task.
        if outbox.send(catch_unwind(AssertUnwindSafe(|| task.work()))).is_err() {
            break;
        }
    }
}
