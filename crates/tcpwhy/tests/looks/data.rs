//! Does the page of `--html` contain what the other outputs say? Against the JSON of the same
//! captures, number for number.

use std::fs;
use std::io::Read as _;
use std::path::PathBuf;

use crate::common::{json, root, tcpwhy, write_page};
use base64::Engine as _;
use serde_json::Value;
use tcpwhy_gen::{Generator, Shape};
use tcpwhy_wire::capture::writer::PcapWriter;
use tcpwhy_wire::capture::{Event, LinkType, Reader};

/// From the laboratory: many exchanges, a transfer with losses, many connections, one limited by
/// its buffer.
const CAPTURES: [&str; 5] = [
    "crates/tcpwhy/tests/data/split.pcap",
    "corpus/demo/fixed.pcapng",
    "corpus/lab/congestion-window/server.pcapng.zst",
    "corpus/lab/connect-each/client.pcapng.zst",
    "corpus/lab/d-sndbuf/server.pcapng.zst",
];

fn page_of(capture: &str, more: &[&str]) -> (Value, String) {
    let Ok(folder) = tempfile::tempdir() else { panic!("no folder for temporary files") };
    let page = folder.path().join("report.html");
    write_page(&root().join(capture), &page, more);
    let text = fs::read_to_string(&page).unwrap_or_default();
    (data_of(&text), text)
}

