//! Is the output the same, byte for byte, however the same packets are stored and however many threads read them?
//!
//! Only the fields that name the input may differ: in JSON `capture.path`, `capture.format` and
//! `capture.files`; in text the input's name, in the first paragraph and in the suggested commands.
//! So all forms of a capture get one name here; standard input and a capture in pieces, which
//! cannot have it, are compared by JSON and packet by packet.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tcpwhy_gen::{Generator, Shape};
use tcpwhy_wire::Instant;
use tcpwhy_wire::capture::writer::{PacketNote, PcapWriter, PcapngWriter, Section};
use tcpwhy_wire::capture::{Event, LinkType, Reader};

struct Packet {
    at: Instant,
    original_len: u32,
    data: Vec<u8>,
}

fn generated(shape: Shape) -> (LinkType, Vec<Packet>) {
    let mut generator = Generator::new(shape, 6_000, 11);
    let mut packets = Vec::new();
    while let Some(packet) = generator.next() {
        packets.push(Packet { at: packet.at, original_len: packet.original_len, data: packet.data.to_vec() });
    }
    (LinkType::ETHERNET, packets)
}

fn recorded(name: &str) -> (LinkType, Vec<Packet>) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus").join(name);
    let bytes = fs::read(&path).expect("the corpus is committed");
    let packed = path.extension().is_some_and(|end| end == "zst");
    let bytes = if packed { zstd::decode_all(&bytes[..]).expect("zstd") } else { bytes };
    let (mut reader, mut rest) = (Reader::new(), &bytes[..]);
    let (mut link, mut packets) = (LinkType::default(), Vec::new());
    loop {
        let step = reader.next(rest, true);
        rest = &rest[step.consumed..];
        match step.event {
            Event::Packet(packet) => {
                link = packet.link;
                let (at, original_len) = (packet.at, packet.original_len);
                packets.push(Packet { at, original_len, data: packet.data.to_vec() });
            }
            Event::End => return (link, packets),
            _ => {}
        }
    }
}

fn pcap(link: LinkType, packets: &[Packet]) -> Vec<u8> {
    let mut out = PcapWriter::new(link, 262_144);
    for packet in packets {
        out.packet(packet.at, packet.original_len, &packet.data);
    }
    out.bytes().to_vec()
}

fn pcapng(link: LinkType, packets: &[Packet]) -> Vec<u8> {
    let mut out = PcapngWriter::new();
    out.section(&Section { application: Some("test"), ..Section::default() });
    out.interface(link, 262_144, None);
    for packet in packets {
        out.packet(0, packet.at, packet.original_len, &packet.data, &PacketNote::default());
    }
    out.bytes().to_vec()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gz.write_all(bytes).expect("to memory");
    gz.finish().expect("to memory")
}

