//! What happened on this one connection, exchange by exchange?

use tcpwhy_core::report::{Connection, Exchange, Report, Vantage};
use tcpwhy_wire::Instant;

use super::bill::totals;
use super::layout::{cut, left, right, wrap};
use super::{Style, conduct};
use crate::clock::{moment, time_of_day};
use crate::escape::visible;
use crate::quantity::{bytes, count, counted, percent, time};

/// Lines of exchanges on a screen; the rest are counted.
const SHOWN: usize = 200;
/// Columns that a question gets at most.
const ASKS_MAX: usize = 40;
/// Columns that the bill of an exchange gets at least: `nagle-delayed-ack 99.8 %`.
const BILL_MIN: usize = 24;

/// One connection: its ends, its bill, and its exchanges with a bill each, in order of time, or so many of the slowest. `None` where the report does not list it.
pub fn connection(report: &Report, id: u64, slowest: Option<usize>, style: Style) -> Option<String> {
    let connection = report.connections.iter().find(|connection| connection.id == id)?;
    let mut out = head(connection, style);
    out.push(String::new());
    let whole = connection.bill.iter().map(|line| line.ns).sum();
    out.extend(totals(&connection.bill, whole, style));
    out.push(String::new());
    let ends = conduct::ends(connection, style);
    if !ends.is_empty() {
        out.extend(ends);
        out.push(String::new());
    }
    out.extend(exchanges(connection, slowest, style));
    out.push(String::new());
    Some(style.finish(out).join("\n"))
}

/// Who talks to whom, and what is known of the path.
pub(super) fn head(connection: &Connection, style: Style) -> Vec<String> {
    let title = format!(
        "Connection {}: {} -> {}{}",
        connection.id,
        connection.client,
        connection.server,
        if connection.assumed { " (who is client is a guess)" } else { "" }
    );
    let rtt = connection.rtt_min.map_or_else(|| "unknown".to_owned(), time);
    let mss = |mss: Option<u16>| mss.map_or_else(|| "?".to_owned(), |mss| mss.to_string());
    let facts = format!(
        "{} (frames {} to {}) from {} on, {} from the client, {} from the server; smallest round trip {rtt}; MSS {} and {}; {}",
        counted(connection.packets, "packet"),
        connection.packet_range[0],
        connection.packet_range[1],
        moment(connection.span[0], style.offset_s),
        bytes(connection.bytes[0]),
        bytes(connection.bytes[1]),
        mss(connection.mss[0]),
        mss(connection.mss[1]),
        match connection.vantage {
            Vantage::Client => "captured at the client",
            Vantage::Server => "captured at the server",
            Vantage::Middle => "captured between the two",
            Vantage::Unknown => "where it was captured is not known",
        }
    );
    let mut out = vec![style.strong(&title)];
    out.extend(wrap(&facts, style.width, "", ""));
    out
}

fn exchanges(connection: &Connection, slowest: Option<usize>, style: Style) -> Vec<String> {
    let mut shown: Vec<&Exchange> = connection.exchanges.iter().collect();
    if slowest.is_some() {
        shown.sort_by_key(|exchange| std::cmp::Reverse(exchange.elapsed));
    }
    shown.truncate(slowest.unwrap_or(SHOWN));
    let origin = connection.exchanges.first().map(|exchange| exchange.start);
    let mut columns = columns_of(&shown, origin, style);
    columns.retain(|column| column.head != "asks" || column.cells.iter().any(|cell| !cell.is_empty()));
    let room_for_bill = |columns: &[Column]| {
        let taken: usize = columns.iter().map(|column| column.width + 2).sum();
        style.width.saturating_sub(taken + 2)
    };
    for left_out in ["idle before", "since first", "frames", "request"] {
        if room_for_bill(&columns) < BILL_MIN {
            columns.retain(|column| column.head != left_out);
        }
    }
    let room = room_for_bill(&columns);
    let line = |cell: &dyn Fn(&Column) -> String| {
        let mut line = String::new();
        for column in &columns {
            line.push_str("  ");
            line.push_str(&column.padded(&cell(column)));
        }
        line
    };
    let mut out = vec![style.faint(&format!("{}  bill", line(&|column| column.head.to_owned())))];
    for (i, exchange) in shown.iter().enumerate() {
        let text = line(&|column| column.cells[i].clone());
        out.push(format!("{text}  {}", first_line(exchange, room, style)));
    }
    let more = connection.exchanges.len() - shown.len();
    if more > 0 {
        let how = if slowest.is_some() {
            "faster ones"
        } else {
            "more: --slowest N sorts them, --json lists them all"
        };
        out.push(format!("  ... and {} {how}", count(more as u64)));
    }
    let unlisted = connection.billed.saturating_sub(connection.exchanges.len() as u64);
    if unlisted > 0 {
        out.push(format!(
            "  ... and {} that are in the bill only: no list has room for them",
            count(unlisted)
        ));
    }
    out
}

/// A column of the table.
struct Column {
    head: &'static str,
    cells: Vec<String>,
    width: usize,
}

impl Column {
    fn padded(&self, cell: &str) -> String {
        if matches!(self.head, "kind" | "asks") { left(cell, self.width) } else { right(cell, self.width) }
    }
}

fn columns_of(exchanges: &[&Exchange], origin: Option<Instant>, style: Style) -> Vec<Column> {
    let column = |head: &'static str, cell: &dyn Fn(&Exchange) -> String| {
        let cells: Vec<String> = exchanges.iter().map(|exchange| cell(exchange)).collect();
        let widest = cells.iter().map(|cell| super::layout::columns(cell)).max().unwrap_or(0);
        Column { head, width: widest.max(head.len()), cells }
    };
    let since = |exchange: &Exchange| {
        origin.map_or_else(String::new, |origin| format!("+{}", time(exchange.start - origin)))
    };
    vec![
        column("n", &|exchange| exchange.n.to_string()),
        column("kind", &|exchange| exchange.kind.name().to_owned()),
        column("at", &|exchange| time_of_day(exchange.start, style.offset_s)),
        column("since first", &since),
        column("elapsed", &|exchange| time(exchange.elapsed)),
        column("idle before", &|exchange| time(exchange.client_idle)),
        column("request", &|exchange| bytes(exchange.request_bytes)),
        column("reply", &|exchange| bytes(exchange.reply_bytes)),
        column("frames", &|exchange| format!("{}-{}", exchange.packets[0], exchange.packets[1])),
        column("asks", &|exchange| cut(&visible(exchange.request.as_deref().unwrap_or_default()), ASKS_MAX)),
    ]
}

/// The largest line of an exchange's bill, as far as there is room: `nagle-delayed-ack 99.8 %`.
fn first_line(exchange: &Exchange, room: usize, style: Style) -> String {
    exchange.bill.first().map_or_else(String::new, |line| {
        let text = format!("{} {}", line.cause, percent(line.ns, exchange.elapsed));
        style.cause(line.cause, &cut(&text, room))
    })
}
