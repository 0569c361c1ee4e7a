//! Opening and reading inputs: compression, several files, and everything that can be wrong with them.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use flate2::write::GzEncoder;
use tcpwhy::input::{Failure, InputSummary, Inputs, Options, Progress, Trouble};
use tcpwhy_wire::capture::writer::{PacketNote, PcapWriter, PcapngWriter, Section};
use tcpwhy_wire::capture::{DamageKind, LinkType};
use tcpwhy_wire::{Instant, Segment};

/// A segment from 10.0.0.1:40000 to 10.0.0.2:80 with this sequence number, without payload.
fn packet(seq: u32) -> Vec<u8> {
    let mut ip = vec![0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    ip.extend([0x9c, 0x40, 0, 80]);
    ip.extend(seq.to_be_bytes());
    ip.extend([0, 0, 0, 0, 0x50, 0x10, 0xff, 0xff, 0, 0, 0, 0]);
    ip
}

/// A pcap of segments whose sequence numbers are their times in nanoseconds.
fn pcap(times: impl IntoIterator<Item = u32>) -> Vec<u8> {
    let mut pcap = PcapWriter::new(LinkType::RAW, 262_144);
    for time in times {
        pcap.packet(Instant::from_nanos(i64::from(time)), 40, &packet(time));
    }
    pcap.bytes().to_vec()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut gz = GzEncoder::new(Vec::new(), flate2::Compression::default());
    gz.write_all(bytes).expect("to memory");
    gz.finish().expect("to memory")
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 3).expect("to memory")
}

/// The output of a compressor for these bytes. In CI the program must exist; elsewhere this compression is
/// skipped with a note.
fn packed(program: &str, args: &[&str], bytes: &[u8]) -> Option<Vec<u8>> {
    use std::process::{Command, Stdio};
    let Ok(mut child) = Command::new(program).args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()
    else {
        #[expect(
            clippy::disallowed_methods,
            reason = "whether a test may skip is the environment's business"
        )]
        let ci = std::env::var("CI").is_ok_and(|ci| ci == "true");
        assert!(!ci, "in CI: {program} is missing; tools/install.sh installs it");
        println!("skipped: {program} is missing; tools/install.sh installs it");
        return None;
    };
    let mut stdin = child.stdin.take().expect("a pipe");
    let output = std::thread::scope(|scope| {
        scope.spawn(move || stdin.write_all(bytes).expect("it reads"));
        child.wait_with_output().expect("it ends")
    });
    assert!(output.status.success());
    Some(output.stdout)
}

fn xz(bytes: &[u8]) -> Option<Vec<u8>> {
    packed("xz", &["-c"], bytes)
}

fn lz4(bytes: &[u8]) -> Option<Vec<u8>> {
    packed("lz4", &["-c", "-"], bytes)
}

/// Files in their own directory.
struct Files(tempfile::TempDir);

impl Files {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary directory"))
    }

    fn with(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.path().join(name);
        fs::write(&path, bytes).expect("a file");
        path
    }
}

fn read<P: AsRef<Path>>(paths: &[P]) -> (InputSummary, Vec<Segment>) {
    let mut segments = Vec::new();
    let on_segment = |segment: &Segment| segments.push(*segment);
    let summary = Inputs::open(paths).for_each_segment(&Options::default(), |_| {}, on_segment);
    (summary, segments)
}

fn numbers_and_times(segments: &[Segment]) -> Vec<(u64, u32)> {
    segments.iter().map(|segment| (segment.packet, segment.seq.0)).collect()
}

