//! Can a pipeline rely on it? Exit codes if nothing was analysed, gates with their reasons, and an
//! answer after Ctrl-C.
#![cfg(unix)]

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

fn read(file: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tcpwhy"));
    command.arg("read").arg(file).args(args).stdin(Stdio::null());
    command.output().unwrap_or_else(|error| panic!("tcpwhy does not start: {error}"))
}

fn split(args: &[&str]) -> Output {
    read(&data("split.pcap"), args)
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn json(output: &Output) -> serde_json::Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", stderr(output)))
}

fn written(name: &str, bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
    let path = dir.path().join(name);
    std::fs::write(&path, bytes).unwrap_or_else(|error| panic!("{error}"));
    (dir, path)
}

fn split_bytes() -> Vec<u8> {
    std::fs::read(data("split.pcap")).unwrap_or_else(|error| panic!("{error}"))
}

/// The same capture, but with UDP's number in the protocol field of the IPv4 headers. The link is
/// Ethernet or LINUX_SLL2: the header is found where `45` and the protocol 6 are ten bytes apart.
fn without_tcp() -> Vec<u8> {
    let mut bytes = split_bytes();
    let mut at = 24;
    while at + 16 <= bytes.len() {
        let len = u32::from_le_bytes([bytes[at + 8], bytes[at + 9], bytes[at + 10], bytes[at + 11]]) as usize;
        let packet = &mut bytes[at + 16..at + 16 + len];
        let ip = (0..packet.len() - 20).find(|i| packet[*i] == 0x45 && packet[i + 9] == 6);
        packet[ip.unwrap_or_else(|| panic!("an IPv4 header")) + 9] = 17;
        at += 16 + len;
    }
    bytes
}

#[test]
fn nothing_analysed_is_never_success_and_says_why() {
    let packets = 63;
    let all = json(&split(&["--json"]))["capture"]["packets"].clone();
    assert!(all.as_u64() >= Some(packets), "{all}");
    let (_dir, header) = written("header.pcap", &split_bytes()[..24]);
    let (_dir2, short) = written("short.pcap", &split_bytes()[..20]);
    let (_dir3, udp) = written("udp.pcap", &without_tcp());
    let none = format!("matches none of {all} TCP segments");
    for (output, code, said) in [
        (split(&["--filter", "port 9"]), 5, none.as_str()),
        (split(&["--from", "+1h"]), 5, "no packets in the time window"),
        (split(&["--to", "2001-01-01T00:00:00Z"]), 5, "no packets in the time window"),
        (read(&udp, &[]), 5, &format!("no TCP in {all} packets ({all} not-tcp)")),
        (read(&header, &[]), 5, "the capture contains no packets"),
        (read(&short, &[]), 1, "truncated"),
        (read(Path::new("/nonexistent.pcap"), &[]), 1, "no such file"),
    ] {
        assert_eq!(output.status.code(), Some(code), "{said}: {}", stderr(&output));
        assert!(stderr(&output).contains(said), "{said}: {}", stderr(&output));
        assert_eq!(stdout(&output), "", "{said}");
    }
    // JSON is printed all the same, and no gate is passed.
    let output = split(&["--filter", "port 9", "--json", "--fail-on", "rto"]);
    assert_eq!(output.status.code(), Some(5));
    let document = json(&output);
    assert!(document["answer"].as_str().is_some_and(|answer| answer.starts_with("Nothing analysed: ")));
    assert_eq!(document["gate"][0]["failed"], true);
    assert!(stderr(&output).contains("--fail-on 'rto': nothing was analysed"), "{}", stderr(&output));
}

#[test]
fn gates_ask_for_shares_waits_and_ports_and_say_what_they_met() {
    // By `data/times.txt`, the exchanges of this capture take 40 to 50 ms, and nearly all of that is the stall.
    for (gate, code) in [
        ("nagle-delayed-ack>5%", 3),
        ("nagle-delayed-ack:5%", 3),
        ("nagle-delayed-ack>99.9%", 0),
        ("nagle-delayed-ack p50>20ms", 3),
        ("nagle-delayed-ack p99>100ms", 0),
        ("nagle-delayed-ack max>1s", 0),
        ("nagle-delayed-ack p50>20ms port 18080", 3),
        ("nagle-delayed-ack p50>1s port 18080", 0),
        ("rto port 18080", 0),
        // Nothing was analysed there: a wrong port passes no gate.
        ("nagle-delayed-ack p50>20ms port 18081", 3),
        ("rto port 18081", 3),
        ("rto", 0),
        ("rto p99>1ms", 0),
        ("nagle-delayed-ack p98>1ms", 2),
        ("nagle-delayed-ack p99>10", 2),
    ] {
        let output = split(&["--json", "--fail-on", gate]);
        assert_eq!(output.status.code(), Some(code), "{gate}: {}", stderr(&output));
        if code == 2 {
            continue;
        }
        let said = &json(&output)["gate"][0];
        assert_eq!(said["gate"], gate);
        assert_eq!(said["failed"], code == 3, "{gate}");
        assert!(said["reason"].as_str().is_some_and(|reason| !reason.is_empty()), "{gate}");
        assert_eq!(
            stderr(&output).contains(&format!("--fail-on '{gate}': ")),
            code == 3,
            "{}",
            stderr(&output)
        );
    }
    assert!(json(&split(&["--json"]))["gate"].is_null());
}

