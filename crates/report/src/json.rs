//! What does a program get? The document `tcpwhy.report/1`, whose schema is docs/schema/tcpwhy.report.1.schema.json.
//!
//! These structs are the contract: fields are added, never renamed or removed, within a schema
//! number. Times are integer nanoseconds, points in time nanoseconds since the epoch, sizes bytes.

mod capture;
mod compare;
mod conduct;
mod finding;
pub(crate) mod moment;
mod note;
mod requests;

use std::io::{self, Write};

use serde::Serialize;
use serde_json::Serializer;
use tcpwhy_core::Form;
use tcpwhy_core::Side;
use tcpwhy_core::report::{Connection, Detail, Exchange, Line, Pairing, Report, Rung, TotalLine, Trigger};
use tcpwhy_wire::Duration;

use capture::CaptureDto;
pub use compare::{ComparisonDto, compared, comparison};
use conduct::{ConductDto, RoundDto};
use finding::{AlternativeDto, FindingDto, others};
use moment::Exact;
pub use moment::exact;
use note::NoteDto;
use requests::RequestsDto;

use crate::answer::{answer, nothing};
use crate::capture::{CaptureInfo, total};
use crate::escape::Visible;
use crate::quantity::per_ten_thousand;
use crate::requests::requests;

/// The name of the document's schema.
pub const SCHEMA: &str = "tcpwhy.report/1";

/// The result of a pipeline's condition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Gated {
    /// The condition as it was written.
    pub gate: String,
    /// The condition failed: the pipeline is to stop.
    pub failed: bool,
    /// What was measured, in words.
    pub reason: String,
}

/// Writes the document, one per run. `version` is tcpwhy's own.
///
/// # Errors
///
/// Those of `to`.
pub fn write(
    report: &Report,
    files: &[CaptureInfo],
    version: &str,
    gates: &[Gated],
    mut to: impl Write,
) -> io::Result<()> {
    let mut json = Serializer::with_formatter(&mut to, Visible::default());
    Document { gate: gates, ..Document::new(report, files, version) }.serialize(&mut json)?;
    to.write_all(b"\n")
}

/// The document as text.
///
/// # Errors
///
/// None that a report can cause: all keys are strings, and no number is infinite.
pub fn to_string(report: &Report, files: &[CaptureInfo], version: &str) -> io::Result<String> {
    let mut json = Vec::new();
    write(report, files, version, &[], &mut json)?;
    String::from_utf8(json).map_err(io::Error::other)
}

/// The whole document.
#[derive(Debug, Serialize)]
pub struct Document<'a> {
    schema: &'static str,
    tcpwhy: &'a str,
    answer: String,
    capture: CaptureDto,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    gate: &'a [Gated],
    elapsed_ns: i64,
    by_clock_ns: i64,
    setups: u64,
    exchanges: u64,
    one_way: u64,
    subscriptions: u64,
    bill: Vec<TotalDto>,
    findings: Vec<FindingDto<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    requests: Vec<RequestsDto>,
    connections: Each<'a, Connection>,
    omitted: OmittedDto,
    notes: Vec<NoteDto>,
}

impl<'a> Document<'a> {
    /// Without the list of connections, for readers that have it in another form.
    #[must_use]
    pub fn without_connections(self) -> Self {
        Self { connections: Each(&[]), ..self }
    }

    /// The report and its inputs, in the form of the document.
    pub fn new(report: &'a Report, files: &[CaptureInfo], version: &'a str) -> Self {
        let mut capture = CaptureDto::from(&total(files));
        if files.len() > 1 {
            capture.files = files.iter().map(CaptureDto::from).collect();
        }
        capture.segments = report.segments;
        Self {
            schema: SCHEMA,
            tcpwhy: version,
            answer: nothing(report, files).unwrap_or_else(|| answer(report)),
            capture,
            gate: &[],
            elapsed_ns: report.elapsed.as_nanos(),
            by_clock_ns: report.by_clock.as_nanos(),
            setups: report.setups,
            exchanges: report.exchanges,
            one_way: report.one_way,
            subscriptions: report.subscriptions,
            bill: totals(&report.bill, report.elapsed),
            findings: report.findings.iter().map(|finding| FindingDto::new(report, finding)).collect(),
            requests: requests(report).into_iter().map(RequestsDto::from).collect(),
            connections: Each(&report.connections),
            omitted: OmittedDto {
                connections: report.omitted.connections,
                exchanges: report.omitted.exchanges,
            },
            notes: report.notes.iter().map(NoteDto::from).collect(),
        }
    }
}