#[test]
fn compression_is_recognised_by_its_bytes_not_by_the_name() {
    let files = Files::new();
    let plain = pcap(0..1000);
    let members = [gzip(&plain[..777]), gzip(&plain[777..])].concat();
    let frames = [zstd(&plain[..777]), zstd(&plain[777..])].concat();
    let skippable = [&[0x50, 0x2a, 0x4d, 0x18, 2, 0, 0, 0, 1, 2], &frames[..]].concat();
    let (_, expected) = read(&[files.with("plain.gz", &plain)]);
    assert_eq!(expected.len(), 1000);
    let own = [
        ("a", Some(gzip(&plain)), "gzip"),
        ("b.pcap", Some(zstd(&plain)), "zstd"),
        ("c.zst", Some(members), "gzip"),
        ("d.gz", Some(frames), "zstd"),
        ("e", Some(skippable), "zstd"),
    ];
    let both =
        |pack: fn(&[u8]) -> Option<Vec<u8>>| Some([pack(&plain[..777])?, pack(&plain[777..])?].concat());
    let programs = [
        ("f.gz", xz(&plain), "xz"),
        ("g", packed("xz", &["-9c", "--check=sha256", "--x86", "--lzma2"], &plain), "xz"),
        ("h", both(xz), "xz"),
        ("i.gz", lz4(&plain), "lz4"),
        ("j", packed("lz4", &["-9c", "-BD", "-B4", "--content-size", "-"], &plain), "lz4"),
        ("k", packed("lz4", &["-c", "--no-frame-crc", "-"], &plain), "lz4"),
        ("l", both(lz4), "lz4"),
    ];
    for (name, bytes, compression) in own.into_iter().chain(programs) {
        let Some(bytes) = bytes else { continue };
        let (summary, segments) = read(&[files.with(name, &bytes)]);
        assert_eq!(segments, expected, "{name}");
        let file = &summary.files[0];
        assert_eq!((file.compression, file.packets, &file.troubles), (compression, 1000, &vec![]), "{name}");
        assert_eq!(file.format.map(tcpwhy_wire::capture::Format::name), Some("pcap-ns"));
        assert_eq!((file.first, file.last), (Some(Instant::from_nanos(0)), Some(Instant::from_nanos(999))));
    }
}

#[test]
fn the_pieces_of_a_ring_are_read_in_the_order_of_time() {
    let files = Files::new();
    let mut pcapng = PcapngWriter::new();
    pcapng.section(&Section::default());
    pcapng.interface(LinkType::RAW, 0, None);
    for time in [20, 21] {
        pcapng.packet(0, Instant::from_nanos(time), 40, &packet(time as u32), &PacketNote::default());
    }
    let paths = [
        files.with("2", pcapng.bytes()),
        files.with("0", &pcap([])),
        files.with("3", &zstd(&pcap([30]))),
        files.with("1", &gzip(&pcap([10, 11]))),
    ];
    let (summary, segments) = read(&paths);
    assert_eq!(numbers_and_times(&segments), [(1, 10), (2, 11), (3, 20), (4, 21), (5, 30)]);
    let order = summary.files.iter().map(|file| (file.path.clone(), file.first_number, file.packets));
    let [second, empty, third, first] = paths;
    assert_eq!(order.collect::<Vec<_>>(), [(empty, 0, 0), (first, 1, 2), (second, 3, 2), (third, 5, 1)]);
    assert_eq!((summary.packets(), summary.segments()), (5, 5));
    assert_eq!(summary.span(), Some((Instant::from_nanos(10), Instant::from_nanos(30))));
}

#[test]
fn captures_of_the_same_time_are_merged_by_it() {
    let files = Files::new();
    let paths = [
        files.with("early", &pcap([10, 12, 14, 14, 30])),
        files.with("late", &gzip(&pcap([14, 15, 20]))),
        files.with("middle", &zstd(&pcap([11, 13, 40]))),
    ];
    let (summary, segments) = read(&paths);
    let times: Vec<_> = segments.iter().map(|segment| segment.seq.0).collect();
    assert_eq!(times, [10, 11, 12, 13, 14, 14, 14, 15, 20, 30, 40]);
    assert!(segments.iter().zip(1..).all(|(segment, number)| segment.packet == number));
    let first: Vec<_> = summary.files.iter().map(|file| (file.first_number, file.packets)).collect();
    assert_eq!(first, [(1, 5), (2, 3), (7, 3)]);
    // A recording reads the same however it is split into files.
    let (_, whole) = read(&[files.with("whole", &pcap(0..1000))]);
    let pieces = [0..10, 10..500, 500..501, 501..1000];
    let pieces = pieces.map(|piece| files.with(&piece.start.to_string(), &pcap(piece)));
    assert_eq!(read(&pieces).1, whole);
    let interleaved = [0, 1, 2].map(|n| files.with(&format!("every third {n}"), &pcap((n..1000).step_by(3))));
    assert_eq!(read(&interleaved).1, whole);
}