/// The output, from a folder that holds the input under the same name as the other folders do.
fn shown(folder: &Path, inputs: &[String], args: &[&str], stdin: Option<&Path>) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tcpwhy"));
    command.arg("read").args(inputs).args(args).current_dir(folder);
    if let Some(path) = stdin {
        let (from, mut to) = std::io::pipe().expect("a pipe");
        let bytes = fs::read(path).expect("the capture");
        // If the reader stops early, its output shows it.
        std::thread::spawn(move || drop(to.write_all(&bytes)));
        command.stdin(from);
    } else {
        command.stdin(Stdio::null());
    }
    let output = command.output().expect("tcpwhy starts");
    assert_eq!(
        output.status.code(),
        Some(0),
        "{inputs:?} {args:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// The document without the fields that name the input.
fn unnamed(json: &str) -> String {
    let mut document: serde_json::Value = serde_json::from_str(json).expect("JSON");
    let capture = document["capture"].as_object_mut().expect("an object");
    for name in ["path", "format", "files"] {
        capture.remove(name);
    }
    serde_json::to_string_pretty(&document).expect("JSON")
}

/// The lines of bills.
fn bill(text: &str) -> Vec<&str> {
    text.lines().skip_while(|line| !line.contains("share")).take_while(|line| !line.is_empty()).collect()
}

fn same_in_all_forms(name: &str, link: LinkType, packets: &[Packet]) {
    let folder = tempfile::tempdir().expect("a folder");
    let put = |form: &str, file: &str, bytes: &[u8]| -> PathBuf {
        let path = folder.path().join(form);
        fs::create_dir_all(&path).expect("a folder");
        fs::write(path.join(file), bytes).expect("a file");
        path
    };
    let plain = pcap(link, packets);
    let forms = [
        put("pcap", "capture", &plain),
        put("pcapng", "capture", &pcapng(link, packets)),
        put("gzip", "capture", &gzip(&plain)),
        put("zstd", "capture", &zstd::encode_all(&plain[..], 1).expect("to memory")),
        put("pcapng.zst", "capture", &zstd::encode_all(&pcapng(link, packets)[..], 1).expect("to memory")),
    ];
    let piece_len = packets.len().div_ceil(10);
    let mut pieces = Vec::new();
    for (n, piece) in packets.chunks(piece_len).enumerate() {
        // In every form, and not in order of time.
        let bytes = match n % 3 {
            0 => pcap(link, piece),
            1 => pcapng(link, piece),
            _ => gzip(&pcap(link, piece)),
        };
        put("pieces", &format!("piece-{n}"), &bytes);
        pieces.insert(n / 2, format!("piece-{n}"));
    }
    assert_eq!(pieces.len(), 10, "{name}");
    let one = ["capture".to_owned()];
    for (args, is_json) in [
        (&["--ascii"][..], false),
        (&["--json"], true),
        (&["-c", "1"], false),
        (&["-c", "1", "-v"], false),
        (&["--json", "--filter", "not port 81", "--max-connections", "100"], true),
    ] {
        let expected = shown(&forms[0], &one, &[args, &["--threads", "1"]].concat(), None);
        for threads in ["1", "2", "8"] {
            let args = [args, &["--threads", threads]].concat();
            // Every form with two threads; every number of threads with one form.
            for form in forms.iter().take(if threads == "2" { forms.len() } else { 1 }) {
                let shown = shown(form, &one, &args, None);
                let same = if is_json { unnamed(&shown) == unnamed(&expected) } else { shown == expected };
                assert!(same, "{name}, {} {args:?}:\n{shown}\nnot\n{expected}", form.display());
            }
            let piped = shown(folder.path(), &["-".to_owned()], &args, Some(&forms[0].join("capture")));
            let split = shown(&folder.path().join("pieces"), &pieces, &args, None);
            for (form, shown) in [("piped", piped), ("split", split)] {
                let same = match (is_json, args[0]) {
                    (true, _) => unnamed(&shown) == unnamed(&expected),
                    // With several files, frames are numbered per file.
                    (false, "-c") if form == "split" => bill(&shown) == bill(&expected),
                    (false, "-c") => shown == expected,
                    (false, _) => shown.lines().next() == expected.lines().next(),
                };
                assert!(same, "{name}, {form} {args:?}:\n{shown}\nnot\n{expected}");
            }
        }
    }
}

#[test]
fn generated_captures_read_the_same_in_all_forms() {
    for shape in [Shape::Rpc, Shape::Churn, Shape::Bulk] {
        let (link, packets) = generated(shape);
        same_in_all_forms(shape.name(), link, &packets);
    }
}

#[test]
fn recorded_captures_read_the_same_in_all_forms() {
    for name in ["demo/split.pcapng", "lab/random-loss/client.pcapng.zst", "lab/reordering/server.pcapng.zst"]
    {
        let (link, packets) = recorded(name);
        assert!(packets.len() > 100, "{name}");
        same_in_all_forms(name, link, &packets);
    }
}
