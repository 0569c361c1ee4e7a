//! Does every capture read as in Wireshark? Packets recorded on this machine's kernel
//! (`recordings/record.sh`), turned into each kind of capture, packet for packet against `tshark -T
//! fields`.
//!
//! Needs root for the recording, tshark, editcap, mergecap, tcpdump, iproute2 and python3.

mod tunnels;
#[path = "../../wire/tests/vocabulary/mod.rs"]
mod vocabulary;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use tcpwhy::input::{Inputs, Options};
use tcpwhy_wire::capture::LinkType;
use tcpwhy_wire::{Flags, Segment};
use vocabulary::{Order, Packet};

/// The fields asked of tshark for each segment, in the order of [`row`].
const FIELDS: [&str; 20] = [
    "frame.number",
    "frame.time_epoch",
    "ip.src",
    "ipv6.src",
    "ip.dst",
    "ipv6.dst",
    "tcp.srcport",
    "tcp.dstport",
    "tcp.seq_raw",
    "tcp.ack_raw",
    "tcp.flags",
    "tcp.window_size_value",
    "tcp.len",
    "ip.id",
    "tcp.options.mss_val",
    "tcp.options.wscale.shift",
    "tcp.options.timestamp.tsval",
    "tcp.options.timestamp.tsecr",
    "tcp.options.sack_le",
    "tcp.options.sack_re",
];

/// Turns recordings into captures of one kind.
type Make = fn(&Recording, &Path);

/// One conversation, recorded at three places.
struct Recording {
    name: String,
    /// pcap with nanoseconds, Ethernet.
    ethernet: PathBuf,
    /// Linux cooked, both versions.
    sll: PathBuf,
    sll2: PathBuf,
    /// The packets of `ethernet`.
    packets: Vec<Packet>,
}

#[test]
fn every_kind_of_capture_reads_as_tshark_reads_it() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let Some(recordings) = record(directory.path()) else { return };
    let made = tempfile::tempdir().expect("a temporary directory");
    assert!(recordings.len() >= 10, "ten real captures of each kind");
    let jobs: Vec<_> = KINDS
        .iter()
        .flat_map(|(kind, make)| recordings.iter().map(move |recording| (*kind, *make, recording)))
        .collect();
    let next = Mutex::new(jobs.iter());
    let wrong = Mutex::new(String::new());
    let segments = Mutex::new(0);
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let Some((kind, make, recording)) = next.lock().expect("no panic").next() else { return };
                    let path = made.path().join(format!("{}.{kind}", recording.name));
                    make(recording, &path);
                    let mut result = compare(&path, kind.starts_with("simple"));
                    if *kind == "two-interfaces.pcapng" && result.is_ok() {
                        result = compare_merged(&[&recording.ethernet, &recording.sll2], &path);
                    }
                    match result {
                        Ok(count) => *segments.lock().expect("no panic") += count,
                        Err(what) => {
                            let mut wrong = wrong.lock().expect("no panic");
                            writeln!(wrong, "{} as {kind}: {what}", recording.name).expect("to memory");
                        }
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().expect("no panic");
    assert!(wrong.is_empty(), "{wrong}");
    let segments = segments.into_inner().expect("no panic");
    println!("{} captures, {segments} segments as tshark reads them", jobs.len());
    assert!(segments > jobs.len() * 10, "only {segments} segments");
}

