//! Where does each HTTP/1 message begin, and how long is it? (RFC 9112)
//!
//! A head is reported at the start line, and the body at the empty line after the header fields.
//! `httparse` needs whole header sections, which a capture with a snap length does not have; only
//! three fields matter, so reading line by line is enough.

use crate::head::{Head, Role};
use crate::protocol::Protocol;
use crate::talk::{
    FOR_EVER, First, FirstBytes, Line, Out, Side, Step, Talk, Turn, is_text, line, number, rest_of_line,
};

/// Methods of RFC 9110, 9.3, RFC 5789 and RFC 4918.
const METHODS: [&str; 16] = [
    "GET",
    "HEAD",
    "POST",
    "PUT",
    "DELETE",
    "CONNECT",
    "OPTIONS",
    "TRACE",
    "PATCH",
    "PROPFIND",
    "PROPPATCH",
    "MKCOL",
    "COPY",
    "MOVE",
    "LOCK",
    "UNLOCK",
];

const REQUEST_TIMEOUT: u16 = 408;
/// Data sent or shown as it happens: events (WHATWG HTML, 9.2), and a camera's pictures.
const EVENTS: [&[u8]; 2] = [b"text/event-stream", b"multipart/x-mixed-replace"];

/// Prefix of a station's name and genre (Icecast).
const RADIO: &[u8] = b"icy-";

/// What both sides have said so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Http1 {
    sides: [Message; 2],
    asked: Asked,
}

/// The message under way.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Message {
    place: Place,
    /// The rest of this line does not matter.
    in_line: bool,
    chunked: bool,
    /// The body is events, reported as they occur.
    events: bool,
    upgrade: Option<Protocol>,
    length: Option<u64>,
    status: u16,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Place {
    #[default]
    StartLine,
    Fields,
    Chunk,
    Trailers,
}

/// For the requests without an answer so far: those whose answers have no body of the announced
/// length.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Asked {
    head: u64,
    connect: u64,
    count: u32,
    /// Which answer belongs to which request is no longer known.
    is_doubtful: bool,
}

impl Asked {
    fn push(&mut self, method: &str, is_turn: bool) {
        // A client that asks after the server has spoken had its answer.
        self.is_doubtful &= !is_turn || self.count > 0;
        if let Some(bit) = 1_u64.checked_shl(self.count) {
            self.head |= bit * u64::from(method == "HEAD");
            self.connect |= bit * u64::from(method == "CONNECT");
        }
        self.is_doubtful |= self.count >= u64::BITS;
        self.count = self.count.saturating_add(1);
    }

    /// Whether the oldest is HEAD, and whether it is CONNECT, if known.
    fn pop(&mut self) -> Option<(bool, bool)> {
        let is_known = self.count > 0 && !self.is_doubtful;
        let oldest = (self.head & 1 != 0, self.connect & 1 != 0);
        (self.head, self.connect) = (self.head >> 1, self.connect >> 1);
        self.count = self.count.saturating_sub(1);
        is_known.then_some(oldest)
    }
}

impl Talk for Http1 {
    // A method in capitals, or `HTTP/`.
    const FIRST: FirstBytes = FirstBytes::of(b"H").and_range(b'A', b'Z');

    fn fits(client: First<'_>, server: First<'_>) -> bool {
        let both = client.is_empty() || server.is_empty() || is_request(client) && is_status(server.bytes);
        both && (is_request(client) || is_status(server.bytes))
    }

    fn step(&mut self, side: Side, bytes: &[u8], out: &mut Out<'_>) -> Step {
        let message = &mut self.sides[side as usize];
        if message.in_line {
            let (step, ends) = rest_of_line(bytes);
            message.in_line = !ends;
            return step;
        }
        let Some(line) = line(bytes) else { return Step::Need };
        message.in_line = line.is_cut;
        match message.place {
            // An empty line before a request is skipped (RFC 9112, 2.2).
            Place::StartLine if line.text.is_empty() && side.is_client() => {}
            Place::StartLine => {
                *message = Message { place: Place::Fields, in_line: line.is_cut, ..Message::default() };
                let start = if side.is_client() {
                    self.on_request_line(&line, bytes, out)
                } else {
                    self.on_status_line(&line, bytes, out)
                };
                if start.is_none() {
                    return Step::Wrong;
                }
            }
            Place::Fields if line.text.is_empty() => return self.on_fields_end(side, line.len, out),
            Place::Fields => message.on_field(side, &line),
            Place::Chunk => {
                let step = message.on_chunk(&line);
                let more = message.events && message.place == Place::Chunk;
                if let (true, Step::Skip(len)) = (more, step) {
                    out.put(Head::whole(Role::Pushes, "event", len));
                }
                return step;
            }
            Place::Trailers if line.text.is_empty() => {
                let role = if message.events { Role::Pushes } else { self.role(side) };
                out.put(Head { len: Some(line.len), last: true, ..Head::piece(role, "end") });
                self.sides[side as usize] = Message::default();
            }
            Place::Trailers => {}
        }
        Step::Skip(line.len)
    }

