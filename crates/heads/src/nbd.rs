//! Which reply of a network block device belongs to which request, and how long is it? (NBD
//! protocol, proto.md: "Fixed newstyle negotiation", "Request message", "Simple reply message",
//! "Structured reply chunk message", "Extended ...")

use crate::head::{Head, Role};
use crate::talk::{First, FirstBytes, Out, Side, Step, Talk, Turn, u16_at, u32_at};

const GREETING: u32 = u32::from_be_bytes(*b"NBDM");
/// "IHAVEOPT", which follows the greeting's first word and precedes each option.
const OPTION: u32 = u32::from_be_bytes(*b"IHAV");
const OPTION_REPLY: u32 = 0x0003_e889;
const OPTION_REPLY_REST: u32 = 0x0455_65a9;
const REQUEST: u32 = 0x2560_9513;
const EXTENDED_REQUEST: u32 = 0x21e4_1c71;
const SIMPLE_REPLY: u32 = 0x6744_6698;
const STRUCTURED_REPLY: u32 = 0x668e_33ef;
const EXTENDED_REPLY: u32 = 0x6e8a_278c;

const GREETING_LEN: u64 = 18;
/// The oldstyle greeting: with the export's size, and zeros.
const OLD_GREETING_LEN: u64 = 152;
const FLAGS_LEN: u64 = 4;
const INFO_LEN: u64 = 10;
const ZEROES_LEN: u64 = 124;
/// The client's flag that leaves out the zeros.
const NO_ZEROES: u32 = 2;
const EXPORT_NAME: u32 = 1;
const START_TLS: u32 = 5;
const ACK: u32 = 1;
/// In the type of an option's reply: an error.
const ERROR: u32 = 1 << 31;
const READ: u16 = 0;
const WRITE: u16 = 1;
const DISCONNECT: u16 = 2;
/// The last chunk of a reply.
const DONE: u16 = 1;
const DATA_LEN_MAX: u32 = 64 << 20;
/// NBD_CMD_FLAG_PAYLOAD_LEN.
const PAYLOAD: u16 = 1 << 5;
/// Requests under way that are kept; for a reply to another one, neither its length nor whether it
/// is the first chunk is known.
const OPEN_MAX: usize = 16;

/// What both sides have said so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Nbd {
    /// The folded identifier of a request, and the length of data in its simple reply.
    open: [(u32, u32); OPEN_MAX],
    /// Which entries are in use, and for which a reply has begun.
    taken: u16,
    begun: u16,
    /// The next message is an export's size, followed by zeros or not.
    informs: bool,
    no_zeroes: bool,
}

impl Talk for Nbd {
    const FIRST: FirstBytes = FirstBytes::of(&[0x4e, 0x25, 0x21, 0x67, 0x66, 0x6e]);

    fn fits(client: First<'_>, server: First<'_>) -> bool {
        let greets = is_greeting(server);
        let asks = is_request(client.bytes);
        let begun = client.is_empty() || u32_at(client.bytes, 0).is_some_and(|flags| flags >> 8 == 0) || asks;
        // In the middle of a connection.
        let answers = server.is_empty() || is_reply(server.bytes);
        greets && begun || asks && answers || client.is_empty() && is_reply(server.bytes)
    }

    fn step(&mut self, side: Side, bytes: &[u8], out: &mut Out<'_>) -> Step {
        let step = if side.is_client() { self.ask(bytes, out) } else { self.answer(bytes, out) };
        step.unwrap_or(Step::Need)
    }

    fn begins(&self, side: Side, first: First<'_>, _: bool) -> bool {
        if side.is_client() { is_request(first.bytes) } else { is_reply(first.bytes) }
    }

    fn lose(&mut self, side: Side) {
        // Requests that seem unanswered may have been answered, and their identifiers reused.
        if !side.is_client() {
            (self.taken, self.begun, self.informs) = (0, 0, false);
        }
    }
}

impl Nbd {
    fn ask(&mut self, bytes: &[u8], out: &mut Out<'_>) -> Option<Step> {
        let magic = u32_at(bytes, 0)?;
        let head = match magic {
            OPTION => {
                let (option, len) = (u32_at(bytes, 8)?, u32_at(bytes, 12)?);
                if len > DATA_LEN_MAX {
                    return Some(Step::Wrong);
                }
                self.informs |= option == EXPORT_NAME;
                let len = u64::from(len) + 16;
                Head { id: Some(u64::from(option)), ..Head::whole(Role::Asks, "option", len) }
            }
            REQUEST | EXTENDED_REQUEST => {
                let (kind, id) = (u16_at(bytes, 6)?, number(bytes, 8)?);
                let (header, len) = match magic {
                    REQUEST => (28, u32_at(bytes, 24)?),
                    _ => (32, u32::try_from(number(bytes, 24)?).unwrap_or(u32::MAX)),
                };
                let Some((name, role)) = named(kind) else { return Some(Step::Wrong) };
                // With extended headers, a flag says whether a command has a payload.
                let sent = kind == WRITE || magic == EXTENDED_REQUEST && u16_at(bytes, 4)? & PAYLOAD != 0;
                if sent && len > DATA_LEN_MAX {
                    return Some(Step::Wrong);
                }
                let data = |comes: bool| if comes { len } else { 0 };
                self.keep(id, data(kind == READ));
                let len = header + u64::from(data(sent));
                Head { id: Some(id), ..Head::whole(role, name, len) }
            }
            flags if out.at == 0 && flags >> 8 == 0 => {
                self.no_zeroes = flags & NO_ZEROES != 0;
                Head::whole(Role::Neither, "flags", FLAGS_LEN)
            }
            _ => return Some(Step::Wrong),
        };
        out.put(head);
        Some(Step::Skip(head.len.unwrap_or(FLAGS_LEN)))
    }

