//! Are captures from both ends of a connection billed as one connection, and consecutive files left
//! separate?
//!
//! The recordings come from the laboratory: the same connections, recorded at the client and at the
//! server.

#[path = "../../wire/tests/vocabulary/mod.rs"]
#[expect(dead_code, reason = "these tests need only the reader")]
mod vocabulary;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tcpwhy_wire::Instant;
use tcpwhy_wire::capture::writer::PcapWriter;
use vocabulary::Packet;

const SCENARIOS: [&str; 9] = [
    "split@rtt-26",
    "d-sndbuf",
    "d-rcvbuf",
    "random-loss",
    "reordering",
    "lost-request",
    "server-think",
    "corked-tail@after-full-segments",
    "bandwidth@bbr",
];

fn recording(scenario: &str, end: &str) -> PathBuf {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/lab");
    corpus.join(scenario).join(format!("{end}.pcapng.zst"))
}

fn said(files: &[&Path], args: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_tcpwhy")).arg("read").args(files).args(args).output();
    String::from_utf8(output.expect("tcpwhy starts").stdout).expect("UTF-8")
}

fn read(files: &[&Path]) -> Value {
    serde_json::from_str(&said(files, &["--json"])).expect("JSON")
}

fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value[name].as_array().map_or(&[], Vec::as_slice)
}

/// Each connection's bill, which contains no packet numbers.
fn bills(report: &Value) -> Vec<Value> {
    list(report, "connections").iter().map(|connection| connection["bill"].clone()).collect()
}

fn other_end(report: &Value) -> Option<&Value> {
    list(&report["capture"], "files").iter().map(|file| &file["other_end"]).find(|other| other.is_object())
}

#[test]
fn both_ends_together_give_the_bill_of_one_of_them() {
    for scenario in SCENARIOS {
        let (client, server) = (recording(scenario, "client"), recording(scenario, "server"));
        let alone = [bills(&read(&[&client])), bills(&read(&[&server]))];
        let both = read(&[&client, &server]);
        let together = bills(&both);
        assert_eq!(together.len(), alone[0].len(), "{scenario}");
        for (i, bill) in together.iter().enumerate() {
            assert!(alone.iter().any(|alone| alone[i] == *bill), "{scenario}: connection {}: {bill}", i + 1);
        }
        let schema = include_str!("../../../docs/schema/tcpwhy.report.1.schema.json");
        let schema: Value = serde_json::from_str(schema).expect("JSON");
        if let Err(error) = jsonschema::draft202012::validate(&schema, &both) {
            panic!("{scenario}: {error} at {}", error.instance_path);
        }
        // In either order.
        assert_eq!(bills(&read(&[&server, &client])), together, "{scenario}");
        let other = other_end(&both).unwrap_or_else(|| panic!("{scenario}: not recognised"));
        // Both recordings use one clock; the offset is known to half a round trip.
        if let (Some(ahead), Some(rtt)) = (other["clock_ahead_ns"].as_i64(), other["round_trip_ns"].as_i64())
        {
            assert!(
                ahead.abs() <= rtt / 2 + 1_000_000,
                "{scenario}: {ahead} ns ahead, {rtt} ns between them"
            );
        }
    }
}

/// The packets of a recording.
fn packets(path: &Path) -> Vec<Packet> {
    let bytes = zstd::decode_all(&fs::read(path).expect("a recording")[..]).expect("zstd");
    vocabulary::read(&bytes).packets
}

fn written(path: &Path, packets: &[Packet], later_ns: i64) {
    let mut pcap = PcapWriter::new(packets[0].link, 262_144);
    for packet in packets {
        pcap.packet(Instant::from_nanos(packet.ns + later_ns), packet.original_len, &packet.data);
    }
    fs::write(path, pcap.bytes()).expect("a file");
}

/// The client's end behind a NAT router, and with a clock that is ten seconds ahead.
#[test]
fn translated_addresses_and_another_clock_are_seen_through() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let [client, server] = ["client", "server"].map(|end| directory.path().join(format!("{end}.pcap")));
    written(&client, &packets(&recording("split@rtt-26", "client")), 0);
    let mut translated = packets(&recording("split@rtt-26", "server"));
    for packet in &mut translated {
        let at = packet.data.windows(4).enumerate().filter(|(_, four)| *four == [10, 77, 0, 1]);
        let places: Vec<usize> = at.map(|(at, _)| at).take(1).collect();
        for at in places {
            packet.data[at..at + 4].copy_from_slice(&[198, 51, 100, 7]);
        }
    }
    written(&server, &translated, 10_000_000_000);
    let (alone, both) = (read(&[&client]), read(&[&client, &server]));
    assert_eq!(bills(&both), bills(&alone));
    let other = other_end(&both).expect("recognised");
    assert_eq!(other["connections"], 1);
    let ahead = other["clock_ahead_ns"].as_i64().expect("a clock");
    assert!((ahead - 10_000_000_000).abs() < 1_000_000, "{ahead}");
    // The path's round trip is 26 ms.
    let round_trip = other["round_trip_ns"].as_i64().expect("a round trip");
    assert!((25_000_000..28_000_000).contains(&round_trip), "{round_trip}");
    let text = said(&[&client, &server], &[]).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("captured at different points of the path: it is billed once, from "), "{text}");
    assert!(text.contains("is 10.0 s ahead (within 13.0 ms)"), "{text}");
}

