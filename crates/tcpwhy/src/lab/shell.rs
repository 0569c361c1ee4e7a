//! `tcpwhy lab shell`: how does any program perform on such a path? It runs at the near end; the
//! far end is at a fixed address and name, with the requested server, if any.

use std::net::IpAddr;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use tcpwhy_lab::{ElementSpec, Folder, Host, HostSpec, Pair, PairOptions, PathSpec};

use super::args::ShellArgs;
use super::form::bill;
use super::tap::Tap;
use crate::output::{self, print};
use crate::{NOT_ANALYSED, WRONG_USAGE};

/// How long a server may take to listen.
const LISTENS_WITHIN: Duration = Duration::from_secs(30);
/// How long after the program's end connections may take to close.
pub(super) const SETTLE: Duration = Duration::from_millis(300);

pub(super) fn run(args: &ShellArgs) -> anyhow::Result<u8> {
    let options = match options(args) {
        Ok(options) => options,
        Err(what) => {
            output::complain(&what);
            return Ok(WRONG_USAGE);
        }
    };
    tcpwhy_lab::enter_user_namespace()?;
    // There is no Ctrl-C handler here: Ctrl-C ends the program, and its end ends this.
    let pair = Pair::build(&options)?;
    let captures = match &args.keep {
        Some(dir) => Some(start_captures(&pair, dir)?),
        None => None,
    };
    let mut far = match &args.far {
        Some(command) => Some(start_far(pair.server(), command, None)?),
        None => None,
    };
    let mut near = pair.client().spawn(near_command(args)).with_context(|| match args.command.first() {
        Some(program) => format!("cannot start {program}"),
        None => "cannot start the shell".to_owned(),
    })?;
    let status = near.wait()?;
    if let Some(captures) = captures {
        std::thread::sleep(SETTLE);
        finish_captures(captures, args)?;
    }
    if let Some(far) = &mut far {
        // Its child processes end with the host.
        let _ = far.kill();
        let _ = far.wait();
    }
    Ok(code(status))
}

fn options(args: &ShellArgs) -> Result<PairOptions, String> {
    let sysctl = |settings: &[String]| -> Result<Vec<(String, String)>, String> {
        settings
            .iter()
            .map(|setting| match setting.split_once('=') {
                Some((key, value)) => Ok((key.trim().to_owned(), value.trim().to_owned())),
                None => Err(format!("`{setting}`: expected NAME=VALUE, such as net.ipv4.tcp_sack=0")),
            })
            .collect()
    };
    let names = |own: IpAddr, other: IpAddr, own_name: &str, other_name: &str| {
        vec![(other_name.to_owned(), other), (own_name.to_owned(), own)]
    };
    let (near, far) = (IpAddr::V4(Pair::CLIENT_V4), IpAddr::V4(Pair::SERVER_V4));
    let host = |settings: &[String], names| -> Result<HostSpec, String> {
        let default = HostSpec::default();
        Ok(HostSpec {
            sysctl: sysctl(settings)?,
            congestion: args.congestion.clone().or_else(|| default.congestion.clone()),
            names,
            ..default
        })
    };
    Ok(PairOptions {
        path: path(args)?,
        client: host(&args.near_sysctl, names(near, far, "near-end", "far-end"))?,
        server: host(&args.far_sysctl, names(far, near, "far-end", "near-end"))?,
        ..PairOptions::default()
    })
}

fn path(args: &ShellArgs) -> Result<PathSpec, String> {
    let rate = args.rate.as_ref().map(|rate| match &args.queue {
        Some(queue) => format!("rate {rate} queue {queue}"),
        None => format!("rate {rate}"),
    });
    let loss = args.loss.as_ref().map(|loss| format!("loss {loss}"));
    let jitter = args.jitter.as_ref().map(|jitter| format!("jitter {jitter}"));
    let delay = (args.delay != "0").then(|| format!("delay {}", args.delay));
    let direction = |own: &[String]| -> Result<Vec<ElementSpec>, String> {
        let common = [&loss, &rate, &jitter, &delay].into_iter().flatten();
        own.iter()
            .chain(common)
            .map(|text| text.parse().map_err(|error| format!("`{text}`: {error}")))
            .collect()
    };
    Ok(PathSpec { forward: direction(&args.forward)?, backward: direction(&args.backward)?, seed: args.seed })
}

#[expect(clippy::disallowed_methods, reason = "the user's own shell is named by the environment")]
fn near_command(args: &ShellArgs) -> Command {
    let mut command = match args.command.split_first() {
        Some((program, rest)) => {
            let mut command = Command::new(program);
            command.args(rest);
            command
        }
        None => Command::new(std::env::var("SHELL").unwrap_or_else(|_| "/bin/sh".to_owned())),
    };
    command.env("FAR_END", Pair::SERVER_V4.to_string());
    command
}

/// Starts the server and waits until it listens.
pub(super) fn start_far(host: &Host, text: &str, dir: Option<&Path>) -> anyhow::Result<Child> {
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(text).stdin(std::process::Stdio::null());
    if let Some(dir) = dir {
        command.current_dir(dir);
    }
    let mut child = host.spawn(command).context("cannot start the command at the far end")?;
    let begun = now();
    loop {
        if !host.listening()?.is_empty() {
            return Ok(child);
        }
        // A server that goes into the background ends its first process, and keeps listening.
        let ended = child.try_wait()?;
        if let Some(status) = ended.filter(|status| !status.success()) {
            bail!("the command at the far end failed before it listened ({status}): {text}");
        }
        if now() - begun > LISTENS_WITHIN {
            bail!("the command at the far end is not listening after {} s: {text}", LISTENS_WITHIN.as_secs());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[expect(clippy::disallowed_methods, reason = "waits for a program")]
fn now() -> Instant {
    Instant::now()
}

fn start_captures(pair: &Pair, dir: &Path) -> anyhow::Result<[Tap; 2]> {
    let folder = Folder::make(dir).with_context(|| format!("cannot create {}", dir.display()))?;
    let start = |host: &Host, name: &str| {
        Tap::start(host, &folder, name, None, None, format!("tcpwhy lab shell, {name}"))
    };
    Ok([start(pair.client(), "near.pcapng")?, start(pair.server(), "far.pcapng")?])
}

fn finish_captures(captures: [Tap; 2], args: &ShellArgs) -> anyhow::Result<()> {
    for capture in captures {
        let lost = capture.stop()?;
        if lost > 0 {
            output::complain(&format!("a capture dropped {lost} packets"));
        }
    }
    let Some(dir) = &args.keep else { return Ok(()) };
    let [near, far] = ["near.pcapng", "far.pcapng"].map(|name| dir.join(name).display().to_string());
    print(&format!("\n{}\n", tcpwhy_report::answer(&bill(Path::new(&near))?)))?;
    print(&format!("tcpwhy read {near}    (or {far}, captured at the far end)\n"))
}

/// The program's own exit code; if a signal ended it, the code that a shell reports.
fn code(status: ExitStatus) -> u8 {
    use std::os::unix::process::ExitStatusExt as _;
    match (status.code(), status.signal()) {
        (Some(code), _) => u8::try_from(code).unwrap_or(NOT_ANALYSED),
        (None, Some(signal)) => u8::try_from(128 + signal).unwrap_or(NOT_ANALYSED),
        (None, None) => NOT_ANALYSED,
    }
}
