//! Can a ladder be checked line by line in Wireshark? Frame numbers, relative sequence numbers, windows,
//! times and stream numbers of recordings, packet for packet against `tshark -T fields` of the whole file:
//! also of a part of it, without its handshake, of some of its connections, and of several files. Needs
//! tshark, editcap and mergecap.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

const RECORDINGS: [&str; 10] = [
    "split",
    "d-sndbuf",
    "c-idle",
    "lost-request",
    "slow-reader",
    "connect-each",
    "corked-tail",
    "burst-whole",
    "d-rcvbuf",
    "bandwidth",
];

fn run(command: &mut Command) -> Option<String> {
    let output = command.stdin(Stdio::null()).output().ok()?;
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn has_tools() -> bool {
    let there = ["tshark", "editcap", "mergecap"].iter().all(|tool| {
        Command::new(tool).arg("-v").stdin(Stdio::null()).output().is_ok_and(|output| output.status.success())
    });
    assert!(there || std::env::var_os("CI").is_none_or(|ci| ci != "true"), "tshark is missing");
    if !there {
        println!("skipped: tshark, editcap or mergecap is missing");
    }
    there
}

/// The recording at one end, uncompressed.
fn recording(dir: &Path, name: &str, end: &str) -> PathBuf {
    let stored = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../corpus/lab")
        .join(name)
        .join(format!("{end}.pcapng.zst"));
    let path = dir.join(format!("{name}-{end}.pcapng"));
    let from = std::fs::File::open(&stored).unwrap_or_else(|error| panic!("{}: {error}", stored.display()));
    let plain = zstd::decode_all(from).unwrap_or_else(|error| panic!("{error}"));
    std::fs::write(&path, plain).unwrap_or_else(|error| panic!("{error}"));
    path
}

/// tshark's view of each frame: number to stream, time, and the fields of a rung.
fn frames(path: &Path) -> BTreeMap<u64, (u64, String, [i64; 5])> {
    let fields = [
        "frame.number",
        "tcp.stream",
        "frame.time_epoch",
        "tcp.seq",
        "tcp.ack",
        "tcp.len",
        "tcp.window_size_value",
        "tcp.window_size_scalefactor",
        "tcp.flags.ack",
    ];
    let mut tshark = Command::new("tshark");
    tshark.arg("-r").arg(path).args(["-Y", "tcp", "-T", "fields"]);
    for field in fields {
        tshark.args(["-e", field]);
    }
    let rows = run(&mut tshark).unwrap_or_default();
    rows.lines()
        .map(|row| {
            let cells: Vec<&str> = row.split('\t').collect();
            let number = |i: usize| cells[i].parse::<i64>().unwrap_or(-9);
            let ack = if matches!(cells[8], "1" | "True") { number(4) } else { -1 };
            let of = [number(3), ack, number(5), number(6), number(7)];
            (number(0) as u64, (number(1) as u64, cells[2].to_owned(), of))
        })
        .collect()
}

fn document(files: &[&Path], args: &[&str]) -> Value {
    let mut tcpwhy = Command::new(env!("CARGO_BIN_EXE_tcpwhy"));
    tcpwhy.arg("read").args(files).arg("--json").args(args);
    let text = run(&mut tcpwhy).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}"))
}

