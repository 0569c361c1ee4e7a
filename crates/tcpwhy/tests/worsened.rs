//! Is the bill of a worse capture ever more confident than that of a whole one? Every recording of the corpus
//! is degraded on purpose: its beginning is cut off, one direction is left out, packets are thinned, the
//! clock is coarse, each packet is seen twice. Whatever its bill claims of an exchange must be what the bill
//! of the whole capture claims, or be called possible, or stay unexplained.
#![cfg(target_os = "linux")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use tcpwhy::input::{self, Inputs};
use tcpwhy_core::report::{Confidence, Connection, Exchange, Line};
use tcpwhy_core::{Analysis, Cause, Listing, Options, Report, Side};
use tcpwhy_wire::{Duration, Endpoint, Instant, Segment};

const OTHERS: &str = "TCPWHY_WORSEN";
/// Longer captures would take too long.
const LONGEST: usize = 400_000;
/// Lines may differ by this, or by `PER_CENT` of the exchange's time, whichever is more.
const TOLERANCE: Duration = Duration::from_millis(1);
const PER_CENT: i64 = 2;
/// The time of a program, a path or a handshake is no mechanism's doing.
const NO_MECHANISM: [Cause; 8] = [
    Cause::RoundTrip,
    Cause::Handshake,
    Cause::TlsHandshake,
    Cause::Bandwidth,
    Cause::Queueing,
    Cause::ServerThink,
    Cause::SenderThink,
    Cause::Unexplained,
];

/// A degraded capture.
#[derive(Default)]
struct Worse {
    segments: Vec<Segment>,
    /// The original number of each packet.
    was: Vec<u64>,
}

impl Worse {
    fn of(mut segments: Vec<Segment>) -> Self {
        segments.sort_by_key(|segment| segment.at); // stable
        let was = segments.iter().map(|segment| segment.packet).collect();
        for (segment, packet) in segments.iter_mut().zip(1..) {
            segment.packet = packet;
        }
        Self { segments, was }
    }

    fn number(&self, packet: u64) -> u64 {
        usize::try_from(packet).ok().and_then(|n| self.was.get(n.wrapping_sub(1)).copied()).unwrap_or(0)
    }
}

