//! Which NATS message answers which? (NATS Client Protocol)
//!
//! A request names an inbox for its answer, and the answer is published to it: the inbox is the
//! identifier.

use crate::head::{Head, Role};
use crate::protocol::Protocol;
use crate::talk::{First, FirstBytes, Out, Side, Step, Talk};
use crate::words::{Passed, Words};

/// What both sides have said so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Nats {
    sides: [Words; 2],
}

impl Talk for Nats {
    const FIRST: FirstBytes = FirstBytes::of(b"IC");

    fn fits(client: First<'_>, server: First<'_>) -> bool {
        let greets = server.bytes.starts_with(b"INFO {\"server_id\"");
        let connects = client.bytes.starts_with(b"CONNECT {\"");
        greets && (client.is_empty() || connects) || connects && server.is_empty()
    }

    fn step(&mut self, side: Side, bytes: &[u8], out: &mut Out<'_>) -> Step {
        if bytes[0] == 0x16 && self.sides[side as usize].len == 0 {
            // After the server's INFO, if TLS is used.
            return Step::Other(Protocol::Tls);
        }
        let (used, words) = match self.sides[side as usize].pass(bytes) {
            Passed::All => return Step::Skip(bytes.len() as u64),
            Passed::TooLong => return Step::Wrong,
            Passed::Line(used, words) => (used, words),
        };
        let begin = out.at + used as u64 - u64::from(words.len);
        let last = words.count.saturating_sub(1);
        let body = || words.number(last).map(|len| u64::from(len) + 2);
        let (kind, role, id, body) = match (side, words.op()) {
            (_, b"") => return Step::Skip(used as u64),
            (Side::Client, b"PUB" | b"HPUB") => {
                let lengths = if words.op() == b"PUB" { 1 } else { 2 };
                let Some(body) = body() else { return Step::Wrong };
                let reply = if words.count == 3 + lengths { words.hash(2) } else { None };
                let (role, id) = named(&words, reply);
                ("PUB", role, id, body)
            }
            (Side::Server, b"MSG" | b"HMSG") => {
                let lengths = if words.op() == b"MSG" { 1 } else { 2 };
                let Some(body) = body() else { return Step::Wrong };
                let reply = if words.count == 4 + lengths { words.hash(3) } else { None };
                let (role, id) = named(&words, reply);
                ("MSG", role, id, body)
            }
            (Side::Client, b"CONNECT") => ("CONNECT", Role::Neither, None, 0),
            (Side::Client, b"SUB") => ("SUB", Role::Neither, None, 0),
            (Side::Client, b"UNSUB") => ("UNSUB", Role::Neither, None, 0),
            (Side::Server, b"INFO") => ("INFO", Role::Neither, None, 0),
            (Side::Server, b"+OK") => ("+OK", Role::Neither, None, 0),
            (Side::Server, b"-ERR") => ("-ERR", Role::Pushes, None, 0),
            (_, b"PING") => ("PING", Role::Neither, None, 0),
            (_, b"PONG") => ("PONG", Role::Neither, None, 0),
            _ => return Step::Wrong,
        };
        let name = if words.len as usize == used && body > 0 { out.span(0, used - 2) } else { None };
        let id = id.map(u64::from);
        out.put_at(begin, Head { id, name, ..Head::whole(role, kind, u64::from(words.len) + body) });
        Step::Skip(used as u64 + body)
    }

    fn begins(&self, side: Side, first: First<'_>, _: bool) -> bool {
        let begins = |word: &[u8]| first.bytes.starts_with(word);
        match side {
            Side::Client => begins(b"PUB ") || begins(b"HPUB ") || begins(b"PING\r\n") || begins(b"PONG\r\n"),
            Side::Server => begins(b"MSG ") || begins(b"HMSG ") || begins(b"PING\r\n") || begins(b"PONG\r\n"),
        }
    }

    fn lose(&mut self, side: Side) {
        self.sides[side as usize] = Words::default();
    }
}

/// A message that names an inbox asks, and one that is sent to an inbox answers.
fn named(words: &Words, reply: Option<u32>) -> (Role, Option<u32>) {
    match reply {
        _ if words.is_to_inbox() => (Role::Answers, words.hash(1)),
        Some(reply) => (Role::Asks, Some(reply)),
        None => (Role::Pushes, None),
    }
}
