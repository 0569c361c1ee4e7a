//! What is found so far, and what of it lately? The worst first, a line each, for people and for programs.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use clap::ValueEnum;
use serde_json::json;
use tcpwhy_core::Report;
use tcpwhy_core::report::Finding;
use tcpwhy_report::quantity::{count, percent, time};
use tcpwhy_report::{Style, text};

/// How it is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// For people
    Text,
    /// A JSON line each time
    Json,
}

/// What had been found the last time.
#[derive(Debug, Default)]
pub(crate) struct Before {
    after: Duration,
    exchanges: u64,
    /// Hits and nanoseconds of each finding, and what was added to it then.
    findings: BTreeMap<String, [i64; 3]>,
}

/// Findings that are told, the worst first.
const SHOWN: usize = 10;

impl Before {
    /// What is found `after` so long, and what was added since the last time.
    pub(crate) fn tell(
        &mut self,
        report: &Report,
        packets: u64,
        after: Duration,
        form: Form,
        style: Style,
    ) -> String {
        let since = after.saturating_sub(self.after);
        let fresh = report.exchanges.saturating_sub(self.exchanges);
        let mut now = BTreeMap::new();
        let mut rows = Vec::new();
        for finding in &report.findings {
            let key = format!("{} {} {}", finding.cause, finding.side, finding.servers);
            let [hits, ns, added] = self.findings.get(&key).copied().unwrap_or_default();
            let (all_hits, all_ns) = (finding.hits as i64, finding.ns.as_nanos());
            let lately = Lately { hits: all_hits - hits, ns: all_ns - ns, before_ns: added };
            now.insert(key, [all_hits, all_ns, lately.ns]);
            rows.push((finding, lately));
        }
        let out = match form {
            Form::Text => lines(report, &rows, packets, [after, since], fresh, style),
            Form::Json => line(report, &rows, packets, [after, since], fresh),
        };
        *self = Self { after, exchanges: report.exchanges, findings: now };
        out
    }
}

/// What was added to a finding.
struct Lately {
    hits: i64,
    ns: i64,
    /// In the stretch before.
    before_ns: i64,
}

impl Lately {
    /// Against the stretch before.
    fn trend(&self) -> &'static str {
        match (self.ns, self.before_ns) {
            (now, before) if now > before + before / 4 => "rising",
            (now, before) if now < before - before / 4 => "falling",
            (0, 0) => "over",
            _ => "steady",
        }
    }
}

fn lines(
    report: &Report,
    rows: &[(&Finding, Lately)],
    packets: u64,
    [after, since]: [Duration; 2],
    fresh: u64,
    style: Style,
) -> String {
    let head = format!(
        "== after {}: {} packets, {} exchanges, {} of them in the last {}",
        told(after),
        count(packets),
        count(report.exchanges),
        count(fresh),
        told(since)
    );
    let mut out = text::faint(&head, style) + "\n";
    for (finding, lately) in rows.iter().take(SHOWN) {
        let _ = writeln!(
            out,
            "  {:<20} {} of {}  {} of {}, median {}, {} of the time; {}; {}",
            finding.cause.name(),
            finding.side,
            finding.servers,
            count(finding.hits),
            count(finding.of),
            time(finding.p50),
            percent(finding.ns, report.elapsed),
            lately.trend(),
            finding.confidence.name()
        );
    }
    if style.ascii { out.replace('µ', "u") } else { out }
}

fn line(
    report: &Report,
    rows: &[(&Finding, Lately)],
    packets: u64,
    [after, since]: [Duration; 2],
    fresh: u64,
) -> String {
    let findings = rows.iter().map(|(finding, lately)| {
        json!({
            "cause": finding.cause.name(),
            "side": finding.side.to_string(),
            "endpoint": finding.servers.to_string(),
            "hits": finding.hits,
            "of": finding.of,
            "ns": finding.ns.as_nanos(),
            "p50_ns": finding.p50.as_nanos(),
            "p99_ns": finding.p99.as_nanos(),
            "max_ns": finding.max.as_nanos(),
            "confidence": finding.confidence.name(),
            "trend": lately.trend(),
            "lately": { "hits": lately.hits, "ns": lately.ns },
        })
    });
    let document = json!({
        "schema": "tcpwhy.live/1",
        "after_us": after.as_micros() as u64,
        "span_us": since.as_micros() as u64,
        "packets": packets,
        "exchanges": report.exchanges,
        "exchanges_lately": fresh,
        "elapsed_ns": report.elapsed.as_nanos(),
        "findings": findings.collect::<Vec<_>>(),
    });
    document.to_string() + "\n"
}

fn told(span: Duration) -> String {
    time(tcpwhy_wire::Duration::from_nanos(i64::try_from(span.as_nanos()).unwrap_or(i64::MAX)))
}
