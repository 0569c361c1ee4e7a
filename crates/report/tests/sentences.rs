//! Is every sentence that can be printed listed once, with an example? docs/sentences.md is
//! generated here (`BLESS=1 cargo test -p tcpwhy-report --test sentences`), and each piece of text
//! in the sources that build sentences has to be in it.

#[expect(dead_code, reason = "these tests need only a part of it")]
mod common;
mod pieces;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use common::{SERVER, capture, finding, of};
use pieces::pieces;
use tcpwhy_core::Form;
use tcpwhy_core::report::{Confidence, Detail, Finding, Note, Omitted, Report, SlowHits};
use tcpwhy_core::{Cause, Side};
use tcpwhy_remedy::form_in_words;
use tcpwhy_report::capture::{OneWay, OtherEnd};
use tcpwhy_report::{CaptureInfo, Style, answer, text};
use tcpwhy_wire::{Duration, Instant};

const NOTES: [&str; 12] = [
    "capture-drops",
    "one-direction",
    "time-steps-back",
    "connections-over-limit",
    "finished-over-limit",
    "words-over-limit",
    "refused-connections",
    "cut-options",
    "too-large-packets",
    "unanswered-connections",
    "sums-over-limit",
    "duplicates",
];
const SKIPPED: [&str; 17] = [
    "not-tcp",
    "not-ip",
    "fragment",
    "unsupported-link",
    "truncated-header",
    "bad-ip-header",
    "bad-tcp-header",
    "too-many-headers",
    "encrypted",
    "outside-window",
    "damaged",
    "wrong-checksum",
    "wrong-time",
    "wrong-clock",
    "whole-seconds",
    "equal-distances",
    "of-tomorrow",
];

fn ms(ms: i64) -> Duration {
    Duration::from_millis(ms)
}

fn with(form: Option<Form>) -> Detail {
    Detail {
        held_bytes: Some(100),
        ack_delay: Some(ms(40)),
        window_bytes: Some(64_240),
        flight_bytes: Some(14_480),
        waits: Some(3),
        retransmits: Some(1),
        timer: Some(ms(200)),
        rate_bps: Some(100_000_000),
        round: None,
        form,
    }
}

fn shown(report: &Report, files: &[CaptureInfo]) -> String {
    text::overview(report, files, "tcpwhy read a.pcap", Style { width: 1000, ..Style::default() })
}

/// Each sentence once, in the order of its first example.
#[derive(Default)]
struct Page {
    text: String,
    listed: BTreeSet<String>,
}

impl Page {
    fn part(&mut self, heading: &str) {
        let _ = write!(self.text, "\n## {heading}\n\n");
    }

    fn add(&mut self, sentence: &str) {
        if self.listed.insert(sentence.to_owned()) {
            let _ = writeln!(self.text, "- {sentence}");
        }
    }

    /// Shown lines with this prefix.
    fn lines(&mut self, shown: &str, begin: &str) {
        for line in shown.lines().filter_map(|line| line.trim().strip_prefix(begin)) {
            self.add(line.trim());
        }
    }
}