/// Every kind of capture that is read. The name has the ending of the file.
const KINDS: [(&str, Make); 34] = [
    ("ns.pcap", |r, to| copy(&r.ethernet, to)),
    ("sll.pcap", |r, to| copy(&r.sll, to)),
    ("sll2.pcap", |r, to| copy(&r.sll2, to)),
    ("us.pcap", |r, to| run("editcap", &["-F", "pcap"], &[&r.ethernet, to])),
    ("modified.pcap", |r, to| run("editcap", &["-F", "modpcap"], &[&r.ethernet, to])),
    ("pcapng", |r, to| run("editcap", &["-F", "pcapng"], &[&r.ethernet, to])),
    ("snap64.pcap", |r, to| run("editcap", &["-F", "nsecpcap", "-s", "64"], &[&r.ethernet, to])),
    ("snap96.pcapng", |r, to| run("editcap", &["-F", "pcapng", "-s", "96"], &[&r.sll2, to])),
    ("raw.pcapng", |r, to| {
        run("editcap", &["-F", "pcapng", "-T", "rawip", "-C", "14", "-L"], &[&r.ethernet, to]);
    }),
    ("two-interfaces.pcapng", |r, to| {
        // mergecap takes its output file first.
        run("mergecap", &["-F", "pcapng", "-I", "none", "-w"], &[to, &r.ethernet, &r.sll2]);
    }),
    ("two-sections.pcapng", |r, to| {
        let mut both = Vec::new();
        for part in [&r.sll, &r.ethernet] {
            run("editcap", &["-F", "pcapng"], &[part, to]);
            both.extend(fs::read(to).expect("editcap's output"));
        }
        fs::write(to, both).expect("a file");
    }),
    ("pcap.gz", |r, to| {
        let mut gz = flate2::read::GzEncoder::new(
            fs::File::open(&r.ethernet).expect("a recording"),
            flate2::Compression::default(),
        );
        std::io::copy(&mut gz, &mut fs::File::create(to).expect("a file")).expect("copied");
    }),
    ("pcap.zst", |r, to| {
        let from = fs::File::open(&r.sll2).expect("a recording");
        zstd::stream::copy_encode(from, fs::File::create(to).expect("a file"), 3).expect("copied");
    }),
    ("tunnels.pcap", |r, to| tunnelled(r, to, tunnels::wrapped)),
    ("tunnels-in-tunnels.pcap", |r, to| {
        let tunnels = tunnels::TUNNELS.len();
        tunnelled(r, to, |packet, i| tunnels::wrapped(&tunnels::wrapped(packet, i), i + 1 + i / tunnels));
    }),
    ("vlan.pcap", |r, to| link(r, to, LinkType::ETHERNET, |p| tag(p, &[0x81, 0, 0, 10]))),
    ("qinq.pcap", |r, to| link(r, to, LinkType::ETHERNET, |p| tag(p, &[0x88, 0xa8, 0, 20, 0x81, 0, 0, 30]))),
    ("pppoe.pcap", |r, to| link(r, to, LinkType::ETHERNET, pppoe)),
    ("rawbsd.pcap", |r, to| link(r, to, LinkType::RAW_BSD, |p| p.data[14..].to_vec())),
    ("null-le.pcap", |r, to| link(r, to, LinkType::NULL, |p| family(p, [2, 0, 0, 0], [30, 0, 0, 0]))),
    ("null-be.pcap", |r, to| link(r, to, LinkType::NULL, |p| family(p, [0, 0, 0, 2], [0, 0, 0, 24]))),
    ("loop.pcap", |r, to| link(r, to, LinkType::LOOP, |p| family(p, [0, 0, 0, 2], [0, 0, 0, 28]))),
    ("ppp.pcap", |r, to| link(r, to, LinkType::PPP, |p| family(p, [0xff, 3, 0, 0x21], [0xff, 3, 0, 0x57]))),
    ("ppp-with-dir.pcap", |r, to| {
        link(r, to, LinkType::PPP_WITH_DIR, |p| family(p, [0, 0xff, 3, 0, 0x21], [1, 0xff, 3, 0, 0x57]));
    }),
    ("pktap.pcap", |r, to| link(r, to, LinkType::PKTAP, tapped)),
    ("big-endian-us.pcap", |r, to| pcap(r, to, Order::Big, 0xa1b2_c3d4)),
    ("big-endian-ns.pcap", |r, to| pcap(r, to, Order::Big, 0xa1b2_3c4d)),
    ("big-endian.pcapng", |r, to| pcapng(r, to, Order::Big, &[])),
    ("microseconds.pcapng", |r, to| pcapng(r, to, Order::Little, &[(9, &[6])])),
    ("milliseconds.pcapng", |r, to| pcapng(r, to, Order::Little, &[(9, &[3])])),
    ("binary-fractions.pcapng", |r, to| pcapng(r, to, Order::Little, &[(9, &[0x80 | 0x1e])])),
    ("time-offset.pcapng", |r, to| {
        pcapng(r, to, Order::Big, &[(9, &[9]), (14, &1_000_000_000_u64.to_be_bytes())]);
    }),
    ("obsolete.pcapng", obsolete),
    ("simple.pcapng", simple),
];

fn copy(from: &Path, to: &Path) {
    fs::copy(from, to).expect("copied");
}