fn kill(child: &Child, signal: &str) {
    let status = Command::new("kill").args([signal, &child.id().to_string()]).status();
    assert!(status.is_ok_and(|status| status.success()));
}

fn on_a_pipe(args: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tcpwhy"));
    command
        .args(["read", "-"])
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command.spawn().unwrap_or_else(|error| panic!("{error}"))
}

/// Waits until the process has nothing left to read: it sleeps in poll, and the pipe is empty.
fn let_it_read() {
    std::thread::sleep(Duration::from_millis(700));
}

#[test]
fn the_first_signal_ends_a_pipe_that_goes_on_and_prints_the_answer() {
    for (signal, args) in [("-INT", &[][..]), ("-TERM", &[]), ("-INT", &["--json"])] {
        let mut child = on_a_pipe(args);
        let Some(mut stdin) = child.stdin.take() else { panic!("a pipe") };
        // The last packet is cut in two, as can happen in a pipe at any moment.
        let bytes = split_bytes();
        assert!(stdin.write_all(&bytes[..bytes.len() - 5]).is_ok());
        let_it_read();
        kill(&child, signal);
        let output = child.wait_with_output().unwrap_or_else(|error| panic!("{error}"));
        drop(stdin);
        assert_eq!(output.status.code(), Some(0), "{signal}: {}", stderr(&output));
        if args.is_empty() {
            assert!(stdout(&output).contains("delayed acknowledgement"), "{}", stdout(&output));
            assert!(stdout(&output).contains("only until the interrupt"), "{}", stdout(&output));
        } else {
            let document = json(&output);
            assert_eq!(document["capture"]["interrupted"], true);
            assert_eq!(document["capture"]["truncated"], false, "it is no damage");
            assert_eq!(document["exchanges"], 12);
        }
        assert_eq!(stderr(&output), "", "{signal}");
    }
}

/// `tcpdump | tcpwhy`: both get the signal, and tcpdump writes what it has buffered before it ends.
#[test]
fn what_the_writer_hands_over_at_its_end_is_read() {
    let mut child = on_a_pipe(&["--json"]);
    let Some(mut stdin) = child.stdin.take() else { panic!("a pipe") };
    let bytes = split_bytes();
    let (before, after) = bytes.split_at(bytes.len() / 2);
    assert!(stdin.write_all(before).is_ok());
    let_it_read();
    kill(&child, "-INT");
    std::thread::sleep(Duration::from_millis(100));
    assert!(stdin.write_all(after).is_ok());
    drop(stdin);
    let output = child.wait_with_output().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(json(&output)["capture"]["packets"], json(&split(&["--json"]))["capture"]["packets"]);
}

#[test]
fn a_signal_before_the_first_packet_leaves_nothing_to_analyse_and_the_second_aborts() {
    let mut child = on_a_pipe(&[]);
    let stdin = child.stdin.take();
    let_it_read();
    kill(&child, "-INT");
    let output = child.wait_with_output().unwrap_or_else(|error| panic!("{error}"));
    drop(stdin);
    assert_eq!(output.status.code(), Some(5), "{}", stderr(&output));
    assert!(stderr(&output).contains("interrupted before the first packet"), "{}", stderr(&output));

    let mut child = on_a_pipe(&[]);
    let stdin = child.stdin.take();
    let_it_read();
    kill(&child, "-INT");
    std::thread::sleep(Duration::from_millis(50));
    kill(&child, "-INT");
    let output = child.wait_with_output().unwrap_or_else(|error| panic!("{error}"));
    drop(stdin);
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    assert_eq!(stdout(&output), "");
}

