//! `tcpwhy lab real`: are the bills right for programs not written for this project? Common servers
//! and clients run at both ends of a path; the client's own clock says how long it took.

mod account;
mod case;

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, anyhow, bail};
use tcpwhy_core::report::Kind;
use tcpwhy_lab::scenario::path_truth;
use tcpwhy_lab::{Folder, Pair};
use tcpwhy_report::quantity::time;

use super::accuracy::{Judged, largest, row_heading};
use super::args::RealArgs;
use super::clocked::Spread;
use super::corpus;
use super::form::{Place, Run};
use super::shell::{SETTLE, start_far};
use super::tap::Tap;
use crate::output::{complain, print};
use crate::{ANALYSED, GATE_CLOSED, WRONG_USAGE};
use case::Case;

/// Recordings disturbed by other programs are made again.
const TRIES: u32 = 12;
/// Bytes kept of each packet, as in scenarios.
const SNAPLEN_BYTES: u32 = 96;

pub(super) fn run(args: &RealArgs) -> anyhow::Result<u8> {
    let cases = case::all()?;
    let asked: Vec<&Case> = cases.iter().filter(|case| asked(&args.names, &case.name)).collect();
    if args.list || asked.is_empty() {
        let widest = cases.iter().map(|case| case.name.len()).max().unwrap_or(0);
        let lines: Vec<String> = cases
            .iter()
            .map(|case| format!("{:widest$}  {} (needs {})\n", case.name, case.shows, case.needs.join(", ")))
            .collect();
        print(&lines.concat())?;
        return Ok(if args.list { ANALYSED } else { WRONG_USAGE });
    }
    tcpwhy_lab::enter_user_namespace()?;
    let place = Place::new(args.keep.as_ref())?;
    let prepared = place.real_dir()?.join("prepared");
    print(&format!("{}\n", row_heading()))?;
    let mut wrong = 0;
    for case in asked {
        if let Some(program) = case.needs.iter().find(|program| !is_installed(program)) {
            print(&format!("{:36} skipped: {program} is not installed\n", case.name))?;
            wrong += u32::from(in_ci());
            continue;
        }
        if let Err(why) = prepare(case, &prepared) {
            print(&format!("{:36} skipped: {why:#}\n", case.name))?;
            wrong += u32::from(in_ci());
            continue;
        }
        let mut tried = 1;
        let run = loop {
            let run =
                record(case, &place.dir(&case.name, None), &prepared).with_context(|| case.name.clone())?;
            if tried >= TRIES || super::accuracy::held_still(&run) {
                break run;
            }
            tried += 1;
        };
        if account::is_of_calls(&run.truth) {
            print(&told(&run))?;
            place.forget(&run);
            continue;
        }
        let judged = Judged::of(case.name.clone(), &run, tried);
        print(&judged.rows())?;
        wrong += u32::from(!judged.is_right());
        if let Some(dir) = &args.corpus {
            if super::accuracy::held_still(&run) {
                corpus::write(&run, &dir.join(&case.name))?;
            } else {
                complain(&format!("{} was disturbed and not saved", case.name));
                wrong += 1;
            }
        }
        place.forget(&run);
    }
    Ok(if wrong == 0 { ANALYSED } else { GATE_CLOSED })
}

fn asked(names: &[String], name: &str) -> bool {
    names.is_empty() || names.iter().any(|asked| name == asked || name.starts_with(&format!("{asked}-")))
}

/// In PATH, or where an administrator's shell would find it.
#[expect(clippy::disallowed_methods, reason = "programs are looked for where the shell looks")]
fn is_installed(program: &str) -> bool {
    let path = std::env::var("PATH").unwrap_or_default();
    path.split(':').chain(["/usr/sbin", "/usr/local/sbin"]).any(|dir| Path::new(dir).join(program).exists())
}

/// In CI everything is installed: a skipped case is a failure there.
#[expect(clippy::disallowed_methods, reason = "CI is where nothing may be skipped")]
fn in_ci() -> bool {
    std::env::var("CI").is_ok_and(|value| value == "true")
}

