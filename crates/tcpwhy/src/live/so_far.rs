//! What has been found so far, and how much of it lately? The reader's part of `tcpwhy live`: an
//! answer from a report.

use std::collections::BTreeMap;
use std::time::Duration;

use tcpwhy_core::Report;
use tcpwhy_view::answer::{Answer, Finding, Lately, SCHEMA};

/// The state at the previous answer.
#[derive(Debug, Default)]
pub(crate) struct Before {
    after: Duration,
    exchanges: u64,
    /// Occurrences and nanoseconds of each finding, and what was added to it then.
    findings: BTreeMap<String, [i64; 3]>,
}

impl Before {
    /// What has been found `after` this time, and what was added since the previous answer.
    pub(crate) fn tell(&mut self, report: &Report, packets: u64, after: Duration) -> Answer {
        let since = after.saturating_sub(self.after);
        let mut now = BTreeMap::new();
        let mut findings = Vec::with_capacity(report.findings.len());
        for finding in &report.findings {
            let key = format!("{} {} {}", finding.cause, finding.side, finding.servers);
            let [hits, ns, before] = self.findings.get(&key).copied().unwrap_or_default();
            let (all_hits, all_ns) = (finding.hits as i64, finding.ns.as_nanos());
            let lately = Lately { hits: all_hits - hits, ns: all_ns - ns };
            now.insert(key, [all_hits, all_ns, lately.ns]);
            findings.push(Finding {
                cause: finding.cause.name().to_owned(),
                side: finding.side.to_string(),
                endpoint: finding.servers.to_string(),
                hits: finding.hits,
                of: finding.of,
                ns: all_ns,
                p50_ns: finding.p50.as_nanos(),
                p99_ns: finding.p99.as_nanos(),
                max_ns: finding.max.as_nanos(),
                confidence: finding.confidence.name().to_owned(),
                trend: trend(lately.ns, before).to_owned(),
                lately,
                socket: None,
            });
        }
        let exchanges_lately = report.exchanges.saturating_sub(self.exchanges);
        *self = Self { after, exchanges: report.exchanges, findings: now };
        Answer {
            schema: SCHEMA.to_owned(),
            after_us: after.as_micros() as u64,
            span_us: since.as_micros() as u64,
            packets,
            dropped: 0,
            exchanges: report.exchanges,
            exchanges_lately,
            elapsed_ns: report.elapsed.as_nanos(),
            findings,
        }
    }
}

/// Compared with the previous interval.
fn trend(now_ns: i64, before_ns: i64) -> &'static str {
    match (now_ns, before_ns) {
        (now, before) if now > before + before / 4 => "rising",
        (now, before) if now < before - before / 4 => "falling",
        (0, 0) => "over",
        _ => "steady",
    }
}
