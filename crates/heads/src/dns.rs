//! Which DNS message over TCP answers which? (RFC 1035, 4.1.1 and 4.2.2; RFC 7766)

use crate::head::{Head, Role};
use crate::talk::{First, FirstBytes, Out, Side, Step, Talk, u16_at};

/// Length, identifier, flags and four counts.
const HEAD_LEN: usize = 14;
const RESPONSE: u16 = 0x8000;
const OPCODE: u16 = 0x7800;
const ZERO: u16 = 0x0040;
const RCODE: u16 = 0x000f;

/// No state is needed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Dns;

impl Talk for Dns {
    // A length.
    const FIRST: FirstBytes = FirstBytes::ANY;

    fn fits(client: First<'_>, server: First<'_>) -> bool {
        let answers = is_message(server, true) && u16_at(server.bytes, 2) == u16_at(client.bytes, 2);
        is_message(client, false) && (server.is_empty() || answers)
    }

    fn step(&mut self, _: Side, bytes: &[u8], out: &mut Out<'_>) -> Step {
        let Some(len) = u16_at(bytes, 0) else { return Step::Need };
        if usize::from(len) + 2 < HEAD_LEN {
            return Step::Wrong;
        }
        let (Some(id), Some(flags)) = (u16_at(bytes, 2), u16_at(bytes, 4)) else { return Step::Need };
        let (role, kind) =
            if flags & RESPONSE == 0 { (Role::Asks, "query") } else { (Role::Answers, "response") };
        let len = u64::from(len) + 2;
        out.put(Head { id: Some(u64::from(id)), ..Head::whole(role, kind, len) });
        Step::Skip(len)
    }

    fn begins(&self, side: Side, first: First<'_>, _: bool) -> bool {
        is_message(first, !side.is_client())
    }

    fn lose(&mut self, _: Side) {}
}

/// One question, consistent counts and flags, and a length that agrees with the segment.
fn is_message(first: First<'_>, response: bool) -> bool {
    let word = |at| u16_at(first.bytes, at).unwrap_or(u16::MAX);
    if first.bytes.len() < HEAD_LEN + 1 {
        return false;
    }
    let (flags, answers) = (word(4), word(8));
    let label = first.bytes[HEAD_LEN];
    let is_sound = (flags & RESPONSE != 0) == response
        && flags & (OPCODE | ZERO) == 0
        && word(6) == 1
        && label < 64
        && word(10) <= 64
        && word(12) <= 64;
    let len = u32::from(word(0)) + 2;
    is_sound
        && if response {
            len >= first.len.min(16_000)
        } else {
            len == first.len && answers == 0 && flags & RCODE == 0 && word(10) == 0 && word(12) <= 2
        }
}
