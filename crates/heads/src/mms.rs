//! Which answer of a device belongs to which request of MMS, over ISO transport, session and presentation (ISO 9506-2, 7;
//! RFC 1006, 6; ISO 8327-1, 8.3; ISO 8823-1, 8.2)? IEC 61850 and ICCP (IEC 60870-6) speak it.
//!
//! Requests carry a number, their answers the same one, and either side may ask. Reports are unconfirmed.

use crate::head::{Head, Role};
use crate::talk::{First, FirstBytes, Out, Side, Step, Talk, u16_at};

/// TPKT: version 3, a zero, and a length that includes these four bytes.
const TPKT_LEN: usize = 4;
/// Of a data TPDU: its length, its type, and whether it ends a message.
const DATA_LEN: usize = 3;
const DATA: u8 = 0xf0;
const ENDS: u8 = 0x80;
const TRANSPORT_CONNECT: u8 = 0xe0;
const TRANSPORT_CONFIRM: u8 = 0xd0;
/// Offset of the session's part in a whole packet.
const SESSION: usize = TPKT_LEN + DATA_LEN;

/// Types of a session's messages; data begins with "give tokens", which has the same type.
const CONNECT: u8 = 13;
const ACCEPT: u8 = 14;
const REFUSE: u8 = 12;
const FINISH: u8 = 9;
const DISCONNECT: u8 = 10;
const ABORT: u8 = 25;
const TOKENS_AND_DATA: [u8; 4] = [1, 0, 1, 0];
/// The first parameter of a session's offer and acceptance: an item with the protocol's options and its version.
const OFFER: [u8; 3] = [5, 6, 19];

/// Presentation: a sequence of one value, its context, and the value.
const USER_DATA: u8 = 0x61;
const SEQUENCE: u8 = 0x30;
const INTEGER: u8 = 2;
const VALUE: u8 = 0xa0;

/// Of MMS, by the tag of a message.
const REQUEST: u8 = 0xa0;
const RESPONSE: u8 = 0xa1;
const ERROR: u8 = 0xa2;
const UNCONFIRMED: u8 = 0xa3;
const REJECT: u8 = 0xa4;

/// What both sides have said so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Mms {
    /// A message that continues in the next packet, for each side: its role and number.
    open: [Option<(Role, Option<u64>)>; 2],
}

impl Talk for Mms {
    const FIRST: FirstBytes = FirstBytes::of(b"\x03");

    fn fits(client: First<'_>, server: First<'_>) -> bool {
        match (direction(client), direction(server)) {
            (Some(Role::Asks), _) => server.is_empty() || is_framed(server),
            (_, Some(Role::Answers)) => client.is_empty() || is_framed(client),
            _ => false,
        }
    }

    fn step(&mut self, side: Side, bytes: &[u8], out: &mut Out<'_>) -> Step {
        let Some(&[version, zero]) = bytes.first_chunk() else { return Step::Need };
        let Some(len) = u16_at(bytes, 2) else { return Step::Need };
        if version != 3 || zero != 0 || usize::from(len) < SESSION {
            return Step::Wrong;
        }
        let Some(&[_, kind, flags]) = bytes.get(TPKT_LEN..).and_then(<[u8]>::first_chunk) else {
            return Step::Need;
        };
        let all = u64::from(len);
        let open = &mut self.open[side as usize];
        let head = match kind {
            DATA => {
                let ends = flags & ENDS != 0;
                if let Some((role, id)) = *open {
                    *open = open.filter(|_| !ends);
                    Head { id, len: Some(all), last: ends, ..Head::piece(role, "part") }
                } else {
                    let Some(what) = what(bytes, usize::from(len)) else { return Step::Need };
                    let Content::Message(role, id, name) = what else { return Step::Wrong };
                    *open = (!ends).then_some((role, id));
                    Head { id, last: ends, ..Head::whole(role, name, all) }
                }
            }
            TRANSPORT_CONNECT => Head::whole(Role::Asks, "connect", all),
            TRANSPORT_CONFIRM => Head::whole(Role::Answers, "confirm", all),
            _ => Head::whole(Role::Neither, "transport", all),
        };
        out.put(head);
        Step::Skip(all)
    }

    fn begins(&self, _: Side, first: First<'_>, _: bool) -> bool {
        is_framed(first) && direction(first).is_some()
    }

    fn lose(&mut self, side: Side) {
        self.open[side as usize] = None;
    }
}

