//! Are the numbers that `list` gives for `tcp.stream` those of Wireshark? Against `tshark -e
//! tcp.stream`, connection by connection: captures with reused ports, resets of nothing, repeated
//! SYNs, ICMP errors, fragments and tunnels (tests/data/streams.py), and all recordings of the
//! corpus, one after the other. Needs tshark and mergecap.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

fn run(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn tcpwhy(args: &[&str], path: &Path) -> String {
    run(Command::new(env!("CARGO_BIN_EXE_tcpwhy")).arg(args[0]).arg(path).args(&args[1..]))
}

/// The column of the list with the numbers of the installed version, or both if that version is
/// untested.
fn columns() -> Option<&'static [usize]> {
    let version = Command::new("tshark").arg("-v").stdin(Stdio::null()).output().ok();
    let version = version.filter(|output| output.status.success());
    assert!(version.is_some() || std::env::var_os("CI").is_none_or(|ci| ci != "true"), "tshark is missing");
    let Some(version) = version else {
        println!("skipped: tshark is missing");
        return None;
    };
    let text = String::from_utf8_lossy(&version.stdout).into_owned();
    let number = text.split_whitespace().find(|word| word.starts_with(|c: char| c.is_ascii_digit()));
    let mut parts = number.unwrap_or_default().split('.').filter_map(|part| part.parse::<u32>().ok());
    match (parts.next(), parts.next()) {
        (Some(4), Some(0)) => Some(&[0]),
        (Some(4), Some(4..)) => Some(&[1]),
        _ => Some(&[0, 1]),
    }
}

/// tshark's view of each frame: the stream of the innermost TCP header, and its ports, the lower
/// one first.
fn frames(path: &Path) -> BTreeMap<u64, (u64, [u16; 2])> {
    let mut tshark = Command::new("tshark");
    tshark.args(["-n", "-r"]).arg(path).args(["-Y", "tcp.stream", "-T", "fields", "-E", "occurrence=l"]);
    for field in ["frame.number", "tcp.stream", "tcp.srcport", "tcp.dstport"] {
        tshark.args(["-e", field]);
    }
    let rows = run(&mut tshark);
    let cells = |row: &str| row.split('\t').map(|cell| cell.parse::<u64>().unwrap_or(0)).collect::<Vec<_>>();
    rows.lines()
        .map(cells)
        .map(|row| (row[0], (row[1], [row[2].min(row[3]) as u16, row[2].max(row[3]) as u16])))
        .collect()
}

/// Compares each connection with its frames. Returns how many there are, and for how many the
/// stream is not their own number less one.
fn compare(path: &Path, columns: &[usize]) -> (usize, usize) {
    let frames = frames(path);
    let document: Value = serde_json::from_str(&tcpwhy(&["read", "--json"], path)).unwrap_or_default();
    let list = tcpwhy(&["list", "--format", "csv", "--sort", "start"], path);
    let connections = document["connections"].as_array().cloned().unwrap_or_default();
    assert_eq!(list.lines().count(), connections.len() + 1, "{}", path.display());
    let (mut wrong, mut others) = (BTreeMap::<usize, Vec<String>>::new(), 0);
    for (row, connection) in list.lines().skip(1).zip(&connections) {
        let cells: Vec<&str> = row.split(',').collect();
        let port =
            |end: usize| cells[end].rsplit(':').next().and_then(|port| port.parse::<u16>().ok()).unwrap_or(0);
        let ports = [port(1).min(port(2)), port(1).max(port(2))];
        let range = [0, 1].map(|end| connection["packet_range"][end].as_u64().unwrap_or(0));
        assert_eq!(cells[0], connection["id"].to_string());
        let of_it = frames.range(range[0]..=range[1]).filter(|(_, (_, others))| *others == ports);
        let mut seen = BTreeSet::new();
        let expected: Vec<u64> =
            of_it.map(|(_, (stream, _))| *stream).filter(|stream| seen.insert(*stream)).collect();
        others +=
            usize::from(expected.first().map(|first| (first + 1).to_string()).as_deref() != Some(cells[0]));
        for version in columns {
            let told: Vec<u64> = cells[cells.len() - 2 + version]
                .split(' ')
                .filter_map(|number| number.parse().ok())
                .collect();
            if told != expected {
                wrong.entry(*version).or_default().push(format!("{row}: {expected:?}"));
            }
        }
    }
    assert!(wrong.len() < columns.len(), "{}: {wrong:#?}", path.display());
    (connections.len(), others)
}

