//! `--show-requests`: the requests, as tshark reads them, and only if asked for.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

fn recording(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/real").join(name).join("client.pcapng.zst")
}

fn tcpwhy(args: &[&str], file: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tcpwhy"));
    command.arg("read").arg(file).args(args).stdin(Stdio::null()).output().expect("tcpwhy runs")
}

fn json(file: &Path) -> Value {
    let out = tcpwhy(&["--json", "--show-requests"], file);
    serde_json::from_slice(&out.stdout).expect("a document")
}

/// tshark's values of a field in all packets that have it.
fn tshark(file: &Path, fields: &[&str]) -> Vec<String> {
    let mut command = Command::new("tshark");
    command.arg("-r").arg(file).args(["-Y", fields[0], "-T", "fields", "-E", "separator= "]);
    for field in fields {
        command.args(["-e", field]);
    }
    let out = command.output().expect("tshark, which `make tools` installs");
    String::from_utf8_lossy(&out.stdout).lines().map(str::to_owned).collect()
}

#[test]
fn each_exchange_has_the_request_that_tshark_reads() {
    for name in ["nginx-plain", "node-delay", "go-default", "python-http-server"] {
        let file = recording(name);
        let report = json(&file);
        let asked: Vec<String> = report["connections"]
            .as_array()
            .into_iter()
            .flatten()
            .flat_map(|connection| connection["exchanges"].as_array().into_iter().flatten())
            .filter_map(|exchange| exchange["request"].as_str().map(str::to_owned))
            .collect();
        let read = tshark(&file, &["http.request.method", "http.request.uri"]);
        assert!(!read.is_empty());
        assert_eq!(asked, read, "{name}");
        let counted: u64 = report["requests"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|kind| kind["count"].as_u64())
            .sum();
        assert_eq!(counted, read.len() as u64, "{name}");
    }
}

#[test]
fn findings_are_told_by_what_was_asked() {
    let out = tcpwhy(&["--show-requests"], &recording("memcached-split"));
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    let line = |name: &str| text.lines().find(|line| line.trim_start().starts_with(name)).unwrap_or_default();
    assert!(line("set key").contains("nagle-delayed-ack"), "{text}");
    assert!(line("get key").contains("µs"), "{text}");
}

#[test]
fn rows_have_a_column_of_it_where_it_was_asked_for() {
    for name in ["nginx-plain", "memcached-split", "node-delay"] {
        let file = recording(name);
        let rows = |args: &[&str]| {
            let out = tcpwhy(&[&["--format", "csv"], args].concat(), &file);
            String::from_utf8_lossy(&out.stdout).lines().map(str::to_owned).collect::<Vec<_>>()
        };
        let (without, with) = (rows(&[]), rows(&["--show-requests"]));
        assert_eq!(without.len(), with.len());
        let mut asked = Vec::new();
        for (i, (without, with)) in without.iter().zip(&with).enumerate() {
            let (_, more) = with.split_at(without.len());
            assert_eq!(&with[..without.len()], without, "{name}");
            let request = more.strip_prefix(',').expect("a column more");
            match request.strip_prefix('"').and_then(|request| request.strip_suffix('"')) {
                None => assert_eq!((i, request), (0, "request"), "{name}"),
                Some(request) => asked.push(request.to_owned()),
            }
        }
        let report = json(&file);
        let exchanges = report["connections"].as_array().into_iter().flatten();
        let exchanges =
            exchanges.flat_map(|connection| connection["exchanges"].as_array().into_iter().flatten());
        let expected = exchanges.flat_map(|exchange| {
            let lines = exchange["bill"].as_array().map_or(0, Vec::len);
            std::iter::repeat_n(exchange["request"].as_str().unwrap_or_default().to_owned(), lines)
        });
        assert_eq!(asked, expected.collect::<Vec<_>>(), "{name}");
        assert!(asked.iter().any(|request| !request.is_empty()), "{name}");
    }
}

