//! Has somebody asked to stop, and what is still under way then?
//!
//! The first Ctrl-C or SIGTERM ends the inputs: what was read is billed. `tcpdump | tcpwhy` gets the signal on both sides of the
//! pipe, so a pipe is emptied before it ends: tcpdump hands over what it has buffered when it is told to stop.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Set by a signal.
static ASKED: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// What ends the process at the second signal.
#[cfg(unix)]
static SECOND: OnceLock<Vec<signal_hook::SigId>> = OnceLock::new();

/// A pipe from which nothing comes for so long after the request is empty ...
const QUIET: Duration = Duration::from_millis(300);
/// ... and one whose writer goes on is left after this.
const PATIENCE: Duration = Duration::from_secs(2);

/// The first Ctrl-C or SIGTERM from here on ends the inputs, the second one the process. Before the process gives up its rights.
///
/// # Errors
/// The system takes no handler.
#[cfg(unix)]
pub fn on_signals() -> std::io::Result<()> {
    use signal_hook::consts::{SIGINT, SIGTERM};
    let asked = ASKED.get_or_init(Arc::default);
    let mut second = Vec::new();
    for signal in [SIGINT, SIGTERM] {
        // In this order: the first one finds the flag down.
        second.push(signal_hook::flag::register_conditional_shutdown(
            signal,
            128 + signal,
            Arc::clone(asked),
        )?);
        signal_hook::flag::register(signal, Arc::clone(asked))?;
    }
    // Where this is asked for twice, the first ones stay.
    let _ = SECOND.set(second);
    Ok(())
}

/// From here on no signal ends the process: what is to come is the pager's.
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
    /// Waits until there is something to read, or its end. False where nothing more is to be read, because somebody asked.
    #[cfg(unix)]
    #[expect(
        clippy::disallowed_methods,
        reason = "how long to wait for a writer is no matter of the capture"
    )]
    pub(super) fn until_readable(&mut self, pipe: std::os::fd::BorrowedFd<'_>) -> bool {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        // Without a handler nobody can ask.
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
                // What is wrong with it, reading says.
                Ok(_) | Err(_) => return !self.gave_up,
            }
        }
        false
    }

    /// Whether reading ended because somebody asked.
    pub(super) fn gave_up(&self) -> bool {
        self.gave_up
    }
}
