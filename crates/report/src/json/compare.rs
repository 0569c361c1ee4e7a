//! What does a program get from a comparison? The document `tcpwhy.compare/1`, whose schema is
//! docs/schema/tcpwhy.compare.1.schema.json.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::Serializer;

use crate::compare::{Change, Comparison, Row};
use crate::escape::Visible;
use crate::text;

/// Writes the document; `version` is tcpwhy's own, `paths` are the captures compared.
///
/// # Errors
///
/// Those of `to`.
pub fn comparison(of: &Comparison, paths: [&str; 2], version: &str, mut to: impl Write) -> io::Result<()> {
    let document = compared(of, paths, version);
    document.serialize(&mut Serializer::with_formatter(&mut to, Visible::default()))?;
    to.write_all(b"\n")
}

/// The document, for use inside others.
pub fn compared<'a>(of: &'a Comparison, paths: [&'a str; 2], version: &'a str) -> ComparisonDto<'a> {
    ComparisonDto {
        schema: "tcpwhy.compare/1",
        tcpwhy: version,
        before: paths[0],
        after: paths[1],
        answer: text::compared(of),
        slower: of.is_slower(),
        rows: of.rows.iter().map(RowDto::from).collect(),
        unmatched: of
            .unmatched
            .iter()
            .map(|(service, before, after)| UnmatchedDto { service, before: *before, after: *after })
            .collect(),
        omitted: of.omitted,
    }
}

/// The document.
#[derive(Debug, Serialize)]
pub struct ComparisonDto<'a> {
    schema: &'static str,
    tcpwhy: &'a str,
    before: &'a str,
    after: &'a str,
    answer: String,
    slower: bool,
    rows: Vec<RowDto<'a>>,
    unmatched: Vec<UnmatchedDto<'a>>,
    omitted: u64,
}

#[derive(Debug, Serialize)]
struct UnmatchedDto<'a> {
    service: &'a str,
    before: u64,
    after: u64,
}

#[derive(Debug, Serialize)]
struct RowDto<'a> {
    service: &'a str,
    kind: &'static str,
    elapsed: ChangeDto,
    causes: Vec<CauseDto>,
}

impl<'a> From<&'a Row> for RowDto<'a> {
    fn from(row: &'a Row) -> Self {
        Self {
            service: &row.service,
            kind: row.kind.name(),
            elapsed: ChangeDto::from(&row.elapsed),
            causes: row
                .causes
                .iter()
                .map(|(cause, change)| CauseDto { cause: cause.name(), change: ChangeDto::from(change) })
                .collect(),
        }
    }
}

#[derive(Debug, Serialize)]
struct CauseDto {
    cause: &'static str,
    #[serde(flatten)]
    change: ChangeDto,
}

#[derive(Debug, Serialize)]
struct ChangeDto {
    counts: [u64; 2],
    mean_ns: [i64; 2],
    p50_ns: [i64; 2],
    p99_ns: [i64; 2],
    verdict: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    chance: Option<ChanceDto>,
}

#[derive(Debug, Serialize)]
struct ChanceDto {
    p: f64,
    low_ns: i64,
    high_ns: i64,
}

impl From<&Change> for ChangeDto {
    fn from(change: &Change) -> Self {
        Self {
            counts: change.counts,
            mean_ns: change.means.map(tcpwhy_wire::Duration::as_nanos),
            p50_ns: change.p50.map(tcpwhy_wire::Duration::as_nanos),
            p99_ns: change.p99.map(tcpwhy_wire::Duration::as_nanos),
            verdict: change.verdict.name(),
            chance: change.chance.map(|chance| ChanceDto {
                p: chance.p,
                low_ns: chance.low as i64,
                high_ns: chance.high as i64,
            }),
        }
    }
}
