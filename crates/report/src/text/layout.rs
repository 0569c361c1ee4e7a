//! How do words and columns fit the width? Everything shown is one column per character.

use tcpwhy_wire::Duration;

/// Breaks `text` into lines of at most `width` columns: `first` before the first line, `rest` before the others.
pub(super) fn wrap(text: &str, width: usize, first: &str, rest: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = first.to_owned();
    let mut column = columns(first);
    let mut empty = true;
    for word in text.split_whitespace() {
        let needed = columns(word) + usize::from(!empty);
        if !empty && column + needed > width {
            lines.push(std::mem::replace(&mut line, rest.to_owned()));
            column = columns(rest);
            empty = true;
        }
        if !empty {
            line.push(' ');
            column += 1;
        }
        line.push_str(word);
        column += columns(word);
        empty = false;
    }
    lines.push(line);
    lines
}

/// Number of columns of a text.
pub(super) fn columns(text: &str) -> usize {
    text.chars().count()
}

/// Pads on the right.
pub(super) fn left(text: &str, width: usize) -> String {
    format!("{text:<width$}")
}

/// Pads on the left.
pub(super) fn right(text: &str, width: usize) -> String {
    format!("{text:>width$}")
}

/// Cuts to `width` columns, marked with a tilde.
pub(super) fn cut(text: &str, width: usize) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    let mut out: String = text.chars().take(width.saturating_sub(1)).collect();
    out.push('~');
    out
}

/// Widths of the columns of a table: the widest cell of each.
pub(super) fn widths<const N: usize>(rows: &[[String; N]]) -> [usize; N] {
    let mut widths = [0; N];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(columns(cell));
        }
    }
    widths
}

/// A bar of two parts of `whole` in `width` columns, what is known and what is only possible: the first in
/// eighths of a column where the terminal can, the second lighter.
pub(super) fn bar([known, possible]: [Duration; 2], whole: Duration, width: usize, ascii: bool) -> String {
    let part = known + possible;
    if !whole.is_positive() || !part.is_positive() || width == 0 {
        return String::new();
    }
    let eighths = |part: Duration| {
        let eighths = i128::from(part.as_nanos()) * 8 * width as i128 / i128::from(whole.as_nanos());
        // A part that is there at all gets at least an eighth.
        usize::try_from(eighths).unwrap_or(0).clamp(usize::from(part.is_positive()), 8 * width)
    };
    let solid = eighths(known);
    let lighter = eighths(part).div_ceil(8).saturating_sub(solid.div_ceil(8));
    if ascii {
        return "#".repeat(solid.div_ceil(8)) + &"-".repeat(lighter);
    }
    let mut out = "█".repeat(solid / 8);
    if let Some(part) = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"].get(solid % 8) {
        out.push_str(part);
    }
    out + &"░".repeat(lighter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_wrap_at_the_width_and_long_words_stand_alone() {
        assert_eq!(wrap("aa bb ccccccc d", 6, "- ", "  "), ["- aa", "  bb", "  ccccccc", "  d"]);
        assert_eq!(wrap("", 6, "- ", "  "), ["- "]);
    }

    #[test]
    fn bars_are_proportional_and_never_empty_for_something() {
        let known = |part, whole, width, ascii| bar([ns(part), ns(0)], ns(whole), width, ascii);
        assert_eq!(known(50, 100, 10, true), "#####");
        assert_eq!(known(1, 1_000_000, 10, true), "#");
        assert_eq!(known(1, 1_000_000, 10, false), "▏");
        assert_eq!(known(55, 100, 10, false), "█████▌");
        assert_eq!(known(0, 100, 10, false), "");
        assert_eq!(known(50, 100, 0, false), "");
        assert_eq!(known(200, 100, 4, true), "####");
    }

    #[test]
    fn what_is_only_possible_is_drawn_lighter() {
        assert_eq!(bar([ns(20), ns(30)], ns(100), 10, false), "██░░░");
        assert_eq!(bar([ns(25), ns(25)], ns(100), 10, false), "██▌░░");
        assert_eq!(bar([ns(0), ns(50)], ns(100), 10, true), "-----");
        assert_eq!(bar([ns(0), ns(1)], ns(1_000_000), 10, false), "░");
    }

    fn ns(ns: i64) -> Duration {
        Duration::from_nanos(ns)
    }
}
