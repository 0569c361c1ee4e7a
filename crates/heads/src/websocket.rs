//! Where does each WebSocket frame end? (RFC 6455, 5.2)
//!
//! Used after an HTTP/1 upgrade. If the capture begins later, a segment of each side is needed to
//! recognise it: whole frames of known kinds, masked by one side and not by the other. The protocol
//! has no requests, and nothing waits for a pong.

use crate::head::{Head, Role};
use crate::talk::{First, FirstBytes, Out, Side, Step, Talk, u16_at};

const FIN: u8 = 0x80;
const MASKED: u8 = 0x80;

/// Kinds of whole frames (text, binary, ping, pong), the first two also deflated (RFC 7692, 6).
const WHOLE: [u8; 6] = [0x81, 0x82, 0x89, 0x8a, 0xc1, 0xc2];
/// Maximum payload of control frames (RFC 6455, 5.5).
const CONTROL_MAX: u64 = 125;

/// Length of the frame that begins with these bytes, including its header, if known yet.
fn frame_len(bytes: &[u8], side: Side) -> Option<u64> {
    let (head_len, len) = match *bytes.get(1)? & !MASKED {
        126 => (4, u64::from(u16_at(bytes, 2)?)),
        127 => (10, u64::from_be_bytes(*bytes.get(2..)?.first_chunk()?)),
        len => (2, u64::from(len)),
    };
    Some(len.saturating_add(head_len + 4 * u64::from(side.is_client())))
}

/// Whether a segment is exactly one frame.
fn is_frame(first: First<'_>, side: Side) -> bool {
    let [begin, mask, ..] = *first.bytes else { return false };
    let control = begin & 0x8 != 0;
    let len = frame_len(first.bytes, side);
    WHOLE.contains(&begin)
        && (mask & MASKED != 0) == side.is_client()
        && len == Some(u64::from(first.len))
        && (!control || len.is_some_and(|len| len <= CONTROL_MAX + 6))
}

/// No state is needed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct WebSocket;

impl Talk for WebSocket {
    const FIRST: FirstBytes = FirstBytes::of(&WHOLE);

    fn fits(client: First<'_>, server: First<'_>) -> bool {
        is_frame(client, Side::Client) && is_frame(server, Side::Server)
    }

    fn step(&mut self, side: Side, bytes: &[u8], out: &mut Out<'_>) -> Step {
        let [begin, mask, ..] = *bytes else { return Step::Need };
        // A client masks what it sends, a server does not (RFC 6455, 5.1).
        if (mask & MASKED != 0) != side.is_client() {
            return Step::Wrong;
        }
        let Some(len) = frame_len(bytes, side) else { return Step::Need };
        let data = |kind| Head { first: true, ..Head::piece(Role::Unknown, kind) };
        let head = match begin & 0xf {
            0 => Head::piece(Role::Unknown, "continuation"),
            1 => data("text"),
            2 => data("binary"),
            8 => data("close"),
            9 => Head { first: true, ..Head::piece(Role::Neither, "ping") },
            10 => Head { first: true, ..Head::piece(Role::Neither, "pong") },
            _ => return Step::Wrong,
        };
        let role = if begin & 0xf == 8 { Role::Neither } else { head.role };
        out.put(Head { len: Some(len), last: begin & FIN != 0, role, ..head });
        Step::Skip(len)
    }

    fn begins(&self, _: Side, _: First<'_>, _: bool) -> bool {
        false
    }

    fn lose(&mut self, _: Side) {}
}
