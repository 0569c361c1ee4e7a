//! Which exchanges does the page draw, and what does it know of each?
//!
//! All of them up to a number; beyond it the slowest, and of the others every k-th, which stands for k.

use serde::Serialize;
use tcpwhy_core::report::{Exchange, Kind, Report};
use tcpwhy_wire::Instant;

use crate::columns::Column;

/// So many rows at most. A row takes some 12 bytes of the file.
pub(crate) const ROWS_MAX: usize = 150_000;

/// The exchanges, in the order of their starts. Each has its bill as `lines` rows of the bill's columns.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Exchanges {
    /// Row among the connections.
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
    /// How many exchanges it stands for.
    stands_for: Column,
    lines: Column,
    /// Of the bills: which cause, by its place among the causes, whose side (client, server, path, unknown), how sure (possible, likely, certain), how long.
    bill_cause: Column,
    bill_side: Column,
    bill_confidence: Column,
    bill_ns: Column,
}

impl Exchanges {
    pub(crate) fn of(report: &Report, origin: Instant, rows_max: usize) -> Self {
        let mut all: Vec<(usize, &Exchange)> = report
            .connections
            .iter()
            .enumerate()
            .flat_map(|(row, connection)| connection.exchanges.iter().map(move |exchange| (row, exchange)))
            .collect();
        all.sort_by_key(|(row, exchange)| (exchange.start, *row, exchange.n));
        let mut table = Self::default();
        for (stands_for, row, exchange) in thinned(&all, rows_max) {
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

/// Row and exchange, and how many each stands for: the slowest ones for themselves, of the others every k-th for k.
fn thinned<'a>(all: &[(usize, &'a Exchange)], rows_max: usize) -> Vec<(u64, usize, &'a Exchange)> {
    if all.len() <= rows_max {
        return all.iter().map(|(row, exchange)| (1, *row, *exchange)).collect();
    }
    let slow_max = rows_max / 2;
    let mut by_time: Vec<usize> = (0..all.len()).collect();
    by_time.sort_by_key(|at| (std::cmp::Reverse(all[*at].1.elapsed), *at));
    let mut slow = vec![false; all.len()];
    by_time.iter().take(slow_max).for_each(|at| slow[*at] = true);
    let others = all.len() - slow_max;
    let k = others.div_ceil((rows_max - slow_max).max(1)).max(1);
    let (mut out, mut seen) = (Vec::with_capacity(rows_max), 0);
    for (at, (row, exchange)) in all.iter().enumerate() {
        if slow[at] {
            out.push((1, *row, *exchange));
        } else {
            if seen % k == 0 {
                out.push((k.min(others - seen) as u64, *row, *exchange));
            }
            seen += 1;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use tcpwhy_core::Side;
    use tcpwhy_wire::Duration;

    use super::*;

    fn exchange(n: u64, elapsed_ms: i64) -> Exchange {
        Exchange {
            n,
            kind: Kind::Exchange,
            initiator: Side::Client,
            by: None,
            start: Instant::from_nanos(n as i64),
            elapsed: Duration::from_millis(elapsed_ms),
            awaited: Duration::ZERO,
            client_idle: Duration::ZERO,
            request_bytes: 1,
            reply_bytes: 1,
            packets: [n, n],
            request: None,
            bill: Vec::new(),
        }
    }

    #[test]
    fn the_slowest_stay_and_the_others_stand_for_all() {
        let exchanges: Vec<Exchange> =
            (0..1_003).map(|n| exchange(n, if n % 100 == 7 { 40 } else { 1 })).collect();
        let all: Vec<_> = exchanges.iter().map(|exchange| (0, exchange)).collect();
        for rows_max in [2, 10, 50, 100, 999, 1_003, 5_000] {
            let thin = thinned(&all, rows_max);
            assert!(thin.len() <= rows_max.max(2), "{} rows of at most {rows_max}", thin.len());
            assert_eq!(thin.iter().map(|(stands_for, ..)| stands_for).sum::<u64>(), 1_003, "{rows_max}");
            assert!(thin.is_sorted_by_key(|(_, _, exchange)| exchange.start));
            let slow = thin.iter().filter(|(_, _, exchange)| exchange.elapsed.as_nanos() == 40_000_000);
            assert!(rows_max < 50 || slow.clone().count() == 10, "{rows_max}");
            assert!(rows_max < 50 || slow.map(|(stands_for, ..)| stands_for).sum::<u64>() == 10);
        }
    }
}