/// Compares each rung of a connection with its frame; returns how many there were, and how many windows had a
/// scale. Connections have the numbers of streams if everything is read.
fn compare(
    document: &Value,
    frames: &BTreeMap<u64, (u64, String, [i64; 5])>,
    what: &str,
    whole: bool,
) -> (usize, usize) {
    let connection = &document["connections"][0];
    let rungs = connection["ladder"].as_array().unwrap_or_else(|| panic!("{what}: a ladder"));
    let mut scaled = 0;
    for rung in rungs {
        let number = rung["packet"].as_u64().unwrap_or(0);
        let (stream, time, [seq, ack, len, window, factor]) = &frames[&number];
        let n = |name: &str| rung[name].as_i64().unwrap_or(-1);
        assert_eq!(
            [n("len"), n("window_field")],
            [*len, *window],
            "{what}, frame {number}: length and window\n{rung}"
        );
        let (second, rest) = time.split_once('.').unwrap_or((time, "0"));
        let ns = format!("{second}{:0<9}", &rest[..rest.len().min(9)]);
        assert_eq!(rung["at_ns"].to_string(), ns, "{what}, frame {number}");
        assert_eq!([n("seq"), n("ack")], [*seq, *ack], "{what}, frame {number}: seq and ack\n{rung}");
        // -1: not known; -2: no scaling. Wireshark shows no factor of SYNs.
        match rung["window_scale"].as_i64() {
            None => assert_eq!(*factor, -1, "{what}, frame {number}"),
            Some(0) => assert!(*factor < 2, "{what}, frame {number}: {factor}"),
            Some(scale) => {
                assert_eq!(*factor, 1 << scale, "{what}, frame {number}");
                assert_eq!(n("window"), window << scale, "{what}, frame {number}");
                scaled += 1;
            }
        }
        if whole {
            assert_eq!(connection["id"].as_u64(), Some(stream + 1), "{what}, frame {number}: tcp.stream");
        }
    }
    (rungs.len(), scaled)
}

#[test]
fn ladders_are_what_wireshark_shows_of_the_same_file() {
    if !has_tools() {
        return;
    }
    let dir = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
    let (mut ladders, mut rungs, mut scaled) = (0, 0, 0);
    for name in RECORDINGS {
        for end in ["client", "server"] {
            let path = recording(dir.path(), name, end);
            let frames = frames(&path);
            let streams = frames.values().map(|(stream, ..)| stream + 1).max().unwrap_or(0);
            for connection in [1, streams] {
                let args = ["--connection", &connection.to_string()];
                let what = format!("{name} at the {end}, connection {connection}");
                let (some, with_scale) = compare(&document(&[&path], &args), &frames, &what, true);
                assert!(some > 8, "{what}: {some} rungs");
                (ladders, rungs, scaled) = (ladders + 1, rungs + some, scaled + with_scale);
            }
        }
    }
    println!("{ladders} ladders, {rungs} rungs, {scaled} scaled windows as in tshark");
    assert!(ladders >= 40 && rungs > 2_000 && scaled > 1_000);
}

#[test]
fn without_the_handshake_numbers_are_wiresharks_too_and_windows_are_raw() {
    if !has_tools() {
        return;
    }
    let dir = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
    for (name, end) in
        [("split", "client"), ("d-sndbuf", "server"), ("d-rcvbuf", "client"), ("lost-request", "server")]
    {
        let (whole, cut) = (recording(dir.path(), name, end), dir.path().join("cut.pcapng"));
        // As if the capture had begun in the middle.
        run(Command::new("editcap").arg("-r").args([&whole, &cut]).arg("20-100000"));
        let what = format!("{name} at the {end} from packet 20 on");
        let document = document(&[&cut], &["--connection", "1"]);
        let (rungs, scaled) = compare(&document, &frames(&cut), &what, true);
        assert!(rungs >= 8 && scaled == 0, "{what}: {rungs} rungs, {scaled} scaled");
        for args in [&["-c", "1", "-v"][..], &["-c", "1", "-v", "--from", "+10ms"]] {
            let mut shown = Command::new(env!("CARGO_BIN_EXE_tcpwhy"));
            let shown = run(shown.arg("read").arg(&cut).args(args)).unwrap_or_default();
            assert!(shown.contains(" raw "), "{what}: windows of unknown scale are marked\n{shown}");
            let said: Vec<&str> = shown.split_whitespace().collect();
            assert!(
                said.join(" ").contains("sequence numbers count from each side's first packet"),
                "{shown}"
            );
            // Numbers of a part of it count from the first packet of the file too.
            compare_rows(&rows(&shown), &|name| name.parse().unwrap_or(0), &frames(&cut));
        }
    }
}

