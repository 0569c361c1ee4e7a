//! Which packet waited for which? The client on the left, the server on the right, time running down.
//!
//! Above a segment that waited is what the wait was billed to; after it is what released it.

use std::fmt::Write as _;

use tcpwhy_core::Side;
use tcpwhy_core::report::{Connection, Exchange, Report, Rung, Trigger};
use tcpwhy_wire::Instant;

use super::bill::lines;
use super::connection::head;
use super::findings::measured;
use super::layout::{columns, left, right, wrap};
use super::{Style, conduct};
use crate::capture::{CaptureInfo, Frames};
use crate::clock::time_of_day;
use crate::quantity::{bytes, count, counted, millis, time};

/// Columns between the two ends, if there is room.
const LANE: usize = 52;
/// With fewer columns, the packet's label does not fit.
const LANE_MIN: usize = 36;
/// Columns for the trigger of a packet: `released by #12345`.
const TRIGGER: usize = 20;

/// The packets of one exchange (or of the whole connection) as a ladder, with the bill above.
/// `None` if the report does not list the connection or the exchange.
pub fn ladder(
    report: &Report,
    files: &[CaptureInfo],
    id: u64,
    exchange: Option<u64>,
    style: Style,
) -> Option<String> {
    let connection = report.connection(id)?;
    let chosen = match exchange {
        Some(n) => Some(connection.exchanges.iter().find(|exchange| exchange.n == n)?),
        None => None,
    };
    let mut out = head(connection, files, style);
    let rungs: Vec<&Rung> =
        connection.ladder.iter().filter(|rung| exchange.is_none() || rung.exchange() == exchange).collect();
    if let Some(exchange) = chosen {
        out.push(String::new());
        out.extend(summary(exchange, style));
        let rounds = conduct::rounds(connection, exchange, style);
        if !rounds.is_empty() {
            out.push(String::new());
            out.extend(rounds);
        }
    }
    out.push(String::new());
    if rungs.is_empty() {
        out.push("Its packets were not kept.".to_owned());
    } else {
        let start = chosen.map_or(rungs[0].at, |exchange| exchange.start);
        let released = |rung: &&Rung| match rung.trigger() {
            Trigger::Packet(packet) => Some(packet),
            _ => None,
        };
        let packets = rungs.iter().map(|rung| rung.packet);
        let frames = Frames::of(files, packets.chain(rungs.iter().filter_map(released)));
        if let Some(legend) = frames.legend() {
            out.extend(wrap(&legend, style.width, "", "  ").iter().map(|line| style.faint(line)));
        }
        out.extend(rows(connection, &rungs, start, &frames, style));
    }
    if connection.ladder_omitted > 0 {
        let more = counted(connection.ladder_omitted, "packet");
        out.push(format!("... and {more} of this connection, beyond the --memory limit"));
    }
    out.push(String::new());
    Some(style.finish(out).join("\n"))
}

fn summary(exchange: &Exchange, style: Style) -> Vec<String> {
    let title = format!(
        "{} {} at {}: {}, request {}, reply {}, after {} idle",
        match exchange.kind {
            tcpwhy_core::report::Kind::Setup => "Setup",
            tcpwhy_core::report::Kind::Exchange => "Exchange",
            tcpwhy_core::report::Kind::OneWay => "One-way message",
            tcpwhy_core::report::Kind::Subscription => "Subscription",
        },
        exchange.n,
        time_of_day(exchange.start, style.offset_s),
        time(exchange.elapsed),
        bytes(exchange.request_bytes),
        bytes(exchange.reply_bytes),
        time(exchange.client_idle)
    );
    let mut out: Vec<String> =
        wrap(&title, style.width, "", "  ").iter().map(|line| style.strong(line)).collect();
    out.extend(lines(&exchange.bill, exchange.elapsed, style));
    for line in &exchange.bill {
        if let Some(measured) = measured(&line.detail) {
            out.extend(wrap(&format!("{}: {measured}", line.cause), style.width, "  ", "    "));
        }
    }
    if exchange.awaited.is_positive() {
        let waited =
            format!("It waited {} for news from the server (long poll); not billed.", time(exchange.awaited));
        out.extend(wrap(&waited, style.width, "  ", "  "));
    }
    out
}

