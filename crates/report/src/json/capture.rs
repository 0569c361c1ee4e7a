//! How are the inputs described in the document?

use std::collections::BTreeMap;

use serde::Serialize;
use tcpwhy_wire::{Duration, Instant};

use super::moment::Exact;
use crate::capture::{CaptureInfo, OneWay, OtherEnd, OtherLine};

#[derive(Debug, Serialize)]
pub(super) struct CaptureDto {
    path: String,
    format: String,
    packets: u64,
    pub(super) segments: u64,
    first_ns: Option<i64>,
    last_ns: Option<i64>,
    first: Option<Exact>,
    last: Option<Exact>,
    truncated: bool,
    skipped: BTreeMap<String, u64>,
    drops: u64,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    interrupted: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    anonymized: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    window: Option<WindowDto>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    other_end: Option<OtherEndDto>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) files: Vec<CaptureDto>,
}

/// Connections that are billed from another input.
#[derive(Debug, Serialize)]
struct OtherEndDto {
    of: usize,
    connections: u64,
    clock_ahead_ns: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    clock_drift_ppb: Option<i64>,
    round_trip_ns: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    one_way: Option<OneWaysDto>,
    elapsed_ns: i64,
    there_elapsed_ns: i64,
    bill: Vec<OtherLineDto>,
}

/// The path's two directions.
#[derive(Debug, Serialize)]
struct OneWaysDto {
    to_server: OneWayDto,
    to_client: OneWayDto,
}

#[derive(Debug, Serialize)]
struct OneWayDto {
    packets: u64,
    missing: Option<u64>,
    median_ns: i64,
    p99_ns: i64,
    max_ns: i64,
}

impl From<&OneWay> for OneWayDto {
    fn from(way: &OneWay) -> Self {
        Self {
            packets: way.packets,
            missing: way.missing,
            median_ns: way.median.as_nanos(),
            p99_ns: way.p99.as_nanos(),
            max_ns: way.max.as_nanos(),
        }
    }
}

#[derive(Debug, Serialize)]
struct OtherLineDto {
    cause: &'static str,
    side: &'static str,
    ns: i64,
    there_ns: i64,
}

impl From<&OtherEnd> for OtherEndDto {
    fn from(other: &OtherEnd) -> Self {
        let [here, there] = other.elapsed().map(Duration::as_nanos);
        let line = |line: &OtherLine| OtherLineDto {
            cause: line.cause.name(),
            side: line.side.name(),
            ns: line.here.as_nanos(),
            there_ns: line.there.as_nanos(),
        };
        Self {
            of: other.of,
            connections: other.connections,
            clock_ahead_ns: other.clock.map(|[ahead, _]| ahead.as_nanos()),
            clock_drift_ppb: other.drift_ppb,
            round_trip_ns: other.clock.map(|[_, round_trip]| round_trip.as_nanos()),
            one_way: other.ways.as_ref().map(|[to_server, to_client]| OneWaysDto {
                to_server: to_server.into(),
                to_client: to_client.into(),
            }),
            elapsed_ns: here,
            there_elapsed_ns: there,
            bill: other.bill.iter().map(line).collect(),
        }
    }
}

impl From<&CaptureInfo> for CaptureDto {
    fn from(info: &CaptureInfo) -> Self {
        Self {
            path: info.path.clone(),
            format: info.format.clone(),
            packets: info.packets,
            segments: info.segments,
            first_ns: info.first.map(Instant::as_nanos),
            last_ns: info.last.map(Instant::as_nanos),
            first: info.first.map(Exact),
            last: info.last.map(Exact),
            truncated: info.truncated,
            skipped: info.skipped.clone(),
            drops: info.drops,
            interrupted: info.interrupted,
            anonymized: info.is_anonymized,
            window: info.window.map(|(from, to)| WindowDto {
                from_ns: (from != Instant::MIN).then(|| from.as_nanos()),
                to_ns: (to != Instant::MAX).then(|| to.as_nanos()),
                from: (from != Instant::MIN).then_some(Exact(from)),
                to: (to != Instant::MAX).then_some(Exact(to)),
                unread_bytes: info.unread_bytes,
                stopped: info.stopped,
                renumbered: info.is_renumbered,
            }),
            failure: info.failure.clone(),
            other_end: info.other_end.as_ref().map(OtherEndDto::from),
            files: Vec::new(),
        }
    }
}

#[derive(Debug, Serialize)]
struct WindowDto {
    from_ns: Option<i64>,
    to_ns: Option<i64>,
    from: Option<Exact>,
    to: Option<Exact>,
    unread_bytes: u64,
    stopped: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    renumbered: bool,
}
