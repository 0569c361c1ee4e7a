//! What happened on this one connection, exchange by exchange?

use tcpwhy_core::report::{Connection, Exchange, Report, Vantage};
use tcpwhy_wire::Instant;

use super::bill::totals;
use super::layout::{cut, left, right, wrap};
use super::{Style, conduct};
use crate::capture::{CaptureInfo, Frames};
use crate::clock::{moment, time_of_day};
use crate::escape::visible;
use crate::quantity::{bytes, count, counted, percent, time};

/// Exchanges shown; the rest are counted.
const SHOWN: usize = 200;
/// Maximum columns for a request.
const ASKS_MAX: usize = 40;
/// Minimum columns for the bill of an exchange: `nagle-delayed-ack 99.8 %`.
const BILL_MIN: usize = 24;

/// One connection: its ends, its bill, and its exchanges with a bill each, in order of time, or the
/// `slowest` ones. `None` if the report does not list it.
pub fn connection(
    report: &Report,
    files: &[CaptureInfo],
    id: u64,
    slowest: Option<usize>,
    style: Style,
) -> Option<String> {
    let connection = report.connection(id)?;
    let mut out = head(connection, files, style);
    out.push(String::new());
    let whole = connection.cost();
    out.extend(totals(&connection.bill, whole, style));
    out.push(String::new());
    let ends = conduct::ends(connection, style);
    if !ends.is_empty() {
        out.extend(ends);
        out.push(String::new());
    }
    out.extend(exchanges(connection, files, slowest, style));
    out.push(String::new());
    Some(style.finish(out).join("\n"))
}

/// The two ends, and what is known of the path.
pub(super) fn head(connection: &Connection, files: &[CaptureInfo], style: Style) -> Vec<String> {
    let frames = Frames::of(files, connection.packet_range);
    let title = format!(
        "Connection {}: {} -> {}{}",
        connection.id,
        connection.client,
        connection.server,
        if connection.assumed { " (client and server are a guess)" } else { "" }
    );
    let rtt = connection.rtt_min.map_or_else(|| "unknown".to_owned(), time);
    let mss = |mss: Option<u16>| mss.map_or_else(|| "?".to_owned(), |mss| mss.to_string());
    let first = connection.ladder.first().filter(|rung| rung.packet == connection.packet_range[0]);
    let counts_anew = first.is_some() && !connection.opening.has_syn;
    let facts = format!(
        "{} (frames {} to {}) from {}, {} from the client, {} from the server; minimum round trip {rtt}; MSS {} and {}; {}{}",
        counted(connection.packets, "packet"),
        frames.name(connection.packet_range[0]),
        frames.name(connection.packet_range[1]),
        moment(connection.span[0], style.offset_s),
        bytes(connection.bytes[0]),
        bytes(connection.bytes[1]),
        mss(connection.mss[0]),
        mss(connection.mss[1]),
        match connection.vantage {
            Vantage::Client => "captured at the client",
            Vantage::Server => "captured at the server",
            Vantage::Middle => "captured between client and server",
            Vantage::Unknown => "capture point unknown",
        },
        if counts_anew {
            "; sequence numbers count from each side's first packet, for its SYN was not read"
        } else {
            ""
        }
    );
    let mut out = vec![style.strong(&title)];
    out.extend(wrap(&facts, style.width, "", ""));
    out
}

fn exchanges(
    connection: &Connection,
    files: &[CaptureInfo],
    slowest: Option<usize>,
    style: Style,
) -> Vec<String> {
    let mut shown: Vec<&Exchange> = connection.exchanges.iter().collect();
    if slowest.is_some() {
        shown.sort_by_key(|exchange| std::cmp::Reverse(exchange.elapsed));
    }
    shown.truncate(slowest.unwrap_or(SHOWN));
    let origin = connection.exchanges.first().map(|exchange| exchange.start);
    let frames = Frames::of(files, shown.iter().flat_map(|exchange| exchange.packets));
    let mut columns = columns_of(&shown, origin, &frames, style);
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
    let mut out = Vec::new();
    if let Some(legend) = frames.legend().filter(|_| columns.iter().any(|column| column.head == "frames")) {
        out.extend(wrap(&legend, style.width, "  ", "    ").iter().map(|line| style.faint(line)));
    }
    let line = |cell: &dyn Fn(&Column) -> String| {
        let mut line = String::new();
        for column in &columns {
            line.push_str("  ");
            line.push_str(&column.padded(&cell(column)));
        }
        line
    };
    out.push(style.faint(&format!("{}  bill", line(&|column| column.head.to_owned()))));
    for (i, exchange) in shown.iter().enumerate() {
        let text = line(&|column| column.cells[i].clone());
        out.push(format!("{text}  {}", first_line(exchange, room, style)));
    }
    let more = connection.exchanges.len() - shown.len();
    if more > 0 {
        let how = if slowest.is_some() {
            "faster ones"
        } else {
            "more (--slowest N for the slowest, --json for all)"
        };
        out.push(format!("  ... and {} {how}", count(more as u64)));
    }
    let unlisted = connection.billed.saturating_sub(connection.exchanges.len() as u64);
    if unlisted > 0 {
        out.push(format!("  ... and {} only in the bill: the lists are full", count(unlisted)));
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

fn columns_of(
    exchanges: &[&Exchange],
    origin: Option<Instant>,
    frames: &Frames<'_>,
    style: Style,
) -> Vec<Column> {
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
        column("frames", &|exchange| exchange.packets.map(|packet| frames.name(packet)).join("-")),
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