#[test]
fn parts_filters_and_several_files_keep_the_files_numbers() {
    if !has_tools() {
        return;
    }
    let dir = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
    let path = recording(dir.path(), "connect-each", "client");
    let frames_of_file = frames(&path);
    let first: f64 = frames_of_file[&1].1.parse().unwrap_or(0.0);
    let last: f64 = frames_of_file.values().last().and_then(|frame| frame.1.parse().ok()).unwrap_or(0.0);
    let from = format!("+{:.6}", (last - first) / 2.0);
    for connection in ["1", "2"] {
        let part = document(&[&path], &["--from", &from, "-c", connection]);
        let (rungs, scaled) = compare(&part, &frames_of_file, "--from", false);
        assert!(rungs > 1 && scaled > 0, "{rungs}");
        // A pipe is read through, while a file may be searched.
        let mut piped = Command::new(env!("CARGO_BIN_EXE_tcpwhy"));
        piped.args(["read", "-", "--json", "--from", &from, "-c", connection]);
        let input = std::fs::File::open(&path).unwrap_or_else(|error| panic!("{error}"));
        let piped = piped.stdin(input).output().unwrap_or_else(|error| panic!("{error}"));
        let piped: Value = serde_json::from_slice(&piped.stdout).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(piped["connections"], part["connections"]);
    }
    let whole = document(&[&path], &[]);
    let client = whole["connections"][2]["client"].as_str().unwrap_or_default().to_owned();
    let port = client.rsplit(':').next().unwrap_or_default();
    let filtered = document(&[&path], &["--filter", &format!("tcp port {port}"), "-c", "1"]);
    let (rungs, _) = compare(&filtered, &frames_of_file, "--filter", false);
    assert!(rungs > 5, "{rungs}");
    // The third connection, found by its end, is the third by its number, of the whole file.
    let by_end = document(&[&path], &["--connection", &client]);
    assert_eq!(by_end["connections"][0]["id"], 3);
    assert!(compare(&by_end, &frames_of_file, "by its end", true).0 > 5);

    let other = recording(dir.path(), "burst-whole", "client");
    let both = dir.path().join("both.pcapng");
    run(Command::new("mergecap").arg("-w").args([&both, &path, &other]));
    let frames_of_both = frames(&both);
    for connection in ["1", "2"] {
        let document = document(&[&path, &other], &["-c", connection]);
        assert!(compare(&document, &frames_of_both, "two files", true).0 > 5);
    }
}

/// A snap length that ends within the TCP header: bills and numbers need only the fields before the checksum.
/// Missing ones are reported.
#[test]
fn headers_that_are_cut_have_wiresharks_numbers_or_say_what_is_missing() {
    if !has_tools() {
        return;
    }
    let dir = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
    let whole = recording(dir.path(), "split", "client");
    let cut = dir.path().join("cut.pcapng");
    // The recording begins with the IPv4 header, 20 bytes.
    for header in 13..=20 {
        run(Command::new("editcap").args(["-s", &(20 + header).to_string()]).args([&whole, &cut]));
        let mut shown = Command::new(env!("CARGO_BIN_EXE_tcpwhy"));
        let shown = shown.arg("read").arg(&cut).stdin(Stdio::null()).output();
        let shown = shown.unwrap_or_else(|error| panic!("{error}"));
        let (said, complained) =
            (String::from_utf8_lossy(&shown.stdout), String::from_utf8_lossy(&shown.stderr));
        if header < 16 {
            assert_eq!(shown.status.code(), Some(5), "{header}: {complained}");
            let why =
                "107 of 107 packets are cut off within the TCP header; capture with a larger snap length";
            assert!(complained.contains(why), "{header}: {complained}");
            assert!(frames(&cut).values().all(|(_, _, [seq, ..])| *seq == -9), "{header}: tshark reads more");
            continue;
        }
        let (rungs, scaled) =
            compare(&document(&[&cut], &["-c", "1"]), &frames(&cut), &format!("{header} bytes"), true);
        assert!(rungs == 107 && scaled == 0, "{header}: {rungs} rungs, {scaled} scaled");
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            said.contains("probably wait 47.8 ms for the server's delayed acknowledgement"),
            "{header}: {said}"
        );
        assert!(said.contains("a SYN that is cut off within its options"), "{header}: {said}");
    }
}

