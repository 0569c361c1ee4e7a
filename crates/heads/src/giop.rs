//! Which GIOP reply belongs to which request? (CORBA 3.0, 15.4) Either side may ask.

use crate::head::{Head, Role};
use crate::talk::{First, FirstBytes, Out, Side, Step, Talk, u32_at};

/// Magic, version, flags, type and size.
const HEADER_LEN: u32 = 12;
const MAGIC: &[u8] = b"GIOP";
/// Version 1.2, in which requests and replies begin with their identifier.
const NUMBERED: u8 = 2;
const LEN_MAX: u32 = 1 << 26;
/// In the flags: little-endian.
const LITTLE: u8 = 1;
/// ... and fragments follow.
const MORE: u8 = 2;
const REQUEST: u8 = 0;
const REPLY: u8 = 1;
const LOCATE_REQUEST: u8 = 3;
const LOCATE_REPLY: u8 = 4;
const FRAGMENT: u8 = 7;

/// The role of each side's fragmented message.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Giop {
    parts: [Option<Role>; 2],
}

impl Talk for Giop {
    const FIRST: FirstBytes = FirstBytes::of(b"G");

    fn fits(client: First<'_>, server: First<'_>) -> bool {
        let speaks =
            |first: First<'_>| first.is_empty() || read(first.bytes).is_some_and(Message::asks_or_answers);
        speaks(client) && speaks(server)
    }

    fn step(&mut self, side: Side, bytes: &[u8], out: &mut Out<'_>) -> Step {
        let Some(message) = read(bytes) else {
            return if bytes.len() < HEADER_LEN as usize { Step::Need } else { Step::Wrong };
        };
        let Some(id) = message.id(bytes) else { return Step::Need };
        let Some(role) = message.role(bytes) else { return Step::Need };
        let len = u64::from(message.len);
        let part = &mut self.parts[usize::from(!side.is_client())];
        let role = if message.kind == FRAGMENT { *part } else { Some(role) };
        // The message that it continues was not captured.
        let Some(role) = role else { return Step::Skip(len) };
        *part = message.more.then_some(role);
        let first = message.kind != FRAGMENT;
        let head = Head::whole(role, message.name(), len);
        out.put(Head { id, first, last: !message.more, ..head });
        Step::Skip(len)
    }

    fn begins(&self, _: Side, first: First<'_>, _: bool) -> bool {
        read(first.bytes).is_some()
    }

    fn lose(&mut self, side: Side) {
        self.parts[usize::from(!side.is_client())] = None;
    }
}

#[derive(Clone, Copy, Debug)]
struct Message {
    /// Including its header.
    len: u32,
    kind: u8,
    is_little: bool,
    is_numbered: bool,
    more: bool,
}

impl Message {
    /// The identifier that pairs it, if its version begins with it; `None` if more bytes are
    /// needed.
    #[expect(clippy::option_option, reason = "it may have none, and it may not be known yet")]
    fn id(self, bytes: &[u8]) -> Option<Option<u64>> {
        let has = self.is_numbered
            && matches!(self.kind, REQUEST | REPLY | LOCATE_REQUEST | LOCATE_REPLY | FRAGMENT);
        if !has || self.len < HEADER_LEN + 4 {
            return Some(None);
        }
        let id = u32_at(bytes, HEADER_LEN as usize)?;
        Some(Some(u64::from(if self.is_little { id.swap_bytes() } else { id })))
    }

    /// Its role, once enough bytes are there. A oneway call is marked after its identifier.
    fn role(self, bytes: &[u8]) -> Option<Role> {
        Some(match self.kind {
            REQUEST if self.is_numbered && self.len > HEADER_LEN + 4 => {
                let flags = *bytes.get(HEADER_LEN as usize + 4)?;
                if flags & 1 == 0 { Role::Pushes } else { Role::Asks }
            }
            REQUEST | LOCATE_REQUEST => Role::Asks,
            REPLY | LOCATE_REPLY => Role::Answers,
            _ => Role::Neither,
        })
    }

    const fn asks_or_answers(self) -> bool {
        matches!(self.kind, REQUEST | REPLY | LOCATE_REQUEST | LOCATE_REPLY)
    }

    const fn name(self) -> &'static str {
        match self.kind {
            REQUEST => "Request",
            REPLY => "Reply",
            2 => "CancelRequest",
            LOCATE_REQUEST => "LocateRequest",
            LOCATE_REPLY => "LocateReply",
            5 => "CloseConnection",
            6 => "MessageError",
            _ => "Fragment",
        }
    }
}

fn read(bytes: &[u8]) -> Option<Message> {
    let magic = bytes.get(..MAGIC.len())? == MAGIC;
    let &[major, minor, flags, kind] = bytes.get(MAGIC.len()..)?.first_chunk()?;
    let size = u32_at(bytes, 8)?;
    let is_little = flags & LITTLE != 0;
    let size = if is_little { size.swap_bytes() } else { size };
    let sound = magic && major == 1 && minor <= NUMBERED && flags <= (LITTLE | MORE) && kind <= FRAGMENT;
    let len = size.checked_add(HEADER_LEN).filter(|len| sound && *len <= LEN_MAX)?;
    Some(Message { len, kind, is_little, is_numbered: minor == NUMBERED, more: flags & MORE != 0 })
}
