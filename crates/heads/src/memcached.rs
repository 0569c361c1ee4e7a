//! Which memcached commands ask, and where do their answers end? (memcached doc/protocol.txt: text and meta; protocol-binary)

use crate::head::{Head, Role};
use crate::talk::{First, FirstBytes, Out, Side, Step, Talk, is_text, u16_at, u32_at};
use crate::words::{Passed, Words};

const BINARY_REQUEST: u8 = 0x80;
const BINARY_RESPONSE: u8 = 0x81;
const BINARY_HEAD_LEN: usize = 24;
/// Items are up to a megabyte by default, and a gigabyte at most.
const VALUE_LEN_MAX: u32 = 1 << 30;

/// What both sides have said so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Memcached {
    sides: [Words; 2],
    /// Values of an answer have come, but not its end.
    answering: bool,
}

impl Talk for Memcached {
    const FIRST: FirstBytes = FirstBytes::of(&[BINARY_REQUEST]).and_range(b'a', b'z');

    fn fits(client: First<'_>, server: First<'_>) -> bool {
        if is_binary(client, BINARY_REQUEST) {
            return server.is_empty() || is_binary(server, BINARY_RESPONSE);
        }
        // Short words alone prove little.
        let word_len = client.bytes.iter().position(|byte| *byte == b' ').unwrap_or(0);
        is_command(client.bytes) && (server.is_empty() && word_len > 2 || is_answer(server.bytes))
    }

    fn step(&mut self, side: Side, bytes: &[u8], out: &mut Out<'_>) -> Step {
        let begins = self.sides[side as usize] == Words::default();
        if begins && bytes[0] & 0xfe == BINARY_REQUEST {
            return binary(side, bytes, out);
        }
        let (used, words) = match self.sides[side as usize].pass(bytes) {
            Passed::All => return Step::Skip(bytes.len() as u64),
            Passed::TooLong => return Step::Wrong,
            Passed::Line(used, words) => (used, words),
        };
        let head = match side {
            Side::Client => command(&words),
            Side::Server => self.answer(&words),
        };
        let Some((head, body)) = head else { return Step::Wrong };
        if body > u64::from(VALUE_LEN_MAX) {
            return Step::Wrong;
        }
        let len = u64::from(words.len) + body;
        let named = side.is_client() && words.len as usize == used;
        let name = if named { out.span(0, used.saturating_sub(2)) } else { None };
        if head.first || head.last {
            out.put_at(out.at + used as u64 - u64::from(words.len), Head { len: Some(len), name, ..head });
        }
        Step::Skip(used as u64 + body)
    }

    fn begins(&self, side: Side, first: First<'_>, is_turn: bool) -> bool {
        match side {
            Side::Client => is_command(first.bytes) || is_binary(first, BINARY_REQUEST),
            Side::Server => is_turn && is_answer(first.bytes) || is_binary(first, BINARY_RESPONSE),
        }
    }

    fn lose(&mut self, side: Side) {
        self.sides[side as usize] = Words::default();
        if !side.is_client() {
            self.answering = false;
        }
    }
}

/// A command, and the length of the value after its line.
fn command(words: &Words) -> Option<(Head, u64)> {
    let value = |word| words.number(word).map(|len| u64::from(len) + 2);
    let (kind, body) = match words.op() {
        b"get" => ("get", 0),
        b"gets" => ("gets", 0),
        b"gat" => ("gat", 0),
        b"gats" => ("gats", 0),
        b"set" => ("set", value(4)?),
        b"add" => ("add", value(4)?),
        b"replace" => ("replace", value(4)?),
        b"append" => ("append", value(4)?),
        b"prepend" => ("prepend", value(4)?),
        b"cas" => ("cas", value(4)?),
        b"delete" => ("delete", 0),
        b"incr" => ("incr", 0),
        b"decr" => ("decr", 0),
        b"touch" => ("touch", 0),
        b"mg" => ("mg", 0),
        b"ms" => ("ms", value(2)?),
        b"md" => ("md", 0),
        b"ma" => ("ma", 0),
        b"me" => ("me", 0),
        b"mn" => ("mn", 0),
        b"stats" => ("stats", 0),
        b"version" => ("version", 0),
        b"flush_all" => ("flush_all", 0),
        b"verbosity" => ("verbosity", 0),
        b"quit" => ("quit", 0),
        _ => return None,
    };
    let role = match kind {
        "quit" => Role::Neither,
        // Quiet commands of the meta protocol (flag q) are answered if they fail, or not at all.
        _ if words.ends_with(b" noreply") || words.op()[0] == b'm' && words.ends_with(b" q") => Role::Pushes,
        _ => Role::Asks,
    };
    Some((Head::whole(role, kind, 0), body))
}

