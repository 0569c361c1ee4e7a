//! What do tests of running systems need? Two hosts with a path between them, faulty applications on them, and their clocks.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tcpwhy_lab::{Error, Host, HostSpec, Pair, PairOptions, PathSpec};

/// Times are measured: one laboratory at a time.
static ALONE: Mutex<()> = Mutex::new(());

/// A laboratory of its own.
pub(crate) struct Lab {
    pub(crate) pair: Pair,
    _alone: MutexGuard<'static, ()>,
}

/// One with this round trip; `None`, said aloud, where the machine does not allow it.
pub(crate) fn lab(test: &str, rtt_ms: i64) -> Option<Lab> {
    with(test, rtt_ms, HostSpec::default())
}

/// The same with this server.
pub(crate) fn with(test: &str, rtt_ms: i64, server: HostSpec) -> Option<Lab> {
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let path = PathSpec::delay(tcpwhy_wire::Duration::from_millis(rtt_ms));
    if !rustix::process::geteuid().is_root() {
        skip(test, "only root looks into the hosts of a laboratory");
        return None;
    }
    match Pair::build(&PairOptions { path, server, ..PairOptions::default() }) {
        Ok(pair) => Some(Lab { pair, _alone: alone }),
        Err(error @ Error::NotPermitted { .. }) => {
            skip(test, &error.to_string());
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Other programs may take the processor for as long as they like; what fails three times is not theirs.
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

/// An application that runs and says what it measures. It ends with its host at the latest.
pub(crate) struct App {
    pub(crate) child: Child,
    said: Arc<Mutex<Vec<String>>>,
}

impl App {
    /// Starts one of `app.py` and waits until it is ready.
    pub(crate) fn start(host: &Host, words: &[&str]) -> Self {
        let mut command = Command::new("python3");
        command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/running/app.py")).args(words);
        let app = Self::run(host, command);
        app.wait_for(1);
        app
    }

    /// Starts any program that speaks in lines.
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

    /// As this machine numbers it.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    fn lines(&self) -> MutexGuard<'_, Vec<String>> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until it has said so many lines.
    pub(crate) fn wait_for(&self, lines: usize) {
        for _ in 0..3_000 {
            if self.lines().len() >= lines {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("it said no more than {:?}", self.lines());
    }

    /// How many lines it has said.
    pub(crate) fn said(&self) -> usize {
        self.lines().len()
    }

    /// The median of its next `count` clock readings, the first one left out: it began before.
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

/// `tcpwhy` with these words, from outside of all namespaces.
pub(crate) fn tcpwhy(words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tcpwhy"));
    command.args(words).stdin(Stdio::null()).output().expect("tcpwhy starts")
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
