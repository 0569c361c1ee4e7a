//! How is a host of the laboratory captured? With a socket that is opened inside its namespace.

use anyhow::{Context as _, anyhow};
use tcpwhy_host::capture::{Capture, Filter, Options};
use tcpwhy_lab::{Folder, Host};

/// A running capture at a host.
pub(super) struct Tap(Capture);

impl Tap {
    /// Captures TCP at `host`, on one port or on all, into a file.
    pub(super) fn start(
        host: &Host,
        folder: &Folder,
        name: &str,
        port: Option<u16>,
        snaplen: Option<u32>,
        comment: String,
    ) -> anyhow::Result<Self> {
        let out =
            folder.create(name).with_context(|| format!("cannot write {}", folder.join(name).display()))?;
        let default = Options::new(host.interface());
        let options = Options {
            filter: Filter { port, ..Filter::default() },
            snaplen: snaplen.unwrap_or(default.snaplen),
            comment,
            ..default
        };
        let started = host.enter(move || Capture::start(options, out))?.join();
        Ok(Self(started.map_err(|_| anyhow!("the capture's thread ended early"))??))
    }

    /// Ends the capture; returns how many packets are missing.
    pub(super) fn stop(self) -> anyhow::Result<u64> {
        let stats = self.0.stop()?;
        Ok(stats.dropped + stats.unread)
    }
}
