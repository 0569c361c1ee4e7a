//! Which IMAP responses belong to which commands? (RFC 3501, 2.2 and 7; RFC 2177 for IDLE)
//!
//! Each command has its own tag, and the line that completes its answer repeats it. A line may end
//! with a literal's length, and continues after the literal. Each line of an authentication is a
//! request of its own, and so is the command that begins it (RFC 3501, 6.2.2): the server asks for
//! each next line, and after the last one says whether it succeeded.

use crate::head::{Head, Role};
use crate::protocol::Protocol;
use crate::talk::{First, FirstBytes, Out, Side, Step, Talk, is_text};

/// Longer lines are not valid (RFC 7162, 4: 8,192 bytes and more).
const LINE_LEN_MAX: u32 = 1 << 16;

/// What both sides have said so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Imap {
    sides: [Text; 2],
    /// Commands that have not been completed.
    open: u8,
    lines: Lines,
    /// Data of an answer have come, but not its completion.
    answering: bool,
    /// The latest command.
    latest: u64,
    /// Lines were missed: whether an answer is under way shows only when the latest command
    /// completes.
    is_doubtful: bool,
}

/// The meaning of lines without a tag.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Lines {
    /// Parts of commands and of their answers.
    #[default]
    Parts,
    /// News, which the client waits for until it ends IDLE (RFC 2177).
    News,
    /// Lines of an authentication.
    Authentication,
}

/// The line under way, and the command or response that it belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Text {
    len: u32,
    word: u8,
    /// The first two words, as far as they matter.
    tag: u64,
    verb: u64,
    /// The number in braces at the end.
    literal: Option<u32>,
    closed: bool,
    /// It continues after a literal.
    goes_on: bool,
}

impl Text {
    /// How many of these bytes belong to the line, and whether it ends in them.
    fn pass(&mut self, bytes: &[u8]) -> (usize, bool) {
        for (at, byte) in bytes.iter().enumerate() {
            self.len += 1;
            match byte {
                b'\n' => return (at + 1, true),
                b'\r' => continue,
                b' ' => self.word = self.word.saturating_add(1),
                _ if self.goes_on => {}
                _ => {
                    let words = [&mut self.tag, &mut self.verb];
                    if let Some(word) = words.into_iter().nth(usize::from(self.word)) {
                        *word = *word << 8 | u64::from(byte.to_ascii_uppercase());
                    }
                }
            }
            (self.literal, self.closed) = match (byte, self.literal) {
                (b'{', _) => (Some(0), false),
                (b'0'..=b'9', Some(number)) if !self.closed => (
                    number.checked_mul(10).and_then(|number| number.checked_add(u32::from(byte - b'0'))),
                    false,
                ),
                // Non-synchronizing literals (RFC 7888), and binary ones (RFC 3516).
                (b'+' | b'-', literal) if !self.closed => (literal, false),
                (b'}', literal @ Some(_)) if !self.closed => (literal, true),
                _ => (None, false),
            };
        }
        (bytes.len(), false)
    }
}

const fn word(text: &[u8]) -> u64 {
    let mut word = 0;
    let mut i = 0;
    while i < text.len() {
        word = word << 8 | text[i] as u64;
        i += 1;
    }
    word
}

/// Commands with a name here; others are called `command`.
const VERBS: [(&str, u64); 16] = [
    ("LOGIN", word(b"LOGIN")),
    ("AUTHENTICATE", word(b"AUTHENTICATE")),
    ("CAPABILITY", word(b"CAPABILITY")),
    ("SELECT", word(b"SELECT")),
    ("EXAMINE", word(b"EXAMINE")),
    ("LIST", word(b"LIST")),
    ("STATUS", word(b"STATUS")),
    ("APPEND", word(b"APPEND")),
    ("FETCH", word(b"FETCH")),
    ("UID", word(b"UID")),
    ("SEARCH", word(b"SEARCH")),
    ("STORE", word(b"STORE")),
    ("NOOP", word(b"NOOP")),
    ("IDLE", word(b"IDLE")),
    ("STARTTLS", word(b"STARTTLS")),
    ("LOGOUT", word(b"LOGOUT")),
];

impl Talk for Imap {
    // The server's first byte.
    const FIRST: FirstBytes = FirstBytes::of(b"*+");

    fn fits(client: First<'_>, server: First<'_>) -> bool {
        let greets = server.bytes.starts_with(b"* OK ") || server.bytes.starts_with(b"* PREAUTH ");
        greets && (client.is_empty() || is_command(client.bytes))
            || is_command(client.bytes)
                && (server.bytes.starts_with(b"* ") || server.bytes.starts_with(b"+ "))
    }

    fn step(&mut self, side: Side, bytes: &[u8], out: &mut Out<'_>) -> Step {
        let text = &mut self.sides[side as usize];
        if bytes[0] == 0x16 && text.len == 0 {
            return Step::Other(Protocol::Tls);
        }
        let (used, ends) = text.pass(bytes);
        if text.len > LINE_LEN_MAX {
            return Step::Wrong;
        }
        if !ends {
            return Step::Skip(used as u64);
        }
        let line = *text;
        let literal = if line.closed { line.literal } else { None };
        *text = Text::default();
        if literal.is_some() {
            *text = Text { goes_on: true, tag: line.tag, verb: line.verb, ..*text };
        }
        let body = u64::from(literal.unwrap_or(0));
        let begin = out.at + used as u64 - u64::from(line.len);
        let (first, last) = (!line.goes_on, literal.is_none());
        let len = Some(u64::from(line.len) + body);
        let head = match side {
            Side::Client => Some(self.on_client(&line, first, last)),
            Side::Server => self.on_server(&line, first, last),
        };
        let Some(mut head) = head else { return Step::Wrong };
        if begin == 0 && !side.is_client() {
            head = Head { first, last, ..Head::piece(Role::Answers, "greeting") };
        }
        if head.first || head.last {
            out.put_at(begin, Head { len, ..head });
        }
        Step::Skip(used as u64 + body)
    }

