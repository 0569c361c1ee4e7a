//! Are generated captures what they claim to be? Judged by the totals of the shapes and by tshark's
//! analysis.

use std::collections::HashMap;
use std::fs;
use std::process::Command;

use tcpwhy_gen::{Generator, Shape};
use tcpwhy_wire::capture::writer::PcapWriter;
use tcpwhy_wire::capture::{LinkType, RawPacket};
use tcpwhy_wire::{Endpoint, Instant, Segment, decode};

fn segments(shape: Shape, packets: u64, seed: u64) -> Vec<Segment> {
    let mut generator = Generator::new(shape, packets, seed);
    let mut segments = Vec::new();
    while let Some(packet) = generator.next() {
        let raw = RawPacket {
            number: segments.len() as u64 + 1,
            at: packet.at,
            link: LinkType::ETHERNET,
            data: packet.data,
            original_len: packet.original_len,
            interface: 0,
            dropped: 0,
        };
        assert!(packet.data.len() <= shape.snaplen() as usize);
        segments.push(decode(&raw).expect("a segment"));
    }
    segments
}

/// Segments by connection: if endpoints are reused, a SYN begins a new one.
fn connections(segments: &[Segment]) -> Vec<Vec<Segment>> {
    let mut place: HashMap<(Endpoint, Endpoint), usize> = HashMap::new();
    let mut connections: Vec<Vec<Segment>> = Vec::new();
    for segment in segments {
        let pair = (segment.src.min(segment.dst), segment.src.max(segment.dst));
        if segment.flags.syn() && !segment.flags.ack() {
            place.insert(pair, connections.len());
            connections.push(Vec::new());
        }
        connections[place[&pair]].push(*segment);
    }
    connections
}

#[test]
fn the_same_seed_gives_the_same_capture_in_the_order_of_time() {
    for shape in Shape::ALL {
        let one = segments(shape, 5_000, 1);
        assert_eq!(one.len(), 5_000, "{shape}");
        assert!(one.is_sorted_by_key(|segment| segment.at), "{shape}");
        assert_eq!(one, segments(shape, 5_000, 1), "{shape}");
        assert_ne!(one, segments(shape, 5_000, 2), "{shape}");
    }
}

#[test]
fn every_byte_is_sent_once_and_acknowledged() {
    for shape in Shape::ALL {
        for connection in connections(&segments(shape, 30_000, 3)) {
            let mut next = HashMap::new();
            for segment in &connection {
                if let Some(expected) = next.insert(segment.src, segment.seq_end()) {
                    assert_eq!(segment.seq, expected, "{shape}, packet {}", segment.packet);
                }
                if segment.flags.ack() {
                    assert!(
                        next[&segment.dst].at_or_after(segment.ack),
                        "{shape}: {segment:?} acknowledges the future"
                    );
                }
            }
        }
    }
}

#[test]
fn a_time_stamp_echoes_what_can_have_arrived() {
    for shape in Shape::ALL {
        let connections = connections(&segments(shape, 20_000, 4));
        // The end of the capture cuts some of them off in their handshake.
        for connection in connections.iter().filter(|connection| connection.len() > 1) {
            let rtt = connection[1].at - connection[0].at;
            for echo in connection.iter().filter(|segment| segment.src == connection[1].src) {
                let stamps = echo.options.timestamps.expect("time stamps");
                let mut sent = connection
                    .iter()
                    .filter(|s| s.src == echo.dst && s.at + rtt <= echo.at)
                    .filter_map(|s| s.options.timestamps.map(|stamps| stamps.val));
                let latest = sent.next_back().expect("a packet of the client before");
                assert!(latest.wrapping_sub(stamps.ecr) as i32 >= 0, "{shape}: {echo:?} of {rtt}");
            }
        }
    }
}

#[test]
fn short_connections_have_six_to_eight_packets_and_reuse_endpoints() {
    let packets = 300_000;
    let all = connections(&segments(Shape::Churn, packets, 5));
    let last = Instant::from_nanos(all[all.len() - 1][0].at.as_nanos() - 100_000_000);
    let whole: Vec<_> = all.iter().filter(|connection| connection[0].at < last).collect();
    assert!(whole.iter().all(|connection| (6..=8).contains(&connection.len())));
    // 7.5 packets on average make a million connections of 7.5 M packets.
    let mean = whole.iter().map(|connection| connection.len()).sum::<usize>() as f64 / whole.len() as f64;
    assert!((7.4..7.6).contains(&mean), "{mean}");
    let mut isn = HashMap::new();
    let mut reused = 0;
    for connection in &all {
        let syn = connection[0];
        if let Some(before) = isn.insert((syn.src, syn.dst), syn.seq) {
            assert_ne!(before, syn.seq);
            reused += 1;
        }
    }
    assert_eq!(reused, all.len() - 40_000);
}

#[test]
fn shapes_have_the_size_of_the_baselines() {
    // Mean bytes of a record, header included: 1.86 GB for 9.44 M packets; the others follow from
    // their snap length.
    for (shape, low, high) in [
        (Shape::Rpc, 185, 230),
        (Shape::Bulk, 95, 112),
        (Shape::BulkFull, 1_000, 1_100),
        (Shape::Churn, 90, 140),
    ] {
        let mut generator = Generator::new(shape, 500_000, 1);
        let (mut bytes, mut packets) = (0, 0);
        while let Some(packet) = generator.next() {
            packets += 1;
            bytes += packet.data.len() + 16;
        }
        assert_eq!(packets, 500_000, "{shape}");
        assert!((low..high).contains(&(bytes / packets)), "{shape}: {}", bytes / packets);
    }
}

#[test]
fn tshark_finds_nothing_odd() {
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
    for shape in Shape::ALL {
        let mut generator = Generator::new(shape, 20_000, 6);
        let mut out = PcapWriter::new(LinkType::ETHERNET, shape.snaplen());
        while let Some(packet) = generator.next() {
            out.packet(packet.at, packet.original_len, packet.data);
        }
        let directory = std::env::temp_dir();
        let path = directory.join(format!("tcpwhy-gen-{shape}-{}.pcap", std::process::id()));
        fs::write(&path, out.bytes()).expect("a file");
        let output = Command::new("tshark")
            .args([
                "-n",
                "-o",
                "ip.check_checksum:TRUE",
                "-Y",
                "tcp.analysis.flags || _ws.malformed || ip.checksum.status == 0",
            ])
            .arg("-r")
            .arg(&path)
            .output()
            .expect("tshark");
        fs::remove_file(&path).expect("removed");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let odd = String::from_utf8_lossy(&output.stdout);
        assert!(odd.is_empty(), "{shape}:\n{}", odd.lines().take(20).collect::<Vec<_>>().join("\n"));
    }
}
