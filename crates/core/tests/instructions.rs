//! Has the analysis become slower? Instructions per packet over generated captures, and misses in
//! an instruction cache of 32 KB, counted by callgrind, against the committed figures: they do not
//! depend on the machine's load.
//!
//! More than 3 % above a figure fails, and more than 10 % of the misses, or 12: those vary with
//! where the linker puts functions. If the price is worth it, or speed was gained, accept the new
//! ones with `BLESS=1 cargo test -p tcpwhy-core --test instructions` and say in the commit what
//! they buy.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Few enough packets of each shape for some seconds; enough that connections are past their handshakes and some
/// are over. Those of rpc last until they ask one another about their path.
const SHAPES: [(&str, u32); 4] =
    [("rpc", 200_000), ("bulk", 60_000), ("bulk-full", 60_000), ("churn", 60_000)];
/// In percent, with the compiler of the figures and with another one.
const ALLOWED: [f64; 2] = [3.0, 15.0];
const MISSES_ALLOWED: [f64; 2] = [10.0, 30.0];
/// This many more may come from the layout of functions: for the same 1,882 instructions of rpc, three directories gave
/// 17.7, 21.8 and 30.1.
const MISSES_SLACK: f64 = 12.0;
/// The first-level caches assumed: bytes, ways, bytes per line.
const CACHES: [&str; 2] = ["--I1=32768,8,64", "--D1=49152,12,64"];

#[test]
fn the_analysis_takes_no_more_instructions_than_it_did() {
    if Command::new("valgrind").arg("--version").output().is_err() {
        assert!(!is_set("CI"), "in CI: valgrind is missing; tools/install.sh installs it");
        println!("skipped: valgrind is missing; tools/install.sh installs it");
        return;
    }
    let bench = build();
    let counted: BTreeMap<&str, [f64; 2]> =
        SHAPES.into_iter().map(|(shape, packets)| (shape, count(&bench, shape, packets))).collect();
    let figures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/instructions.txt");
    let compiler = compiler();
    if is_set("BLESS") {
        let lines = counted.iter().map(|(shape, [count, misses])| format!("{shape} {count:.0} {misses:.1}"));
        let lines: Vec<String> = std::iter::once(compiler).chain(lines).collect();
        std::fs::write(&figures, lines.join("\n") + "\n").expect("the figures can be written");
        return;
    }
    let known = std::fs::read_to_string(&figures).expect("the figures");
    let mut lines = known.lines();
    let other = usize::from(lines.next() != Some(&compiler));
    let mut slower = Vec::new();
    for line in lines {
        let words: Vec<&str> = line.split(' ').collect();
        let [shape, figures @ ..] = words.as_slice() else { panic!("a shape and its figures") };
        let what = [("instructions", ALLOWED[other]), ("misses", MISSES_ALLOWED[other])];
        for ((figure, now), (what, allowed)) in figures.iter().zip(counted[shape]).zip(what) {
            let figure: f64 = figure.parse().expect("a figure per packet");
            let change = (now / figure - 1.0) * 100.0;
            println!("{shape}: {now:.1} {what} per packet, {change:+.1} %");
            let slack = if what == "misses" { MISSES_SLACK } else { 0.0 };
            if change > allowed && now - figure > slack {
                slower.push(format!("{shape}: {figure} -> {now:.1} {what} per packet ({change:+.1} %)"));
            }
        }
    }
    assert!(
        slower.is_empty(),
        "{}\nmore than allowed above tests/instructions.txt; if it is worth that: \
         BLESS=1 cargo test -p tcpwhy-core --test instructions",
        slower.join("\n")
    );
}

/// Builds the benchmark in release mode, and returns its path.
fn build() -> PathBuf {
    let output = Command::new(env!("CARGO"))
        .args(["build", "--locked", "--release", "-p", "tcpwhy-core", "--bench", "analysis"])
        .arg("--message-format=json")
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let messages = String::from_utf8(output.stdout).expect("JSON is text");
    let executable = messages.lines().filter_map(|line| line.split_once("\"executable\":\"")).next_back();
    let (path, _) = executable.and_then(|(_, rest)| rest.split_once('"')).expect("an executable");
    PathBuf::from(path)
}

/// Instructions and instruction misses per packet, including decoding but not generating.
fn count(bench: &Path, shape: &str, packets: u32) -> [f64; 2] {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--cache-sim=yes", "--callgrind-out-file=/dev/null"])
        .args(CACHES)
        .arg("--toggle-collect=analysis::analyse")
        .arg(bench)
        .args([shape, &packets.to_string()])
        .output()
        .expect("valgrind runs");
    let said = String::from_utf8_lossy(&output.stderr);
    let collected = said.lines().find_map(|line| line.split_once("Collected : ")).expect("a count");
    // Instructions, reads, writes, misses of instructions, and more.
    let events: Vec<f64> = collected.1.split_whitespace().filter_map(|event| event.parse().ok()).collect();
    [0, 3].map(|event| events[event] / f64::from(packets))
}

fn compiler() -> String {
    let output = Command::new("rustc").arg("--version").output().expect("rustc runs");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

#[expect(clippy::disallowed_methods, reason = "what a test may do is the environment's business")]
fn is_set(name: &str) -> bool {
    std::env::var(name).is_ok_and(|value| !value.is_empty())
}
