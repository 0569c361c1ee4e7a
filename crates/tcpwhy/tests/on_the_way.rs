//! What happened to packets on the path? Segments that arrived damaged, and packets in fragments:
//! from the file to the bill, with tshark as a second opinion on which they are.

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use tcpwhy_wire::Instant;
use tcpwhy_wire::capture::LinkType;
use tcpwhy_wire::capture::writer::PcapWriter;

const CLIENT: [u8; 4] = [10, 0, 0, 1];
const SERVER: [u8; 4] = [10, 0, 0, 2];
const START_NS: i64 = 1_795_255_200_000_000_000;

/// What is done to a packet's checksum.
#[derive(Clone, Copy, PartialEq)]
enum Sum {
    Right,
    /// As Linux leaves it for the interface.
    Partial,
    /// A bit of the payload was flipped on the path.
    Damaged,
    /// An anonymizing tool has written the same value everywhere.
    Marked,
}

/// A packet: when, in ms; from the client or not; sequence and acknowledgement number, flags, length of the payload.
type Sent = (f64, bool, u32, u32, u8, usize, Sum);

const SYN: u8 = 0x02;
const ACK: u8 = 0x10;
const PSH: u8 = 0x18;
const RST: u8 = 0x14;

/// Handshake, a request and its reply, then a request whose first transmission is `first`,
/// retransmitted 240 ms later. RTT 20 ms, captured at the client.
fn talk(first: Sum) -> Vec<Sent> {
    use Sum::Right;
    vec![
        (0.0, true, 0, 0, SYN, 0, Right),
        (20.0, false, 0, 1, SYN | ACK, 0, Right),
        (20.0, true, 1, 1, ACK, 0, Right),
        (25.0, true, 1, 1, PSH, 100, Right),
        (45.0, false, 1, 101, PSH, 1_400, Right),
        (45.0, true, 101, 1_401, ACK, 0, Right),
        (50.0, true, 101, 1_401, PSH, 100, first),
        (290.0, true, 101, 1_401, PSH, 100, Right),
        (310.0, false, 1_401, 201, PSH, 1_400, Right),
        (310.0, true, 201, 2_801, ACK, 0, Right),
    ]
}

fn sum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(*word.get(1).unwrap_or(&0)));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// The IPv4 packet, with its number in the capture as its identification.
fn packet(&(_, from_client, seq, ack, flags, len, checksum): &Sent, number: u16) -> Vec<u8> {
    let ((src, from), (dst, to)) =
        if from_client { ((CLIENT, 40_000u16), (SERVER, 80u16)) } else { ((SERVER, 80), (CLIENT, 40_000)) };
    let mut tcp = [from.to_be_bytes(), to.to_be_bytes()].concat();
    tcp.extend(seq.to_be_bytes());
    tcp.extend(ack.to_be_bytes());
    tcp.extend([0x50, flags, 0xff, 0xff, 0, 0, 0, 0]);
    tcp.extend((0..len).map(|n| n as u8));
    let mut pseudo = [src, dst].concat();
    pseudo.extend([0, 6]);
    pseudo.extend((tcp.len() as u16).to_be_bytes());
    let field = if checksum == Sum::Partial { sum(&pseudo) } else { !sum(&[&pseudo[..], &tcp].concat()) };
    tcp[16..18].copy_from_slice(&field.to_be_bytes());
    if checksum == Sum::Marked {
        tcp[16..18].copy_from_slice(&[1, 0]);
    }
    if checksum == Sum::Damaged {
        *tcp.last_mut().expect("a byte") ^= 0x40;
    }
    ip(6, number, 0, &tcp, (src, dst))
}

fn ip(protocol: u8, id: u16, fragment: u16, bytes: &[u8], (src, dst): ([u8; 4], [u8; 4])) -> Vec<u8> {
    let mut header = vec![0x45, 0];
    for word in [20 + bytes.len() as u16, id, fragment] {
        header.extend(word.to_be_bytes());
    }
    header.extend([64, protocol, 0, 0]);
    header.extend(src);
    header.extend(dst);
    let field = !sum(&header);
    header[10..12].copy_from_slice(&field.to_be_bytes());
    header.extend(bytes);
    header
}

/// A packet in fragments of this many bytes.
fn divided(packet: &[u8], len: usize) -> Vec<Vec<u8>> {
    let (header, bytes) = packet.split_at(20);
    let [_, _, _, _, a, b, _, _, _, protocol, ..] = *header else { panic!("a header") };
    let ends = (packet[12..16].try_into().expect("4"), packet[16..20].try_into().expect("4"));
    let pieces = bytes.chunks(len).enumerate().map(|(n, piece)| {
        let more = u16::from((n + 1) * len < bytes.len()) << 13;
        ip(protocol, u16::from_be_bytes([a, b]), (n * len / 8) as u16 | more, piece, ends)
    });
    pieces.collect()
}

