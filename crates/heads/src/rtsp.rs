//! Which messages ask a camera or a player, and which are media? (RFC 2326, 4 to 8 and 10.12; RFC
//! 7826, 14)
//!
//! Requests and answers are written as in HTTP/1, either side may ask, and interleaved media come
//! between them in frames that begin with a dollar sign.

use crate::head::{Head, Role};
use crate::talk::{
    First, FirstBytes, Line, Out, Side, Step, Talk, is_text, line, number, rest_of_line, u16_at,
};

const METHODS: [&str; 11] = [
    "OPTIONS",
    "DESCRIBE",
    "ANNOUNCE",
    "SETUP",
    "PLAY",
    "PAUSE",
    "RECORD",
    "REDIRECT",
    "TEARDOWN",
    "GET_PARAMETER",
    "SET_PARAMETER",
];
/// Followed by two numbers with a dot between.
const VERSION: &[u8] = b"RTSP/";
const VERSION_LEN: usize = 8;
const FRAME: u8 = b'$';
/// Sign, channel, length.
const FRAME_HEADER_LEN: u64 = 4;

/// What both sides have said so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Rtsp {
    sides: [Message; 2],
}

/// The message under way.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Message {
    /// Its head continues, and this is its role.
    role: Option<Role>,
    /// The rest of this line does not matter.
    in_line: bool,
    length: u64,
}

impl Talk for Rtsp {
    // A method, or the version.
    const FIRST: FirstBytes = FirstBytes::of(b"ODASPRTG");

    fn fits(client: First<'_>, server: First<'_>) -> bool {
        let told = server.is_empty() || is_status(server.bytes);
        told && method(client.bytes)
            .is_some_and(|(_, rest)| rest.starts_with(b"rtsp://") || rest.starts_with(b"* RTSP/"))
    }

    fn step(&mut self, side: Side, bytes: &[u8], out: &mut Out<'_>) -> Step {
        let message = &mut self.sides[side as usize];
        if message.in_line {
            let (step, ends) = rest_of_line(bytes);
            message.in_line = !ends;
            return step;
        }
        if message.role.is_none() && bytes[0] == FRAME {
            let Some(len) = u16_at(bytes, 2) else { return Step::Need };
            let all = FRAME_HEADER_LEN + u64::from(len);
            // A viewer sends reception reports (RTCP).
            let role = if side.is_client() { Role::Neither } else { Role::Pushes };
            out.put(Head::whole(role, "media", all));
            return Step::Skip(all);
        }
        let Some(line) = line(bytes) else { return Step::Need };
        message.in_line = line.is_cut;
        message.on_line(&line, out)
    }

    fn begins(&self, _: Side, first: First<'_>, _: bool) -> bool {
        is_status(first.bytes) || method(first.bytes).is_some()
    }

    fn lose(&mut self, side: Side) {
        self.sides[side as usize] = Message::default();
    }
}

impl Message {
    fn on_line(&mut self, line: &Line<'_>, out: &mut Out<'_>) -> Step {
        let Some(role) = self.role else { return self.on_start(line, out) };
        if line.text.is_empty() {
            let len = line.len.saturating_add(self.length);
            *self = Self::default();
            out.put(Head { len: Some(len), last: true, ..Head::piece(role, "end") });
            return Step::Skip(len);
        }
        let colon = line.text.iter().position(|byte| *byte == b':').unwrap_or(0);
        if line.text[..colon].eq_ignore_ascii_case(b"content-length") {
            self.length = number(line.text[colon + 1..].trim_ascii()).unwrap_or(0);
        }
        Step::Skip(line.len)
    }

    fn on_start(&mut self, line: &Line<'_>, out: &mut Out<'_>) -> Step {
        if line.text.is_empty() {
            return Step::Skip(line.len);
        }
        let (role, kind) = if is_status(line.text) {
            match line.text.get(VERSION_LEN + 1) {
                Some(b'1') => (Role::Interim, "1xx"),
                Some(b'2') => (Role::Answers, "2xx"),
                Some(b'3') => (Role::Answers, "3xx"),
                _ => (Role::Answers, "4xx or 5xx"),
            }
        } else if let Some((method, _)) = method(line.text) {
            (Role::Asks, method)
        } else {
            return Step::Wrong;
        };
        self.role = Some(role);
        out.put(Head { first: true, ..Head::piece(role, kind) });
        Step::Skip(line.len)
    }
}

/// A version, a space, and a code.
fn is_status(bytes: &[u8]) -> bool {
    let rest = bytes.strip_prefix(VERSION).unwrap_or_default();
    matches!(rest, [b'1'..=b'2', b'.', b'0'..=b'9', b' ', b'1'..=b'5', ..])
}

/// A method, and the text after it.
fn method(bytes: &[u8]) -> Option<(&'static str, &[u8])> {
    let line = bytes.split(|byte| *byte == b'\r').next().unwrap_or_default();
    METHODS.into_iter().find_map(|method| {
        let rest = line.strip_prefix(method.as_bytes())?.strip_prefix(b" ")?;
        is_text(rest).then_some((method, rest))
    })
}
