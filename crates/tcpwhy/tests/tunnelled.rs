//! Does a connection within a tunnel get the same answer as outside one? A recording wrapped into
//! each tunnel by hand, through the binary.

mod tunnels;
#[expect(dead_code, reason = "other tests write other captures")]
#[path = "../../wire/tests/vocabulary/mod.rs"]
mod vocabulary;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use vocabulary::{Order, Packet, read};

fn recording() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/split.pcap")
}

fn document(path: &Path, args: &[&str]) -> Value {
    let mut tcpwhy = Command::new(env!("CARGO_BIN_EXE_tcpwhy"));
    let output = tcpwhy.arg("read").arg(path).arg("--json").args(args).output().expect("tcpwhy starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// The answer, and whom it is about.
fn answer(document: &Value) -> [&Value; 5] {
    let connection = &document["connections"][0];
    [
        &document["answer"],
        &document["bill"],
        &connection["client"],
        &connection["server"],
        &connection["exchanges"],
    ]
}

#[test]
fn every_tunnel_is_looked_through() {
    let dir = tempfile::tempdir().expect("a folder");
    let packets = read(&fs::read(recording()).expect("the recording")).packets;
    let plain = document(&recording(), &[]);
    assert_eq!(plain["exchanges"], 12);
    let write = |name: &str, packets: &[Packet]| -> PathBuf {
        let records: Vec<_> = packets
            .iter()
            .map(|p| {
                ((p.ns / 1_000_000_000) as u32, (p.ns % 1_000_000_000) as u32, p.original_len, &p.data[..])
            })
            .collect();
        let path = dir.path().join(name);
        fs::write(&path, vocabulary::pcap(Order::Little, 0xa1b2_3c4d, 1, &records)).expect("a file");
        path
    };
    for (which, (name, _)) in tunnels::TUNNELS.iter().enumerate() {
        let wrapped: Vec<Packet> = packets.iter().map(|packet| tunnels::wrapped(packet, which)).collect();
        let path = write("tunnel.pcap", &wrapped);
        assert_eq!(answer(&document(&path, &[])), answer(&plain), "{name}");
        // By the inner addresses.
        let port = document(&path, &["--filter", "host 127.0.0.1 and tcp port 18080"]);
        assert_eq!(answer(&port), answer(&plain), "{name}, with a filter");
    }
    // Both what entered and what left the tunnel, on one host: counted once.
    let both: Vec<Packet> =
        packets.iter().flat_map(|packet| [packet.clone(), tunnels::wrapped(packet, 0)]).collect();
    let twice = document(&write("both.pcap", &both), &[]);
    // Frames are those of the file, which has twice as many.
    assert_eq!(answer(&twice)[..4], answer(&plain)[..4], "inside and outside");
}