/// The packets with another link layer.
fn link(recording: &Recording, to: &Path, link: LinkType, change: impl Fn(&Packet) -> Vec<u8>) {
    let changed: Vec<_> = recording
        .packets
        .iter()
        .map(|packet| {
            let data = change(packet);
            let original_len = packet.original_len + data.len() as u32 - packet.data.len() as u32;
            (data, original_len)
        })
        .collect();
    let records: Vec<_> = recording
        .packets
        .iter()
        .zip(&changed)
        .map(|(p, (data, len))| {
            ((p.ns / 1_000_000_000) as u32, (p.ns % 1_000_000_000) as u32, *len, &data[..])
        })
        .collect();
    fs::write(to, vocabulary::pcap(Order::Little, 0xa1b2_3c4d, link.0, &records)).expect("a file");
}

/// Each packet within the next tunnel of the list.
fn tunnelled(recording: &Recording, to: &Path, wrap: impl Fn(&Packet, usize) -> Packet) {
    let packets: Vec<_> = recording.packets.iter().enumerate().map(|(i, packet)| wrap(packet, i)).collect();
    let records: Vec<_> = packets
        .iter()
        .map(|p| ((p.ns / 1_000_000_000) as u32, (p.ns % 1_000_000_000) as u32, p.original_len, &p.data[..]))
        .collect();
    fs::write(to, vocabulary::pcap(Order::Little, 0xa1b2_3c4d, 1, &records)).expect("a file");
}

fn tag(packet: &Packet, tags: &[u8]) -> Vec<u8> {
    [&packet.data[..12], tags, &packet.data[12..]].concat()
}

fn is_v6(packet: &Packet) -> bool {
    packet.data[12..14] == [0x86, 0xdd]
}

fn family<const N: usize>(packet: &Packet, v4: [u8; N], v6: [u8; N]) -> Vec<u8> {
    [if is_v6(packet) { &v6[..] } else { &v4 }, &packet.data[14..]].concat()
}

/// Behind the header of a Mac's tap: its length, one packet, the packet's link type (Ethernet), the interface, and 72 bytes about the
/// program.
fn tapped(packet: &Packet) -> Vec<u8> {
    let name = *b"en0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
    [&[108, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0][..], &name, &[0; 72], &packet.data].concat()
}

fn pppoe(packet: &Packet) -> Vec<u8> {
    let ip = &packet.data[14..];
    let len = ((packet.original_len - 14 + 2) as u16).to_be_bytes();
    let protocol = if is_v6(packet) { [0, 0x57] } else { [0, 0x21] };
    [&packet.data[..12], &[0x88, 0x64, 0x11, 0, 0, 1], &len, &protocol, ip].concat()
}

fn pcap(recording: &Recording, to: &Path, order: Order, magic: u32) {
    let ns_per_tick = if magic == 0xa1b2_3c4d { 1 } else { 1_000 };
    let records: Vec<_> = recording
        .packets
        .iter()
        .map(|p| {
            let ticks = p.ns % 1_000_000_000 / ns_per_tick;
            ((p.ns / 1_000_000_000) as u32, ticks as u32, p.original_len, &p.data[..])
        })
        .collect();
    fs::write(to, vocabulary::pcap(order, magic, 1, &records)).expect("a file");
}

/// Enhanced packet blocks with these interface options: if_tsresol (9) and if_tsoffset (14).
fn pcapng(recording: &Recording, to: &Path, order: Order, options: &[(u16, &[u8])]) {
    let mut ticks_per_second = 1_000_000_u128;
    let mut offset = 0;
    for (code, value) in options {
        match (code, value) {
            (9, [resolution]) if *resolution & 0x80 != 0 => ticks_per_second = 1 << (resolution & 0x7f),
            (9, [resolution]) => ticks_per_second = 10_u128.pow(u32::from(*resolution)),
            _ => offset = 1_000_000_000,
        }
    }
    let options: Vec<_> =
        options.iter().map(|(code, value)| vocabulary::option(order, *code, value)).collect();
    let mut out = [vocabulary::section(order), vocabulary::interface(order, 1, 0, &options)].concat();
    for packet in &recording.packets {
        let ns = packet.ns as u128 - offset * 1_000_000_000;
        let ticks = (ns * ticks_per_second / 1_000_000_000) as u64;
        out.extend(vocabulary::enhanced(order, 0, ticks, packet.original_len, &packet.data, &[]));
    }
    fs::write(to, out).expect("a file");
}

