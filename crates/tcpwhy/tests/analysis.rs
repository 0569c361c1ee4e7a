//! Do sequence numbers, acknowledgements and repeated bytes agree with tshark's analysis of the same recordings?
//!
//! For the first connection of each: every packet's numbers, relative to the direction's first, and
//! which packets carry bytes sent before. Bills name retransmissions only if time was lost to them,
//! so their count is no more than a bound.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use serde_json::Value;

const RECORDINGS: [&str; 16] = [
    "burst-whole",
    "d-sndbuf",
    "deep-queue",
    "i60-whole-window",
    "lost-reply-tail",
    "lost-reply-tail@two",
    "lost-request",
    "lost-syn",
    "lost-synack",
    "lost-twice",
    "queueing",
    "random-loss",
    "reordering",
    "server-think",
    "server-split@rtt-26",
    "split",
];

/// tshark's marks for a packet with bytes below what it expects next.
const AGAIN: [&str; 4] = [
    "tcp.analysis.retransmission",
    "tcp.analysis.fast_retransmission",
    "tcp.analysis.spurious_retransmission",
    "tcp.analysis.out_of_order",
];

#[test]
fn numbers_and_repeated_bytes_are_those_of_tshark() {
    if Command::new("tshark").arg("-v").output().is_err() {
        #[expect(
            clippy::disallowed_methods,
            reason = "whether a test may skip is the environment's business"
        )]
        let ci = std::env::var("CI").is_ok_and(|ci| ci == "true");
        assert!(!ci, "in CI: tshark is missing");
        println!("skipped: tshark is missing");
        return;
    }
    let (mut packets, mut repeated) = (0, 0);
    for recording in RECORDINGS {
        let mut quiet = true;
        let mut billed = 0;
        for end in ["client", "server"] {
            let name = format!("../../corpus/lab/{recording}/{end}.pcapng.zst");
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
            let connection = first_connection(&path);
            let rows = tshark(&path);
            let ladder = connection["ladder"].as_array().expect("a ladder");
            assert_eq!(ladder.len(), rows.len(), "{recording}, {end}");
            let ours = again(ladder);
            for (rung, row) in ladder.iter().zip(&rows) {
                assert_eq!(numbers(rung), row.numbers, "{recording}, {end}");
            }
            let theirs: BTreeSet<u64> =
                rows.iter().filter(|row| row.again).map(|row| row.numbers.0).collect();
            assert_eq!(ours, theirs, "{recording}, {end}: packets with bytes that were sent before");
            quiet &= theirs.is_empty();
            billed += retransmits(&connection);
            packets += rows.len();
            repeated += theirs.len();
        }
        assert!(
            !quiet || billed == 0,
            "{recording}: {billed} retransmissions billed, and none at either end"
        );
    }
    println!("{packets} packets, {repeated} of them with bytes that were sent before, as tshark reads them");
    assert!(packets > 5_000 && repeated > 60, "{packets} {repeated}");
}

/// What the kernels of the recordings do, by their sources and settings: a client of 26 ms with a
/// locked buffer of 256 KB, a server that delays ACKs by 40 ms (TCP_DELACK_MIN, and up to two ticks
/// of 4 ms), a sender with Reno.
#[test]
fn conduct_is_what_the_kernels_were_set_to() {
    for end in ["client", "server"] {
        let conduct = |recording: &str| {
            let name = format!("../../corpus/lab/{recording}/{end}.pcapng.zst");
            first_connection(&Path::new(env!("CARGO_MANIFEST_DIR")).join(name))["conduct"].take()
        };
        let delay = conduct("burst-whole")["server"]["acknowledging"]["delay_ns"].as_u64();
        assert!(delay.is_some_and(|ns| (39_500_000..=48_500_000).contains(&ns)), "{end}: {delay:?}");
        let burst = conduct("bandwidth")["client"]["acknowledging"].take();
        assert_eq!((burst["every_segments"].as_u64(), burst["held"].as_u64()), (Some(2), Some(0)), "{end}");
        let locked = conduct("d-rcvbuf")["client"]["window"].take();
        assert!(
            locked["grew_until_ns"].is_null() && locked["largest_bytes"].as_u64() < Some(300_000),
            "{end}"
        );
        let tuned = conduct("d-rcvbuf+unset")["client"]["window"].take();
        assert!(
            tuned["grew_until_ns"].is_u64() && tuned["largest_bytes"].as_u64() > Some(1_000_000),
            "{end}"
        );
    }
    let reno =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/lab/bandwidth@reno/server.pcapng.zst");
    assert_eq!(first_connection(&reno)["conduct"]["server"]["controller"]["looks_like"], "reno");
}