/// What a packet holds.
enum Content {
    /// A message's role, number and name.
    Message(Role, Option<u64>, &'static str),
    /// Nothing of this protocol.
    Other,
}

/// What a packet of `len` bytes holds; `None` if that is still to come.
fn what(bytes: &[u8], len: usize) -> Option<Content> {
    if len == SESSION {
        return Some(Content::Message(Role::Neither, None, "acknowledgement"));
    }
    let plain = |role, name| Some(Content::Message(role, None, name));
    match *bytes.get(SESSION)? {
        CONNECT => plain(Role::Asks, "initiate"),
        ACCEPT => plain(Role::Answers, "initiated"),
        REFUSE => plain(Role::Answers, "refusal"),
        FINISH => plain(Role::Asks, "finish"),
        DISCONNECT => plain(Role::Answers, "disconnect"),
        ABORT => plain(Role::Neither, "abort"),
        _ => {
            let session = bytes.get(SESSION..)?.first_chunk()?;
            if *session != TOKENS_AND_DATA {
                return Some(Content::Other);
            }
            data(bytes.get(SESSION + TOKENS_AND_DATA.len()..)?)
        }
    }
}

/// The message in the value of a presentation's user data, likewise.
fn data(bytes: &[u8]) -> Option<Content> {
    let mut at = 0;
    // The context's number has one byte, which follows its length.
    for (tag, content) in [(USER_DATA, 0), (SEQUENCE, 0), (INTEGER, 1), (VALUE, 0)] {
        let &[found, first] = bytes.get(at..)?.first_chunk()?;
        let Some(long) = length_of_length(first).filter(|_| found == tag) else {
            return Some(Content::Other);
        };
        at += 1 + long + content;
    }
    let tag = *bytes.get(at)?;
    at += 1;
    let unnumbered = |role, name| Some(Content::Message(role, None, name));
    let (role, name) = match tag {
        REQUEST => (Role::Asks, "request"),
        RESPONSE => (Role::Answers, "response"),
        ERROR => (Role::Answers, "error"),
        REJECT => return unnumbered(Role::Answers, "reject"),
        UNCONFIRMED => return unnumbered(Role::Pushes, "report"),
        0xa5 | 0x85 => return unnumbered(Role::Asks, "cancel"),
        0xa6 | 0xa7 | 0x86 => return unnumbered(Role::Answers, "cancelled"),
        0xa8 => return unnumbered(Role::Asks, "initiate"),
        0xa9 | 0xaa => return unnumbered(Role::Answers, "initiated"),
        0x8b | 0xab => return unnumbered(Role::Asks, "conclude"),
        0x8c | 0xac | 0xad => return unnumbered(Role::Answers, "concluded"),
        _ => return Some(Content::Other),
    };
    let Some(long) = length_of_length(*bytes.get(at)?) else { return Some(Content::Other) };
    at += long;
    // An error may name its number as a tagged value.
    if !matches!(*bytes.get(at)?, INTEGER | 0x80) {
        return Some(Content::Other);
    }
    let digits = usize::from(*bytes.get(at + 1)?);
    if !(1..=5).contains(&digits) {
        return Some(Content::Other);
    }
    let digits = bytes.get(at + 2..at + 2 + digits)?;
    let id = digits.iter().fold(0, |id, digit| id << 8 | u64::from(*digit));
    Some(Content::Message(role, Some(id), name))
}

/// How many bytes a length takes that begins so (X.690, 8.1.3); none is longer in a packet.
fn length_of_length(first: u8) -> Option<usize> {
    match first {
        0..=0x7f => Some(1),
        0x81 | 0x82 => Some(usize::from(first & 0x7f) + 1),
        _ => None,
    }
}

/// A whole packet of ISO transport that fits into the segment, or the first part of one in more.
fn is_framed(first: First<'_>) -> bool {
    let len = u16_at(first.bytes, 2).map_or(0, u32::from);
    first.bytes.starts_with(b"\x03\0") && len >= SESSION as u32
}

/// Whether it begins with a session's offer, a request, or an answer to either.
fn direction(first: First<'_>) -> Option<Role> {
    let len = usize::from(u16_at(first.bytes, 2)?);
    if !is_framed(first) || *first.bytes.get(TPKT_LEN)? != 2 || *first.bytes.get(TPKT_LEN + 1)? != DATA {
        return None;
    }
    let offers = first.bytes.get(SESSION + 2..).is_some_and(|offer| offer.starts_with(&OFFER));
    match *first.bytes.get(SESSION)? {
        CONNECT => offers.then_some(Role::Asks),
        ACCEPT => offers.then_some(Role::Answers),
        1 => match what(first.bytes, len)? {
            Content::Message(role, ..) => Some(role),
            Content::Other => None,
        },
        _ => None,
    }
}
