//! Does the page draw what the report says, in a real browser? And is the committed page what its
//! sources build?
//!
//! `page/test/browser.mjs` drives Debian's Chromium through every view and compares with the JSON;
//! axe-core checks accessibility. Needs node, npm (which fetches the locked dependencies once) and
//! chromium.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use crate::common::{json, root, tcpwhy, write_page};
use crate::data::data_of;
use crate::serve::Served;
use serde_json::{Value, json as value};
use tcpwhy::input::{self, Inputs};
use tcpwhy_gen::{Generator, Shape};
use tcpwhy_wire::capture::LinkType;
use tcpwhy_wire::capture::writer::{PacketNote, PcapWriter, PcapngWriter, Section};
use tcpwhy_wire::decode;

/// For one `npm ci` at a time.
static NPM: Mutex<()> = Mutex::new(());

/// Says why a test does not run; in CI it must.
#[expect(clippy::disallowed_methods, reason = "CI is where a test may not be skipped")]
fn skip(test: &str, reason: &str) {
    assert!(std::env::var("CI").is_err(), "{test} was skipped in CI: {reason}");
    println!("{test} is skipped: {reason}");
}

fn starts(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}

fn output_of(command: &mut Command) -> (bool, String) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let said = [output.stdout, output.stderr].map(|stream| String::from_utf8_lossy(&stream).into_owned());
    (output.status.success(), said.concat())
}

/// The page built from its sources. `None` if this machine cannot build it.
fn build(test: &str, to: &Path) -> Option<()> {
    if !starts("npm") || !starts("node") {
        skip(test, "node or npm is missing; apt-get install nodejs npm");
        return None;
    }
    let _one = NPM.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let (built, said) = output_of(Command::new(root().join("page/build.sh")).arg(to));
    assert!(built, "page/build.sh: {said}");
    Some(())
}

#[test]
fn the_committed_page_is_what_its_sources_build() {
    let Ok(folder) = tempfile::tempdir() else { panic!("no folder for temporary files") };
    let again = folder.path().join("page.html");
    let types = fs::read(root().join("page/src/contract.ts")).ok();
    if build("the_committed_page_is_what_its_sources_build", &again).is_none() {
        return;
    }
    let committed = fs::read(root().join("crates/page/built/page.html")).ok();
    assert!(fs::read(&again).ok() == committed, "crates/page/built is old: run page/build.sh and commit it");
    let made = fs::read(root().join("page/src/contract.ts")).ok();
    assert!(made == types, "page/src/contract.ts was older than the schema: commit it");
}

/// A case for `browser.mjs`: the page and the documents to compare it with.
fn case(folder: &Path, name: &str, inputs: &[PathBuf], of: &[&str]) -> Value {
    let page = folder.join(format!("{name}.html"));
    let rest: Vec<String> = inputs[1..].iter().map(|path| path.to_string_lossy().into_owned()).collect();
    let rest: Vec<&str> = rest.iter().map(String::as_str).collect();
    write_page(&inputs[0], &page, &rest);
    let document = json(&inputs[0], &rest);
    let ladder = |finding: usize| {
        let worst = document["findings"][finding]["worst"]["connection"].as_u64().unwrap_or(1).to_string();
        json(&inputs[0], &[&rest[..], &["--connection", &worst]].concat())
    };
    // The findings that the text calls on the reader to act on are open on the page.
    let told = data_of(&fs::read_to_string(&page).unwrap_or_default())["told"].clone();
    let open = told.as_array().and_then(|told| told.iter().position(|told| told["shown"] == true));
    let written = |suffix: &str, document: &Value| {
        let path = folder.join(format!("{name}.{suffix}.json"));
        let written = fs::write(&path, document.to_string());
        assert!(written.is_ok(), "{written:?}");
        path
    };
    value!({
        "name": name,
        "page": page,
        "json": written("all", &document),
        "ladder": written("ladder", &ladder(0)),
        "open": written("open", &ladder(open.unwrap_or(0))),
        "shots": root().join("docs/pictures"),
        "of": of,
    })
}

