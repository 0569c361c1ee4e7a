//! How much work is the analysis of a capture that is already in memory? One thread, no files, no
//! report printed.
//!
//! `cargo bench -p tcpwhy-core --bench analysis [SHAPE] [PACKETS]` prints the time for captures
//! with a fixed seed; under callgrind it is what the instruction gate counts. With files instead of
//! a shape it prints the reports, to compare two versions; after `largest`, only the largest line
//! of each exchange's bill, after `bills` all lines.

#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock and its command line")]

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::{Duration, Instant};

use tcpwhy_core::{Analysis, Listing, Options, Report};
use tcpwhy_gen::{Generator, Shape};
use tcpwhy_wire::capture::writer::PcapWriter;
use tcpwhy_wire::capture::{Event, LinkType, Reader};
use tcpwhy_wire::decode_usual;

/// The best of them counts.
const RUNS: usize = 3;
/// The program's default limit, which bounds the work at a time.
const MAX_CONNECTIONS: usize = 112_000;
/// Fewer packets are for counting instructions, once.
const FEW: u64 = 1_000_000;

pub(crate) fn main() -> std::io::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    if let [show, file] = words.as_slice()
        && show == "show"
    {
        println!("{:#?}", analyse(&std::fs::read(file)?, Listing::UpTo(u64::MAX)));
        return Ok(());
    }
    if let [largest, files @ ..] = words.as_slice()
        && largest == "largest"
    {
        return files.iter().try_for_each(|file| largest_lines(file));
    }
    if let [bills, files @ ..] = words.as_slice()
        && bills == "bills"
    {
        return files.iter().try_for_each(|file| bill_lines(file));
    }
    match words.first().map(|word| word.parse::<Shape>()) {
        Some(Err(_)) => return compare(&words),
        Some(Ok(shape)) => measure(shape, words.get(1).and_then(|n| n.parse().ok()).unwrap_or(200_000)),
        None => Shape::ALL.into_iter().for_each(|shape| measure(shape, 1_000_000)),
    }
    Ok(())
}

/// The largest line of each exchange's bill: what `tools/thresholds.py` compares.
fn largest_lines(file: &str) -> std::io::Result<()> {
    for connection in analyse(&std::fs::read(file)?, Listing::UpTo(u64::MAX)).connections {
        for exchange in &connection.exchanges {
            let [first, last] = exchange.packets;
            let largest = exchange.bill.first().map(|line| format!("{} {}", line.cause, line.side));
            println!("{file} {first}-{last} {}", largest.unwrap_or_default());
        }
    }
    Ok(())
}

/// Each exchange's bill in milliseconds, the largest line first: what `tools/rules.py` compares.
fn bill_lines(file: &str) -> std::io::Result<()> {
    for connection in analyse(&std::fs::read(file)?, Listing::UpTo(u64::MAX)).connections {
        for exchange in &connection.exchanges {
            let [first, last] = exchange.packets;
            print!("{file} {first}-{last}");
            for line in &exchange.bill {
                let ms = line.ns.as_nanos() / 1_000_000;
                print!("\t{} {} {:?} {ms}", line.cause, line.side, line.confidence);
            }
            println!();
        }
    }
    Ok(())
}

fn measure(shape: Shape, packets: u64) {
    let capture = generate(shape, packets);
    let mut took = Duration::MAX;
    let mut report = Report::default();
    for _ in 0..if packets < FEW { 1 } else { RUNS } {
        let begin = Instant::now();
        let begin_cpu = processor_time();
        // A thousand connections are listed of 20,000, and fewer accordingly.
        report = analyse(&capture, Listing::UpTo(packets / 9440));
        let used = processor_time().zip(begin_cpu).map(|(end, begin)| end.saturating_sub(begin));
        took = took.min(used.unwrap_or_else(|| begin.elapsed()));
    }
    let ns = took.as_nanos() as f64 / packets as f64;
    println!(
        "{shape}: {packets} packets, {ns:.0} ns each, {:.2} M/s, {} findings",
        1e3 / ns,
        report.findings.len()
    );
}

/// This thread's processor time, if the system reports it (proc_pid_schedstat(5)): other programs
/// do not count.
fn processor_time() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(Duration::from_nanos(text.split_whitespace().next()?.parse().ok()?))
}

#[inline(never)]
fn generate(shape: Shape, packets: u64) -> Vec<u8> {
    let mut writer = PcapWriter::new(LinkType::ETHERNET, shape.snaplen());
    let mut generator = Generator::new(shape, packets, 1);
    while let Some(packet) = generator.next() {
        writer.packet(packet.at, packet.original_len, packet.data);
    }
    writer.bytes().to_vec()
}

#[inline(never)]
fn analyse(capture: &[u8], listing: Listing) -> Report {
    let (mut reader, mut rest) = (Reader::new(), capture);
    let options = Options { listing, max_connections: MAX_CONNECTIONS, ..Options::default() };
    let mut analysis = Analysis::new(options);
    loop {
        let step = reader.next(rest, true);
        rest = &rest[step.consumed..];
        match &step.event {
            Event::Packet(packet) => {
                if let Ok(decoded) = &decode_usual(packet) {
                    analysis.on_decoded(decoded);
                }
            }
            Event::Skipped | Event::Damaged(_) => {}
            Event::NeedMore(_) | Event::End => break,
        }
    }
    analysis.finish()
}

fn compare(files: &[String]) -> std::io::Result<()> {
    for file in files {
        let capture = std::fs::read(file)?;
        let mut hash = DefaultHasher::new();
        for listing in [Listing::None, Listing::UpTo(3), Listing::UpTo(u64::MAX), Listing::Connection(1)] {
            format!("{:?}", analyse(&capture, listing)).hash(&mut hash);
        }
        println!("{:016x} {file}", hash.finish());
    }
    Ok(())
}
