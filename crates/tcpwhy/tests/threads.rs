//! Do threads or shortcuts change anything but the time? Every byte of the output is the same with
//! 1, 2 and 8 threads, over the corpus of recordings and over generated captures of several epochs;
//! every report equals that of the model without shortcuts.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use tcpwhy::input::{self, Inputs};
use tcpwhy::threads::Engine;
use tcpwhy_core::report::{Connection, Servers};
use tcpwhy_core::{Analysis, LADDERS_MAX, Listing, Options, Report, stands_for, thinned};
use tcpwhy_gen::{Generator, Hostile, Shape};
use tcpwhy_wire::Segment;
use tcpwhy_wire::capture::LinkType;
use tcpwhy_wire::capture::writer::PcapWriter;

/// Several epochs, the last one not full.
const PACKETS: u64 = 100_000;

#[test]
fn recordings_give_the_same_bytes() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus");
    let files = recordings(&corpus);
    assert!(files.len() > 100, "the corpus is in {}", corpus.display());
    // All in one run are a capture of many hosts; one by one, some of them show their own bills.
    same(&files, &["--json"]);
    same(&files, &[]);
    for file in files.iter().step_by(5) {
        same(std::slice::from_ref(file), &["--json"]);
        same(std::slice::from_ref(file), &[]);
    }
}

#[test]
fn recordings_give_the_report_of_the_plain_model() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus");
    for file in recordings(&corpus) {
        let files = [file];
        let mut analyses = [false, true].map(|plain| {
            Analysis::new(Options { listing: Listing::UpTo(u64::MAX), plain, ..Options::default() })
        });
        let take = |segment: &Segment, captured: &[u8]| {
            for analysis in &mut analyses {
                analysis.on_captured(segment, captured);
            }
        };
        let summary = Inputs::open(&files).for_each_captured(&input::Options::default(), |_| {}, take);
        assert!(!summary.is_failure(), "{files:?}");
        let [short, plain] = analyses.map(Analysis::finish);
        assert!(short == plain, "{files:?}: shortcuts change the report");
    }
}

#[test]
fn generated_captures_give_the_same_bytes() {
    let directory = tempfile::tempdir().expect("a directory");
    for shape in Shape::ALL {
        let file = directory.path().join(format!("{shape}.pcap"));
        generate(shape, &file);
        let file = std::slice::from_ref(&file);
        same(file, &["--json"]);
        same(file, &[]);
        same(file, &["--json", "--max-connections", "300"]);
    }
}

/// Several threads look for the packets of the drawn connections, and finished parts are deflated
/// while the rest is written.
#[test]
fn pages_of_generated_captures_are_the_same_bytes() {
    let directory = tempfile::tempdir().expect("a directory");
    for shape in Shape::ALL {
        let file = directory.path().join(format!("{shape}.pcap"));
        generate(shape, &file);
        let page = |threads| {
            let page = directory.path().join(format!("{threads}.html"));
            read(std::slice::from_ref(&file), &["--html", &page.to_string_lossy()], threads);
            std::fs::read(page).expect("a page")
        };
        let one = page(1);
        for threads in [2, 3, 8] {
            assert!(one == page(threads), "{shape}: the page of {threads} threads differs from 1's");
        }
    }
}

/// More servers than have their own findings, and more connections than are kept.
#[test]
fn what_is_given_up_is_the_same_with_any_number_of_threads() {
    let directory = tempfile::tempdir().expect("a directory");
    for hostile in [Hostile::Servers, Hostile::Open, Hostile::Flights] {
        let file = directory.path().join(format!("{}.pcap", hostile.name()));
        let mut to = BufWriter::new(File::create(&file).expect("a file"));
        hostile.write(PACKETS, &mut to).expect("a capture");
        to.flush().expect("a capture");
        let file = std::slice::from_ref(&file);
        same(file, &[]);
        same(file, &["--json", "--max-connections", "1000"]);
    }
}

/// Every hostile shape: the report must not depend on where state is kept or which thread works
/// when.
#[test]
fn threads_and_seeds_change_no_report_of_hostile_captures() {
    for &hostile in Hostile::ALL {
        // In these, each segment is some dozens of requests.
        let is_full = matches!(hostile, Hostile::Unanswered | Hostile::Reversed | Hostile::SameNumber);
        let segments = segments(hostile, if is_full { 12_000 } else { 60_000 });
        for listing in [Listing::UpTo(2_000), Listing::Thinned(2_000)] {
            let options =
                Options { listing, max_connections: 1_500, memory: 64_000_000, ..Options::default() };
            same_report(hostile.name(), &segments, options, &[(1, 1), (3, 2), (8, 3)]);
        }
    }
}

