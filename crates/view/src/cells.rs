//! Which columns of a table fit, and how wide is each? The least important ones are dropped first.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// A column.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Its heading.
    pub head: &'static str,
    /// Numbers are right-aligned.
    pub is_number: bool,
    /// The highest rank is dropped first; 0 stays.
    pub rank: u8,
}

impl Column {
    /// A column of words.
    pub const fn text(head: &'static str, rank: u8) -> Self {
        Self { head, is_number: false, rank }
    }

    /// A column of numbers.
    pub const fn number(head: &'static str, rank: u8) -> Self {
        Self { head, is_number: true, rank }
    }
}

/// The heading and a line for each row, none wider than `width`.
pub fn table<const N: usize>(columns: &[Column; N], rows: &[[String; N]], width: usize) -> Vec<String> {
    let mut widths: [usize; N] = columns.map(|column| column.head.width());
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.width());
        }
    }
    let mut kept = [true; N];
    let needed = |kept: &[bool; N]| -> usize {
        widths.iter().zip(kept).filter(|(_, kept)| **kept).map(|(width, _)| width + GAP.len()).sum()
    };
    while needed(&kept) > width + GAP.len() {
        let last = (0..N).filter(|i| kept[*i] && columns[*i].rank > 0).max_by_key(|i| columns[*i].rank);
        let Some(last) = last else { break };
        kept[last] = false;
    }
    let line = |cells: [&str; N]| {
        let mut out = String::new();
        for i in (0..N).filter(|i| kept[*i]) {
            let pad = " ".repeat(widths[i].saturating_sub(cells[i].width()));
            let padded = if columns[i].is_number { pad + cells[i] } else { cells[i].to_owned() + &pad };
            out += &(padded + GAP);
        }
        cut(out.trim_end(), width)
    };
    let heads = std::iter::once(line(columns.map(|column| column.head)));
    heads.chain(rows.iter().map(|row| line(row.each_ref().map(String::as_str)))).collect()
}

const GAP: &str = "  ";

/// Cuts to this many columns, marked with a tilde.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut room = width.saturating_sub(1);
    let mut out = String::new();
    for c in text.chars() {
        let needed = c.width().unwrap_or(0);
        if needed > room {
            break;
        }
        room -= needed;
        out.push(c);
    }
    if width > 0 {
        out.push('~');
    }
    out
}

/// Wraps a text into lines; continuation lines keep the first one's indentation.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let indent: String = text.chars().take_while(|c| *c == ' ').take(width / 2).collect();
    let mut lines = Vec::new();
    let mut line = indent.clone();
    let mut is_empty = true;
    for word in text.split_whitespace() {
        if !is_empty && line.width() + 1 + word.width() > width {
            lines.push(std::mem::replace(&mut line, indent.clone()));
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line += word;
        is_empty = false;
    }
    lines.push(line);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [Column; 3] =
        [Column::text("cause", 0), Column::number("share", 1), Column::text("sure", 2)];

    fn rows() -> Vec<[String; 3]> {
        vec![["nagle".to_owned(), "9.1 %".to_owned(), "likely".to_owned()]]
    }

    #[test]
    fn columns_go_by_rank_where_there_is_no_room() {
        assert_eq!(table(&COLUMNS, &rows(), 20), ["cause  share  sure", "nagle  9.1 %  likely"]);
        assert_eq!(table(&COLUMNS, &rows(), 19), ["cause  share", "nagle  9.1 %"]);
        assert_eq!(table(&COLUMNS, &rows(), 6), ["cause", "nagle"]);
        assert_eq!(table(&COLUMNS, &rows(), 3), ["ca~", "na~"]);
        assert_eq!(table(&COLUMNS, &rows(), 0), ["", ""]);
    }

    #[test]
    fn lines_are_broken_between_words() {
        assert_eq!(wrap("  one two three", 9), ["  one two", "  three"]);
        assert_eq!(wrap("", 9), [""]);
        assert_eq!(cut("größer", 4), "grö~");
    }
}
