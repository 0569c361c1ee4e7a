//! Which stream does each HTTP/2 frame belong to, and does it end the stream? (RFC 9113; the
//! transport of gRPC)
//!
//! Every frame is reported: those of a call with their stream as identifier, those of flow control
//! with their credit. Header blocks are not decoded; their first byte shows whether they begin with
//! the status (RFC 7541, appendix A).

use crate::head::{Credit, Head, Role};
use crate::talk::{CARRY, First, FirstBytes, Out, Side, Step, Talk, u32_at};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const FRAME_HEAD_LEN: usize = 9;
/// Longer frames must be allowed by SETTINGS_MAX_FRAME_SIZE; more than a megabyte is hardly ever
/// allowed.
const FRAME_LEN_MAX: u32 = 1 << 20;

/// Frame types (RFC 9113, 6).
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PUSH_PROMISE: u8 = 5;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;

const END_STREAM: u8 = 0x1;
const ACK: u8 = 0x1;
const END_HEADERS: u8 = 0x4;
const PADDED: u8 = 0x8;
const PRIORITY: u8 = 0x20;

const SETTINGS_INITIAL_WINDOW_SIZE: u16 = 4;

/// What both sides have said so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Http2 {
    /// The client's latest stream.
    opened: u32,
    /// Whether the current header block ends its stream.
    ending: [bool; 2],
    /// The stream of each side's latest frame; 0 if that frame ended it.
    latest: [u32; 2],
}

/// The nine bytes before each frame.
#[derive(Clone, Copy, Debug)]
struct Frame {
    len: u32,
    kind: u8,
    flags: u8,
    stream: u32,
}

impl Frame {
    fn read(bytes: &[u8]) -> Option<Self> {
        let head: &[u8; FRAME_HEAD_LEN] = bytes.first_chunk()?;
        let len = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let stream = u32::from_be_bytes([head[5] & 0x7f, head[6], head[7], head[8]]);
        Some(Self { len, kind: head[3], flags: head[4], stream })
    }

    const fn has(self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Whether type, length and stream agree (RFC 9113, 6.1 to 6.10).
    fn is_sound(self) -> bool {
        let of_a_stream = self.stream != 0;
        self.len <= FRAME_LEN_MAX
            && match self.kind {
                DATA | HEADERS | CONTINUATION => of_a_stream,
                2 => of_a_stream && self.len == 5,
                RST_STREAM => of_a_stream && self.len == 4,
                SETTINGS => !of_a_stream && self.len.is_multiple_of(6),
                PUSH_PROMISE => of_a_stream && self.len >= 4,
                6 => !of_a_stream && self.len == 8,
                7 => !of_a_stream && self.len >= 8,
                WINDOW_UPDATE => self.len == 4,
                _ => true,
            }
    }
}

impl Talk for Http2 {
    const FIRST: FirstBytes = FirstBytes::of(b"P");

    fn fits(client: First<'_>, server: First<'_>) -> bool {
        let sound = |first: First<'_>| is_frame(first.bytes, Some(SETTINGS));
        client.bytes.starts_with(PREFACE) && (server.is_empty() || sound(server))
    }

    fn step(&mut self, side: Side, bytes: &[u8], out: &mut Out<'_>) -> Step {
        if side.is_client() && bytes[0] == PREFACE[0] {
            let len = bytes.len().min(PREFACE.len());
            if bytes[..len] != PREFACE[..len] {
                return Step::Wrong;
            }
            if len < PREFACE.len() {
                return Step::Need;
            }
            out.put(Head::whole(Role::Neither, "preface", len as u64));
            return Step::Skip(len as u64);
        }
        let Some(frame) = Frame::read(bytes) else { return Step::Need };
        if !frame.is_sound() {
            return Step::Wrong;
        }
        let len = u64::from(frame.len) + FRAME_HEAD_LEN as u64;
        // Only the beginning of the payload matters.
        let needed = len.min(CARRY as u64) as usize;
        if bytes.len() < needed && [HEADERS, SETTINGS, PUSH_PROMISE, WINDOW_UPDATE].contains(&frame.kind) {
            return Step::Need;
        }
        let head = self.head(side, frame, &bytes[FRAME_HEAD_LEN..needed.min(bytes.len())]);
        out.put(Head { len: Some(len), ..head });
        Step::Skip(len)
    }

    fn begins(&self, side: Side, first: First<'_>, _: bool) -> bool {
        // Streams are opened in order (RFC 9113, 5.1.1): distant numbers are not streams.
        let near = Frame::read(first.bytes).is_some_and(|frame| {
            frame.kind <= CONTINUATION
                && frame.stream <= self.opened.saturating_add(1 << 12)
                && (frame.stream % 2 == 1 || frame.stream == 0)
        });
        near && is_frame(first.bytes, None) && (side.is_client() || self.opened > 0)
    }

    fn lose(&mut self, side: Side) {
        self.ending[side as usize] = false;
    }