fn rows(
    connection: &Connection,
    rungs: &[&Rung],
    start: Instant,
    frames: &Frames<'_>,
    style: Style,
) -> Vec<String> {
    let numbers = rungs.iter().map(|rung| frames.name(rung.packet).len()).max().unwrap_or(1).max(5);
    let times = rungs.iter().map(|rung| millis(rung.at - start).len()).max().unwrap_or(1).max(6);
    let (client, server) = (format!("client {}", connection.client), format!("server {}", connection.server));
    let lane = style.width.saturating_sub(times + numbers + 4 + TRIGGER).clamp(LANE_MIN, LANE);
    let gap = lane.saturating_sub(columns(&client) + columns(&server));
    let mut out = vec![style.faint(&format!(
        "{}  {}  {client}{}{server}",
        right("ms", times),
        right("frame", numbers),
        " ".repeat(gap.max(2))
    ))];
    let margin = " ".repeat(times + numbers + 4);
    let mut before = None;
    for rung in rungs {
        // A wait that does not begin with the packet above says with which packet it begins.
        let since = rung.since().filter(|since| before != Some(*since));
        let since = since.map_or_else(String::new, |since| format!(" since #{}", frames.name(since)));
        before = Some(rung.packet);
        for (cause, span) in rung.billed.lines() {
            let text = format!("{} {cause}{since}", time(span));
            let (before, after) = if style.ascii { ("|", "|") } else { ("┊", "┊") };
            let inner = format!("{text:^width$}", width = lane.saturating_sub(2));
            out.push(format!("{margin}{before}{}{after}", style.cause(cause, &inner)));
        }
        let text = format!(
            "{}  {}  {}  {}",
            right(&millis(rung.at - start), times),
            right(&frames.name(rung.packet), numbers),
            arrow(rung, lane, style),
            trigger(rung, frames)
        );
        out.push(text.trim_end().to_owned());
    }
    out
}

/// The packet's label, on a line that points to its receiver.
fn arrow(rung: &Rung, lane: usize, style: Style) -> String {
    let mut label = format!("{:?}", rung.flags);
    if rung.len > 0 || rung.flags.syn() || rung.flags.fin() {
        let _ = write!(label, " {}+{}", count(u64::from(rung.seq)), count(u64::from(rung.len)));
    }
    if let Some(ack) = rung.ack() {
        let _ = write!(label, " ack {}", count(u64::from(ack)));
    }
    match rung.window_scale {
        Some(_) => {
            let _ = write!(label, " win {}", count(u64::from(rung.window)));
        }
        // The window scale was in a handshake that is not in the capture.
        None => {
            let _ = write!(label, " win {} raw", count(u64::from(rung.window_field)));
        }
    }
    let (dash, to_right, to_left) = if style.ascii { ("-", ">", "<") } else { ("─", "▶", "◀") };
    let room = lane.saturating_sub(columns(&label) + 2);
    if rung.from == Side::Server {
        format!("{to_left}{} {}", dash.repeat(room), left(&label, columns(&label)))
    } else {
        format!("{label} {}{to_right}", dash.repeat(room))
    }
}

fn trigger(rung: &Rung, frames: &Frames<'_>) -> String {
    match rung.trigger() {
        Trigger::Write => format!("{} writes", rung.from),
        Trigger::Packet(packet) => format!("released by #{}", frames.name(packet)),
        Trigger::Timer => "timer expired".to_owned(),
        Trigger::Burst => "same burst".to_owned(),
        Trigger::Control => String::new(),
    }
}