#[test]
fn nothing_of_what_was_said_is_shown_unasked() {
    let dir = tempfile::tempdir().expect("a directory");
    let (html, annotated) = (dir.path().join("report.html"), dir.path().join("noted.pcapng"));
    let file = recording("nginx-plain");
    for args in [&[][..], &["--json"], &["--format", "csv"], &["--connection", "1"]] {
        let out = tcpwhy(args, &file);
        assert!(!String::from_utf8_lossy(&out.stdout).contains("small.txt"), "{args:?}");
    }
    let paths =
        ["--html", &html.to_string_lossy(), "--annotate", &annotated.to_string_lossy(), "--show-requests"];
    assert!(tcpwhy(&paths, &file).status.success());
    let page = std::fs::read_to_string(&html).expect("the page");
    assert!(!page.contains("small.txt"));
    let refused = tcpwhy(&["--show-requests", "--anonymize"], &file);
    assert_eq!(refused.status.code(), Some(2), "{}", String::from_utf8_lossy(&refused.stderr));
}

#[test]
fn of_a_pipe_it_says_that_it_cannot() {
    let file = recording("nginx-plain");
    let bytes = std::fs::File::open(&file).expect("the recording");
    let out = Command::new("sh")
        .args(["-c", "cat | \"$0\" read - --show-requests", env!("CARGO_BIN_EXE_tcpwhy")])
        .stdin(bytes)
        .output()
        .expect("a shell");
    assert!(out.status.success());
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(said.contains("which a pipe does not allow"), "{said}");
}

/// Ethernet, IPv4 and TCP without checksums, as on an interface that fills them in later.
fn record(at_us: u32, is_question: bool, [seq, ack]: [u32; 2], payload: &[u8]) -> Vec<u8> {
    let ends: [(u8, u16); 2] = if is_question { [(1, 40_000), (2, 80)] } else { [(2, 80), (1, 40_000)] };
    let ip_len = (40 + payload.len()) as u16;
    let mut frame =
        [[2; 12].as_slice(), &[8, 0, 0x45, 0], &ip_len.to_be_bytes(), &[0, 1, 0x40, 0, 64, 6, 0, 0]].concat();
    frame.extend(ends.iter().flat_map(|(host, _)| [10, 0, 0, *host]));
    frame.extend(ends.iter().flat_map(|(_, port)| port.to_be_bytes()));
    frame.extend([seq, ack].iter().flat_map(|number| number.to_be_bytes()));
    frame.extend([0x50, 0x18, 0xff, 0xff, 0, 0, 0, 0]);
    frame.extend(payload);
    let len = frame.len() as u32;
    let head = [at_us / 1_000_000, at_us % 1_000_000, len, len].map(u32::to_le_bytes).concat();
    [head, frame].concat()
}

/// Request text gets a part of the memory, and requests that do not fit are counted.
#[test]
fn questions_that_find_no_room_are_counted() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("x.pcap");
    let question = format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "x".repeat(150));
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    let [asked, answered] = [question.as_str(), answer].map(|said| said.len() as u32);
    let begin = [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 1 << 18, 1];
    let mut bytes = begin.map(u32::to_le_bytes).concat();
    for n in 0..45_000 {
        let [seq, ack] = [1 + n * asked, 1 + n * answered];
        bytes.extend(record(200 * n, true, [seq, ack], question.as_bytes()));
        bytes.extend(record(200 * n + 100, false, [ack, seq + asked], answer.as_bytes()));
    }
    std::fs::write(&file, bytes).expect("a capture");
    let noted = |memory: &str| {
        let out = tcpwhy(&["--json", "--show-requests", "--memory", memory], &file);
        let report: Value = serde_json::from_slice(&out.stdout).expect("a document");
        let notes = report["notes"].as_array().cloned().unwrap_or_default();
        notes.iter().find(|note| note["kind"] == "words-over-limit").and_then(|note| note["count"].as_u64())
    };
    assert!(noted("64MB").is_some_and(|count| (1_000..44_000).contains(&count)), "{:?}", noted("64MB"));
    assert_eq!(noted("512MB"), None);
    let said = tcpwhy(&["--format", "csv", "--show-requests", "--memory", "64MB"], &file);
    let said = String::from_utf8_lossy(&said.stderr);
    assert!(said.contains("requests are shown without their text because of --memory"), "{said}");
}
