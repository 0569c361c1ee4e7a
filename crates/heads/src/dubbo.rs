//! Which Dubbo response belongs to which request? (Apache Dubbo, Dubbo protocol: a header of 16 bytes)

use crate::head::{Head, Role};
use crate::talk::{First, FirstBytes, Out, Side, Step, Talk, u32_at};

const MAGIC: [u8; 2] = [0xda, 0xbb];
const HEAD_LEN: usize = 16;
const REQUEST: u8 = 0x80;
const TWO_WAY: u8 = 0x40;
const EVENT: u8 = 0x20;
/// A provider accepts a payload of 8 MB by default; some allow more.
const DATA_LEN_MAX: u32 = 1 << 28;

/// No state is needed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Dubbo;

impl Talk for Dubbo {
    const FIRST: FirstBytes = FirstBytes::of(&[MAGIC[0]]);

    fn fits(client: First<'_>, server: First<'_>) -> bool {
        let asks = is_message(client) && client.bytes[2] & REQUEST != 0;
        asks && (server.is_empty() || is_message(server))
    }

    fn step(&mut self, _: Side, bytes: &[u8], out: &mut Out<'_>) -> Step {
        let Some(header) = bytes.first_chunk::<HEAD_LEN>() else { return Step::Need };
        let data_len = u32_at(header, 12).unwrap_or(u32::MAX);
        if header[..2] != MAGIC || data_len > DATA_LEN_MAX {
            return Step::Wrong;
        }
        let flags = header[2];
        let (role, kind) = match (flags & REQUEST != 0, flags & TWO_WAY != 0) {
            _ if flags & EVENT != 0 => (Role::Neither, "heartbeat"),
            (true, true) => (Role::Asks, "request"),
            (true, false) => (Role::Pushes, "one-way"),
            (false, _) => (Role::Answers, "response"),
        };
        let id = header[4..].first_chunk().map(|id| u64::from_be_bytes(*id));
        let len = HEAD_LEN as u64 + u64::from(data_len);
        out.put(Head { id, ..Head::whole(role, kind, len) });
        Step::Skip(len)
    }

    fn begins(&self, _: Side, first: First<'_>, _: bool) -> bool {
        is_message(first)
    }

    fn lose(&mut self, _: Side) {}
}

/// The magic number, a known serialization, and no status in a request.
fn is_message(first: First<'_>) -> bool {
    let Some(header) = first.bytes.first_chunk::<HEAD_LEN>() else { return false };
    let serialization = header[2] & 0x1f;
    header[..2] == MAGIC
        && (2..=25).contains(&serialization)
        && (header[2] & REQUEST == 0 || header[3] == 0)
        && u32_at(header, 12)
            .is_some_and(|len| len <= DATA_LEN_MAX && u64::from(len) + 16 >= u64::from(first.len.min(16)))
}