#[test]
#[cfg(target_os = "linux")]
fn a_pipe_among_several_inputs_loses_nothing_to_the_look_ahead() {
    use std::os::fd::AsRawFd;

    let files = Files::new();
    let file = files.with("later", &pcap(50_000..50_003));
    let (reader, mut writer) = std::io::pipe().expect("a pipe");
    let writing = std::thread::spawn(move || writer.write_all(&gzip(&pcap(0..50_000))));
    let pipe = PathBuf::from(format!("/proc/self/fd/{}", reader.as_raw_fd()));
    let opened = Inputs::open(&[file, pipe]);
    drop(reader);
    let mut next = 0;
    let on_segment = |segment: &Segment| {
        assert_eq!((segment.packet, segment.seq.0), (u64::from(next) + 1, next));
        next += 1;
    };
    let summary = opened.for_each_segment(&Options::default(), |_| {}, on_segment);
    assert_eq!((next, summary.truncated()), (50_003, false));
    writing.join().expect("the writer").expect("all written");
}

#[test]
fn a_packet_larger_than_the_buffer_is_read() {
    let mut pcap = PcapWriter::new(LinkType::RAW, 0);
    let mut large = packet(7);
    large.resize(1 << 20, 0);
    for _ in 0..3 {
        pcap.packet(Instant::from_nanos(1), 1 << 20, &large);
    }
    let files = Files::new();
    let (summary, segments) = read(&[files.with("x", pcap.bytes())]);
    assert_eq!((summary.files[0].packets, segments.len()), (3, 3));
}

#[test]
fn what_gives_nothing_says_what_to_do() {
    let files = Files::new();
    let says = |bytes: &[u8]| {
        let (summary, _) = read(&[files.with("x.pcap", bytes)]);
        assert!(summary.is_failure());
        summary.files[0].failure.as_ref().expect("a failure").to_string()
    };
    assert!(says(b"").starts_with("the capture is empty; "));
    assert!(says(&gzip(b"")).starts_with("the capture is empty; "));
    assert!(
        says(b"10:00:00.1 IP 10.0.0.1.80")
            .contains("it is text; tcpwhy reads files written by `tcpdump -w FILE`")
    );
    assert!(says(b"BZh9").contains("`bzip2 -dc FILE | tcpwhy read -`"));
    assert!(says(b"\xfd7zXZ\0\0").contains("cannot read"));
    assert!(says(b"\x04\x22\x4d\x18\xff").contains("cannot read"));
    if let Some(packed) = packed("xz", &["-c", "--lzma2=dict=1GiB"], &pcap(0..3)) {
        assert!(says(&packed).contains("cannot read"));
    }
    assert!(says(b"\x7fELF\x02").contains("unknown format"));
    assert!(says(&gzip(&gzip(&pcap(0..3)))).contains("gzip, twice"));
    assert!(says(b"\x1f\x8b\x08 but no gzip").contains("cannot read"));
    let (summary, _) = read(&[files.0.path().join("nowhere"), files.0.path().to_owned()]);
    assert!(matches!(summary.files[0].failure, Some(Failure::NotFound)));
    let directory = summary.files[1].failure.as_ref().expect("a failure").to_string();
    assert!(directory.contains("/*.pcap*"), "{directory}");
    // A file that gives nothing does not keep the others from being read.
    let (summary, segments) = read(&[files.0.path().join("nowhere"), files.with("good", &pcap(0..2))]);
    assert_eq!((summary.is_failure(), segments.len()), (false, 2));
}

#[test]
fn a_cut_input_gives_what_is_there_and_says_where_it_ends() {
    let files = Files::new();
    let plain = pcap(0..100);
    let (summary, segments) = read(&[files.with("x", &plain[..plain.len() - 1])]);
    let last = plain.len() as u64 - 56;
    assert_eq!(segments.len(), 99);
    assert!(summary.truncated());
    let file = &summary.files[0];
    assert_eq!(file.skipped.get("damaged"), Some(&1));
    let expected = format!("at byte {last}: the capture is truncated: 56 bytes announced, 55 found");
    assert_eq!(file.troubles[0].to_string(), expected);

    let many = pcap(0..100_000);
    // A cut between two blocks of LZ4, where its decompressor does not miss an end.
    let between = packed("lz4", &["-c", "-B4", "-"], &many).map(|mut packed| {
        let len = u32::from_le_bytes([packed[7], packed[8], packed[9], packed[10]]) as usize;
        packed.truncate(11 + len + 40);
        packed
    });
    for packed in
        [Some(gzip(&plain)), Some(zstd(&many)), xz(&many), lz4(&many), between].into_iter().flatten()
    {
        let (summary, segments) = read(&[files.with("x", &packed[..packed.len() - 40])]);
        assert!(!segments.is_empty() && !summary.is_failure());
        assert!(summary.truncated());
        let [trouble @ Trouble::CompressedCutShort { .. }] = &summary.files[0].troubles[..] else {
            panic!("one trouble, not {:?}", summary.files[0].troubles)
        };
        assert!(trouble.to_string().ends_with("the compressed data is truncated"));
    }
}

