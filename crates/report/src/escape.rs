//! How is a string from a capture or a file name shown without letting it act?
//!
//! Control characters move cursors and recolour terminals, and bidirectional overrides reorder what is read. They are
//! shown as `\u{1b}` in text and as `\u001b` in JSON, where the value stays exact. `<` is `\u003c` there: a document that is put
//! into a page ends no script and begins no tag.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Whether a character acts instead of being seen.
fn acts(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// For text: one line, nothing in it acts.
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.chars().any(acts) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if acts(c) {
            let _ = write!(out, "{}", c.escape_unicode());
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// For finished JSON: what acts stands only inside strings there, apart from the line breaks of pretty printing.
pub fn json_visible(json: &str) -> Cow<'_, str> {
    let harmful = |c: char| c != '\n' && (acts(c) || c == '<');
    if !json.chars().any(harmful) {
        return Cow::Borrowed(json);
    }
    let mut out = String::with_capacity(json.len() + 64);
    for c in json.chars() {
        if harmful(c) {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_acts_is_shown_instead() {
        assert_eq!(visible("plain Zürich"), "plain Zürich");
        assert_eq!(visible("\x1b[31mred\n\u{9b}"), "\\u{1b}[31mred\\u{a}\\u{9b}");
        assert_eq!(visible("a\u{202e}b"), "a\\u{202e}b");
    }

    #[test]
    fn json_keeps_the_value_and_shows_no_raw_control() {
        let value = "\x1b]0;title\x07 \u{9b} \u{202e} \u{e0041} \x7f </script><!--";
        let json = serde_json::to_string(value).unwrap_or_default();
        let shown = json_visible(&json);
        assert!(shown.chars().all(|c| !acts(c) && c != '<'), "{shown}");
        assert_eq!(serde_json::from_str::<String>(&shown).ok().as_deref(), Some(value));
    }
}
