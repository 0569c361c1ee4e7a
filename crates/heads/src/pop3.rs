//! Which POP3 responses belong to which commands? (RFC 1939, 3; RFC 2449 for pipelining)
//!
//! A response has one line, or several up to a single dot: the command determines which.

use crate::head::{Head, Role};
use crate::protocol::Protocol;
use crate::talk::{First, FirstBytes, Out, Side, Step, Talk, is_text, line, rest_of_line};

const VERBS: [&str; 16] = [
    "USER", "PASS", "APOP", "AUTH", "CAPA", "STLS", "STAT", "LIST", "UIDL", "RETR", "TOP", "DELE", "NOOP",
    "RSET", "QUIT", "UTF8",
];

/// What both sides have said so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Pop3 {
    /// The rest of this line does not matter.
    in_line: [bool; 2],
    /// Whether the response of each command without one has several lines; the oldest command is
    /// the lowest bit.
    several: u64,
    open: u8,
    /// Inside such a response.
    answering: bool,
    /// Which response belongs to which command is no longer known.
    is_doubtful: bool,
    challenged: bool,
}

impl Talk for Pop3 {
    // The server's first byte.
    const FIRST: FirstBytes = FirstBytes::of(b"+-");

    fn fits(client: First<'_>, server: First<'_>) -> bool {
        is_response(server.bytes) && is_command(client.bytes, &VERBS[..9])
    }

    fn step(&mut self, side: Side, bytes: &[u8], out: &mut Out<'_>) -> Step {
        let in_line = &mut self.in_line[side as usize];
        if *in_line {
            let (step, ends) = rest_of_line(bytes);
            *in_line = !ends;
            return step;
        }
        if bytes[0] == 0x16 && !self.answering {
            return Step::Other(Protocol::Tls);
        }
        let Some(line) = line(bytes) else { return Step::Need };
        *in_line = line.is_cut;
        let len = (!line.is_cut).then_some(line.len);
        if side.is_client() {
            let secret = std::mem::take(&mut self.challenged);
            let mut words = line.text.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
            let word = words.next().unwrap_or_default();
            let alone = words.next().is_none();
            let known = VERBS.into_iter().find(|verb| verb.as_bytes().eq_ignore_ascii_case(word));
            let kind = known.filter(|_| !secret).unwrap_or("command");
            let several = matches!(kind, "RETR" | "TOP" | "CAPA") || matches!(kind, "LIST" | "UIDL") && alone;
            // A client that asks after the server has spoken had its answer.
            self.is_doubtful &= !out.is_turn || self.open > 0;
            match 1_u64.checked_shl(u32::from(self.open)) {
                Some(bit) => self.several |= bit * u64::from(several),
                None => self.is_doubtful = true,
            }
            self.open = self.open.saturating_add(1);
            out.put(Head { len, first: true, last: true, ..Head::piece(Role::Asks, kind) });
            return Step::Skip(line.len);
        }
        if self.answering {
            let last = line.text == b"." && !line.is_cut;
            self.answering = !last;
            if last {
                out.put(Head { len, last, ..Head::piece(Role::Answers, "end") });
            }
            return Step::Skip(line.len);
        }
        let kind = match line.text {
            [b'+', b'O', b'K', ..] => "+OK",
            [b'-', b'E', b'R', b'R', ..] => "-ERR",
            [b'+', b' ', ..] | [b'+'] => "+",
            _ => return Step::Wrong,
        };
        self.challenged = kind == "+";
        let several = self.several & 1 != 0 && kind == "+OK";
        // The greeting answers no command; any other line answers one that may have been missed.
        if self.is_doubtful || self.open == 0 && out.at > 0 {
            return Step::Lose;
        }
        self.several >>= 1;
        self.open = self.open.saturating_sub(1);
        self.answering = several;
        out.put(Head { len, first: true, last: !several, ..Head::piece(Role::Answers, kind) });
        Step::Skip(line.len)
    }

    fn begins(&self, side: Side, first: First<'_>, is_turn: bool) -> bool {
        is_turn
            && if side.is_client() {
                is_command(first.bytes, &VERBS)
            } else {
                !self.is_doubtful && is_response(first.bytes)
            }
    }

    fn lose(&mut self, side: Side) {
        self.in_line[side as usize] = false;
        (self.several, self.open) = (0, 0);
        self.answering = false;
        self.is_doubtful = true;
    }
}

fn is_command(bytes: &[u8], verbs: &[&str]) -> bool {
    let word_len = bytes.iter().position(|byte| !byte.is_ascii_alphanumeric()).unwrap_or(0);
    let ends = bytes.get(word_len..).is_some_and(|rest| rest.starts_with(b" ") || rest.starts_with(b"\r\n"));
    ends && verbs.iter().any(|verb| verb.as_bytes().eq_ignore_ascii_case(&bytes[..word_len]))
}

/// `+OK` with text, which no other protocol uses with these commands.
fn is_response(bytes: &[u8]) -> bool {
    if !matches!(bytes, [b'+' | b'-', ..]) {
        return false;
    }
    let line = bytes.split(|byte| *byte == b'\r').next().unwrap_or_default();
    (line.starts_with(b"+OK") || line.starts_with(b"-ERR")) && is_text(line)
}
