//! What is the answer so far? Printed at intervals while a pipe goes on.

use std::cell::Cell;
#[cfg(target_os = "linux")]
use std::cell::RefCell;
use std::io::Write as _;
use std::time::{Duration, Instant};

use tcpwhy::threads::Engine;
#[cfg(target_os = "linux")]
use tcpwhy_report::escape::json_line;
use tcpwhy_report::quantity::{count, time};
use tcpwhy_report::{Style, answer, text};

use crate::cli::InputArgs;
#[cfg(target_os = "linux")]
use crate::live::so_far::Before;

/// Tells when the next answer is due.
pub(crate) struct Interim {
    every: Option<Duration>,
    began: Instant,
    last: Cell<Instant>,
    due: Cell<bool>,
    /// Print lines of `tcpwhy live`, relative to the previous one.
    #[cfg(target_os = "linux")]
    is_live: bool,
    #[cfg(target_os = "linux")]
    before: RefCell<Before>,
}

impl Interim {
    #[expect(
        clippy::disallowed_methods,
        reason = "how often somebody wants to be told is no matter of the capture"
    )]
    pub(crate) fn of(args: &InputArgs) -> Self {
        let now = Instant::now();
        Self {
            every: args.every,
            began: now,
            last: Cell::new(now),
            due: Cell::new(false),
            #[cfg(target_os = "linux")]
            is_live: args.is_live(),
            #[cfg(target_os = "linux")]
            before: RefCell::default(),
        }
    }

    /// Looks at the clock after each read.
    pub(crate) fn on_progress(&self) {
        if let Some(every) = self.every {
            self.due.set(self.last.get().elapsed() >= every);
        }
    }

    #[inline]
    pub(crate) fn is_due(&self) -> bool {
        self.due.get()
    }

    /// Prints the answer so far.
    #[expect(clippy::disallowed_methods, reason = "as above")]
    pub(crate) fn show(&self, engine: &Engine, packets: u64, style: Style) {
        self.due.set(false);
        self.last.set(Instant::now());
        let Some(report) = engine.so_far() else { return };
        #[cfg(target_os = "linux")]
        if self.is_live {
            let answer = self.before.borrow_mut().tell(&report, packets, self.began.elapsed());
            let mut stdout = std::io::stdout().lock();
            if let Ok(line) = json_line(&answer) {
                let _ = stdout.write_all(line.as_bytes()).and_then(|()| stdout.flush());
            }
            return;
        }
        let after = i64::try_from(self.began.elapsed().as_nanos()).unwrap_or(i64::MAX);
        let head = format!(
            "== after {}: {} packets",
            time(tcpwhy_wire::Duration::from_nanos(after)),
            count(packets)
        );
        let mut out = text::faint(&head, style) + "\n";
        for line in text::wrapped(&answer(&report), style) {
            out += &(line + "\n");
        }
        out += &text::bill(&report, style);
        // A reader that has gone away is reported at the end.
        let mut stdout = std::io::stdout().lock();
        let _ = stdout.write_all((out + "\n").as_bytes()).and_then(|()| stdout.flush());
    }
}