/// What is done to a capture, and at most how many exchanges come out with more confidence, as something
/// else, and with a new mechanism. If a rule reduces a number, lower it here.
type Worsening = (&'static str, fn(&[Segment]) -> Vec<Segment>, [u64; 3]);

/// Its segments are read from a separate file.
const CUT: &str = "64 bytes of each frame";

const WORSENINGS: &[Worsening] = &[
    ("without the first packet", |all| without_first(all, 1), [1, 22, 2]),
    ("without the first 12", |all| without_first(all, 12), [0, 2, 0]),
    ("without the first 100", |all| without_first(all, 100), [0, 15, 0]),
    ("from the middle on", |all| without_first(all, all.len() / 2), [0, 2, 0]),
    ("the client's packets only", |all| one_direction(all, true), [0, 4, 0]),
    ("the server's packets only", |all| one_direction(all, false), [0, 0, 0]),
    ("every 50th packet missing", |all| thinned(all, 50), [2, 1, 8]),
    ("a clock of milliseconds", whole_milliseconds, [1, 0, 1]),
    ("each packet twice", |all| twice(all, false), [0, 0, 0]),
    ("twice, cut differently", |all| twice(all, true), [0, 0, 0]),
    ("super-segments split", split, [6, 1, 0]),
    ("segments merged", merged, [0, 0, 0]),
    (CUT, |all| all.to_vec(), [8, 5, 10]),
    // Acknowledgements that show a path to vary, so that a handshake is no longer certain, may all be in that quarter.
    ("without the last quarter", |all| all.get(..all.len() * 3 / 4).unwrap_or_default().to_vec(), [3, 0, 0]),
    ("in bunches of 250 µs", bunches, [5, 103, 1]),
    ("out of order by 20 µs", two_queues, [1, 0, 0]),
    ("twice, up to 3 ms apart", twice_far_apart, [0, 0, 0]),
    ("twice on one host", twice_on_one_host, [0, 0, 0]),
];

fn thinned(all: &[Segment], every: u64) -> Vec<Segment> {
    all.iter().filter(|segment| !segment.packet.is_multiple_of(every)).copied().collect()
}

fn whole_milliseconds(all: &[Segment]) -> Vec<Segment> {
    let whole = |at: Instant| Instant::from_nanos(at.as_nanos().div_euclid(1_000_000) * 1_000_000);
    all.iter().map(|segment| Segment { at: whole(segment.at), ..*segment }).collect()
}

/// As delivered by an interface that interrupts no more often: all packets of a batch have the time of its
/// end.
fn bunches(all: &[Segment]) -> Vec<Segment> {
    let mut end = Instant::MIN;
    let mut at = |segment: &Segment| {
        if segment.at > end {
            end = segment.at + Duration::from_micros(250);
        }
        end
    };
    all.iter().map(|segment| Segment { at: at(segment), ..*segment }).collect()
}

/// As delivered by two queues of an interface, each with its own delay.
fn two_queues(all: &[Segment]) -> Vec<Segment> {
    let late = |segment: &Segment| Duration::from_micros((segment.packet * 7919 % 20) as i64);
    all.iter().map(|segment| Segment { at: segment.at + late(segment), ..*segment }).collect()
}

/// Each packet a second time, after a firewall or tunnel that delayed it by 0.2 to 3 ms.
fn twice_far_apart(all: &[Segment]) -> Vec<Segment> {
    let later = |segment: &Segment| Duration::from_micros((200 + segment.packet * 7919 % 2800) as i64);
    let again = |segment: &Segment| Segment {
        at: segment.at + later(segment),
        ttl: segment.ttl.wrapping_sub(1),
        ..*segment
    };
    all.iter().flat_map(|segment| [*segment, again(segment)]).collect()
}

/// As `-i any` sees packets that cross a bridge: no router in between.
fn twice_on_one_host(all: &[Segment]) -> Vec<Segment> {
    let later = |segment: &Segment| Duration::from_micros(1 + (segment.packet * 7919 % 100) as i64);
    all.iter()
        .flat_map(|segment| [*segment, Segment { at: segment.at + later(segment), ..*segment }])
        .collect()
}

fn without_first(all: &[Segment], count: usize) -> Vec<Segment> {
    all.get(count..).unwrap_or_default().to_vec()
}

fn one_direction(all: &[Segment], of_client: bool) -> Vec<Segment> {
    let clients: Vec<Endpoint> = all
        .iter()
        .filter(|segment| segment.flags.syn() && !segment.flags.ack())
        .map(|segment| segment.src)
        .collect();
    let known = |end: &Endpoint| clients.contains(end);
    let seen = |segment: &&Segment| known(&segment.src) || known(&segment.dst);
    all.iter().filter(seen).filter(|segment| known(&segment.src) == of_client).copied().collect()
}

/// Payload of the largest segments that both ends of each connection take; the latest values if ports were
/// reused.
fn sizes(all: &[Segment]) -> BTreeMap<[Endpoint; 2], u32> {
    let mut sizes = BTreeMap::new();
    for segment in all.iter().filter(|segment| segment.flags.syn()) {
        let stamps = if segment.options.timestamps.is_some() { 12 } else { 0 };
        let size = segment.options.mss.map_or(ETHERNET, u32::from) - stamps;
        let of_both = sizes.entry(ends(segment)).or_insert(size);
        *of_both = size.min(*of_both);
    }
    sizes
}

const ETHERNET: u32 = 1460;

fn ends(segment: &Segment) -> [Endpoint; 2] {
    [segment.src.min(segment.dst), segment.src.max(segment.dst)]
}

/// As many segments as were on the wire, where offloading made one of them in the capture.
fn pieces(segment: &Segment, most: u32) -> impl Iterator<Item = Segment> {
    let whole = *segment;
    (0..whole.payload_len.max(1)).step_by(most as usize).enumerate().map(move |(n, offset)| {
        let len = most.min(whole.payload_len - offset);
        let mut piece = Segment { seq: whole.seq + offset, payload_len: len, ..whole };
        piece.ip_id = whole.ip_id.map(|id| id.wrapping_add(n as u16));
        if offset + len < whole.payload_len {
            piece.flags.0 &= !(tcpwhy_wire::Flags::PSH | tcpwhy_wire::Flags::FIN);
        }
        piece
    })
}

fn split(all: &[Segment]) -> Vec<Segment> {
    let sizes = sizes(all);
    let most = |segment: &Segment| sizes.get(&ends(segment)).copied().unwrap_or(ETHERNET - 12);
    all.iter().flat_map(|segment| pieces(segment, most(segment))).collect()
}

/// Segments that follow at once are merged as the receiver's offloading does: up to one with PSH, never
/// beyond 64 KB.
fn merged(all: &[Segment]) -> Vec<Segment> {
    const AT_ONCE: Duration = Duration::from_micros(50);
    let mut out: Vec<Segment> = Vec::new();
    for segment in all {
        let goes_on = |last: &&mut Segment| {
            let plain = |one: &Segment| one.flags.0 & !tcpwhy_wire::Flags::PSH == tcpwhy_wire::Flags::ACK;
            (last.src, last.dst, last.ack, last.options.timestamps.map(|stamps| stamps.val))
                == (
                    segment.src,
                    segment.dst,
                    segment.ack,
                    segment.options.timestamps.map(|stamps| stamps.val),
                )
                && plain(last)
                && plain(segment)
                && !last.flags.psh()
                && last.payload_len > 0
                && segment.payload_len > 0
                && last.seq + last.payload_len == segment.seq
                && last.payload_len + segment.payload_len < 65_000
                && segment.at - last.at <= AT_ONCE
        };
        if let Some(last) = out.last_mut().filter(goes_on) {
            let (seq, payload_len) = (last.seq, last.payload_len + segment.payload_len);
            *last = Segment { seq, payload_len, ip_id: last.ip_id, ..*segment };
        } else {
            out.push(*segment);
        }
    }
    out
}

/// Each packet a second time, up to 2 ms later and one hop further; that copy of a super-segment in pieces.
fn twice(all: &[Segment], in_pieces: bool) -> Vec<Segment> {
    let mut seen = Vec::with_capacity(2 * all.len());
    for segment in all {
        seen.push(*segment);
        let later = Duration::from_micros((segment.packet * 7919 % 2000) as i64);
        let again =
            Segment { at: segment.at + if in_pieces { later.divided_by(20) } else { later }, ..*segment };
        let again = Segment { ttl: again.ttl.wrapping_sub(1), ..again };
        if in_pieces {
            let stamps = if segment.options.timestamps.is_some() { 12 } else { 0 };
            seen.extend(pieces(&again, ETHERNET - stamps));
        } else {
            seen.push(again);
        }
    }
    seen
}

/// What became of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    /// As in the whole capture.
    Same,
    /// Less is claimed.
    Less,
    /// No exchange of the whole capture has the same packets.
    CutOtherwise,
    /// The same, with more confidence.
    Surer,
    /// Something else is claimed.
    Else,
    /// A mechanism that the whole connection does not have, even if only as possible.
    NewMechanism,
}

