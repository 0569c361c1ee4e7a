//! How do the two ends behave, and what did each round trip of a transfer carry?

use tcpwhy_core::Side;
use tcpwhy_core::conduct::{Acknowledging, Conduct, Controller, Round, WindowHistory};
use tcpwhy_core::report::{Connection, Exchange};

use super::Style;
use super::layout::{left, right, widths, wrap};
use crate::quantity::{bytes, count, counted, millis, time};

/// Rounds shown; the rest are counted.
const ROUNDS_SHOWN: usize = 24;
/// A few segments are a message: its packets show everything.
const TRANSFER_MIN: u64 = 5_000;

/// What the packets show of each end, a paragraph each. Empty if no packets were kept.
pub(super) fn ends(connection: &Connection, style: Style) -> Vec<String> {
    let mut out = Vec::new();
    for (end, name) in [(Side::Client, "client"), (Side::Server, "server")] {
        let said = sentences(&connection.conduct(end));
        if said.is_empty() {
            continue;
        }
        if out.is_empty() {
            out.push(style.faint("  endpoint behaviour"));
        }
        let first = format!("  {}  ", left(name, 6));
        out.extend(wrap(&said.join("; "), style.width, &first, &" ".repeat(first.len())));
    }
    out
}

fn sentences(conduct: &Conduct) -> Vec<String> {
    let mut said = Vec::new();
    said.extend(conduct.acknowledging.iter().flat_map(acknowledging));
    said.extend(conduct.window.map(window));
    if !conduct.writes.is_empty() {
        let sizes: Vec<String> = conduct
            .writes
            .iter()
            .map(|write| format!("{} ({})", bytes(write.bytes), times(write.times)))
            .collect();
        said.push(format!("writes {}", sizes.join(", ")));
    }
    said.extend(conduct.controller.map(controller));
    said
}

fn acknowledging(conduct: &Acknowledging) -> Vec<String> {
    let mut said = Vec::new();
    if let Some(every) = conduct.every {
        said.push(format!("acknowledges every {} of a burst", counted(u64::from(every), "segment")));
    }
    let single = conduct.held + conduct.prompt;
    match conduct.delay {
        Some(delay) => {
            let quick = match conduct.quick {
                0 => String::new(),
                1 => "; the first immediate".to_owned(),
                quick => format!("; the first {quick} immediate"),
            };
            said.push(format!(
                "delays acknowledgements of single segments by {} ({} of {single} times{quick})",
                time(delay),
                conduct.held
            ));
        }
        None if single > 0 => {
            said.push(format!("acknowledges single segments immediately ({})", times(conduct.prompt)));
        }
        None => {}
    }
    if conduct.with_data > 0 {
        said.push(format!("piggybacks acknowledgements on data ({})", times(conduct.with_data)));
    }
    said
}

fn window(history: WindowHistory) -> String {
    let grown = match history.grew_until {
        Some(until) => format!("at most {}, last grown after {}", bytes(history.largest), time(until)),
        None if history.largest > history.first => format!("at most {}", bytes(history.largest)),
        None => "never larger".to_owned(),
    };
    let shrunk = if history.closed > 0 {
        format!(", closed {}", times(history.closed))
    } else if history.smallest < history.first / 2 {
        format!(", down to {}", bytes(history.smallest))
    } else {
        String::new()
    };
    format!("initial window {}, {grown}{shrunk}", bytes(history.first))
}

fn controller(controller: Controller) -> String {
    let after = format!(
        "keeps {} % of its flight after a loss ({})",
        controller.kept_percent,
        times(controller.recoveries)
    );
    match controller.looks_like {
        Some(name) => format!("{after}, as {name} does"),
        None => format!("{after}: congestion control unknown"),
    }
}

/// The round trips of a transfer that took several of them, as a table.
pub(super) fn rounds(connection: &Connection, exchange: &Exchange, style: Style) -> Vec<String> {
    let transfer = exchange.request_bytes.max(exchange.reply_bytes) >= TRANSFER_MIN;
    let rounds = if transfer { connection.rounds(exchange) } else { Vec::new() };
    if rounds.len() < 2 {
        return Vec::new();
    }
    let mut cells = vec![["round", "at ms", "in flight", "window", "took", "mostly"].map(str::to_owned)];
    for (n, round) in rounds.iter().enumerate().take(ROUNDS_SHOWN) {
        cells.push(row(n, round, exchange));
    }
    let width = widths(&cells);
    let mut out: Vec<String> = cells
        .iter()
        .enumerate()
        .map(|(i, [n, at, flight, window, took, mostly])| {
            let text = format!(
                "  {}  {}  {}  {}  {}  {mostly}",
                right(n, width[0]),
                right(at, width[1]),
                right(flight, width[2]),
                right(window, width[3]),
                right(took, width[4]),
            );
            if i == 0 { style.faint(&text) } else { text.trim_end().to_owned() }
        })
        .collect();
    let more = rounds.len().saturating_sub(ROUNDS_SHOWN);
    if more > 0 {
        out.push(format!("  ... and {} more in --json", count(more as u64)));
    }
    out
}

fn row(n: usize, round: &Round, exchange: &Exchange) -> [String; 6] {
    [
        (n + 1).to_string(),
        millis(round.start - exchange.start),
        bytes(round.flight),
        bytes(round.window),
        time(round.took),
        round.billed.map_or_else(String::new, |(cause, ns)| format!("{cause} {}", time(ns))),
    ]
}

fn times(n: u32) -> String {
    if n == 1 { "once".to_owned() } else { format!("{} times", count(u64::from(n))) }
}