impl Memcached {
    fn answer(&mut self, words: &Words) -> Option<(Head, u64)> {
        let value = |word| words.number(word).map(|len| u64::from(len) + 2);
        let (kind, body, goes_on) = match words.op() {
            b"VALUE" => ("VALUE", value(3)?, true),
            b"STAT" => ("STAT", 0, true),
            b"VA" => ("VA", value(1)?, false),
            b"END" => ("END", 0, false),
            b"STORED" | b"DELETED" | b"TOUCHED" | b"OK" | b"RESET" => ("OK", 0, false),
            b"NOT_STORED" | b"EXISTS" | b"NOT_FOUND" => ("NOT_FOUND", 0, false),
            b"ERROR" | b"CLIENT_ERROR" | b"SERVER_ERROR" => ("ERROR", 0, false),
            b"VERSION" => ("VERSION", 0, false),
            b"HD" | b"EN" | b"NF" | b"NS" | b"EX" | b"MN" | b"ME" => ("HD", 0, false),
            // The result of incr and decr.
            _ if words.number(0).is_some() && words.count == 1 => ("number", 0, false),
            _ => return None,
        };
        let first = !std::mem::replace(&mut self.answering, goes_on);
        Some((Head { first, last: !goes_on, ..Head::piece(Role::Answers, kind) }, body))
    }
}

fn binary(side: Side, bytes: &[u8], out: &mut Out<'_>) -> Step {
    let (Some(body), Some(id)) = (u32_at(bytes, 8), u32_at(bytes, 12)) else { return Step::Need };
    let magic = if side.is_client() { BINARY_REQUEST } else { BINARY_RESPONSE };
    if bytes[0] != magic || body > VALUE_LEN_MAX {
        return Step::Wrong;
    }
    // Quiet commands are answered if something is found or fails, or not at all.
    let quiet = matches!(bytes[1], 0x09 | 0x0d | 0x11..=0x1a | 0x1e | 0x24);
    let (role, kind) = match side {
        Side::Client if quiet => (Role::Pushes, "quiet command"),
        Side::Client => (Role::Asks, "command"),
        Side::Server => (Role::Answers, "response"),
    };
    let len = BINARY_HEAD_LEN as u64 + u64::from(body);
    out.put(Head { id: Some(u64::from(id)), ..Head::whole(role, kind, len) });
    Step::Skip(len)
}

fn is_binary(first: First<'_>, magic: u8) -> bool {
    let (Some(key), Some(body)) = (u16_at(first.bytes, 2), u32_at(first.bytes, 8)) else { return false };
    let (extras, data_type) = (u32::from(first.bytes[4]), first.bytes[5]);
    let status = u16_at(first.bytes, 6).unwrap_or(u16::MAX);
    // Commands that get, set or delete a value name its key.
    let named =
        magic == BINARY_RESPONSE || key > 0 || !matches!(first.bytes[1], 0x00..=0x06 | 0x09 | 0x0c..=0x0f);
    named
        && first.bytes[0] == magic
        && first.bytes[1] <= 0x2c
        && data_type == 0
        && (key <= 250 && extras <= 24 && u32::from(key) + extras <= body && body <= 1 << 21)
        && (magic == BINARY_REQUEST || status <= 0x86)
        && u64::from(body) + BINARY_HEAD_LEN as u64 >= u64::from(first.len.min(BINARY_HEAD_LEN as u32))
}

/// A complete command line.
fn is_command(bytes: &[u8]) -> bool {
    if !bytes.first().is_some_and(u8::is_ascii_lowercase) {
        return false;
    }
    let text_len = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(0);
    if text_len == 0 {
        return false;
    }
    let text = &bytes[..text_len];
    match Words::default().pass(bytes) {
        Passed::Line(_, words) => {
            let alone = [&b"stats"[..], b"version", b"mn", b"flush_all"].contains(&words.op());
            text.ends_with(b"\r")
                && is_text(&text[..text_len - 1])
                && (words.count > 1 || alone)
                && (words.count == 1 || words.op() != b"version")
                && command(&words).is_some_and(|(head, _)| head.kind != "quit")
        }
        _ => false,
    }
}

/// An answer line that is more than a number.
fn is_answer(bytes: &[u8]) -> bool {
    if !bytes.contains(&b'\n') {
        return false;
    }
    match Words::default().pass(bytes) {
        Passed::Line(used, words) => {
            let known = Memcached::default().answer(&words).is_some_and(|(head, _)| head.kind != "number");
            bytes[..used].ends_with(b"\r\n") && known
        }
        _ => false,
    }
}