/// Obsolete packet blocks.
fn obsolete(recording: &Recording, to: &Path) {
    let order = Order::Little;
    let mut out = [vocabulary::section(order), vocabulary::interface(order, 1, 0, &[])].concat();
    for packet in &recording.packets {
        let us = (packet.ns / 1_000) as u64;
        let fields = [(us >> 32) as u32, us as u32, packet.data.len() as u32, packet.original_len];
        let fields = fields.map(|n| order.u32(n)).concat();
        out.extend(vocabulary::block(order, 2, &[&[0, 0], &[0xff, 0xff], &fields, &packet.data]));
    }
    fs::write(to, out).expect("a file");
}

/// Simple packet blocks, cut by the interface's snap length.
fn simple(recording: &Recording, to: &Path) {
    let order = Order::Little;
    let mut out = [vocabulary::section(order), vocabulary::interface(order, 1, 1600, &[])].concat();
    for packet in &recording.packets {
        out.extend(vocabulary::block(order, 3, &[&order.u32(packet.original_len), &packet.data]));
    }
    fs::write(to, out).expect("a file");
}

fn run(tool: &str, options: &[&str], paths: &[&Path]) {
    let output = Command::new(tool).args(options).args(paths).output().expect(tool);
    assert!(output.status.success(), "{tool} {options:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// The recordings; prints why and returns `None` if this machine cannot make them. CI must.
fn record(directory: &Path) -> Option<Vec<Recording>> {
    let missing: Vec<_> = ["tshark", "editcap", "mergecap", "tcpdump", "ip", "python3"]
        .into_iter()
        .filter(|tool| Command::new(tool).arg("-h").output().is_err())
        .collect();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings/record.sh");
    let why = if missing.is_empty() {
        let output = Command::new(script).arg(directory).output().expect("a shell");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (!output.status.success()).then(|| format!("recording failed (it needs root): {said}"))
    } else {
        Some(format!("{} missing", missing.join(", ")))
    };
    if let Some(why) = why {
        #[expect(
            clippy::disallowed_methods,
            reason = "whether a test may skip is the environment's business"
        )]
        let ci = std::env::var("CI").is_ok_and(|ci| ci == "true");
        assert!(!ci, "in CI: {why}");
        println!("skipped: {why}");
        return None;
    }
    let mut recordings = Vec::new();
    for entry in fs::read_dir(directory).expect("the directory") {
        let ethernet = entry.expect("an entry").path();
        let file = ethernet.file_name().and_then(|name| name.to_str()).expect("a name").to_owned();
        let Some(name) = file.strip_suffix(".ethernet.pcap") else { continue };
        let read = vocabulary::read(&fs::read(&ethernet).expect("a recording"));
        assert_eq!(read.damages, [], "{file}");
        recordings.push(Recording {
            name: name.to_owned(),
            sll: directory.join(format!("{name}.sll.pcap")),
            sll2: directory.join(format!("{name}.sll2.pcap")),
            ethernet,
            packets: read.packets,
        });
    }
    recordings.sort_by(|a, b| a.name.cmp(&b.name));
    Some(recordings)
}

/// How many segments both read alike, or the first difference.
fn compare(path: &Path, without_time: bool) -> Result<usize, String> {
    let mut ours = Vec::new();
    let on_segment = |segment: &Segment| ours.push(row(segment));
    let summary = Inputs::open(&[path]).for_each_segment(&Options::default(), |_| {}, on_segment);
    let file = &summary.files[0];
    if let Some(failure) = &file.failure {
        return Err(failure.to_string());
    }
    if !file.troubles.is_empty() {
        return Err(format!("{:?}", file.troubles));
    }
    let mut theirs = tshark(path);
    if without_time {
        for row in ours.iter_mut().chain(&mut theirs) {
            row[1].clear();
        }
    }
    for row in &mut theirs {
        // tshark shows TSval if the snap length cut off TSecr; tcpwhy shows neither.
        if row[17].is_empty() {
            row[16].clear();
        }
    }
    for (ours, theirs) in ours.iter().zip(&theirs) {
        if ours != theirs {
            return Err(format!("\n  ours   {}\n  tshark {}", ours.join(" | "), theirs.join(" | ")));
        }
    }
    if ours.len() != theirs.len() {
        return Err(format!("{} segments, tshark has {}", ours.len(), theirs.len()));
    }
    Ok(ours.len())
}

