//! Does `tcpwhy read` give up its rights before it parses, and does everything still work without
//! them?
//!
//! What the sandbox refuses is tested in its own crate (`crates/sandbox/tests/escape.rs`).

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

/// Starts with a pipe as standard input, writes the bytes and leaves the pipe open.
fn stalled(args: &[&str], bytes: &[u8]) -> Child {
    let mut command = tcpwhy(args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("tcpwhy starts");
    child.stdin.as_mut().expect("a pipe").write_all(bytes).expect("the pipe's buffer takes it");
    child
}

/// The seccomp mode or `no_new_privs` of each thread, once the process has come that far.
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

/// Every way to read prints the same with and without the sandbox, and no warning.
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

/// For gzip, the decompressor would read the whole header as soon as it is created.
#[test]
fn rights_are_given_up_before_the_first_byte_comes() {
    let path = capture();
    let path = path.to_str().expect("a path");
    for args in [&["-"][..], &["-", path], &["-", "--from", "+1ms"], &["-", "--json", "--threads", "3"]] {
        let mut child = stalled(args, b"");
        assert!(rights(&child, "Seccomp:\t2"), "{args:?}");
        drop(child.stdin.take());
        assert!(child.wait().is_ok());
    }
    let mut child = stalled(&["-"], b"\x1f\x8b\x08\x08half of a header");
    assert!(rights(&child, "Seccomp:\t2"));
    drop(child.stdin.take());
    assert_eq!(child.wait().expect("it ends").code(), Some(1));
}

#[test]
fn what_was_left_open_is_closed_and_what_was_handed_over_is_read() {
    let path = capture();
    let script = "exec 7</etc/passwd 9</etc/hosts; exec \"$0\" read - \"$1\" \"$1\"";
    let mut child = Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_tcpwhy")])
        .arg(&path)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    assert!(rights(&child, "Seccomp:\t2"));
    let open = fs::read_dir(format!("/proc/{}/fd", child.id())).expect("it runs").flatten();
    let open = open.filter_map(|one| fs::read_link(one.path()).ok());
    let mut open: Vec<_> = open.map(|one| one.to_string_lossy().into_owned()).collect();
    open.retain(|one| !one.starts_with("pipe:") && one != "/dev/null");
    assert_eq!(open.len(), 2, "the two captures: {open:?}");
    assert!(open.iter().all(|one| one.ends_with("split.pcap")), "{open:?}");
    drop(child.stdin.take());
    assert!(child.wait().is_ok());
    // A shell's <(...) is an inherited descriptor, passed by name.
    let handed = Command::new("sh")
        .args(["-c", "exec \"$0\" read /dev/fd/9 9<\"$1\"", env!("CARGO_BIN_EXE_tcpwhy")])
        .arg(&path)
        .output()
        .expect("it starts");
    assert!(handed.status.success(), "{}", String::from_utf8_lossy(&handed.stderr));
}

#[test]
fn memory_has_an_end_that_an_honest_capture_does_not_come_near() {
    let mut child = stalled(&["-"], b"");
    assert!(rights(&child, "Seccomp:\t2"));
    let limits = fs::read_to_string(format!("/proc/{}/limits", child.id())).expect("it runs");
    let line = limits.lines().find(|line| line.starts_with("Max address space")).unwrap_or_default();
    let hard: u64 = line.split_whitespace().nth(4).and_then(|bytes| bytes.parse().ok()).unwrap_or(u64::MAX);
    assert!((1 << 30..16 << 30).contains(&hard), "{line}");
    drop(child.stdin.take());
    assert!(child.wait().is_ok());
    // Address space, not memory: many threads reserve much of it.
    let path = capture();
    assert!(run(&[path.to_str().expect("a path"), "--threads", "256"]).status.success());
}

/// To the reader, a kernel that lacks these calls.
fn without(calls: &[i64], errno: i32, args: &[&str]) -> Output {
    use seccompiler::{SeccompAction, SeccompFilter, TargetArch, apply_filter};
    use std::os::unix::process::CommandExt as _;

    let refuse = SeccompAction::Errno(errno.unsigned_abs());
    let rules = calls.iter().map(|call| (*call, vec![])).collect();
    let arch = TargetArch::try_from(std::env::consts::ARCH).expect("an architecture that is known");
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refuse, arch).expect("a filter");
    let program: seccompiler::BpfProgram = filter.try_into().expect("a program");
    let mut command = tcpwhy(args);
    // SAFETY: between fork and exec it makes two system calls and takes no memory.
    #[expect(unsafe_code, reason = "nothing safe runs between fork and exec")]
    unsafe {
        command.pre_exec(move || apply_filter(&program).map_err(|_| std::io::ErrorKind::Other.into()));
    }
    command.output().expect("it starts")
}

#[test]
fn a_part_of_the_sandbox_that_is_missing_is_said_and_both_are_too_much() {
    let path = capture();
    let path = path.to_str().expect("a path");
    let said = |output: &Output| String::from_utf8_lossy(&output.stderr).into_owned();
    let (landlock, seccomp) = (libc::SYS_landlock_create_ruleset, libc::SYS_seccomp);
    for (missing, name) in [(landlock, "Landlock"), (seccomp, "seccomp")] {
        let output = without(&[missing], libc::ENOSYS, &[path]);
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        assert!(said(&output).contains(&format!("warning: {name} is not available")), "{}", said(&output));
        let output = without(&[missing], libc::ENOSYS, &[path, "--sandbox=require"]);
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
        assert!(
            output.stdout.is_empty() && said(&output).contains("refusing to read without the sandbox"),
            "{}",
            said(&output)
        );
    }
    let output = without(&[landlock, seccomp], libc::EPERM, &[path]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(
        output.stdout.is_empty() && said(&output).contains("refusing to read without the sandbox"),
        "{}",
        said(&output)
    );
    let output = without(&[landlock, seccomp], libc::EPERM, &[path, "--sandbox=off"]);
    assert_eq!((output.status.code(), said(&output).as_str()), (Some(0), ""));
    assert_eq!(run(&[path, "--sandbox=require"]).status.code(), Some(0));
    assert_eq!(run(&[path, "--sandbox=require", "--no-sandbox"]).status.code(), Some(2));
}

#[test]
fn where_no_thread_is_to_be_had_one_does_it_all() {
    let path = capture();
    let args = [path.to_str().expect("a path"), "--json", "--threads", "4"];
    let alone = without(&[libc::SYS_clone, libc::SYS_clone3], libc::EAGAIN, &args);
    assert_eq!(alone.status.code(), Some(0), "{}", String::from_utf8_lossy(&alone.stderr));
    assert!(alone.stderr.is_empty() && alone.stdout == run(&args).stdout);
}
