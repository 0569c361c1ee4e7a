//! Does a connection within a tunnel of this kernel get the same bill as outside it?
//! `data/vxlan.sh` recorded both.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

fn report(files: &[&str]) -> Value {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let mut command = Command::new(env!("CARGO_BIN_EXE_tcpwhy"));
    let output = command.arg("read").args(files.iter().map(|file| data.join(file))).arg("--json").output();
    serde_json::from_slice(&output.expect("tcpwhy starts").stdout).expect("JSON")
}

/// Cause, number of times, and microseconds.
fn bill(report: &Value) -> Vec<(String, u64, i64)> {
    let lines = report["bill"].as_array().expect("a bill");
    let number = |line: &Value, key: &str| line[key].as_u64().expect("a number");
    lines
        .iter()
        .map(|line| {
            let cause = line["cause"].as_str().expect("a cause").to_owned();
            (cause, number(line, "hits"), (number(line, "ns") / 1000) as i64)
        })
        .collect()
}

#[test]
fn a_connection_within_vxlan_is_billed_as_it_is_outside() {
    let (inside, outside) = (report(&["vxlan-inside.pcap"]), report(&["vxlan-outside.pcap"]));
    // The counts of tshark: `tshark -r FILE -Y tcp`.
    assert_eq!(inside["capture"]["segments"], 67);
    assert_eq!(outside["capture"]["segments"], 67);
    // Neighbour discovery, in the tunnel and below it, is not TCP.
    assert_eq!(outside["capture"]["skipped"]["not-tcp"], 10);
    assert_eq!(outside["capture"]["skipped"]["not-ip"], 2);
    assert_eq!(outside["connections"][0]["client"], inside["connections"][0]["client"]);
    let (inside, outside) = (bill(&inside), bill(&outside));
    assert_eq!(inside[0].0, "nagle-delayed-ack");
    for (inside, outside) in inside.iter().zip(&outside) {
        assert_eq!((&inside.0, inside.1), (&outside.0, outside.1));
        // The tunnel's own processing on either side of its interface.
        assert!((inside.2 - outside.2).abs() < 500, "{inside:?} {outside:?}");
    }
}

#[test]
fn a_packet_seen_in_the_tunnel_and_outside_is_one_packet() {
    let (inside, both) =
        (report(&["vxlan-inside.pcap"]), report(&["vxlan-inside.pcap", "vxlan-outside.pcap"]));
    assert_eq!(both["connections"].as_array().map(Vec::len), Some(1));
    assert_eq!(both["bill"][0]["cause"], "nagle-delayed-ack");
    assert_eq!(both["bill"][0]["hits"], inside["bill"][0]["hits"]);
}