/// If bytes bound the connections, the number that may begin in an epoch follows from what the
/// earlier ones left; one more thread must not mean one connection fewer.
#[test]
fn a_bound_in_bytes_is_the_same_with_any_number_of_threads() {
    for hostile in [Hostile::Mss, Hostile::Once, Hostile::Regulars, Hostile::SynFlood] {
        let segments = segments(hostile, 120_000);
        let options = Options { listing: Listing::UpTo(2_000), memory: 32_000_000, ..Options::default() };
        same_report(hostile.name(), &segments, options, &[(1, 1), (2, 1), (8, 1)]);
    }
}

/// The page's sample of a long capture covers and represents all of it, however the work is
/// divided.
#[test]
fn a_sample_is_of_the_whole_capture_and_the_same_with_any_number_of_threads() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("rpc.pcap");
    generate(Shape::Rpc, &file);
    let mut segments = Vec::new();
    let take = |segment: &Segment, _: &[u8]| segments.push(*segment);
    Inputs::open(&[&file]).for_each_captured(&input::Options::default(), |_| {}, take);
    let mut first: Option<Report> = None;
    for (threads, seed) in [(1, 1), (2, 2), (3, 3)] {
        let options = Options { listing: Listing::Thinned(1_000), seed, ..Options::default() };
        let mut engine = Engine::new(options, threads);
        for segment in &segments {
            engine.on_segment(segment, &[]);
        }
        let report = engine.finish();
        assert!(first.get_or_insert_with(|| report.clone()) == &report, "{threads} threads, seed {seed}");
    }
    let Some(report) = first else { panic!("nothing was read") };
    let listed: Vec<_> = report.connections.iter().flat_map(|connection| &connection.exchanges).collect();
    assert!((300..=1_000).contains(&listed.len()), "{} are listed", listed.len());
    let all = report.setups + report.exchanges + report.one_way + report.subscriptions;
    let stands = stands_for(&report);
    assert_eq!((stands.len(), stands.iter().sum::<u64>()), (listed.len(), all));
    let span = [segments[0].at, segments[segments.len() - 1].at];
    let late = listed.iter().filter(|exchange| exchange.start - span[0] > span[1] - exchange.start).count();
    assert!(late * 3 > listed.len(), "{late} of {} are of the second half", listed.len());
    // Extrapolated from the sample, the bill is close to the real one.
    let whole = report.elapsed.as_nanos() as f64;
    let told: f64 =
        listed.iter().zip(&stands).map(|(exchange, k)| exchange.elapsed.as_nanos() as f64 * *k as f64).sum();
    assert!((told / whole - 1.0).abs() < 0.1, "{told} instead of {whole} ns");
}

/// Connections of which nothing can be shown are dropped as they end; the list is the same as if
/// nothing had been dropped early.
#[test]
fn what_is_left_out_early_is_what_is_left_out_at_the_end() {
    let directory = tempfile::tempdir().expect("a directory");
    for (shape, most) in [(Shape::Churn, 500), (Shape::Churn, 4_000), (Shape::Rpc, 500)] {
        let file = directory.path().join("capture.pcap");
        generate(shape, &file);
        let segments = with_stragglers(&file);
        let analyse = |listing, threads| {
            let mut engine = Engine::new(Options { listing, ..Options::default() }, threads);
            for segment in &segments {
                engine.on_segment(segment, &[]);
            }
            engine.finish()
        };
        let all = analyse(Listing::UpTo(u64::MAX), 1);
        let mut wanted = thinned(&all, most, None);
        let mut costs: Vec<_> =
            all.connections.iter().map(|connection| (Reverse(connection.cost()), connection.id)).collect();
        costs.sort_unstable();
        let worst = all.findings.iter().map(|finding| finding.worst.0);
        let shown: BTreeSet<u64> =
            costs.iter().take(4 * LADDERS_MAX).map(|(_, id)| *id).chain(worst).collect();
        let others = all.connections.iter().filter(|connection| {
            shown.contains(&connection.id) && wanted.connection(connection.id).is_none()
        });
        let others: Vec<_> =
            others.map(|other| Connection { exchanges: Vec::new(), ..other.clone() }).collect();
        wanted.connections.extend(others);
        wanted.connections.sort_unstable_by_key(|connection| connection.id);
        wanted.omitted.connections = all.connections.len() as u64 - wanted.connections.len() as u64;
        assert!(wanted.omitted.connections > 0 || shape != Shape::Churn, "none is left out");
        for finding in &all.findings {
            if let Servers::One(server) = finding.servers {
                let asks = all.connections.iter().filter(|connection| connection.server == server);
                let hosts: BTreeSet<_> = asks.map(|connection| connection.client.ip()).collect();
                wanted.clients.insert(server, hosts.len() as u64);
            }
        }
        for threads in [1, 3] {
            let report = analyse(Listing::Thinned(most), threads);
            assert!(report.thinned > 0 && report == wanted, "{shape}, {most} exchanges, {threads} threads");
        }
    }
}

