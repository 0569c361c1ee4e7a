//! Does `tcpwhy lab` do what it says, and does it say what is missing if it cannot?
#![cfg(target_os = "linux")]

use std::collections::BTreeSet;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;

fn lab(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tcpwhy")).arg("lab").args(args).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs it, unless this machine cannot run the laboratory: then says so and returns nothing.
fn allowed(test: &str, args: &[&str]) -> Option<Output> {
    let output = lab(args);
    let said = text(&output.stderr);
    if said.contains("not permitted") {
        skip(test, &said);
        return None;
    }
    Some(output)
}

#[expect(clippy::disallowed_methods, reason = "CI is where a test may not be skipped")]
fn skip(test: &str, reason: &str) {
    assert!(std::env::var("CI").is_err(), "{test} was skipped in CI: {reason}");
    eprintln!("skipping {test}: {reason}");
}

#[test]
fn the_list_names_every_scenario_with_what_it_shows() {
    let list = lab(&[]);
    assert_eq!(list.status.code(), Some(0));
    let said = text(&list.stdout);
    for name in ["split", "d-rcvbuf", "corked-tail", "lost-syn"] {
        assert!(said.lines().any(|line| line.starts_with(name)), "{name}: {said}");
    }
    let document: Value = serde_json::from_slice(&lab(&["--json"]).stdout).unwrap();
    assert!(document["scenarios"].as_array().unwrap().len() >= 50);
}

#[test]
fn the_table_has_the_rows_of_the_scenarios() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/laboratory.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (_, rest) = page.split_once("<!-- tcpwhy lab all: begin -->").expect("the table's first mark");
    let (table, _) = rest.split_once("<!-- tcpwhy lab all: end -->").expect("the table's second mark");
    let written: BTreeSet<&str> =
        table.lines().skip(3).filter_map(|line| line.split('|').nth(1)).map(str::trim).collect();
    let list: Value = serde_json::from_slice(&lab(&["--json"]).stdout).unwrap();
    let scenarios = list["scenarios"].as_array().unwrap();
    let there: BTreeSet<&str> = scenarios
        .iter()
        .flat_map(|scenario| scenario["rows"].as_array().unwrap())
        .map(|row| row.as_str().unwrap())
        .collect();
    assert_eq!(written, there, "`make readme` writes it");
    assert!(there.len() >= 40);
}

