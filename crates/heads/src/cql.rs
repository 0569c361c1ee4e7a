//! Which result of Cassandra belongs to which query? (Apache Cassandra, CQL binary protocol v3 to v5, 2)

use crate::head::{Head, Role};
use crate::talk::{First, FirstBytes, Out, Side, Step, Talk, is_text, u16_at, u32_at};

/// Version, flags, stream, opcode, length of the body.
const HEADER_LEN: u64 = 9;
const BODY_LEN_MAX: u32 = 256 << 20;
const RESPONSE: u8 = 0x80;
/// From this version on, both sides wrap frames in other frames once the session has begun (v5,
/// 2.3).
const FRAMED_FROM: u8 = 5;
const STARTUP: u8 = 0x01;
const OPTIONS: u8 = 0x05;
const READY: u8 = 0x02;
const AUTH_SUCCESS: u8 = 0x10;
const EVENT: u8 = 0x0c;

/// No state is needed: each frame says which request it answers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Cql;

impl Talk for Cql {
    const FIRST: FirstBytes = FirstBytes::of(&[3, 4, 5, 0x83, 0x84, 0x85]);

    fn fits(client: First<'_>, server: First<'_>) -> bool {
        begins_session(client)
            && is_frame(Side::Client, client)
            && (server.is_empty() || is_frame(Side::Server, server))
    }

    fn step(&mut self, side: Side, bytes: &[u8], out: &mut Out<'_>) -> Step {
        let (Some(&[version, _]), Some(stream), Some(&opcode), Some(size)) =
            (bytes.first_chunk(), u16_at(bytes, 2), bytes.get(4), u32_at(bytes, 5))
        else {
            return Step::Need;
        };
        let Some((kind, role)) = named(side, version, opcode).filter(|_| size <= BODY_LEN_MAX) else {
            return Step::Wrong;
        };
        let len = HEADER_LEN + u64::from(size);
        out.put(Head { id: Some(u64::from(stream)), ..Head::whole(role, kind, len) });
        if version & !RESPONSE >= FRAMED_FROM && matches!(opcode, READY | AUTH_SUCCESS) && !side.is_client() {
            return Step::Lose;
        }
        Step::Skip(len)
    }

    fn begins(&self, side: Side, first: First<'_>, _: bool) -> bool {
        is_frame(side, first)
    }

    fn lose(&mut self, _: Side) {}
}

/// An empty request for the server's options, or a session's options: their number, and the first
/// one's name.
fn begins_session(first: First<'_>) -> bool {
    match (first.bytes.get(4), u32_at(first.bytes, 5)) {
        (Some(&OPTIONS), Some(0)) => u64::from(first.len) == HEADER_LEN,
        (Some(&STARTUP), Some(size)) => {
            let options = u16_at(first.bytes, 9).zip(u16_at(first.bytes, 11));
            let name = first.bytes.get(13..16);
            u64::from(first.len) == HEADER_LEN + u64::from(size)
                && options.is_some_and(|(count, len)| (1..64).contains(&count) && (3..64).contains(&len))
                && name.is_some_and(is_text)
        }
        _ => false,
    }
}

/// A frame that the segment contains, or that begins there.
fn is_frame(side: Side, first: First<'_>) -> bool {
    let (Some(&version), Some(&opcode), Some(size)) =
        (first.bytes.first(), first.bytes.get(4), u32_at(first.bytes, 5))
    else {
        return false;
    };
    named(side, version, opcode).is_some()
        && size <= BODY_LEN_MAX
        && HEADER_LEN + u64::from(size) >= u64::from(first.len)
}

/// The opcodes of each side (v4, 2.4).
const fn named(side: Side, version: u8, opcode: u8) -> Option<(&'static str, Role)> {
    let is_response = version & RESPONSE != 0;
    if !matches!(version & !RESPONSE, 3..=5) || is_response == side.is_client() {
        return None;
    }
    Some(match (side, opcode) {
        (Side::Client, STARTUP) => ("STARTUP", Role::Asks),
        (Side::Client, OPTIONS) => ("OPTIONS", Role::Asks),
        (Side::Client, 0x07) => ("QUERY", Role::Asks),
        (Side::Client, 0x09) => ("PREPARE", Role::Asks),
        (Side::Client, 0x0a) => ("EXECUTE", Role::Asks),
        (Side::Client, 0x0b) => ("REGISTER", Role::Asks),
        (Side::Client, 0x0d) => ("BATCH", Role::Asks),
        (Side::Client, 0x0f) => ("AUTH_RESPONSE", Role::Asks),
        (Side::Server, 0x00) => ("ERROR", Role::Answers),
        (Side::Server, READY) => ("READY", Role::Answers),
        (Side::Server, 0x03) => ("AUTHENTICATE", Role::Answers),
        (Side::Server, 0x06) => ("SUPPORTED", Role::Answers),
        (Side::Server, 0x08) => ("RESULT", Role::Answers),
        (Side::Server, 0x0e) => ("AUTH_CHALLENGE", Role::Answers),
        (Side::Server, AUTH_SUCCESS) => ("AUTH_SUCCESS", Role::Answers),
        (Side::Server, EVENT) => ("EVENT", Role::Pushes),
        _ => return None,
    })
}
