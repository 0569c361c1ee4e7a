//! What does a bill look like? Cause, side, time, share, what of it is only possible, number of
//! occurrences, and a bar.

use tcpwhy_core::report::{Confidence, Line, TotalLine};
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
    /// The part of it for which other explanations fit as well.
    possible: Duration,
    last: String,
}

/// The bill of the whole capture or of one connection.
pub(super) fn totals(lines: &[TotalLine], whole: Duration, style: Style) -> Vec<String> {
    let row = |line: &TotalLine| Row {
        cause: line.cause,
        side: line.side,
        ns: line.ns,
        possible: line.possible,
        last: count(line.hits),
    };
    let rows: Vec<Row> = lines.iter().map(row).collect();
    table(&rows, whole, ["possible", "times"], style)
}

/// The bill of one exchange.
pub(super) fn lines(lines: &[Line], whole: Duration, style: Style) -> Vec<String> {
    let row = |line: &Line| Row {
        cause: line.cause,
        side: line.side,
        ns: line.ns,
        possible: if line.confidence == Confidence::Possible { line.ns } else { Duration::ZERO },
        last: line.confidence.name().to_owned(),
    };
    let rows: Vec<Row> = lines.iter().map(row).collect();
    table(&rows, whole, ["", "confidence"], style)
}

/// `columns` are the names of the last two, the possible part (left out if it has no name or nothing to
/// show) and the rows' own.
fn table(rows: &[Row], whole: Duration, columns: [&str; 2], style: Style) -> Vec<String> {
    let [possible, last] = columns;
    let mut cells = vec![["cause", "side", "time", "share", possible, last].map(str::to_owned)];
    for row in rows {
        cells.push([
            row.cause.to_string(),
            row.side.to_string(),
            time(row.ns),
            percent(row.ns, whole),
            self::possible(row.possible),
            row.last.clone(),
        ]);
    }
    let width = widths(&cells);
    let mut shown = [true; 6];
    shown[4] = !possible.is_empty() && rows.iter().any(|row| row.possible.is_positive());
    // On a narrow terminal, the time and its share take precedence.
    for left_out in [5, 1, 4] {
        let taken = |(width, shown): (&usize, &bool)| if *shown { width + 2 } else { 0 };
        if width.iter().zip(&shown).map(taken).sum::<usize>() > style.width {
            shown[left_out] = false;
        }
    }
    let mut out = Vec::with_capacity(cells.len());
    for (i, [cause, side, time, share, possible, last]) in cells.into_iter().enumerate() {
        let cells = [
            left(&cause, width[0]),
            left(&side, width[1]),
            right(&time, width[2]),
            right(&share, width[3]),
            right(&possible, width[4]),
            right(&last, width[5]),
        ];
        let cells = cells.iter().zip(shown).filter(|(_, shown)| *shown).map(|(cell, _)| format!("  {cell}"));
        let text: String = cells.collect();
        match i.checked_sub(1).and_then(|i| rows.get(i)) {
            None => out.push(style.faint(&text)),
            Some(row) => {
                let room = style.width.saturating_sub(super::layout::columns(&text) + 2).min(BAR_COLUMNS);
                let parts = [row.ns - row.possible, row.possible];
                let bar = bar(parts, whole, room, style.ascii);
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

/// The possible part of a line, if there is one.
pub(super) fn possible(part: Duration) -> String {
    if part.is_positive() { time(part) } else { String::new() }
}