const OUTCOMES: [Outcome; 6] = [
    Outcome::Same,
    Outcome::Less,
    Outcome::CutOtherwise,
    Outcome::Surer,
    Outcome::Else,
    Outcome::NewMechanism,
];

fn tolerance(exchange: &Exchange) -> Duration {
    TOLERANCE.max(exchange.elapsed.times(PER_CENT).divided_by(100))
}

/// Sides are named by the end they are in the whole capture.
fn side(line: &Line, swapped: bool) -> Side {
    if swapped { line.side.peer() } else { line.side }
}

fn compare(
    worse: &Exchange,
    swapped: bool,
    whole: &Exchange,
    connection: &Connection,
    slack: Duration,
) -> (Outcome, Option<String>) {
    let tolerance = tolerance(worse).max(tolerance(whole)) + slack;
    let mut outcome = Outcome::Same;
    let mut why = None;
    let mut raise = |to: Outcome, line: &Line| {
        if to > outcome {
            outcome = to;
            why = Some(said(line));
        }
    };
    for line in &worse.bill {
        // If no record can be read, a session's setup is round trips.
        let of_session = |there: &Line| line.cause == Cause::RoundTrip && there.cause == Cause::TlsHandshake;
        let same = |there: &&Line| {
            there.cause == line.cause && there.side == side(line, swapped) || of_session(there)
        };
        let lines = || whole.bill.iter().filter(same);
        let had: Duration = lines().map(|there| there.ns).sum();
        let sure = lines().map(|there| there.confidence).max().unwrap_or(Confidence::Possible);
        let anywhere: Duration =
            connection.bill.iter().filter(|total| total.cause == line.cause).map(|total| total.ns).sum();
        let differs = line.ns - had > tolerance;
        if line.ns <= tolerance {
            continue;
        }
        if !NO_MECHANISM.contains(&line.cause) && !anywhere.is_positive() {
            raise(Outcome::NewMechanism, line);
        } else if line.cause == Cause::Unexplained || line.confidence == Confidence::Possible {
            raise(Outcome::Less, line);
        } else if differs {
            raise(Outcome::Else, line);
        } else if line.confidence > sure {
            raise(Outcome::Surer, line);
        }
    }
    (outcome, why)
}