#[test]
fn a_file_of_one_s_own_is_a_scenario_as_well() {
    let dir = scratch("own-file");
    std::fs::create_dir_all(&dir).unwrap();
    let file = dir.join("own.toml");
    let script = r#"
client = "connect\nrepeat 3\nwrite 10\nread 10\nend"
server = "accept\nrepeat\nread 10\nwrite 10\nend""#;
    std::fs::write(&file, format!("shows = 'an echo'\n[path]\nrtt = '10ms'\n[workload]\n{script}")).unwrap();
    let keep = dir.join("out");
    let args = [file.to_str().unwrap(), "--keep", keep.to_str().unwrap()];
    let Some(output) = allowed("a_file_of_one_s_own", &args) else { return };
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("3 exchanges: median 1"), "{}", text(&output.stdout));
    assert!(keep.join("own.toml/truth.json").exists());
    std::fs::write(&file, "shows = 'nothing'").unwrap();
    let broken = lab(&[file.to_str().unwrap()]);
    assert_eq!(broken.status.code(), Some(2));
    assert!(text(&broken.stderr).contains("own.toml"), "{}", text(&broken.stderr));
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn what_does_not_exist_is_wrong_usage_and_is_told_what_does() {
    for (args, told) in [
        (&["nonsense"][..], "available: "),
        (&["split@nonsense"], "there is no variant"),
        (&["split", "--set", "mss=9"], "What can: rtt"),
        (&["shell", "--delay", "soon", "--", "true"], "is not a duration"),
    ] {
        let output = lab(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(text(&output.stderr).contains(told), "{args:?}: {}", text(&output.stderr));
    }
}

#[test]
fn the_stall_is_recreated_billed_from_both_ends_and_fixed() {
    let dir = scratch("split");
    let args = ["split", "--json", "--set", "rtt=2ms", "--keep", dir.to_str().unwrap()];
    let Some(output) = allowed("the_stall_is_recreated", &args) else { return };
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let forms = document["forms"].as_array().unwrap();
    assert_eq!(forms[0]["scenario"], "split");
    // linux_tcp: two round trips and a delayed acknowledgement of 40 ms; other programs may add to it.
    let median = |form: &Value| form["measured_ns"]["median"].as_i64().unwrap();
    assert!((43_000_000..80_000_000).contains(&median(&forms[0])), "{}", forms[0]);
    for bill in forms[0]["runs"][0]["bills"].as_array().unwrap() {
        assert_eq!(bill["bill"][0]["cause"], "nagle-delayed-ack", "{bill}");
        assert_eq!(bill["bill"][0]["side"], "client", "{bill}");
    }
    let nodelay = forms.iter().find(|form| form["fix"]["name"] == "nodelay").unwrap();
    assert!(median(nodelay) < 20_000_000, "{nodelay}");
    for file in ["client.pcapng", "server.pcapng", "truth.json"] {
        assert!(dir.join("split").join(file).exists(), "{file} is kept");
    }
    std::fs::remove_dir_all(dir).unwrap();
}

/// A scenario states figures for its own settings: other settings are judged by the variant that
/// has them, or not at all.
#[test]
fn what_is_expected_follows_what_is_set() {
    for (set, expected) in [
        ("rtt=0", "expected   exchange 40.0 ms to 50.0 ms:"),
        ("rtt=2ms", "expected   exchange 44.0 ms to 54.0 ms:"),
        ("rtt=60ms", "expected   nothing: the scenario does not cover these settings"),
        ("sndbuf=65536", "expected   nothing: the scenario does not cover these settings"),
    ] {
        let Some(output) = allowed("what_is_expected", &["split", "--set", set]) else {
            return;
        };
        let said = text(&output.stdout);
        assert!(said.contains(expected), "{set}: {said}{}", text(&output.stderr));
        // A machine that is busy may let the application read late, by its own clock: that says
        // nothing of the scenario's figures.
        let is_fault = |line: &str| line.contains("unexpected") && !line.contains("  elapsed: ");
        let is_judged = said.lines().any(is_fault) || said.contains("not as expected");
        assert!(!expected.contains("nothing") || !is_judged, "{set}: {said}");
    }
    // Neither a prediction nor a surprise if nothing is stated.
    let Some(output) = allowed("what_is_expected", &["case-b", "--set", "rtt=5ms"]) else { return };
    let said = text(&output.stdout);
    assert!(said.ends_with("The scenarios state no figures for these settings.\n"), "{said}");
}

/// The machine stops for 150 ms at a time: the figures say so, and the table ends with the rows
/// that were not as expected.
#[test]
fn the_table_ends_with_what_was_not_as_expected_and_says_how_late_the_path_was() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tcpwhy"));
    command.args(["lab", "case-b"]).process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let group = format!("-{}", child.id());
    let signal = |name: &str| {
        let kill = Command::new("kill").args([name, "--", &group]).stderr(Stdio::null()).status();
        assert!(kill.is_ok());
    };
    while child.try_wait().unwrap().is_none() {
        signal("-STOP");
        std::thread::sleep(Duration::from_millis(150));
        signal("-CONT");
        std::thread::sleep(Duration::from_millis(100));
    }
    let output = child.wait_with_output().unwrap();
    let said = text(&output.stderr);
    if said.contains("not permitted") {
        skip("the_table_ends_with", &said);
        return;
    }
    let table = text(&output.stdout);
    let (rows, ending) = table
        .split_once(" rows not as expected on this kernel and machine:\n")
        .unwrap_or_else(|| panic!("{table}{said}"));
    let (rows, count) = rows.rsplit_once('\n').unwrap();
    let marked = rows.matches("NOT AS EXPECTED").count();
    assert!(marked > 0 && count == format!("{marked} of 8"), "{table}");
    assert_eq!(ending.lines().count(), marked, "{table}");
    let by_how_much = |line: &str| {
        line.contains(" more than expected (")
            || line.contains(" less than expected (")
            || line.contains("nothing was measured, ")
    };
    assert!(ending.lines().all(|line| line.starts_with("  B") && by_how_much(line)), "{table}");
    assert!(rows.contains("\n  warning   other programs made the path late, by up to "), "{table}");
    assert!(!table.contains("os error"), "{table}");
}

