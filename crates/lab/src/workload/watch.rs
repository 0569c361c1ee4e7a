//! What limits a socket at each moment? Its `TCP_INFO`, sampled while the application runs.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration as StdDuration;

use tcpwhy_host::TcpInfo;

use super::log::{Sample, now};

/// Samples a socket on a separate thread.
pub(super) struct Watch {
    over: Arc<AtomicBool>,
    thread: JoinHandle<Vec<Sample>>,
}

impl Watch {
    /// Starts. `None` if there is no thread: the application goes first.
    pub(super) fn begin(socket: &OwnedFd, every: StdDuration) -> Option<Self> {
        let socket = socket.try_clone().ok()?;
        let over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&over);
        let thread = std::thread::Builder::new().name("watch".to_owned()).spawn(move || {
            let mut samples = Vec::new();
            while !ends.load(Ordering::Relaxed) && samples.len() < SAMPLES_MAX {
                let at_ns = now().as_nanos();
                let Ok(tcp_info) = TcpInfo::of(&socket) else { break };
                samples.push(Sample { at_ns, tcp_info });
                std::thread::sleep(every);
            }
            samples
        });
        Some(Self { over, thread: thread.ok()? })
    }

    /// Ends, and returns the samples.
    pub(super) fn end(self) -> Vec<Sample> {
        self.over.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_default()
    }
}

/// A minute at 2 ms.
const SAMPLES_MAX: usize = 30_000;
