//! Does `tcpwhy read` give up its rights before it parses, and does everything still work without them?
//!
//! What the sandbox refuses is tested where it is made (`crates/sandbox/tests/escape.rs`).

#![cfg(target_os = "linux")]

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

fn capture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/split.pcap")
}

fn tcpwhy(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tcpwhy"));
    command.arg("read").args(args).stdin(Stdio::null());
    command
}

fn run(args: &[&str]) -> Output {
    tcpwhy(args).output().expect("tcpwhy starts")
}

/// Starts with a pipe as standard input, gives the bytes and leaves the pipe open.
fn stalled(args: &[&str], bytes: &[u8]) -> Child {
    let mut command = tcpwhy(args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("tcpwhy starts");
    child.stdin.as_mut().expect("a pipe").write_all(bytes).expect("the pipe's buffer takes it");
    child
}

/// Modes of seccomp and of `no_new_privs`, of each thread, once the process has come so far.
fn rights(child: &Child, wanted: &str) -> bool {
    let tasks = format!("/proc/{}/task", child.id());
    for _ in 0..500 {
        let threads = fs::read_dir(&tasks).expect("the process runs").flatten();
        let status = threads.map(|task| fs::read_to_string(task.path().join("status")).unwrap_or_default());
        let status: Vec<_> = status.collect();
        if status.iter().all(|one| one.contains(wanted)) && !status.is_empty() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    false
}

#[test]
fn a_reader_whose_input_stalls_has_no_rights_left_and_ends_with_it() {
    let bytes = fs::read(capture()).expect("the capture is committed");
    for threads in ["1", "3"] {
        let mut child = stalled(&["-", "--threads", threads], &bytes[..4_000]);
        assert!(rights(&child, "Seccomp:\t2"), "{threads} threads, each with a filter");
        assert!(rights(&child, "NoNewPrivs:\t1"));
        let stdin = child.stdin.take();
        let written = stdin.map(|mut stdin| stdin.write_all(&bytes[4_000..]));
        assert!(written.is_some_and(|written| written.is_ok()));
        let output = child.wait_with_output().expect("it ends");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let whole = run(&[capture().to_str().expect("a path"), "--threads", threads]);
        let shown = |output: &Output| {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            text.lines().next().unwrap_or_default().to_owned()
        };
        assert_eq!(shown(&output), shown(&whole));
    }
}

#[test]
fn without_the_sandbox_the_rights_stay() {
    let bytes = fs::read(capture()).expect("the capture is committed");
    let mut child = stalled(&["-", "--no-sandbox"], &bytes[..4_000]);
    assert!(rights(&child, "Seccomp:\t0"));
    drop(child.stdin.take());
    assert!(child.wait().expect("it ends").success());
    let help = String::from_utf8(run(&["--help"]).stdout).expect("text");
    assert!(help.contains("Landlock and seccomp"), "{help}");
}

/// Every way to read, with and without, says the same and warns of nothing.
#[test]
fn everything_works_within_it() {
    let folder = tempfile::tempdir().expect("a directory");
    let plain = fs::read(capture()).expect("the capture is committed");
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gz.write_all(&plain).expect("to memory");
    let files = [
        ("a.pcap", plain.clone()),
        ("b.pcap.gz", gz.finish().expect("to memory")),
        ("c.pcap.zst", zstd::encode_all(&plain[..], 3).expect("to memory")),
        ("cut.pcap", plain[..plain.len() - 7].to_vec()),
        ("no.pcap", b"no capture".to_vec()),
        ("bad.gz", b"\x1f\x8b\x08 no gzip at all".to_vec()),
    ];
    let path = |name: &str| folder.path().join(name).to_str().expect("a path").to_owned();
    for (name, bytes) in &files {
        fs::write(path(name), bytes).expect("a file");
    }
    let (plain, gz, zst) = (path("a.pcap"), path("b.pcap.gz"), path("c.pcap.zst"));
    let (cut, no, bad) = (path("cut.pcap"), path("no.pcap"), path("bad.gz"));
    let missing = path("missing");
    let cases: [&[&str]; 16] = [
        &[&plain],
        &[&gz],
        &[&zst],
        &[&gz, &plain, &zst],
        &[&plain, "--json", "--threads", "8"],
        &[&plain, "-v"],
        &[&gz, &zst, "-v", "--threads", "4"],
        &[&plain, "-c", "1", "-v", "--color", "always"],
        &[&plain, "-c", "99"],
        &[&plain, "--fail-on", "nagle-delayed-ack"],
        &[&plain, "--from", "+10ms", "--to", "-10ms", "-v"],
        &[&gz, "--from", "-10ms"],
        &[&cut],
        &[&no, &bad, &plain],
        &[&missing],
        &[folder.path().to_str().expect("a path")],
    ];
    for case in cases {
        let mut without = case.to_vec();
        without.push("--no-sandbox");
        let (with, without) = (run(case), run(&without));
        assert_eq!(with.status.code(), without.status.code(), "{case:?}");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert_eq!(text(&with.stderr), text(&without.stderr), "{case:?}");
        assert!(with.stdout == without.stdout, "{case:?}");
        assert!(!text(&with.stderr).contains("warning"), "{}", text(&with.stderr));
    }
}

#[test]
fn v_reads_a_pipe_once_and_says_so() {
    let mut child = stalled(&["-", "-v"], &fs::read(capture()).expect("the capture is committed"));
    drop(child.stdin.take());
    let mut said = String::new();
    child.stderr.take().expect("a pipe").read_to_string(&mut said).expect("text");
    assert!(child.wait().expect("it ends").success());
    assert!(said.contains("-v reads its input twice, which a pipe does not allow"), "{said}");
}
