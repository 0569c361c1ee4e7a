//! What do tests of running systems need? Two hosts with a path between them, faulty applications
//! on them, and their clocks.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tcpwhy_lab::{Error, Host, Pair, PairOptions, PathSpec};

/// Times below a millisecond are measured by one laboratory at a time; others may run in parallel.
static ALONE: RwLock<()> = RwLock::new(());

/// A test's own laboratory.
pub(crate) struct Lab {
    pub(crate) pair: Pair,
    _alone: Turn,
}

/// What may run in parallel.
enum Turn {
    Beside { _others: RwLockReadGuard<'static, ()> },
    Alone { _all: RwLockWriteGuard<'static, ()> },
}

/// A laboratory with this round trip; `None`, with a message, if the machine does not allow it.
/// Without a round trip, times are short, and it runs exclusively.
pub(crate) fn lab(test: &str, rtt_ms: i64) -> Option<Lab> {
    build(test, rtt_ms, rtt_ms == 0)
}

/// A laboratory without a round trip, for tests that do not measure times: in parallel with others.
pub(crate) fn beside(test: &str) -> Option<Lab> {
    build(test, 0, false)
}

fn build(test: &str, rtt_ms: i64, alone: bool) -> Option<Lab> {
    let turn = if alone {
        Turn::Alone { _all: ALONE.write().unwrap_or_else(PoisonError::into_inner) }
    } else {
        Turn::Beside { _others: ALONE.read().unwrap_or_else(PoisonError::into_inner) }
    };
    let path = PathSpec::delay(tcpwhy_wire::Duration::from_millis(rtt_ms));
    if !rustix::process::geteuid().is_root() {
        skip(test, "only root looks into the hosts of a laboratory");
        return None;
    }
    match Pair::build(&PairOptions { path, ..PairOptions::default() }) {
        Ok(pair) => Some(Lab { pair, _alone: turn }),
        Err(error @ Error::NotPermitted { .. }) => {
            skip(test, &error.to_string());
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Other programs may take the processor for any length of time; a test that fails three times has
/// another cause.
pub(crate) fn thrice(test: impl Fn()) {
    for _ in 0..2 {
        if std::panic::catch_unwind(std::panic::AssertUnwindSafe(&test)).is_ok() {
            return;
        }
    }
    test();
}

#[expect(clippy::disallowed_methods, reason = "CI is where a test may not be skipped")]
pub(crate) fn skip(test: &str, why: &str) {
    assert!(std::env::var("CI").is_err(), "{test} was skipped in CI: {why}");
    eprintln!("skipping {test}: {why}");
}

/// A running application that prints its measurements. It ends with its host at the latest.
pub(crate) struct App {
    pub(crate) child: Child,
    said: Arc<Mutex<Vec<String>>>,
}

impl App {
    /// Starts a mode of `app.py` and waits until it is ready.
    pub(crate) fn start(host: &Host, words: &[&str]) -> Self {
        let mut command = Command::new("python3");
        command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/running/app.py")).args(words);
        let app = Self::run(host, command);
        app.wait_for(1);
        app
    }

    /// Starts any program that prints lines.
    pub(crate) fn run(host: &Host, mut command: Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = host.spawn(command).expect("the program starts");
        let said = Arc::new(Mutex::new(Vec::new()));
        let (out, into) = (child.stdout.take().expect("a pipe"), Arc::clone(&said));
        std::thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                into.lock().unwrap_or_else(PoisonError::into_inner).push(line);
            }
        });
        Self { child, said }
    }

    /// By this machine's numbers.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    fn lines(&self) -> MutexGuard<'_, Vec<String>> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until it has printed this many lines.
    pub(crate) fn wait_for(&self, lines: usize) {
        for _ in 0..3_000 {
            if self.lines().len() >= lines {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("it said no more than {:?}", self.lines());
    }

    /// How many lines it has printed.
    pub(crate) fn said(&self) -> usize {
        self.lines().len()
    }

    /// The median of its next `count` clock readings, without the first: that one began earlier.
    pub(crate) fn median_s(&self, count: usize) -> f64 {
        let from = self.said() + 1;
        self.wait_for(from + count);
        self.median_of_s(from, count)
    }

    /// The median of `count` clock readings from this line on.
    pub(crate) fn median_of_s(&self, from: usize, count: usize) -> f64 {
        let mut times: Vec<f64> =
            self.lines()[from..from + count].iter().map(|line| line.parse().expect("a time")).collect();
        times.sort_by(f64::total_cmp);
        times[count / 2]
    }
}

impl Drop for App {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `tcpwhy` with these words, outside of all namespaces.
pub(crate) fn tcpwhy(words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tcpwhy"));
    command.args(words).stdin(Stdio::null()).output().expect("tcpwhy starts")
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// `tcpwhy live --json` with these words, ended by Ctrl-C as soon as an answer matches; all its
/// output.
#[track_caller]
pub(crate) fn live_until(words: &[&str], mut is_it: impl FnMut(&Value) -> bool) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tcpwhy"));
    command.args(["live", "--json", "--every", "300ms", "--for", "25s"]).args(words);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("it starts");
    let mut all = String::new();
    let mut found = false;
    for line in BufReader::new(child.stdout.take().expect("a pipe")).lines().map_while(Result::ok) {
        let answer: Value = serde_json::from_str(&line).unwrap_or_default();
        if !found && answer["schema"] == "tcpwhy.live/1" && is_it(&answer) {
            found = true;
            kill_process(Pid::from_raw(child.id() as i32).expect("a pid"), Signal::INT).expect("it runs");
        }
        all += &(line + "\n");
    }
    let status = child.wait().expect("it ends");
    assert!(status.success() && found, "{status}: {all}");
    all
}
