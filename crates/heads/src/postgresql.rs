//! Which PostgreSQL messages ask, and where does the answer end? (PostgreSQL documentation, Frontend/Backend Protocol)
//!
//! A request is `Query`, or a sequence of `Parse`, `Bind` and `Execute` up to `Sync`; its answer
//! ends with `ReadyForQuery`, also if several requests are under way. Rows and copied data are
//! skipped and not reported.

use crate::head::{Head, Role};
use crate::protocol::Protocol;
use crate::talk::{First, FirstBytes, Out, Side, Step, Talk, Turn, is_text, u32_at};

/// Codes in place of the version in a first message.
const VERSION_3: u32 = 3 << 16;
const CANCEL_REQUEST: u32 = 80_877_102;
const SSL_REQUEST: u32 = 80_877_103;
const GSSENC_REQUEST: u32 = 80_877_104;
/// MAX_STARTUP_PACKET_LENGTH of the server.
const STARTUP_LEN_MAX: u32 = 10_000;
/// PQ_LARGE_MESSAGE_LIMIT.
const MESSAGE_LEN_MAX: u32 = 1 << 30;

const FRONTEND: &[u8] = b"QPBEDSCHFXdcfp";
const BACKEND: &[u8] = b"RSKZTDCINAE123tnsGHWdcVv";

/// What both sides have said so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "four questions that have nothing to do with each other")]
pub(crate) struct PostgreSql {
    /// The client's next message has a type: it is past its startup.
    typed: bool,
    /// One byte of the server says whether encryption begins.
    offered: bool,
    /// Inside a request, and inside an answer.
    asking: bool,
    answering: bool,
}

impl Talk for PostgreSql {
    // A startup's length, or a request.
    const FIRST: FirstBytes = FirstBytes::of(b"\0QPB");

    fn fits(client: First<'_>, server: First<'_>) -> bool {
        if is_startup(client) {
            let answers = match *server.bytes {
                [] => true,
                [b'S' | b'N' | b'G'] => u32_at(client.bytes, 4) != Some(VERSION_3),
                _ => is_message(server, b"RENv"),
            };
            return answers;
        }
        // In the middle of a connection, both sides must fit.
        is_question(client) && is_message(server, b"T12CIEZDnstGHK")
    }

    fn step(&mut self, side: Side, bytes: &[u8], out: &mut Out<'_>) -> Step {
        match side {
            Side::Client if !self.typed && bytes[0] == 0 => self.startup(bytes, out),
            Side::Server if self.offered => self.on_offer(bytes[0], out),
            _ => {
                let (Some(len), kind) = (u32_at(bytes, 1), bytes[0]) else { return Step::Need };
                let known = if side.is_client() { FRONTEND } else { BACKEND };
                if !known.contains(&kind) || !(4..MESSAGE_LEN_MAX).contains(&len) {
                    return Step::Wrong;
                }
                let len = u64::from(len) + 1;
                if side.is_client() {
                    self.frontend(kind, len, bytes, out);
                } else if self.backend(kind, len, bytes, out).is_none() {
                    return Step::Need;
                }
                Step::Skip(len)
            }
        }
    }

    fn begins(&self, side: Side, first: First<'_>, is_turn: bool) -> bool {
        if side.is_client() {
            is_question(first) || is_startup(first)
        } else {
            is_turn && is_message(first, b"TZ12CE")
        }
    }

    fn lose(&mut self, side: Side) {
        match side {
            // Possibly in the middle of a request or an answer: the next message is not reported as
            // its first piece.
            Side::Client => (self.typed, self.asking) = (true, true),
            Side::Server => (self.offered, self.answering) = (false, true),
        }
    }
}

impl PostgreSql {
    fn startup(&mut self, bytes: &[u8], out: &mut Out<'_>) -> Step {
        let (Some(len), Some(code)) = (u32_at(bytes, 0), u32_at(bytes, 4)) else { return Step::Need };
        let kind = match code {
            SSL_REQUEST => "SSLRequest",
            GSSENC_REQUEST => "GSSENCRequest",
            CANCEL_REQUEST => "CancelRequest",
            _ if code >> 16 == 3 => "StartupMessage",
            _ => return Step::Wrong,
        };
        if !(8..=STARTUP_LEN_MAX).contains(&len) {
            return Step::Wrong;
        }
        self.offered = matches!(code, SSL_REQUEST | GSSENC_REQUEST);
        self.typed = code >> 16 == 3;
        // A cancellation is not answered (Canceling Requests in Progress).
        let role = if code == CANCEL_REQUEST { Role::Neither } else { Role::Asks };
        out.put(Head::whole(role, kind, u64::from(len)));
        Step::Skip(u64::from(len))
    }

    fn on_offer(&mut self, answer: u8, out: &mut Out<'_>) -> Step {
        self.offered = false;
        match answer {
            b'S' => out.turn = Some(Turn::Into(Protocol::Tls)),
            b'G' => out.turn = Some(Turn::Anew),
            b'N' => {}
            // An error message of an old server.
            _ => return Step::Wrong,
        }
        out.put(Head::whole(Role::Answers, "encryption", 1));
        Step::Skip(1)
    }

