//! Are captures from other people's networks read without nonsense? Needs them (`make
//! public-captures` fetches them) and tshark; what was judged by hand is in
//! docs/public-captures.md.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// A capture of the list.
struct Public {
    name: String,
    file: PathBuf,
}

/// The sums of a capture's report.
struct Sums {
    segments: u64,
    elapsed_ns: i64,
    unexplained_ns: i64,
    /// Time certainly lost to repairs, by the report.
    repairs_ns: i64,
    answer: String,
}

#[test]
#[ignore = "needs other people's captures: make public-captures"]
fn every_public_capture_is_read_without_nonsense() {
    let captures = captures();
    assert!(captures.len() >= 30, "{} captures", captures.len());
    let (mut elapsed, mut unexplained) = (0, 0);
    println!("{:>9} {:>11} {:>6} {:>7}  capture: the answer", "segments", "billed", "unexp.", "resent");
    for Public { name, file } in &captures {
        let sums = read(file);
        let resent = sent_again(file);
        // If Wireshark finds it complete and in order, nothing can have waited for a repair.
        assert!(
            resent > 0 || sums.repairs_ns == 0,
            "{name}: repairs of {} ns, and nothing is missing",
            sums.repairs_ns
        );
        assert_eq!(sums.segments, segments(file), "{name}: segments");
        elapsed += sums.elapsed_ns;
        unexplained += sums.unexplained_ns;
        let seconds = sums.elapsed_ns as f64 / 1e9;
        let share = 100.0 * sums.unexplained_ns as f64 / sums.elapsed_ns.max(1) as f64;
        println!("{:>9} {seconds:>9.1} s {share:>4.0} % {resent:>7}  {name}: {}", sums.segments, sums.answer);
    }
    let share = 100.0 * unexplained as f64 / elapsed as f64;
    println!(
        "{} captures, {:.0} s billed, {share:.1} % of it unexplained",
        captures.len(),
        elapsed as f64 / 1e9
    );
}

fn captures() -> Vec<Public> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let list = std::fs::read_to_string(root.join("tools/public-captures.txt")).expect("the list");
    let below = root.join("target/public-captures");
    let lines = list.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let mut words = line.splitn(4, ' ');
            let (_sum, repository, _commit, path) = (words.next(), words.next(), words.next(), words.next());
            let name = format!("{}/{}", repository.expect("a repository"), path.expect("a path"));
            let file = below.join(&name);
            assert!(file.exists(), "{name} is not there: make public-captures");
            Public { name, file }
        })
        .collect()
}

/// Reads a capture, and checks what must hold for any report.
fn read(file: &Path) -> Sums {
    let output = Command::new(env!("CARGO_BIN_EXE_tcpwhy")).args(["read", "--json"]).arg(file).output();
    let output = output.expect("tcpwhy starts");
    let name = file.display();
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).expect("a document");
    let elapsed_ns = ns(&report["elapsed_ns"]);
    assert_eq!(lines(&report["bill"], |_| true), elapsed_ns, "{name}: the bill");
    let mut repairs_ns = 0;
    for connection in array(&report["connections"]) {
        for exchange in array(&connection["exchanges"]) {
            let whole = ns(&exchange["elapsed_ns"]);
            assert!(whole >= 0, "{name}: {exchange}");
            assert!(array(&exchange["bill"]).iter().all(|line| ns(&line["ns"]) >= 0), "{name}: {exchange}");
            assert_eq!(lines(&exchange["bill"], |_| true), whole, "{name}: {exchange}");
            repairs_ns += lines(&exchange["bill"], |line| {
                line["confidence"] == "certain" && (line["cause"] == "rto" || line["cause"] == "loss")
            });
        }
    }
    Sums {
        segments: report["capture"]["segments"].as_u64().expect("a number"),
        elapsed_ns,
        unexplained_ns: lines(&report["bill"], |line| line["cause"] == "unexplained"),
        repairs_ns,
        answer: report["answer"].as_str().expect("an answer").to_owned(),
    }
}

fn array(value: &Value) -> &[Value] {
    value.as_array().expect("an array")
}

fn ns(value: &Value) -> i64 {
    value.as_i64().expect("nanoseconds")
}

fn lines(bill: &Value, which: impl Fn(&Value) -> bool) -> i64 {
    array(bill).iter().filter(|line| which(line)).map(|line| ns(&line["ns"])).sum()
}

/// TCP segments by tshark, which also looks into ICMP's quotations and the second half of tunnels.
fn segments(file: &Path) -> u64 {
    tshark(file, "tcp && !icmp && !icmpv6")
}

/// Packets that tshark marks as retransmitted, out of order, or missing.
fn sent_again(file: &Path) -> u64 {
    tshark(
        file,
        "tcp.analysis.retransmission || tcp.analysis.out_of_order || tcp.analysis.lost_segment \
         || tcp.analysis.ack_lost_segment || tcp.analysis.duplicate_ack",
    )
}

fn tshark(file: &Path, filter: &str) -> u64 {
    let mut tshark = Command::new("tshark");
    tshark.args(["-n", "-Y", filter, "-T", "fields", "-e", "frame.number", "-r"]).arg(file);
    let output = tshark.output().expect("tshark is installed (make tools)");
    String::from_utf8_lossy(&output.stdout).lines().count() as u64
}
