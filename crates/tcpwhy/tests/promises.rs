//! What is promised to an engineer, a pipeline and a terminal, and not shown by another test:
//! through the built binary.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

fn recording(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/lab").join(name).join("client.pcapng.zst")
}

fn read(path: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tcpwhy"));
    command.arg("read").arg(path).args(args).stdin(Stdio::null());
    command.output().unwrap_or_else(|error| panic!("tcpwhy does not start: {error}"))
}

/// Where no test may be skipped.
fn is_ci() -> bool {
    std::env::var_os("CI").is_some_and(|ci| ci == "true")
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn answer(name: &str) -> String {
    let text = stdout(&read(&recording(name), &["--utc"]));
    let lines: Vec<&str> = text.lines().take_while(|line| !line.is_empty()).collect();
    lines.join(" ")
}

/// Nine requests of ten leave in one write, the tenth in two: the answer names the tenth and the
/// time of the others.
#[test]
fn where_the_tail_is_the_story_the_answer_tells_it() {
    let said = answer("e-histogram");
    assert!(said.contains(" of ") && said.contains("delayed acknowledgement"), "{said}");
    assert!(said.contains("; the other ") && said.contains(" µs on average"), "{said}");
    assert!(said.contains("client 10.77.0.1 -> server 10.77.0.2:8080"), "both ends with their roles: {said}");
}

/// The sentence contains the confidence of the document's first finding.
#[test]
fn the_answer_says_how_certain_it_is() {
    let mut seen = Vec::new();
    for name in ["split", "split@rtt-26", "server-think", "slow-reader", "d-sndbuf", "lost-request"] {
        let document: Value =
            serde_json::from_slice(&read(&recording(name), &["--json"]).stdout).unwrap_or_default();
        let confidence = document["findings"][0]["confidence"].as_str().unwrap_or_default().to_owned();
        let said = answer(name);
        let hedge = match confidence.as_str() {
            "certain" => !said.contains("probably") && !said.contains("possibly"),
            "likely" => said.contains("probably "),
            _ => said.contains("possibly "),
        };
        assert!(hedge, "{name} is {confidence}: {said}");
        seen.push(confidence);
    }
    assert!(seen.iter().any(|one| one == "certain") && seen.iter().any(|one| one == "likely"), "{seen:?}");
}

/// Median, p99 and maximum of a finding are values of the exchanges it counts.
#[test]
fn quantiles_are_exact_and_never_above_the_maximum() {
    let mut compared = 0;
    for name in
        ["split", "split@rtt-26", "server-think", "connect-each", "e-histogram", "lost-request", "c-idle"]
    {
        let document: Value =
            serde_json::from_slice(&read(&recording(name), &["--json"]).stdout).unwrap_or_default();
        let findings = document["findings"].as_array().cloned().unwrap_or_default();
        for finding in &findings {
            let ns = |field: &str| finding[field].as_i64().unwrap_or(-1);
            let [p50, p99, max] = ["p50_ns", "p99_ns", "max_ns"].map(ns);
            assert!(0 <= p50 && p50 <= p99 && p99 <= max, "{name}: {p50} {p99} {max}");
            let connections = document["connections"].as_array().into_iter().flatten();
            let exchanges = connections.filter_map(|connection| connection["exchanges"].as_array()).flatten();
            let lines = exchanges.filter_map(|exchange| exchange["bill"].as_array()).flatten();
            let all: Vec<i64> = lines
                .filter(|line| line["cause"] == finding["cause"] && line["side"] == finding["side"])
                .filter_map(|line| line["ns"].as_i64())
                .collect();
            assert!([p50, p99, max].iter().all(|value| all.contains(value)), "{name}: {finding}");
            compared += 1;
        }
    }
    assert!(compared > 15, "{compared} findings");
}

/// `writer | tcpwhy read -` in one process group, as a shell runs it: Ctrl-C reaches both, and the answer is printed.
#[cfg(unix)]
#[test]
fn an_interrupted_pipeline_prints_its_answer() {
    // The writer sends all but the end, and keeps running like tcpdump until it is interrupted.
    let script = format!(
        "(cat '{}'; sleep 30) | '{}' read - --brief",
        data("split.pcap").display(),
        env!("CARGO_BIN_EXE_tcpwhy")
    );
    let mut command = Command::new("setsid");
    // The jobs of a shell without a terminal would ignore the signal.
    command.args(["sh", "-c", &format!("trap 'exit 0' INT; {script}")]).stdin(Stdio::null());
    let child = match command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn() {
        Ok(child) => child,
        Err(error) => {
            println!("skipped: setsid: {error}");
            return;
        }
    };
    std::thread::sleep(Duration::from_secs(1));
    let group = format!("-{}", child.id());
    let status = Command::new("kill").args(["-INT", "--", &group]).status();
    assert!(status.is_ok_and(|status| status.success()));
    let output = child.wait_with_output().unwrap_or_else(|error| panic!("{error}"));
    assert!(stdout(&output).contains("for the server's delayed acknowledgement"), "{output:?}");
}

/// Requests in two pieces over the loopback interface; returns the port of the server.
#[cfg(unix)]
fn talk(exchanges: usize) -> std::io::Result<(u16, std::thread::JoinHandle<std::io::Result<()>>)> {
    use std::io::Read as _;
    use std::net::{TcpListener, TcpStream};
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let at = listener.local_addr()?;
    let served = std::thread::spawn(move || {
        let (mut socket, _) = listener.accept()?;
        let mut request = [0; 120];
        while socket.read_exact(&mut request).is_ok() {
            socket.write_all(&[1; 64])?;
        }
        Ok(())
    });
    let client = std::thread::spawn(move || {
        // tcpdump has begun by then.
        std::thread::sleep(Duration::from_millis(1_500));
        let mut socket = TcpStream::connect(at)?;
        let mut reply = [0; 64];
        for _ in 0..exchanges {
            socket.write_all(&[2; 20])?;
            socket.write_all(&[3; 100])?;
            socket.read_exact(&mut reply)?;
        }
        drop(socket);
        served.join().unwrap_or(Ok(()))
    });
    Ok((at.port(), client))
}

/// The pipeline of README at its own terminal, and Ctrl-C typed there: both programs get it,
/// tcpdump flushes its buffer, and the answer is printed.
#[cfg(target_os = "linux")]
#[test]
fn ctrl_c_at_a_terminal_ends_tcpdump_and_prints_the_answer() {
    let (port, talk) = talk(6).unwrap_or_else(|error| panic!("{error}"));
    let tcpwhy = env!("CARGO_BIN_EXE_tcpwhy");
    // A shell without a prompt would be killed by the key itself (dash is, bash waits for the
    // pipeline).
    let pipeline = format!(
        "trap : INT; tcpdump -i lo -w - tcp port {port} | {tcpwhy} read - --brief --no-pager --width 200"
    );
    let mut script = Command::new("script");
    script.args(["-qec", &pipeline, "/dev/null"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = script.spawn().unwrap_or_else(|error| panic!("script(1): {error}"));
    let talked = talk.join().unwrap_or_else(|_| panic!("the talk"));
    assert!(talked.is_ok(), "{talked:?}");
    std::thread::sleep(Duration::from_secs(1));
    let mut keyboard = child.stdin.take().unwrap_or_else(|| panic!("a pipe"));
    let typed = keyboard.write_all(b"\x03");
    let output = child.wait_with_output().unwrap_or_else(|error| panic!("{error}"));
    drop(keyboard);
    let shown = stdout(&output);
    if shown.contains("tcpdump: not found") || shown.contains("permission to capture") {
        assert!(!is_ci(), "{shown}");
        println!("skipped: {shown}");
        return;
    }
    assert!(typed.is_ok() && output.status.success(), "{shown}");
    assert!(shown.contains(&format!("server 127.0.0.1:{port}")), "{shown}");
    assert!(shown.contains("6 exchanges, 1 setup on 1 connection"), "all of it: {shown}");
}

/// The first signal also ends the reading of a large file: the answer covers what was read until
/// then.
#[cfg(target_os = "linux")]
#[test]
fn a_signal_ends_a_large_file_before_its_end() {
    let dir = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
    let path = dir.path().join("large.pcap");
    let bytes = std::fs::read(data("split.pcap")).unwrap_or_else(|error| panic!("{error}"));
    let (header, packets) = bytes.split_at(24);
    // Repetition will do: to the reader it is a file of any size.
    let times = 20_000;
    let large = [header, &packets.repeat(times)].concat();
    std::fs::write(&path, &large).unwrap_or_else(|error| panic!("{error}"));
    for args in [&["--json"][..], &["--brief"]] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tcpwhy"));
        command.arg("read").arg(&path).args(args).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().unwrap_or_else(|error| panic!("{error}"));
        // From here on, it reads.
        wait_for_handler(child.id());
        let status = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
        assert!(status.is_ok_and(|status| status.success()));
        let output = child.wait_with_output().unwrap_or_else(|error| panic!("{error}"));
        let said = stdout(&output);
        if args == ["--json"] {
            let document: Value = serde_json::from_str(&said).unwrap_or_default();
            let read = document["capture"]["packets"].as_u64().unwrap_or(u64::MAX);
            assert!(read < 67 * times as u64, "{read} packets: {output:?}");
            // If it had read none yet, there is nothing to analyse.
            let code = if read == 0 { 5 } else { 0 };
            assert_eq!(output.status.code(), Some(code), "{output:?}");
            assert_eq!(document["capture"]["interrupted"], true);
        } else if output.status.code() == Some(0) {
            assert!(said.contains("only until the interrupt"), "{said}");
        } else {
            assert_eq!(output.status.code(), Some(5), "{output:?}");
        }
    }
}

/// Waits until the process is stopped: on a busy machine it runs on for a while.
#[cfg(target_os = "linux")]
fn wait_until_stopped(pid: u32) {
    let stands = || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, state)| state.starts_with('T'))
    };
    for _ in 0..5_000 {
        if stands() {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The second signal ends the process at once, also on a file: both are pending before either is
/// handled.
#[cfg(target_os = "linux")]
#[test]
fn a_second_signal_aborts_on_a_file() {
    let dir = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
    let path = dir.path().join("large.pcap");
    let bytes = std::fs::read(data("split.pcap")).unwrap_or_else(|error| panic!("{error}"));
    let (header, packets) = bytes.split_at(24);
    std::fs::write(&path, [header, &packets.repeat(20_000)].concat())
        .unwrap_or_else(|error| panic!("{error}"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_tcpwhy"));
    // Two threads might take one signal each, and one of them finish before the other begins.
    command.arg("read").arg(&path).args(["--threads", "1"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap_or_else(|error| panic!("{error}"));
    let id = child.id().to_string();
    let signal = |name: &str| {
        assert!(Command::new("kill").args([name, &id]).status().is_ok_and(|status| status.success()));
    };
    wait_for_handler(child.id());
    signal("-STOP");
    wait_until_stopped(child.id());
    for name in ["-INT", "-TERM", "-CONT"] {
        signal(name);
    }
    let output = child.wait_with_output().unwrap_or_else(|error| panic!("{error}"));
    // 128 and the number of the signal that came second.
    assert!(matches!(output.status.code(), Some(130 | 143)), "{output:?}");
    assert!(output.stdout.is_empty(), "{output:?}");
}

/// Waits until the process handles SIGINT and SIGTERM itself (proc_pid_status(5)).
#[cfg(target_os = "linux")]
fn wait_for_handler(id: u32) {
    let takes_them = || {
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        let caught = caught.and_then(|caught| u64::from_str_radix(caught.trim(), 16).ok());
        let both = 1 << (2 - 1) | 1 << (15 - 1);
        caught.is_some_and(|caught| caught & both == both)
    };
    for _ in 0..5_000 {
        if takes_them() {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A file that is still growing and never ends: the first signal ends it as well.
#[cfg(unix)]
#[test]
fn a_signal_ends_a_file_as_it_ends_a_pipe() {
    let dir = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
    let path = dir.path().join("fifo.pcap");
    assert!(Command::new("mkfifo").arg(&path).status().is_ok_and(|status| status.success()));
    let mut command = Command::new(env!("CARGO_BIN_EXE_tcpwhy"));
    command.arg("read").arg(&path).arg("--json").stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap_or_else(|error| panic!("{error}"));
    let mut writer =
        std::fs::OpenOptions::new().write(true).open(&path).unwrap_or_else(|error| panic!("{error}"));
    let bytes = std::fs::read(data("split.pcap")).unwrap_or_else(|error| panic!("{error}"));
    assert!(writer.write_all(&bytes).is_ok());
    std::thread::sleep(Duration::from_millis(700));
    let status = Command::new("kill").args(["-TERM", &child.id().to_string()]).status();
    assert!(status.is_ok_and(|status| status.success()));
    let output = child.wait_with_output().unwrap_or_else(|error| panic!("{error}"));
    drop(writer);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let document: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    assert_eq!(document["capture"]["interrupted"], true);
    assert_eq!(document["exchanges"], 12);
}

/// The same capture, compressed with the usual programs.
#[test]
fn compressed_captures_give_the_same_answer() {
    let path = data("split.pcap");
    let plain = stdout(&read(&path, &["--json"]));
    let findings = |text: &str| -> Value {
        serde_json::from_str::<Value>(text).map(|document| document["findings"].clone()).unwrap_or_default()
    };
    let dir = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
    for (program, end) in [("gzip", "gz"), ("xz", "xz"), ("lz4", "lz4"), ("zstd", "zst")] {
        let packed = match Command::new(program).arg("-c").arg(&path).output() {
            Ok(output) if output.status.success() => output.stdout,
            _ => {
                assert!(!is_ci(), "{program} is missing");
                println!("skipped: {program} is missing");
                continue;
            }
        };
        let file = dir.path().join(format!("split.pcap.{end}"));
        std::fs::write(&file, packed).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(findings(&stdout(&read(&file, &["--json"]))), findings(&plain), "{program}");
        let mut piped = Command::new(env!("CARGO_BIN_EXE_tcpwhy"));
        let file = std::fs::File::open(&file).unwrap_or_else(|error| panic!("{error}"));
        let piped = piped.args(["read", "-", "--json"]).stdin(file).output();
        let piped = piped.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(findings(&stdout(&piped)), findings(&plain), "{program}, from a pipe");
    }
    assert!(!findings(&plain).is_null());
}

/// One command from the capture to the fix that the scenario's author intended (`[[fix]]` in its
/// file, or its description).
#[test]
fn the_first_fix_is_the_right_one() {
    for (name, fix) in [
        ("split", "Write each message of the client to the socket at once"),
        ("server-split", "Write each message of the server to the socket at once"),
        ("corked-tail", "Uncork at the end of each message of the server"),
        ("d-rcvbuf", "Do not set SO_RCVBUF on the client's socket"),
        ("d-sndbuf", "Do not set SO_SNDBUF on the server's socket"),
        ("c-idle", "net.ipv4.tcp_slow_start_after_idle=0"),
        ("connect-each", "Keep connections open and reuse them"),
        ("server-think", "Profile the server"),
        ("slow-reader", "Make the client's application read as data arrives"),
        ("lost-request", "Find where the packets are dropped"),
        ("mtu-black-hole", "clamp the MSS"),
        ("lost-syn", "Find who drops the SYN or its answer"),
    ] {
        let text = stdout(&read(&recording(name), &["--width", "1000"]));
        let is_fix = |line: &str| ["fix ", "if so "].iter().any(|name| line.trim().starts_with(name));
        let first = text.lines().find(|line| is_fix(line)).unwrap_or_default();
        assert!(first.contains(fix), "{name}: {first}\n{text}");
    }
}
