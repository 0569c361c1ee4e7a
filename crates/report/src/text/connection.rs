//! What happened on this one connection, exchange by exchange?

use tcpwhy_core::report::{Connection, Exchange, Report, Vantage};

use super::bill::totals;
use super::layout::{cut, left, right, widths, wrap};
use super::{Style, conduct};
use crate::quantity::{bytes, count, counted, percent, time};

/// Lines of exchanges on a screen; the rest are counted.
const SHOWN: usize = 200;

/// One connection: its ends, its bill, and its exchanges with a bill each. `None` where the report does not list it.
pub fn connection(report: &Report, id: u64, style: Style) -> Option<String> {
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
    out.extend(exchanges(connection, style));
    out.push(String::new());
    Some(out.join("\n"))
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
        "{} (frames {} to {}), {} from the client, {} from the server; smallest round trip {rtt}; MSS {} and {}; {}",
        counted(connection.packets, "packet"),
        connection.packet_range[0],
        connection.packet_range[1],
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

fn exchanges(connection: &Connection, style: Style) -> Vec<String> {
    let mut cells = vec![
        ["n", "kind", "start", "elapsed", "idle before", "request", "reply", "frames"].map(str::to_owned),
    ];
    let origin = connection.exchanges.first().map(|exchange| exchange.start);
    let shown = connection.exchanges.iter().take(SHOWN);
    for exchange in shown.clone() {
        let start = origin.map_or_else(String::new, |origin| format!("+{}", time(exchange.start - origin)));
        cells.push([
            exchange.n.to_string(),
            exchange.kind.name().to_owned(),
            start,
            time(exchange.elapsed),
            time(exchange.client_idle),
            bytes(exchange.request_bytes),
            bytes(exchange.reply_bytes),
            format!("{}-{}", exchange.packets[0], exchange.packets[1]),
        ]);
    }
    let width = widths(&cells);
    let mut out = Vec::with_capacity(cells.len() + 1);
    let mut exchanges = shown;
    for (i, row) in cells.iter().enumerate() {
        let [n, kind, start, elapsed, idle, request, reply, frames] = row;
        let text = format!(
            "  {}  {}  {}  {}  {}  {}  {}  {}",
            right(n, width[0]),
            left(kind, width[1]),
            right(start, width[2]),
            right(elapsed, width[3]),
            right(idle, width[4]),
            right(request, width[5]),
            right(reply, width[6]),
            right(frames, width[7])
        );
        if i == 0 {
            out.push(style.faint(&format!("{text}  bill")));
        } else if let Some(exchange) = exchanges.next() {
            let room = style.width.saturating_sub(super::layout::columns(&text) + 2);
            out.push(format!("{text}  {}", first_line(exchange, room, style)));
        }
    }
    let more = connection.exchanges.len().saturating_sub(SHOWN);
    if more > 0 {
        out.push(format!("  ... and {} more: --json lists them", count(more as u64)));
    }
    out
}

/// The largest line of an exchange's bill, as far as there is room: `nagle-delayed-ack 99.8 %`.
fn first_line(exchange: &Exchange, room: usize, style: Style) -> String {
    exchange.bill.first().map_or_else(String::new, |line| {
        let text = format!("{} {}", line.cause, percent(line.ns, exchange.elapsed));
        style.cause(line.cause, &cut(&text, room))
    })
}