#[test]
fn pieces_of_a_ring_and_strangers_are_no_ends() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let whole = packets(&recording("split@rtt-26", "client"));
    let pieces: Vec<PathBuf> = whole
        .chunks(30)
        .enumerate()
        .map(|(i, packets)| {
            let path = directory.path().join(format!("ring.pcap{i}"));
            written(&path, packets, 0);
            path
        })
        .collect();
    let pieces: Vec<&Path> = pieces.iter().map(PathBuf::as_path).collect();
    let (ring, alone) = (read(&pieces), read(&[&recording("split@rtt-26", "client")]));
    assert_eq!(other_end(&ring), None);
    assert_eq!(bills(&ring), bills(&alone));
    let strangers = read(&[&recording("server-think", "client"), &recording("d-rcvbuf", "client")]);
    assert_eq!(other_end(&strangers), None);
}

/// A file that cannot be read keeps its own reason, and the others are recognised without it.
#[test]
fn a_file_that_cannot_be_read_is_said_beside_both_ends() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (client, server) = (recording("split@rtt-26", "client"), recording("split@rtt-26", "server"));
    let output = Command::new(env!("CARGO_BIN_EXE_tcpwhy"))
        .arg("read")
        .args([&client, &server, &directory.path().to_owned()])
        .arg("--json")
        .output()
        .expect("tcpwhy starts");
    assert_eq!(output.status.code(), Some(4));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("is a directory"), "{said}");
    let both: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert!(other_end(&both).is_some());
    assert_eq!(bills(&both), bills(&read(&[&client])));
}

/// The findings' packets have the numbers of their file, as Wireshark shows them there.
#[test]
fn packets_of_several_files_are_told_by_file() {
    let (client, server) = (recording("split@rtt-26", "client"), recording("split@rtt-26", "server"));
    let of = |text: &str| -> String {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let at = text.find("frame.number in {").unwrap_or_else(|| panic!("{text}"));
        text[at..].split('}').next().unwrap_or_default().to_owned()
    };
    let (alone, both) = (said(&[&client], &[]), said(&[&client, &server], &[]));
    assert_eq!(of(&alone), of(&both));
    assert!(both.split_whitespace().collect::<Vec<_>>().join(" ").contains("} of "), "{both}");
}

/// The number of packets in a file that the client sent.
fn sent_by_client(scenario: &str, end: &str) -> usize {
    let is_clients = |packet: &&Packet| packet.data.windows(8).take(40).any(|at| at == CLIENT_TO_SERVER);
    packets(&recording(scenario, end)).iter().filter(is_clients).count()
}

/// Source and destination address of the laboratory's client.
const CLIENT_TO_SERVER: [u8; 8] = [10, 77, 0, 1, 10, 77, 0, 2];

#[test]
fn each_direction_of_the_path_is_told_by_itself() {
    // Other traffic fills the queue before the server; the way back is free.
    let [client, server] = ["client", "server"].map(|end| recording("queueing", end));
    let both = read(&[&client, &server]);
    let ways = &other_end(&both).expect("recognised")["one_way"];
    assert!(ways["to_server"]["median_ns"].as_i64() > Some(5_000_000), "{ways}");
    assert!(ways["to_client"]["max_ns"].as_i64() < Some(1_000_000), "{ways}");
    // Seen from the client alone it may be the server's time; the server's capture rules that out.
    let think: f64 = list(&both, "bill")
        .iter()
        .filter(|line| line["cause"] == "server-think")
        .filter_map(|line| line["share"].as_f64())
        .sum();
    assert!(think < 0.05, "{think} of the time");

    let [client, server] = ["client", "server"].map(|end| recording("lost-request", end));
    let lost = sent_by_client("lost-request", "client") - sent_by_client("lost-request", "server");
    let both = read(&[&client, &server]);
    let ways = &other_end(&both).expect("recognised")["one_way"];
    assert_eq!(ways["to_server"]["missing"], lost);
    assert_eq!(ways["to_client"]["missing"], 0);
    assert!(said(&[&client, &server], &[]).contains("1 more lost on the way"));
}

/// The server's clock is ten seconds ahead and gains 40 µs a second.
#[test]
fn a_clock_that_runs_faster_is_no_queue() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (scenario, client) = ("corked-tail@rtt-200", recording("corked-tail@rtt-200", "client"));
    let mut gaining = packets(&recording(scenario, "server"));
    let first = gaining[0].ns;
    for packet in &mut gaining {
        packet.ns += (packet.ns - first) / 1_000_000 * 40;
    }
    let server = directory.path().join("server.pcap");
    written(&server, &gaining, 10_000_000_000);
    let both = read(&[&client, &server]);
    let other = other_end(&both).expect("recognised");
    let drift = other["clock_drift_ppb"].as_i64().expect("a drift");
    // Reported for the file that is not billed, whichever it is.
    let drift = drift * other["clock_ahead_ns"].as_i64().expect("a clock").signum();
    assert!((drift - 40_000).abs() < 1_000, "{drift}");
    // In 11 s that would be 440 µs.
    let plain = read(&[&client, &recording(scenario, "server")]);
    let plain = other_end(&plain).expect("recognised");
    assert_eq!(plain["clock_drift_ppb"], Value::Null);
    for way in ["to_server", "to_client"] {
        let median = |other: &Value| other["one_way"][way]["median_ns"].as_i64().expect("a median");
        assert!((median(other) - median(plain)).abs() < 20_000, "{way}: {other} {plain}");
    }
}