/// Causes whose waits end with a packet that an event released, and begin with the packet before it.
const HOLDS: [&str; 10] = [
    "nagle-delayed-ack",
    "nagle",
    "cork",
    "delayed-ack-cwnd",
    "slow-start",
    "slow-start-after-idle",
    "congestion-window",
    "receive-window",
    "receiver-think",
    "send-buffer",
];

#[test]
fn what_is_cited_of_a_wait_spans_it() {
    if !has_tools() {
        return;
    }
    let dir = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
    let mut waits = 0;
    for name in RECORDINGS {
        for end in ["client", "server"] {
            let path = recording(dir.path(), name, end);
            let frames = frames(&path);
            let at = |packet: &Value| -> f64 {
                frames[&packet.as_u64().unwrap_or(0)].1.parse().unwrap_or_else(|error| panic!("{error}"))
            };
            let document = document(&[&path], &[]);
            let connections = document["connections"].as_array().into_iter().flatten();
            let exchanges = connections.filter_map(|connection| connection["exchanges"].as_array()).flatten();
            for line in exchanges.filter_map(|exchange| exchange["bill"].as_array()).flatten() {
                let is_hold = HOLDS.iter().any(|cause| line["cause"] == *cause);
                if !is_hold || line["detail"]["waits"] != 1 {
                    continue;
                }
                let cited = line["evidence"].as_array().unwrap_or_else(|| panic!("{line}"));
                let (Some(first), Some(last)) = (cited.first(), cited.last()) else { panic!("{line}") };
                let gap_ns = (at(last) - at(first)) * 1e9;
                let ns = line["ns"].as_f64().unwrap_or(f64::MAX);
                // Times as 64-bit floats are off by a microsecond.
                assert!(gap_ns + 2e3 >= ns, "{name} at the {end}: {gap_ns} ns between them\n{line}");
                waits += 1;
            }
        }
    }
    println!("{waits} waits");
    assert!(waits > 50, "{waits} waits");
}

/// Pasted into Wireshark, the filter of a finding shows the gap.
#[test]
fn the_display_filter_of_a_finding_shows_its_gap() {
    if !has_tools() {
        return;
    }
    let dir = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
    for (name, end, at_least) in [("split", "client", 0.047), ("lost-request", "client", 0.220)] {
        let path = recording(dir.path(), name, end);
        let mut tcpwhy = Command::new(env!("CARGO_BIN_EXE_tcpwhy"));
        let said = run(tcpwhy.arg("read").arg(&path)).unwrap_or_default();
        let filter = said.lines().find_map(|line| line.trim().strip_prefix("packets")).map(str::trim);
        let filter = filter.and_then(|filter| filter.split_inclusive('}').next());
        let filter = filter.unwrap_or_else(|| panic!("{said}"));
        let mut tshark = Command::new("tshark");
        tshark.arg("-r").arg(&path).args(["-Y", filter, "-T", "fields", "-e", "frame.time_delta_displayed"]);
        let gaps = run(&mut tshark).unwrap_or_default();
        let longest = gaps.lines().filter_map(|gap| gap.parse::<f64>().ok()).fold(0.0, f64::max);
        assert!(longest >= at_least, "{name}: {longest} s with {filter}\n{said}");
    }
}

