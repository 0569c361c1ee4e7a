//! How do packets of an interface reach a reader without rights? Through a pipe: this process
//! captures and parses nothing, and another, `tcpwhy read -`, parses in its sandbox and has nothing
//! to do with the capture.

use std::fs::File;
use std::io::{self, PipeWriter, Write};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, anyhow};
use rustix::thread::{CapabilitySet, CapabilitySets};
use tcpwhy_host::capture::{Capture, Counts, Narrow, Options, Stats};
use tcpwhy_sockets::namespace::Namespace;

use crate::live::Recent;

/// Where packets go besides the reader.
#[derive(Default)]
pub(crate) struct Copies {
    pub(crate) file: Option<File>,
    pub(crate) recent: Option<Recent>,
}

/// A running capture and its reader.
pub(crate) struct Feed {
    capture: Capture,
    pub(crate) reader: Child,
}

/// Gives up every capability of the calling thread, and of the threads and programs that it starts.
pub(crate) fn give_up_rights() -> io::Result<()> {
    rustix::thread::set_no_new_privs(true)?;
    let none = CapabilitySet::empty();
    rustix::thread::set_capabilities(
        None,
        CapabilitySets { effective: none, permitted: none, inheritable: none },
    )?;
    Ok(())
}

impl Feed {
    /// Starts a capture and its reader, `tcpwhy` with these words. Captured packets go into
    /// `copies` as well. Once the interface is open, neither process has a capability.
    pub(crate) fn start(
        options: Options,
        namespace: &Namespace,
        words: &[String],
        copies: Copies,
        stdout: Stdio,
    ) -> anyhow::Result<Self> {
        let (input, pipe) = io::pipe()?;
        let sink = All { copies, pipe };
        let capture = namespace
            .enter(|| Capture::start_confined(options, sink, give_up_rights))
            .context("cannot enter the network namespace (root can)")?
            // The error names its source itself.
            .map_err(|error| anyhow!("{error}"))?;
        let reader = reader(words, Stdio::from(input), stdout)?;
        Ok(Self { capture, reader })
    }

    /// What has been captured so far.
    pub(crate) fn counts(&self) -> Counts {
        self.capture.counts()
    }

    /// Replaces the filter in the kernel.
    pub(crate) fn narrow(&self) -> Narrow {
        self.capture.narrow()
    }

    /// Whether the reader has stopped reading.
    pub(crate) fn has_ended(&self) -> bool {
        self.capture.has_ended()
    }

    /// Ends the capture and with it the reader's input; the reader's remaining output is still to
    /// be read.
    pub(crate) fn stop(self) -> (Result<Stats, tcpwhy_host::capture::Error>, Child) {
        (self.capture.stop(), self.reader)
    }
}

/// Starts `tcpwhy` with these words and no rights: a reader, which then enters its sandbox.
pub(crate) fn reader(words: &[String], stdin: Stdio, stdout: Stdio) -> anyhow::Result<Child> {
    let this = std::env::current_exe().context("cannot find this program's own file")?;
    let mut command = Command::new(this);
    // Ctrl-C is for this process, which then ends the reader's input.
    command.args(words).stdin(stdin).stdout(stdout).process_group(0);
    let spawn = move || give_up_rights().and_then(|()| command.spawn());
    let spawned = std::thread::scope(|scope| scope.spawn(spawn).join());
    spawned.unwrap_or_else(|panic| std::panic::resume_unwind(panic)).context("cannot start the reader")
}

/// Writes into the copies and then into the pipe.
struct All {
    copies: Copies,
    pipe: PipeWriter,
}

impl Write for All {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(file) = &mut self.copies.file {
            file.write_all(bytes)?;
        }
        if let Some(recent) = &self.copies.recent {
            recent.add(bytes);
        }
        self.pipe.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.copies.file.as_mut().map_or(Ok(()), Write::flush)
    }
}
