//! How do words and columns fit the width? Everything shown is one column per character.

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

/// A bar of `part` of `whole` in `width` columns, in eighths of a column where the terminal can.
pub(super) fn bar(part: i64, whole: i64, width: usize, ascii: bool) -> String {
    if whole <= 0 || part <= 0 || width == 0 {
        return String::new();
    }
    let eighths = i128::from(part) * 8 * width as i128 / i128::from(whole);
    // A line that is there at all gets at least an eighth.
    let eighths = usize::try_from(eighths).unwrap_or(0).clamp(1, 8 * width);
    if ascii {
        return "#".repeat(eighths.div_ceil(8));
    }
    let mut out = "█".repeat(eighths / 8);
    if let Some(part) = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"].get(eighths % 8) {
        out.push_str(part);
    }
    out
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
        assert_eq!(bar(50, 100, 10, true), "#####");
        assert_eq!(bar(1, 1_000_000, 10, true), "#");
        assert_eq!(bar(1, 1_000_000, 10, false), "▏");
        assert_eq!(bar(55, 100, 10, false), "█████▌");
        assert_eq!(bar(0, 100, 10, false), "");
        assert_eq!(bar(50, 100, 0, false), "");
        assert_eq!(bar(200, 100, 4, true), "####");
    }
}
