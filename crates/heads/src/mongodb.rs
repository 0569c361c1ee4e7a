//! Which MongoDB message answers which? (MongoDB Wire Protocol; OP_MSG, OP_COMPRESSED and the legacy OP_QUERY and OP_REPLY)

use crate::head::{Head, Role};
use crate::talk::{CARRY, First, FirstBytes, Out, Side, Step, Talk, u32_le};

const HEAD_LEN: usize = 16;
/// MaxMessageSizeBytes.
const MESSAGE_LEN_MAX: u32 = 48_000_000;

const OP_REPLY: u32 = 1;
const OP_QUERY: u32 = 2004;
const OP_COMPRESSED: u32 = 2012;
const OP_MSG: u32 = 2013;

const CHECKSUM_PRESENT: u32 = 1;
const MORE_TO_COME: u32 = 2;
const EXHAUST_ALLOWED: u32 = 1 << 16;

/// What both sides have said so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct MongoDb {
    /// The next reply continues this message of the server (exhaust), and belongs to that request.
    more: Option<(u32, u32)>,
    /// The client's latest request.
    latest: u32,
    /// Answers were missed: one that answers no known request may continue one of them.
    is_doubtful: bool,
}

impl Talk for MongoDb {
    // A length.
    const FIRST: FirstBytes = FirstBytes::ANY;

    fn fits(client: First<'_>, server: First<'_>) -> bool {
        let asks = is_message(client)
            && u32_le(client.bytes, 8) == Some(0)
            && u32_le(client.bytes, 12) != Some(OP_REPLY);
        let answers = is_message(server) && u32_le(server.bytes, 8) == u32_le(client.bytes, 4);
        asks && (server.is_empty() || answers)
    }

    fn step(&mut self, side: Side, bytes: &[u8], out: &mut Out<'_>) -> Step {
        let Some(len) = u32_le(bytes, 0) else { return Step::Need };
        if !(HEAD_LEN as u32..=MESSAGE_LEN_MAX).contains(&len) {
            return Step::Wrong;
        }
        if bytes.len() < (len as usize).min(HEAD_LEN + 4) {
            return Step::Need;
        }
        let word = |at| u32_le(bytes, at).unwrap_or(0);
        let (request, answered, code) = (word(4), word(8), word(12));
        let flags = if code == OP_MSG { word(HEAD_LEN) } else { 0 };
        let more = flags & MORE_TO_COME != 0;
        let kind = match code {
            OP_MSG => "OP_MSG",
            OP_COMPRESSED => "OP_COMPRESSED",
            OP_QUERY => "OP_QUERY",
            OP_REPLY => "OP_REPLY",
            2001 => "OP_UPDATE",
            2002 => "OP_INSERT",
            2005 => "OP_GET_MORE",
            2006 => "OP_DELETE",
            2007 => "OP_KILL_CURSORS",
            _ => return Step::Wrong,
        };
        let head = Head::whole(Role::Asks, kind, u64::from(len));
        let id = |id: u32| Some(u64::from(id));
        let head = match side {
            // The legacy writes are not answered, nor are those without a write concern (OP_MSG,
            // moreToCome).
            Side::Client if more || [2001, 2002, 2006, 2007].contains(&code) => {
                Head { role: Role::Pushes, ..head }
            }
            Side::Client => {
                self.latest = request;
                Head { id: id(request), name: name(code, bytes, out), ..head }
            }
            Side::Server => {
                self.is_doubtful &= answered != self.latest;
                if self.is_doubtful {
                    return Step::Skip(u64::from(len));
                }
                let asked = self.more.filter(|(last, _)| *last == answered).map(|(_, asked)| asked);
                let asker = asked.unwrap_or(answered);
                self.more = if more { Some((request, asker)) } else { self.more.filter(|_| asked.is_none()) };
                // Messages after the first answer of a stream were not requested individually.
                let role = if asked.is_some() { Role::Pushes } else { Role::Answers };
                Head { role, id: id(asker), ..head }
            }
        };
        out.put(head);
        Step::Skip(u64::from(len))
    }

    fn begins(&self, side: Side, first: First<'_>, _: bool) -> bool {
        is_message(first) && (!side.is_client() || u32_le(first.bytes, 8) == Some(0))
    }

    fn lose(&mut self, side: Side) {
        if !side.is_client() {
            (self.more, self.is_doubtful) = (None, true);
        }
    }
}

/// The command is the first element of the first document.
fn name(code: u32, bytes: &[u8], out: &Out<'_>) -> Option<crate::Span> {
    // Flags, section kind, document length, element type.
    let begin = HEAD_LEN + 4 + 1 + 4 + 1;
    if code != OP_MSG || bytes.get(HEAD_LEN + 4) != Some(&0) {
        return None;
    }
    let rest = bytes.get(begin..bytes.len().min(begin + CARRY))?;
    out.span(begin, begin + rest.iter().position(|byte| *byte == 0)?)
}

fn is_message(first: First<'_>) -> bool {
    let word = |at| u32_le(first.bytes, at);
    let (Some(len), Some(code)) = (word(0), word(12)) else { return false };
    let sound = match code {
        OP_MSG => word(HEAD_LEN).is_some_and(|flags| {
            // Followed by the kind of the first section.
            let kind = first.bytes.get(HEAD_LEN + 4).is_none_or(|kind| *kind <= 1);
            flags & !(CHECKSUM_PRESENT | MORE_TO_COME | EXHAUST_ALLOWED) == 0 && kind
        }),
        OP_COMPRESSED => word(HEAD_LEN) == Some(OP_MSG),
        OP_QUERY | OP_REPLY => true,
        _ => false,
    };
    sound
        && (HEAD_LEN as u32 + 4..=MESSAGE_LEN_MAX).contains(&len)
        && len >= first.len.min(HEAD_LEN as u32 + 5)
}
