//! What does a laboratory leave behind? Nothing, however it ends.
#![cfg(target_os = "linux")]

use std::collections::BTreeSet;
use std::fmt::Display;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// Programs on both hosts; on each, one leaves its parent and its session, as daemons do.
const SERVER: &str = "setsid sleep 86399 & sleep 86398";
const CLIENT: &str = "(setsid sleep 86397 &); echo running; sleep \"$0\"";

#[test]
fn twenty_runs_and_ten_kills_leave_nothing() {
    leaves_nothing(20, 10);
}

#[test]
#[ignore = "slow: the hundred runs and fifty kills of the release check"]
fn a_hundred_runs_and_fifty_kills_leave_nothing() {
    leaves_nothing(100, 50);
}

fn leaves_nothing(runs: u32, kills: u32) {
    if !is_root() {
        return skip("clean", &"only root sees every process");
    }
    let before = Machine::observe();
    let mark = format!("TCPWHY_LAB_TEST={}-{runs}", std::process::id());
    for run in 0..runs {
        let mut pair = start(&mark, "0");
        let status = pair.wait().expect("the example ends");
        assert!(status.success(), "run {run}: {status}");
        assert_gone(&mark, &BTreeSet::new(), &format!("run {run}"));
    }
    for kill in 0..kills {
        let mut pair = start(&mark, "86396");
        // The moments cover set-up and running alike; how far it has got depends on the machine.
        let mut namespaces = BTreeSet::new();
        let moment = Duration::from_micros(u64::from(kill) * 7_919 % 120_000);
        if kill % 2 == 0 {
            let mut said = String::new();
            let output = pair.stdout.take().expect("a pipe");
            BufReader::new(output).read_line(&mut said).expect("the client speaks");
            assert_eq!(said, "running\n");
            namespaces = namespaces_of(&mark);
            assert!(namespaces.len() >= 2, "two hosts have two namespaces");
        }
        sleep(moment);
        // A third of them with Ctrl-C's signal, the others without any chance to clean up.
        let signal = if kill % 3 == 0 { "-INT" } else { "-KILL" };
        let killed = Command::new("kill").args([signal, &pair.id().to_string()]).status();
        assert!(killed.expect("kill runs").success());
        pair.wait().expect("the example ends");
        assert_gone(&mark, &namespaces, &format!("kill {kill} after {moment:?} with {signal}"));
    }
    assert_eq!(before, Machine::observe());
}

#[test]
fn a_user_without_rights_gets_a_laboratory_or_learns_what_is_missing() {
    if !is_root() {
        return skip("user", &"only root can become another user");
    }
    // The example is copied to a place where any user can run it.
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let nobody = 65_534;
    let run = |prepare: &str| {
        let script = format!(
            "{prepare} exec setpriv --reuid {nobody} --regid {nobody} --clear-groups /tmp/pair --client 'echo reached'"
        );
        // From standard input: the mount may hide its folder.
        let mount = "mount -t tmpfs none /tmp && cat > /tmp/pair && chmod 755 /tmp/pair &&";
        let mut command = Command::new("unshare");
        command.args(["-m", "sh", "-c"]).arg(format!("{mount} {script}")).current_dir("/");
        command.stdin(fs::File::open(example()).expect("the example is built"));
        command.output().expect("unshare runs")
    };
    assert!(dir.is_dir());

    // A device that any user may open, in a mount namespace of the test.
    let open = run("mknod -m 666 /tmp/tun c 10 200 && mount --bind /tmp/tun /dev/net/tun &&");
    let said = String::from_utf8_lossy(&open.stderr);
    if open.status.success() {
        assert_eq!(String::from_utf8_lossy(&open.stdout), "reached\n");
    } else {
        assert!(said.contains("user namespace") && said.contains("sysctl"), "{said}");
    }

    // A device that only root may open.
    let closed = run("mknod -m 600 /tmp/tun c 10 200 && mount --bind /tmp/tun /dev/net/tun &&");
    let said = String::from_utf8_lossy(&closed.stderr);
    assert!(!closed.status.success());
    assert!(said.contains("chmod 666 /dev/net/tun") || said.contains("sysctl"), "{said}");
}

/// The state that the laboratory must not change.
#[derive(Debug, PartialEq)]
struct Machine {
    interfaces: BTreeSet<String>,
    sysctls: Vec<(PathBuf, String)>,
    mounts: usize,
}

impl Machine {
    fn observe() -> Self {
        let names = fs::read_dir("/sys/class/net").expect("interfaces").flatten();
        let mut sysctls = Vec::new();
        read_all(Path::new("/proc/sys/net"), &mut sysctls);
        sysctls.sort();
        let mounts = fs::read_to_string("/proc/self/mountinfo").expect("mounts").lines().count();
        Self {
            interfaces: names.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect(),
            sysctls,
            mounts,
        }
    }
}