    fn begins(&self, side: Side, first: First<'_>, _: bool) -> bool {
        if side.is_client() { is_request(first) } else { is_status(first.bytes) }
    }

    fn lose(&mut self, side: Side) {
        self.sides[side as usize] = Message::default();
        // Which of the open requests are still unanswered is unknown.
        self.asked = Asked { is_doubtful: true, ..Asked::default() };
    }

    fn turns(&self, side: Side) -> Option<Turn> {
        let message = self.sides[side as usize];
        let switches = message.status == 101 && message.place == Place::Fields;
        switches.then(|| message.upgrade.map_or(Turn::Anew, Turn::Into))
    }
}

impl Http1 {
    fn on_request_line(&mut self, line: &Line<'_>, bytes: &[u8], out: &mut Out<'_>) -> Option<()> {
        let method_len = line.text.iter().position(|byte| *byte == b' ')?;
        let method = &line.text[..method_len];
        if method.is_empty() || !method.iter().all(|byte| byte.is_ascii_uppercase() || *byte == b'-') {
            return None;
        }
        if !line.is_cut && !ends_with_version(line.text) {
            return None;
        }
        let known = METHODS.into_iter().find(|known| known.as_bytes() == method);
        let target = &bytes[method_len + 1..];
        let target_len = target.iter().position(|byte| !(b'!'..=b'~').contains(byte)).unwrap_or(target.len());
        let name = out.span(0, method_len + 1 + target_len);
        let kind = known.unwrap_or("request");
        self.asked.push(kind, out.is_turn);
        out.put(Head { first: true, name, ..Head::piece(Role::Asks, kind) });
        Some(())
    }

    fn on_status_line(&mut self, line: &Line<'_>, bytes: &[u8], out: &mut Out<'_>) -> Option<()> {
        let status = status_of(line.text)?;
        self.sides[Side::Server as usize].status = status;
        let kind = match status / 100 {
            1 => "1xx",
            2 => "2xx",
            3 => "3xx",
            4 => "4xx",
            _ => "5xx",
        };
        let phrase = &bytes[9..];
        let phrase_len = phrase.iter().position(|byte| *byte < b' ').unwrap_or(phrase.len());
        let name = out.span(9, 9 + phrase_len);
        out.put(Head { first: true, name, ..Head::piece(self.role(Side::Server), kind) });
        Some(())
    }

    fn role(&self, side: Side) -> Role {
        match (side, self.sides[side as usize].status) {
            (Side::Client, _) => Role::Asks,
            (Side::Server, 100 | 102..=199) => Role::Interim,
            // The server has waited in vain for the rest of a request, or for the next one (RFC
            // 9110, 15.5.9).
            (Side::Server, REQUEST_TIMEOUT) => Role::Neither,
            (Side::Server, _) => Role::Answers,
        }
    }

    /// Determines the body's length (RFC 9112, 6.3).
    fn on_fields_end(&mut self, side: Side, line_len: u64, out: &mut Out<'_>) -> Step {
        let (message, role) = (self.sides[side as usize], self.role(side));
        let mut has_body = true;
        if !side.is_client() && role == Role::Answers {
            let asked = self.asked.pop();
            let (to_head, to_connect) = asked.unwrap_or_default();
            if message.status == 101 || to_connect && message.status / 100 == 2 {
                out.put(Head { len: Some(line_len), last: true, ..Head::piece(role, "end") });
                out.turn = Some(message.upgrade.map_or(Turn::Anew, Turn::Into));
                return Step::Skip(line_len);
            }
            has_body = !to_head && ![204, 304].contains(&message.status);
            if has_body && asked.is_none() {
                // Whether it answers HEAD is unknown.
                self.sides[side as usize] = Message::default();
                return Step::Lose;
            }
        }
        if role == Role::Interim {
            has_body = false;
        }
        let body = if !has_body || (side.is_client() && message.length.is_none()) {
            Some(0)
        } else {
            message.length
        };
        let chunked = message.chunked && has_body;
        if chunked {
            self.sides[side as usize] = Message { place: Place::Chunk, ..message };
            if message.events {
                // The answer says that events will follow.
                out.put(Head { len: Some(line_len), last: true, ..Head::piece(role, "end") });
            } else {
                out.put(Head::piece(role, "chunked"));
            }
            return Step::Skip(line_len);
        }
        self.sides[side as usize] = Message::default();
        let Some(body) = body else {
            // Until the connection is closed.
            if message.events {
                out.put(Head { len: Some(line_len), last: true, ..Head::piece(role, "end") });
                let stream = Head { first: true, ..Head::piece(Role::Pushes, "stream") };
                out.put_at(out.at + line_len, stream);
            } else {
                out.put(Head::piece(role, "body"));
            }
            return FOR_EVER;
        };
        let len = line_len.saturating_add(body);
        let kind = if body == 0 { "end" } else { "body" };
        out.put(Head { len: Some(len), last: true, ..Head::piece(role, kind) });
        Step::Skip(len)
    }
}