    fn frontend(&mut self, kind: u8, len: u64, bytes: &[u8], out: &mut Out<'_>) {
        self.typed = true;
        // A query is a request by itself, wherever it is.
        let first = !self.asking || kind == b'Q';
        let (role, name, last) = match kind {
            b'Q' => (Role::Asks, "Query", true),
            b'F' => (Role::Asks, "FunctionCall", true),
            b'S' => (Role::Asks, "Sync", true),
            b'p' => (Role::Asks, "password", true),
            b'c' => (Role::Asks, "CopyDone", true),
            b'f' => (Role::Asks, "CopyFail", true),
            b'X' => (Role::Neither, "Terminate", true),
            b'P' => (Role::Asks, "Parse", false),
            b'B' => (Role::Asks, "Bind", false),
            b'E' => (Role::Asks, "Execute", false),
            b'D' => (Role::Asks, "Describe", false),
            b'C' => (Role::Asks, "Close", false),
            b'H' => (Role::Asks, "Flush", false),
            _ => (Role::Asks, "CopyData", false),
        };
        self.asking = !last;
        if !first && !last {
            return;
        }
        let text = match kind {
            b'Q' => Some(5),
            // The statement's name precedes its text.
            b'P' => bytes[5..].iter().position(|byte| *byte == 0).map(|end| 5 + end + 1),
            _ => None,
        };
        let name_span = text.and_then(|begin| {
            let rest = bytes.get(begin..bytes.len().min(len as usize))?;
            let end = rest.iter().position(|byte| *byte == 0).unwrap_or(rest.len());
            out.span(begin, begin + end)
        });
        out.put(Head { len: Some(len), first, last, name: name_span, ..Head::piece(role, name) });
    }

    /// `None` if more bytes are needed.
    fn backend(&mut self, kind: u8, len: u64, bytes: &[u8], out: &mut Out<'_>) -> Option<()> {
        let pushed = match kind {
            b'A' => Some("NotificationResponse"),
            b'N' if !self.answering => Some("NoticeResponse"),
            b'S' if !self.answering => Some("ParameterStatus"),
            _ => None,
        };
        if let Some(name) = pushed {
            out.put(Head::whole(Role::Pushes, name, len));
            return Some(());
        }
        // The server waits for the client here.
        let last = match kind {
            b'Z' | b'G' => true,
            // A challenge: neither AuthenticationOk nor the final message of SASL.
            b'R' => ![0, 12].contains(&u32_at(bytes, 5)?),
            _ => false,
        };
        let first = !self.answering;
        self.answering = !last;
        if first || last || kind == b'E' {
            out.put(Head { len: Some(len), first, last, ..Head::piece(Role::Answers, name_of(kind)) });
        }
        Some(())
    }
}

const fn name_of(kind: u8) -> &'static str {
    match kind {
        b'R' => "Authentication",
        b'Z' => "ReadyForQuery",
        b'T' => "RowDescription",
        b'C' => "CommandComplete",
        b'E' => "ErrorResponse",
        b'1' => "ParseComplete",
        b'2' => "BindComplete",
        b'3' => "CloseComplete",
        b'I' => "EmptyQueryResponse",
        b'G' => "CopyInResponse",
        b'H' => "CopyOutResponse",
        b'W' => "CopyBothResponse",
        _ => "message",
    }
}

/// A first message: its length, followed by a code that cannot be one.
fn is_startup(first: First<'_>) -> bool {
    let (Some(len), Some(code)) = (u32_at(first.bytes, 0), u32_at(first.bytes, 4)) else { return false };
    match code {
        SSL_REQUEST | GSSENC_REQUEST => len == 8,
        CANCEL_REQUEST => len == 16,
        VERSION_3 => {
            len <= STARTUP_LEN_MAX
                && len == first.len
                && first.bytes.get(8).is_some_and(u8::is_ascii_lowercase)
        }
        _ => false,
    }
}

/// One of these types, and a length that agrees with the segment.
fn is_message(first: First<'_>, kinds: &[u8]) -> bool {
    let (Some(kind), Some(len)) = (first.bytes.first(), u32_at(first.bytes, 1)) else { return false };
    let next = usize::try_from(len).ok().and_then(|len| len.checked_add(1));
    let chained = next.is_some_and(|next| {
        next == first.len as usize || first.bytes.get(next).is_none_or(|kind| BACKEND.contains(kind))
    });
    kinds.contains(kind) && (4..1 << 20).contains(&len) && chained
}

/// A query, or the first part of one.
fn is_question(first: First<'_>) -> bool {
    let (Some(kind), Some(len)) = (first.bytes.first(), u32_at(first.bytes, 1)) else { return false };
    let all = u64::from(len) + 1;
    let text = match kind {
        b'Q' => all == u64::from(first.len),
        b'P' | b'B' => all < u64::from(first.len),
        _ => return false,
    };
    let begin = first.bytes.get(5..first.bytes.len().min(12)).unwrap_or_default();
    text && len > 5 && (*kind != b'Q' || is_text(begin.strip_suffix(b"\0").unwrap_or(begin)))
}
