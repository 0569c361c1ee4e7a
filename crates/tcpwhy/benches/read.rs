//! How fast are captures read and decoded, without any analysis? One thread, warm cache, generated
//! captures with a fixed seed: `cargo bench -p tcpwhy --bench read [SHAPE] [PACKETS]`.

#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use tcpwhy::input::{Inputs, Options};
use tcpwhy_gen::{Generator, Shape};
use tcpwhy_wire::capture::LinkType;
use tcpwhy_wire::capture::writer::{PacketNote, PcapWriter, PcapngWriter, Section};

const RUNS: usize = 9;

fn main() -> io::Result<()> {
    let mut words = std::env::args().skip(1).filter(|word| !word.starts_with('-'));
    let only: Option<Shape> = words.next().and_then(|word| word.parse().ok());
    let packets = words.next().and_then(|word| word.parse().ok()).unwrap_or(1_000_000);
    let directory = tempfile::tempdir()?;
    println!(
        "{:<18} {:>8} {:>10} {:>10} {:>12} {:>12}",
        "", "MB", "median ms", "best ms", "Mpackets/s", "at best"
    );
    for shape in Shape::ALL.into_iter().filter(|shape| only.is_none_or(|only| only == *shape)) {
        let (pcap, pcapng) = (directory.path().join("x.pcap"), directory.path().join("x.pcapng"));
        write(shape, packets, &pcap, &pcapng)?;
        for path in [&pcap, &pcapng] {
            let name = format!("{shape} {}", path.extension().unwrap_or_default().to_string_lossy());
            let mut times: Vec<_> = (0..RUNS).map(|_| read(path, packets)).collect();
            times.sort();
            let [median, best] = [times[RUNS / 2], times[0]].map(|time| time.as_secs_f64() * 1e3);
            let rate = |ms: f64| packets as f64 / ms / 1e3;
            let mb = fs::metadata(path)?.len() as f64 / 1e6;
            println!(
                "{name:<18} {mb:>8.0} {median:>10.1} {best:>10.1} {:>12.1} {:>12.1}",
                rate(median),
                rate(best)
            );
        }
    }
    Ok(())
}

/// Sums up the fields that an analysis looks at first, so that none of the decoding can be
/// optimised away.
fn read(path: &Path, packets: u64) -> Duration {
    let begin = Instant::now();
    let mut sum = 0_u64;
    let summary = Inputs::open(&[path]).for_each_segment(
        &Options::default(),
        |_| {},
        |segment| {
            let stamps = segment.options.timestamps.map_or(0, |stamps| stamps.val ^ stamps.ecr);
            sum = sum.wrapping_add(segment.src.addr as u64 ^ u64::from(segment.dst.port)).wrapping_add(
                u64::from(
                    segment.seq.0 ^ segment.ack.0 ^ u32::from(segment.window) ^ segment.payload_len ^ stamps,
                ),
            );
        },
    );
    let took = begin.elapsed();
    std::hint::black_box(sum);
    assert_eq!((summary.segments(), summary.files[0].troubles.len()), (packets, 0));
    took
}

fn write(shape: Shape, packets: u64, pcap: &Path, pcapng: &Path) -> io::Result<()> {
    let (mut pcap_file, mut pcapng_file) =
        (BufWriter::new(File::create(pcap)?), BufWriter::new(File::create(pcapng)?));
    let mut pcap = PcapWriter::new(LinkType::ETHERNET, shape.snaplen());
    let mut pcapng = PcapngWriter::new();
    pcapng.section(&Section::default());
    pcapng.interface(LinkType::ETHERNET, shape.snaplen(), None);
    let mut generator = Generator::new(shape, packets, 1);
    while let Some(packet) = generator.next() {
        pcap.packet(packet.at, packet.original_len, packet.data);
        pcapng.packet(0, packet.at, packet.original_len, packet.data, &PacketNote::default());
        pcap_file.write_all(pcap.bytes())?;
        pcapng_file.write_all(pcapng.bytes())?;
        pcap.clear();
        pcapng.clear();
    }
    pcap_file.flush()?;
    pcapng_file.flush()
}
