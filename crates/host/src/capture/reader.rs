//! How do packets get from the ring to the sink, all of them, and in order?
//!
//! One thread sleeps until the kernel hands over a block. To stop without losing the last packets,
//! the filter is closed first; then the kernel's count of packets in the ring is final, and the
//! reader continues until it has seen that many.

use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tcpwhy_wire::Instant;

use super::filter;
use super::interfaces::Interfaces;
use super::link::Link;
use super::order::{Held, Order};
use super::ring::{Counted, Layout, PacketSocket, Ring};
use super::{CallError, Counts, Error, Narrow, Options, Packet, Sink, Stats};

/// A block with packets is handed over after this long: the delay of a live view, and of a stop.
const RETIRE_MS: u32 = 20;
/// Blocks of this size waste little on a slow link, and need one wake-up per several thousand
/// packets on a fast one.
const BLOCK_BYTES: u32 = 256 << 10;
const FEWEST_BLOCKS: u32 = 4;
/// The kernel counts a packet into the ring before it hands the block over, at most `RETIRE_MS`
/// later.
const DRAIN_LIMIT: Duration = Duration::from_secs(2);
/// How often interfaces are looked up.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// A reader that follows the capture sees a packet after this time at the latest.
const HAND_ON_EVERY: Duration = Duration::from_millis(100);
/// Without packets, the sink's `idle` is called this often.
const IDLE_MS: u32 = 2 * RETIRE_MS;

/// Opens the interfaces; the ring is live when this returns.
pub(super) fn open(options: &Options) -> Result<(Ring, Link, Interfaces), Error> {
    let name = options.interface.as_str();
    let socket = |link: Link| PacketSocket::open(link.framing()).map_err(|e| Error::from_socket(name, e));
    let (interfaces, link) = Interfaces::find(options, || socket(Link::Raw))?;
    let mut blocks =
        (options.ring_bytes as u64 / u64::from(BLOCK_BYTES)).clamp(FEWEST_BLOCKS.into(), 1 << 12) as u32;
    loop {
        let layout = Layout { block_bytes: BLOCK_BYTES, blocks, retire_ms: RETIRE_MS };
        let socket = socket(link)?;
        socket.set_filter(&interfaces.program())?;
        match socket.into_ring(interfaces.bound(), layout) {
            Ok(ring) => return Ok((ring, link, interfaces)),
            Err(source) if source.source.raw_os_error() == Some(libc::ENOMEM) => {
                if blocks <= FEWEST_BLOCKS {
                    return Err(Error::NoMemory { bytes: (BLOCK_BYTES * blocks) as usize, source });
                }
                blocks /= 2;
            }
            Err(source) => return Err(source.into()),
        }
    }
}

/// Moves packets from the ring to the sink.
pub(super) struct Reader<S> {
    ring: Ring,
    interfaces: Interfaces,
    /// When they were last looked up.
    looked: Instant,
    /// When the sink was last told to flush.
    handed_on: Instant,
    counts: Counts,
    wake: OwnedFd,
    narrow: Narrow,
    order: Order,
    output: Output<S>,
    /// Packets taken from the ring.
    taken: u64,
    /// The kernel's counts so far.
    counted: Counted,
}

/// The sink, and the count of what it was given.
struct Output<S> {
    sink: S,
    link: Link,
    stats: Stats,
}

/// Why the reader woke up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Woken {
    Packets,
    Nothing,
    Stop,
}

impl<S: Sink> Reader<S> {
    pub(super) fn new(
        (ring, link, interfaces): (Ring, Link, Interfaces),
        (wake, counts, narrow): (OwnedFd, Counts, Narrow),
        started: Instant,
        sink: S,
    ) -> Self {
        let stats = Stats { started, ..Stats::default() };
        let output = Output { sink, link, stats };
        let (order, counted) = (Order::default(), Counted::default());
        Self {
            ring,
            interfaces,
            looked: started,
            handed_on: started,
            counts,
            wake,
            narrow,
            order,
            output,
            taken: 0,
            counted,
        }
    }