impl Message {
    /// A chunk's data and the line break after it are skipped (RFC 9112, 7.1).
    fn on_chunk(&mut self, line: &Line<'_>) -> Step {
        let digits = line.text.iter().position(|byte| !byte.is_ascii_hexdigit()).unwrap_or(line.text.len());
        let size = line.text[..digits].iter().try_fold(0_u64, |size, digit| {
            let digit = char::from(*digit).to_digit(16)?;
            size.checked_mul(16)?.checked_add(u64::from(digit))
        });
        let (Some(size), false, true) = (size, line.is_cut, digits > 0) else { return Step::Wrong };
        if size > 0 {
            return Step::Skip(line.len.saturating_add(size).saturating_add(2));
        }
        self.place = Place::Trailers;
        Step::Skip(line.len)
    }

    fn on_field(&mut self, side: Side, line: &Line<'_>) {
        let Some(colon) = line.text.iter().position(|byte| *byte == b':') else { return };
        let (name, value) = (&line.text[..colon], line.text[colon + 1..].trim_ascii());
        if name.eq_ignore_ascii_case(b"content-length") {
            self.length = number(value);
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            let last = value.len().saturating_sub(b"chunked".len());
            self.chunked = value[last..].eq_ignore_ascii_case(b"chunked");
        } else if name.eq_ignore_ascii_case(b"content-type") {
            let is = |events: &[u8]| {
                value.len() >= events.len() && value[..events.len()].eq_ignore_ascii_case(events)
            };
            self.events |= !side.is_client() && EVENTS.into_iter().any(is);
        } else if !side.is_client()
            && name.len() > RADIO.len()
            && name[..RADIO.len()].eq_ignore_ascii_case(RADIO)
        {
            self.events = true;
        } else if name.eq_ignore_ascii_case(b"upgrade") {
            self.upgrade = match value {
                value if value.eq_ignore_ascii_case(b"websocket") => Some(Protocol::WebSocket),
                value if value.eq_ignore_ascii_case(b"h2c") => Some(Protocol::Http2),
                _ => None,
            };
        }
    }
}

/// `GET /`, and the version if the line ends within these bytes.
fn is_request(first: First<'_>) -> bool {
    let bytes = first.bytes;
    if !bytes.first().is_some_and(u8::is_ascii_uppercase) {
        return false;
    }
    let Some(method) = METHODS.into_iter().find(|method| bytes.starts_with(method.as_bytes())) else {
        return false;
    };
    let Some(rest) = bytes[method.len()..].strip_prefix(b" ") else { return false };
    if let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
        let text = rest[..end].strip_suffix(b"\r").unwrap_or(&rest[..end]);
        return ends_with_version(text) && is_text(text);
    }
    let target = [&b"/"[..], b"http://", b"https://"].into_iter().any(|start| rest.starts_with(start));
    target && is_text(rest.strip_suffix(b"\r").unwrap_or(rest))
}

fn is_status(bytes: &[u8]) -> bool {
    status_of(bytes).is_some()
}

/// 200 of `HTTP/1.1 200 OK`.
fn status_of(text: &[u8]) -> Option<u16> {
    let rest = text.strip_prefix(b"HTTP/1.")?;
    let [minor, b' ', a @ b'1'..=b'5', b, c, rest @ ..] = rest else { return None };
    let ends = rest.first().is_none_or(|byte| *byte <= b' ');
    let status = number(&[*a, *b, *c])?;
    (minor.is_ascii_digit() && ends).then_some(status as u16)
}

fn ends_with_version(text: &[u8]) -> bool {
    text.ends_with(b" HTTP/1.1") || text.ends_with(b" HTTP/1.0")
}
