//! What does the page know of each connection?

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::Serialize;
use tcpwhy_core::report::{Connection, Report, Vantage};
use tcpwhy_wire::{Duration, Endpoint, Instant};

use crate::columns::Column;

/// The row of each connection by its number: for connections with listed exchanges, those of
/// findings, and those that are drawn.
pub(crate) fn rows(report: &Report, drawn: &[(u64, &Connection)]) -> BTreeMap<u64, usize> {
    let shown = report.findings.iter().map(|finding| finding.worst.0);
    let wanted: BTreeSet<u64> = shown.chain(drawn.iter().map(|(id, _)| *id)).collect();
    let is_shown =
        |connection: &&Connection| !connection.exchanges.is_empty() || wanted.contains(&connection.id);
    let shown = report.connections.iter().filter(is_shown);
    shown.enumerate().map(|(row, connection)| (connection.id, row)).collect()
}

/// Connections, in the order of their numbers.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Connections {
    /// The addresses and ports, each once.
    endpoints: Vec<String>,
    id: Column,
    /// Indexes of endpoints.
    client: Column,
    server: Column,
    /// Since the origin.
    first_ns: Column,
    last_ns: Column,
    packets: Column,
    client_bytes: Column,
    server_bytes: Column,
    /// -1 if unknown.
    rtt_min_ns: Column,
    /// client, server, middle, unknown
    vantage: Column,
    /// 1 if which end is the client is a guess.
    assumed: Column,
    /// Setups, exchanges and messages billed, listed or not, and their total time.
    billed: Column,
    elapsed_ns: Column,
    /// Index of the cause that took most of it; -1 if nothing was billed.
    cause: Column,
}

impl Connections {
    /// The connections that have a row.
    pub(crate) fn of(report: &Report, rows: &BTreeMap<u64, usize>, origin: Instant) -> Self {
        let mut table = Self::default();
        let mut places: HashMap<Endpoint, usize> = HashMap::new();
        for connection in report.connections.iter().filter(|connection| rows.contains_key(&connection.id)) {
            let ends = [connection.client, connection.server].map(|end| {
                *places.entry(end).or_insert_with(|| {
                    table.endpoints.push(end.to_string());
                    table.endpoints.len() - 1
                })
            });
            table.id.push_count(connection.id);
            table.client.push(ends[0] as i64);
            table.server.push(ends[1] as i64);
            table.first_ns.push((connection.span[0] - origin).as_nanos());
            table.last_ns.push((connection.span[1] - origin).as_nanos());
            table.packets.push_count(connection.packets);
            table.client_bytes.push_count(connection.bytes[0]);
            table.server_bytes.push_count(connection.bytes[1]);
            table.rtt_min_ns.push(connection.rtt_min.map_or(-1, Duration::as_nanos));
            table.vantage.push(match connection.vantage {
                Vantage::Client => 0,
                Vantage::Server => 1,
                Vantage::Middle => 2,
                Vantage::Unknown => 3,
            });
            table.assumed.push(i64::from(connection.assumed));
            table.billed.push_count(connection.billed);
            table.elapsed_ns.push(connection.cost().as_nanos());
            table.cause.push(connection.bill.first().map_or(-1, |line| line.cause as i64));
        }
        table
    }

    pub(crate) fn len(&self) -> usize {
        self.id.len()
    }
}