/// Runs one case; captures, truth and the programs' files remain in `dir`.
fn record(case: &Case, dir: &Path, prepared: &Path) -> anyhow::Result<Run> {
    // On its own thread, whose scheduling priority every thread of the laboratory inherits.
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let real_time = tcpwhy_lab::take_precedence();
            record_here(case, dir, prepared, real_time)
        });
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Fetches and compiles what the case needs into a directory shared with later cases; commands know
/// it as `prepared`.
fn prepare(case: &Case, dir: &Path) -> anyhow::Result<()> {
    let Some(command) = &case.prepare else { return Ok(()) };
    case::write_files(dir)?;
    let output = Command::new("/bin/sh").arg("-c").arg(command).current_dir(dir).output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    let last = said.lines().find(|line| line.contains("ERROR")).unwrap_or("no reason given").to_owned();
    anyhow::ensure!(output.status.success(), "`{command}` failed: {last}");
    Ok(())
}

/// How long calls took, and the bill: only the former includes the framework's own time.
fn told(run: &Run) -> String {
    let clocked = Spread::of(run.clocked.kind(Kind::Exchange).iter().copied());
    let clocked = clocked.map_or_else(
        || "nothing".to_owned(),
        |clocked| format!("{} ({} to {})", time(clocked.median), time(clocked.min), time(clocked.max)),
    );
    let mut out = format!("{:36} a call took {clocked}\n", run.scenario.name);
    for (end, report) in ["client", "server"].into_iter().zip(&run.bills) {
        // Writing to a String never fails.
        let _ = writeln!(out, "{:38}{end}: {}", "", largest(report));
    }
    out
}

fn record_here(case: &Case, dir: &Path, prepared: &Path, real_time: bool) -> anyhow::Result<Run> {
    case::write_files(dir)?;
    let dir = &std::fs::canonicalize(dir)?;
    let folder = Folder::make(dir)?;
    let link = dir.join("prepared");
    if case.prepare.is_some() && !link.exists() {
        std::os::unix::fs::symlink(prepared, &link).with_context(|| link.display().to_string())?;
    }
    let scenario = case.scenario()?;
    let pair = Pair::build(&scenario.pair)?;
    let mut far =
        start_far(pair.server(), &format!("PATH=$PATH:/usr/sbin; exec >/dev/null; {}", case.far), Some(dir))?;
    let tap = |host, end: &str| {
        let comment = format!("tcpwhy lab real {}, at the {end}\n{}", case.name, case.text());
        let name = format!("{end}.pcapng");
        Tap::start(host, &folder, &name, Some(case.port), Some(SNAPLEN_BYTES), comment)
    };
    let taps = [tap(pair.client(), "client")?, tap(pair.server(), "server")?];

    let mut near = Command::new("/bin/sh");
    near.arg("-c").arg(&case.near).current_dir(dir).env("FAR_END", Pair::SERVER_V4.to_string());
    near.stdin(std::process::Stdio::null()).stdout(std::process::Stdio::piped());
    let near = pair.client().spawn(near).context("cannot start the client")?;
    let output = near.wait_with_output()?;
    std::thread::sleep(SETTLE);
    let mut warnings = Vec::new();
    for tap in taps {
        let lost = tap.stop()?;
        if lost > 0 {
            warnings.push(format!("a capture lost {lost} packets"));
        }
    }
    let _ = far.kill();
    let _ = far.wait();
    if !output.status.success() {
        bail!("the client failed: {}", output.status);
    }
    let said = String::from_utf8(output.stdout).map_err(|_| anyhow!("the client's account is no text"))?;
    let mut truth = account::truth(&said, case.port)?;
    truth.scenario = Some(case.name.clone());
    truth.definition = Some(scenario.definition.clone());
    truth.path = Some(path_truth(&scenario.pair.path, &pair, real_time)?);
    Run::billed(scenario, truth, warnings, dir)
}
