//! `tcpwhy lab corpus DIR`: recordings small enough for the repository, which the tests judge without root.
//!
//! A folder for each form: both captures, compressed, and truth.json without what only an investigation needs (the calls one
//! by one, the kernel's samples, the path's row for each packet). The scenario's definition in truth.json is the recipe.

use std::fs;
use std::path::Path;

use anyhow::Context as _;
use tcpwhy_lab::Folder;
use tcpwhy_lab::truth::{PerSide, Truth};
use tcpwhy_report::quantity::{bytes, counted};

use super::accuracy::{held_still, recordings};
use super::args::CorpusArgs;
use super::form::{Flaws, Place, Run, is_whole};
use crate::output::{complain, print};
use crate::{ANALYSED, GATE_CLOSED};

/// What was disturbed or did not come to what its scenario is for is recorded again, and left out in the end.
const TRIES: u32 = 8;
/// The slow end of the scale: written once, read often.
const ZSTD_LEVEL: i32 = 19;

pub(super) fn run(args: &CorpusArgs) -> anyhow::Result<u8> {
    tcpwhy_lab::enter_user_namespace()?;
    let place = Place::scratch()?;
    let (mut written, mut size, mut left_out) = (0, 0, 0_u64);
    for (name, scenario) in recordings(&args.names)? {
        let dir = args.dir.join(&name);
        if args.missing && is_whole(&dir) {
            continue;
        }
        let earlier = args.from.as_ref().map(|from| Run::read_back(scenario.clone(), &from.join(&name)));
        let (run, tries) = match earlier {
            Some(Ok(run)) if held_still(&run) => (run, 0),
            _ => {
                let flaws = |run: &Run| Flaws { is_off: !held_still(run), late: 0 };
                place.record(&scenario, &name, TRIES, flaws).with_context(|| name.clone())?
            }
        };
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
        if tries > 0 {
            place.forget(&run);
        }
    }
    print(&format!("{}, {}\n", counted(written, "recording"), bytes(size)))?;
    Ok(if left_out == 0 { ANALYSED } else { GATE_CLOSED })
}

/// Writes what a run left in its directory into the corpus, small; gives the bytes.
pub(super) fn write(run: &Run, dir: &Path) -> anyhow::Result<u64> {
    let folder = Folder::make(dir).with_context(|| format!("cannot create {}", dir.display()))?;
    let mut size = 0;
    let mut save = |name: &str, content: &[u8]| {
        size += content.len() as u64;
        folder
            .write_whole(name, content)
            .with_context(|| format!("cannot write {}", folder.join(name).display()))
    };
    // Written last: where it is, the recording is whole.
    folder.remove("truth.json")?;
    for end in ["client", "server"] {
        let capture = fs::read(run.dir.join(format!("{end}.pcapng")))?;
        save(&format!("{end}.pcapng.zst"), &zstd::bulk::compress(&capture, ZSTD_LEVEL)?)?;
    }
    let mut text = serde_json::to_string_pretty(&small(run.truth.clone()))?;
    text.push('\n');
    save("truth.json", text.as_bytes())?;
    Ok(size)
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
