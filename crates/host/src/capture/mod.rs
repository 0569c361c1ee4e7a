//! Which packets pass an interface now, and when?
//!
//! [`Capture::start`] records an interface of the calling thread's network namespace as pcapng; the capture is live when
//! it returns. [`Capture::stop`] returns when everything that had arrived by then is written.
//!
//! ```no_run
//! use tcpwhy_host::capture::{Capture, Filter, Options};
//!
//! # fn main() -> Result<(), tcpwhy_host::capture::Error> {
//! let file = std::fs::File::create("client.pcapng").map_err(tcpwhy_host::capture::Error::Write)?;
//! let options = Options { filter: Filter { port: Some(8080), ..Filter::default() }, ..Options::new("lo") };
//! let capture = Capture::start(options, file)?;
//! // ... traffic ...
//! let stats = capture.stop()?;
//! println!("{} packets, {} dropped", stats.packets, stats.dropped);
//! # Ok(())
//! # }
//! ```

mod confined;
mod error;
mod filter;
mod interfaces;
mod link;
mod order;
mod pcapng;
mod reader;
mod ring;

use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use rustix::event::{EventfdFlags, eventfd};
use tcpwhy_wire::Instant;
use tcpwhy_wire::capture::LinkType;

pub use error::Error;
pub use filter::{End, Filter};
pub use ring::CallError;

/// What to capture and how to describe it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// An interface of the calling thread's network namespace, several separated by commas, or
    /// `any`. An interface that goes away is captured again when it comes back.
    pub interface: String,
    /// What the kernel copies into the ring.
    pub filter: Filter,
    /// Bytes kept of each packet. The default holds every header that TCP can have, and little
    /// payload.
    pub snaplen: u32,
    /// Memory for packets that the sink has not taken yet.
    pub ring_bytes: usize,
    /// The capturing program, for the file's header.
    pub application: String,
    /// The command line, or another explanation of where the capture comes from.
    pub comment: String,
}

impl Options {
    /// Everything that is TCP on `interface`.
    pub fn new(interface: impl Into<String>) -> Self {
        Self {
            interface: interface.into(),
            filter: Filter::default(),
            snaplen: DEFAULT_SNAPLEN_BYTES,
            ring_bytes: DEFAULT_RING_BYTES,
            application: concat!("tcpwhy ", env!("CARGO_PKG_VERSION")).to_owned(),
            comment: String::new(),
        }
    }
}

/// Ethernet with two VLAN tags, IPv6 with a 24-byte extension header, TCP with all of its options.
const DEFAULT_SNAPLEN_BYTES: u32 = 14 + 8 + 40 + 24 + 60 + 14;
const DEFAULT_RING_BYTES: usize = 16 << 20;

/// Description of a capture file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// The link type of the packets.
    pub link: LinkType,
    /// Bytes kept of each packet.
    pub snaplen: u32,
    /// The interface's name.
    pub interface: String,
    /// The kernel's filter, in tcpdump's language.
    pub filter: String,
    /// The program that captures.
    pub application: String,
    /// The command line.
    pub comment: String,
    /// System, release and version of the kernel.
    pub os: String,
    /// The machine.
    pub hardware: String,
}

/// One captured packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// When the tap saw it, by the host's clock.
    pub at: Instant,
    /// Bytes on the link.
    pub len: u32,
    /// The captured bytes.
    pub data: &'a [u8],
}

/// The result of a capture.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Packets given to the sink.
    pub packets: u64,
    /// Packets lost because the ring was full.
    pub dropped: u64,
    /// Packets that the kernel counted into the ring but did not hand over in time. Zero unless the
    /// kernel is stuck.
    pub unread: u64,
    /// Why the interface stopped delivering packets before [`Capture::stop`], if so: it went down
    /// or away.
    pub interrupted: Option<String>,
    /// When the capture became live.
    pub started: Instant,
    /// When it was stopped.
    pub stopped: Instant,
}

/// The counts of a capture so far.
#[derive(Clone, Debug, Default)]
pub struct Counts(Arc<[AtomicU64; 2]>);

impl Counts {
    /// Packets given to the sink, as of some milliseconds ago.
    pub fn packets(&self) -> u64 {
        self.0[0].load(Ordering::Relaxed)
    }

    /// Packets lost because the ring was full.
    pub fn dropped(&self) -> u64 {
        self.0[1].load(Ordering::Relaxed)
    }

    fn set(&self, packets: u64, dropped: u64) {
        self.0[0].store(packets, Ordering::Relaxed);
        self.0[1].store(dropped, Ordering::Relaxed);
    }
}

