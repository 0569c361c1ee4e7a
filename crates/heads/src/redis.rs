//! Where does each Redis command and reply begin and end? (RESP2 and RESP3, the Redis serialization protocol specification)
//!
//! Values are skipped one by one: an array says how many follow, a string how long it is. Replies
//! come in the order of the commands; messages of a subscription are pushes, and a blocking command
//! subscribes.
//!
//! After PSYNC the server sends the whole data set and then all changes, unasked, and the client
//! now and then reports its offset (Redis replication, "How Redis replication works"). That report
//! alone identifies a replica whose PSYNC was not captured.

use crate::head::{Head, Role};
use crate::talk::{First, FirstBytes, Line, Out, Side, Step, Talk, is_text, line, number, rest_of_line};

/// Elements of one array; Redis itself refuses commands of more than a million.
const ELEMENTS_MAX: u64 = 1 << 24;
/// Longer than the longest word that matters.
const WORD_LEN_MAX: u64 = 12;
const LINE_BREAK: u64 = 2;
/// proto-max-bulk-len.
const STRING_LEN_MAX: u64 = 512 << 20;

/// Arrays that arrive without a request, in RESP2 and RESP3: how they begin.
const PUSHED: [&[u8]; 4] =
    [b"$7\r\nmessage\r\n", b"$8\r\npmessage\r\n", b"$8\r\nsmessage\r\n", b"$10\r\ninvalidate\r\n"];

/// Commands that wait for another client, as long as it takes. (XREAD may too; the argument that
/// says so comes too late.)
const BLOCKING: [&[u8]; 8] =
    [b"BLPOP", b"BRPOP", b"BRPOPLPUSH", b"BLMOVE", b"BLMPOP", b"BZPOPMIN", b"BZPOPMAX", b"BZMPOP"];

/// What both sides have said so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Redis {
    sides: [Value; 2],
    stream: Stream,
}

/// Whether the server sends a stream of changes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Stream {
    #[default]
    No,
    /// Requested, but not yet confirmed.
    Asked,
    /// The next string is the data set, without a line break after it.
    Begun,
    On,
}

/// The command or reply under way.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Value {
    /// Values still to come.
    left: u64,
    /// The rest of this line does not matter.
    in_line: bool,
    role: Role,
}

impl Default for Value {
    fn default() -> Self {
        Self { left: 0, in_line: false, role: Role::Neither }
    }
}

impl Talk for Redis {
    const FIRST: FirstBytes = FirstBytes::of(b"*");

    fn fits(client: First<'_>, server: First<'_>) -> bool {
        let both = client.is_empty() || server.is_empty() || is_command(client.bytes) && is_reply(server);
        both && is_command(client.bytes)
    }

    fn step(&mut self, side: Side, bytes: &[u8], out: &mut Out<'_>) -> Step {
        let stream = self.stream;
        let value = &mut self.sides[side as usize];
        if value.in_line {
            let (step, ends) = rest_of_line(bytes);
            value.in_line = !ends;
            return step;
        }
        let Some(line) = line(bytes) else { return Step::Need };
        let first = value.left == 0;
        let Some((&kind, count)) = line.text.split_first() else {
            // An empty line between inline commands is not a command; the server sends some while
            // it writes a data set.
            let passed = first && (side.is_client() || stream != Stream::No);
            return if passed { Step::Skip(line.len) } else { Step::Wrong };
        };
        let found = if first && side.is_client() && kind != b'*' {
            // An inline command: words on a line.
            if !is_text(line.text) {
                return Step::Wrong;
            }
            Found::Leaf(line.len)
        } else {
            match read(kind, count, &line) {
                Some(found) => found,
                // A data set of unknown length.
                None if first && stream == Stream::Begun => return Step::Lose,
                None => return Step::Wrong,
            }
        };
        if first {
            let behind = bytes.get(line.len as usize..).unwrap_or_default();
            value.role = match (side, found) {
                (Side::Server, Found::Values(1..)) => match begin_of(behind, &PUSHED) {
                    Begin::Open => return Step::Need,
                    Begin::Is => Role::Pushes,
                    // It is the other end that sends a stream of changes.
                    Begin::Other if is_report(behind) => return Step::Wrong,
                    Begin::Other => self.stream.answer(line.text),
                },
                (Side::Server, _) => self.stream.answer(line.text),
                (Side::Client, Found::Values(1..)) => match word(behind) {
                    None => return Step::Need,
                    Some(word) => self.stream.command(word, next_word(behind)),
                },
                (Side::Client, _) => self.stream.command(line.text, None),
            };
            value.left = 1;
        }
        value.in_line = line.is_cut;
        let is_data_set =
            first && !side.is_client() && stream == Stream::Begun && kind == b'$' && count != b"-1";
        let found = match found {
            Found::Leaf(len) if is_data_set => Found::Leaf(len - LINE_BREAK),
            found => found,
        };
        value.go_on(side, first, found, &line, bytes, out)
    }

