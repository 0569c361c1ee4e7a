//! How does what passes an interface reach a reader without rights? Through a pipe: this process captures and parses nothing, and another,
//! `tcpwhy read -`, parses in its sandbox and has nothing to do with the capture.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, Command, Stdio};

use anyhow::Context as _;
use tcpwhy_host::capture::{Capture, Options, Stats};
use tcpwhy_sockets::namespace::Namespace;

/// A running capture and its reader.
pub(crate) struct Feed {
    capture: Capture,
    pub(crate) reader: Child,
}

impl Feed {
    /// Starts a reader with these words behind `tcpwhy`, and a capture into it and, where there is one, into `file`.
    pub(crate) fn start(
        options: Options,
        namespace: &Namespace,
        words: &[String],
        file: Option<File>,
        stdout: Stdio,
    ) -> anyhow::Result<Self> {
        let this = std::env::current_exe().context("cannot find this program's own file")?;
        let mut reader = Command::new(this)
            .args(words)
            .stdin(Stdio::piped())
            .stdout(stdout)
            // Ctrl-C is for this process, which ends the input.
            .process_group(0)
            .spawn()
            .context("cannot start the reader")?;
        let pipe = reader.stdin.take().context("the reader has no input")?;
        let sink = Both { pipe, file };
        let started = namespace.enter(|| Capture::start(options, sink));
        let started =
            started.context("cannot enter the network namespace (root can)").and_then(|capture| Ok(capture?));
        match started {
            Ok(capture) => Ok(Self { capture, reader }),
            Err(error) => {
                let _ = reader.kill();
                let _ = reader.wait();
                Err(error)
            }
        }
    }

    /// Whether the reader does not read any more.
    pub(crate) fn has_ended(&self) -> bool {
        self.capture.has_ended()
    }

    /// Ends the capture and with it the reader's input; what the reader goes on to say is still to be read.
    pub(crate) fn stop(self) -> (Result<Stats, tcpwhy_host::capture::Error>, Child) {
        (self.capture.stop(), self.reader)
    }
}

/// Into the pipe and, where it is wanted, into a file, the file first.
struct Both {
    pipe: ChildStdin,
    file: Option<File>,
}

impl Write for Both {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(file) = &mut self.file {
            file.write_all(bytes)?;
        }
        self.pipe.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.as_mut().map_or(Ok(()), Write::flush)
    }
}