/// Takes packets in the order in which they passed. Runs on the capture's own thread. An error ends
/// the capture, and [`Capture::stop`] returns it.
#[expect(clippy::missing_errors_doc, reason = "the sink's own errors; what they lead to stands on the trait")]
pub trait Sink: Send + 'static {
    /// Called once, before [`Capture::start`] returns.
    fn begin(&mut self, description: &Description) -> io::Result<()>;
    /// Called for every packet.
    fn packet(&mut self, packet: Packet<'_>) -> io::Result<()>;
    /// Called when no packet is waiting, and every 100 ms if packets never stop coming: a reader
    /// that follows the capture should see them.
    fn idle(&mut self) -> io::Result<()>;
    /// Called once, after the last packet.
    fn end(&mut self, stats: &Stats) -> io::Result<()>;
}

/// Replaces the filter of a running capture; this needs no rights of its own.
#[derive(Clone, Debug, Default)]
pub struct Narrow(Arc<Mutex<Option<Filter>>>);

impl Narrow {
    /// Takes effect some hundredths of a second later, for packets that pass from then on.
    pub fn set(&self, filter: Filter) {
        *self.slot() = Some(filter);
    }

    fn slot(&self) -> MutexGuard<'_, Option<Filter>> {
        // No thread panics while holding it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A running capture. Dropping it stops it, and discards the result of [`Capture::stop`].
#[derive(Debug)]
pub struct Capture {
    wake: OwnedFd,
    counts: Counts,
    narrow: Narrow,
    reader: Option<JoinHandle<Result<Stats, Error>>>,
}

impl Capture {
    /// Starts to record `options.interface` as pcapng.
    ///
    /// # Errors
    /// See [`Error`]; [`Error::is_impossible_here`] tells missing rights from a mistake in the options.
    pub fn start(options: Options, sink: impl Write + Send + 'static) -> Result<Self, Error> {
        Self::start_into(options, pcapng::Pcapng::new(sink))
    }

    /// The same, but calls `confine` once the interface is open, in the calling thread and before
    /// the capturing thread starts: neither thread keeps the rights that it gives up.
    ///
    /// # Errors
    /// As [`Capture::start`]; [`Error::Write`] with the error of `confine`.
    pub fn start_confined(
        options: Options,
        sink: impl Write + Send + 'static,
        confine: impl FnOnce() -> io::Result<()> + Send + 'static,
    ) -> Result<Self, Error> {
        Self::start_into(options, confined::Confined::new(pcapng::Pcapng::new(sink), confine))
    }

    /// Starts to capture into any sink.
    ///
    /// # Errors
    /// As [`Capture::start`].
    pub fn start_into(options: Options, mut sink: impl Sink) -> Result<Self, Error> {
        let (ring, link, interfaces) = reader::open(&options)?;
        let started = reader::now();
        let system = rustix::system::uname();
        let part = |text: &std::ffi::CStr| text.to_string_lossy().into_owned();
        let description = Description {
            link: link.link_type(),
            snaplen: options.snaplen,
            interface: options.interface,
            filter: options.filter.to_string(),
            application: options.application,
            comment: options.comment,
            os: [part(system.sysname()), part(system.release()), part(system.version())].join(" "),
            hardware: part(system.machine()),
        };
        sink.begin(&description).map_err(Error::Write)?;
        let failed =
            |call| move |errno: rustix::io::Errno| Error::Kernel(CallError { call, source: errno.into() });
        let wake = eventfd(0, EventfdFlags::CLOEXEC).map_err(failed("eventfd"))?;
        let woken = wake.try_clone().map_err(|source| Error::Kernel(CallError { call: "dup", source }))?;
        let (counts, narrow) = (Counts::default(), Narrow::default());
        let of_reader = (woken, counts.clone(), narrow.clone());
        let reader = std::thread::Builder::new()
            .name("tcpwhy-capture".to_owned())
            .spawn(move || reader::Reader::new((ring, link, interfaces), of_reader, started, sink).run())
            .map_err(|source| Error::Kernel(CallError { call: "clone", source }))?;
        Ok(Self { wake, counts, narrow, reader: Some(reader) })
    }

    /// Replaces its filter.
    pub fn narrow(&self) -> Narrow {
        self.narrow.clone()
    }

    /// Its counts, updated while it runs.
    pub fn counts(&self) -> Counts {
        self.counts.clone()
    }

    /// Whether the capture has ended by itself, because the sink failed. [`Capture::stop`] returns
    /// the reason.
    pub fn has_ended(&self) -> bool {
        self.reader.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Ends the capture once everything that has arrived by now is in the sink.
    ///
    /// # Errors
    /// [`Error::Write`] if the sink failed, now or before; [`Error::Kernel`] if the ring did.
    pub fn stop(mut self) -> Result<Stats, Error> {
        self.join().expect("stop consumes the capture: the reader has not been joined before")
    }

    fn join(&mut self) -> Option<Result<Stats, Error>> {
        let reader = self.reader.take()?;
        // The counter cannot overflow by one, and a reader that has ended does not need to be woken.
        let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
        match reader.join() {
            Ok(result) => Some(result),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            drop(self.join());
        }
    }
}