    fn begins(&self, side: Side, first: First<'_>, is_turn: bool) -> bool {
        let by_itself = side.is_client() || self.stream == Stream::On;
        by_itself && is_command(first.bytes) || !side.is_client() && is_turn && is_reply(first)
    }

    fn lose(&mut self, side: Side) {
        self.sides[side as usize] = Value::default();
        if self.stream == Stream::Begun {
            self.stream = Stream::On;
        }
    }
}

impl Stream {
    /// The role of a command.
    fn command(&mut self, word: &[u8], next: Option<&[u8]>) -> Role {
        let is = |known: &[u8]| word.eq_ignore_ascii_case(known);
        if *self == Self::No && is(b"REPLCONF") && next.is_some_and(|next| next.eq_ignore_ascii_case(b"ACK"))
        {
            *self = Self::On;
        }
        if *self != Self::No {
            // A replica's offset.
            return Role::Neither;
        }
        if is(b"PSYNC") || is(b"MONITOR") {
            *self = Self::Asked;
        } else if is(b"SYNC") {
            *self = Self::Begun;
        }
        if BLOCKING.into_iter().any(is) { Role::Subscribes } else { Role::Asks }
    }

    /// The role of a reply, and what follows it.
    fn answer(&mut self, line: &[u8]) -> Role {
        let asked = *self == Self::Asked;
        *self = match *self {
            Self::Asked | Self::Begun if line.starts_with(b"-") => Self::No,
            Self::Asked if line.starts_with(b"+FULLRESYNC") => Self::Begun,
            Self::Asked | Self::Begun | Self::On => Self::On,
            Self::No => Self::No,
        };
        if asked || *self == Self::No { Role::Answers } else { Role::Pushes }
    }
}

/// A command's word, from the length before it, as far as it matters; `None` if more bytes are
/// needed.
fn word(bytes: &[u8]) -> Option<&[u8]> {
    let first = line(bytes)?;
    let len = first.text.strip_prefix(b"$").and_then(number).filter(|len| *len <= WORD_LEN_MAX);
    let Some(len) = len else { return Some(&[]) };
    bytes.get(first.len as usize..)?.get(..len as usize)
}

/// The word after it, if it is in the same bytes.
fn next_word(bytes: &[u8]) -> Option<&[u8]> {
    let first = line(bytes)?;
    let len = first.text.strip_prefix(b"$").and_then(number).filter(|len| *len <= WORD_LEN_MAX)?;
    word(bytes.get(first.len as usize..)?.get((len + LINE_BREAK) as usize..)?)
}

/// A replica's offset, behind the count of its words.
fn is_report(behind: &[u8]) -> bool {
    let is = |word: Option<&[u8]>, known: &[u8]| word.is_some_and(|word| word.eq_ignore_ascii_case(known));
    is(word(behind), b"REPLCONF") && is(next_word(behind), b"ACK")
}

/// What a line begins.
#[derive(Clone, Copy, Debug)]
enum Found {
    /// A value of this many bytes, including this line.
    Leaf(u64),
    /// This many values.
    Values(u64),
    /// This many values that are attributes of the next one (RESP3).
    Beside(u64),
}

impl Value {
    fn go_on(
        &mut self,
        side: Side,
        first: bool,
        found: Found,
        line: &Line<'_>,
        bytes: &[u8],
        out: &mut Out<'_>,
    ) -> Step {
        let (len, is_leaf) = match found {
            Found::Leaf(len) => (len, true),
            Found::Values(0) => (line.len, true),
            Found::Values(count) => {
                self.left = self.left.saturating_add(count);
                (line.len, false)
            }
            Found::Beside(count) => {
                self.left = self.left.saturating_add(count).saturating_add(1);
                (line.len, false)
            }
        };
        self.left -= 1;
        let last = self.left == 0;
        if first || last {
            let kind = match (side, self.role) {
                (Side::Client, _) => "command",
                (Side::Server, Role::Pushes) => "push",
                (Side::Server, _) => "reply",
            };
            let role = self.role;
            let name = if first && side.is_client() { name(bytes, line, is_leaf, out) } else { None };
            // The length of a long line is unknown until it ends.
            let len = (is_leaf && !line.is_cut).then_some(len);
            out.put(Head { len, first, last, name, ..Head::piece(role, kind) });
        }
        Step::Skip(len)
    }
}

