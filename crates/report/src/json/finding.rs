//! How does the document describe findings, their other readings and their fixes?

use serde::Serialize;
use tcpwhy_core::report::{Confidence, Detail, Finding, Report, Servers};
use tcpwhy_core::{Cause, Side};
use tcpwhy_remedy::{Alternative, Remedy, Saves, alternatives, remedies_for};
use tcpwhy_wire::Duration;

use super::DetailDto;
use crate::answer::kind;

#[derive(Debug, Serialize)]
pub(super) struct FindingDto<'a> {
    cause: &'static str,
    side: &'static str,
    endpoint: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    servers: Option<u64>,
    kind: &'static str,
    hits: u64,
    of: u64,
    ns: i64,
    p50_ns: i64,
    p99_ns: i64,
    max_ns: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    slow: Option<SlowDto>,
    #[serde(skip_serializing_if = "Option::is_none")]
    without_mean_ns: Option<i64>,
    confidence: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    alternatives: Vec<AlternativeDto>,
    evidence: &'a [u64],
    worst: WorstDto,
    detail: DetailDto,
    remedies: Vec<RemedyDto>,
}

#[derive(Debug, Serialize)]
struct SlowDto {
    hits: u64,
    p50_ns: i64,
    rest_p50_ns: i64,
}

#[derive(Debug, Serialize)]
struct WorstDto {
    connection: u64,
    exchange: u64,
}

impl<'a> FindingDto<'a> {
    pub(super) fn new(report: &Report, finding: &'a Finding) -> Self {
        let (endpoint, servers) = match finding.servers {
            Servers::One(endpoint) => (endpoint.to_string(), None),
            Servers::Several(count) => ("*".to_owned(), Some(count)),
        };
        Self {
            cause: finding.cause.name(),
            side: finding.side.name(),
            endpoint,
            servers,
            kind: kind(report, finding).name(),
            hits: finding.hits,
            of: finding.of,
            ns: finding.ns.as_nanos(),
            p50_ns: finding.p50.as_nanos(),
            p99_ns: finding.p99.as_nanos(),
            max_ns: finding.max.as_nanos(),
            slow: finding.slow.map(|slow| SlowDto {
                hits: slow.hits,
                p50_ns: slow.p50.as_nanos(),
                rest_p50_ns: slow.rest_p50.as_nanos(),
            }),
            without_mean_ns: finding.without.map(Duration::as_nanos),
            confidence: finding.confidence.name(),
            alternatives: others(finding.cause, finding.side, finding.confidence, &finding.detail),
            evidence: &finding.evidence,
            worst: WorstDto { connection: finding.worst.0, exchange: finding.worst.1 },
            detail: DetailDto::from(&finding.detail),
            remedies: remedies_for(finding).into_iter().map(RemedyDto::from).collect(),
        }
    }
}

#[derive(Debug, Serialize)]
struct RemedyDto {
    id: &'static str,
    side: &'static str,
    what: String,
    saves_ns: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    saves_least_ns: Option<i64>,
    saves_kind: &'static str,
    confidence: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    caveat: Option<&'static str>,
    how: Vec<HowDto>,
}

#[derive(Debug, Serialize)]
struct HowDto {
    stack: &'static str,
    text: &'static str,
}

impl From<Remedy> for RemedyDto {
    fn from(remedy: Remedy) -> Self {
        let (saves_ns, saves_kind) = match remedy.saves {
            Saves::Estimate(span) => (Some(span.as_nanos()), "estimate"),
            Saves::AtMost(span) | Saves::Between(_, span) => (Some(span.as_nanos()), "at-most"),
            Saves::Unknown => (None, "unknown"),
        };
        let saves_least_ns = match remedy.saves {
            Saves::Between(least, _) => Some(least.as_nanos()),
            _ => None,
        };
        Self {
            id: remedy.id,
            side: remedy.side.name(),
            what: remedy.what,
            saves_ns,
            saves_least_ns,
            saves_kind,
            confidence: remedy.confidence.name(),
            caveat: remedy.caveat,
            how: remedy
                .how
                .into_iter()
                .map(|how| HowDto { stack: how.stack.name(), text: how.text })
                .collect(),
        }
    }
}

#[derive(Debug, Serialize)]
pub(super) struct AlternativeDto {
    reading: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    side: Option<&'static str>,
    tell: &'static str,
}

impl From<Alternative> for AlternativeDto {
    fn from(other: Alternative) -> Self {
        Self { reading: other.reading.name(), side: other.reading.side().map(Side::name), tell: other.tell }
    }
}

/// The other readings of a line.
pub(super) fn others(
    cause: Cause,
    side: Side,
    confidence: Confidence,
    detail: &Detail,
) -> Vec<AlternativeDto> {
    alternatives(cause, side, confidence, detail).into_iter().map(AlternativeDto::from).collect()
}