/// A machine with more load than the laboratory makes, by the kernel's file: another one is mounted
/// over it.
#[test]
fn a_load_of_the_machine_is_said_beside_the_figures() {
    let dir = scratch("load");
    std::fs::create_dir_all(&dir).unwrap();
    let load = dir.join("loadavg");
    let run = |figure: &str| {
        std::fs::write(&load, format!("{figure} 1.00 0.50 1/200 4242\n")).unwrap();
        let script = "mount --bind \"$1\" /proc/loadavg && exec \"$2\" lab case-b";
        let mut unshare = Command::new("unshare");
        unshare.args(["--user", "--map-root-user", "--mount", "sh", "-c", script, "sh"]);
        unshare.arg(&load).arg(env!("CARGO_BIN_EXE_tcpwhy")).output().unwrap()
    };
    let busy = run("9000.00");
    let said = text(&busy.stderr);
    if said.contains("not permitted") || said.contains("ermission denied") {
        skip("a_load_of_the_machine", &said);
    } else {
        let processors = std::thread::available_parallelism().unwrap();
        let line = format!("\n  warning   the machine is busy: a load of 9000.0 on {processors} processor");
        assert!(text(&busy.stdout).contains(&line), "{}{said}", text(&busy.stdout));
        let idle = run("0.10");
        assert!(!text(&idle.stdout).contains("is busy"), "{}", text(&idle.stdout));
    }
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn any_program_runs_at_the_near_end_and_reaches_the_far_end_by_name() {
    let dir = scratch("shell");
    let server = "exec python3 -m http.server 80 --bind 10.77.0.2 2>/dev/null";
    let client = "import os, time, urllib.request\n\
                  start = time.time()\n\
                  urllib.request.urlopen('http://far-end/').read()\n\
                  print('took', time.time() - start, os.environ['FAR_END'])";
    let args = ["shell", "--delay", "30ms", "--keep", dir.to_str().unwrap(), "--far", server, "--"];
    let Some(output) = allowed("any_program", &[&args[..], &["python3", "-c", client]].concat()) else {
        return;
    };
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    let line = said.lines().find_map(|line| line.strip_prefix("took ")).unwrap_or_else(|| panic!("{said}"));
    let (seconds, address) = line.split_once(' ').unwrap();
    // A handshake and a request: two round trips of 60 ms, and the delays of a busy machine.
    assert!((0.12..5.0).contains(&seconds.parse().unwrap()), "{said}");
    assert_eq!(address, "10.77.0.2");
    assert!(dir.join("near.pcapng").exists() && dir.join("far.pcapng").exists());
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn recordings_that_are_judged_again_are_left_where_they_are() {
    let dir = scratch("judged-again");
    let recording = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/lab/split");
    std::fs::create_dir_all(dir.join("split")).unwrap();
    for file in ["client.pcapng.zst", "server.pcapng.zst", "truth.json"] {
        std::fs::copy(recording.join(file), dir.join("split").join(file)).unwrap();
    }
    for _ in 0..2 {
        let output = lab(&["accuracy", "split", "--from", dir.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        assert!(
            text(&output.stdout).contains("2 bills of 1 recordings: 0 wrong"),
            "{}",
            text(&output.stdout)
        );
    }
    assert_eq!(std::fs::read_dir(dir.join("split")).unwrap().count(), 3);
    std::fs::remove_dir_all(dir).unwrap();
}

/// As described in docs/shell.md.
#[test]
fn a_fetch_over_26_ms_with_a_small_receive_buffer_is_slow_and_the_answer_says_why() {
    let test = "a_fetch_over_26_ms";
    for program in ["nginx", "curl"] {
        let found = ["/usr/bin", "/usr/sbin", "/usr/local/bin"]
            .iter()
            .any(|dir| Path::new(dir).join(program).exists());
        if !found {
            return skip(test, &format!("{program} is not installed"));
        }
    }
    // Other programs may take the processor from the path; only a lasting difference is not theirs.
    let faults: Vec<String> =
        (1..=4).map_while(|n| fetch(test, &scratch(&format!("fetch-{n}"))).err()).collect();
    assert!(faults.len() < 4, "{faults:#?}");
}

/// One fetch, and what is wrong with its time or its bill.
fn fetch(test: &str, dir: &Path) -> Result<(), String> {
    std::fs::create_dir_all(dir).unwrap();
    std::fs::write(dir.join("big.bin"), vec![0; 1_000_000]).unwrap();
    let page =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/shell.md")).unwrap();
    let (_, rest) = page.split_once("<<'END'\n").unwrap();
    let (configuration, _) = rest.split_once("    END\n").unwrap();
    std::fs::write(dir.join("files.conf"), configuration).unwrap();
    let far = format!("PATH=$PATH:/usr/sbin; exec nginx -p {} -c files.conf", dir.display());
    let keep = dir.join("out");
    let args = ["shell", "--delay", "13ms", "--near-sysctl", "net.ipv4.tcp_rmem=4096 65536 65536", "--keep"];
    let args = [&args[..], &[keep.to_str().unwrap(), "--far", &far, "--"]].concat();
    let fetch = ["curl", "-so", "/dev/null", "-w", "%{time_total} %{http_code}\n", "http://far-end/big.bin"];
    let Some(output) = allowed(test, &[&args[..], &fetch].concat()) else { return Ok(()) };
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{said}{}", text(&output.stderr));
    let (seconds, code) = said.lines().next().and_then(|line| line.split_once(' ')).unwrap();
    assert_eq!(code, "200");
    // 1 MB in windows of some 40 KB: 25 round trips of 26 ms, to which other programs may add.
    assert!(seconds.parse::<f64>().unwrap() > 0.5, "{said}");
    let read = Command::new(env!("CARGO_BIN_EXE_tcpwhy"))
        .args(["read", "--json"])
        .arg(keep.join("near.pcapng"))
        .output();
    let report: Value = serde_json::from_slice(&read.unwrap().stdout).unwrap();
    std::fs::remove_dir_all(dir).unwrap();
    let bill = report["bill"].as_array().unwrap();
    let window = bill.iter().find(|line| line["cause"] == "receive-window" && line["side"] == "client");
    match window {
        Some(window) if window["ns"].as_i64().unwrap() > 150_000_000 => Ok(()),
        _ => Err(report["bill"].to_string()),
    }
}

#[test]
fn the_program_s_exit_code_is_handed_on() {
    let Some(output) = allowed("exit_code", &["shell", "--", "sh", "-c", "exit 7"]) else { return };
    assert_eq!(output.status.code(), Some(7), "{}", text(&output.stderr));
    let missing = lab(&["shell", "--", "no-such-program"]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(text(&missing.stderr).contains("no-such-program"), "{}", text(&missing.stderr));
    let failing = lab(&["shell", "--far", "exit 3", "--", "true"]);
    assert_eq!(failing.status.code(), Some(1));
    assert!(text(&failing.stderr).contains("failed before it listened"), "{}", text(&failing.stderr));
}

fn scratch(name: &str) -> PathBuf {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("lab-{name}-{}", std::process::id()));
    // Nothing may be left of an earlier process with the same number.
    let _ = std::fs::remove_dir_all(&dir);
    dir
}

#[test]
fn draws_are_judged_from_both_ends_and_their_seed_brings_them_back() {
    let dir = tempfile::tempdir().unwrap();
    let kept = dir.path().to_str().unwrap();
    let args = ["draws", "--seed", "7", "--count", "2", "--keep", kept];
    let Some(output) = allowed("draws", &args) else { return };
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{said}{}", text(&output.stderr));
    assert!(said.starts_with("seed 7, 2 draws\n"), "{said}");
    for end in ["client", "server"] {
        assert!(said.contains(&format!("at the {end}\n")), "{said}");
    }
    let again = lab(&["draws", "--seed", "7", "--count", "2", "--from", kept]);
    assert_eq!(text(&again.stdout), said);
    assert!(dir.path().join("draw-1/truth.json").exists());
}