/// One line of the protocol.
fn read(kind: u8, count: &[u8], line: &Line<'_>) -> Option<Found> {
    let simple = matches!(kind, b'+' | b'-' | b':' | b'_' | b',' | b'#' | b'(');
    if simple {
        return Some(Found::Leaf(line.len));
    }
    if line.is_cut {
        return None;
    }
    // A null has the length -1 (RESP2).
    let count = if count == b"-1" { None } else { Some(number(count)?) };
    let values = |each: u64| {
        let count = count.unwrap_or(0);
        (count <= ELEMENTS_MAX).then_some(count * each)
    };
    match kind {
        b'$' | b'=' | b'!' => {
            let len = count.map_or(0, |len| len.saturating_add(LINE_BREAK));
            (len <= STRING_LEN_MAX).then_some(Found::Leaf(line.len + len))
        }
        b'*' | b'~' | b'>' => values(1).map(Found::Values),
        b'%' => values(2).map(Found::Values),
        b'|' => values(2).map(Found::Beside),
        _ => None,
    }
}

/// The result of comparing bytes with some prefixes.
enum Begin {
    Is,
    /// More bytes are needed.
    Open,
    Other,
}

fn begin_of(bytes: &[u8], beginnings: &[&[u8]]) -> Begin {
    if beginnings.iter().any(|begin| bytes.starts_with(begin)) {
        Begin::Is
    } else if beginnings.iter().any(|begin| begin.starts_with(bytes)) {
        Begin::Open
    } else {
        Begin::Other
    }
}

/// The command's name, if it is in the same bytes.
fn name(bytes: &[u8], first: &Line<'_>, is_inline: bool, out: &Out<'_>) -> Option<crate::Span> {
    if is_inline {
        return out.span(0, first.text.len());
    }
    let begin = first.len as usize;
    let len_line = line(bytes.get(begin..)?)?;
    let begin = begin + len_line.len as usize;
    let len = number(len_line.text.strip_prefix(b"$")?)?;
    out.span(begin, bytes.len().min(begin.saturating_add(usize::try_from(len).ok()?)))
}

/// `*3`, `$3`, and a word.
fn is_command(bytes: &[u8]) -> bool {
    let of = |rest: &[u8]| {
        let count = line(rest)?;
        let rest = rest.get(count.len as usize..)?;
        let len = line(rest)?;
        let word = rest.get(len.len as usize..)?;
        let ends = rest.get(..len.len as usize)?.ends_with(b"\r\n");
        let count = number(count.text.strip_prefix(b"*")?)?;
        let len = number(len.text.strip_prefix(b"$")?)?;
        let word = &word[..word.len().min(usize::try_from(len).ok()?)];
        let sound = word.first().is_some_and(u8::is_ascii_alphabetic) && is_text(word);
        Some(ends && sound && (1..1 << 20).contains(&count) && (2..=32).contains(&len))
    };
    bytes.starts_with(b"*") && of(bytes).unwrap_or(false)
}

/// A simple reply, or one whose first line has a count.
fn is_reply(first: First<'_>) -> bool {
    let of = |bytes: &[u8]| {
        let line = line(bytes)?;
        let (kind, text) = line.text.split_first()?;
        let with_break = line.is_cut || bytes.get(..line.len as usize)?.ends_with(b"\r\n");
        let alone = line.len == u64::from(first.len);
        Some(
            with_break
                && match kind {
                    b'+' => text == b"OK" || text == b"PONG" || (is_text(text) && alone),
                    b'-' => text.first().is_some_and(u8::is_ascii_uppercase) && is_text(text),
                    b':' => number(text.strip_prefix(b"-").unwrap_or(text)).is_some(),
                    b'$' | b'*' | b'%' | b'~' | b'>' => {
                        !line.is_cut && (text == b"-1" || number(text).is_some())
                    }
                    b'_' => text.is_empty(),
                    _ => false,
                },
        )
    };
    of(first.bytes).unwrap_or(false)
}