fn page() -> String {
    let mut page = Page::default();
    page.text.push_str(
        "# All sentences of the answer\n\nEach sentence once, with an example. `BLESS=1 cargo test -p tcpwhy-report --test sentences` writes this page; the test fails \
         if a sentence is missing.\n",
    );
    page.part("The answer: what each cause says");
    for cause in Cause::ALL {
        for form in std::iter::once(None).chain(Form::ALL.map(Some)) {
            let detail = Detail { form, ..with(None) };
            page.add(&answer(&of(vec![Finding { detail, ..finding(cause, Side::Server, ms(44), 40, 40) }])));
        }
    }
    let paused = of(vec![finding(Cause::SenderThink, Side::Client, ms(44), 1, 1)]);
    page.add(&answer(&Report { exchanges: 0, one_way: 1, ..paused }));
    let opened = finding(Cause::Handshake, Side::Client, ms(44), 1, 1);
    page.add(&answer(&of(vec![opened])));
    page.part("The answer: which exchanges, and how certain");
    let held = |hits, all| finding(Cause::Nagle, Side::Client, ms(44), hits, all);
    for (hits, all) in [(1, 1), (2, 2), (1, 40), (39, 40), (38, 40)] {
        let without = (hits < all).then(|| ms(1));
        page.add(&answer(&of(vec![Finding { without, ..held(hits, all) }])));
    }
    for confidence in [Confidence::Likely, Confidence::Possible] {
        page.add(&answer(&of(vec![Finding { confidence, ..held(40, 40) }])));
    }
    let slow = |hits| Some(SlowHits { hits, p50: ms(211), rest_p50: ms(1) });
    page.add(&answer(&of(vec![Finding { slow: slow(20), ..held(200, 200) }])));
    page.add(&answer(&of(vec![Finding { slow: slow(20), max: ms(900), ..held(100, 200) }])));
    page.add(&answer(&of(vec![finding(Cause::ServerThink, Side::Server, ms(4_400), 40, 40)])));
    page.part("The answer: several causes");
    let big = |cause| finding(cause, Side::Server, ms(90), 40, 40);
    let possible = |of: Finding| Finding { confidence: Confidence::Possible, ..of };
    for findings in [
        vec![big(Cause::ServerThink), held(40, 40)],
        vec![big(Cause::ServerThink), possible(held(40, 40))],
        vec![big(Cause::RoundTrip), held(40, 40)],
        vec![big(Cause::Unexplained), held(40, 40)],
        vec![possible(big(Cause::Rto)), held(40, 40)],
        vec![
            big(Cause::ServerThink),
            finding(Cause::RoundTrip, Side::Server, ms(80), 40, 40),
            possible(held(40, 40)),
        ],
    ] {
        page.add(&answer(&of(findings)));
    }
    page.part("Nothing to answer");
    let empty = Report::default();
    page.add(&answer(&empty));
    page.add(&answer(&Report { segments: 7, ..Report::default() }));
    for count in [1, 3] {
        let refused = Note { kind: "refused-connections", count, first_packet: 1 };
        page.add(&answer(&Report { segments: 7, notes: vec![refused], ..Report::default() }));
    }
    let file = || CaptureInfo { packets: 0, segments: 0, first: None, last: None, ..capture("a.pcap") };
    let skipped = |reason: &str, n| CaptureInfo { skipped: [(reason.to_owned(), n)].into(), ..file() };
    for files in [
        CaptureInfo { packets: 9, segments: 9, ..file() },
        CaptureInfo { packets: 9, ..skipped("not-tcp", 9) },
        CaptureInfo { packets: 9, ..skipped("truncated-header", 9) },
        CaptureInfo { unread_bytes: 5_000, ..skipped("outside-window", 9) },
        skipped("outside-window", 9),
        CaptureInfo { interrupted: true, ..file() },
        file(),
    ] {
        page.add(shown(&empty, &[files]).lines().next().unwrap_or_default());
    }
    page.part("Findings");
    let findings = [Confidence::Certain, Confidence::Likely, Confidence::Possible].map(|confidence| {
        Finding { confidence, detail: with(None), evidence: (1..=20).collect(), max: ms(99), ..held(39, 40) }
    });
    for finding in findings {
        page.lines(&shown(&of(vec![finding]), &[capture("a.pcap")]), "cost");
    }
    for form in std::iter::once(None).chain(Form::ALL.map(Some)) {
        let detail = Detail { form, ..if form.is_some() { Detail::default() } else { with(None) } };
        let one = Finding { detail, ..held(39, 40) };
        page.lines(&shown(&of(vec![one]), &[capture("a.pcap")]), "measured");
    }
    let many = vec![Finding { evidence: (1..=20).collect(), ..held(39, 40) }];
    page.lines(&shown(&of(many.clone()), &[capture("a.pcap")]), "packets");
    let live = text::overview(&of(many), &[capture("any")], "", Style { width: 1000, ..Style::default() });
    page.lines(&live, "packets");
    let little = shown(&of(vec![big(Cause::RoundTrip)]), &[capture("a.pcap")]);
    page.add(little.lines().find(|line| line.contains("worth")).unwrap_or_default());
    let eight = [
        Cause::Nagle,
        Cause::Rto,
        Cause::Loss,
        Cause::Cork,
        Cause::Pacing,
        Cause::SlowStart,
        Cause::SendBuffer,
    ];
    let seven = shown(&of(eight.map(big).to_vec()), &[capture("a.pcap")]);
    page.add(seven.lines().find(|line| line.contains("smaller")).unwrap_or_default());
    page.part("What it may be instead");
    for cause in Cause::ALL {
        let one = possible(finding(cause, cause.side(Side::Server), ms(90), 40, 40));
        page.lines(&shown(&of(vec![one]), &[capture("a.pcap")]), "or maybe");
    }
    page.part("Notes");
    for kind in NOTES.into_iter().chain(["of-tomorrow"]) {
        let report =
            Report { notes: vec![Note { kind, count: 3, first_packet: 7 }], ..of(vec![held(40, 40)]) };
        page.lines(&shown(&report, &[capture("a.pcap")]), "note:");
    }
    let twice = vec![
        CaptureInfo { turns: vec![(1, 1)], ..capture("a.pcap") },
        CaptureInfo { turns: vec![(5, 1)], ..capture("b.pcap") },
    ];
    let once = Note { kind: "capture-drops", count: 1, first_packet: 7 };
    page.lines(&shown(&Report { notes: vec![once], ..of(vec![held(40, 40)]) }, &twice), "note:");
    for reason in SKIPPED {
        let file = CaptureInfo { skipped: [(reason.to_owned(), 3)].into(), ..capture("a.pcap") };
        page.lines(&shown(&of(vec![held(40, 40)]), &[file]), "note:");
    }
    let mut guessed = of(vec![held(40, 40)]);
    guessed.connections = common::stall().connections;
    guessed.connections[0].assumed = true;
    guessed.omitted = Omitted { connections: 2, exchanges: 5_000 };
    page.add(&answer(&guessed));
    page.lines(&shown(&guessed, &[capture("a.pcap")]), "note:");
    let mut other_end = OtherEnd { connections: 1, clock: Some([ms(1_204), ms(26)]), ..OtherEnd::default() };
    *other_end.line(Cause::Nagle, Side::Client) = tcpwhy_report::capture::OtherLine {
        cause: Cause::Nagle,
        side: Side::Client,
        here: ms(44),
        there: ms(43),
    };
    let way = |missing| OneWay { packets: 1_203, missing, median: ms(1), p99: ms(17), max: ms(29) };
    let behind = OtherEnd {
        connections: 2,
        clock: Some([ms(-5), ms(26)]),
        drift_ppb: Some(-12_300),
        ways: Some([way(Some(3)), way(None)]),
        ..OtherEnd::default()
    };
    for files in [
        vec![CaptureInfo { failure: Some("no such file".to_owned()), ..capture("b.pcap") }],
        vec![CaptureInfo { drops: 3, ..capture("a.pcap") }],
        vec![CaptureInfo { interrupted: true, ..capture("a.pcap") }],
        vec![CaptureInfo { truncated: true, ..capture("a.pcap") }],
        vec![CaptureInfo { unread_bytes: 5_000, ..capture("a.pcap") }],
        vec![CaptureInfo { stopped: true, ..capture("a.pcap") }],
        vec![CaptureInfo { is_renumbered: true, ..capture("a.pcap") }],
        vec![capture("a.pcap"), CaptureInfo { other_end: Some(other_end), ..capture("b.pcap") }],
        vec![capture("a.pcap"), CaptureInfo { other_end: Some(behind), ..capture("b.pcap") }],
    ] {
        page.lines(&shown(&of(vec![held(40, 40)]), &files), "note:");
    }
    let concurrent = Report { by_clock: ms(400), ..of(vec![held(40, 40)]) };
    page.lines(&shown(&concurrent, &[capture("a.pcap")]), "a.pcap:");
    let _ = (SERVER, Instant::default());
    page.text
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn every_sentence_is_listed_once_with_an_example() {
    let path = repository().join("docs/sentences.md");
    let now = page();
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, &now).expect("written");
    }
    assert_eq!(fs::read_to_string(&path).ok().as_deref(), Some(now.as_str()), "BLESS=1 writes it anew");
    let listed = now.to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ");
    let mut missing = Vec::new();
    for source in [
        "report/src/answer.rs",
        "report/src/text/overview.rs",
        "report/src/text/findings.rs",
        "remedy/src/form.rs",
    ] {
        let source = fs::read_to_string(repository().join("crates").join(source)).expect("the source");
        let pieces = pieces(&source, 4);
        assert!(pieces.len() >= 5, "{pieces:?}");
        missing.extend(pieces.into_iter().filter(|piece| !listed.contains(&piece.to_lowercase())));
    }
    assert_eq!(missing, Vec::<String>::new(), "printed somewhere and not listed");
}

/// The project's own words that no engineer would use, and names of forms.
#[test]
fn the_words_are_those_of_the_field() {
    let words = [
        "mend",
        "mends",
        "mended",
        "felt",
        "foretold",
        "foretells",
        "let go by",
        "sure",
        "surer",
        "lone",
        "hits",
    ];
    let text = page().to_lowercase();
    let bare: String = text.chars().map(|c| if c.is_alphanumeric() || c == '-' { c } else { ' ' }).collect();
    for word in words {
        assert!(!format!(" {bare} ").contains(&format!(" {word} ")), "{word}");
    }
    // A form that is described in words is not called by its name.
    let told = Form::ALL.into_iter().filter(|form| form_in_words(*form).is_some());
    for form in told.map(Form::name).filter(|form| form.contains('-')) {
        assert!(!bare.contains(form), "{form}");
    }
}