fn write(to: &Path, packets: impl IntoIterator<Item = (f64, Vec<u8>)>) {
    let mut pcap = PcapWriter::new(LinkType::RAW, 0);
    for (at_ms, packet) in packets {
        let at = Instant::from_nanos(START_NS + (at_ms * 1e6) as i64);
        pcap.packet(at, packet.len() as u32, &packet);
    }
    std::fs::write(to, pcap.bytes()).expect("a file");
}

fn capture(to: &Path, talk: &[Sent]) {
    write(to, talk.iter().zip(1..).map(|(sent, number)| (sent.0, packet(sent, number))));
}

fn json(path: &Path) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_tcpwhy"))
        .args(["read", "--json"])
        .arg(path)
        .output()
        .expect("tcpwhy runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn skipped(report: &Value, reason: &str) -> u64 {
    report["capture"]["skipped"][reason].as_u64().unwrap_or(0)
}

/// The bill's time for a cause, in ms.
fn bill_ms(report: &Value, cause: &str) -> f64 {
    let lines = report["bill"].as_array().expect("a bill");
    let line = lines.iter().find(|line| line["cause"] == cause);
    line.map_or(0.0, |line| line["ns"].as_f64().expect("ns") / 1e6)
}

/// The frames that tshark shows with a filter; `None` if tshark is missing.
fn tshark(path: &Path, filter: &str) -> Option<Vec<u64>> {
    let output = Command::new("tshark")
        .args(["-n", "-o", "tcp.check_checksum:TRUE", "-T", "fields", "-e", "frame.number", "-Y", filter])
        .arg("-r")
        .arg(path)
        .output()
        .ok()?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("text");
    Some(text.lines().map(|line| line.parse().expect("a number")).collect())
}

#[test]
fn a_damaged_request_is_said_and_its_repair_is_the_path_s() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("damaged.pcap");
    capture(&path, &talk(Sum::Damaged));
    let report = json(&path);
    assert_eq!(skipped(&report, "wrong-checksum"), 1);
    assert!((bill_ms(&report, "rto") - 240.0).abs() < 0.5, "{report:#}");
    if let Some(frames) = tshark(&path, "tcp.checksum.status == \"Bad\"") {
        assert_eq!(frames, [7]);
    }
    let output =
        Command::new(env!("CARGO_BIN_EXE_tcpwhy")).arg("read").arg(&path).output().expect("tcpwhy runs");
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(text.contains("1 segment with a wrong TCP checksum"), "{text}");
}

/// A record whose microseconds are a million and more: the capture's clock is wrong, and nothing is more than
/// possible, which the report says.
#[test]
fn a_clock_that_cannot_be_shows_nothing_for_certain() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("clock.pcap");
    capture(&path, &talk(Sum::Right));
    let confidences = |report: &Value| {
        let lines = |exchange: &Value| exchange["bill"].as_array().expect("a bill").clone();
        let exchanges = report["connections"][0]["exchanges"].as_array().expect("exchanges").clone();
        exchanges.iter().flat_map(lines).map(|line| line["confidence"].clone()).collect::<Vec<_>>()
    };
    assert!(confidences(&json(&path)).contains(&"certain".into()));
    let mut bytes = std::fs::read(&path).expect("the capture");
    let length = bytes.len();
    let last = length - 16 - 40;
    bytes[last + 4..last + 8].copy_from_slice(&1_000_000_000_u32.to_le_bytes());
    std::fs::write(&path, bytes).expect("a file");
    let report = json(&path);
    assert_eq!(skipped(&report, "wrong-clock"), 1, "{report:#}");
    assert!(confidences(&report).iter().all(|sure| sure == "possible"), "{report:#}");
    let read =
        Command::new(env!("CARGO_BIN_EXE_tcpwhy")).arg("read").arg(&path).output().expect("tcpwhy runs");
    let [text, said] = [read.stdout, read.stderr].map(|text| String::from_utf8(text).expect("text"));
    assert!(text.contains("all times are possible at most"), "{text}");
    assert!(said.contains(&format!("at byte {last}")), "{said}");
}