/// What only the other direction's packets show cannot be known.
fn claims(exchange: &Exchange) -> (Outcome, Option<String>) {
    let claim = |line: &&Line| {
        line.confidence > Confidence::Possible
            && line.cause != Cause::Unexplained
            && line.ns > tolerance(exchange)
    };
    match exchange.bill.iter().find(claim) {
        Some(line) => (Outcome::Else, Some(said(line))),
        None => (Outcome::Less, None),
    }
}

fn said(line: &Line) -> String {
    format!("{} ({}) {} {}", line.cause, line.side, line.ns, line.confidence.name())
}

/// How many exchanges came out how, by kind of degradation, with examples.
#[derive(Default)]
struct Tally {
    counts: BTreeMap<(usize, Outcome), u64>,
    examples: BTreeMap<(usize, Outcome), BTreeMap<String, Vec<String>>>,
}

impl Tally {
    fn add(&mut self, kind: usize, name: &str, whole: &Report, report: &Report, worse: &Worse) {
        let slack =
            if WORSENINGS[kind].0.contains("milliseconds") { TOLERANCE.times(2) } else { Duration::ZERO };
        for connection in &report.connections {
            for exchange in &connection.exchanges {
                let range = exchange.packets.map(|packet| worse.number(packet));
                let found = whole.connections.iter().find_map(|there| {
                    let swapped = there.client == connection.server && there.server == connection.client;
                    let same = there.client == connection.client && there.server == connection.server;
                    let mut exchanges = there.exchanges.iter().filter(|_| same || swapped);
                    let partner = exchanges.find(|e| e.kind == exchange.kind && e.packets == range)?;
                    Some((swapped, partner, there))
                });
                let (outcome, why) = match found {
                    _ if WORSENINGS[kind].0.ends_with("only") => claims(exchange),
                    Some((swapped, partner, there)) => compare(exchange, swapped, partner, there, slack),
                    None => (Outcome::CutOtherwise, None),
                };
                *self.counts.entry((kind, outcome)).or_default() += 1;
                if outcome >= Outcome::Surer {
                    let why = why.unwrap_or_default();
                    let cause = why.split(' ').next().unwrap_or_default().to_owned();
                    let of = self.examples.entry((kind, outcome)).or_default().entry(cause).or_default();
                    of.push(format!("{name} {} {range:?}: {why}", exchange.kind.name()));
                }
            }
        }
    }

    /// Some of each kind; all for captures from outside the corpus.
    fn examples(&self) -> String {
        let most = if std::env::var_os(OTHERS).is_some() { usize::MAX } else { 6 };
        let mut text = String::new();
        for ((kind, outcome), causes) in &self.examples {
            for (cause, of) in causes {
                let _ = writeln!(text, "{}: {outcome:?} {cause}: {}", WORSENINGS[*kind].0, of.len());
                for example in of.iter().step_by(of.len().div_ceil(most)) {
                    let _ = writeln!(text, "    {example}");
                }
            }
        }
        text
    }

