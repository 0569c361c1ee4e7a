//! What does the page get? The document `tcpwhy.page/3`, whose schema is docs/schema/tcpwhy.page.3.schema.json.
//!
//! Fields are added, never renamed, within a schema number. Times are integer nanoseconds since the
//! origin, the capture's first packet, so that a double holds them exactly; the origin itself is
//! given as text.

use std::collections::BTreeMap;
use std::sync::{Mutex, OnceLock, PoisonError};

use serde::Serialize;
use tcpwhy_core::Cause;
use tcpwhy_core::report::{Connection, Exchange, Finding, Report};
use tcpwhy_remedy::{Stack, explain};
use tcpwhy_report::answer::{Class, class, matters, sentence};
use tcpwhy_report::capture::{CaptureInfo, total};
use tcpwhy_report::json::{Document, exact};
use tcpwhy_report::text::{is_shown, limits, packets_by_file};
use tcpwhy_wire::Instant;

use crate::connections::{Connections, rows};
use crate::exchanges::Exchanges;
use crate::packets::{Packets, Sacks};

/// The name of the document's schema.
pub const SCHEMA: &str = "tcpwhy.page/3";

/// What is known besides the report.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// The inputs; names are shown unchanged, so they must be safe (`escape::visible`).
    pub files: &'a [CaptureInfo],
    /// tcpwhy's own version.
    pub version: &'a str,
    /// The command that reads the same input again.
    pub again: &'a str,
    /// How far the reader's time zone is ahead of UTC, in seconds.
    pub offset_s: i32,
    /// Addresses were replaced.
    pub is_anonymized: bool,
    /// The page is served, and can request data that it does not contain.
    pub is_served: bool,
    /// The origin of times, if it cannot be derived from this data.
    pub origin: Option<Instant>,
}

/// Calls a function for every number below the first argument, each once, in any order, possibly
/// several in parallel.
pub type Each<'a> = &'a dyn Fn(usize, &(dyn Fn(usize) + Sync));

/// The whole document.
#[derive(Debug, Serialize)]
pub struct Page<'a> {
    schema: &'static str,
    /// RFC 3339, to the nanosecond.
    origin: String,
    span_ns: i64,
    offset_s: i32,
    again: &'a str,
    anonymized: bool,
    served: bool,
    /// The report's document, without its connections.
    report: Document<'a>,
    /// In the order of the indexes in columns.
    causes: Vec<CauseDto>,
    stacks: [&'static str; Stack::ALL.len()],
    /// Limits of the results, in words.
    notes: Vec<String>,
    /// For each finding of the report.
    told: Vec<Told>,
    connections: Connections,
    exchanges: Exchanges,
    packets: Vec<Packets>,
}

#[derive(Debug, Serialize)]
pub(crate) struct CauseDto {
    name: &'static str,
    class: &'static str,
    title: &'static str,
}

#[derive(Debug, Serialize)]
struct Told {
    sentence: String,
    /// Its share makes a service slow.
    matters: bool,
    /// The text report shows it: it can be acted on.
    shown: bool,
    /// Its packets.
    packets: Vec<Cited>,
}

/// Packets of one file.
#[derive(Debug, Serialize)]
struct Cited {
    #[serde(skip_serializing_if = "Option::is_none")]
    of: Option<String>,
    filter: String,
}

