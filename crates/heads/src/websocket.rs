//! Where does each WebSocket frame end? (RFC 6455, 5.2)
//!
//! Spoken behind an HTTP/1 upgrade, never recognised by itself: two bytes of head prove nothing. The protocol knows no questions; a
//! ping's pong is nobody's wait.

use crate::head::{Head, Role};
use crate::talk::{First, Out, Side, Step, Talk, u16_at};

const FIN: u8 = 0x80;
const MASKED: u8 = 0x80;

/// Nothing has to be remembered.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct WebSocket;

impl Talk for WebSocket {
    fn fits(_: First<'_>, _: First<'_>) -> bool {
        false
    }

    fn step(&mut self, side: Side, bytes: &[u8], out: &mut Out<'_>) -> Step {
        let [begin, len, ..] = *bytes else { return Step::Need };
        // A client masks what it sends, a server does not (RFC 6455, 5.1).
        if (len & MASKED != 0) != side.is_client() {
            return Step::Wrong;
        }
        let (head_len, len) = match len & !MASKED {
            126 => (4, u16_at(bytes, 2).map(u64::from)),
            127 => {
                (10, bytes.get(2..).and_then(|rest| rest.first_chunk()).map(|len| u64::from_be_bytes(*len)))
            }
            len => (2, Some(u64::from(len))),
        };
        let Some(len) = len else { return Step::Need };
        let len = len.saturating_add(head_len + 4 * u64::from(side.is_client()));
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