/// Packet number, offset, payload, acknowledged offset.
type Numbers = (u64, u64, u64, Option<u64>);

struct Row {
    numbers: Numbers,
    again: bool,
}

fn first_connection(path: &Path) -> Value {
    let output =
        Command::new(env!("CARGO_BIN_EXE_tcpwhy")).arg("read").arg(path).args(["--json", "-c", "1"]).output();
    let output = output.expect("tcpwhy starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    document["connections"][0].take()
}

fn numbers(rung: &Value) -> Numbers {
    let number = |name: &str| rung[name].as_u64();
    let all = (number("packet"), number("offset"), number("len"));
    let (Some(packet), Some(offset), Some(len)) = all else { panic!("{rung}") };
    (packet, offset, len, number("ack_offset"))
}

fn tshark(path: &Path) -> Vec<Row> {
    let fields = ["frame.number", "tcp.seq", "tcp.len", "tcp.ack", "tcp.flags"];
    let mut command = Command::new("tshark");
    command.args(["-n", "-T", "fields", "-E", "separator=|", "-Y", "tcp.stream == 0"]);
    command.args(fields.iter().chain(&AGAIN).flat_map(|field| ["-e", field]));
    let output = command.arg("-r").arg(path).output().expect("tshark");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text").lines().map(row).collect()
}

fn row(line: &str) -> Row {
    let fields: Vec<&str> = line.split('|').collect();
    let number = |at: usize| fields[at].parse::<u64>().unwrap_or(0);
    let flags = u64::from_str_radix(fields[4].trim_start_matches("0x"), 16).unwrap_or(0);
    // tshark counts the SYN as one byte, so the first byte after it is number 1.
    let (syn, ack) = (flags & 2 != 0, flags & 16 != 0);
    let offset = if syn { 0 } else { number(1).saturating_sub(1) };
    let acknowledged = ack.then(|| number(3).saturating_sub(1));
    Row {
        numbers: (number(0), offset, number(2), acknowledged),
        again: fields[5..].iter().any(|mark| !mark.is_empty()),
    }
}

/// Packets with a byte, a SYN or a FIN below the highest number sent so far.
fn again(ladder: &[Value]) -> BTreeSet<u64> {
    let mut reached: BTreeMap<&str, u64> = BTreeMap::new();
    let mut again = BTreeSet::new();
    for rung in ladder {
        let (packet, offset, len, _) = numbers(rung);
        let (from, flags) =
            (rung["from"].as_str().unwrap_or_default(), rung["flags"].as_str().unwrap_or_default());
        let (syn, fin) = (flags.contains('S'), flags.contains('F'));
        // Positions: the SYN's is 0, the first byte's 1.
        let start = if syn { 0 } else { offset + 1 };
        let end = start + len + u64::from(syn) + u64::from(fin);
        let reached = reached.entry(from).or_default();
        if end > start && start < *reached {
            again.insert(packet);
        }
        *reached = end.max(*reached);
    }
    again
}

fn retransmits(connection: &Value) -> u64 {
    let exchanges = connection["exchanges"].as_array().into_iter().flatten();
    let lines = exchanges.flat_map(|exchange| exchange["bill"].as_array().into_iter().flatten());
    lines.filter_map(|line| line["detail"]["retransmits"].as_u64()).sum()
}
