//! How do explanations, which are Markdown of 100 columns, fit a narrower terminal?
//!
//! Paragraphs and list items are wrapped again. Commands are broken as a shell accepts it: comments
//! get a line of their own, and a line continues after a backslash, so that a copied command still
//! runs.

use super::layout::{columns, wrap};

/// Width of the sources.
const WRITTEN: usize = 100;
const CODE: &str = "    ";

/// Markdown in lines of at most `width` columns, where words allow it.
pub fn prose(markdown: &str, width: usize) -> Vec<String> {
    if width >= WRITTEN {
        return markdown.lines().map(str::to_owned).collect();
    }
    let mut out = Vec::new();
    let mut block: Option<Block> = None;
    let (mut is_code, mut is_new) = (false, true);
    for line in markdown.lines() {
        let text = line.trim_start();
        let is_heading = line.starts_with('#');
        is_code = !text.is_empty() && line.starts_with(CODE) && (is_code || is_new);
        let marker = marker(text);
        if text.is_empty() || is_heading || is_code || marker > 0 || block.is_none() {
            out.extend(block.take().into_iter().flat_map(|block| block.wrapped(width)));
        }
        is_new = text.is_empty() || is_heading;
        if is_code {
            out.extend(command(line, width));
        } else if text.is_empty() {
            out.push(String::new());
        } else if is_heading {
            out.extend(wrap(line, width, "", "  "));
        } else if let Some(block) = &mut block {
            block.text.push(' ');
            block.text.push_str(text);
        } else {
            let indent = line.len() - text.len();
            let (point, text) = text.split_at(marker);
            block = Some(Block { indent, point: point.to_owned(), text: text.to_owned() });
        }
    }
    out.extend(block.into_iter().flat_map(|block| block.wrapped(width)));
    out
}

/// A paragraph or a list item.
struct Block {
    indent: usize,
    point: String,
    text: String,
}

impl Block {
    fn wrapped(&self, width: usize) -> Vec<String> {
        let first = format!("{:indent$}{}", "", self.point, indent = self.indent);
        wrap(&self.text, width, &first, &" ".repeat(columns(&first)))
    }
}

/// Length of a list marker, `- ` or `12. `; 0 if there is none.
fn marker(text: &str) -> usize {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    match text.get(digits..) {
        Some(rest) if digits > 0 && rest.starts_with(". ") => digits + 2,
        Some(rest) if digits == 0 && rest.starts_with("- ") => 2,
        _ => 0,
    }
}

/// A line of a shell.
fn command(line: &str, width: usize) -> Vec<String> {
    if columns(line) <= width {
        return vec![line.to_owned()];
    }
    let text = line.trim_start();
    let indent = line.split_at(line.len() - text.len()).0;
    let above = |comment: &str| wrap(comment, width, &format!("{CODE}# "), &format!("{CODE}# "));
    if let Some(comment) = text.strip_prefix("# ") {
        return above(comment);
    }
    let (text, mut out) = match text.split_once(" # ") {
        Some((text, comment)) => (text.trim_end(), above(comment)),
        None => (text, Vec::new()),
    };
    // If a line already continues after a backslash, so does its last part.
    let (text, end) = text.strip_suffix(" \\").map_or((text, ""), |text| (text, " \\"));
    let mut line = indent.to_owned();
    let mut is_empty = true;
    for word in words(text) {
        // Leave room for the backslash.
        if !is_empty && columns(&line) + 1 + columns(&word) + 2 > width {
            line.push_str(" \\");
            out.push(std::mem::replace(&mut line, CODE.repeat(2)));
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line.push_str(&word);
        is_empty = false;
    }
    out.push(line + end);
    out
}

/// The words of a command, options with their values; quoted text stays together.
fn words(command: &str) -> Vec<String> {
    let mut quote = None;
    let is_gap = move |c: char| {
        match (quote, c) {
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), c) if open == c => quote = None,
            (None, ' ') => return true,
            _ => {}
        }
        false
    };
    let mut words: Vec<String> = Vec::new();
    for word in command.split(is_gap).filter(|word| !word.is_empty()) {
        match words.last_mut() {
            Some(option) if is_option(option) && !is_option(word) && !word.starts_with('|') => {
                option.push(' ');
                option.push_str(word);
            }
            _ => words.push(word.to_owned()),
        }
    }
    words
}

/// Whether it is an option without a value.
fn is_option(word: &str) -> bool {
    word.starts_with('-') && !word.contains(' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_and_points_are_broken_anew() {
        let text = "# a: title that is long\n\nOne two\nthree four.\n\n- a point of\n  a list\n- b\n\n1. c d e f g h i j k\n   - l m n o p q r";
        let lines = prose(text, 16);
        assert_eq!(
            lines,
            [
                "# a: title that",
                "  is long",
                "",
                "One two three",
                "four.",
                "",
                "- a point of a",
                "  list",
                "- b",
                "",
                "1. c d e f g h i",
                "   j k",
                "   - l m n o p q",
                "     r",
            ]
        );
        assert_eq!(prose(text, 100).join("\n"), text);
    }

    #[test]
    fn commands_still_run() {
        let text = "Text.\n\n    tshark -r FILE -Y 'a == 0 && b' -e c \\\n        -e d\n    ss -tin        # the window of it";
        assert_eq!(
            prose(text, 27),
            [
                "Text.",
                "",
                "    tshark -r FILE \\",
                "        -Y 'a == 0 && b' \\",
                "        -e c \\",
                "        -e d",
                "    # the window of it",
                "    ss -tin",
            ]
        );
    }
}
