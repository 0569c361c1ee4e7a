//! Which answer of a controller belongs to which job (S7 communication over ISO transport)? (RFC
//! 1006, 6; RFC 905, 13; the S7 header has no public specification and was derived from the
//! messages of Siemens' own programs and controllers, and so was that of newer ones (S7comm-plus).)

use crate::head::{Head, Role};
use crate::talk::{First, FirstBytes, Out, Side, Step, Talk, u16_at};

/// TPKT: version 3, a zero, and a length that includes these four bytes.
const TPKT_LEN: usize = 4;
/// Of a data TPDU: its length, its type, and whether it ends a message.
const DATA_LEN: usize = 3;
const DATA: u8 = 0xf0;
const ENDS: u8 = 0x80;
const CONNECT: u8 = 0xe0;
const CONFIRM: u8 = 0xd0;
/// Protocol identifier, type, two reserved bytes, reference, and two lengths.
const HEADER_LEN: usize = 10;
const MAGIC: u8 = 0x32;
const JOB: u8 = 1;
const ACK: u8 = 2;
const ACK_DATA: u8 = 3;
const USERDATA: u8 = 7;
/// Offsets of the S7 header and of its parameters in a whole packet.
const S7: usize = TPKT_LEN + DATA_LEN;
const PARAMETERS: usize = S7 + HEADER_LEN;
/// ... and of the direction in the parameters of user data.
const GROUP: usize = PARAMETERS + 5;

/// Newer controllers: version, and length of the data after this header; the last packet of a
/// message has a trailer of the same length.
const PLUS: u8 = 0x72;
const PLUS_LEN: usize = 4;
/// After that: opcode and number. In version 3 a digest comes first, longer than what is kept of a
/// head that arrives in pieces.
const OPCODE: usize = S7 + PLUS_LEN;
const NUMBER: usize = OPCODE + 7;
const DIGESTED: u8 = 3;
const REQUEST: u8 = 0x31;
const RESPONSE: u8 = 0x32;
const RESPONSE_2: u8 = 0x02;
const NOTIFICATION: u8 = 0x33;

/// What both sides have said so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct S7Comm {
    /// A message that continues in the next packet, for each side: its reference, its kind, and
    /// whether it is a newer controller's.
    open: [Option<(u16, u8, bool)>; 2],
}

impl Talk for S7Comm {
    const FIRST: FirstBytes = FirstBytes::of(b"\x03");

    fn fits(client: First<'_>, server: First<'_>) -> bool {
        let (asked, answered) = (direction(client), direction(server));
        match (asked, answered) {
            (Some(Role::Asks), _) => server.is_empty() || is_framed(server),
            (_, Some(Role::Answers)) => client.is_empty() || is_framed(client),
            _ => false,
        }
    }

    fn step(&mut self, side: Side, bytes: &[u8], out: &mut Out<'_>) -> Step {
        let Some(&[version, zero]) = bytes.first_chunk() else { return Step::Need };
        let Some(len) = u16_at(bytes, 2) else { return Step::Need };
        if version != 3 || zero != 0 || usize::from(len) < S7 {
            return Step::Wrong;
        }
        let (Some(&kind), Some(&flags)) = (bytes.get(TPKT_LEN + 1), bytes.get(TPKT_LEN + 2)) else {
            return Step::Need;
        };
        let all = u64::from(len);
        match kind {
            DATA if usize::from(len) == S7 => out.put(Head::whole(Role::Neither, "acknowledgement", all)),
            DATA => return self.data(side, bytes, (all, flags & ENDS != 0), out),
            CONNECT => out.put(Head::whole(Role::Asks, "connect", all)),
            CONFIRM => out.put(Head::whole(Role::Answers, "confirm", all)),
            _ => out.put(Head::whole(Role::Neither, "transport", all)),
        }
        Step::Skip(all)
    }

    fn begins(&self, _: Side, first: First<'_>, _: bool) -> bool {
        is_framed(first) && (direction(first).is_some() || is_acknowledgement(first))
    }

    fn lose(&mut self, side: Side) {
        self.open[side as usize] = None;
    }
}

impl S7Comm {
    /// A packet with data, which `ends` its message or continues in the next.
    fn data(&mut self, side: Side, bytes: &[u8], (all, ends): (u64, bool), out: &mut Out<'_>) -> Step {
        let open = &mut self.open[side as usize];
        if let Some((id, what, plus)) = *open {
            let ends = if plus {
                let Some(len) = u16_at(bytes, S7 + 2) else { return Step::Need };
                has_trailer(len, all)
            } else {
                ends
            };
            if ends {
                *open = None;
            }
            let piece = Head::piece(role_of(what), "part");
            out.put(Head { id: Some(u64::from(id)), len: Some(all), last: ends, ..piece });
            return Step::Skip(all);
        }
        let Some(&magic) = bytes.get(S7) else { return Step::Need };
        if magic == PLUS {
            return self.plus(side, bytes, all, out);
        }
        if magic != MAGIC || all < PARAMETERS as u64 {
            return Step::Wrong;
        }
        let (Some(&kind), Some(id)) = (bytes.get(S7 + 1), u16_at(bytes, S7 + 4)) else { return Step::Need };
        let group = bytes.get(GROUP).copied();
        if kind == USERDATA && group.is_none() && all > GROUP as u64 {
            return Step::Need;
        }
        let function = bytes.get(PARAMETERS).copied();
        if kind == JOB && function.is_none() && all > PARAMETERS as u64 {
            return Step::Need;
        }
        let Some(what) = what(kind, group) else { return Step::Wrong };
        if !ends {
            *open = Some((id, what, false));
        }
        let name = name_of(kind, function.unwrap_or(0));
        out.put(Head { id: Some(u64::from(id)), last: ends, ..Head::whole(role_of(what), name, all) });
        Step::Skip(all)
    }
}

