//! Does a part of a capture read the same, however the capture is stored and read: by seeking, by
//! skipping, or with an early stop?

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;

use tcpwhy::input::{FileSummary, Inputs, Options, Span, Window, WindowError};
use tcpwhy_wire::capture::LinkType;
use tcpwhy_wire::capture::writer::{PacketNote, PcapWriter, PcapngWriter, Section};
use tcpwhy_wire::{Instant, Segment};

/// 2026-11-21T10:00:00Z.
const START_NS: i64 = 1_795_255_200_000_000_000;
/// Between two packets: together they take ten minutes.
const STEP_NS: i64 = 10_000_000;
const PACKETS: u32 = 60_000;

/// A segment with this sequence number and a payload length derived from it.
fn packet(seq: u32) -> Vec<u8> {
    let len = 40 + seq.wrapping_mul(2_654_435_761) % 1_000;
    let mut ip =
        vec![0x45, 0, (len >> 8) as u8, len as u8, 0, 0, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    ip.extend([0x9c, 0x40, 0, 80]);
    ip.extend(seq.to_be_bytes());
    ip.extend([0, 0, 0, 0, 0x50, 0x10, 0xff, 0xff, 0, 0, 0, 0]);
    ip.resize(len as usize, seq as u8);
    ip
}

/// Every hundredth packet is half a second late, every hundredth early.
fn time(seq: u32) -> Instant {
    let disorder = match seq % 100 {
        7 => 500_000_000,
        8 => -490_000_000,
        _ => 0,
    };
    Instant::from_nanos(START_NS + i64::from(seq) * STEP_NS + if seq > 100 { disorder } else { 0 })
}

fn pcap(seqs: std::ops::Range<u32>) -> Vec<u8> {
    let mut pcap = PcapWriter::new(LinkType::RAW, 262_144);
    for seq in seqs {
        let data = packet(seq);
        pcap.packet(time(seq), data.len() as u32, &data);
    }
    pcap.bytes().to_vec()
}

fn pcapng() -> Vec<u8> {
    let mut pcapng = PcapngWriter::new();
    pcapng.section(&Section::default());
    pcapng.interface(LinkType::RAW, 0, None);
    for seq in 0..PACKETS {
        let data = packet(seq);
        pcapng.packet(0, time(seq), data.len() as u32, &data, &PacketNote::default());
    }
    pcapng.bytes().to_vec()
}

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

fn window(from: &str, to: &str) -> Window {
    let moment = |text: &str| (!text.is_empty()).then(|| text.parse().expect("a time"));
    Window { from: moment(from), to: moment(to), ..Window::default() }
}

fn limited(
    paths: &[PathBuf],
    from: &str,
    to: &str,
) -> Result<(Span, Vec<Segment>, Vec<FileSummary>), WindowError> {
    let mut inputs = Inputs::open(paths);
    let span = inputs.limit(&window(from, to))?;
    let mut segments = Vec::new();
    let summary = inputs.for_each_segment(&Options::default(), |_| {}, |segment| segments.push(*segment));
    Ok((span, segments, summary.files))
}

fn expected(span: Span) -> Vec<(u64, u32)> {
    let seqs = (0..PACKETS).filter(|seq| (span.from..span.to).contains(&time(*seq)));
    // Packets keep their numbers in the file.
    seqs.map(|seq| (u64::from(seq) + 1, seq)).collect()
}

fn numbered(segments: &[Segment]) -> Vec<(u64, u32)> {
    segments.iter().map(|segment| (segment.packet, segment.seq.0)).collect()
}

#[test]
fn a_window_holds_the_same_packets_however_they_are_stored() {
    let files = Files::new();
    let plain = pcap(0..PACKETS);
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gz.write_all(&plain).expect("to memory");
    let ring = [0..20_000, 20_000..20_001, 20_001..45_000, 45_000..PACKETS];
    let ring = ring.map(|seqs| files.with(&format!("ring-{}", seqs.start), &pcap(seqs)));
    let stored = [
        ("pcap", vec![files.with("pcap", &plain)]),
        ("pcapng", vec![files.with("pcapng", &pcapng())]),
        ("gzip", vec![files.with("gz", &gz.finish().expect("to memory"))]),
        ("zstd", vec![files.with("zst", &zstd::encode_all(&plain[..], 1).expect("to memory"))]),
        ("ring", ring.to_vec()),
    ];
    for (from, to) in [
        ("2026-11-21T10:05:00Z", "2026-11-21T10:05:10Z"),
        ("2026-11-21T12:09:59.5+02:00", ""),
        ("", "+90s"),
        ("+4m59.995s", "+5m0.5s"),
        ("1795255200", "1795255201.5"),
        ("+9m59s", "2026-11-21T11:00:00Z"),
    ] {
        let mut spans = Vec::new();
        for (name, paths) in &stored {
            let (span, segments, summaries) =
                limited(paths, from, to).unwrap_or_else(|error| panic!("{error}"));
            let expected = expected(span);
            assert!(!expected.is_empty(), "{from} to {to}");
            assert!(numbered(&segments) == expected, "{name}, {from} to {to}: {} segments", segments.len());
            let all: u64 = summaries.iter().map(|file| file.packets).sum();
            assert_eq!(all, expected.len() as u64);
            let outside: u64 = summaries.iter().filter_map(|file| file.skipped.get("outside-window")).sum();
            let unread: u64 = summaries.iter().map(|file| file.unread_bytes).sum();
            let missing = u64::from(PACKETS) - all - outside;
            assert_eq!(missing > 0, unread > 0, "{name}, {from} to {to}: {missing} packets, {unread} bytes");
            assert!(summaries.iter().all(|file| file.troubles.is_empty() && !file.truncated));
            // A search reads some megabytes around the position; ten seconds are half a megabyte.
            let read = plain.len() as u64 - unread.min(plain.len() as u64);
            assert!(
                !name.starts_with("pcap") || from.len() < 20 || to.is_empty() || read < 10 << 20,
                "{name} {read}"
            );
            spans.push(span);
        }
        assert!(spans.windows(2).all(|two| two[0] == two[1]), "{spans:?}");
    }
}

#[test]
fn a_window_before_the_end_needs_a_file_that_can_be_searched() {
    let files = Files::new();
    let plain = pcap(0..PACKETS);
    let long = files.with("long", &plain);
    let short = files.with("short", &pcap(0..100));
    let (span, segments, _) = limited(&[long.clone(), short.clone()], "-10s", "").expect("files");
    assert_eq!(span.from, time(PACKETS - 1 - 1_000));
    // The other file's packets all come before it.
    let both: Vec<(u64, u32)> = expected(span).into_iter().map(|(number, seq)| (number + 100, seq)).collect();
    assert!(numbered(&segments) == both);
    let (_, segments, _) = limited(&[short], "-0.5s", "-0.25s").expect("a file");
    assert_eq!(
        segments.iter().map(|segment| segment.seq.0).collect::<Vec<_>>(),
        (49..74).collect::<Vec<_>>()
    );
    let packed = files.with("zst", &zstd::encode_all(&plain[..], 1).expect("to memory"));
    let error = limited(&[packed], "-10s", "").expect_err("it would have to be unpacked").to_string();
    assert!(error.contains("zst: a time before the end needs an uncompressed file"), "{error}");
    assert!(matches!(limited(std::slice::from_ref(&long), "+10s", "+10s"), Err(WindowError::Empty)));
    assert!(matches!(limited(&[long], "2026-11-21T10:05:00Z", "+10s"), Err(WindowError::Empty)));
}

/// Packets that contain a capture of their own, with headers that lead into and out of it.
#[test]
fn packets_that_look_like_records_are_not_taken_for_them() {
    let files = Files::new();
    let mut pcap = PcapWriter::new(LinkType::RAW, 262_144);
    let start = START_NS / 1_000_000_000;
    for seq in 0..30_000_u32 {
        let mut data = packet(seq);
        data.truncate(40);
        let at = Instant::from_nanos(START_NS + i64::from(seq) * STEP_NS);
        // As many records as fit, ten minutes later, the last of them ending where this packet
        // does.
        let later = (start as u32 + 600 + seq).to_le_bytes();
        for len in [24_u32, 4, 100, 280, 16 + 60, 60] {
            data.extend(later);
            data.extend([0, 0, 0, 0]);
            data.extend(len.to_le_bytes());
            data.extend(len.to_le_bytes());
            data.resize(data.len() + if len == 60 { 60 } else { len as usize % 64 }, 0);
        }
        pcap.packet(at, data.len() as u32, &data);
    }
    let path = files.with("x", pcap.bytes());
    let (_, segments, summaries) = limited(&[path], "+2m", "+2m1s").expect("a file");
    let seqs: Vec<_> = segments.iter().map(|segment| segment.seq.0).collect();
    assert_eq!(seqs, (12_000..12_100).collect::<Vec<_>>());
    assert!(summaries[0].unread_bytes > 1 << 20, "it was searched");
}

#[test]
fn where_a_search_cannot_work_the_file_is_read_from_its_start() {
    let files = Files::new();
    // The clock starts again in the middle; garbage in the middle; a second section.
    let back = [&pcap(0..30_000)[..], &pcap(0..30_000)[24..]].concat();
    let (_, segments, _) = limited(&[files.with("back", &back)], "+200s", "+201s").expect("a file");
    assert!(segments.len() >= 100, "{}", segments.len());
    let mut garbage = pcapng();
    let middle = garbage.len() / 8 * 4;
    garbage[middle..middle + (3 << 20)].fill(0xa5);
    let (span, segments, summaries) =
        limited(&[files.with("garbage", &garbage)], "+9m", "+9m1s").expect("a file");
    let seqs = |numbered: Vec<(u64, u32)>| numbered.into_iter().map(|(_, seq)| seq).collect::<Vec<_>>();
    assert!(
        seqs(numbered(&segments)) == seqs(expected(span)),
        "{} {:?}",
        segments.len(),
        summaries[0].troubles
    );
    let empty = limited(&[files.with("empty", b"")], "+1s", "").expect("nothing, but no error").2;
    assert!(empty[0].failure.is_some());
}
