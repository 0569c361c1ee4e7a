//! How do bills get into spreadsheets and databases?
//!
//! One row for each line of each exchange's bill (RFC 4180); the exchange's own fields are repeated
//! in each of its rows. Times are nanoseconds, points in time since 1970 (UTC), sizes bytes. No
//! field contains a comma, a quote or a line break, except for the request, which is quoted and is
//! there only if it was asked for.

use std::io;

use tcpwhy_core::report::{Connection, Report};

use crate::escape::visible;
use crate::json::moment::Exact;
use crate::text::Streams;

/// The columns of [`bills`].
const BILLS: &str = "connection,client,server,exchange,kind,initiator,start,start_ns,elapsed_ns,request_bytes,reply_bytes,cause,side,ns,confidence,first_frame,last_frame";
/// The columns of [`connections`].
const CONNECTIONS: &str = "connection,client,server,vantage,start,start_ns,lasts_ns,rtt_min_ns,packets,client_bytes,server_bytes,billed,billed_ns,slowest_ns,cause,cause_ns,tcp_stream_4_0,tcp_stream_4_4";

/// The bills of all listed exchanges, with a column for the request if `has_requests`.
///
/// # Errors
/// Those of the writer.
pub fn bills(report: &Report, has_requests: bool, out: &mut impl io::Write) -> io::Result<()> {
    writeln!(out, "{BILLS}{}", if has_requests { ",request" } else { "" })?;
    for connection in &report.connections {
        for exchange in &connection.exchanges {
            let asked = exchange.request.as_deref().unwrap_or_default();
            let asked = if has_requests { format!(",{}", quoted(asked)) } else { String::new() };
            for line in &exchange.bill {
                let Connection { id, client, server, .. } = connection;
                let (start, start_ns) = (Exact(exchange.start), exchange.start.as_nanos());
                let [first, last] = exchange.packets;
                writeln!(
                    out,
                    "{id},{client},{server},{},{},{},{start},{start_ns},{},{},{},{},{},{},{},{first},{last}{asked}",
                    exchange.n,
                    exchange.kind.name(),
                    exchange.initiator.name(),
                    exchange.elapsed.as_nanos(),
                    exchange.request_bytes,
                    exchange.reply_bytes,
                    line.cause,
                    line.side,
                    line.ns.as_nanos(),
                    line.confidence.name(),
                )?;
            }
        }
    }
    Ok(())
}

/// A stranger's text as one field, which no spreadsheet takes for a formula.
fn quoted(text: &str) -> String {
    let guard = if text.starts_with(['=', '+', '-', '@']) { "'" } else { "" };
    format!("\"{guard}{}\"", visible(text).replace('"', "\"\""))
}

/// The connections, a row each, with Wireshark's stream numbers in versions 4.0 and 4.4, several
/// separated by blanks.
///
/// # Errors
/// Those of the writer.
pub fn connections(
    connections: &[&Connection],
    streams: Streams<'_>,
    out: &mut impl io::Write,
) -> io::Result<()> {
    writeln!(out, "{CONNECTIONS}")?;
    for connection in connections {
        let Connection { id, client, server, span: [start, end], bytes: [sent, received], .. } = connection;
        let billed: i64 = connection.bill.iter().map(|line| line.ns.as_nanos()).sum();
        let slowest = connection.exchanges.iter().map(|exchange| exchange.elapsed.as_nanos()).max();
        let streams = streams
            .numbers(connection)
            .map(|numbers| numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(" "));
        let rtt = connection.rtt_min.map_or_else(String::new, |rtt| rtt.as_nanos().to_string());
        let (cause, ns) =
            connection.bill.first().map_or(("", 0), |line| (line.cause.name(), line.ns.as_nanos()));
        writeln!(
            out,
            "{id},{client},{server},{},{},{},{},{rtt},{},{sent},{received},{},{billed},{},{cause},{ns},{}",
            connection.vantage.name(),
            Exact(*start),
            start.as_nanos(),
            (*end - *start).as_nanos(),
            connection.packets,
            connection.billed,
            slowest.unwrap_or(0),
            streams.join(","),
        )?;
    }
    Ok(())
}
