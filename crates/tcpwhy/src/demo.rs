//! `tcpwhy demo`: what does the classic stall look like on this machine, and after the fix?
//!
//! Two conversations are recorded on the real kernel and billed. Where the machine allows no
//! capture, it says what would be needed, and bills the recordings that the project keeps.

use std::fs::File;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use tcpwhy::input::{self, Inputs};
use tcpwhy_core::{Analysis, Listing, Options, Report};
use tcpwhy_report::{Style, json, text};

use crate::ANALYSED;
use crate::cli::DemoArgs;
use crate::output;

/// One conversation to bill.
struct Conversation {
    capture: PathBuf,
    heading: String,
}

pub(crate) fn run(args: &DemoArgs) -> anyhow::Result<u8> {
    let style = Style { color: args.color.is_on(), ascii: args.ascii, ..Style::default() };
    let conversations = match record(&args.out) {
        Ok(conversations) => conversations,
        Err(why) => {
            output::complain(&format!("cannot capture here: {why}"));
            output::complain("showing the recordings that come with tcpwhy instead");
            unpack(&args.out)?
        }
    };
    for Conversation { capture, heading } in &conversations {
        let (files, report) = bill(capture)?;
        let again = format!("tcpwhy read {}", capture.display());
        let shown = text::overview(&report, &files, &again, style);
        output::print(&format!("{heading}\n\n{shown}\n"))?;
        let document = json::to_string(&report, &files, env!("CARGO_PKG_VERSION"))?;
        save(&capture.with_extension("json"), document.as_bytes())?;
        let plain = text::overview(&report, &files, &again, Style { color: false, ..style });
        save(&capture.with_extension("txt"), plain.as_bytes())?;
    }
    output::print(&format!(
        "Captures (.pcapng), reports (.txt, .json) and the applications' clock readings are in {}.\n",
        args.out.display()
    ))?;
    Ok(ANALYSED)
}

fn bill(capture: &Path) -> anyhow::Result<(Vec<tcpwhy_report::CaptureInfo>, Report)> {
    let mut analysis = Analysis::new(Options { listing: Listing::UpTo(1_000), ..Options::default() });
    let inputs = Inputs::open(&[capture.to_owned()]);
    let summary = inputs.for_each_captured(
        &input::Options::default(),
        |_| {},
        |segment, captured| analysis.on_captured(segment, captured),
    );
    output::troubles(&summary);
    anyhow::ensure!(!summary.is_failure(), "cannot read {} back", capture.display());
    Ok((output::captures(&summary), analysis.finish()))
}

/// Writes a file. An existing file of that name is removed first; if it was a link, its target is
/// left alone.
fn save(file: &Path, content: &[u8]) -> anyhow::Result<()> {
    let make = || {
        match std::fs::remove_file(file) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        File::options().write(true).create_new(true).open(file)?.write_all(content)
    };
    make().with_context(|| format!("cannot write {}", file.display()))
}

/// Makes the directory if it does not exist.
fn make_folder(dir: &Path) -> anyhow::Result<()> {
    #[cfg(target_os = "linux")]
    let made = tcpwhy_lab::Folder::make(dir).map(drop);
    #[cfg(not(target_os = "linux"))]
    let made = std::fs::create_dir_all(dir);
    made.with_context(|| format!("cannot create {}", dir.display()))
}

#[cfg(target_os = "linux")]
fn record(dir: &Path) -> anyhow::Result<Vec<Conversation>> {
    use tcpwhy_lab::demo::{self, Place, Recording};

    // If this is refused, plain loopback may still work.
    let _ = tcpwhy_lab::enter_user_namespace();
    let demo = demo::record(dir)?;
    let place = match demo.place {
        Place::OwnNamespace => "a private network namespace",
        Place::Loopback => "the machine's own network namespace",
    };
    let heading = |number: u32, what: &str, recording: &Recording| {
        let mut clocked = recording.truth.elapsed();
        clocked.sort_unstable();
        let median = clocked.get(clocked.len() / 2).copied().unwrap_or_default();
        format!(
            "== {number}. {what} ({} exchanges in {place}; median by the client's own clock: {median})",
            clocked.len()
        )
    };
    Ok(vec![
        Conversation {
            heading: heading(1, "Before: the client sends each request in two writes", &demo.split),
            capture: demo.split.capture,
        },
        Conversation {
            heading: heading(2, "After the fix: one write per request", &demo.fixed),
            capture: demo.fixed.capture,
        },
    ])
}

#[cfg(not(target_os = "linux"))]
fn record(_dir: &Path) -> anyhow::Result<Vec<Conversation>> {
    anyhow::bail!("live capture needs Linux")
}

/// Unpacks the recordings of the repository's corpus.
fn unpack(dir: &Path) -> anyhow::Result<Vec<Conversation>> {
    let kept: [(&str, &[u8], &str); 2] = [
        (
            "split.pcapng",
            include_bytes!("../../../corpus/demo/split.pcapng"),
            "== 1. Before: the client sends each request in two writes (recorded on Linux 6.18, loopback)",
        ),
        (
            "fixed.pcapng",
            include_bytes!("../../../corpus/demo/fixed.pcapng"),
            "== 2. After the fix: one write per request (recorded on Linux 6.18, loopback)",
        ),
    ];
    make_folder(dir)?;
    kept.into_iter()
        .map(|(name, bytes, heading)| {
            let capture = dir.join(name);
            save(&capture, bytes)?;
            Ok(Conversation { capture, heading: heading.to_owned() })
        })
        .collect()
}
