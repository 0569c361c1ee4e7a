//! What does `tcpwhy-gen SHAPE [--packets N] [--seed N] [--pcapng] [FILE]` do? It writes a
//! generated capture.

use std::fs::File;
use std::io::{self, Write};
use std::process::ExitCode;

use tcpwhy_gen::{Generator, Hostile, Shape};
use tcpwhy_wire::capture::LinkType;
use tcpwhy_wire::capture::writer::{PacketNote, PcapWriter, PcapngWriter, Section};

const USAGE: &str =
    "usage: tcpwhy-gen rpc|bulk|bulk-full|churn [--packets N] [--connections N] [--seed N] [--pcapng] [FILE]
       tcpwhy-gen HOSTILE [--packets N] [FILE]      (the shapes in docs/robustness.md)
writes to standard output without FILE; the default number of packets is that of the baselines";

/// Packets of a hostile capture.
const HOSTILE_PACKETS: u64 = 10_000_000;

/// Bytes gathered before they are written.
const PIECE: usize = 1 << 20;

enum Traffic {
    Honest(Shape),
    Hostile(Hostile),
}

struct Arguments {
    traffic: Traffic,
    packets: u64,
    /// The shape's own number if not given.
    connections: Option<u64>,
    seed: u64,
    pcapng: bool,
    file: Option<String>,
}

fn main() -> ExitCode {
    let Some(arguments) = arguments(std::env::args().skip(1)) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    match write(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tcpwhy-gen: {}: {error}", arguments.file.as_deref().unwrap_or("standard output"));
            ExitCode::FAILURE
        }
    }
}

fn arguments(mut words: impl Iterator<Item = String>) -> Option<Arguments> {
    let name = words.next()?;
    let (traffic, packets) = match Hostile::named(&name) {
        Some(hostile) => (Traffic::Hostile(hostile), HOSTILE_PACKETS),
        None => name.parse().map(|shape: Shape| (Traffic::Honest(shape), shape.packets())).ok()?,
    };
    let mut arguments = Arguments { traffic, packets, connections: None, seed: 1, pcapng: false, file: None };
    while let Some(word) = words.next() {
        match &word[..] {
            "--packets" => arguments.packets = words.next()?.parse().ok()?,
            "--connections" => arguments.connections = Some(words.next()?.parse().ok()?),
            "--seed" => arguments.seed = words.next()?.parse().ok()?,
            "--pcapng" => arguments.pcapng = true,
            _ if word.starts_with('-') || arguments.file.is_some() => return None,
            _ => arguments.file = Some(word),
        }
    }
    Some(arguments)
}

fn write(arguments: &Arguments) -> io::Result<()> {
    let mut to: Box<dyn Write> = match &arguments.file {
        Some(path) => Box::new(File::create(path)?),
        None => Box::new(io::stdout().lock()),
    };
    let shape = match arguments.traffic {
        Traffic::Hostile(hostile) => {
            hostile.write(arguments.packets, &mut to)?;
            return to.flush();
        }
        Traffic::Honest(shape) => shape,
    };
    let mut generator = Generator::new(shape, arguments.packets, arguments.seed);
    if let Some(connections) = arguments.connections {
        generator = generator.with_connections(connections);
    }
    let snaplen = shape.snaplen();
    if arguments.pcapng {
        let mut out = PcapngWriter::new();
        out.section(&Section { application: Some("tcpwhy-gen"), ..Section::default() });
        out.interface(LinkType::ETHERNET, snaplen, None);
        while let Some(packet) = generator.next() {
            out.packet(0, packet.at, packet.original_len, packet.data, &PacketNote::default());
            if out.bytes().len() >= PIECE {
                to.write_all(out.bytes())?;
                out.clear();
            }
        }
        to.write_all(out.bytes())?;
    } else {
        let mut out = PcapWriter::new(LinkType::ETHERNET, snaplen);
        while let Some(packet) = generator.next() {
            out.packet(packet.at, packet.original_len, packet.data);
            if out.bytes().len() >= PIECE {
                to.write_all(out.bytes())?;
                out.clear();
            }
        }
        to.write_all(out.bytes())?;
    }
    to.flush()
}
