//! What can be changed from the command line?

use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::Args;

use crate::cli::{Color, parse_every};

#[derive(Debug, Args)]
#[command(after_help = FIX_EXAMPLES)]
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "running systems are changed on Linux"))]
#[expect(clippy::struct_excessive_bools, reason = "switches of a command line")]
pub(crate) struct FixArgs {
    /// Socket options of a process: nodelay, uncork, unlock-rcvbuf, unlock-sndbuf, congestion=NAME, backlog=N. Settings of a network
    /// namespace: no-restart-after-idle, rmem=BYTES, wmem=BYTES. Attributes of the route given by --to: initcwnd=N, initrwnd=N, quickack
    #[arg(value_name = "FIX")]
    pub(crate) fix: Fix,

    /// The process whose sockets or network namespace to change
    #[arg(short, long, value_name = "PID")]
    pub(crate) pid: Option<u32>,

    /// Only sockets with this local or remote port; only their traffic is measured
    #[arg(long, value_name = "PORT")]
    pub(crate) port: Option<u16>,

    /// The address whose route to change
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) to: Option<IpAddr>,

    /// Work in this named network namespace (`ip netns`)
    #[arg(long, value_name = "NAME", conflicts_with = "pid")]
    pub(crate) netns: Option<String>,

    /// How long to measure before, and again after
    #[arg(long, value_name = "TIME", value_parser = parse_every, default_value = "20s")]
    pub(crate) measure: Duration,

    /// Apply the change without measuring
    #[arg(long, conflicts_with = "measure")]
    pub(crate) no_measure: bool,

    /// Interface to measure on
    #[arg(short, long, value_name = "NAME", default_value = "any")]
    pub(crate) interface: String,

    /// Do not ask for confirmation
    #[arg(short, long)]
    pub(crate) yes: bool,

    /// Keep the change even if it does not help or the effect cannot be measured
    #[arg(long)]
    pub(crate) keep: bool,

    /// Only print how to make the change permanent (sysctl.d file, ip route, code)
    #[arg(long, conflicts_with_all = ["yes", "keep"])]
    pub(crate) persist: bool,

    /// With --persist: write the sysctl.d file
    #[arg(long, requires = "persist")]
    pub(crate) write: bool,

    /// The folder that /etc is in
    #[arg(long, value_name = "DIR", hide = true, requires = "write")]
    pub(crate) root: Option<PathBuf>,

    /// The folder that the journal's own is in
    #[arg(long, value_name = "DIR", hide = true)]
    pub(crate) journal: Option<PathBuf>,

    /// When to use colours
    #[arg(long, value_enum, value_name = "WHEN", default_value_t)]
    pub(crate) color: Color,
}

const FIX_EXAMPLES: &str = "\
Shows what it will change and asks for confirmation; without a terminal, --yes is required. Then it measures, applies the change, \
measures again and reports the difference; a change that does not help is reverted at once, unless --keep is given. `tcpwhy undo` lists \
and reverts whatever remains, even if this command is killed half-way.

Examples:
  tcpwhy fix nodelay --pid 4242 --port 8080
  tcpwhy fix unlock-rcvbuf --pid 4242 --measure 5s --yes
  tcpwhy fix no-restart-after-idle --pid 4242
  tcpwhy fix initcwnd=30 --to 10.0.0.5
  tcpwhy fix nodelay --pid 4242 --persist          how to make it permanent
  tcpwhy undo --all                                revert everything";

#[derive(Debug, Args)]
#[command(after_help = UNDO_EXAMPLES)]
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "running systems are changed on Linux"))]
pub(crate) struct UndoArgs {
    /// Revert the changes with these numbers
    #[arg(value_name = "NUMBER", conflicts_with_all = ["all", "forget"])]
    pub(crate) numbers: Vec<u64>,

    /// The folder that the journal's own is in
    #[arg(long, value_name = "DIR", hide = true)]
    pub(crate) journal: Option<PathBuf>,

