//! How is a string from a capture or a file name shown without side effects?
//!
//! Control characters move cursors and recolour terminals, bidirectional overrides reorder text,
//! invisible characters make two names look like one, and endless combining marks cover the lines
//! around. They are shown as `\u{1b}` in text and as `\u001b` in JSON, where the value stays exact.
//! There `<` is `\u003c`: a document that is put into a page ends no script and begins no tag.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write};

use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::{Formatter, PrettyFormatter};
use unicode_width::UnicodeWidthChar as _;

/// Combining marks on one character that real scripts need: the accents of Vietnamese, a vowel and
/// a tone of Thai, a Korean syllable in parts. More are only for show.
const MARKS_MAX: u32 = 2;

/// Whether a character has an effect instead of a visible form, whatever precedes it.
fn acts(c: char) -> bool {
    c.is_control() || is_format(c) || is_blank(c)
}

/// It controls how surrounding characters are read or shaped, and has no form of its own (general
/// category Cf; Default_Ignorable_Code_Point; noncharacters).
fn is_format(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{890}'..='\u{891}' | '\u{8e2}'
        | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{fdd0}'..='\u{fdef}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{fff0}'..='\u{fffb}'
        | '\u{110bd}' | '\u{110cd}' | '\u{13430}'..='\u{1343f}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
        || u32::from(c) & 0xfffe == 0xfffe
}

/// It looks like a space or like nothing, and is not on a keyboard (general category Zs; fillers;
/// the empty Braille cell).
fn is_blank(c: char) -> bool {
    matches!(
        c,
        '\u{a0}' | '\u{115f}' | '\u{1160}' | '\u{1680}' | '\u{2000}'
            ..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{2800}' | '\u{3000}' | '\u{3164}' | '\u{ffa0}'
    )
}

/// Reads a text and decides for each character whether it is shown as an escape.
#[derive(Debug)]
struct Censor {
    /// Marks on the current character; at the start there is no character of ours to put them on.
    marks: u32,
}

impl Censor {
    const START: Self = Self { marks: MARKS_MAX };

    fn hides(&mut self, c: char) -> bool {
        if acts(c) {
            // The next mark would combine with the escape's closing bracket.
            self.marks = MARKS_MAX;
            return true;
        }
        if c.width() != Some(0) {
            self.marks = 0;
            return false;
        }
        self.marks = self.marks.saturating_add(1);
        self.marks > MARKS_MAX
    }
}

/// Whether it is printable ASCII only.
fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
}

/// For text: one line without side effects.
pub fn visible(text: &str) -> Cow<'_, str> {
    let mut censor = Censor::START;
    if is_plain(text) || !text.chars().any(|c| censor.hides(c)) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    censor = Censor::START;
    for c in text.chars() {
        if censor.hides(c) {
            let _ = write!(out, "{}", c.escape_unicode());
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// For JSON: pretty printing with safe strings.
#[derive(Debug, Default)]
pub struct Visible(PrettyFormatter<'static>);

/// The same in one line.
struct InLine;

impl Formatter for InLine {
    fn write_string_fragment<W: ?Sized + Write>(&mut self, to: &mut W, fragment: &str) -> io::Result<()> {
        write_fragment(to, fragment)
    }
}

/// JSON in one line with safe strings, followed by a line break.
///
/// # Errors
/// A key is not a string.
pub fn json_line(value: &impl Serialize) -> serde_json::Result<String> {
    let mut json = Vec::new();
    value.serialize(&mut Serializer::with_formatter(&mut json, InLine))?;
    json.push(b'\n');
    String::from_utf8(json).map_err(serde::ser::Error::custom)
}

fn write_fragment<W: ?Sized + Write>(to: &mut W, fragment: &str) -> io::Result<()> {
    if is_plain(fragment) && !fragment.contains('<') {
        return to.write_all(fragment.as_bytes());
    }
    let mut censor = Censor::START;
    let mut rest = fragment;
    while let Some(at) = rest.find(|c| censor.hides(c) || c == '<') {
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

impl Formatter for Visible {
    fn write_string_fragment<W: ?Sized + Write>(&mut self, to: &mut W, fragment: &str) -> io::Result<()> {
        write_fragment(to, fragment)
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
    use super::*;

    #[test]
    fn what_acts_is_shown_instead() {
        assert_eq!(visible("plain Zürich"), "plain Zürich");
        // Decomposed, as some systems name files; Vietnamese, Thai, Hebrew, Hindi, Korean in parts; wide characters.
        for written in [
            "Zu\u{308}rich",
            "Vie\u{302}\u{323}t",
            "ที่นี่",
            "שָׁלוֹם",
            "हिन्दी",
            "\u{1112}\u{1161}\u{11ab}",
            "捕获",
            "😀",
        ] {
            assert_eq!(visible(written), written);
        }
        assert_eq!(visible("\x1b[31mred\n\u{9b}"), "\\u{1b}[31mred\\u{a}\\u{9b}");
        assert_eq!(visible("a\u{202e}b"), "a\\u{202e}b");
    }

    #[test]
    fn what_is_invisible_is_shown() {
        let invisible = "\u{a0}\u{34f}\u{115f}\u{1160}\u{17b4}\u{180b}\u{180f}\u{2003}\u{202f}\u{2800}\u{3000}\u{3164}\u{fe0f}\u{ffa0}\
                         \u{fff0}\u{fffe}\u{1bca0}\u{1d173}\u{e0100}\u{e0fff}\u{10ffff}";
        for c in invisible.chars() {
            assert_eq!(visible(&format!("a{c}b")), format!("a\\u{{{:x}}}b", u32::from(c)));
        }
    }

    #[test]
    fn marks_neither_pile_up_nor_stand_on_what_is_ours() {
        assert_eq!(visible("\u{301}a"), "\\u{301}a");
        let tower = format!("a{}b", "\u{489}".repeat(100));
        let shown = visible(&tower);
        assert_eq!(shown.chars().filter(|c| *c == '\u{489}').count(), 2);
        assert!(shown.ends_with("\\u{489}b"));
        assert_eq!(visible("\u{200d}\u{301}"), "\\u{200d}\\u{301}");
        // Beyond the visible characters, none takes a column of its own.
        for c in '\0'..=char::MAX {
            let text = format!("{c}");
            let shown = visible(&text);
            assert!(
                shown.chars().all(|c| c.width().is_some_and(|width| width > 0)),
                "{}",
                c.escape_unicode()
            );
        }
    }

    #[test]
    fn json_keeps_the_value_and_shows_no_raw_control() {
        let value = "\u{301}e\u{301}\u{302}\u{303}\u{304} \u{a0}\u{fe0f}\x1b]0;title\x07 \u{9b} \u{202e} \u{e0041} \x7f </script><!--";
        let mut json = Vec::new();
        let written = value.serialize(&mut Serializer::with_formatter(&mut json, Visible::default()));
        let shown = String::from_utf8(json).unwrap_or_default();
        assert!(written.is_ok());
        assert!(shown.chars().all(|c| !acts(c) && c != '<'), "{shown}");
        assert_eq!(serde_json::from_str::<String>(&shown).ok().as_deref(), Some(value));
        assert_eq!(json_line(&value).ok(), Some(shown + "\n"));
    }
}