/// A capture of a database's session counts whole seconds (and its path of one switch would take 28 of them): its times show neither how long a
/// server took nor a path, and the report says so. With one fraction among them it counts microseconds.
#[test]
fn a_clock_of_whole_seconds_shows_nothing_for_certain() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("seconds.pcap");
    for (fractions, said) in [(false, true), (true, false)] {
        capture(&path, &talk(Sum::Right));
        let mut bytes = std::fs::read(&path).expect("the capture");
        let (mut at, mut n) = (24, 0_u32);
        while at + 16 <= bytes.len() {
            let length = u32::from_le_bytes(bytes[at + 8..at + 12].try_into().expect("four bytes"));
            bytes[at..at + 4].copy_from_slice(&(1_000 + 20 * n).to_le_bytes());
            bytes[at + 4..at + 8].copy_from_slice(&u32::from(fractions && n == 5).to_le_bytes());
            (at, n) = (at + 16 + length as usize, n + 1);
        }
        std::fs::write(&path, bytes).expect("a file");
        let report = json(&path);
        let exchanges = report["connections"][0]["exchanges"].as_array().expect("exchanges");
        let lines = exchanges.iter().flat_map(|exchange| exchange["bill"].as_array().expect("a bill"));
        assert_eq!(lines.clone().all(|line| line["confidence"] == "possible"), said, "{report:#}");
        assert_eq!(report["capture"]["skipped"].get("whole-seconds").is_some(), said, "{report:#}");
    }
}

/// In a mobile network's capture every packet lies 100 ms behind the one before: what anonymised it made the times up, and the
/// report says so. Questions and answers that a clock has timed lie at two distances, however equal each is.
#[test]
fn times_that_were_made_up_show_nothing_for_certain() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("made-up.pcap");
    let packets: Vec<_> = (0..4).flat_map(|_| talk(Sum::Right)).collect();
    for (other, said) in [(100_000, true), (40_000, false)] {
        capture(&path, &packets);
        let mut bytes = std::fs::read(&path).expect("the capture");
        let (mut at, mut n, mut us) = (24, 0_u32, 0_u32);
        while at + 16 <= bytes.len() {
            let length = u32::from_le_bytes(bytes[at + 8..at + 12].try_into().expect("four bytes"));
            bytes[at..at + 4].copy_from_slice(&(1_000 + us / 1_000_000).to_le_bytes());
            bytes[at + 4..at + 8].copy_from_slice(&(us % 1_000_000 * 1_000).to_le_bytes());
            us += if n % 2 == 0 { 100_000 } else { other } + n % 3 * 100;
            (at, n) = (at + 16 + length as usize, n + 1);
        }
        std::fs::write(&path, bytes).expect("a file");
        let report = json(&path);
        assert_eq!(report["capture"]["skipped"].get("equal-distances").is_some(), said, "{report:#}");
        let exchanges = report["connections"][0]["exchanges"].as_array().expect("exchanges");
        let lines = exchanges.iter().flat_map(|exchange| exchange["bill"].as_array().expect("a bill"));
        assert!(!said || lines.clone().all(|line| line["confidence"] == "possible"), "{report:#}");
    }
}

/// A router that drops a packet says so by ICMP, and quotes it (frames 255 to 257 of a home's capture, behind a link of 1,492 bytes): why something was lost
/// is then in the capture. An error that says something else, or is about no segment, is no such reason.
#[test]
fn a_packet_that_was_too_large_is_said() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("large.pcap");
    let sent = talk(Sum::Right);
    for (code, protocol, said) in [(4, 6, true), (3, 6, false), (4, 17, false)] {
        capture(&path, &sent);
        let mut quoted = packet(&sent[6], 7);
        quoted[9] = protocol;
        let mut icmp = vec![3, code, 0, 0, 0, 0, 5, 0xd4];
        icmp.extend(&quoted[..28]);
        let error = ip(1, 900, 0, &icmp, ([192, 0, 2, 9], CLIENT));
        let mut bytes = std::fs::read(&path).expect("the capture");
        let record = bytes[bytes.len() - 16 - 40..][..8].to_vec();
        bytes.extend(record);
        bytes.extend([error.len() as u32; 2].iter().flat_map(|len| len.to_le_bytes()));
        bytes.extend(error);
        std::fs::write(&path, bytes).expect("a file");
        let notes = json(&path)["notes"].as_array().expect("notes").clone();
        let told = notes.iter().find(|note| note["kind"] == "too-large-packets");
        assert_eq!(told.map(|note| note["first_packet"].clone()), said.then(|| 11.into()), "{notes:#?}");
    }
}

/// A reset with a wrong checksum is not accepted, so it ends nothing.
#[test]
fn a_reset_that_nobody_takes_ends_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("reset.pcap");
    let mut packets = talk(Sum::Right);
    packets.remove(6);
    let without = directory.path().join("without.pcap");
    capture(&without, &packets);
    packets.insert(6, (60.0, false, 1_401, 101, RST, 1, Sum::Damaged));
    capture(&path, &packets);
    let (report, without) = (json(&path), json(&without));
    assert_eq!(skipped(&report, "wrong-checksum"), 1);
    assert_eq!(report["bill"], without["bill"]);
    assert_eq!(report["totals"], without["totals"]);
}