#[test]
fn connections_are_listed_by_what_they_took_and_found_by_their_ends() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/lab/connect-each/client.pcapng.zst");
    let list = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tcpwhy"));
        let output =
            command.arg("list").arg(&path).args(args).output().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        stdout(&output)
    };
    let document = json(&read(&path, &["--json"]));
    let connections = document["connections"].as_array().cloned().unwrap_or_default();
    let cost = |connection: &serde_json::Value| -> i64 {
        connection["bill"].as_array().into_iter().flatten().filter_map(|line| line["ns"].as_i64()).sum()
    };
    let numbers = |text: &str| -> Vec<u64> {
        text.lines().filter_map(|line| line.split_whitespace().next()?.parse().ok()).collect()
    };
    let by_start = numbers(&list(&["--sort", "start"]));
    assert_eq!(by_start, (1..=connections.len() as u64).collect::<Vec<_>>());
    let by_cost = numbers(&list(&[]));
    let costs: Vec<i64> = by_cost.iter().map(|id| cost(&connections[*id as usize - 1])).collect();
    assert!(costs.is_sorted_by(|a, b| a >= b) && costs.len() == connections.len(), "{costs:?}");
    let two = list(&["--top", "2"]);
    assert_eq!(numbers(&two), by_cost[..2]);
    assert!(two.contains(&format!("... and {} more", connections.len() - 2)), "{two}");
    let streams = two.lines().skip(1).take(2).filter_map(|line| line.split_whitespace().nth(1)?.parse().ok());
    assert_eq!(
        streams.collect::<Vec<u64>>(),
        by_cost[..2].iter().map(|id| id - 1).collect::<Vec<_>>(),
        "{two}"
    );
    let narrow = list(&["--top", "2", "--width", "80"]);
    assert!(narrow.replace('\n', " ").contains(&format!("`tcp.stream eq {}`", by_cost[0] - 1)), "{narrow}");
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let (client, server) = (text(&connections[1]["client"]), text(&connections[1]["server"]));
    for which in ["2".to_owned(), client.clone(), format!("{client}-{server}"), format!("{server}-{client}")]
    {
        let output = read(&path, &["-c", &which]);
        assert!(stdout(&output).starts_with("Connection 2: "), "{which}: {}", stderr(&output));
        assert_eq!(stderr(&output), "");
    }
    // All of them are at the server: the most expensive is shown, with a note that there are
    // others.
    let output = read(&path, &["-c", &server]);
    assert!(stdout(&output).starts_with(&format!("Connection {}: ", by_cost[0])), "{}", stdout(&output));
    assert!(stderr(&output).contains("the most expensive; the others are"), "{}", stderr(&output));
    let output = read(&path, &["-c", "10.9.9.9:1"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("no connection matches 10.9.9.9:1"), "{}", stderr(&output));
}

#[test]
fn the_slowest_exchanges_come_first_and_the_rest_is_counted() {
    let document = json(&split(&["--json"]));
    let mut elapsed: Vec<(i64, u64)> = document["connections"][0]["exchanges"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|exchange| Some((-exchange["elapsed_ns"].as_i64()?, exchange["n"].as_u64()?)))
        .collect();
    let all = elapsed.len();
    elapsed.sort_unstable();
    let shown = stdout(&split(&["-c", "1", "--slowest", "3"]));
    let rows: Vec<u64> = shown
        .lines()
        .skip_while(|line| !line.contains(" n  kind"))
        .skip(1)
        .filter_map(|line| line.split_whitespace().next()?.parse().ok())
        .collect();
    assert_eq!(rows, elapsed[..3].iter().map(|(_, n)| *n).collect::<Vec<_>>(), "{shown}");
    assert!(shown.contains(&format!("... and {} faster ones", all - 3)), "{shown}");
}

#[test]
fn a_file_alone_is_read_and_the_help_names_all_commands() {
    let path = data("split.pcap");
    let tcpwhy = |args: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_tcpwhy"))
            .args(args)
            .output()
            .unwrap_or_else(|error| panic!("{error}"))
    };
    let path = path.to_str().unwrap_or_default();
    assert_eq!(stdout(&tcpwhy(&[path])), stdout(&tcpwhy(&["read", path])));
    assert_eq!(stdout(&tcpwhy(&[path, "-c", "1"])), stdout(&tcpwhy(&["read", path, "-c", "1"])));
    for missing in ["/nonexistent/x.pcap", "missing.pcap"] {
        let output = tcpwhy(&[missing]);
        assert_eq!(output.status.code(), Some(1));
        assert!(stderr(&output).contains(&format!("{missing}: no such file")), "{}", stderr(&output));
    }
    assert_eq!(tcpwhy(&["raed", path]).status.code(), Some(2));
    let help = stdout(&tcpwhy(&["--help"]));
    for command in ["read", "list", "demo", "lab", "explain", "completions", "man"] {
        assert!(
            help.lines().any(|line| line.trim_start().starts_with(&format!("{command} "))),
            "{command}\n{help}"
        );
    }
}

#[test]
fn a_filter_is_written_as_for_tcpdump_and_the_caret_stands_below_what_is_wrong() {
    for filter in [
        "tcp port 18080",
        "tcp and port 18080",
        "ip and port 18080",
        "src or dst port 18080",
        "net 127",
        "tcp",
    ] {
        assert_eq!(split(&["--filter", filter]).status.code(), Some(0), "{filter}");
    }
    assert_eq!(split(&["--filter", "ip6"]).status.code(), Some(5));
    let output = split(&["--filter", "tcp port 80 and host example.com"]);
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    let at = |needle: &str| said.lines().find_map(|line| line.find(needle));
    assert_eq!(
        at("^^^^^^^^^^^"),
        said.lines().find(|line| line.starts_with("tcp port")).and_then(|l| l.find("example"))
    );
    assert!(said.contains("host names are not resolved"), "{said}");
}
