//! Which sockets are findings about, who owns them, and which options are set? A separate process
//! answers, which keeps the rights for that and sees only addresses from packets.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::IpAddr;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tcpwhy_sockets::namespace::Namespace;
use tcpwhy_view::{Answer, Socket};

use super::owned::Whose;

/// Not asked more often: each answer walks all sockets and, for owners, all descriptors.
const EVERY: Duration = Duration::from_secs(2);
/// Endpoints asked about, those of the most expensive findings.
const ENDPOINTS_MAX: usize = 32;
/// An answer is one line, at most this long.
const LINE_BYTES_MAX: u64 = 1 << 20;

/// The process, and its answers.
pub(super) struct Facts {
    child: Child,
    /// Taken by `listen`.
    answers: Option<ChildStdout>,
    asks: Option<ChildStdin>,
    known: Arc<Mutex<Known>>,
    asked: Option<Instant>,
    /// Whether sockets are asked about.
    joins: bool,
}

/// One line from the process.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Line {
    /// The sockets of the endpoints that were asked about.
    Sockets(Vec<Socket>),
    /// The ends of the processes whose packets are captured, whenever there are new ones.
    Ends { ends: Vec<(Option<IpAddr>, u16)> },
}

#[derive(Default)]
struct Known {
    sockets: Vec<Socket>,
    /// An answer is due.
    is_due: bool,
}

impl Facts {
    /// Starts it with the rights that this process still has, for captures in this network
    /// namespace; `None` if that fails. It follows the sockets of `whose`; if `joins` is set, it
    /// answers about the sockets of findings.
    pub(super) fn start(namespace: &Namespace, whose: Option<&Whose>, joins: bool) -> Option<Self> {
        let this = std::env::current_exe().ok()?;
        let mut command = Command::new(this);
        command.args(["sockets", "--facts", &namespace.inode.to_string()]).process_group(0);
        if let Some(whose) = whose {
            command.args(["--facts-of", &whose.to_string()]);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().ok()?;
        let (asks, answers) = (child.stdin.take(), child.stdout.take());
        Some(Self { child, answers, asks, known: Arc::default(), asked: None, joins })
    }

    /// Listens to it on a separate thread. A thread inherits the rights of its creator: this
    /// process must have given up its own first. `on_ends` receives the ends of the processes that
    /// are followed.
    pub(super) fn listen(
        &mut self,
        on_ends: impl Fn(Vec<(Option<IpAddr>, u16)>) + Send + 'static,
    ) -> std::io::Result<()> {
        let Some(answers) = self.answers.take() else { return Ok(()) };
        let told = Arc::clone(&self.known);
        let listen = move || {
            let mut answers = BufReader::new(answers);
            loop {
                let mut line = Vec::new();
                match answers.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line) {
                    Ok(0) | Err(_) => return,
                    Ok(_) => {}
                }
                match serde_json::from_slice(&line) {
                    Ok(Line::Sockets(sockets)) => {
                        *told.lock().unwrap_or_else(PoisonError::into_inner) =
                            Known { sockets, is_due: false };
                    }
                    Ok(Line::Ends { ends }) => on_ends(ends),
                    Err(_) => return,
                }
            }
        };
        std::thread::Builder::new().name("tcpwhy-facts".to_owned()).spawn(listen).map(drop)
    }

    /// Adds what is known to the answer, and asks about the endpoints for the next one.
    pub(super) fn join(&mut self, answer: &mut Answer) {
        if !self.joins {
            return;
        }
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        answer.join(&known.sockets);
        let due = self.asked.is_none_or(|asked| asked.elapsed() >= EVERY);
        if !due || known.is_due {
            return;
        }
        let mut endpoints: Vec<&str> = answer.endpoints().collect();
        endpoints.dedup();
        endpoints.truncate(ENDPOINTS_MAX);
        if endpoints.is_empty() {
            return;
        }
        known.is_due = true;
        self.asked = Some(now());
        // A process that has ended tells nothing new; its last answer stays.
        let asked = self.asks.as_mut().map(|asks| writeln!(asks, "{}", endpoints.join(" ")));
        if asked.is_some_and(|asked| asked.is_err()) {
            self.asks = None;
        }
    }
}

impl Drop for Facts {
    fn drop(&mut self) {
        // It ends when its input ends.
        self.asks = None;
        let _ = self.child.wait();
    }
}

#[expect(clippy::disallowed_methods, reason = "how often to ask is a matter of the clock")]
fn now() -> Instant {
    Instant::now()
}
