//! Which connections are there, what did each take, and what was most of it?

use std::cmp::Reverse;

use tcpwhy_core::report::{Connection, Kind, Report};
use tcpwhy_wire::Duration;

use super::Style;
use super::layout::{left, right, widths};
use crate::clock::time_of_day;
use crate::quantity::{count, counted, percent, time};

/// What comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The connections that took most of the time.
    Cost,
    /// The earliest.
    Start,
    /// Those with the slowest exchange.
    Slowest,
}

fn cost(connection: &Connection) -> Duration {
    connection.bill.iter().map(|line| line.ns).sum()
}

fn slowest(connection: &Connection) -> Duration {
    connection.exchanges.iter().map(|exchange| exchange.elapsed).max().unwrap_or(Duration::ZERO)
}

/// The connections in this order.
pub fn ordered(report: &Report, order: Order) -> Vec<&Connection> {
    let mut connections: Vec<&Connection> = report.connections.iter().collect();
    match order {
        Order::Cost => connections.sort_by_key(|connection| Reverse(cost(connection))),
        Order::Start => connections.sort_by_key(|connection| connection.packet_range[0]),
        Order::Slowest => connections.sort_by_key(|connection| Reverse(slowest(connection))),
    }
    connections
}

/// What is said of each, under its heading.
fn cells(connections: &[&Connection], top: usize, style: Style) -> Vec<[String; 9]> {
    let mut cells = vec![
        ["n", "client", "server", "start", "duration", "exch.", "billed", "slowest", "top cause"]
            .map(str::to_owned),
    ];
    for connection in connections.iter().take(top) {
        let exchanges =
            connection.exchanges.iter().filter(|exchange| exchange.kind != Kind::Setup).count() as u64;
        let setups = connection.exchanges.len() as u64 - exchanges;
        let most = connection.bill.first().map_or_else(
            || "nothing billed".to_owned(),
            |line| format!("{} {}", line.cause, percent(line.ns, cost(connection))),
        );
        cells.push([
            connection.id.to_string(),
            connection.client.to_string(),
            connection.server.to_string(),
            time_of_day(connection.span[0], style.offset_s),
            time(connection.span[1] - connection.span[0]),
            count(connection.billed.saturating_sub(setups)),
            time(cost(connection)),
            time(slowest(connection)),
            most,
        ]);
    }
    cells
}

/// At most `top` connections as a table in Markdown.
pub fn list_as_markdown(report: &Report, order: Order, top: usize, style: Style) -> String {
    let connections = ordered(report, order);
    let rows = cells(&connections, top, style).into_iter().map(|row| format!("| {} |\n", row.join(" | ")));
    let mut rows: Vec<String> = rows.collect();
    rows.insert(1, "|--:|---|---|--:|--:|--:|--:|--:|---|\n".to_owned());
    let all = connections.len() as u64 + report.omitted.connections;
    let shown = connections.len().min(top) as u64;
    if all > shown {
        rows.push(format!("\nand {} more\n", count(all - shown)));
    }
    rows.concat()
}

/// At most `top` connections, a line each. Where the capture is one whole file, with the number that Wireshark gives the stream.
pub fn list(report: &Report, order: Order, top: usize, is_whole: bool, style: Style) -> String {
    let connections = ordered(report, order);
    let cells = cells(&connections, top, style);
    let width = widths(&cells);
    let mut out = Vec::with_capacity(cells.len() + 3);
    for (i, row) in cells.iter().enumerate() {
        let [id, client, server, start, lasts, exchanges, billed, slowest, most] = row;
        let text = format!(
            "{}  {}  {}  {}  {}  {}  {}  {}  {most}",
            right(id, width[0]),
            left(client, width[1]),
            left(server, width[2]),
            right(start, width[3]),
            right(lasts, width[4]),
            right(exchanges, width[5]),
            right(billed, width[6]),
            right(slowest, width[7]),
        );
        out.push(if i == 0 { style.faint(&text) } else { text.trim_end().to_owned() });
    }
    let listed = connections.len();
    if listed > top {
        out.push(format!("... and {} more (--top {listed} shows all)", count((listed - top) as u64)));
    }
    if report.omitted.connections > 0 {
        out.push(format!(
            "{} more not listed, beyond the first {}",
            counted(report.omitted.connections, "connection"),
            count(listed as u64)
        ));
    }
    if is_whole && let Some(first) = connections.first() {
        out.push(format!(
            "Connection n is `tcp.stream eq n-1` in Wireshark: the first one listed is tcp.stream eq {}.",
            first.id - 1
        ));
    }
    out.push(String::new());
    style.finish(out).join("\n")
}
