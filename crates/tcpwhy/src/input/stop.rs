//! Has the user asked to stop, and which packets still count then?
//!
//! The first Ctrl-C or SIGTERM ends the inputs: what was read is billed. In `tcpdump | tcpwhy` both
//! processes get the signal, so the pipe is drained before it ends: tcpdump flushes its buffer when
//! it is told to stop.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Set by a signal.
static ASKED: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// The handlers that end the process at the second signal.
#[cfg(unix)]
static SECOND: OnceLock<Vec<signal_hook::SigId>> = OnceLock::new();

/// A pipe that stays silent this long after the request is empty ...
const QUIET: Duration = Duration::from_millis(300);
/// ... and a pipe whose writer goes on is abandoned after this.
const PATIENCE: Duration = Duration::from_secs(2);

/// From here on the first Ctrl-C or SIGTERM ends the inputs, and the second the process. Call it
/// before the process gives up its rights.
///
/// # Errors
/// The system does not accept a handler.
#[cfg(unix)]
pub fn on_signals() -> std::io::Result<()> {
    use signal_hook::consts::{SIGINT, SIGTERM};
    let asked = ASKED.get_or_init(Arc::default);
    let mut second = Vec::new();
    for signal in [SIGINT, SIGTERM] {
        // In this order: at the first signal, the shutdown handler runs before the flag is set.
        second.push(signal_hook::flag::register_conditional_shutdown(
            signal,
            128 + signal,
            Arc::clone(asked),
        )?);
        signal_hook::flag::register(signal, Arc::clone(asked))?;
    }
    // If this is called twice, the first handlers stay.
    let _ = SECOND.set(second);
    Ok(())
}

/// From here on no signal ends the process: signals are for the pager.
#[cfg(unix)]
pub fn leave_signals_alone() {
    for id in SECOND.get().into_iter().flatten() {
        signal_hook::low_level::unregister(*id);
    }
}

/// Whether the inputs are to end.
pub fn is_asked() -> bool {
    ASKED.get().is_some_and(|asked| asked.load(Ordering::Relaxed))
}

/// How long a pipe is waited for.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    /// When the request was noticed.
    since: Option<Instant>,
    gave_up: bool,
}

impl Waiting {
    /// Waits until there is something to read, or end of file. False if nothing more is to be read
    /// because the user asked to stop.
    #[cfg(unix)]
    #[expect(
        clippy::disallowed_methods,
        reason = "how long to wait for a writer is no matter of the capture"
    )]
    pub(super) fn until_readable(&mut self, pipe: std::os::fd::BorrowedFd<'_>) -> bool {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        // Without a handler, no request is possible.
        if ASKED.get().is_none() {
            return true;
        }
        let step = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
        let mut quiet = Duration::ZERO;
        while !self.gave_up {
            let ready = poll(&mut [PollFd::new(&pipe, PollFlags::IN)], Some(&step));
            if is_asked() {
                let since = *self.since.get_or_insert_with(Instant::now);
                quiet += Duration::from_millis(100);
                self.gave_up = since.elapsed() > PATIENCE || quiet > QUIET;
            }
            match ready {
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                // If there is an error, reading reports it.
                Ok(_) | Err(_) => return !self.gave_up,
            }
        }
        false
    }

    /// Whether reading ended on the user's request.
    pub(super) fn gave_up(&self) -> bool {
        self.gave_up
    }
}
