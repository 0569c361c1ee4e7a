//! Which requests were slow?

use std::fmt::Write as _;

use tcpwhy_core::report::Report;

use super::Style;
use super::layout::{columns, cut, left, right};
use crate::escape::visible;
use crate::quantity::{count, time};
use crate::requests::{Requests, requests};

/// Kinds of requests shown; the rest are counted.
const SHOWN: usize = 10;
/// Maximum columns for a name.
const NAME_MAX: usize = 48;

/// The requests with the most total time, a line each; empty if none has a name.
pub(super) fn table(report: &Report, style: Style) -> Vec<String> {
    let all = requests(report);
    if all.is_empty() {
        return Vec::new();
    }
    let shown = &all[..all.len().min(SHOWN)];
    let mut rows = vec![["request", "times", "median", "p99", "top cause"].map(str::to_owned)];
    rows.extend(shown.iter().map(cells));
    let width = |i: usize| rows.iter().map(|row| columns(&row[i])).max().unwrap_or(0);
    let [_, times, median, p99, most] = [0, 1, 2, 3, 4].map(width);
    let taken = 4 + times + 2 + median + 2 + p99 + 2 + most;
    let name = width(0).min(NAME_MAX).min(style.width.saturating_sub(taken).max(12));
    let line = |row: &[String; 5]| {
        let text = format!(
            "  {}  {}  {}  {}  {}",
            left(&cut(&row[0], name), name),
            right(&row[1], times),
            right(&row[2], median),
            right(&row[3], p99),
            row[4]
        );
        cut(&text, style.width)
    };
    let mut out: Vec<String> = rows.iter().map(line).collect();
    if let Some(head) = out.first_mut() {
        *head = style.faint(head);
    }
    if all.len() > shown.len() {
        out.push(format!("  ... and {} more in --json", count((all.len() - shown.len()) as u64)));
    }
    out
}

/// `GET /api/items`, number, times, and `nagle-delayed-ack 43.8 ms in 40 of 40`.
fn cells(requests: &Requests) -> [String; 5] {
    let most = requests.bill.first().map_or_else(String::new, |line| {
        let (hits, of) = (count(line.hits), count(requests.count));
        format!("{} {} in {hits} of {of}", line.cause, time(line.p50))
    });
    [
        visible(&requests.name).into_owned(),
        count(requests.count),
        time(requests.p50),
        time(requests.p99),
        most,
    ]
}

/// The same as a table in Markdown.
pub(super) fn markdown(report: &Report) -> String {
    let all = requests(report);
    if all.is_empty() {
        return String::new();
    }
    let mut out = "\n| request | times | median | p99 | top cause |\n|---|--:|--:|--:|---|\n".to_owned();
    for requests in all.iter().take(SHOWN) {
        let [name, times, median, p99, most] = cells(requests);
        // A pipe would end the cell, and a back quote the code.
        let name = name.replace('|', "\\|").replace('`', "'");
        let _ = writeln!(out, "| `{name}` | {times} | {median} | {p99} | {most} |");
    }
    out
}