fn drive(folder: &Path, cases: &[Value]) {
    let list = folder.join("cases.json");
    let written = fs::write(&list, Value::from(cases).to_string());
    assert!(written.is_ok(), "{written:?}");
    let drive = || output_of(Command::new("node").arg(root().join("page/test/browser.mjs")).arg(&list));
    let (held, said) = drive();
    println!("{said}");
    // The browser may have been starved of processor time; a second failure has another cause.
    let (held, said) = if held { (held, said) } else { drive() };
    assert!(held, "{said}");
}

fn can_drive(test: &str, folder: &Path) -> bool {
    if !starts("chromium") {
        skip(test, "chromium is missing; apt-get install chromium");
        return false;
    }
    build(test, &folder.join("built.html")).is_some()
}

#[test]
fn every_view_draws_what_the_json_says() {
    let Ok(folder) = tempfile::tempdir() else { panic!("no folder for temporary files") };
    let folder = folder.path();
    if !can_drive("every_view_draws_what_the_json_says", folder) {
        return;
    }
    let corpus = |name: &str| root().join("corpus").join(name);
    // A name that would act on a page, if a page let it.
    let hostile = folder.join("<script>document.title='run'<img src=x onerror=alert(1)>\u{202e}'\"&.pcap");
    let hostile = hostile.with_extension("pcapng");
    write_hostile(&hostile);
    let asked = json(&hostile, &["--show-requests"])["connections"].to_string();
    assert!(asked.contains("GET /</script>"), "{asked:.500}");
    let small = folder.join("small.pcap");
    let cut = Command::new("tcpdump")
        .arg("-r")
        .arg(corpus("demo/split.pcapng"))
        .args(["-c", "20", "-w"])
        .arg(&small)
        .output();
    assert!(cut.is_ok_and(|output| output.status.success()), "tcpdump cuts");
    let nagle = corpus("lab/connect-each/client.pcapng.zst");
    let ends = ["client", "server"].map(|end| corpus(&format!("lab/congestion-window/{end}.pcapng.zst")));
    let cases = [
        case(folder, "twenty-packets", &[small], &[]),
        // Requests are not written for others, so that they cannot act on them.
        case(folder, "hostile-strings", &[hostile, "--show-requests".into()], &[]),
        case(folder, "connections", &[nagle], &[]),
        case(folder, "transfer-with-losses", &ends[1..], &[]),
        case(folder, "both-ends", &ends, &[]),
        // Windows of unknown scale, and retransmitted bytes from before the first one.
        case(folder, "midway", &[midway(folder)], &[]),
    ];
    let [before, after] =
        ["split", "split+one-write"].map(|name| corpus(&format!("lab/{name}/client.pcapng.zst")));
    let long = folder.join("long.pcap");
    generate(&long, 200_000);
    let served = Served::start(&long, &[]);
    let transfer = folder.join("transfer.pcap");
    write_transfer(&transfer);
    let transfer = Served::start(&transfer, &[]);
    let more = [
        compared(folder, "compared", [&before, &after], &[]),
        value!({ "name": "served", "kind": "served", "url": served.url }),
        value!({ "name": "served transfer", "kind": "transfer", "url": transfer.url }),
    ];
    drive(folder, &[&cases[..], &more[..]].concat());
}

/// As if a recording had begun right before a retransmission.
fn midway(folder: &Path) -> PathBuf {
    let stored = root().join("corpus/lab/a-after-timeout/server.pcapng.zst");
    let plain = fs::File::open(stored).and_then(zstd::decode_all);
    let [whole, cut] = ["whole.pcapng", "midway.pcapng"].map(|name| folder.join(name));
    let written = plain.and_then(|plain| fs::write(&whole, plain));
    assert!(written.is_ok(), "{written:?}");
    let edited = Command::new("editcap").arg("-r").args([&whole, &cut]).arg("56-100000").output();
    assert!(edited.is_ok_and(|output| output.status.success()), "editcap cuts");
    let document = json(&cut, &["--connection", "1"]);
    let rungs = document["connections"][0]["ladder"].as_array().map_or(&[][..], Vec::as_slice);
    let before = |rung: &&Value| rung["seq"].as_u64() > Some(1 << 31);
    assert!(rungs.iter().any(|rung| before(&rung)) && rungs[0]["window_scale"].is_null(), "{:?}", rungs[0]);
    cut
}