/// A long list, whose items are converted one after the other.
#[derive(Debug)]
struct Each<'a, T>(&'a [T]);

impl Serialize for Each<'_, Connection> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(ConnectionDto::from))
    }
}

impl Serialize for Each<'_, Rung> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(RungDto::from))
    }
}

/// The exchanges of a connection, with their rounds if its packets were kept.
#[derive(Debug)]
struct Exchanges<'a>(&'a Connection);

impl Serialize for Exchanges<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let exchanges = self.0.exchanges.iter().map(|exchange| {
            let rounds = self.0.rounds(exchange).iter().map(RoundDto::from).collect();
            ExchangeDto { rounds, ..ExchangeDto::from(exchange) }
        });
        serializer.collect_seq(exchanges)
    }
}

#[derive(Debug, Serialize)]
struct TotalDto {
    cause: &'static str,
    side: &'static str,
    ns: i64,
    possible_ns: i64,
    share: f64,
    hits: u64,
}

fn totals(lines: &[TotalLine], whole: Duration) -> Vec<TotalDto> {
    lines
        .iter()
        .map(|line| TotalDto {
            cause: line.cause.name(),
            side: line.side.name(),
            ns: line.ns.as_nanos(),
            possible_ns: line.possible.as_nanos(),
            share: share(line.ns, whole),
            hits: line.hits,
        })
        .collect()
}

/// In ten-thousandths, so that the digits are the same on every platform.
fn share(part: Duration, whole: Duration) -> f64 {
    per_ten_thousand(part, whole) as f64 / 10_000.0
}

#[derive(Debug, Serialize)]
struct ByEnd<T> {
    client: T,
    server: T,
}

#[derive(Debug, Serialize)]
struct ConnectionDto<'a> {
    id: u64,
    client: String,
    server: String,
    vantage: &'static str,
    assumed: bool,
    rtt_min_ns: Option<i64>,
    mss: ByEnd<Option<u16>>,
    packets: u64,
    packet_range: [u64; 2],
    first_ns: i64,
    last_ns: i64,
    first: Exact,
    last: Exact,
    billed: u64,
    by_clock_ns: i64,
    bytes: ByEnd<u64>,
    bill: Vec<TotalDto>,
    exchanges: Exchanges<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    conduct: Option<ByEnd<ConductDto>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ladder: Option<Each<'a, Rung>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ladder_omitted: Option<u64>,
}

impl<'a> From<&'a Connection> for ConnectionDto<'a> {
    fn from(connection: &'a Connection) -> Self {
        let whole = connection.cost();
        Self {
            id: connection.id,
            client: connection.client.to_string(),
            server: connection.server.to_string(),
            vantage: connection.vantage.name(),
            assumed: connection.assumed,
            rtt_min_ns: connection.rtt_min.map(Duration::as_nanos),
            mss: ByEnd { client: connection.mss[0], server: connection.mss[1] },
            packets: connection.packets,
            packet_range: connection.packet_range,
            first_ns: connection.span[0].as_nanos(),
            last_ns: connection.span[1].as_nanos(),
            first: Exact(connection.span[0]),
            last: Exact(connection.span[1]),
            billed: connection.billed,
            by_clock_ns: connection.by_clock.as_nanos(),
            bytes: ByEnd { client: connection.bytes[0], server: connection.bytes[1] },
            bill: totals(&connection.bill, whole),
            exchanges: Exchanges(connection),
            conduct: (!connection.ladder.is_empty()).then(|| ByEnd {
                client: ConductDto::from(connection.conduct(Side::Client)),
                server: ConductDto::from(connection.conduct(Side::Server)),
            }),
            ladder: (!connection.ladder.is_empty()).then_some(Each(&connection.ladder)),
            ladder_omitted: (connection.ladder_omitted > 0).then_some(connection.ladder_omitted),
        }
    }
}

#[derive(Debug, Serialize)]
struct ExchangeDto<'a> {
    n: u64,
    kind: &'static str,
    initiator: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    asker: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<&'static str>,
    start_ns: i64,
    start: Exact,
    elapsed_ns: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    awaited_ns: Option<i64>,
    client_idle_ns: i64,
    request_bytes: u64,
    reply_bytes: u64,
    packets: [u64; 2],
    #[serde(skip_serializing_if = "Option::is_none")]
    request: Option<&'a str>,
    bill: Vec<LineDto<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    rounds: Vec<RoundDto>,
}