/// The server's address has shown only its SYN-ACK, whose checksum is right: the first answer,
/// whose checksum is wrong, is retransmitted. A reset with a right checksum proves nothing: hosts
/// that leave all other checksums to their interface fill in those of resets.
#[test]
fn one_right_checksum_shows_that_they_are_filled_in_but_no_reset_s() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("answer.pcap");
    let mut packets = talk(Sum::Right)[..4].to_vec();
    packets.extend([
        (49.4, false, 1, 101, PSH, 1_400, Sum::Damaged),
        (290.0, true, 1, 1, PSH, 100, Sum::Right),
        (310.0, false, 1, 101, PSH, 1_400, Sum::Right),
        (310.0, true, 101, 1_401, ACK, 0, Sum::Right),
    ]);
    capture(&path, &packets);
    let report = json(&path);
    assert_eq!(skipped(&report, "wrong-checksum"), 1);
    assert!((bill_ms(&report, "rto") - 260.6).abs() < 0.5, "{report:#}");

    let path = directory.path().join("reset.pcap");
    let packets = [
        (0.0, true, 0, 0, SYN, 0, Sum::Right),
        (20.0, false, 0, 1, RST, 0, Sum::Right),
        (500.0, true, 9_000, 0, SYN, 0, Sum::Right),
        (520.0, false, 7_000, 9_001, SYN | ACK, 0, Sum::Damaged),
        (520.0, true, 9_001, 7_001, ACK, 0, Sum::Right),
    ];
    capture(&path, &packets);
    assert_eq!(skipped(&json(&path), "wrong-checksum"), 0);
}

/// On the sending host, none of its checksums is filled in yet; there, one that looks wrong means
/// nothing either.
#[test]
fn what_an_interface_fills_in_later_is_not_wrong() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("offloaded.pcap");
    let mut packets = talk(Sum::Right);
    for packet in packets.iter_mut().filter(|packet| packet.1) {
        packet.6 = Sum::Partial;
    }
    capture(&path, &packets);
    let honest = json(&path);
    assert_eq!(skipped(&honest, "wrong-checksum"), 0);
    packets[6].6 = Sum::Damaged;
    capture(&path, &packets);
    let report = json(&path);
    assert_eq!(skipped(&report, "wrong-checksum"), 0);
    assert_eq!(report["bill"], honest["bill"]);
}

/// Packets of more than 500 bytes are fragmented, and the last fragment of one comes first: the
/// bill is that of whole packets. A missing fragment is reported.
#[test]
fn fragments_are_put_together() {
    let directory = tempfile::tempdir().expect("a directory");
    let [whole, pieces, missing] = ["whole", "pieces", "missing"].map(|name| directory.path().join(name));
    let talk = talk(Sum::Right);
    capture(&whole, &talk);
    let mut divided: Vec<(f64, Vec<u8>)> = talk
        .iter()
        .zip(1..)
        .flat_map(|(sent, number)| {
            let mut pieces = divided(&packet(sent, number), 504);
            if sent.5 > 1_000 && sent.0 < 50.0 {
                pieces.reverse();
            }
            pieces.into_iter().map(|piece| (sent.0, piece))
        })
        .collect();
    write(&pieces, divided.clone());
    let (report, expected) = (json(&pieces), json(&whole));
    assert_eq!(skipped(&report, "fragment"), 0);
    assert_eq!(report["capture"]["segments"], expected["capture"]["segments"]);
    assert_eq!(report["bill"], expected["bill"]);
    if let Some(frames) = tshark(&pieces, "tcp && ip.reassembled.length") {
        assert_eq!(frames, [7, 13], "the replies' last pieces");
        let bad = tshark(&pieces, "tcp.checksum.status == \"Bad\"").expect("tshark");
        assert_eq!(bad, [0u64; 0]);
    }
    divided.remove(5);
    write(&missing, divided);
    let report = json(&missing);
    assert_eq!(skipped(&report, "fragment"), 2);
    assert_eq!(
        report["capture"]["segments"].as_u64(),
        expected["capture"]["segments"].as_u64().map(|n| n - 1)
    );
}

/// From a published trace in which all data segments have the checksum 0x0100 (frames 490 to 539 of
/// an anonymized one): a value shared by several segments is no checksum, and these are not
/// damaged.
#[test]
fn what_stands_in_the_place_of_several_checksums_is_none() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("marked.pcap");
    let mut packets = talk(Sum::Right);
    for packet in packets.iter_mut().filter(|packet| packet.5 > 0) {
        packet.6 = Sum::Marked;
    }
    capture(&path, &packets);
    assert_eq!(skipped(&json(&path), "wrong-checksum"), 1); // the first one, when it is still unknown
}
