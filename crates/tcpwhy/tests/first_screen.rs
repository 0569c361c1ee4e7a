//! Does the first screen of every recording name what takes most of the time, and advise only where
//! it pays? Is a file or option that cannot be used named, with what to do? Do `make demo` and
//! `make test` say what they install?

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn split() -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/split.pcap").display().to_string()
}

fn tcpwhy(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tcpwhy"));
    let output = command.args(args).stdin(Stdio::null()).output();
    output.unwrap_or_else(|error| panic!("tcpwhy does not start: {error}"))
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// One line, whatever the width.
fn unwrapped(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The client's end of each recording, with what it is called.
fn recordings() -> Vec<(String, String)> {
    let folder = std::fs::read_dir(root().join("corpus/lab")).unwrap_or_else(|error| panic!("{error}"));
    let mut all: Vec<_> = folder
        .flatten()
        .map(|entry| (entry.file_name().display().to_string(), entry.path().join("client.pcapng.zst")))
        .filter(|(_, path)| path.exists())
        .map(|(name, path)| (name, path.display().to_string()))
        .collect();
    all.sort();
    assert!(all.len() > 40, "{} recordings", all.len());
    all
}

/// Two requests under way at once, and a reply to each: no packet rules out that the second was a
/// piece of the first. TCP_NODELAY helps either way; one write helps if both were ready.
#[test]
fn replies_to_several_requests_are_not_called_one_in_pieces() {
    let fixes = |name: &str, end: &str| {
        let path = root().join(format!("corpus/lab/{name}/{end}.pcapng.zst"));
        let shown = unwrapped(&stdout(&tcpwhy(&["read", &path.display().to_string()])));
        let Some((answer, rest)) = shown.split_once(" fix ") else { panic!("{shown}") };
        let Some((first, or)) = rest.split_once(" or ") else { panic!("{shown}") };
        (answer.to_owned(), first.to_owned(), or.to_owned())
    };
    for end in ["client", "server"] {
        let (answer, first, or) = fixes("i20-npgsql", end);
        assert!(
            answer.contains("until it comes, Nagle's algorithm holds the server's next write"),
            "{answer}"
        );
        assert!(!answer.contains("in pieces"), "{answer}");
        assert!(answer.contains("what is held may be a separate message"), "{answer}");
        assert!(first.starts_with("Set TCP_NODELAY on the server's socket"), "{first}");
        assert!(or.starts_with("If the server has both writes ready at the same time, join them"), "{or}");
    }
    let (answer, first, _) = fixes("split", "client");
    assert!(answer.contains("the client writes each request in pieces"), "{answer}");
    assert!(first.starts_with("Write each message of the client to the socket at once"), "{first}");
}

/// The cause that takes most of the time, in the answer's words.
const OF_THE_PATH: [(&str, &str); 3] = [
    ("bandwidth", " on the slowest link"),
    ("round-trip", "the path's round trip"),
    ("queueing", "queues on the path"),
];

#[test]
fn the_path_and_its_bandwidth_are_named_where_they_take_most_of_the_time() {
    let mut named = [0; OF_THE_PATH.len()];
    for (name, path) in recordings() {
        let document: Value =
            serde_json::from_slice(&tcpwhy(&["read", &path, "--json"]).stdout).unwrap_or_default();
        let (line, all) = (&document["bill"][0], document["elapsed_ns"].as_u64().unwrap_or(u64::MAX));
        if line["ns"].as_u64().unwrap_or(0) * 2 <= all {
            continue;
        }
        let Some(at) = OF_THE_PATH.iter().position(|(cause, _)| line["cause"] == *cause) else { continue };
        let screen = stdout(&tcpwhy(&["read", &path, "--brief"]));
        let answer = unwrapped(screen.split("\n\n").next().unwrap_or_default());
        assert!(answer.contains(OF_THE_PATH[at].1), "{name}: most is {line}: {answer}");
        named[at] += 1;
    }
    assert!(named[0] > 0 && named[1] > 0, "{named:?}");
}

#[test]
fn what_takes_little_gets_no_advice() {
    let (mut little, mut much) = (0, 0);
    for (name, path) in recordings() {
        let screen = stdout(&tcpwhy(&["read", &path]));
        // Each finding begins with its number and has a line of costs.
        for finding in screen.split("\n\n").filter(|piece| piece.contains("\n   cost ")) {
            let said = unwrapped(finding);
            let share = said.split(" % of the time").next().and_then(|rest| rest.rsplit(' ').next());
            let share: f64 = share
                .and_then(|share| share.trim_start_matches('<').parse().ok())
                .unwrap_or_else(|| panic!("{finding}"));
            let has_advice = ["\n   fix ", "\n   if so "].iter().any(|name| finding.contains(name));
            assert!(share >= 5.0 || !has_advice, "{name}: advice for {share} %\n{finding}");
            *if has_advice { &mut much } else { &mut little } += 1;
        }
    }
    assert!(little > 20 && much > 20, "{little} without advice, {much} with it");
}

/// A contrast must be one: the other exchanges take less than the wait, by more than a tenth.
#[test]
fn the_others_are_told_apart_by_other_times() {
    let mut contrasts = 0;
    for (name, path) in recordings() {
        let screen = stdout(&tcpwhy(&["read", &path, "--brief"]));
        let answer = unwrapped(screen.split("\n\n").next().unwrap_or_default());
        for clause in answer.split(". ").filter(|clause| clause.contains("; the other ")) {
            let (before, behind) = clause.split_once("; the other ").unwrap_or_default();
            let times = [before, behind].map(|part| times_in(part).first().copied());
            if let [Some(wait), Some(other)] = times {
                assert!(other < wait * 0.91, "{name}: {clause}");
                contrasts += 1;
            }
        }
    }
    assert!(contrasts > 2, "{contrasts}");
}

/// Times in a text, in milliseconds.
fn times_in(text: &str) -> Vec<f64> {
    let words: Vec<&str> = text.split([' ', ';', ',']).collect();
    let unit = |word: &str| match word {
        "s" => Some(1e3),
        "ms" => Some(1.0),
        "µs" => Some(1e-3),
        _ => None,
    };
    let time = |pair: &[&str]| Some(pair[0].parse::<f64>().ok()? * unit(pair[1])?);
    words.windows(2).filter_map(time).collect()
}

#[test]
fn what_a_file_or_an_option_lacks_is_said_with_both_and_what_to_do() {
    let file = split();
    for (args, says) in [
        (
            &["read", &file, "--against", "none.json"][..],
            "--against none.json: there is no such file; create one with `tcpwhy read FILE --save-baseline none.json`",
        ),
        (
            &["read", &file, "--against", &file],
            "not a baseline; create one with `tcpwhy read FILE --save-baseline ",
        ),
        (&["read", &file, "--against", "/"], "cannot read / for --against: Is a directory"),
        (
            &["read", &file, "--save-baseline", "none/x"],
            "cannot write none/x for --save-baseline: No such file",
        ),
        (&["read", &file, "--html", "none/x"], "cannot write none/x for --html: No such file"),
        (&["read", &file, "--annotate", "none/x"], "cannot write none/x for --annotate: No such file"),
        (&["read", &file, "--anonymize", "--key", "none"], "cannot read none for --key: No such file"),
        (&["read", &file, "--serve", "192.0.2.1:0"], "--serve cannot listen on 192.0.2.1:0: "),
        (&["read", "none.pcap"], "none.pcap: no such file"),
        (&["lab", "none.toml"], "none.toml: No such file"),
    ] {
        let output = tcpwhy(args);
        let said = stderr(&output);
        assert!(said.contains(says), "{args:?}: {said}");
        assert!(
            !output.status.success() && said.lines().count() == 1 && !said.contains("os error"),
            "{said}"
        );
    }
}

/// A folder for the journal is not created where another user could redirect it.
#[cfg(target_os = "linux")]
#[test]
fn a_journal_in_a_folder_that_is_not_there_says_to_make_it() {
    let output = tcpwhy(&["undo", "--journal", "none/at-all"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        stderr(&output),
        "tcpwhy: the journal of changes none/at-all/tcpwhy: there is no folder none/at-all, make it first \
         (mkdir -m 700 none/at-all); nothing is changed without it\n"
    );
}

/// Filters given as words of the command line get a caret too.
#[cfg(target_os = "linux")]
#[test]
fn the_caret_stands_below_what_live_and_sockets_cannot_read() {
    for command in ["live", "sockets"] {
        let output = tcpwhy(&[command, "port", "http0"]);
        let said = stderr(&output);
        let lines: Vec<&str> = said.lines().collect();
        assert_eq!(output.status.code(), Some(2), "{command}: {said}");
        let [_, filter, caret] = lines[..] else { panic!("{said}") };
        assert_eq!(caret.find('^'), filter.find("http0"), "{said}");
    }
}

/// An IPv6 connection, by one end and by both, in a capture of one packet each way between ::1 and
/// itself.
#[test]
fn a_connection_is_found_by_an_address_of_version_6() {
    let dir = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
    let path = dir.path().join("v6.pcap");
    std::fs::write(&path, six()).unwrap_or_else(|error| panic!("{error}"));
    let path = path.display().to_string();
    for which in ["[2001:db8::2]:80", "[2001:db8::1]:4000", "[2001:db8::2]:80-[2001:db8::1]:4000"] {
        let output = tcpwhy(&["read", &path, "-c", which]);
        let said = stdout(&output);
        assert!(
            said.starts_with("Connection 1: [2001:db8::1]:4000 -> [2001:db8::2]:80"),
            "{which}: {said}{}",
            stderr(&output)
        );
    }
    let other = tcpwhy(&["read", &path, "-c", "[2001:db8::3]:80"]);
    assert_eq!(other.status.code(), Some(2), "{}", stderr(&other));
    for wrong in ["2001:db8::2:80", "[2001:db8::2]"] {
        let output = tcpwhy(&["read", &path, "-c", wrong]);
        assert!(
            output.status.code() == Some(2) && stderr(&output).contains("[address]:port for IPv6"),
            "{wrong}"
        );
    }
}

/// A handshake, a request and a reply over IPv6 (RFC 8200, RFC 9293), as a capture without link
/// headers (LINKTYPE_RAW).
fn six() -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 101] {
        file.extend(word.to_le_bytes());
    }
    let packets = [
        (false, 100_u32, 0_u32, 0x02_u8, 0_u16),
        (true, 500, 101, 0x12, 0),
        (false, 101, 501, 0x10, 0),
        (false, 101, 501, 0x18, 20),
        (true, 501, 121, 0x18, 30),
        (false, 121, 531, 0x10, 0),
    ];
    for (n, (is_back, seq, ack, flags, len)) in packets.into_iter().enumerate() {
        let address = |last| [0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last];
        let (mut ends, mut ports) = ([address(1), address(2)], [4_000_u16, 80]);
        if is_back {
            ends.reverse();
            ports.reverse();
        }
        let mut packet = vec![0x60, 0, 0, 0];
        packet.extend((20 + len).to_be_bytes());
        packet.extend([6, 64]);
        packet.extend(ends.concat());
        packet.extend(ports.iter().flat_map(|port| port.to_be_bytes()));
        packet.extend(seq.to_be_bytes());
        packet.extend(ack.to_be_bytes());
        packet.extend([0x50, flags, 0x20, 0, 0, 0, 0, 0]);
        packet.resize(packet.len() + usize::from(len), b'x');
        let size = packet.len() as u32;
        for word in [1_700_000_000, 1_000 * n as u32, size, size] {
            file.extend(word.to_le_bytes());
        }
        file.extend(packet);
    }
    file
}

/// Runs the installer with only these programs besides the shell's own.
fn install(there: &[(&str, &str)]) -> Output {
    let dir = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
    for (name, script) in there {
        let path = dir.path().join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap_or_else(|error| panic!("{error}"));
        let may_run = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&path, may_run).unwrap_or_else(|error| panic!("{error}"));
    }
    let mut shell = Command::new("/bin/sh");
    shell.arg(root().join("tools/install.sh")).env_clear().env("PATH", dir.path());
    shell.output().unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn the_tests_programs_are_installed_with_a_line_or_named() {
    // As root with apt-get: one line with the package manager and the packages, before it is
    // called.
    let asked = install(&[("id", "echo 0"), ("apt-get", "echo apt-get $* >&2")]);
    let said = stdout(&asked);
    assert!(asked.status.success() && said.lines().count() == 1, "{asked:?}");
    assert!(
        said.starts_with("installing with apt-get, for the tests: ") && said.contains(" tshark"),
        "{said}"
    );
    assert!(stderr(&asked).contains("apt-get install "), "{asked:?}");
    // Without root, or without apt-get: the packages are named, and nothing is called.
    for there in [&[("id", "echo 1000"), ("apt-get", "echo apt-get $* >&2")][..], &[("id", "echo 0")]] {
        let named = install(there);
        let said = stdout(&named);
        assert!(named.status.success() && stderr(&named).is_empty(), "{named:?}");
        assert!(said.contains("tests that need them are skipped and say so"), "{said}");
        let how = if there.len() > 1 { "to install: sudo apt-get install tshark " } else { "Debian's names" };
        assert!(said.contains("not installed: tshark ") && said.contains(how), "{said}");
    }
}

#[test]
fn make_says_first_what_it_downloads() {
    let make = |target: &str| {
        // `make test` runs this test: a make within a make would first print the directory it
        // enters.
        let mut make = Command::new("make");
        make.args(["--no-print-directory", "-n", target]).current_dir(root());
        make.env_remove("MAKEFLAGS").env_remove("MAKELEVEL").env_remove("MFLAGS");
        make.output().map(|output| stdout(&output))
    };
    let Ok(demo) = make("demo") else {
        println!("skipped: make is missing");
        return;
    };
    let first = demo.lines().next().unwrap_or_default();
    assert!(
        first.contains("cargo, which downloads the crates in Cargo.lock; nothing is installed"),
        "{demo}"
    );
    let test = make("test").unwrap_or_default();
    assert!(test.lines().next().is_some_and(|line| line.contains("tools/install.sh")), "{test}");
}