/// Several inputs read like the file that mergecap makes of them.
fn compare_merged(inputs: &[&Path], merged: &Path) -> Result<usize, String> {
    let rows = |paths: &[&Path]| {
        let mut rows = Vec::new();
        let on_segment = |segment: &Segment| rows.push(row(segment).join(" | "));
        Inputs::open(paths).for_each_segment(&Options::default(), |_| {}, on_segment);
        rows
    };
    let (ours, theirs) = (rows(inputs), rows(&[merged]));
    match ours.iter().zip(&theirs).find(|(ours, theirs)| ours != theirs) {
        Some((ours, theirs)) => Err(format!("\n  merged here  {ours}\n  by mergecap  {theirs}")),
        None if ours.len() != theirs.len() => Err(format!("{} segments, not {}", ours.len(), theirs.len())),
        None => Ok(ours.len()),
    }
}

/// tshark's reading of each TCP segment whose header was captured.
fn tshark(path: &Path) -> Vec<Vec<String>> {
    let mut command = Command::new("tshark");
    command.args(["-n", "-T", "fields", "-E", "separator=|", "-Y", "tcp && !icmp && !icmpv6"]);
    for off in ["ip.defragment", "tcp.desegment_tcp_streams", "tcp.analyze_sequence_numbers"] {
        command.args(["-o", &format!("{off}:FALSE")]);
    }
    // The port that Linux used for VXLAN before one was assigned.
    command.args(["-d", "udp.port==8472,vxlan", "-e", "frame.protocols"]);
    command.args(FIELDS.iter().flat_map(|field| ["-e", field])).arg("-r").arg(path);
    let output = command.output().expect("tshark");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout)
        .expect("text")
        .lines()
        .map(|line| innermost(line.split('|').map(str::to_owned).collect()))
        // Cut by the snap length before the window.
        .filter(|row| !row[11].is_empty())
        .collect()
}

/// The last IP header of a tunnelled packet, which may be of the other family than the first.
fn innermost(mut row: Vec<String>) -> Vec<String> {
    let protocols = row.remove(0);
    let last = protocols.split(':').rfind(|name| matches!(*name, "ip" | "ipv6"));
    for (field, name) in FIELDS.iter().zip(&mut row) {
        match field.split_once('.') {
            Some((family @ ("ip" | "ipv6"), _)) if Some(family) == last => {
                *name = name.rsplit(',').next().unwrap_or_default().to_owned();
            }
            Some(("ip" | "ipv6", _)) => name.clear(),
            _ => {}
        }
    }
    row
}

/// A segment as tshark would print it.
fn row(segment: &Segment) -> Vec<String> {
    let ns = segment.at.as_nanos();
    let (src, dst) = (segment.src.ip(), segment.dst.ip());
    let families = |ip: std::net::IpAddr| match ip {
        std::net::IpAddr::V4(ip) => [ip.to_string(), String::new()],
        std::net::IpAddr::V6(ip) => [String::new(), ip.to_string()],
    };
    let ([src4, src6], [dst4, dst6]) = (families(src), families(dst));
    let options = &segment.options;
    let blocks = |edge: fn(&tcpwhy_wire::SackBlock) -> u32| {
        options.sack().iter().map(|block| edge(block).to_string()).collect::<Vec<_>>().join(",")
    };
    let Flags(flags) = segment.flags;
    vec![
        segment.packet.to_string(),
        format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000),
        src4,
        src6,
        dst4,
        dst6,
        segment.src.port.to_string(),
        segment.dst.port.to_string(),
        segment.seq.0.to_string(),
        segment.ack.0.to_string(),
        format!("0x{flags:04x}"),
        segment.window.to_string(),
        segment.payload_len.to_string(),
        segment.ip_id.map_or_else(String::new, |id| format!("0x{id:04x}")),
        options.mss.map_or_else(String::new, |mss| mss.to_string()),
        options.window_scale.map_or_else(String::new, |shift| shift.to_string()),
        options.timestamps.map_or_else(String::new, |stamps| stamps.val.to_string()),
        options.timestamps.map_or_else(String::new, |stamps| stamps.ecr.to_string()),
        blocks(|block| block.start.0),
        blocks(|block| block.end.0),
    ]
}
