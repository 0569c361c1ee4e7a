//! What does the classic 40 ms stall look like, on this machine, now? Records the write-write-read
//! conversation on the real kernel, then the same with its client fixed, each with the readings of
//! the applications' own clocks.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration as StdDuration;

use rustix::thread::UnshareFlags;
use tcpwhy_host::capture::{self, Capture, Filter, Options};

use crate::folder::Folder;
use crate::netlink::Netlink;
use crate::sys;
use crate::truth::Truth;
use crate::workload::{self, Here, ScriptError, Workload};

/// Exchanges of one recording.
pub const EXCHANGES: u32 = 40;
/// The request's two parts and the reply.
pub const HEAD_BYTES: u32 = 20;
/// See `HEAD_BYTES`.
pub const BODY_BYTES: u32 = 100;
/// See `HEAD_BYTES`.
pub const REPLY_BYTES: u32 = 64;

/// Both recordings.
#[derive(Clone, Debug, PartialEq)]
pub struct Demo {
    /// Where they were made.
    pub place: Place,
    /// The client writes head and body by two calls: `split.pcapng`.
    pub split: Recording,
    /// The client writes them by one call: `fixed.pcapng`.
    pub fixed: Recording,
}

/// Where a recording was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// On the loopback interface of a private network namespace: nothing else can be in the
    /// capture.
    OwnNamespace,
    /// On the machine's loopback interface.
    Loopback,
}

/// One recorded conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct Recording {
    /// The capture.
    pub capture: PathBuf,
    /// The truth for it.
    pub truth_file: PathBuf,
    /// The capture's counts.
    pub stats: capture::Stats,
    /// The readings of the applications' clocks.
    pub truth: Truth,
}

/// Why there is no recording. The text says what would allow one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Unavailable {
    /// No packets can be captured here.
    #[error(transparent)]
    Capture(#[from] capture::Error),
    /// The recording could not be written.
    #[error("cannot write {}: {source}", file.display())]
    File {
        /// The file to be written.
        file: PathBuf,
        /// Why writing failed.
        source: io::Error,
    },
    /// The conversation itself failed.
    #[error("the demonstration's conversation failed: {0}")]
    Conversation(String),
    /// The laboratory could not be set up.
    #[error(transparent)]
    Lab(#[from] crate::Error),
}

/// Records both forms into `dir`, which is created. Takes about two seconds.
///
/// Uses a private network namespace if this process may create one: as root, or after
/// [`enter_user_namespace`](crate::enter_user_namespace) at the start of `main`.
///
/// # Errors
/// No capture is possible here, or it cannot be written.
pub fn record(dir: &Path) -> Result<Demo, Unavailable> {
    let dir = Folder::make(dir).map_err(|source| Unavailable::File { file: dir.to_owned(), source })?;
    // On a separate thread, whose namespace ends with it.
    let thread = std::thread::Builder::new().name("demo".to_owned()).spawn(move || {
        let place = enter_own_namespace();
        let split = conversation(&dir, "split", &format!("write {HEAD_BYTES}\nwrite {BODY_BYTES}"))?;
        let fixed = conversation(&dir, "fixed", &format!("write {}", HEAD_BYTES + BODY_BYTES))?;
        Ok(Demo { place, split, fixed })
    });
    match thread.map_err(crate::Error::step("start a thread"))?.join() {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

/// Without the right to create one, the machine's own loopback interface is used.
fn enter_own_namespace() -> Place {
    let lo_up = || {
        sys::unshare(UnshareFlags::NEWNET)?;
        Netlink::open()?.link_up("lo", None, None)
    };
    match lo_up() {
        Ok(()) => Place::OwnNamespace,
        Err(_) => Place::Loopback,
    }
}

fn conversation(dir: &Folder, name: &str, request: &str) -> Result<Recording, Unavailable> {
    let request_bytes = HEAD_BYTES + BODY_BYTES;
    let script = |text: String| {
        text.parse().map_err(|error: ScriptError| Unavailable::Conversation(error.to_string()))
    };
    let workload = Workload {
        port: 0,
        call_limit: StdDuration::from_secs(10),
        watch_every: None,
        ..Workload::new(
            script(format!("connect\nrepeat {EXCHANGES}\n{request}\nread {REPLY_BYTES}\nend"))?,
            script(format!("accept\nrepeat\nread {request_bytes}\nwrite {REPLY_BYTES}\nend"))?,
        )
    };
    let prepared = workload::prepare(&workload, &Here, &Here, 0)?;
    let port = prepared.server_address().port();

    let (capture, truth_name) = (format!("{name}.pcapng"), format!("{name}.truth.json"));
    let (file, truth_file) = (dir.join(&capture), dir.join(&truth_name));
    let failed = |file: &Path| {
        let file = file.to_owned();
        |source| Unavailable::File { file, source }
    };
    let out = dir.create(&capture).map_err(failed(&file))?;
    let options = Options {
        filter: Filter { port: Some(port), ..Filter::default() },
        comment: format!("tcpwhy demo: {EXCHANGES} exchanges, {}", request.replace('\n', ", ")),
        ..Options::new("lo")
    };
    let capture = Capture::start(options, out)?;
    let run = prepared.run()?;
    workload::settle(&[&Here], port, StdDuration::from_secs(1));
    let stats = capture.stop()?;
    if let Some(failure) = run.failure() {
        return Err(Unavailable::Conversation(failure.to_owned()));
    }
    let truth = Truth { scenario: Some(format!("demo-{name}")), ..Truth::of(&run) };
    let json = serde_json::to_vec(&truth).map_err(io::Error::from).map_err(failed(&truth_file))?;
    dir.write_whole(&truth_name, &json).map_err(failed(&truth_file))?;
    Ok(Recording { capture: file, truth_file, stats, truth })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stall_is_there_and_one_write_fixes_it() {
        let private = crate::private::Private::make("tcpwhy-test-demo-").unwrap();
        let dir = private.path().join("demo");
        let demo = match record(&dir) {
            Ok(demo) => demo,
            Err(Unavailable::Capture(error)) if error.is_impossible_here() => {
                return crate::test_support::skip("the_stall_is_there_and_one_write_fixes_it", &error);
            }
            Err(error) => panic!("{error}"),
        };
        let (split, fixed) = (demo.split.truth.elapsed(), demo.fixed.truth.elapsed());
        assert_eq!((split.len(), fixed.len()), (EXCHANGES as usize, EXCHANGES as usize));
        // The first exchange meets quick acknowledgements; after that, each is held by a delayed
        // ACK of 40 ms plus the timer's rounding (tcp_send_delayed_ack). A busy machine may miss
        // some.
        let stalls = split.iter().filter(|elapsed| (39.0..60.0).contains(&elapsed.as_millis_f64())).count();
        assert!(stalls >= 35, "{split:?}");
        let quick = fixed.iter().filter(|elapsed| elapsed.as_millis_f64() < 10.0).count();
        assert!(quick >= 38, "{fixed:?}");
        for recording in [&demo.split, &demo.fixed] {
            // SYN, SYN-ACK, ACK; at least a request and a reply for each exchange; FIN both ways.
            assert!(recording.stats.packets >= 3 + 2 * u64::from(EXCHANGES) + 3, "{:?}", recording.stats);
            assert_eq!((recording.stats.dropped, recording.stats.unread), (0, 0));
            let read: Truth = serde_json::from_slice(&std::fs::read(&recording.truth_file).unwrap()).unwrap();
            assert_eq!(read, recording.truth);
        }
        assert!(demo.split.truth.counters.server["TcpExt.DelayedACKs"] >= 35);
        drop(private);
    }
}