/// The segments of a capture, with some of the FINs repeated much later, which count for
/// connections that are over.
fn with_stragglers(file: &Path) -> Vec<Segment> {
    let mut segments = Vec::new();
    let take = |segment: &Segment, _: &[u8]| segments.push(*segment);
    Inputs::open(&[file]).for_each_captured(&input::Options::default(), |_| {}, take);
    let late = segments.iter().enumerate().filter(|(at, segment)| segment.flags.fin() && at % 7 == 0);
    let late: Vec<(usize, Segment)> = late.map(|(at, segment)| (at + 20_000, *segment)).collect();
    for (at, straggler) in late.into_iter().rev() {
        if let Some(after) = segments.get(at).map(|segment| segment.at) {
            segments.insert(at, Segment { at: after, ..straggler });
        }
    }
    segments.iter_mut().zip(1..).for_each(|(segment, packet)| segment.packet = packet);
    segments
}

/// Analyses with these numbers of threads and seeds give the same report.
fn same_report(name: &str, segments: &[(Segment, Vec<u8>)], options: Options, ways: &[(usize, u64)]) {
    let mut first = None;
    for &(threads, seed) in ways {
        let mut engine = Engine::new(Options { seed, ..options }, threads);
        for (segment, captured) in segments {
            engine.on_segment(segment, captured);
        }
        let report = engine.finish();
        let first = first.get_or_insert_with(|| report.clone());
        assert!(*first == report, "{name}: {threads} threads, seed {seed}");
    }
}

/// Its segments, with the captured part of each one's payload.
fn segments(hostile: Hostile, packets: u64) -> Vec<(Segment, Vec<u8>)> {
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    let mut to = BufWriter::new(file.as_file_mut());
    hostile.write(packets, &mut to).expect("a capture");
    to.flush().expect("a capture");
    drop(to);
    let mut segments = Vec::new();
    let take = |segment: &Segment, captured: &[u8]| segments.push((*segment, captured.to_vec()));
    Inputs::open(&[file.path()]).for_each_captured(&input::Options::default(), |_| {}, take);
    segments
}

fn same(files: &[PathBuf], options: &[&str]) {
    let one = read(files, options, 1);
    for threads in [2, 8] {
        assert!(
            one == read(files, options, threads),
            "{options:?} of {files:?}: {threads} threads differ from 1"
        );
    }
}

fn read(files: &[PathBuf], options: &[&str], threads: u32) -> Vec<u8> {
    let output = Command::new(env!("CARGO_BIN_EXE_tcpwhy"))
        .args(["read", "--threads", &threads.to_string()])
        .args(options)
        .args(files)
        .output()
        .expect("tcpwhy runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

fn recordings(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files.extend(recordings(&path));
        } else if path.to_string_lossy().ends_with(".pcapng.zst") {
            files.push(path);
        }
    }
    files.sort();
    files
}

fn generate(shape: Shape, file: &Path) {
    let mut out = BufWriter::new(File::create(file).expect("a file"));
    let mut writer = PcapWriter::new(LinkType::ETHERNET, shape.snaplen());
    let mut generator = Generator::new(shape, PACKETS, 1);
    while let Some(packet) = generator.next() {
        writer.packet(packet.at, packet.original_len, packet.data);
        out.write_all(writer.bytes()).expect("room");
        writer.clear();
    }
    out.flush().expect("room");
}