#[test]
fn streams_have_wiresharks_numbers() {
    let Some(columns) = columns() else { return };
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    assert_eq!(compare(&data.join("streams.pcap"), columns).0, 4);
    let (all, others) = compare(&data.join("streams-many.pcap"), columns);
    assert!(all > 30 && others > 20, "{others} of {all}");
}

/// A filter or a part of the time changes nothing, and unknown numbers are not shown.
#[test]
fn streams_are_those_of_the_whole_file() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/streams.pcap");
    let list = |args: &[&str]| tcpwhy(&[&["list", "--utc"][..], args].concat(), &path);
    let whole = list(&["--sort", "start"]);
    let streams = |list: &str| -> Vec<String> {
        let lines = list.lines().filter(|line| line.contains("10.0.0.1:"));
        lines.filter_map(|line| line.split_whitespace().nth(1).map(str::to_owned)).collect()
    };
    assert_eq!(streams(&whole), ["1", "2,3", "4", "5|6"], "{whole}");
    assert!(whole.contains("N,M: ") && whole.contains("N|M: "), "{whole}");
    assert_eq!(streams(&list(&["--filter", "port 2004"])), ["5|6"]);
    assert_eq!(
        streams(&list(&["--from", "+0.18", "--sort", "start"])).last().map(String::as_str),
        Some("5|6")
    );
    let mut piped = Command::new(env!("CARGO_BIN_EXE_tcpwhy"));
    piped.args(["list", "-", "--sort", "start"]);
    piped.stdin(std::fs::File::open(&path).unwrap_or_else(|error| panic!("{error}")));
    let piped = piped.output();
    let piped = String::from_utf8_lossy(&piped.unwrap_or_else(|error| panic!("{error}")).stdout).into_owned();
    assert_eq!(streams(&piped), streams(&whole));
    // Pseudonyms for the capture's addresses do not matter.
    let named = list(&["--anonymize", "--sort", "start"]);
    assert!(named.contains("  2,3  ") && named.contains("  5|6  "), "{named}");
    // Two files.
    let many = path.with_file_name("streams-many.pcap").to_string_lossy().into_owned();
    let two = list(&[&many]);
    assert!(two.contains("list one file to see their numbers") && !two.contains("tcp.stream eq"), "{two}");
}

/// All recordings of the corpus, one after the other: their ports are reused.
#[test]
fn streams_of_the_corpus_have_wiresharks_numbers() {
    let Some(columns) = columns() else { return };
    let dir = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
    let mut plain = Vec::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus")];
    while let Some(folder) = folders.pop() {
        let entries =
            std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        let mut entries: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        entries.sort();
        for path in entries {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if path.is_dir() {
                folders.push(path);
            } else if name.ends_with(".pcapng.zst") {
                let to = dir.path().join(format!("{}.pcapng", plain.len()));
                let bytes = std::fs::File::open(&path).and_then(zstd::decode_all);
                std::fs::write(&to, bytes.unwrap_or_else(|error| panic!("{error}")))
                    .unwrap_or_else(|error| panic!("{error}"));
                plain.push(to);
            } else if name.contains(".pcap") {
                plain.push(path);
            }
        }
    }
    let all = dir.path().join("all.pcapng");
    // Of each packet, the bytes that distinguish connections.
    run(Command::new("mergecap").args(["-a", "-s", "96", "-w"]).arg(&all).args(&plain));
    let (connections, others) = compare(&all, columns);
    println!(
        "{} recordings, {connections} connections, {others} with another number than in a count of their own",
        plain.len()
    );
    assert!(plain.len() > 400 && connections > 250);
}
