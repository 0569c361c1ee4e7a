//! Are the bills of real recordings right? Every recording of the corpus is billed from both ends
//! and judged by the applications' own clocks and by its scenario's expectations. Needs no root:
//! the captures are in the repository.
#![cfg(target_os = "linux")]

mod bills;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use tcpwhy::judge::{End, judge};
use tcpwhy_core::Cause;
use tcpwhy_lab::scenario::{Expect, Scenario};
use tcpwhy_lab::truth::Truth;

use bills::bill;

/// What is not right yet: recording, end, and what is wrong. An entry that has become right must be
/// removed.
const KNOWN: &[(&str, &str, &str)] = &[
    ("e-small-window", "client", "a window of one after idle time: no packet tells it from Nagle"),
    ("e-small-window", "server", "a window of one after idle time: no packet tells it from Nagle"),
];

/// Traps that must come out right, by issue 2; each is a recording.
const TRAPS: &[&str] = &[
    "server-think",
    "server-think@think-200",
    "client-pause",
    "client-pause@pause-40",
    "client-pause@nodelay",
    "client-pause@nodelay-pause-40",
    "split",
    "split@rtt-2",
    "split@rtt-26",
    "split@rtt-100",
    "reply-over-mss",
    "server-split",
    "burst-per-message",
    "burst-whole",
    "corked-tail@after-full-segments",
    "lost-request",
    "lost-reply-tail",
    "lost-syn",
    "lost-synack",
    "healthy-rpc",
];

struct Recording {
    name: String,
    dir: PathBuf,
    truth: Truth,
    expect: Expect,
}

#[test]
fn bills_agree_with_the_applications_clocks_from_both_ends() {
    let known: BTreeMap<(&str, &str), &str> =
        KNOWN.iter().map(|(name, end, why)| ((*name, *end), *why)).collect();
    let (mut wrong, mut fixed) = (Vec::new(), Vec::new());
    for recording in recordings() {
        for end in End::BOTH {
            let report = bill(&recording.dir.join(format!("{end}.pcapng.zst")));
            let faults = judge(end, &recording.truth, &report, &recording.expect).faults();
            let known = known.get(&(recording.name.as_str(), end.name()));
            match (faults.is_empty(), known) {
                (false, None) => {
                    wrong.push(format!("{} at the {end}: {}", recording.name, faults.join("; ")));
                }
                (true, Some(_)) => fixed.push(format!("{} at the {end}", recording.name)),
                (true, None) => {}
                (false, Some(why)) => eprintln!("known: {} at the {end}: {why}", recording.name),
            }
        }
    }
    assert!(wrong.is_empty(), "{} bills are wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(fixed.is_empty(), "right now, take them off KNOWN:\n{}", fixed.join("\n"));
}

/// Causes of which no recording expects a share, and why; the engine's own tests have a log for
/// each.
const WITHOUT: [(Cause, &str); 6] = [
    (Cause::Unexplained, "nobody expects what cannot be explained"),
    (Cause::Pacing, "no scenario paces below what windows and path allow"),
    (Cause::Handshake, "none states a least share for it"),
    (Cause::TlsHandshake, "none states a least share for it"),
    (Cause::ApplicationWindow, "none states a least share for it"),
    (Cause::CongestionWindow, "none states a least share for congestion avoidance"),
];

#[test]
fn every_trap_and_every_cause_is_in_the_corpus() {
    let recordings = recordings();
    let names: BTreeSet<&str> = recordings.iter().map(|recording| recording.name.as_str()).collect();
    let missing: Vec<_> = TRAPS.iter().filter(|trap| !names.contains(*trap)).collect();
    assert!(missing.is_empty(), "not in the corpus: {missing:?}");
    let expected: BTreeSet<&str> = recordings
        .iter()
        .flat_map(|recording| &recording.expect.causes)
        .filter(|expected| expected.share.min > 0.0)
        .map(|expected| expected.cause.as_str())
        .collect();
    let is_without = |cause: &Cause| WITHOUT.iter().any(|(other, _)| other == cause);
    let missing: Vec<_> = Cause::ALL
        .into_iter()
        .filter(|cause| !is_without(cause) && !expected.contains(cause.name()))
        .collect();
    assert!(
        missing.is_empty(),
        "no recording expects {missing:?}: make one (docs/scenarios.md), or say in WITHOUT why there is none"
    );
}

#[test]
fn the_corpus_is_small() {
    let size: u64 = recordings()
        .iter()
        .flat_map(|recording| std::fs::read_dir(&recording.dir).unwrap().flatten())
        .map(|entry| entry.metadata().unwrap().len())
        .sum();
    assert!(size < 8 << 20, "{size} B");
}

/// Every folder of the corpus that contains a truth file.
fn recordings() -> Vec<Recording> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus");
    let mut recordings = Vec::new();
    for part in ["lab", "real"] {
        let Ok(entries) = std::fs::read_dir(root.join(part)) else { continue };
        let mut dirs: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        dirs.sort();
        recordings.extend(dirs.into_iter().filter(|dir| dir.join("truth.json").exists()).map(|dir| {
            let name = dir.file_name().unwrap().to_string_lossy().into_owned();
            let text = std::fs::read(dir.join("truth.json")).unwrap();
            let truth: Truth =
                serde_json::from_slice(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
            let expect = expectations(&name, &truth);
            Recording { name, dir, truth, expect }
        }));
    }
    assert!(!recordings.is_empty(), "no corpus below {}", root.display());
    recordings
}

/// What the scenario expects today; for a scenario that is gone, or a real program, what its
/// recording states.
fn expectations(name: &str, truth: &Truth) -> Expect {
    let (form, fix) = match name.split_once('+') {
        Some((form, fix)) => (form, Some(fix)),
        None => (name, None),
    };
    let definition = truth.definition.as_deref().unwrap_or_default();
    Scenario::load(form, fix, &[])
        .or_else(|_| Scenario::parse(name, definition, None, &[]))
        .unwrap_or_else(|error| panic!("{error}"))
        .expect
}