impl<'a> Page<'a> {
    /// The report, and the packets of the connections in `drawn`. These come from a second pass, in
    /// which numbers may differ: connections are matched by their first packet and equal bills.
    /// Data that ladders lack is passed separately: SACK blocks by the connection's first packet,
    /// and one-way delays in nanoseconds by packet. Large parts are built by `each`.
    pub fn new(
        report: &'a Report,
        drawn: &'a Report,
        (sacks, ways): (&BTreeMap<u64, Sacks>, &BTreeMap<u64, i64>),
        context: Context<'a>,
        each: Each<'_>,
    ) -> Self {
        let origin = context.origin.unwrap_or_else(|| origin(report, context.files));
        let last = total(context.files).last.unwrap_or(origin);
        let nothing = Sacks::new();
        let same = |again: &'a Connection| known_as(report, again).map(|id| (id, again));
        let drawn: Vec<(u64, &Connection)> = drawn.connections.iter().filter_map(same).collect();
        let packets: Vec<OnceLock<Packets>> = drawn.iter().map(|_| OnceLock::new()).collect();
        let rows = rows(report, &drawn);
        let (exchanges, connections) = (OnceLock::new(), OnceLock::new());
        let rooms = Mutex::new(Vec::new());
        // The tables, which take longest, and then the packets of each connection.
        let tables = 2;
        each(tables + drawn.len(), &|at| {
            let Some(at) = at.checked_sub(tables) else {
                match at {
                    0 => drop(exchanges.get_or_init(|| Exchanges::of(report, &drawn, origin, &rows))),
                    _ => drop(connections.get_or_init(|| Connections::of(report, &rows, origin))),
                }
                return;
            };
            let (id, again) = drawn[at];
            let sacks = sacks.get(&again.packet_range[0]).unwrap_or(&nothing);
            let rooms = || rooms.lock().unwrap_or_else(PoisonError::into_inner);
            // Memory that has been touched once is reused.
            let mut room = rooms().pop().unwrap_or_default();
            packets[at].get_or_init(|| Packets::of(again, id, (sacks, ways), origin, &mut room));
            rooms().push(room);
        });
        Self {
            schema: SCHEMA,
            origin: exact(origin),
            span_ns: (last - origin).as_nanos(),
            offset_s: context.offset_s,
            again: context.again,
            anonymized: context.is_anonymized,
            served: context.is_served,
            report: Document::new(report, context.files, context.version).without_connections(),
            causes: causes(),
            stacks: Stack::ALL.map(Stack::name),
            notes: limits(report, context.files),
            told: report.findings.iter().map(|finding| Told::of(report, finding, context.files)).collect(),
            packets: packets.into_iter().filter_map(OnceLock::into_inner).collect(),
            exchanges: exchanges.into_inner().unwrap_or_default(),
            connections: connections.into_inner().unwrap_or_default(),
        }
    }

    /// The page is served, and can request data that it does not contain.
    pub const fn is_served(&self) -> bool {
        self.served
    }

    /// Number of connections listed.
    pub fn connections(&self) -> usize {
        self.connections.len()
    }
}

/// All causes, in the order of their indexes.
pub(crate) fn causes() -> Vec<CauseDto> {
    Cause::ALL.map(CauseDto::of).into()
}

/// The origin of a page's times: the first packet.
pub fn origin(report: &Report, files: &[CaptureInfo]) -> Instant {
    let starts = report.connections.iter().map(|connection| connection.span[0]);
    starts.chain(total(files).first).min().unwrap_or(Instant::from_nanos(0))
}

/// The number in the report of a connection from a later pass, if it begins with the same packet
/// and has the same bill.
pub fn known_as(report: &Report, again: &Connection) -> Option<u64> {
    let of = report.connection_from(again.packet_range[0])?;
    let is_same =
        of.client == again.client && of.bill == again.bill && is_same(&of.exchanges, &again.exchanges);
    is_same.then_some(of.id)
}

/// Whether exchanges in both lists are equal: either list may have ended earlier for want of room,
/// or been thinned.
fn is_same(some: &[Exchange], others: &[Exchange]) -> bool {
    let known: BTreeMap<u64, &Exchange> = others.iter().map(|exchange| (exchange.n, exchange)).collect();
    some.iter().all(|exchange| known.get(&exchange.n).is_none_or(|other| *other == exchange))
}

impl CauseDto {
    fn of(cause: Cause) -> Self {
        let class = match class(cause) {
            Class::Mechanism => "mechanism",
            Class::Trouble => "trouble",
            Class::Program => "program",
            Class::Path => "path",
            Class::Unknown => "unknown",
        };
        Self { name: cause.name(), class, title: explain(cause).title }
    }
}

impl Told {
    fn of(report: &Report, finding: &Finding, files: &[CaptureInfo]) -> Self {
        let cited = packets_by_file(finding, files, finding.evidence.len());
        Self {
            sentence: sentence(report, finding),
            matters: matters(report, finding),
            shown: is_shown(report, finding),
            packets: cited
                .into_iter()
                .map(|(of, filter)| Cited { of: of.map(str::to_owned), filter })
                .collect(),
        }
    }
}
