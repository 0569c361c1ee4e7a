//! Which exchanges does the page draw, and what does it know about each?
//!
//! Those that the report lists: all of them up to a limit, beyond it a sample of the whole capture
//! (`tcpwhy_core::stands_for`). For connections that are drawn packet by packet, all.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use tcpwhy_core::report::{Connection, Exchange, Kind, Report};
use tcpwhy_core::stands_for;
use tcpwhy_wire::Instant;

use crate::columns::Column;

/// The exchanges, in order of start. Each has its bill as `lines` rows of the bill's columns.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Exchanges {
    /// Row of its connection.
    connection: Column,
    n: Column,
    kind: Column,
    /// Since the origin.
    start_ns: Column,
    elapsed_ns: Column,
    request_bytes: Column,
    reply_bytes: Column,
    first_packet: Column,
    /// Packets from the first to the last, both included.
    packets: Column,
    /// How many exchanges it represents; 0 if others represent it.
    stands_for: Column,
    lines: Column,
    /// The bills: index of the cause, side (client, server, path, unknown), confidence (possible,
    /// likely, certain), and time.
    bill_cause: Column,
    bill_side: Column,
    bill_confidence: Column,
    bill_ns: Column,
}

impl Exchanges {
    /// The exchanges listed by the report, and the others of the drawn connections, which represent
    /// none: they are represented by others. `rows` has the rows of connections by number.
    pub(crate) fn of(
        report: &Report,
        drawn: &[(u64, &Connection)],
        origin: Instant,
        rows: &BTreeMap<u64, usize>,
    ) -> Self {
        let mut stands_for = stands_for(report).into_iter();
        let mut all: Vec<(usize, u64, &Exchange)> = Vec::new();
        for connection in &report.connections {
            let row = rows.get(&connection.id).copied();
            for exchange in &connection.exchanges {
                let stands_for = stands_for.next().unwrap_or(1);
                all.extend(row.map(|row| (row, stands_for, exchange)));
            }
        }
        for (id, again) in drawn {
            let known: BTreeSet<u64> = report
                .connection(*id)
                .into_iter()
                .flat_map(|connection| &connection.exchanges)
                .map(|exchange| exchange.n)
                .collect();
            let more = again.exchanges.iter().filter(|exchange| !known.contains(&exchange.n));
            let row = rows.get(id).copied();
            all.extend(more.filter_map(|exchange| Some((row?, 0, exchange))));
        }
        all.sort_by_key(|(row, _, exchange)| (exchange.start, *row, exchange.n));
        let mut table = Self::default();
        for (row, stands_for, exchange) in all {
            table.push(row, exchange, origin, stands_for);
        }
        table
    }

    fn push(&mut self, row: usize, exchange: &Exchange, origin: Instant, stands_for: u64) {
        self.connection.push(row as i64);
        self.n.push_count(exchange.n);
        self.kind.push(match exchange.kind {
            Kind::Setup => 0,
            Kind::Exchange => 1,
            Kind::OneWay => 2,
            Kind::Subscription => 3,
        });
        self.start_ns.push((exchange.start - origin).as_nanos());
        self.elapsed_ns.push(exchange.elapsed.as_nanos());
        self.request_bytes.push_count(exchange.request_bytes);
        self.reply_bytes.push_count(exchange.reply_bytes);
        self.first_packet.push_count(exchange.packets[0]);
        self.packets.push_count(exchange.packets[1].saturating_sub(exchange.packets[0]) + 1);
        self.stands_for.push_count(stands_for);
        self.lines.push(exchange.bill.len() as i64);
        for line in &exchange.bill {
            self.bill_cause.push(line.cause as i64);
            self.bill_side.push(line.side as i64);
            self.bill_confidence.push(line.confidence as i64);
            self.bill_ns.push(line.ns.as_nanos());
        }
    }
}
