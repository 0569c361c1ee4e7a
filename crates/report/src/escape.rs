//! How is a string from a capture or a file name shown without letting it act?
//!
//! Control characters move cursors and recolour terminals, and bidirectional overrides reorder what is read. They are
//! shown as `\u{1b}` in text and as `\u001b` in JSON, where the value stays exact. `<` is `\u003c` there: a document that is put
//! into a page ends no script and begins no tag.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write};

use serde_json::ser::{Formatter, PrettyFormatter};

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

/// For JSON: pretty printing in which no string acts.
#[derive(Debug, Default)]
pub struct Visible(PrettyFormatter<'static>);

impl Formatter for Visible {
    fn write_string_fragment<W: ?Sized + Write>(&mut self, to: &mut W, fragment: &str) -> io::Result<()> {
        let harmful = |c: char| acts(c) || c == '<';
        let mut rest = fragment;
        while let Some(at) = rest.find(harmful) {
            let (before, behind) = rest.split_at(at);
            to.write_all(before.as_bytes())?;
            let mut behind = behind.chars();
            for unit in behind.next().into_iter().flat_map(|c| c.encode_utf16(&mut [0; 2]).to_vec()) {
                write!(to, "\\u{unit:04x}")?;
            }
            rest = behind.as_str();
        }
        to.write_all(rest.as_bytes())
    }

    fn begin_array<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.0.begin_array(to)
    }

    fn end_array<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.0.end_array(to)
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, to: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_array_value(to, first)
    }

    fn end_array_value<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.0.end_array_value(to)
    }

    fn begin_object<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.0.begin_object(to)
    }

    fn end_object<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.0.end_object(to)
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, to: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_object_key(to, first)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.0.begin_object_value(to)
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.0.end_object_value(to)
    }
}

#[cfg(test)]
mod tests {
    use serde::Serialize as _;
    use serde_json::Serializer;

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
        let mut json = Vec::new();
        let written = value.serialize(&mut Serializer::with_formatter(&mut json, Visible::default()));
        let shown = String::from_utf8(json).unwrap_or_default();
        assert!(written.is_ok());
        assert!(shown.chars().all(|c| !acts(c) && c != '<'), "{shown}");
        assert_eq!(serde_json::from_str::<String>(&shown).ok().as_deref(), Some(value));
    }
}