    fn cut(&self, side: Side) -> Option<Head> {
        let stream = self.latest[side as usize];
        Some(Head { id: (stream > 0).then_some(u64::from(stream)), ..Head::piece(Role::Cut, "cut") })
    }
}

impl Http2 {
    fn head(&mut self, side: Side, frame: Frame, payload: &[u8]) -> Head {
        let role = match side {
            Side::Client => Role::Asks,
            Side::Server if frame.stream.is_multiple_of(2) => Role::Pushes,
            Side::Server => Role::Answers,
        };
        let mut ends = frame.has(END_STREAM);
        let mut head = match frame.kind {
            DATA => Head { credit: Some(Credit::Uses(frame.len)), ..Head::piece(role, "DATA") },
            HEADERS => {
                let ending = std::mem::replace(&mut self.ending[side as usize], false);
                if !frame.has(END_HEADERS) {
                    self.ending[side as usize] = ends || ending;
                    ends = false;
                }
                self.headers(side, frame, payload, role)
            }
            CONTINUATION => {
                ends = frame.has(END_HEADERS) && self.ending[side as usize];
                self.ending[side as usize] &= !ends;
                Head::piece(role, "CONTINUATION")
            }
            PUSH_PROMISE => {
                let promised = u32_at(payload, usize::from(frame.has(PADDED))).unwrap_or(0) & 0x7fff_ffff;
                let id = Some(u64::from(promised));
                return Head { first: true, id, ..Head::piece(Role::Pushes, "PUSH_PROMISE") };
            }
            WINDOW_UPDATE => {
                let credit = u32_at(payload, 0).map(|more| Credit::Grants(more & 0x7fff_ffff));
                Head { credit, ..Head::piece(Role::Neither, "WINDOW_UPDATE") }
            }
            SETTINGS if !frame.has(ACK) => {
                Head { credit: initial_window(payload), ..Head::piece(Role::Neither, "SETTINGS") }
            }
            kind => {
                // A reset from either side ends its stream.
                ends = kind == RST_STREAM;
                Head::piece(Role::Neither, name_of(kind))
            }
        };
        let of_a_call = [DATA, HEADERS, CONTINUATION, RST_STREAM].contains(&frame.kind);
        // An interim answer is a separate message.
        head.last = of_a_call && (ends || head.role == Role::Interim && frame.has(END_HEADERS));
        head.id = Some(u64::from(frame.stream));
        self.latest[side as usize] = if head.last { 0 } else { frame.stream };
        head
    }

    fn headers(&mut self, side: Side, frame: Frame, payload: &[u8], role: Role) -> Head {
        let piece = Head::piece(role, "HEADERS");
        if side.is_client() {
            let first = frame.stream > self.opened;
            self.opened = self.opened.max(frame.stream);
            return Head { first, ..piece };
        }
        let begin = usize::from(frame.has(PADDED)) + 5 * usize::from(frame.has(PRIORITY));
        match status(payload.get(begin..).unwrap_or_default()) {
            Status::Final => Head { first: true, ..piece },
            Status::Interim => Head { first: true, ..Head::piece(Role::Interim, "HEADERS") },
            // Trailers end their stream (RFC 9113, 8.1).
            Status::Unknown => Head { first: !frame.has(END_STREAM), ..piece },
            Status::None => piece,
        }
    }
}

/// The beginning of a server's header block.
enum Status {
    Interim,
    Final,
    /// An entry of the dynamic table.
    Unknown,
    /// Another field: the block is trailers.
    None,
}

/// The status precedes all fields (RFC 9113, 8.3): indexes 8 to 14 of the static table (RFC 7541,
/// appendix A).
fn status(block: &[u8]) -> Status {
    // A dynamic table size update may precede it (RFC 7541, 6.3).
    let size = block.iter().take(2).take_while(|byte| **byte & 0xe0 == 0x20).count();
    match block.get(size..).unwrap_or_default() {
        [0x88..=0x8e, ..] => Status::Final,
        [0xbe..=0xff, ..] => Status::Unknown,
        // A literal value: raw, or in Huffman code, in which 1 is 00001 (RFC 7541, appendix B).
        [0x08..=0x0e | 0x18..=0x1e | 0x48..=0x4e, len, digit, ..] => {
            let one = if len & 0x80 == 0 { *digit == b'1' } else { digit >> 3 == 1 };
            if one { Status::Interim } else { Status::Final }
        }
        _ => Status::None,
    }
}

fn initial_window(payload: &[u8]) -> Option<Credit> {
    let of_windows =
        |entry: &&[u8; 6]| u16::from_be_bytes([entry[0], entry[1]]) == SETTINGS_INITIAL_WINDOW_SIZE;
    let entry = payload.as_chunks().0.iter().rev().find(of_windows)?;
    u32_at(entry, 2).map(Credit::Initial)
}

const fn name_of(kind: u8) -> &'static str {
    match kind {
        2 => "PRIORITY",
        RST_STREAM => "RST_STREAM",
        SETTINGS => "SETTINGS",
        6 => "PING",
        7 => "GOAWAY",
        _ => "extension",
    }
}

/// A consistent frame, of this type if given.
fn is_frame(bytes: &[u8], kind: Option<u8>) -> bool {
    let fits = |frame: Frame| {
        // Flags that are undefined for a type must not be set (RFC 9113, 4.1).
        let flags = match frame.kind {
            DATA => END_STREAM | PADDED,
            HEADERS => END_STREAM | END_HEADERS | PADDED | PRIORITY,
            SETTINGS | 6 => ACK,
            PUSH_PROMISE => END_HEADERS | PADDED,
            CONTINUATION => END_HEADERS,
            _ => 0,
        };
        frame.is_sound() && frame.flags & !flags == 0 && kind.is_none_or(|kind| kind == frame.kind)
    };
    bytes.get(5).is_some_and(|byte| byte & 0x80 == 0) && Frame::read(bytes).is_some_and(fits)
}