impl<'a> From<&'a Exchange> for ExchangeDto<'a> {
    fn from(exchange: &'a Exchange) -> Self {
        Self {
            n: exchange.n,
            kind: exchange.kind.name(),
            initiator: exchange.initiator.name(),
            asker: exchange.by.map(|_| exchange.initiator.name()),
            by: exchange.by.map(Pairing::name),
            start_ns: exchange.start.as_nanos(),
            start: Exact(exchange.start),
            elapsed_ns: exchange.elapsed.as_nanos(),
            awaited_ns: exchange.awaited.is_positive().then(|| exchange.awaited.as_nanos()),
            client_idle_ns: exchange.client_idle.as_nanos(),
            request_bytes: exchange.request_bytes,
            reply_bytes: exchange.reply_bytes,
            packets: exchange.packets,
            request: exchange.request.as_deref(),
            bill: exchange.bill.iter().map(LineDto::from).collect(),
            rounds: Vec::new(),
        }
    }
}

#[derive(Debug, Serialize)]
struct LineDto<'a> {
    cause: &'static str,
    side: &'static str,
    ns: i64,
    confidence: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    alternatives: Vec<AlternativeDto>,
    evidence: &'a [u64],
    detail: DetailDto,
}

impl<'a> From<&'a Line> for LineDto<'a> {
    fn from(line: &'a Line) -> Self {
        Self {
            cause: line.cause.name(),
            side: line.side.name(),
            ns: line.ns.as_nanos(),
            confidence: line.confidence.name(),
            alternatives: others(line.cause, line.side, line.confidence, &line.detail),
            evidence: &line.evidence,
            detail: DetailDto::from(&line.detail),
        }
    }
}

#[derive(Debug, Serialize)]
struct DetailDto {
    #[serde(skip_serializing_if = "Option::is_none")]
    held_bytes: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ack_delay_ns: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    window_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    flight_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    waits: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retransmits: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timer_ns: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rate_bps: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    form: Option<&'static str>,
}

impl From<&Detail> for DetailDto {
    fn from(detail: &Detail) -> Self {
        Self {
            held_bytes: detail.held_bytes,
            ack_delay_ns: detail.ack_delay.map(Duration::as_nanos),
            window_bytes: detail.window_bytes,
            flight_bytes: detail.flight_bytes,
            waits: detail.waits,
            retransmits: detail.retransmits,
            timer_ns: detail.timer.map(Duration::as_nanos),
            rate_bps: detail.rate_bps,
            form: detail.form.map(Form::name),
        }
    }
}

#[derive(Debug, Serialize)]
struct RungDto {
    packet: u64,
    at_ns: i64,
    at: Exact,
    exchange: Option<u64>,
    from: &'static str,
    offset: u64,
    len: u32,
    ack_offset: Option<u64>,
    seq: u32,
    ack: Option<u32>,
    window: u32,
    window_field: u16,
    window_scale: Option<u8>,
    flags: String,
    trigger: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    trigger_packet: Option<u64>,
    billed: Vec<BilledDto>,
}

#[derive(Debug, Serialize)]
struct BilledDto {
    cause: &'static str,
    ns: i64,
}

impl From<&Rung> for RungDto {
    fn from(rung: &Rung) -> Self {
        let (trigger, trigger_packet) = match rung.trigger() {
            Trigger::Write => ("write", None),
            Trigger::Packet(packet) => ("packet", Some(packet)),
            Trigger::Timer => ("timer", None),
            Trigger::Burst => ("burst", None),
            Trigger::Control => ("control", None),
        };
        Self {
            packet: rung.packet,
            at_ns: rung.at.as_nanos(),
            at: Exact(rung.at),
            exchange: rung.exchange(),
            from: rung.from.name(),
            offset: rung.offset,
            len: rung.len,
            ack_offset: rung.ack_offset(),
            seq: rung.seq,
            ack: rung.ack(),
            window_field: rung.window_field,
            window_scale: rung.window_scale,
            window: rung.window,
            flags: format!("{:?}", rung.flags),
            trigger,
            trigger_packet,
            billed: rung
                .billed
                .lines()
                .map(|(cause, span)| BilledDto { cause: cause.name(), ns: span.as_nanos() })
                .collect(),
        }
    }
}

#[derive(Debug, Serialize)]
struct OmittedDto {
    connections: u64,
    exchanges: u64,
}