    fn table(&self) -> String {
        let mut text =
            "| worsened | the same | less | cut otherwise | more certain | something else | new mechanism |\n"
                .to_owned();
        text += "|---|---|---|---|---|---|---|\n";
        for (kind, (name, ..)) in WORSENINGS.iter().enumerate() {
            let _ = write!(text, "| {name} |");
            for outcome in OUTCOMES {
                let _ = write!(text, " {} |", self.counts.get(&(kind, outcome)).unwrap_or(&0));
            }
            text.push('\n');
        }
        text
    }
}

fn analyse(segments: &[Segment]) -> Report {
    let mut analysis = Analysis::new(Options { listing: Listing::UpTo(u64::MAX), ..Options::default() });
    for segment in segments {
        analysis.on_segment(segment);
    }
    analysis.finish()
}

fn segments(capture: &Path) -> Vec<Segment> {
    let mut all = Vec::new();
    Inputs::open(&[capture]).for_each_segment(
        &input::Options::default(),
        |_| {},
        |segment| all.push(*segment),
    );
    all
}

/// With the time stamps cut off, as after 64 bytes of an Ethernet frame: 50 of the IP packet. Of a SYN's
/// options, the MSS and SACK-permitted are left.
fn cut(capture: &Path) -> Vec<Segment> {
    let directory = tempfile::tempdir().expect("a directory");
    let short = directory.path().join("short.pcapng");
    let length = (50 + link_header(capture)).to_string();
    let status = Command::new("editcap").args(["-s", &length]).args([capture, &short]).status();
    assert!(status.expect("editcap, of wireshark-common").success(), "{}", capture.display());
    segments(&short)
}

/// Bytes before the IP packet.
fn link_header(capture: &Path) -> usize {
    let said = Command::new("capinfos").args(["-T", "-r", "-E"]).arg(capture).output();
    let said = said.expect("capinfos, of wireshark-common").stdout;
    match String::from_utf8_lossy(&said).trim().rsplit('\t').next().unwrap_or_default() {
        "rawip" => 0,
        "linux-sll" => 16,
        "linux-sll2" => 20,
        "null" | "loop" => 4,
        _ => 14,
    }
}

/// The corpus, or the captures in `TCPWHY_WORSEN=DIR`: then the table is only printed, not checked.
fn captures() -> Vec<PathBuf> {
    if let Some(dir) = std::env::var_os(OTHERS) {
        let entries = std::fs::read_dir(dir).expect("a directory");
        let mut captures: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        captures.sort();
        return captures;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus");
    let mut captures = Vec::new();
    for part in ["lab", "real"] {
        let Ok(entries) = std::fs::read_dir(root.join(part)) else { continue };
        for dir in entries.flatten() {
            captures.extend(["client", "server"].map(|end| dir.path().join(format!("{end}.pcapng.zst"))));
        }
    }
    captures.retain(|capture| capture.exists());
    captures.sort();
    captures
}

#[test]
fn a_worse_capture_is_never_surer() {
    let mut tally = Tally::default();
    for capture in captures() {
        let all = segments(&capture);
        let whole = analyse(&all);
        let folder = capture
            .parent()
            .and_then(Path::file_name)
            .map_or(String::new(), |name| name.to_string_lossy().into_owned());
        if all.len() > LONGEST {
            continue;
        }
        let end = capture.file_name().map_or(String::new(), |name| name.to_string_lossy().into_owned());
        let name = format!("{folder} {}", end.split('.').next().unwrap_or_default());
        let cut = cut(&capture);
        for (kind, (title, worsen, _)) in WORSENINGS.iter().enumerate() {
            let worse = Worse::of(worsen(if *title == CUT { &cut } else { &all }));
            tally.add(kind, &name, &whole, &analyse(&worse.segments), &worse);
        }
    }
    println!("{}{}", tally.table(), tally.examples());
    for (kind, (name, _, most)) in WORSENINGS.iter().enumerate() {
        let worst = [Outcome::Surer, Outcome::Else, Outcome::NewMechanism];
        let counts = worst.map(|outcome| tally.counts.get(&(kind, outcome)).copied().unwrap_or(0));
        let more = counts.iter().zip(most).any(|(count, most)| count > most);
        assert!(
            !more || std::env::var_os(OTHERS).is_some(),
            "{name}: {counts:?} surer, something else, a new mechanism, not {most:?} (--nocapture shows which)"
        );
    }
}
