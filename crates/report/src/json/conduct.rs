//! How does the document describe the ends' behaviour, and what each round carried?

use serde::Serialize;
use tcpwhy_core::conduct::{Conduct, Round};
use tcpwhy_wire::Duration;

use super::BilledDto;
use super::moment::Exact;

#[derive(Debug, Serialize)]
pub(super) struct RoundDto {
    start_ns: i64,
    start: Exact,
    took_ns: i64,
    flight_bytes: u64,
    window_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    billed: Option<BilledDto>,
}

impl From<&Round> for RoundDto {
    fn from(round: &Round) -> Self {
        Self {
            start_ns: round.start.as_nanos(),
            start: Exact(round.start),
            took_ns: round.took.as_nanos(),
            flight_bytes: round.flight,
            window_bytes: round.window,
            billed: round.billed.map(|(cause, ns)| BilledDto { cause: cause.name(), ns: ns.as_nanos() }),
        }
    }
}

#[derive(Debug, Serialize)]
pub(super) struct ConductDto {
    #[serde(skip_serializing_if = "Option::is_none")]
    acknowledging: Option<AcknowledgingDto>,
    #[serde(skip_serializing_if = "Option::is_none")]
    window: Option<WindowHistoryDto>,
    writes: Vec<WriteDto>,
    #[serde(skip_serializing_if = "Option::is_none")]
    controller: Option<ControllerDto>,
}

impl From<Conduct> for ConductDto {
    fn from(conduct: Conduct) -> Self {
        Self {
            acknowledging: conduct.acknowledging.map(|of| AcknowledgingDto {
                prompt: of.prompt,
                held: of.held,
                delay_ns: of.delay.map(Duration::as_nanos),
                quick: of.quick,
                with_data: of.with_data,
                every_segments: of.every,
            }),
            window: conduct.window.map(|of| WindowHistoryDto {
                first_bytes: of.first,
                smallest_bytes: of.smallest,
                largest_bytes: of.largest,
                grew_until_ns: of.grew_until.map(Duration::as_nanos),
                closed: of.closed,
            }),
            writes: conduct
                .writes
                .iter()
                .map(|write| WriteDto { bytes: write.bytes, times: write.times })
                .collect(),
            controller: conduct.controller.map(|of| ControllerDto {
                looks_like: of.looks_like,
                kept_percent: of.kept_percent,
                recoveries: of.recoveries,
            }),
        }
    }
}

#[derive(Debug, Serialize)]
struct AcknowledgingDto {
    prompt: u32,
    held: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    delay_ns: Option<i64>,
    quick: u32,
    with_data: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    every_segments: Option<u32>,
}

#[derive(Debug, Serialize)]
struct WindowHistoryDto {
    first_bytes: u64,
    smallest_bytes: u64,
    largest_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    grew_until_ns: Option<i64>,
    closed: u32,
}

#[derive(Debug, Serialize)]
struct WriteDto {
    bytes: u64,
    times: u32,
}

#[derive(Debug, Serialize)]
struct ControllerDto {
    looks_like: Option<&'static str>,
    kept_percent: u32,
    recoveries: u32,
}
