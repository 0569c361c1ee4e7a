//! How do packets get from one host to the other in real time? One thread carries both directions:
//! it reads from one interface, asks the elements of the path, and writes to the other interface
//! when they say so: never early, and as little late as the machine allows. It sleeps until shortly
//! before a packet is due, then spins.

use std::collections::VecDeque;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;
use tcpwhy_twin::path::{Offload, Output, Packet, Pipe, Record};
use tcpwhy_wire::{Duration, Instant};

use crate::gro::Burst;
use crate::tun::{MAX_PACKET, Tun};
use crate::{Clock, Error, gso, sys};

/// The link's effort, and the size of its log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkOptions {
    /// The last part of a wait is spun, not slept: as long as a wake-up may take.
    pub spin: Duration,
    /// How long to keep looking for packets without sleeping after the last one. Under load the
    /// link then never sleeps.
    pub linger: Duration,
    /// Run before every ordinary program of the machine (`SCHED_FIFO`), if the system allows it.
    /// More punctual next to other work; but a link that keeps a processor busy is then stopped for
    /// 50 ms of each second, so that others can run (`sched_rt_runtime_us`, the fair server). A
    /// link started by a thread with precedence does so in any case, and before that thread.
    pub realtime: bool,
    /// Keep a record of every packet, up to this many.
    pub records: usize,
}

impl Default for LinkOptions {
    fn default() -> Self {
        Self {
            spin: Duration::from_micros(60),
            linger: Duration::from_micros(20),
            realtime: false,
            records: 1_000_000,
        }
    }
}

/// Direction of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// From the client to the server.
    Forward,
    /// From the server to the client.
    Backward,
}

impl Direction {
    /// The name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Forward => "forward",
            Self::Backward => "backward",
        }
    }
}

/// What the path did to one packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathRecord {
    /// Its direction.
    pub direction: Direction,
    /// The elements' record: `entered` is when the link read it, `left` when it was due at the
    /// other host.
    pub path: Record,
    /// When it was handed to the other host's kernel; `None` if it was dropped.
    pub delivered: Option<Instant>,
}

/// What the path did to all packets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PathLog {
    /// In the order in which packets left the path.
    pub records: Vec<PathRecord>,
    /// Packets beyond the limit, which have no record.
    pub omitted: u64,
    /// Packets that a host's kernel refused.
    pub refused: u64,
}

/// The running link.
#[derive(Debug)]
pub(crate) struct Link {
    log: Arc<Mutex<PathLog>>,
    stop: Arc<(AtomicBool, OwnedFd)>,
    thread: Option<JoinHandle<()>>,
}