#[test]
fn damaged_compression_is_named_with_its_place() {
    let files = Files::new();
    let plain = pcap(0..100_000);
    for mut packed in [Some(gzip(&plain)), xz(&plain), lz4(&plain)].into_iter().flatten() {
        let middle = packed.len() / 2;
        packed[middle..middle + 64].fill(0xff);
        let (summary, segments) = read(&[files.with("x", &packed)]);
        assert!(!segments.is_empty() && segments.len() < 100_000);
        assert_eq!(summary.files[0].troubles.len(), 1, "{:?}", summary.files[0].troubles);
    }
}

/// Reading ends wherever a byte is changed: with a result, a trouble or a failure.
#[test]
fn damaged_streams_end() {
    let files = Files::new();
    let plain = pcap(0..200);
    let (_, expected) = read(&[files.with("plain", &plain)]);
    for packed in [xz(&plain), lz4(&plain)].into_iter().flatten() {
        let places = (0..packed.len().min(400)).chain(packed.len().saturating_sub(80)..packed.len());
        for at in places {
            let mut packed = packed.clone();
            packed[at] ^= 0xff;
            let (summary, segments) = read(&[files.with("x", &packed)]);
            let is_noticed = summary.is_failure() || !summary.files[0].troubles.is_empty();
            assert!(is_noticed || segments == expected, "byte {at}");
        }
    }
}

#[test]
fn many_damages_are_counted_and_few_are_kept() {
    let mut pcapng = PcapngWriter::new();
    pcapng.section(&Section::default());
    for _ in 0..100 {
        pcapng.packet(9, Instant::default(), 40, &packet(0), &PacketNote::default());
    }
    let files = Files::new();
    let (summary, _) = read(&[files.with("x", pcapng.bytes())]);
    let file = &summary.files[0];
    assert_eq!((file.troubles.len(), file.skipped["damaged"]), (16, 100));
    let Trouble::Damage(damage) = &file.troubles[0] else { panic!("damage") };
    assert_eq!(damage.what, DamageKind::NoSuchInterface(9));
}

#[test]
fn a_compression_bomb_stops_at_the_bound() {
    let files = Files::new();
    // One packet, then endless zeros: here, 64 MiB.
    let bomb = [pcap([1]), vec![0; 64 << 20]].concat();
    for packed in [Some(gzip(&bomb)), Some(zstd(&bomb)), xz(&bomb), lz4(&bomb)].into_iter().flatten() {
        let path = files.with("bomb", &packed);
        let options = Options { unpacked_bytes_free: 4 << 20, unpacked_ratio_max: 200 };
        let summary = Inputs::open(&[&path]).for_each_segment(&options, |_| {}, |_| {});
        let file = &summary.files[0];
        let Some(Trouble::Bomb { offset, .. }) = file.troubles.first() else { panic!("{:?}", file.troubles) };
        assert!(*offset < 32 << 20, "stopped at {offset}");
        let generous = Options { unpacked_ratio_max: u64::MAX, ..options };
        let summary = Inputs::open(&[&path]).for_each_segment(&generous, |_| {}, |_| {});
        assert_eq!(summary.files[0].troubles, []);
    }
}

#[test]
fn a_file_that_shrinks_while_it_is_read_is_named() {
    let files = Files::new();
    let path = files.with("x", &pcap(0..100_000));
    let len = fs::metadata(&path).expect("a file").len();
    let mut cut = false;
    let on_segment = |_: &Segment| {
        if !cut {
            fs::OpenOptions::new().write(true).open(&path).and_then(|f| f.set_len(1 << 20)).expect("cut");
            cut = true;
        }
    };
    let summary = Inputs::open(&[&path]).for_each_segment(&Options::default(), |_| {}, on_segment);
    let shrunk = Trouble::Shrunk { had: len, has: 1 << 20 };
    assert!(summary.files[0].troubles.contains(&shrunk), "{:?}", summary.files[0].troubles);
    assert!(summary.truncated());
}