    pub(super) fn run(mut self) -> Result<Stats, Error> {
        loop {
            self.drain()?;
            // The kernel's counters have 32 bits: they are read before they can wrap.
            self.count()?;
            self.look_for_interfaces()?;
            if let Some(filter) = self.narrow.slot().take() {
                self.interfaces.narrow(filter, &self.ring)?;
            }
            self.hand_on()?;
            match self.sleep()? {
                Woken::Packets => {}
                Woken::Nothing => self.idle()?,
                Woken::Stop => break,
            }
        }
        self.ring.set_filter(&filter::drop_all())?;
        self.output.stats.stopped = now();
        self.count()?;
        let deadline = self.output.stats.stopped.as_nanos() + DRAIN_LIMIT.as_nanos() as i64;
        while self.taken < self.counted.stored && now().as_nanos() < deadline {
            self.drain()?;
            if self.taken < self.counted.stored {
                self.poll(RETIRE_MS)?;
            }
        }
        self.order.flush(&mut |held| self.output.write(held))?;
        let stats = &mut self.output.stats;
        stats.dropped = self.counted.dropped;
        stats.unread = self.counted.stored.saturating_sub(self.taken);
        self.output.sink.end(&self.output.stats).map_err(Error::Write)?;
        Ok(self.output.stats)
    }

    /// Takes every block that the kernel has handed over.
    fn drain(&mut self) -> Result<(), Error> {
        let Self { ring, order, output, taken, .. } = self;
        while ring.read_block(|frame| {
            *taken += 1;
            let packet = output.link.dress(&frame, order.buffer());
            order.push(packet, &mut |held| output.write(held))
        })? {}
        Ok(())
    }

    fn idle(&mut self) -> Result<(), Error> {
        self.order.flush(&mut |held| self.output.write(held))?;
        self.output.sink.idle().map_err(Error::Write)
    }

    fn count(&mut self) -> Result<(), Error> {
        let since = self.ring.count()?;
        self.counted.stored += since.stored;
        self.counted.dropped += since.dropped;
        self.counts.set(self.output.stats.packets, self.counted.dropped);
        Ok(())
    }

    /// If packets never stop coming, a sink would keep them until its buffer is full.
    fn hand_on(&mut self) -> Result<(), Error> {
        let now = now();
        if (now.as_nanos() - self.handed_on.as_nanos()).unsigned_abs() < HAND_ON_EVERY.as_nanos() as u64 {
            return Ok(());
        }
        self.handed_on = now;
        self.output.sink.idle().map_err(Error::Write)
    }

    /// Interfaces come and go: one that is created again has a new index.
    fn look_for_interfaces(&mut self) -> Result<(), Error> {
        let now = now();
        if (now.as_nanos() - self.looked.as_nanos()).unsigned_abs() < LOOK_EVERY.as_nanos() as u64 {
            return Ok(());
        }
        self.looked = now;
        Ok(self.interfaces.follow(&self.ring)?)
    }

    fn sleep(&mut self) -> Result<Woken, Error> {
        let woken = self.poll(IDLE_MS)?;
        if let Some(error) = self.ring.take_error() {
            // The interface may come back (ENETDOWN), so the caller decides when the capture ends.
            self.output.stats.interrupted.get_or_insert_with(|| error.to_string());
        }
        Ok(woken)
    }

    fn poll(&self, timeout_ms: u32) -> Result<Woken, Error> {
        let mut fds = [PollFd::new(&self.ring, PollFlags::IN), PollFd::new(&self.wake, PollFlags::IN)];
        let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(timeout_ms) * 1_000_000 };
        match poll(&mut fds, Some(&timeout)) {
            Ok(0) => Ok(Woken::Nothing),
            Ok(_) if fds[1].revents().contains(PollFlags::IN) => {
                // Cleared, so that later polls wait for packets again.
                let _ = rustix::io::read(&self.wake, &mut [0_u8; 8]);
                Ok(Woken::Stop)
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(Woken::Packets),
            Err(errno) => Err(Error::Kernel(CallError { call: "poll", source: errno.into() })),
        }
    }
}

impl<S: Sink> Output<S> {
    fn write(&mut self, held: &Held) -> Result<(), Error> {
        self.stats.packets += 1;
        let packet = Packet { at: Instant::from_nanos(held.at_ns), len: held.len, data: &held.data };
        self.sink.packet(packet).map_err(Error::Write)
    }
}

/// The clock that stamps the packets.
pub(super) fn now() -> Instant {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
    Instant::from_nanos(time.tv_sec * 1_000_000_000 + time.tv_nsec)
}
