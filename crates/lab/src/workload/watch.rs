//! What limits a socket from moment to moment? Its `TCP_INFO`, read again and again beside the application.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration as StdDuration;

use tcpwhy_host::TcpInfo;

use super::log::{Sample, now};

/// Samples a socket on a thread of its own.
pub(super) struct Watch {
    over: Arc<AtomicBool>,
    thread: JoinHandle<Vec<Sample>>,
}

impl Watch {
    /// Begins. `None` where there is no thread to be had: the application goes first.
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

    /// Ends, and says what was seen.
    pub(super) fn end(self) -> Vec<Sample> {
        self.over.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_default()
    }
}

/// A minute at 2 ms.
const SAMPLES_MAX: usize = 30_000;
