//! `tcpwhy lab corpus DIR`: which recordings are small enough for the repository, so that the tests
//! can judge them without root?
//!
//! Each form has a directory: both captures, compressed, and truth.json without what only an
//! investigation needs (the single calls, the kernel's samples, the path's row for each packet).
//! The scenario's definition in truth.json is the recipe.

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::Context as _;
use tcpwhy_lab::Folder;
use tcpwhy_lab::truth::{PerSide, Truth};
use tcpwhy_report::quantity::{bytes, counted};

use super::accuracy::{held_still, recordings};
use super::args::CorpusArgs;
use super::form::{Flaws, Place, Run, is_whole};
use crate::confine::confine_to;
use crate::output::{complain, print};
use crate::{ANALYSED, GATE_CLOSED};

/// A disturbed recording, or one outside its scenario's range, is made again, and finally left out.
const TRIES: u32 = 8;
/// The largest of the small truths has about 100 KB.
const TRUTH_MAX: u64 = 16 << 20;
/// The same for a capture.
const CAPTURE_MAX: u64 = 256 << 20;
/// The slow end of the scale: written once, read often.
const ZSTD_LEVEL: &str = "-19";

pub(super) fn run(args: &CorpusArgs) -> anyhow::Result<u8> {
    if let (true, Some(from)) = (args.only_judge, &args.from) {
        return judge_only(args, from);
    }
    tcpwhy_lab::enter_user_namespace()?;
    let place = Place::scratch()?;
    let (mut written, mut size, mut left_out) = (0, 0, 0_u64);
    for (name, scenario) in recordings(&args.names)? {
        let dir = args.dir.join(&name);
        if args.missing && is_whole(&dir) {
            continue;
        }
        if let Some(from) = &args.from
            && let Some(truth) = judged_apart(args, &name)?
        {
            let from = Folder::open(from).with_context(|| from.display().to_string())?;
            let capture = |end: &str| from.read_below(&name, &format!("{end}.pcapng"), CAPTURE_MAX);
            let length = save(&dir, [capture("client")?, capture("server")?], &truth)?;
            print(&format!("{name:40} {:>10}\n", bytes(length)))?;
            (written, size) = (written + 1, size + length);
            continue;
        }
        let flaws = |run: &Run| Flaws { is_off: !held_still(run), late: 0 };
        let (run, tries) = place.record(&scenario, &name, TRIES, flaws).with_context(|| name.clone())?;
        if held_still(&run) {
            let length = write(&run, &dir)?;
            print(&format!("{name:40} {:>10}\n", bytes(length)))?;
            (written, size) = (written + 1, size + length);
        } else {
            left_out += 1;
            complain(&format!(
                "{name} left out after {tries} tries: late by {}, {}",
                run.late,
                [run.warnings.clone(), super::accuracy::out_of_range(&run)].concat().join("; ")
            ));
        }
        place.forget(&run);
    }
    print(&format!("{}, {}\n", counted(written, "recording"), bytes(size)))?;
    Ok(if left_out == 0 { ANALYSED } else { GATE_CLOSED })
}

/// An earlier run's recording is read by a separate process, which may read that and nothing else,
/// and returns the part of the truth to keep. `None` if the recording is missing or not good
/// enough.
fn judged_apart(args: &CorpusArgs, name: &str) -> anyhow::Result<Option<Vec<u8>>> {
    let Some(from) = &args.from else { return Ok(None) };
    let mut child = Command::new("/proc/self/exe")
        .args(["lab", "corpus", "--only-judge", "--from"])
        .arg(from)
        .arg("--")
        .arg(&args.dir)
        .arg(name)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start a process to judge in")?;
    let mut truth = Vec::new();
    if let Some(said) = child.stdout.take() {
        said.take(TRUTH_MAX).read_to_end(&mut truth)?;
    }
    Ok(child.wait()?.success().then_some(truth))
}

/// The code of that process.
fn judge_only(args: &CorpusArgs, from: &Path) -> anyhow::Result<u8> {
    let recordings = recordings(&args.names)?;
    confine_to(from, None)?;
    // A scenario's name also stands for all of its forms.
    for (name, scenario) in recordings.into_iter().filter(|(name, _)| args.names.contains(name)) {
        let run = Run::read_back(scenario, &from.join(&name))?;
        if !held_still(&run) {
            return Ok(GATE_CLOSED);
        }
        print(&text(run.truth)?)?;
    }
    Ok(ANALYSED)
}

/// Writes a run's files into the corpus, reduced; returns the number of bytes.
pub(super) fn write(run: &Run, dir: &Path) -> anyhow::Result<u64> {
    let capture = |end: &str| fs::read(run.dir.join(format!("{end}.pcapng")));
    save(dir, [capture("client")?, capture("server")?], text(run.truth.clone())?.as_bytes())
}

/// The truth in the form of the corpus.
fn text(truth: Truth) -> anyhow::Result<String> {
    let mut text = serde_json::to_string_pretty(&small(truth))?;
    text.push('\n');
    Ok(text)
}

fn save(dir: &Path, captures: [Vec<u8>; 2], truth: &[u8]) -> anyhow::Result<u64> {
    let folder = Folder::make(dir).with_context(|| format!("cannot create {}", dir.display()))?;
    let mut size = 0;
    let mut save = |name: &str, content: &[u8]| {
        size += content.len() as u64;
        folder
            .write_whole(name, content)
            .with_context(|| format!("cannot write {}", folder.join(name).display()))
    };
    // Written last: if it exists, the recording is complete.
    folder.remove("truth.json")?;
    for (end, capture) in ["client", "server"].into_iter().zip(captures) {
        save(&format!("{end}.pcapng.zst"), &compressed(capture)?)?;
    }
    save("truth.json", truth)?;
    Ok(size)
}

/// By the program `zstd`: the code that compresses would be a thirtieth of this binary, and only those
/// who add to the corpus need it.
fn compressed(capture: Vec<u8>) -> anyhow::Result<Vec<u8>> {
    let mut child = Command::new("zstd")
        .args(["--quiet", "--stdout", ZSTD_LEVEL])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot run zstd, which compresses the captures; install it")?;
    if let Some(mut input) = child.stdin.take() {
        // This fails only if zstd is gone, which its status says.
        std::thread::spawn(move || input.write_all(&capture));
    }
    let output = child.wait_with_output()?;
    anyhow::ensure!(output.status.success(), "zstd cannot compress the capture: {}", output.status);
    Ok(output.stdout)
}

fn small(mut truth: Truth) -> Truth {
    for connection in &mut truth.connections {
        connection.events = PerSide::default();
        connection.samples = PerSide::default();
    }
    if let Some(path) = &mut truth.path {
        path.omitted += path.packets.len() as u64;
        path.packets.clear();
        path.columns.clear();
    }
    truth
}
