//! Is the answer longer than the screen?
//!
//! Nobody knows before it is written, and by then this process may not start programs any more. So
//! a second process is started first, with the rights of the user and without access to the
//! captures: it receives the text, and when all of it is there it shows it as it is if it fits, and
//! with `$PAGER` (or `less -FRX`) if not.

use std::fs::File;
use std::io::{self, IsTerminal as _, Read as _, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::process::{Child, Command, Stdio};

/// The command that starts the second process.
pub(crate) const COMMAND: &str = "show-by-page";
/// At most this much is kept: the rest is shown as it comes.
const KEPT_MAX: u64 = 256 << 20;

/// The process that shows the answer at a terminal.
pub(crate) struct Pager(Child);

impl Pager {
    /// Starts one if standard output is a terminal and the user has not opted out (`PAGER` is empty
    /// or `cat`).
    pub(crate) fn start(wanted: bool) -> Option<Self> {
        let stdout = io::stdout();
        if !wanted || !stdout.is_terminal() || pager().is_none() {
            return None;
        }
        let terminal = stdout.as_fd().try_clone_to_owned().ok()?;
        // Its standard output only shows that it is alive; its standard error is the terminal.
        let mut command = Command::new(std::env::current_exe().ok()?);
        command.arg(COMMAND).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::from(terminal));
        command.spawn().ok().map(Self)
    }

    /// The descriptors that have to stay open.
    pub(crate) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let (stdin, stdout) = (self.0.stdin.as_ref(), self.0.stdout.as_ref());
        stdin.map(|stdin| stdin.as_fd()).into_iter().chain(stdout.map(|stdout| stdout.as_fd()))
    }

    pub(crate) fn write(&mut self, text: &str) -> io::Result<()> {
        self.0.stdin.as_mut().map_or(Ok(()), |stdin| stdin.write_all(text.as_bytes()))
    }

    /// Waits until the user has closed it.
    pub(crate) fn finish(mut self) {
        tcpwhy::input::stop::leave_signals_alone();
        drop(self.0.stdin.take());
        if let Some(mut alive) = self.0.stdout.take() {
            // Nothing comes but the end of file.
            let _ = alive.read_to_end(&mut Vec::new());
        }
    }
}

/// The pager's command; none if there is to be no pager.
#[expect(clippy::disallowed_methods, reason = "which pager is the user's choice")]
fn pager() -> Option<String> {
    match std::env::var("PAGER") {
        Ok(pager) if matches!(pager.trim(), "" | "cat") => None,
        Ok(pager) => Some(pager),
        Err(_) => Some("less -FRX".to_owned()),
    }
}

/// The second process: shows its standard input.
pub(crate) fn show() -> io::Result<()> {
    // Ctrl-C is for the pager.
    let _ = signal_hook::flag::register(signal_hook::consts::SIGINT, std::sync::Arc::default());
    let mut terminal = File::from(io::stderr().as_fd().try_clone_to_owned()?);
    let mut text = Vec::new();
    io::stdin().lock().take(KEPT_MAX).read_to_end(&mut text)?;
    let rows = terminal_size::terminal_size_of(&terminal).map_or(24, |(_, rows)| usize::from(rows.0));
    let lines = text.split(|byte| *byte == b'\n').count() - 1;
    let shown = match pager() {
        Some(pager) if lines >= rows => by(&pager, &terminal, &text),
        _ => Err(io::ErrorKind::Unsupported.into()),
    };
    match shown {
        // The user has seen enough and has closed the pager.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(_) => {
            terminal.write_all(&text)?;
            io::copy(&mut io::stdin().lock(), &mut terminal).map(|_| ())
        }
        Ok(()) => Ok(()),
    }
}

/// Through the shell, because `PAGER` may have options.
fn by(pager: &str, terminal: &File, text: &[u8]) -> io::Result<()> {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", pager]).env("LESS", less()).stdin(Stdio::piped());
    command.stdout(terminal.try_clone()?).stderr(terminal.try_clone()?);
    let mut child = command.spawn()?;
    let written = child.stdin.take().map_or(Ok(()), |mut stdin| {
        stdin.write_all(text).and_then(|()| io::copy(&mut io::stdin().lock(), &mut stdin).map(|_| ()))
    });
    // 127: the shell found no such program.
    if child.wait()?.code() == Some(127) { Err(io::ErrorKind::NotFound.into()) } else { written }
}

/// Keep colours and do not switch screens, unless the user has set options.
#[expect(clippy::disallowed_methods, reason = "which options less takes is the user's choice")]
fn less() -> String {
    std::env::var("LESS").unwrap_or_else(|_| "FRX".to_owned())
}