/// A case of two captures.
fn compared(folder: &Path, name: &str, captures: [&Path; 2], of: &[&str]) -> Value {
    let page = folder.join(format!("{name}.html"));
    let [before, after] = captures.map(|path| path.to_string_lossy().into_owned());
    let output = tcpwhy(&["compare", &before, &after, "--json", "--html", &page.to_string_lossy()]);
    let json = folder.join(format!("{name}.json"));
    let written = fs::write(&json, &output.stdout);
    assert!(written.is_ok() && output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    value!({
        "name": name, "kind": "compare", "page": page, "json": json, "shots": root().join("docs/pictures"), "of": of,
    })
}

/// Requests and replies of 2,000 connections.
fn generate(to: &Path, packets: u64) {
    let mut capture = Generator::new(Shape::Rpc, packets, 1).with_connections(2_000);
    let mut writer = PcapWriter::new(LinkType::ETHERNET, Shape::Rpc.snaplen());
    while let Some(packet) = capture.next() {
        writer.packet(packet.at, packet.original_len, packet.data);
    }
    let written = fs::write(to, writer.bytes());
    assert!(written.is_ok(), "{written:?}");
}

/// 80 MB in segments of 1,000 bytes, every second one acknowledged: more packets than a page draws
/// of one connection.
fn write_transfer(to: &Path) {
    let mut writer = PcapWriter::new(LinkType::ETHERNET, 96);
    let mut ns = 1_800_000_000_000_000_000;
    let mut send = |is_server: bool, [seq, ack]: [u32; 2], flags: u8, len: u16| {
        let mut frame = [0; 54];
        frame[12..14].copy_from_slice(&[8, 0]);
        frame[14] = 0x45;
        frame[16..18].copy_from_slice(&(40 + len).to_be_bytes());
        frame[22..24].copy_from_slice(&[64, 6]);
        let (from, to) =
            if is_server { ([10, 0, 0, 2], [10, 0, 0, 1]) } else { ([10, 0, 0, 1], [10, 0, 0, 2]) };
        frame[26..30].copy_from_slice(&from);
        frame[30..34].copy_from_slice(&to);
        let ports: [u16; 2] = if is_server { [8080, 50_000] } else { [50_000, 8080] };
        frame[34..36].copy_from_slice(&ports[0].to_be_bytes());
        frame[36..38].copy_from_slice(&ports[1].to_be_bytes());
        frame[38..42].copy_from_slice(&seq.to_be_bytes());
        frame[42..46].copy_from_slice(&ack.to_be_bytes());
        frame[46..50].copy_from_slice(&[0x50, flags, 0xff, 0xff]);
        ns += 10_000;
        writer.packet(tcpwhy_wire::Instant::from_nanos(ns), 54 + u32::from(len), &frame);
    };
    send(false, [0, 0], 2, 0);
    send(true, [0, 1], 0x12, 0);
    send(false, [1, 1], 0x10, 0);
    send(false, [1, 1], 0x18, 100);
    for segment in 0..80_000 {
        send(true, [1 + 1_000 * segment, 101], 0x10, 1_000);
        if segment % 2 == 1 {
            send(false, [101, 1_001 + 1_000 * segment], 0x10, 0);
        }
    }
    let written = fs::write(to, writer.bytes());
    assert!(written.is_ok(), "{written:?}");
}

/// A capture whose names, comments and requests would all act on a page, if a page let them.
fn write_hostile(to: &Path) {
    let evil = "</script><script>document.title='run'</script><img src=x onerror=\"document.title='run'\">";
    let mut writer = PcapngWriter::new();
    writer.section(&Section { application: Some(evil), os: Some(evil), comment: Some(evil) });
    let capture = root().join("corpus/demo/split.pcapng");
    let (mut told, mut asked) = (0, 0);
    Inputs::open(&[&capture]).for_each_block(&input::Options::default(), &mut |block| {
        let Some(packet) = block.packet else { return };
        if told == 0 {
            writer.interface(packet.link, 0, Some(evil));
        }
        let mut data = packet.data.to_vec();
        // The first 20 bytes of a request, and the next 100, which a second segment carries.
        if let Ok(segment) = decode(&packet)
            && let 20 | 100 = segment.payload_len
        {
            let at = data.len() - segment.payload_len as usize;
            let rest = format!("{:<74} HTTP/1.1\r\nHost: x\r\n\r\n", &evil[15..]);
            let text = if segment.payload_len == 20 { format!("GET /{}", &evil[..15]) } else { rest };
            data[at..at + text.len()].copy_from_slice(text.as_bytes());
            asked += 1;
        }
        let note = PacketNote { comment: Some(evil), ..PacketNote::default() };
        writer.packet(0, packet.at, packet.original_len, &data, &note);
        told += 1;
    });
    let written = fs::write(to, writer.bytes());
    assert!(written.is_ok() && asked == 80, "{written:?}: {asked} of {told} packets ask");
}

/// 100 MB over a path that loses some segments, at both ends.
fn lossy(folder: &Path) -> Vec<PathBuf> {
    let scenario = folder.join("lossy.toml");
    let written = fs::write(&scenario, LOSSY);
    assert!(written.is_ok(), "{written:?}");
    let kept = folder.join("kept");
    let output =
        tcpwhy(&["lab", &scenario.to_string_lossy(), "--keep", &kept.to_string_lossy(), "--seed", "1"]);
    let recorded = ["client", "server"].map(|end| kept.join(format!("lossy.toml/{end}.pcapng")));
    assert!(
        recorded.iter().all(|path| path.exists()),
        "the laboratory records: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    recorded.into()
}

const LOSSY: &str = r#"
shows = "100 MB with a loss now and then"
[path]
rtt = "10ms"
backward = ["loss data 300", "loss data 9000", "loss data 9010", "loss data 30000", "loss data 50000"]
[workload]
client = "connect\nwrite 100\nread 100m"
server = "accept\nread 100\nwrite 100m\nread all"
[expect]
exchange = "100ms..60s"
"#;

/// The screenshots of the docs, and pages of large captures: `make page-pictures`.
#[test]
#[ignore = "minutes, and large files: make page-pictures"]
fn pictures_of_the_docs_and_large_captures() {
    let Ok(folder) = tempfile::tempdir() else { panic!("no folder for temporary files") };
    let folder = folder.path();
    assert!(can_drive("pictures_of_the_docs_and_large_captures", folder));
    let generated = |name: &str, words: &[&str]| {
        let path = folder.join(name);
        let made = Command::new(root().join("target/release/tcpwhy-gen")).args(words).arg(&path).output();
        assert!(made.is_ok_and(|output| output.status.success()), "tcpwhy-gen {words:?}");
        path
    };
    let demo = root().join("corpus/demo/split.pcapng");
    let ends = lossy(folder);
    let rpc = generated("rpc.pcap", &["rpc", "--packets", "200000", "--connections", "2000"]);
    let mut cases = [
        case(folder, "demo", &[demo], &["page", "dark"]),
        case(folder, "transfer", &ends[1..], &["connection"]),
        case(folder, "both-ends", &ends, &[]),
        case(folder, "many-connections", &[rpc], &[]),
        case(
            folder,
            "five-million",
            &[generated("huge.pcap", &["rpc", "--packets", "5000000"])],
            &["scatter"],
        ),
    ];
    // The limits promised for the largest, in milliseconds.
    cases[4]["within"] = value!({ "first": 1_000, "zoom": 100 });
    drive(folder, &cases);
}