impl Link {
    /// Starts carrying packets between the client's and the server's interface; if the elements
    /// need `single` packets, super-segments are split first.
    pub(crate) fn start(
        tuns: [Tun; 2],
        pipes: [Pipe; 2],
        single: bool,
        options: LinkOptions,
        clock: Clock,
    ) -> Result<Self, Error> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC).map_err(Error::step("create an event descriptor"))?;
        let stop = Arc::new((AtomicBool::new(false), wake));
        // Reserved in advance: a list that has to move takes milliseconds, in which nothing is
        // carried. If the system cannot reserve the memory, it moves.
        let mut records = Vec::new();
        let _ = records.try_reserve(options.records);
        let log = Arc::new(Mutex::new(PathLog { records, ..PathLog::default() }));
        let [forward, backward] = pipes;
        let mut carrier = Carrier {
            tuns,
            lanes: [Lane::new(Direction::Forward, forward), Lane::new(Direction::Backward, backward)],
            single,
            options,
            clock,
            log: Arc::clone(&log),
            stop: Arc::clone(&stop),
            scratch: vec![0; MAX_PACKET],
            burst: Burst::default(),
            spare: VecDeque::new(),
        };
        let thread = thread::Builder::new()
            .name("link".to_owned())
            .spawn(move || carrier.run())
            .map_err(Error::step("start the link's thread"))?;
        Ok(Self { log, stop, thread: Some(thread) })
    }

    /// The log so far.
    pub(crate) fn log(&self) -> PathLog {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.stop.0.store(true, Ordering::Release);
        // An eventfd takes any number below 2^64 - 1.
        let _ = rustix::io::write(&self.stop.1, &1_u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// One direction.
struct Lane {
    direction: Direction,
    pipe: Pipe,
    /// When the pipe wants to be asked again.
    due: Option<Instant>,
}

impl Lane {
    fn new(direction: Direction, pipe: Pipe) -> Self {
        Self { direction, pipe, due: None }
    }
}

/// The link's thread.
struct Carrier {
    /// Client, server.
    tuns: [Tun; 2],
    /// Forward, backward: lane `n` reads from interface `n` and writes to the other.
    lanes: [Lane; 2],
    /// Super-segments are split before the elements.
    single: bool,
    options: LinkOptions,
    clock: Clock,
    log: Arc<Mutex<PathLog>>,
    stop: Arc<(AtomicBool, OwnedFd)>,
    scratch: Vec<u8>,
    /// Packets due at the same moment; empty between calls of `pump`.
    burst: Burst,
    /// Buffers of packets that are gone.
    spare: VecDeque<Vec<u8>>,
}

impl Carrier {
    fn run(&mut self) {
        // If the system refuses these, waits end later; the benchmark of the link shows by how
        // much.
        let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
        let realtime = self.options.realtime || sys::is_realtime();
        if !realtime || sys::set_realtime().is_err() {
            let _ = sys::set_eager();
        }
        let mut quiet_since = self.clock.now();
        while !self.stop.0.load(Ordering::Acquire) {
            let mut carried = false;
            for lane in 0..2 {
                match self.read(lane) {
                    Ok(some) => carried |= some,
                    // The interface is down: its host has ended, and so does the link.
                    Err(_) => return,
                }
                let now = self.clock.now();
                if self.lanes[lane].due.is_some_and(|due| due <= now) {
                    self.pump(lane, None, now);
                    carried = true;
                }
            }
            let now = self.clock.now();
            if carried {
                quiet_since = now;
            } else if now - quiet_since >= self.options.linger {
                self.sleep(now);
            } else {
                std::hint::spin_loop();
            }
        }
    }

    /// Takes up to a batch of packets from a host, so that the other direction is not kept waiting.
    fn read(&mut self, lane: usize) -> Result<bool, Errno> {
        for n in 0..BATCH {
            let Some((len, offload)) = self.tuns[lane].read(&mut self.scratch)? else { return Ok(n > 0) };
            let now = self.clock.now();
            if self.single && offload.is_super_segment() {
                // The parts are collected first: pumping needs the whole of self.
                let Some(parts) = gso::split(&self.scratch[..len], offload) else { continue };
                for bytes in parts.collect::<Vec<_>>() {
                    let packet = Packet::from_ip(bytes, gso::offload_of_single(offload), now);
                    self.pump(lane, Some(packet), now);
                }
            } else {
                let packet = self.packet(len, offload, now);
                self.pump(lane, Some(packet), now);
            }
        }
        Ok(true)
    }

    fn packet(&mut self, len: usize, offload: Offload, now: Instant) -> Packet {
        let mut bytes = self.spare.pop_front().unwrap_or_default();
        bytes.clear();
        bytes.extend_from_slice(&self.scratch[..len]);
        Packet::from_ip(bytes, offload, now)
    }

    /// Gives a packet to the pipe, delivers what comes out, and notes when to ask again. Of the
    /// packets that are due by now because the link was late, as many are handed over at once as a
    /// receiving card would merge.
    fn pump(&mut self, lane: usize, mut packet: Option<Packet>, now: Instant) {
        let due = loop {
            match self.lanes[lane].pipe.process(packet.take(), now) {
                Output::Packet(packet) => {
                    if !self.burst.goes_on_with(&packet) {
                        self.deliver(lane);
                    }
                    self.burst.push(packet);
                }
                Output::Dropped(packet, _) => self.finish(lane, packet, None),
                Output::Wait(due) => break Some(due),
                Output::Nothing => break None,
            }
        };
        self.lanes[lane].due = due;
        self.deliver(lane);
    }

    /// Hands over the burst.
    fn deliver(&mut self, lane: usize) {
        let mut burst = std::mem::take(&mut self.burst);
        if let Some((bytes, offload)) = burst.as_one() {
            let refused = self.tuns[1 - lane].write(bytes, offload).is_err();
            let delivered = self.clock.now();
            for packet in burst.drain() {
                if refused {
                    self.log.lock().unwrap_or_else(PoisonError::into_inner).refused += 1;
                }
                self.finish(lane, packet, (!refused).then_some(delivered));
            }
        }
        self.burst = burst;
    }

    fn finish(&mut self, lane: usize, packet: Packet, delivered: Option<Instant>) {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        if log.records.len() < self.options.records {
            let direction = self.lanes[lane].direction;
            log.records.push(PathRecord { direction, path: Record::of(&packet), delivered });
        } else {
            log.omitted += 1;
        }
        drop(log);
        if self.spare.len() < SPARE {
            self.spare.push_back(packet.bytes);
        }
    }

    /// Sleeps until a packet arrives or is nearly due.
    fn sleep(&self, now: Instant) {
        let due = self.lanes.iter().filter_map(|lane| lane.due).min();
        let gap = due.map(|due| due - now - self.options.spin);
        if gap.is_some_and(|gap| !gap.is_positive()) {
            return std::hint::spin_loop();
        }
        let timeout = gap.map(|gap| Timespec {
            tv_sec: gap.as_nanos() / 1_000_000_000,
            tv_nsec: gap.as_nanos() % 1_000_000_000,
        });
        let mut ready = [
            PollFd::from_borrowed_fd(self.tuns[0].as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.tuns[1].as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.stop.1.as_fd(), PollFlags::IN),
        ];
        // Whatever the result, the loop checks everything again.
        let _ = poll(&mut ready, timeout.as_ref());
    }
}

/// Packets read from one host before the other has its turn.
const BATCH: usize = 32;

/// Buffers kept for packets to come.
const SPARE: usize = 256;
