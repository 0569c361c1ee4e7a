//! What does a bill look like? Cause, side, time, share, number of occurrences, and a bar.

use tcpwhy_core::report::{Line, TotalLine};
use tcpwhy_core::{Cause, Side};
use tcpwhy_wire::Duration;

use super::Style;
use super::layout::{bar, left, right, widths};
use crate::quantity::{count, percent, time};

/// Maximum length of a bar.
const BAR_COLUMNS: usize = 40;

struct Row {
    cause: Cause,
    side: Side,
    ns: Duration,
    last: String,
}

/// The bill of the whole capture or of one connection.
pub(super) fn totals(lines: &[TotalLine], whole: Duration, style: Style) -> Vec<String> {
    let rows: Vec<Row> = lines
        .iter()
        .map(|line| Row { cause: line.cause, side: line.side, ns: line.ns, last: count(line.hits) })
        .collect();
    table(&rows, whole, "times", style)
}

/// The bill of one exchange.
pub(super) fn lines(lines: &[Line], whole: Duration, style: Style) -> Vec<String> {
    let rows: Vec<Row> = lines
        .iter()
        .map(|line| Row {
            cause: line.cause,
            side: line.side,
            ns: line.ns,
            last: line.confidence.name().to_owned(),
        })
        .collect();
    table(&rows, whole, "confidence", style)
}

fn table(rows: &[Row], whole: Duration, last: &str, style: Style) -> Vec<String> {
    let mut cells = vec![["cause", "side", "time", "share", last].map(str::to_owned)];
    for row in rows {
        cells.push([
            row.cause.to_string(),
            row.side.to_string(),
            time(row.ns),
            percent(row.ns, whole),
            row.last.clone(),
        ]);
    }
    let width = widths(&cells);
    // On a narrow terminal, the time and its share take precedence.
    let mut shown = [true; 5];
    for left_out in [4, 1] {
        let taken = |(width, shown): (&usize, &bool)| if *shown { width + 2 } else { 0 };
        if width.iter().zip(&shown).map(taken).sum::<usize>() > style.width {
            shown[left_out] = false;
        }
    }
    let mut out = Vec::with_capacity(cells.len());
    for (i, [cause, side, time, share, last]) in cells.into_iter().enumerate() {
        let cells = [
            left(&cause, width[0]),
            left(&side, width[1]),
            right(&time, width[2]),
            right(&share, width[3]),
            right(&last, width[4]),
        ];
        let cells = cells.iter().zip(shown).filter(|(_, shown)| *shown).map(|(cell, _)| format!("  {cell}"));
        let text: String = cells.collect();
        match i.checked_sub(1).and_then(|i| rows.get(i)) {
            None => out.push(style.faint(&text)),
            Some(row) => {
                let room = style.width.saturating_sub(super::layout::columns(&text) + 2).min(BAR_COLUMNS);
                let bar = bar(row.ns.as_nanos(), whole.as_nanos(), room, style.ascii);
                out.push(if bar.is_empty() {
                    text
                } else {
                    format!("{text}  {}", style.cause(row.cause, &bar))
                });
            }
        }
    }
    style.finish(out)
}