#[test]
fn progress_counts_stored_bytes_up_to_the_total() {
    let files = Files::new();
    let paths = [files.with("a", &gzip(&pcap(0..100_000))), files.with("b", &pcap(0..10))];
    let total: u64 = paths.iter().map(|path| fs::metadata(path).expect("a file").len()).sum();
    let mut seen: Vec<Progress> = Vec::new();
    Inputs::open(&paths).for_each_segment(&Options::default(), |progress| seen.push(progress), |_| {});
    assert!(seen.is_sorted_by_key(|progress| (progress.bytes, progress.packets)));
    let last = seen.last().expect("progress");
    assert_eq!(*last, Progress { bytes: total, total_bytes: Some(total), packets: 100_010 });
}

#[test]
fn other_packets_are_counted_by_reason() {
    let mut pcap = PcapWriter::new(LinkType::RAW, 0);
    let mut udp = packet(0);
    udp[9] = 17;
    let mut fragment = packet(0);
    fragment[6] = 0x20;
    for bytes in [&udp, &packet(1), &fragment, &udp, &packet(2)[..30].to_vec()] {
        pcap.packet(Instant::from_nanos(1_000), 40, bytes);
    }
    let files = Files::new();
    let (summary, segments) = read(&[files.with("x", pcap.bytes())]);
    let skipped: Vec<_> = summary.skipped().into_iter().collect();
    assert_eq!(skipped, [("fragment", 1), ("not-tcp", 2), ("truncated-header", 1)]);
    assert_eq!(numbers_and_times(&segments), [(2, 1)]);
}

/// A capture in every wrapping, and whether cutting the wrapping cuts the capture at the same byte.
fn wrappings() -> Vec<(&'static str, Vec<u8>)> {
    let mut pcapng = PcapngWriter::new();
    pcapng.section(&Section { application: Some("test"), ..Section::default() });
    pcapng.interface(LinkType::RAW, 0, Some("lo"));
    for time in 0..6 {
        pcapng.packet(0, Instant::from_nanos(time), 40, &packet(time as u32), &PacketNote::default());
    }
    pcapng.statistics(0, Instant::from_nanos(6), 6, 1);
    let plain = pcap(0..6);
    vec![
        ("pcap", plain.clone()),
        ("pcapng", pcapng.bytes().to_vec()),
        ("gzip", gzip(&plain)),
        ("gzip of pcapng", gzip(pcapng.bytes())),
        ("zstd", zstd(&plain)),
        ("zstd of pcapng", zstd(pcapng.bytes())),
    ]
}

#[test]
fn cut_at_any_byte_what_is_there_is_read_and_the_rest_is_named() {
    let files = Files::new();
    for (name, bytes) in wrappings() {
        let (_, whole) = read(&[files.with("x", &bytes)]);
        assert_eq!(whole.len(), 6, "{name}");
        let mut silent = Vec::new();
        for cut in 0..bytes.len() {
            let (summary, segments) = read(&[files.with("x", &bytes[..cut])]);
            assert!(whole.starts_with(&segments), "{name} cut at {cut}");
            let file = &summary.files[0];
            assert!(segments.is_empty() || file.failure.is_none(), "{name} cut at {cut}: {file:?}");
            for trouble in &file.troubles {
                assert!(trouble.is_truncation(), "{name} cut at {cut}: {trouble}");
            }
            if file.failure.is_none() && file.troubles.is_empty() {
                silent.push(cut);
            }
        }
        // Only a cut between two packets or blocks goes unseen: after 24 bytes of header and 56 each; SHB,
        // IDB, packets.
        let unseen: Vec<usize> = match name {
            "pcap" => (24..bytes.len()).step_by(56).collect(),
            "pcapng" => [40, 80].into_iter().chain((152..bytes.len()).step_by(72)).collect(),
            _ => vec![],
        };
        assert_eq!(silent, unseen, "{name}");
    }
}

#[test]
fn any_flipped_bit_is_survived_and_compression_notices_it() {
    let files = Files::new();
    for (name, mut bytes) in wrappings() {
        let (_, whole) = read(&[files.with("x", &bytes)]);
        for bit in 0..bytes.len() * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            let (summary, segments) = read(&[files.with("x", &bytes)]);
            bytes[bit / 8] ^= 1 << (bit % 8);
            let file = &summary.files[0];
            for trouble in &file.troubles {
                assert!(!trouble.to_string().is_empty());
            }
            // The check value at the end of the gzip member covers every byte of the capture.
            if name.starts_with("gzip") && segments != whole {
                assert!(file.failure.is_some() || !file.troubles.is_empty(), "{name}, bit {bit}: {file:?}");
            }
        }
    }
}
