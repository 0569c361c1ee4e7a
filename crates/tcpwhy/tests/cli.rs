//! Does the command do what its help says? Run as a user runs it, on captures of the real kernel (`data/record.py`).

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

fn tcpwhy(args: &[&str]) -> Output {
    match Command::new(env!("CARGO_BIN_EXE_tcpwhy")).args(args).stdin(Stdio::null()).output() {
        Ok(output) => output,
        Err(error) => panic!("tcpwhy does not start: {error}"),
    }
}

fn read(name: &str, args: &[&str]) -> Output {
    let path = data(name);
    let mut all = vec!["read", path.to_str().unwrap_or_default()];
    all.extend(args);
    tcpwhy(&all)
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn json(output: &Output) -> serde_json::Value {
    match serde_json::from_slice(&output.stdout) {
        Ok(value) => value,
        Err(error) => panic!("{error}: {}{}", stdout(output), stderr(output)),
    }
}

#[test]
fn the_stall_is_the_first_line_and_one_write_fixes_it() {
    let split = read("split.pcap", &[]);
    assert_eq!(split.status.code(), Some(0), "{}", stderr(&split));
    let shown = stdout(&split);
    let first = shown.lines().next().unwrap_or_default();
    assert!(first.contains("for the server's delayed acknowledgement: the client"), "{first}");
    assert!(shown.contains("writev"), "{shown}");
    let one_write = stdout(&read("one-write.pcap", &[]));
    assert!(one_write.starts_with("Nothing in TCP is slow here"), "{one_write}");
    assert!(!one_write.contains("nagle"), "{one_write}");
}

/// The client's own clock, by `record.py`: microseconds per round.
fn clocked_us(name: &str) -> Vec<i64> {
    let Ok(times) = std::fs::read_to_string(data("times.txt")) else { panic!("the times are committed") };
    let line = times.lines().find(|line| line.starts_with(name)).unwrap_or_default();
    line.split_whitespace().skip(1).filter_map(|us| us.parse().ok()).collect()
}

#[test]
fn each_exchange_takes_as_long_as_the_client_clocked() {
    for name in ["split.pcap", "one-write.pcap"] {
        let document = json(&read(name, &["--json"]));
        let billed_us: Vec<i64> = document["connections"][0]["exchanges"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|exchange| exchange["kind"] == "exchange")
            .filter_map(|exchange| exchange["elapsed_ns"].as_i64())
            .map(|ns| ns / 1_000)
            .collect();
        let clocked_us = clocked_us(name);
        assert_eq!((billed_us.len(), clocked_us.len()), (12, 12), "{name}");
        for (billed, clocked) in billed_us.iter().zip(&clocked_us) {
            assert!(
                (billed - clocked).abs() <= (clocked / 50).max(1_000),
                "{name}: {billed_us:?} {clocked_us:?}"
            );
        }
    }
}

#[test]
fn the_document_says_the_same_as_the_text() {
    let document = json(&read("split.pcap", &["--json"]));
    assert_eq!(document["schema"], "tcpwhy.report/1");
    assert_eq!(document["tcpwhy"], env!("CARGO_PKG_VERSION"));
    assert_eq!(document["findings"][0]["cause"], "nagle-delayed-ack");
    assert_eq!(document["findings"][0]["side"], "client");
    assert_eq!(document["findings"][0]["endpoint"], "127.0.0.1:18080");
    assert_eq!(document["capture"]["format"], "pcap");
    let sum: i64 =
        document["bill"].as_array().into_iter().flatten().filter_map(|line| line["ns"].as_i64()).sum();
    assert_eq!(Some(sum), document["elapsed_ns"].as_i64());
}

#[test]
fn the_document_is_what_its_schema_says() {
    let schema = include_str!("../../../docs/schema/tcpwhy.report.1.schema.json");
    let schema: serde_json::Value = serde_json::from_str(schema).unwrap_or_default();
    for args in [&["--json"][..], &["--json", "--connection", "1"]] {
        for name in ["split.pcap", "one-write.pcap"] {
            let document = json(&read(name, args));
            if let Err(error) = jsonschema::draft202012::validate(&schema, &document) {
                panic!("{name}: {error} at {}", error.instance_path);
            }
            let ladder = document["connections"][0]["ladder"].as_array().map_or(0, Vec::len);
            assert_eq!(ladder > 20, args.len() > 1, "{name}: {ladder} rungs");
        }
    }
}

/// Nanoseconds since 1970 exceed 2^53: programs that keep numbers as doubles can use the text.
#[test]
fn points_in_time_stand_in_the_document_to_the_nanosecond() {
    let document =
        json(&read("split.pcap", &["--json", "--connection", "1", "--from", "+1ms", "--to", "-1ms"]));
    let (capture, connection) = (&document["capture"], &document["connections"][0]);
    let (exchange, rung) = (&connection["exchanges"][0], &connection["ladder"][0]);
    for (of, name) in [
        (capture, "first"),
        (capture, "last"),
        (&capture["window"], "from"),
        (&capture["window"], "to"),
        (exchange, "start"),
        (rung, "at"),
    ] {
        let Some(ns) = of[format!("{name}_ns")].as_i64() else { panic!("{name}: {of}") };
        let Some(text) = of[name].as_str() else { panic!("{name}: {of}") };
        assert!(text.ends_with(&format!(".{:09}Z", ns % 1_000_000_000)), "{name}: {ns} {text}");
        let Ok(output) = Command::new("date").args(["-u", "-d", text, "+%s%N"]).output() else { continue };
        assert_eq!(stdout(&output).trim(), ns.to_string(), "{name}: {text}");
    }
}

#[test]
fn drilling_down_shows_the_wait_between_two_packets() {
    let document = json(&read("split.pcap", &["--json"]));
    let worst = &document["findings"][0]["worst"];
    let exchange = worst["exchange"].to_string();
    let shown = stdout(&read("split.pcap", &["--connection", "1", "--exchange", &exchange, "--ascii"]));
    let wait = shown.lines().position(|line| line.contains("ms nagle-delayed-ack") && line.contains('|'));
    let held = shown.lines().position(|line| line.contains("+100 ") && line.contains("released by #"));
    assert!(wait.is_some() && held == wait.map(|line| line + 1), "{shown}");
    assert!(shown.is_ascii());
    let table = stdout(&read("split.pcap", &["-c", "1"]));
    assert!(table.starts_with("Connection 1: 127.0.0.1:"), "{table}");
    let packets = stdout(&read("split.pcap", &["-c", "1", "-v"]));
    assert!(packets.contains('#') && packets.lines().count() > 60, "{packets}");
    let worst = stdout(&read("split.pcap", &["-v"]));
    assert!(worst.contains("writev") && worst.contains("released by #"), "{worst}");
}

#[test]
fn what_is_not_there_is_wrong_usage() {
    let missing = read("split.pcap", &["--connection", "9"]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(stderr(&missing).contains("no connection 9: the capture has 1"), "{}", stderr(&missing));
    let missing = read("split.pcap", &["--connection", "1", "--exchange", "999"]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(missing.stdout.is_empty());
    for wrong in [
        &["read"][..],
        &["read", "x", "--exchange", "1"],
        &["read", "x", "--filter", "prot 80"],
        &["read", "x", "--fail-on", "jitter"],
        &["explain", "nagle-delayed-akc"],
        &["frobnicate"],
    ] {
        assert_eq!(tcpwhy(wrong).status.code(), Some(2), "{wrong:?}");
    }
    assert!(stderr(&tcpwhy(&["explain", "nagle-delayed-akc"])).contains("nagle-delayed-ack"));
}

/// By any name: a second name of the same file is not another file.
#[test]
fn a_capture_is_not_written_over() {
    let Ok(folder) = tempfile::tempdir() else { panic!("a directory") };
    let [capture, hard, soft] = ["capture", "hard", "soft"].map(|name| folder.path().join(name));
    let Ok(bytes) = std::fs::read(data("split.pcap")) else { panic!("the capture is committed") };
    assert!(std::fs::write(&capture, &bytes).is_ok() && std::fs::hard_link(&capture, &hard).is_ok());
    #[cfg(unix)]
    assert!(std::os::unix::fs::symlink("capture", &soft).is_ok());
    let input = capture.to_string_lossy();
    for name in [&capture, &hard, &soft].into_iter().filter(|name| name.exists()) {
        for option in ["--html", "--annotate", "--save-baseline"] {
            let output = tcpwhy(&["read", &input, option, &name.to_string_lossy()]);
            assert_eq!(output.status.code(), Some(2), "{option} {name:?}: {}", stderr(&output));
            assert!(std::fs::read(&capture).is_ok_and(|now| now == bytes), "{option} {name:?}");
        }
    }
}

#[test]
fn input_that_cannot_be_read_exits_with_1_and_says_why() {
    let missing = tcpwhy(&["read", "no/such\u{1b}[31m.pcap"]);
    assert_eq!(missing.status.code(), Some(1));
    assert_eq!(stderr(&missing), "tcpwhy: no/such\\u{1b}[31m.pcap: no such file\n");
    assert!(missing.stdout.is_empty());
}

/// A file's name is a stranger's word too: `tcpwhy read *` takes it for an option if it begins like one.
#[test]
fn usage_errors_have_no_line_that_an_argument_made() {
    let forged =
        "\ntcpwhy: all is well\u{2028}tcpwhy: all is well\rtcpwhy: all is well\u{202e}\u{1b}[2J\u{a0}";
    let option = format!("--frob{forged}");
    for args in [
        &["read", "x", &option][..],
        &["read", "x", "--filter", &format!("port x{forged}")],
        &["read", "x", "--fail-on", &format!("rto:1{forged}")],
        &["read", "x", "--from", forged],
        &["read", "x", "--threads", &format!("4{forged}")],
        &["read", "x", "--color", &format!("auto{forged}")],
        &["explain", &format!("rto{forged}")],
        &[forged],
        &["lab", "--set", "x", forged],
        &["lab", "accuracy", "--part", forged],
    ] {
        let output = tcpwhy(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        let said = stderr(&output);
        let lines = said.split(['\n', '\r', '\u{2028}']);
        assert!(lines.clone().all(|line| !line.starts_with("tcpwhy: all")), "{args:?}: {said}");
        let acting = |c: char| c != '\n' && (c.is_control() || "\u{202e}\u{a0}\u{2028}".contains(c));
        assert!(!said.contains(acting), "{args:?}: {said}");
    }
}

#[test]
fn damage_is_named_with_its_place_and_the_rest_is_billed() {
    let Ok(whole) = std::fs::read(data("split.pcap")) else { panic!("the capture is committed") };
    let cut = whole.len() - 30;
    let output = piped(&["read", "-", "--json"], &whole[..cut]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stderr(&output).contains("tcpwhy: -: at byte "), "{}", stderr(&output));
    let document = json(&output);
    assert_eq!(document["capture"]["truncated"], true);
    assert_eq!(document["capture"]["skipped"]["damaged"], 1);
    assert_eq!(document["findings"][0]["cause"], "nagle-delayed-ack");
}

/// IPv6 with the same payload, between the IPv4-mapped addresses (RFC 4291, 2.5.5.2).
fn with_mapped_addresses(pcap: &[u8]) -> Vec<u8> {
    let (head, mut rest) = pcap.split_at(24);
    let mut mapped = head.to_vec();
    while let Some((record, packets)) = rest.split_at_checked(16) {
        let word = |at: usize| record[at..at + 4].try_into().map_or(0, u32::from_le_bytes);
        let (packet, more) = packets.split_at(word(8) as usize);
        rest = more;
        let (ethernet, ip) = packet.split_at(14);
        let payload = u16::from_be_bytes([ip[2], ip[3]]) - 20;
        let addresses = ip[12..20].chunks(4).flat_map(|v4| [&[0; 10], &[0xff; 2][..], v4].concat());
        let mut packet = [&ethernet[..12], &[0x86, 0xdd, 0x60, 0, 0, 0]].concat();
        packet.extend([&payload.to_be_bytes()[..], &[6, 64]].concat());
        packet.extend(addresses);
        packet.extend(&ip[20..]);
        let lengths = [packet.len() as u32, word(12) + 20].map(u32::to_le_bytes).concat();
        mapped.extend([&record[..8], &lengths, &packet].concat());
    }
    mapped
}

#[test]
fn a_mapped_address_is_the_ipv4_address_in_it() {
    let Ok(plain) = std::fs::read(data("split.pcap")) else { panic!("the capture is committed") };
    let of = |pcap: &[u8], args: &[&str]| {
        let output = piped(&[&["read", "-"], args].concat(), pcap);
        assert_eq!(output.status.code(), Some(0), "{args:?}: {}", stderr(&output));
        stdout(&output)
    };
    let server =
        json(&read("split.pcap", &["--json"]))["connections"][0]["server"].as_str().map(str::to_owned);
    let port = server.as_deref().and_then(|server| server.rsplit(':').next()).unwrap_or_default().to_owned();
    let mapped = with_mapped_addresses(&plain);
    assert_eq!(of(&plain, &[]), of(&mapped, &[]));
    for pcap in [&plain, &mapped] {
        for filter in
            ["host ::ffff:127.0.0.1", "host ::FFFF:7f00:1", "net ::ffff:127.0.0.0/104", "ip", "net 127/8"]
        {
            assert_eq!(of(pcap, &["--brief", "--filter", filter]), of(pcap, &["--brief"]), "{filter}");
        }
        let Ok(file) = tempfile::NamedTempFile::new() else { panic!("no folder for temporary files") };
        assert!(std::fs::write(file.path(), pcap).is_ok());
        let of_file = |which: &str| {
            let path = file.path().display().to_string();
            stdout(&tcpwhy(&["read", &path, "-c", which]))
        };
        let by_number = of_file("1");
        assert_eq!(of_file(&format!("[::ffff:127.0.0.1]:{port}")), by_number);
        assert!(by_number.contains(&format!("-> 127.0.0.1:{port}")), "{by_number}");
        assert_eq!(piped(&["read", "-", "--filter", "ip6"], pcap).status.code(), Some(5));
    }
}

#[test]
fn standard_input_and_file_give_the_same_document() {
    let Ok(bytes) = std::fs::read(data("split.pcap")) else { panic!("the capture is committed") };
    let mut piped = json(&piped(&["read", "-", "--json"], &bytes));
    let mut named = json(&read("split.pcap", &["--json"]));
    for document in [&mut piped, &mut named] {
        document["capture"]["path"] = serde_json::Value::Null;
    }
    assert_eq!(piped, named);
}

#[test]
fn a_filter_picks_connections_and_a_gate_stops_the_pipeline() {
    let (split, one) = (data("split.pcap"), data("one-write.pcap"));
    let both = [split.to_str().unwrap_or_default(), one.to_str().unwrap_or_default()];
    let billed = |filter: &str| {
        json(&tcpwhy(&["read", both[0], both[1], "--json", "--filter", filter]))["connections"]
            .as_array()
            .map(|all| all.iter().map(|one| one["server"].to_string()).collect::<Vec<_>>())
    };
    assert_eq!(billed("port 18081"), Some(vec!["\"127.0.0.1:18081\"".to_owned()]));
    assert_eq!(billed("not port 18081"), Some(vec!["\"127.0.0.1:18080\"".to_owned()]));
    let code = |name, gate| read(name, &["--fail-on", gate]).status.code();
    assert_eq!(code("split.pcap", "nagle-delayed-ack:50%"), Some(3));
    assert_eq!(code("split.pcap", "rto"), Some(0));
    assert_eq!(code("one-write.pcap", "nagle-delayed-ack"), Some(0));
}

#[test]
fn explain_tells_each_cause_and_lists_them() {
    let list = stdout(&tcpwhy(&["explain"]));
    assert_eq!(list.lines().count(), tcpwhy_core::Cause::COUNT, "{list}");
    let cork = stdout(&tcpwhy(&["explain", "cork"]));
    for heading in ["## Mechanism", "## What proves it", "## Fixes", "## Check it yourself", "## Sources"] {
        assert!(cork.contains(heading), "{cork}");
    }
}

#[test]
fn help_has_examples_and_the_manual_is_made_of_the_same() {
    for help in [&["--help"][..], &["read", "--help"]] {
        let shown = stdout(&tcpwhy(help));
        assert!(shown.contains("Examples:") && shown.contains("tcpwhy read slow.pcapng"), "{shown}");
    }
    assert!(stdout(&tcpwhy(&["man", "read"])).contains("fail\\-on"));
    assert!(stdout(&tcpwhy(&["completions", "bash"])).contains("nagle-delayed-ack"));
    assert_eq!(tcpwhy(&["man", "nothing"]).status.code(), Some(2));
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let path = data("split.pcap");
    let child = Command::new(env!("CARGO_BIN_EXE_tcpwhy"))
        .args(["read", path.to_str().unwrap_or_default(), "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut child) = child else { panic!("tcpwhy does not start") };
    drop(child.stdout.take());
    let Ok(output) = child.wait_with_output() else { panic!("tcpwhy does not end") };
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(stderr(&output), "");
}

/// `tcpwhy read --json --fail-on CAUSE | head` in a pipeline that looks at the exit code.
#[test]
fn a_gate_stays_closed_where_the_reader_goes_away() {
    let path = data("split.pcap");
    let path = path.to_str().unwrap_or_default();
    for (more, gate, code) in [
        (&["--json"][..], "nagle-delayed-ack", 3),
        (&[], "nagle-delayed-ack", 3),
        (&["-v"], "nagle-delayed-ack", 3),
        (&["-c", "1", "-v"], "nagle-delayed-ack", 3),
        (&["--json"], "rto", 0),
    ] {
        let child = Command::new(env!("CARGO_BIN_EXE_tcpwhy"))
            .args(["read", path, "--fail-on", gate])
            .args(more)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let Ok(mut child) = child else { panic!("tcpwhy does not start") };
        drop(child.stdout.take());
        let Ok(output) = child.wait_with_output() else { panic!("tcpwhy does not end") };
        assert_eq!(output.status.code(), Some(code), "{more:?} {gate}: {}", stderr(&output));
        let reasons: Vec<String> = stderr(&output).lines().map(str::to_owned).collect();
        assert_eq!(reasons.len(), usize::from(code == 3), "{reasons:?}");
    }
}

#[test]
fn an_input_that_was_not_read_is_no_success() {
    let Ok(folder) = tempfile::tempdir() else { panic!("a directory") };
    let Ok(whole) = std::fs::read(data("split.pcap")) else { panic!("the capture is committed") };
    let split = data("split.pcap");
    let split = split.to_str().unwrap_or_default();
    for length in [1, 2, 3, 4, 23] {
        let file = folder.path().join(format!("{length}.pcap"));
        assert!(std::fs::write(&file, &whole[..length]).is_ok());
        let file = file.to_str().unwrap_or_default();
        let alone = tcpwhy(&["read", file]);
        assert_eq!(alone.status.code(), Some(1), "{length}: {}", stderr(&alone));
        assert!(stderr(&alone).contains(&format!("truncated: {length} bytes")), "{}", stderr(&alone));
        let beside = tcpwhy(&["read", file, split]);
        assert_eq!(beside.status.code(), Some(4), "{length}: {}", stderr(&beside));
        assert!(stdout(&beside).contains("was not read: truncated"), "{}", stdout(&beside));
    }
    let missing = tcpwhy(&["read", "no-such.pcap", split]);
    assert_eq!(missing.status.code(), Some(4), "{}", stderr(&missing));
    let gate = tcpwhy(&["read", "no-such.pcap", split, "--fail-on", "nagle-delayed-ack"]);
    assert_eq!(gate.status.code(), Some(3), "{}", stderr(&gate));
    // An empty capture, and one whose end is missing, were read.
    let empty = folder.path().join("header.pcap");
    assert!(std::fs::write(&empty, &whole[..24]).is_ok());
    assert_eq!(tcpwhy(&["read", empty.to_str().unwrap_or_default(), split]).status.code(), Some(0));
}

#[cfg(unix)]
#[test]
fn more_captures_than_may_be_open_are_read_or_named() {
    let Ok(folder) = tempfile::tempdir() else { panic!("a directory") };
    for n in 0..60 {
        assert!(std::fs::copy(data("one-write.pcap"), folder.path().join(format!("{n:02}.pcap"))).is_ok());
    }
    let read = |limit: &str, more: &str| {
        let script = format!("ulimit {limit} && exec \"$0\" read \"$1\"/*.pcap {more}");
        let command = ["-c", &script, env!("CARGO_BIN_EXE_tcpwhy")];
        match Command::new("sh").args(command).arg(folder.path()).output() {
            Ok(output) => output,
            Err(error) => panic!("sh does not start: {error}"),
        }
    };
    // The soft limit that a shell sets for programs; the hard limit allows more.
    for more in ["--json", "-v"] {
        let soft = read("-Sn 30", more);
        assert_eq!((soft.status.code(), stderr(&soft).as_str()), (Some(0), ""), "{more}");
    }
    let hard = read("-n 30", "--json");
    assert_eq!(hard.status.code(), Some(4), "{}", stderr(&hard));
    assert!(stderr(&hard).contains("59.pcap: too many open files"), "{}", stderr(&hard));
}

#[test]
fn colours_and_progress_stay_off_pipes() {
    let shown = read("split.pcap", &[]);
    assert!(!stdout(&shown).contains('\x1b') && stderr(&shown).is_empty());
    assert!(stdout(&read("split.pcap", &["--color", "always"])).contains('\x1b'));
}

fn piped(args: &[&str], input: &[u8]) -> Output {
    let child = Command::new(env!("CARGO_BIN_EXE_tcpwhy"))
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut child) = child else { panic!("tcpwhy does not start") };
    if let Some(mut stdin) = child.stdin.take() {
        // It fits the pipe's buffer, so that writing before reading cannot block.
        let _ = stdin.write_all(input);
    }
    match child.wait_with_output() {
        Ok(output) => output,
        Err(error) => panic!("tcpwhy does not end: {error}"),
    }
}