    fn answer(&mut self, bytes: &[u8], out: &mut Out<'_>) -> Option<Step> {
        let head = match u32_at(bytes, 0)? {
            GREETING if out.at == 0 => {
                let len = if u32_at(bytes, 8)? == OPTION { GREETING_LEN } else { OLD_GREETING_LEN };
                Head::whole(Role::Answers, "greeting", len)
            }
            OPTION_REPLY if u32_at(bytes, 4)? == OPTION_REPLY_REST => {
                let (option, kind, len) = (u32_at(bytes, 8)?, u32_at(bytes, 12)?, u32_at(bytes, 16)?);
                if len > DATA_LEN_MAX {
                    return Some(Step::Wrong);
                }
                if option == START_TLS && kind == ACK {
                    out.turn = Some(Turn::Into(crate::Protocol::Tls));
                }
                let (id, last) = (Some(u64::from(option)), kind == ACK || kind & ERROR != 0);
                let name = if kind & ERROR == 0 { "option reply" } else { "error" };
                Head { id, last, ..Head::whole(Role::Answers, name, u64::from(len) + 20) }
            }
            SIMPLE_REPLY => {
                let (error, id) = (u32_at(bytes, 4)?, number(bytes, 8)?);
                let known = self.take(id);
                let Some(data) = (if error == 0 { known } else { Some(0) }) else { return Some(Step::Lose) };
                let name = if error == 0 { "reply" } else { "error" };
                Head { id: Some(id), ..Head::whole(Role::Answers, name, u64::from(data) + 16) }
            }
            magic @ (STRUCTURED_REPLY | EXTENDED_REPLY) => {
                let (flags, kind, id) = (u16_at(bytes, 4)?, u16_at(bytes, 6)?, number(bytes, 8)?);
                let (header, len) = match magic {
                    STRUCTURED_REPLY => (20, u64::from(u32_at(bytes, 16)?)),
                    _ => (32, number(bytes, 24)?),
                };
                if len > u64::from(DATA_LEN_MAX) + 8 {
                    return Some(Step::Wrong);
                }
                let last = flags & DONE != 0;
                let first = self.place(id).is_some_and(|place| self.begun & 1 << place == 0);
                if last {
                    self.take(id);
                } else if let Some(place) = self.place(id) {
                    self.begun |= 1 << place;
                }
                let name = if kind >> 15 == 0 { "chunk" } else { "error" };
                Head { id: Some(id), first, last, ..Head::whole(Role::Answers, name, header + len) }
            }
            _ if self.informs => {
                self.informs = false;
                let len = if self.no_zeroes { INFO_LEN } else { INFO_LEN + ZEROES_LEN };
                Head { id: Some(u64::from(EXPORT_NAME)), ..Head::whole(Role::Answers, "export", len) }
            }
            _ => return Some(Step::Wrong),
        };
        out.put(head);
        Some(Step::Skip(head.len.unwrap_or(INFO_LEN)))
    }

    /// Keeps a request, if there is room.
    fn keep(&mut self, id: u64, len: u32) {
        let place = self.taken.trailing_ones() as usize;
        if place < OPEN_MAX {
            self.open[place] = (folded(id), len);
            self.taken |= 1 << place;
            self.begun &= !(1 << place);
        }
    }

    fn place(&self, id: u64) -> Option<usize> {
        (0..OPEN_MAX).find(|place| self.taken & 1 << place != 0 && self.open[*place].0 == folded(id))
    }

    fn take(&mut self, id: u64) -> Option<u32> {
        let place = self.place(id)?;
        self.taken &= !(1 << place);
        Some(self.open[place].1)
    }
}

/// Clients count identifiers, or use a queue's number and index for the two halves.
const fn folded(id: u64) -> u32 {
    ((id >> 32) as u32).rotate_left(16) ^ id as u32
}

fn number(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from(u32_at(bytes, at)?) << 32 | u64::from(u32_at(bytes, at + 4)?))
}

fn is_greeting(first: First<'_>) -> bool {
    first.bytes.starts_with(b"NBDMAGIC")
}

fn is_request(bytes: &[u8]) -> bool {
    matches!(u32_at(bytes, 0), Some(REQUEST | EXTENDED_REQUEST))
        && u16_at(bytes, 6).is_some_and(|kind| named(kind).is_some())
}

fn is_reply(bytes: &[u8]) -> bool {
    matches!(u32_at(bytes, 0), Some(SIMPLE_REPLY | STRUCTURED_REPLY | EXTENDED_REPLY))
}

const fn named(kind: u16) -> Option<(&'static str, Role)> {
    Some(match kind {
        READ => ("read", Role::Asks),
        WRITE => ("write", Role::Asks),
        DISCONNECT => ("disconnect", Role::Neither),
        3 => ("flush", Role::Asks),
        4 => ("trim", Role::Asks),
        5 => ("cache", Role::Asks),
        6 => ("write zeroes", Role::Asks),
        7 => ("block status", Role::Asks),
        8 => ("resize", Role::Asks),
        _ => return None,
    })
}