    /// Revert all changes, the latest first
    #[arg(short, long)]
    pub(crate) all: bool,

    /// Keep this change and remove it from the list
    #[arg(long, value_name = "NUMBER", conflicts_with = "all")]
    pub(crate) forget: Option<u64>,
}

const UNDO_EXAMPLES: &str = "\
Settings that someone else has changed in the meantime are left alone and reported, as are those \
that no longer exist: of processes that have ended, namespaces that are gone, or from before a \
reboot.

Examples:
  tcpwhy undo              what has been changed?
  tcpwhy undo 3            revert change 3
  tcpwhy undo --all
  tcpwhy undo --forget 3   keep change 3";

/// A fix by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fix {
    NoDelay,
    Uncork,
    UnlockReceiveBuffer,
    UnlockSendBuffer,
    Congestion(String),
    Backlog(u32),
    NoRestartAfterIdle,
    ReceiveMemory(u64),
    SendMemory(u64),
    InitCwnd(u32),
    InitRwnd(u32),
    QuickAck,
}

#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "running systems are changed on Linux"))]
impl Fix {
    /// The causes that it addresses.
    pub(crate) const fn addresses(&self) -> &'static [&'static str] {
        match self {
            Self::NoDelay => &["nagle-delayed-ack", "nagle"],
            Self::Uncork => &["cork"],
            Self::UnlockReceiveBuffer | Self::ReceiveMemory(_) | Self::InitRwnd(_) => &["receive-window"],
            Self::UnlockSendBuffer | Self::SendMemory(_) => &["send-buffer"],
            Self::Congestion(_) => &["congestion-window", "slow-start", "loss", "rto"],
            Self::Backlog(_) => &["syn-retransmit", "handshake"],
            Self::NoRestartAfterIdle => &["slow-start-after-idle"],
            Self::InitCwnd(_) => &["slow-start", "slow-start-after-idle", "delayed-ack-cwnd"],
            Self::QuickAck => &["nagle-delayed-ack", "delayed-ack-cwnd"],
        }
    }
}

const NAMES: &str = "nodelay, uncork, unlock-rcvbuf, unlock-sndbuf, congestion=NAME, backlog=N, no-restart-after-idle, rmem=BYTES, \
                     wmem=BYTES, initcwnd=N, initrwnd=N, quickack";

impl FromStr for Fix {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
        let number = |least: u64, most: u64| -> Result<u64, String> {
            let value = value.ok_or_else(|| format!("{name} needs a number: {name}=N"))?;
            let number = value.parse().ok().filter(|number| (least..=most).contains(number));
            number.ok_or_else(|| format!("{name} is a number from {least} to {most}"))
        };
        Ok(match (name, value) {
            ("nodelay", None) => Self::NoDelay,
            ("uncork", None) => Self::Uncork,
            ("unlock-rcvbuf", None) => Self::UnlockReceiveBuffer,
            ("unlock-sndbuf", None) => Self::UnlockSendBuffer,
            ("no-restart-after-idle", None) => Self::NoRestartAfterIdle,
            ("quickack", None) => Self::QuickAck,
            ("congestion", Some(name)) if !name.is_empty() && name.len() < 16 => {
                Self::Congestion(name.to_owned())
            }
            ("congestion", _) => return Err("congestion needs a name: congestion=bbr".to_owned()),
            ("backlog", _) => Self::Backlog(number(1, 65_535)? as u32),
            ("rmem", _) => Self::ReceiveMemory(number(65_536, 1 << 30)?),
            ("wmem", _) => Self::SendMemory(number(65_536, 1 << 30)?),
            ("initcwnd", _) => Self::InitCwnd(number(1, 1_000)? as u32),
            ("initrwnd", _) => Self::InitRwnd(number(1, 1_000)? as u32),
            _ => return Err(format!("expected one of {NAMES}")),
        })
    }
}
