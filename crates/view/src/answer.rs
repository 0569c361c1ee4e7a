//! What has been found so far, and how much of it lately? The same for people, programs and the
//! screen.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use tcpwhy_report::escape::visible;
use tcpwhy_report::quantity::{count, percent, time};
use tcpwhy_report::{Style, text};
use tcpwhy_wire::Duration;

use crate::socket::Fact;

/// The name of the schema.
pub const SCHEMA: &str = "tcpwhy.live/1";

/// What was found so far. Its fields are those of the JSON line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// [`SCHEMA`]
    pub schema: String,
    /// Since the capture began.
    pub after_us: u64,
    /// Since the previous answer.
    pub span_us: u64,
    /// Packets read.
    pub packets: u64,
    /// Packets for which the kernel had no room.
    #[serde(default)]
    pub dropped: u64,
    /// Exchanges billed.
    pub exchanges: u64,
    /// Of these, since the previous answer.
    pub exchanges_lately: u64,
    /// Their total time.
    pub elapsed_ns: i64,
    /// Most expensive first.
    pub findings: Vec<Finding>,
}

/// A cause at an endpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// As `tcpwhy explain` names it.
    pub cause: String,
    /// Who can change it.
    pub side: String,
    /// The server's address and port, or the number of servers.
    pub endpoint: String,
    /// Exchanges affected.
    pub hits: u64,
    /// All exchanges.
    pub of: u64,
    /// Total time.
    pub ns: i64,
    /// Median of the affected exchanges.
    pub p50_ns: i64,
    /// 99th percentile.
    pub p99_ns: i64,
    /// The longest.
    pub max_ns: i64,
    /// `certain`, `likely`, `possible`
    pub confidence: String,
    /// Compared with the previous interval: `rising`, `falling`, `steady`, `over`.
    pub trend: String,
    /// Since the previous answer.
    pub lately: Lately,
    /// What the socket shows, if it is on this machine and may be examined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket: Option<Fact>,
}

/// The increase since the previous answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lately {
    /// Exchanges with the cause.
    pub hits: i64,
    /// Their time.
    pub ns: i64,
}

/// Findings shown as lines, worst first.
const SHOWN: usize = 10;

impl Answer {
    /// Parses a line; `None` if it is not one of these documents.
    pub fn parse(line: &[u8]) -> Option<Self> {
        line.starts_with(br#"{"schema":"tcpwhy.live/1""#).then(|| serde_json::from_slice(line).ok()).flatten()
    }

    /// Addresses of the servers that findings are about.
    pub fn endpoints(&self) -> impl Iterator<Item = &str> {
        self.findings
            .iter()
            .map(|finding| finding.endpoint.as_str())
            .filter(|endpoint| endpoint.contains(':'))
    }
}

impl Finding {
    /// The same finding in another answer.
    pub fn is(&self, other: &Self) -> bool {
        (&self.cause, &self.side, &self.endpoint) == (&other.cause, &other.side, &other.endpoint)
    }
}

/// An answer in lines.
pub fn lines(answer: &Answer, style: Style) -> String {
    let lost = if answer.dropped > 0 {
        format!("; {} more dropped: the ring was full", count(answer.dropped))
    } else {
        String::new()
    };
    let head = format!(
        "== after {}: {} packets, {} exchanges, {} of them in the last {}{lost}",
        micros(answer.after_us),
        count(answer.packets),
        count(answer.exchanges),
        count(answer.exchanges_lately),
        micros(answer.span_us)
    );
    let mut out = text::faint(&head, style) + "\n";
    for finding in answer.findings.iter().take(SHOWN) {
        let _ = writeln!(
            out,
            "  {:<20} {} of {}  {} of {}, median {}, {} of the time; {}; {}",
            visible(&finding.cause),
            visible(&finding.side),
            visible(&finding.endpoint),
            count(finding.hits),
            count(finding.of),
            nanos(finding.p50_ns),
            percent(Duration::from_nanos(finding.ns), Duration::from_nanos(answer.elapsed_ns)),
            visible(&finding.trend),
            visible(&finding.confidence)
        );
        if let Some(fact) = &finding.socket {
            let _ = writeln!(out, "  {:<20} {}", "", visible(&fact.told()));
        }
    }
    if style.ascii { out.replace('µ', "u") } else { out }
}

pub(crate) fn micros(us: u64) -> String {
    nanos(i64::try_from(us).unwrap_or(i64::MAX).saturating_mul(1_000))
}

pub(crate) fn nanos(ns: i64) -> String {
    time(Duration::from_nanos(ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A user of this machine can give a process any name.
    #[test]
    fn no_name_of_a_process_acts_or_begins_a_line() {
        let words = "TCP_NODELAY is off at pid 7 (\u{1b}]0;x\u{7}\n== after\u{9b}2J\u{202e})".to_owned();
        let fact = Fact { words, pid: 7, fix: None };
        let finding = Finding { cause: "nagle".to_owned(), socket: Some(fact), ..Finding::default() };
        let told = lines(&Answer { findings: vec![finding], ..Answer::default() }, Style::default());
        assert_eq!(told.lines().count(), 3, "{told}");
        assert!(told.chars().all(|c| c == '\n' || !c.is_control() && c != '\u{202e}'), "{told:?}");
        assert!(told.contains(r"pid 7 (\u{1b}]0;x\u{7}\u{a}== after\u{9b}2J\u{202e})"), "{told}");
    }
}