/// A packet of a ladder, as text shows it.
struct Row {
    frame: String,
    ms: f64,
    /// Sequence number and length, if shown.
    data: Option<(i64, i64)>,
    ack: Option<i64>,
    /// The window, and whether it is one whose scale is unknown.
    window: Option<(i64, bool)>,
}

fn rows(shown: &str) -> Vec<Row> {
    let number = |text: &str| text.replace(',', "").parse::<i64>().ok();
    let mut rows = Vec::new();
    for line in shown.lines().skip_while(|line| !line.contains("  frame  ")).skip(1) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let Some(ms) = words.first().and_then(|ms| ms.replace(',', "").parse().ok()) else { continue };
        let data = words.iter().find_map(|word| {
            let (seq, len) = word.split_once('+')?;
            Some((number(seq)?, number(len)?))
        });
        let behind = |name: &str| words.iter().position(|word| *word == name).map(|at| &words[at + 1..]);
        let ack = behind("ack").and_then(|rest| number(rest.first()?));
        let window =
            behind("win").and_then(|rest| Some((number(rest.first()?)?, rest.get(1) == Some(&"raw"))));
        rows.push(Row { frame: words[1].to_owned(), ms, data, ack, window });
    }
    rows
}

/// Compares rows with the frames that they name.
fn compare_rows(
    rows: &[Row],
    frame_of: &dyn Fn(&str) -> u64,
    frames: &BTreeMap<u64, (u64, String, [i64; 5])>,
) {
    let at = |row: &Row| -> f64 {
        frames[&frame_of(&row.frame)].1.parse().unwrap_or_else(|error| panic!("{error}"))
    };
    for row in rows {
        let (_, _, [seq, ack, len, window, factor]) = frames[&frame_of(&row.frame)];
        let since_ms = (at(row) - at(&rows[0])) * 1e3;
        assert!((since_ms - (row.ms - rows[0].ms)).abs() < 0.002, "frame {}: {since_ms} ms", row.frame);
        assert!(row.data.is_none_or(|data| data == (seq, len)), "frame {}: {:?}", row.frame, row.data);
        assert!(row.ack.is_none_or(|shown| shown == ack), "frame {}: {:?}", row.frame, row.ack);
        // -1: Wireshark does not know the scale. A SYN has none.
        let (is_raw, window) = (factor == -1, window * factor.max(1));
        if let Some(shown) = row.window {
            assert_eq!(shown, (window, is_raw), "frame {}: window", row.frame);
        }
    }
}

/// The ladder that `-v` shows of a connection.
fn text_ladder(files: &[&Path], args: &[&str]) -> Vec<Row> {
    let mut tcpwhy = Command::new(env!("CARGO_BIN_EXE_tcpwhy"));
    let shown = run(tcpwhy.arg("read").args(files).args(args).arg("-v")).unwrap_or_default();
    let rows = rows(&shown);
    assert!(rows.iter().filter(|row| row.data.is_some() && row.window.is_some()).count() > 2, "{shown}");
    assert!(!shown.contains("sequence"), "{shown}");
    rows
}

/// Twenty ladders as text: the whole file, what a filter leaves of it, and its second half, whose handshake
/// is not read.
#[test]
fn ladders_as_text_are_what_wireshark_shows() {
    if !has_tools() {
        return;
    }
    let dir = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
    let (mut ladders, mut compared) = (0, 0);
    for name in RECORDINGS {
        for end in ["client", "server"] {
            let path = recording(dir.path(), name, end);
            let frames_of_file = frames(&path);
            let plain = |name: &str| name.parse::<u64>().unwrap_or(0);
            let whole = text_ladder(&[&path], &["-c", "1"]);
            compare_rows(&whole, &plain, &frames_of_file);
            let port =
                document(&[&path], &["-c", "1"])["connections"][0]["client"].as_str().map(str::to_owned);
            let port =
                port.as_deref().and_then(|client| client.rsplit(':').next()).unwrap_or_default().to_owned();
            let filtered = text_ladder(&[&path], &["-c", "1", "--filter", &format!("tcp port {port}")]);
            assert_eq!(filtered.len(), whole.len(), "{name} at the {end}");
            compare_rows(&filtered, &plain, &frames_of_file);
            compared += whole.len() + filtered.len() + from_the_middle(&path, &whole, &frames_of_file);
            ladders += 3;
        }
    }
    println!("{ladders} ladders, {compared} rows as in tshark");
    assert!(ladders == 60 && compared > 5_000, "{ladders} ladders, {compared} rows");
}