fn read_all(dir: &Path, into: &mut Vec<(PathBuf, String)>) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            read_all(&path, into);
        } else if let Ok(text) = fs::read_to_string(&path) {
            // Counters that change on their own.
            let moves = ["route/gc", "conntrack_count", "flow_limit", "tcp_fastopen_key", "stat"];
            if !moves.iter().any(|name| path.to_string_lossy().contains(name)) {
                into.push((path, text));
            }
        }
    }
}

/// Starts the example with a mark in its environment, which all its descendants inherit.
fn start(mark: &str, seconds: &str) -> Child {
    let (name, value) = mark.split_once('=').expect("a variable");
    let client = CLIENT.replace("$0", seconds);
    // A shell that runs the tests in the background may ignore interrupts, which is inherited.
    let mut command = Command::new("env");
    command.arg("--default-signal=INT").arg(example());
    command.args(["--rtt", "2ms", "--server", SERVER, "--no-wait", "--client", &client]);
    command.env(name, value).stdout(Stdio::piped()).stderr(Stdio::null());
    // Its own process group: an interrupt must reach it as from a terminal, and not this test.
    command.process_group(0).spawn().expect("the example starts")
}

fn example() -> PathBuf {
    let test = std::env::current_exe().expect("the test's own file");
    let dir = test.parent().and_then(Path::parent).expect("target/debug/deps");
    let example = dir.join("examples/pair");
    assert!(
        example.exists(),
        "build it first: cargo build -p tcpwhy-lab --example pair ({})",
        example.display()
    );
    example
}

/// Waits until no process carries the mark and nothing refers to the namespaces; otherwise says
/// what does.
fn assert_gone(mark: &str, namespaces: &BTreeSet<u64>, when: &str) {
    let mut left = Vec::new();
    for _ in 0..300 {
        left = marked(mark).into_iter().map(|pid| describe(&pid)).collect();
        left.extend(references(namespaces));
        if left.is_empty() {
            return;
        }
        sleep(Duration::from_millis(10));
    }
    panic!("{when}: still there after 3 s: {left:#?}");
}

/// Processes with the mark in their environment. Zombies have no environment.
fn marked(mark: &str) -> Vec<PathBuf> {
    let carries = |pid: &PathBuf| {
        let environment = fs::read(pid.join("environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
    };
    processes().filter(carries).collect()
}

fn processes() -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir("/proc").expect("/proc").flatten();
    entries.map(|entry| entry.path()).filter(|path| {
        path.file_name().is_some_and(|name| name.to_string_lossy().bytes().all(|byte| byte.is_ascii_digit()))
    })
}

fn describe(pid: &Path) -> String {
    let mut line = Vec::new();
    // It may be gone by now.
    let _ = fs::File::open(pid.join("cmdline")).and_then(|mut file| file.read_to_end(&mut line));
    format!("{}: {}", pid.display(), String::from_utf8_lossy(&line).replace('\0', " "))
}

fn namespaces_of(mark: &str) -> BTreeSet<u64> {
    let own = namespace(Path::new("/proc/self"));
    let mut found: BTreeSet<u64> = marked(mark).iter().filter_map(|pid| namespace(pid)).collect();
    if let Some(own) = own {
        found.remove(&own);
    }
    found
}

fn namespace(pid: &Path) -> Option<u64> {
    fs::metadata(pid.join("ns/net")).ok().map(|namespace| namespace.ino())
}

/// Processes in a namespace, and descriptors and mounts that hold one.
fn references(namespaces: &BTreeSet<u64>) -> Vec<String> {
    let mut found = Vec::new();
    for pid in processes() {
        if namespace(&pid).is_some_and(|inode| namespaces.contains(&inode)) {
            found.push(describe(&pid));
        }
        for fd in fs::read_dir(pid.join("fd")).into_iter().flatten().flatten() {
            let target = fs::read_link(fd.path()).unwrap_or_default();
            if namespaces.iter().any(|inode| target.to_string_lossy() == format!("net:[{inode}]")) {
                found.push(format!("{} holds {}", describe(&pid), target.display()));
            }
        }
    }
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    found.extend(
        mounts
            .lines()
            .filter(|line| namespaces.iter().any(|inode| line.contains(&format!("net:[{inode}]"))))
            .map(str::to_owned),
    );
    found
}

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

#[expect(clippy::disallowed_methods, reason = "CI is where a test may not be skipped")]
fn skip(test: &str, reason: &dyn Display) {
    assert!(std::env::var("CI").is_err(), "{test} was skipped in CI: {reason}");
    eprintln!("skipping {test}: {reason}");
}
