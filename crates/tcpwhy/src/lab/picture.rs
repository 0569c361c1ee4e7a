//! What does a run look like? Packets per second, the receive window, or how long exchanges take,
//! drawn in the terminal.

use std::fmt::Write as _;

use tcpwhy_core::report::Kind;
use tcpwhy_lab::scenario::Picture;
use tcpwhy_report::Style;
use tcpwhy_report::quantity::{bytes, count, time};
use tcpwhy_wire::{Duration, Instant};

use super::form::Run;

/// Lines of the picture that the scenario asks for.
pub(super) fn of(run: &Run, style: Style) -> String {
    match run.scenario.picture {
        None => String::new(),
        Some(Picture::Histogram) => {
            let title = "  how long exchanges take, by the client's clock\n";
            format!("{title}{}", histogram(run.clocked.kind(Kind::Exchange), style))
        }
        Some(what) => over_time(run, what, style),
    }
}

/// The first exchange, from its first write to its last read.
fn over_time(run: &Run, what: Picture, style: Style) -> String {
    let Some(first) = run.truth.exchanges().next() else { return String::new() };
    let (start, end) = (Instant::from_nanos(first.start_ns), Instant::from_nanos(first.end_ns));
    let n = style.width.saturating_sub(LABEL + 3).clamp(10, COLUMNS_MAX);
    let (title, values) = match what {
        Picture::Window => ("the client's receive window", run.trace.window(start, end, n)),
        _ => ("packets in a second that reach the client", run.trace.packets_per_s(start, end, n)),
    };
    let written = |value: f64| match what {
        Picture::Window => bytes(value as u64),
        _ => count(value as u64),
    };
    let mut out = format!("  {title}, over the {} of the first exchange\n", time(end - start));
    out.push_str(&columns(&values, written, style.ascii));
    out
}

/// One column for each value, scaled to the largest.
fn columns(values: &[f64], written: impl Fn(f64) -> String, ascii: bool) -> String {
    let max = values.iter().copied().fold(0.0, f64::max);
    if max <= 0.0 {
        return String::new();
    }
    let mut out = String::new();
    for row in (0..ROWS).rev() {
        let label = if row == ROWS - 1 { written(max) } else { String::new() };
        // Writing to a String never fails.
        let _ = write!(out, "  {label:>LABEL$} ");
        let cells = values.iter().map(|value| {
            let eighths = (value / max * (ROWS * 8) as f64).round() as usize;
            let here = eighths.saturating_sub(row * 8).min(8);
            match (ascii, here) {
                (false, here) => EIGHTHS[here],
                (true, 0..4) => ' ',
                (true, _) => '#',
            }
        });
        let line: String = cells.collect();
        out.push_str(line.trim_end());
        out.push('\n');
    }
    let _ = writeln!(out, "  {:>LABEL$} {}", "0", if ascii { "-" } else { "─" }.repeat(values.len()));
    out
}

/// How many exchanges took how long, in steps of 1, 2, 5.
fn histogram(clocked: &[Duration], style: Style) -> String {
    let bounds: Vec<i64> = (3..10).flat_map(|power| [1, 2, 5].map(|step| step * 10_i64.pow(power))).collect();
    let bucket = |span: &Duration| bounds.partition_point(|bound| *bound <= span.as_nanos());
    let buckets: Vec<usize> = clocked.iter().map(bucket).collect();
    let (Some(first), Some(last)) = (buckets.iter().min(), buckets.iter().max()) else {
        return String::new();
    };
    let room = style.width.saturating_sub(2 * LABEL + 20).clamp(10, COLUMNS_MAX);
    let mut out = String::new();
    for step in *first..=*last {
        let n = buckets.iter().filter(|bucket| **bucket == step).count();
        let below = bounds.get(step).map_or_else(String::new, |ns| time(Duration::from_nanos(*ns)));
        let bar = if style.ascii { "#" } else { "█" }.repeat((n * room).div_ceil(clocked.len()));
        let share = 100.0 * n as f64 / clocked.len() as f64;
        let line = format!("  below {below:>LABEL$} {n:>5} {share:>5.1} % {bar}");
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

/// Maximum width of the terminal used.
const COLUMNS_MAX: usize = 80;
/// Height of the picture.
const ROWS: usize = 6;
/// Width of the label at its left.
const LABEL: usize = 10;
const EIGHTHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_value_fills_the_height_and_half_of_it_half() {
        let drawn = columns(&[0.0, 50.0, 100.0], |value| format!("{value}"), true);
        let lines: Vec<&str> = drawn.lines().collect();
        assert_eq!(lines.len(), ROWS + 1);
        assert_eq!(lines[0], "         100   #");
        assert_eq!(lines[2], "               #");
        assert_eq!(lines[3], "              ##");
        assert_eq!(lines[6], "           0 ---");
        assert_eq!(columns(&[0.0], |_| String::new(), true), "");
    }

    #[test]
    fn nine_of_ten_and_one_of_ten_are_two_bars() {
        let mut clocked = vec![Duration::from_micros(1500); 90];
        clocked.extend([Duration::from_millis(41); 10]);
        let drawn = histogram(&clocked, Style { ascii: true, ..Style::default() });
        let lines: Vec<&str> = drawn.lines().collect();
        assert_eq!(lines.len(), 5, "{drawn}");
        assert!(lines[0].starts_with("  below    2.00 ms    90  90.0 % ####"), "{drawn}");
        assert_eq!(lines[1], "  below    5.00 ms     0   0.0 %");
        assert!(lines[4].starts_with("  below    50.0 ms    10  10.0 % ####"), "{drawn}");
    }
}