impl S7Comm {
    /// The first packet of a newer controller's message.
    fn plus(&mut self, side: Side, bytes: &[u8], all: u64, out: &mut Out<'_>) -> Step {
        if all < OPCODE as u64 {
            return Step::Wrong;
        }
        let (Some(&version), Some(len)) = (bytes.get(S7 + 1), u16_at(bytes, S7 + 2)) else {
            return Step::Need;
        };
        if version >= DIGESTED {
            let event = version >= PLUS_EVENT;
            out.put(Head::whole(if event { Role::Pushes } else { Role::Unknown }, "message", all));
            return Step::Skip(all);
        }
        if all < (NUMBER + 2) as u64 {
            return Step::Wrong;
        }
        let (Some(&opcode), Some(id)) = (bytes.get(OPCODE), u16_at(bytes, NUMBER)) else { return Step::Need };
        let Some((what, name)) = plus_what(opcode) else { return Step::Wrong };
        let ends = has_trailer(len, all);
        if !ends {
            self.open[side as usize] = Some((id, what, true));
        }
        let id = (what != PUSHED).then_some(u64::from(id));
        out.put(Head { id, last: ends, ..Head::whole(role_of(what), name, all) });
        Step::Skip(all)
    }
}

/// Versions from here on are events of the transport: keep-alives and ends of sessions.
const PLUS_EVENT: u8 = 0xfe;

/// Whether bytes follow the first `len` bytes of data in a newer controller's packet of `all`
/// bytes: then it is the last one of its message.
const fn has_trailer(len: u16, all: u64) -> bool {
    all > (S7 + PLUS_LEN) as u64 + len as u64
}

const fn plus_what(opcode: u8) -> Option<(u8, &'static str)> {
    match opcode {
        REQUEST => Some((ASKED, "request")),
        RESPONSE | RESPONSE_2 => Some((ANSWERED, "answer")),
        NOTIFICATION => Some((PUSHED, "notification")),
        _ => None,
    }
}

/// The nibble of user data that gives the direction, also used for jobs and their answers.
const PUSHED: u8 = 0;
const ASKED: u8 = 4;
const ANSWERED: u8 = 8;

const fn what(kind: u8, group: Option<u8>) -> Option<u8> {
    match (kind, group) {
        (JOB, _) => Some(ASKED),
        (ACK | ACK_DATA, _) => Some(ANSWERED),
        (USERDATA, Some(group)) => match group >> 4 {
            PUSHED => Some(PUSHED),
            ASKED => Some(ASKED),
            ANSWERED => Some(ANSWERED),
            _ => None,
        },
        _ => None,
    }
}

const fn role_of(what: u8) -> Role {
    match what {
        ASKED => Role::Asks,
        ANSWERED => Role::Answers,
        _ => Role::Pushes,
    }
}

/// A whole packet of ISO transport that fits into the segment.
fn is_framed(first: First<'_>) -> bool {
    let len = u16_at(first.bytes, 2).map_or(0, u32::from);
    first.bytes.starts_with(b"\x03\0") && len >= S7 as u32 && len <= first.len
}

fn is_acknowledgement(first: First<'_>) -> bool {
    u16_at(first.bytes, 2) == Some(S7 as u16) && first.bytes.get(TPKT_LEN..S7) == Some(&[2, DATA, 0])
}

/// Whether it begins with a job, or with an answer to one.
fn direction(first: First<'_>) -> Option<Role> {
    let data = first.bytes.get(TPKT_LEN..=S7)?;
    if !is_framed(first) || data[..2] != [2, DATA] {
        return None;
    }
    if data[3] == PLUS {
        let plain = *first.bytes.get(S7 + 1)? < DIGESTED;
        return plus_what(*first.bytes.get(OPCODE)?).filter(|_| plain).map(|(what, _)| role_of(what));
    }
    if data[3] != MAGIC {
        return None;
    }
    what(*first.bytes.get(S7 + 1)?, first.bytes.get(GROUP).copied()).map(role_of)
}

/// The functions of a job, by the names in the controllers' documentation.
const fn name_of(kind: u8, function: u8) -> &'static str {
    match (kind, function) {
        (JOB, 0x04) => "read",
        (JOB, 0x05) => "write",
        (JOB, 0xf0) => "set up",
        (JOB, 0x1a..=0x1c) => "download",
        (JOB, 0x1d..=0x1f) => "upload",
        (JOB, 0x28) => "service",
        (JOB, 0x29) => "stop",
        (JOB, _) => "job",
        (ACK, _) => "refusal",
        (ACK_DATA, _) => "answer",
        _ => "user data",
    }
}
