//! Which framed Thrift reply belongs to which call? (Apache Thrift: framed transport, binary and compact protocol)

use crate::head::{Head, Role, Span};
use crate::talk::{First, FirstBytes, Out, Side, Step, Talk, is_text, u32_at};

/// maxFrameSize of the Java library is 16,384,000; others allow more.
const FRAME_LEN_MAX: u32 = 1 << 28;
const NAME_LEN_MAX: u32 = 128;
const COMPACT: u8 = 0x82;

/// What both sides have said so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Thrift {
    /// A call whose name has been read, but not the sequence identifier after it.
    named: [Option<Named>; 2],
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Named {
    kind: u8,
    /// Bytes of the frame before the identifier, and from there on.
    before: u32,
    left: u32,
}

impl Talk for Thrift {
    // The first byte of a length.
    const FIRST: FirstBytes = FirstBytes::NONE.and_range(0, (FRAME_LEN_MAX >> 24) as u8);

    fn fits(client: First<'_>, server: First<'_>) -> bool {
        let kind_of = |first| message(first).filter(|_| !first.is_empty());
        let asks = matches!(kind_of(client), Some(1 | 4));
        asks && (server.is_empty() || matches!(kind_of(server), Some(2 | 3)))
    }

    fn step(&mut self, side: Side, bytes: &[u8], out: &mut Out<'_>) -> Step {
        if let Some(named) = self.named[side as usize] {
            let Some(id) = u32_at(bytes, 0) else { return Step::Need };
            self.named[side as usize] = None;
            let len = u64::from(named.before) + u64::from(named.left);
            let at = out.at - u64::from(named.before);
            // The name ends where the identifier begins.
            let whole = out.carried.is_none().then_some(out.base);
            let begin = whole.and_then(|base| base.checked_sub(named.before as usize - 12));
            let name = begin.map(|begin| Span { start: begin as u32, end: out.base as u32 });
            let name = name.filter(|name| name.start < name.end);
            out.put_at(at, Head { id: Some(u64::from(id)), name, ..head(named.kind, len) });
            return Step::Skip(u64::from(named.left));
        }
        let Some(size) = u32_at(bytes, 0) else { return Step::Need };
        if !(8..=FRAME_LEN_MAX).contains(&size) {
            return Step::Wrong;
        }
        let len = u64::from(size) + 4;
        let Some(word) = u32_at(bytes, 4) else { return Step::Need };
        if word >> 24 == u32::from(COMPACT) {
            // Type and version share a byte; a varint follows.
            let kind = (word >> 21 & 7) as u8;
            let version = word >> 16 & 0x1f;
            let rest = &bytes[6..bytes.len().min(11)];
            let end = rest.iter().position(|byte| byte & 0x80 == 0);
            let Some(end) = end else { return if rest.len() < 5 { Step::Need } else { Step::Wrong } };
            let id = rest[..=end].iter().rev().fold(0, |id, byte| id << 7 | u64::from(byte & 0x7f));
            if version != 1 || !(1..=4).contains(&kind) {
                return Step::Wrong;
            }
            out.put(Head { id: Some(id & 0xffff_ffff), ..head(kind, len) });
            return Step::Skip(len);
        }
        let kind = word as u8;
        if word >> 8 != 0x80_0100 || !(1..=4).contains(&kind) {
            return Step::Wrong;
        }
        let Some(name_len) = u32_at(bytes, 8) else { return Step::Need };
        let before = 12 + u64::from(name_len);
        if name_len > NAME_LEN_MAX || before + 4 > len {
            return Step::Wrong;
        }
        let before = before as u32;
        self.named[side as usize] = Some(Named { kind, before, left: len as u32 - before });
        Step::Skip(u64::from(before))
    }

    fn begins(&self, _: Side, first: First<'_>, _: bool) -> bool {
        message(first).is_some()
    }

    fn lose(&mut self, side: Side) {
        self.named[side as usize] = None;
    }
}

const fn head(kind: u8, len: u64) -> Head {
    match kind {
        1 => Head::whole(Role::Asks, "call", len),
        2 => Head::whole(Role::Answers, "reply", len),
        3 => Head::whole(Role::Answers, "exception", len),
        _ => Head::whole(Role::Pushes, "one-way", len),
    }
}

/// The type of a named message, in a frame that agrees with the segment.
fn message(first: First<'_>) -> Option<u8> {
    let (size, word) = (u32_at(first.bytes, 0)?, u32_at(first.bytes, 4)?);
    let fits = (8..=FRAME_LEN_MAX).contains(&size) && u64::from(size) + 4 >= u64::from(first.len);
    let (kind, name_at, name_len) = if word >> 24 == u32::from(COMPACT) {
        let end = first.bytes.get(6..)?.iter().take(5).position(|byte| byte & 0x80 == 0)?;
        let name_len = u32::from(*first.bytes.get(7 + end)?);
        ((word >> 21 & 7) as u8, 8 + end, if word >> 16 & 0x1f == 1 { name_len } else { 0 })
    } else {
        (word as u8, 12, if word >> 8 == 0x80_0100 { u32_at(first.bytes, 8)? } else { 0 })
    };
    let name = first.bytes.get(name_at..).unwrap_or_default();
    let name = &name[..name.len().min(name_len as usize)];
    let named = (1..=NAME_LEN_MAX).contains(&name_len)
        && !name.is_empty()
        && is_text(name)
        && name[0].is_ascii_alphabetic();
    (fits && named && (1..=4).contains(&kind)).then_some(kind)
}