/// `--from` the middle of the connection: as Wireshark shows the whole file. Returns how many rows were
/// compared.
fn from_the_middle(path: &Path, whole: &[Row], frames: &BTreeMap<u64, (u64, String, [i64; 5])>) -> usize {
    let middle: u64 = whole[whole.len() / 2].frame.parse().unwrap_or(0);
    // Just before that frame, and after the one before it.
    let time = |frame: u64| -> f64 {
        let times = frames.get(&frame).map(|frame| frame.1.as_str());
        times
            .and_then(|time| time.parse().ok())
            .unwrap_or_else(|| panic!("frame {frame} of {}", path.display()))
    };
    let between = f64::midpoint(time(middle), time(middle - 1)) - time(1);
    let part = text_ladder(&[path], &["-c", "1", "--from", &format!("+{between:.7}")]);
    let first = part[0].frame.parse::<u64>().unwrap_or(0);
    assert!(first >= middle, "{}: from {first}, not {middle}", path.display());
    compare_rows(&part, &|name| name.parse::<u64>().unwrap_or(0), frames);
    part.len()
}

/// Several files: each row names its file's frame.
#[test]
fn ladders_of_several_files_name_the_frame_and_the_file() {
    if !has_tools() {
        return;
    }
    let dir = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
    let whole = recording(dir.path(), "split", "client");
    let (first, second) = (dir.path().join("ring1.pcapng"), dir.path().join("ring2.pcapng"));
    run(Command::new("editcap").arg("-r").args([&whole, &first]).arg("1-60"));
    run(Command::new("editcap").arg("-r").args([&whole, &second]).arg("61-100000"));
    let other = recording(dir.path(), "burst-whole", "client");
    let ladder = |files: &[&Path], connection: &str| {
        let mut tcpwhy = Command::new(env!("CARGO_BIN_EXE_tcpwhy"));
        run(tcpwhy.arg("read").args(files).args(["-c", connection, "-v"])).unwrap_or_default()
    };
    // One connection across two files of a ring: file and frame.
    let shown = ladder(&[&first, &second], "1");
    assert!(shown.contains("Frames by file: 1: ") && shown.contains("ring2.pcapng"), "{shown}");
    let pieces = rows(&shown);
    let frames_of_whole = frames(&whole);
    assert_eq!(pieces.len(), frames_of_whole.len());
    let frame_of_whole = |name: &str| -> u64 {
        let (file, frame) = name.split_once(':').unwrap_or_else(|| panic!("{name}"));
        frame.parse::<u64>().unwrap_or(0) + if file == "2" { 60 } else { 0 }
    };
    compare_rows(&pieces, &frame_of_whole, &frames_of_whole);
    assert!(pieces.iter().any(|row| row.frame == "1:60") && pieces.iter().any(|row| row.frame == "2:1"));
    // Two captures of different connections: each has its file's frames.
    for (connection, path) in [("1", &whole), ("2", &other), ("1", &other), ("2", &whole)] {
        let shown = ladder(&[&whole, &other], connection);
        if shown.contains(&format!("Frames of {}.", path.display())) {
            let frames = frames(path);
            compare_rows(&rows(&shown), &|name| name.parse().unwrap_or(0), &frames);
        } else {
            assert!(shown.contains("Frames of "), "{shown}");
        }
    }
}