/// The data of a page.
pub(crate) fn data_of(page: &str) -> Value {
    let Some((_, behind)) = page.split_once(r#"id="data">"#) else { panic!("there is no data") };
    let Some((base64, _)) = behind.split_once('<') else { panic!("the data has no end") };
    let Ok(gzip) = base64::engine::general_purpose::STANDARD.decode(base64) else { panic!("no base64") };
    let mut plain = String::new();
    let read = flate2::read::GzDecoder::new(gzip.as_slice()).read_to_string(&mut plain);
    assert!(read.is_ok(), "{read:?}");
    serde_json::from_str(&plain).unwrap_or_else(|error| panic!("{error}"))
}

/// A column's numbers.
pub(crate) fn column(table: &Value, name: &str) -> Vec<i64> {
    let Some(differences) = table[name].as_array() else { panic!("no column {name}") };
    let (mut numbers, mut difference) = (Vec::new(), 0);
    for step in differences {
        if let Some(next) = step.as_i64() {
            difference = next;
        }
        let times = step[0].as_u64().unwrap_or(1);
        for _ in 0..times {
            numbers.push(numbers.last().copied().unwrap_or(0) + difference);
        }
    }
    numbers
}

/// Rows of packets, by packet number: who sent each, and its numbers in the columns of these names.
pub(crate) fn rows<const N: usize>(packets: &Value, names: [&str; N]) -> Vec<(usize, [i64; N])> {
    let mut rows = Vec::new();
    for end in [0, 1] {
        let own = &packets["sent"][end];
        let columns = names.map(|name| column(own, name));
        let numbers = column(own, "packet").into_iter().enumerate();
        rows.extend(numbers.map(|(row, packet)| (packet, (end, columns.each_ref().map(|of| of[row])))));
    }
    rows.sort_by_key(|(packet, _)| *packet);
    rows.into_iter().map(|(_, row)| row).collect()
}

pub(crate) fn ints(of: &Value, name: &str) -> i64 {
    of[name].as_i64().unwrap_or_else(|| panic!("no {name} in {of}"))
}

#[test]
fn the_data_keeps_to_its_schema() {
    let schema = fs::read_to_string(root().join("docs/schema/tcpwhy.page.3.schema.json")).unwrap_or_default();
    let Ok(schema) = serde_json::from_str::<Value>(&schema) else { panic!("the schema is JSON") };
    for capture in CAPTURES {
        let (data, _) = page_of(capture, &[]);
        if let Err(error) = jsonschema::draft202012::validate(&schema, &data) {
            panic!("{capture}: {error} at {}", error.instance_path);
        }
        for table in ["connections", "exchanges"] {
            let Some(columns) = data[table].as_object() else { panic!("no {table}") };
            let rows = columns.iter().filter(|(name, _)| !name.starts_with("bill_") && *name != "endpoints");
            let lengths: Vec<_> = rows.map(|(name, _)| column(&data[table], name).len()).collect();
            assert!(lengths.windows(2).all(|pair| pair[0] == pair[1]), "{capture}: {table} {lengths:?}");
        }
    }
}

#[test]
fn the_page_says_what_the_json_says() {
    for capture in CAPTURES {
        let (data, _) = page_of(capture, &[]);
        let document = json(&root().join(capture), &[]);
        for same in ["answer", "elapsed_ns", "bill", "findings", "exchanges", "setups", "omitted", "notes"] {
            assert_eq!(data["report"][same], document[same], "{capture}: {same}");
        }
        let Some(first) = document["capture"]["first_ns"].as_i64() else { panic!("no first packet") };
        assert_eq!(data["origin"], document["capture"]["first"], "{capture}");
        let table = &data["exchanges"];
        let names = ["connection", "n", "start_ns", "elapsed_ns", "request_bytes", "reply_bytes", "lines"];
        let columns = names.map(|name| column(table, name));
        let bill = ["bill_cause", "bill_ns"].map(|name| column(table, name));
        let ids = column(&data["connections"], "id");
        let mut line = 0;
        let mut listed = 0;
        for row in 0..columns[0].len() {
            let [connection, n, start, elapsed, request, reply, lines] =
                columns.each_ref().map(|column| column[row]);
            let id = ids[connection as usize];
            let of_the_same = document["connections"].as_array().into_iter().flatten();
            let connection = of_the_same.into_iter().find(|connection| ints(connection, "id") == id);
            let exchanges = connection.and_then(|connection| connection["exchanges"].as_array());
            let exchange = exchanges.into_iter().flatten().find(|exchange| ints(exchange, "n") == n);
            let Some(exchange) = exchange else { panic!("{capture}: no exchange {n} of {id}") };
            assert_eq!(ints(exchange, "start_ns") - first, start);
            assert_eq!(ints(exchange, "elapsed_ns"), elapsed);
            assert_eq!((ints(exchange, "request_bytes"), ints(exchange, "reply_bytes")), (request, reply));
            let billed: Vec<_> = (line..line + lines as usize)
                .map(|at| (data["causes"][bill[0][at] as usize]["name"].clone(), bill[1][at]))
                .collect();
            let told: Vec<_> = exchange["bill"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|line| (line["cause"].clone(), ints(line, "ns")))
                .collect();
            assert_eq!(billed, told, "{capture}: exchange {n} of {id}");
            line += lines as usize;
            listed += 1;
        }
        let all = ["setups", "exchanges", "one_way", "subscriptions"].map(|kind| ints(&document, kind));
        assert_eq!(listed, all.iter().sum::<i64>(), "{capture}");
        assert_eq!(line, bill[0].len());
    }
}

/// For a short capture of large packets, the first pass keeps what a second pass would find. A part
/// needs the second pass: one from the first packet on is the whole.
#[test]
fn a_short_transfer_is_drawn_as_by_a_second_pass() {
    let Ok(folder) = tempfile::tempdir() else { panic!("no folder for temporary files") };
    let capture = folder.path().join("transfer.pcap");
    let lossy = whole_packets("corpus/lab/congestion-window/server.pcapng.zst");
    let many = Generator::new(Shape::BulkFull, 9_000, 1).with_connections(30);
    for (bytes, has_sacks) in [(lossy, true), (written(many), false)] {
        assert!(fs::write(&capture, bytes).is_ok());
        for threads in ["1", "2"] {
            let page = |more: &[&str]| {
                let page = folder.path().join("report.html");
                write_page(&capture, &page, &[&["--threads", threads], more].concat());
                data_of(&fs::read_to_string(&page).unwrap_or_default())
            };
            let (kept, again) = (page(&[]), page(&["--from", "+0"]));
            for table in ["packets", "exchanges", "connections", "told"] {
                assert!(kept[table] == again[table], "{table}, {threads} threads");
            }
            let drawn = kept["packets"].as_array().map_or(&[][..], Vec::as_slice);
            assert!(!drawn.is_empty());
            let of_either = |packets: &Value| {
                [0, 1].iter().any(|end| !column(&packets["sent"][end]["sacks"], "row").is_empty())
            };
            assert_eq!(drawn.iter().any(of_either), has_sacks);
        }
    }
}

/// A capture with all bytes of each packet that were on the wire.
fn whole_packets(capture: &str) -> Vec<u8> {
    let bytes = fs::File::open(root().join(capture)).and_then(zstd::decode_all);
    let Ok(bytes) = bytes else { panic!("{capture} is not there") };
    let (mut reader, mut rest, mut writer) = (Reader::new(), bytes.as_slice(), None);
    loop {
        let step = reader.next(rest, true);
        rest = &rest[step.consumed..];
        match step.event {
            Event::Packet(packet) => {
                let mut data = packet.data.to_vec();
                data.resize(packet.original_len as usize, 0);
                let writer = writer.get_or_insert_with(|| PcapWriter::new(packet.link, 1 << 18));
                writer.packet(packet.at, packet.original_len, &data);
            }
            Event::Skipped | Event::Damaged(_) => {}
            Event::NeedMore(_) | Event::End => {
                return writer.map_or_else(Vec::new, |writer| writer.bytes().to_vec());
            }
        }
    }
}

fn written(mut packets: Generator) -> Vec<u8> {
    let mut writer = PcapWriter::new(LinkType::ETHERNET, Shape::BulkFull.snaplen());
    while let Some(packet) = packets.next() {
        writer.packet(packet.at, packet.original_len, packet.data);
    }
    writer.bytes().to_vec()
}

/// Frames, times, numbers and waits equal those of the ladder that `--connection` shows, which are
/// Wireshark's (tests/wireshark.rs).
#[test]
fn packets_are_those_of_the_ladder() {
    for capture in CAPTURES {
        packets_are_those_of(capture, &[]);
    }
}

/// Also of a part, after the handshakes.
#[test]
fn packets_of_a_part_are_those_of_the_ladder() {
    for (capture, from) in CAPTURES.into_iter().zip(["+0.3", "+0.0005", "+0.3", "+0.2", "+1.5"]) {
        packets_are_those_of(capture, &["--from", from]);
    }
}

fn packets_are_those_of(capture: &str, part: &[&str]) {
    let (data, _) = page_of(capture, part);
    let Some(drawn) = data["packets"].as_array().filter(|drawn| !drawn.is_empty()) else {
        panic!("{capture}: nothing is drawn")
    };
    let worst = &data["report"]["findings"][0]["worst"]["connection"];
    let Some(packets) = drawn.iter().find(|packets| &packets["id"] == worst) else {
        panic!("{capture}: the first finding's connection is not drawn")
    };
    let document = json(&root().join(capture), &[part, &["--connection", &worst.to_string()]].concat());
    let Some(ladder) = document["connections"][0]["ladder"].as_array() else { panic!("no ladder") };
    let names =
        ["packet", "at_ns", "offset", "len", "ack", "window", "raw", "flags", "count", "exchange", "lines"];
    let table = rows(packets, names);
    assert_eq!(table.len(), ladder.len(), "{capture}");
    let gaps = [0, 1].map(|end| ["cause", "ns"].map(|name| column(&packets["sent"][end], name)));
    let (mut next, mut before) = ([0, 0], [None; 2]);
    let origin = ladder.first().map_or(0, |rung| ints(rung, "at_ns")) - table[0].1[1];
    for ((from, numbers), rung) in table.into_iter().zip(ladder) {
        let [packet, at, offset, len, ack, window, raw, flags, count, exchange, lines] = numbers;
        assert_eq!(rung["from"], ["client", "server"][from], "{capture}: {packet}");
        assert_eq!((packet, at, count), (ints(rung, "packet"), ints(rung, "at_ns") - origin, 1), "{capture}");
        assert_eq!((len, window), (ints(rung, "len"), ints(rung, "window")), "{capture}: {packet}");
        assert_eq!(rung["exchange"].as_i64().unwrap_or(-1), exchange, "{capture}: {packet}");
        let base = [0, 1].map(|end| packets["seq_base"][end].as_i64().unwrap_or(0));
        let field = if rung["window_scale"].is_null() { ints(rung, "window_field") } else { -1 };
        assert_eq!(raw, field, "{capture}: {packet}");
        let syn = i64::from(flags & 2 != 0);
        assert_eq!((offset + base[from] - syn) as u32, ints(rung, "seq") as u32, "{capture}: {packet}");
        if ack >= 0 {
            assert_eq!((ack + base[1 - from]) as u32, ints(rung, "ack") as u32, "{capture}: {packet}");
        }
        let billed = rung["billed"].as_array().map_or(&[][..], Vec::as_slice);
        assert_eq!(lines, billed.len() as i64, "{capture}: {packet}");
        let mut left = at - before[from].replace(at).unwrap_or(at);
        for (n, billed_line) in billed.iter().enumerate() {
            let [cause, told] = gaps[from].each_ref().map(|column| column[next[from]]);
            let ns = if n + 1 == billed.len() { told + left } else { told };
            left -= ns;
            assert_eq!(ns, ints(billed_line, "ns"), "{capture}: {packet}");
            assert_eq!(data["causes"][cause as usize]["name"], billed_line["cause"]);
            next[from] += 1;
        }
    }
    assert_eq!(next, gaps.map(|[cause, _]| cause.len()));
}

/// The laboratory's path takes 20 ms in each direction (scenarios/congestion-window.toml).
#[test]
fn ways_are_those_of_the_path_where_both_ends_are_given() {
    let end = |end: &str| format!("corpus/lab/congestion-window/{end}.pcapng.zst");
    let other = root().join(end("server")).to_string_lossy().into_owned();
    let (data, _) = page_of(&end("client"), &[&other]);
    let sent = [0, 1].map(|end| &data["packets"][0]["sent"][end]);
    let ways = sent.map(|own| column(&own["ways"], "ns"));
    let in_both: usize = ways.iter().map(Vec::len).sum();
    let all: usize = sent.iter().map(|own| column(own, "packet").len()).sum();
    assert!(in_both * 10 >= all * 9, "{in_both} of {all} packets are in both");
    for (side, mut ns) in ways.into_iter().enumerate() {
        ns.sort_unstable();
        for taken in [ns[0], ns[ns.len() / 2]] {
            assert!((taken - 20_000_000).abs() < 1_000_000, "{taken} ns from end {side}");
        }
    }
    let (alone, _) = page_of(&end("client"), &[]);
    for own in [0, 1].map(|end| &alone["packets"][0]["sent"][end]) {
        assert_eq!(column(&own["ways"], "row"), Vec::<i64>::new());
    }
}

/// Packets are cited by their numbers in each file, and the answer's limitations are worded as in
/// the text.
#[test]
fn both_ends_are_told_as_by_the_text() {
    let Ok(folder) = tempfile::tempdir() else { panic!("no folder for temporary files") };
    let page = folder.path().join("report.html");
    let [client, server] =
        ["client", "server"].map(|end| root().join(format!("corpus/lab/d-sndbuf/{end}.pcapng.zst")));
    write_page(&client, &page, &[&server.to_string_lossy()]);
    let data = data_of(&fs::read_to_string(&page).unwrap_or_default());
    let text = tcpwhy(&["read", &client.to_string_lossy(), &server.to_string_lossy(), "--width", "1000"]);
    // The page was written in the capture's folder.
    let text = String::from_utf8_lossy(&text.stdout).replace(&*client.to_string_lossy(), "client.pcapng.zst");
    let notes = data["notes"].as_array().map_or(&[][..], Vec::as_slice);
    assert!(notes.len() >= 2, "{notes:?}");
    for note in notes.iter().filter_map(|note| note.as_str()) {
        assert!(text.contains(&format!("note: {note}")), "{note} is not in {text}");
    }
    let cited = data["told"][0]["packets"].as_array().map_or(&[][..], Vec::as_slice);
    assert!(!cited.is_empty(), "{}", data["told"]);
    for of in cited {
        let (filter, file) =
            (of["filter"].as_str().unwrap_or_default(), of["of"].as_str().unwrap_or_default());
        let first = filter.split(',').next().unwrap_or_default();
        assert!(text.contains(first) && text.contains(&format!(" of {file}")), "{filter} of {file}: {text}");
    }
}

/// A file keeps its content if there is nothing to write.
#[test]
fn a_file_stays_as_it_was_where_nothing_is_analysed() {
    let Ok(folder) = tempfile::tempdir() else { panic!("no folder for temporary files") };
    let [none, broken] = ["none.pcap", "broken.pcap"].map(|name| folder.path().join(name));
    let written = fs::write(&broken, "no capture").and_then(|()| fs::copy(root().join(CAPTURES[0]), &none));
    assert!(written.is_ok(), "{written:?}");
    for option in ["--html", "--annotate"] {
        let out = folder.path().join("out");
        let written = fs::write(&out, "as it was");
        assert!(written.is_ok(), "{written:?}");
        let [none, broken, path] = [&none, &broken, &out].map(|path| path.to_string_lossy());
        for args in [vec![&*none, "--filter", "port 9"], vec![&*broken]] {
            let read = tcpwhy(&[&["read", option, &*path], args.as_slice()].concat());
            assert_ne!(read.status.code(), Some(0));
            assert_eq!(fs::read_to_string(&out).ok().as_deref(), Some("as it was"), "{args:?}");
        }
        let read = tcpwhy(&["read", option, &*path, &root().join(CAPTURES[0]).to_string_lossy()]);
        assert!(read.status.success());
        assert!(!fs::read(&out).unwrap_or_default().windows(9).any(|bytes| bytes == b"as it was"));
    }
}

#[test]
fn nothing_of_the_capture_is_markup() {
    let Ok(folder) = tempfile::tempdir() else { panic!("no folder for temporary files") };
    let hostile: PathBuf =
        folder.path().join("</script><img src=x onerror=alert(1)>\u{202e}.pcap".replace('/', "_"));
    let copied = fs::copy(root().join(CAPTURES[0]), &hostile);
    assert!(copied.is_ok(), "{copied:?}");
    let page = folder.path().join("report.html");
    write_page(&hostile, &page, &[]);
    let text = fs::read_to_string(&page).unwrap_or_default();
    let plain = fs::read_to_string(root().join("crates/page/built/page.html")).unwrap_or_default();
    let Some((before, behind)) = plain.split_once("@DATA@") else {
        panic!("the built page has a place for data")
    };
    let data = text.strip_prefix(before).and_then(|rest| rest.strip_suffix(behind));
    assert!(data.is_some_and(|data| data.bytes().all(|b| b.is_ascii_alphanumeric() || b"+/=".contains(&b))));
    let policy = r#"content="default-src 'none'; script-src 'sha256-"#;
    assert!(before.contains(policy) && !before.contains("unsafe"), "the policy forbids what is not needed");
    let shown = data_of(&text)["report"]["capture"]["path"].as_str().unwrap_or_default().to_owned();
    assert!(shown.ends_with("\\u{202e}.pcap"), "{shown}");
}

#[test]
fn a_page_is_never_written_over_the_capture_and_says_where_it_cannot_be() {
    let Ok(folder) = tempfile::tempdir() else { panic!("no folder for temporary files") };
    let capture = folder.path().join("a.pcap");
    let copied = fs::copy(root().join(CAPTURES[0]), &capture);
    assert!(copied.is_ok(), "{copied:?}");
    let name = capture.to_string_lossy();
    let over = tcpwhy(&["read", &name, "--html", &name]);
    assert_eq!(over.status.code(), Some(2));
    assert_eq!(fs::read(&capture).ok(), fs::read(root().join(CAPTURES[0])).ok());
    let nowhere = folder.path().join("no/such/folder.html");
    let missing = tcpwhy(&["read", &name, "--html", &nowhere.to_string_lossy()]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&missing.stderr).contains("cannot write"));
}

/// As for all output: threads change nothing, and reading twice gives the same bytes.
#[test]
fn the_page_is_the_same_with_any_number_of_threads() {
    let capture = CAPTURES[3];
    let (_, one) = page_of(capture, &["--threads", "1"]);
    let (_, four) = page_of(capture, &["--threads", "4"]);
    assert!(one == four);
}
