//! How much work is the analysis of a capture that is in memory already? One thread, no files, no report printed.
//!
//! `cargo bench -p tcpwhy-core --bench analysis [SHAPE] [PACKETS]` shows the time over captures of a fixed seed; under
//! callgrind it is what the instruction gate counts. With files instead of a shape it prints the reports, to compare
//! what two versions say.

#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock and its command line")]

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Instant;

use tcpwhy_core::{Analysis, Listing, Options, Report};
use tcpwhy_gen::{Generator, Shape};
use tcpwhy_wire::capture::writer::PcapWriter;
use tcpwhy_wire::capture::{Event, LinkType, Reader};
use tcpwhy_wire::decode::decode;

/// Segments given to the analysis at once.
const BATCH: usize = 64;

fn main() -> std::io::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    if let [show, file] = words.as_slice()
        && show == "show"
    {
        println!("{:#?}", analyse(&std::fs::read(file)?, Listing::UpTo(u64::MAX)));
        return Ok(());
    }
    match words.first().map(|word| word.parse::<Shape>()) {
        Some(Err(_)) => return compare(&words),
        Some(Ok(shape)) => measure(shape, words.get(1).and_then(|n| n.parse().ok()).unwrap_or(200_000)),
        None => Shape::ALL.into_iter().for_each(|shape| measure(shape, 1_000_000)),
    }
    Ok(())
}

fn measure(shape: Shape, packets: u64) {
    let capture = generate(shape, packets);
    let begin = Instant::now();
    // A thousand connections are listed of 20,000, and so of fewer.
    let report = analyse(&capture, Listing::UpTo(packets / 9440));
    let took = begin.elapsed();
    let ns = took.as_nanos() as f64 / packets as f64;
    println!(
        "{shape}: {packets} packets, {ns:.0} ns each, {:.2} M/s, {} findings",
        1e3 / ns,
        report.findings.len()
    );
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
    let mut analysis = Analysis::new(Options { listing, ..Options::default() });
    let mut batch = Vec::with_capacity(BATCH);
    loop {
        let step = reader.next(rest, true);
        rest = &rest[step.consumed..];
        match step.event {
            Event::Packet(packet) => {
                if let Ok(segment) = decode(&packet) {
                    batch.push(segment);
                    if batch.len() == BATCH {
                        analysis.on_segments(&batch);
                        batch.clear();
                    }
                }
            }
            Event::Skipped | Event::Damaged(_) => {}
            Event::NeedMore(_) | Event::End => break,
        }
    }
    analysis.on_segments(&batch);
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