    fn begins(&self, side: Side, first: First<'_>, is_turn: bool) -> bool {
        let tagged = |end: &[u8]| first.bytes.starts_with(end);
        is_turn
            && if side.is_client() {
                is_command(first.bytes) && self.is_like_latest(first.bytes)
            } else {
                tagged(b"* ") || tagged(b"+ ")
            }
    }

    fn lose(&mut self, side: Side) {
        self.sides[side as usize] = Text::default();
        self.is_doubtful = true;
        if side.is_client() {
            self.latest = 0;
            self.end_authentication();
        }
    }
}

impl Imap {
    /// Clients number their commands: the tag is as long as the previous one and begins the same.
    fn is_like_latest(&self, bytes: &[u8]) -> bool {
        let before = self.latest.to_be_bytes();
        let before = &before[self.latest.leading_zeros() as usize / 8..];
        let tag_len = bytes.iter().position(|byte| *byte == b' ').unwrap_or(0);
        let alike = |letter: &u8| bytes.first().is_some_and(|byte| byte.to_ascii_uppercase() == *letter);
        before.first().is_none_or(|letter| alike(letter) && before.len() == tag_len.min(8))
    }

    fn end_authentication(&mut self) {
        if self.lines == Lines::Authentication {
            self.lines = Lines::Parts;
        }
    }

    fn on_client(&mut self, line: &Text, first: bool, last: bool) -> Head {
        if first && line.word == 0 {
            // DONE is answered by the completion of IDLE.
            if self.lines == Lines::News {
                self.lines = Lines::Parts;
                return Head { id: Some(self.latest), first, last, ..Head::piece(Role::Asks, "DONE") };
            }
            return match self.lines == Lines::Authentication {
                true if self.is_doubtful => Head::piece(Role::Neither, "line"),
                true => Head { id: Some(self.latest), first, last, ..Head::piece(Role::Asks, "line") },
                false => Head { first, last, ..Head::piece(Role::Neither, "line") },
            };
        }
        let known = VERBS.into_iter().find(|(_, verb)| *verb == line.verb);
        let kind = known.map_or("command", |(kind, _)| kind);
        if first {
            self.open = self.open.saturating_add(1);
            self.latest = line.tag;
            self.end_authentication();
        }
        match kind {
            "IDLE" => self.lines = Lines::News,
            "AUTHENTICATE" if first => self.lines = Lines::Authentication,
            _ => {}
        }
        let (id, role) = if kind == "IDLE" { (None, Role::Subscribes) } else { (Some(line.tag), Role::Asks) };
        Head { id, first, last, ..Head::piece(role, kind) }
    }

    fn on_server(&mut self, line: &Text, first: bool, last: bool) -> Option<Head> {
        const UNTAGGED: u64 = b'*' as u64;
        const GO_ON: u64 = b'+' as u64;
        match line.tag {
            0 => None,
            GO_ON if self.lines == Lines::Authentication && !self.is_doubtful => {
                Some(Head { id: Some(self.latest), first, last, ..Head::piece(Role::Answers, "+") })
            }
            GO_ON => Some(Head { first, last, ..Head::piece(Role::Interim, "+") }),
            UNTAGGED if self.is_doubtful => Some(Head::piece(Role::Answers, "untagged")),
            UNTAGGED if self.lines == Lines::News => {
                Some(Head { first, last, ..Head::piece(Role::Pushes, "untagged") })
            }
            // News outside of IDLE looks like the answer to a command that was missed.
            UNTAGGED if self.open == 0 && !self.answering => Some(Head::piece(Role::Pushes, "untagged")),
            // The completion is its last piece.
            UNTAGGED => {
                let first = !std::mem::replace(&mut self.answering, true) && first;
                Some(Head { first, ..Head::piece(Role::Answers, "untagged") })
            }
            tag => {
                let first = !std::mem::replace(&mut self.answering, !last) && first;
                // For another command, what was missed is unknown.
                let first = first && tag == self.latest && !self.is_doubtful;
                if last {
                    self.open = self.open.saturating_sub(1);
                    self.lines = Lines::Parts;
                }
                if last && tag == self.latest {
                    (self.open, self.is_doubtful) = (0, false);
                }
                Some(Head { id: Some(tag), first, last, ..Head::piece(Role::Answers, "completion") })
            }
        }
    }
}

/// A tag with a digit, then a known command.
fn is_command(bytes: &[u8]) -> bool {
    // A tag, of at most twelve letters, is a word of its own.
    if !bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        || !bytes.iter().take(13).any(|byte| *byte == b' ')
    {
        return false;
    }
    let line = bytes.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let mut words = line.split(|byte| *byte == b' ');
    let (tag, verb) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let sound = (1..=12).contains(&tag.len())
        && tag.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'.')
        && tag.iter().any(u8::is_ascii_digit);
    sound && is_text(line) && VERBS.iter().any(|(name, _)| name.as_bytes().eq_ignore_ascii_case(verb))
}
