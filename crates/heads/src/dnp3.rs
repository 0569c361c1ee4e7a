//! Which response of an outstation belongs to which request? (IEEE 1815, 9.2, 8.2 and 4.2: link, transport and application)
//!
//! Outstations may report changes unsolicited, and nothing waits for confirmations.

use crate::head::{Head, Role};
use crate::talk::{First, FirstBytes, Out, Side, Step, Talk, u16_le};

const START: [u8; 2] = [0x05, 0x64];
/// Start, length, control, addresses and their check.
const LINK_LEN: u64 = 10;
/// Length of the header before its CRC, and that CRC's polynomial, lowest bit first.
const CHECKED_LEN: usize = 8;
const POLYNOMIAL: u16 = 0xa6bc;
/// The length field counts control and addresses besides the data.
const COUNTED: u8 = 5;
/// Each block of data is followed by a CRC of two bytes.
const BLOCK_LEN: u64 = 16;
const CHECK_LEN: u64 = 2;
/// In the transport byte: this is the first frame of a fragment, and the last.
const FIRST: u8 = 0x40;
const FINAL: u8 = 0x80;
/// In the application byte: its sequence number.
const NUMBER: u8 = 0x0f;
const NEEDED: usize = 13;
const CONFIRM: u8 = 0;
const RESPONSE: u8 = 129;
const UNSOLICITED: u8 = 130;
const AUTHENTICATES: u8 = 131;

/// The fragment that each side is in the middle of.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Dnp3 {
    open: [Option<Open>; 2],
}

/// A fragment that continues in another frame.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Open {
    role: Role,
    name: &'static str,
    id: u8,
}

impl Talk for Dnp3 {
    const FIRST: FirstBytes = FirstBytes::of(&[START[0]]);

    fn fits(client: First<'_>, server: First<'_>) -> bool {
        let asks = is_frame(client) && carried(client.bytes).is_some_and(|what| what.role == Role::Asks);
        let tells = is_frame(server)
            && carried(server.bytes).is_some_and(|what| matches!(what.role, Role::Answers | Role::Pushes));
        asks && (server.is_empty() || is_frame(server)) || tells && (client.is_empty() || is_frame(client))
    }

    fn step(&mut self, side: Side, bytes: &[u8], out: &mut Out<'_>) -> Step {
        let Some(&[a, b, len]) = bytes.first_chunk() else { return Step::Need };
        let Some(all) = frame_len(len).filter(|_| [a, b] == START) else { return Step::Wrong };
        if len == COUNTED {
            out.put(Head::whole(Role::Neither, "link", all));
            return Step::Skip(all);
        }
        if bytes.len() < NEEDED {
            return Step::Need;
        }
        let open = &mut self.open[side as usize];
        let (first, last) = (bytes[10] & FIRST != 0, bytes[10] & FINAL != 0);
        let Some(what) = (if first { carried(bytes) } else { *open }) else { return Step::Lose };
        *open = (!last).then_some(what);
        if first || last {
            let id = Some(u64::from(what.id));
            out.put(Head { id, len: Some(all), first, last, ..Head::piece(what.role, what.name) });
        }
        Step::Skip(all)
    }

    fn begins(&self, _: Side, first: First<'_>, _: bool) -> bool {
        is_frame(first) && (first.bytes.get(2) == Some(&COUNTED) || carried(first.bytes).is_some())
    }

    fn lose(&mut self, side: Side) {
        self.open[side as usize] = None;
    }
}

/// The frame with its CRCs.
fn frame_len(len: u8) -> Option<u64> {
    let data = u64::from(len.checked_sub(COUNTED)?);
    Some(LINK_LEN + data + data.div_ceil(BLOCK_LEN) * CHECK_LEN)
}

/// The segment begins with a frame and is not followed by anything else.
fn is_frame(first: First<'_>) -> bool {
    let all = first.bytes.get(2).and_then(|len| frame_len(*len)).filter(|_| first.bytes.starts_with(&START));
    let next = |all: u64| first.bytes.get(usize::try_from(all).ok()?);
    is_checked(first.bytes)
        && all
            .is_some_and(|all| all >= u64::from(first.len) || next(all).is_none_or(|next| *next == START[0]))
}

/// Whether the header's CRC is right (IEEE 1815, 9.2.5).
fn is_checked(bytes: &[u8]) -> bool {
    let (Some(header), Some(check)) = (bytes.get(..CHECKED_LEN), u16_le(bytes, CHECKED_LEN)) else {
        return false;
    };
    let sum = header.iter().fold(0_u16, |sum, byte| {
        (0..8).fold(
            sum ^ u16::from(*byte),
            |sum, _| if sum & 1 == 0 { sum >> 1 } else { sum >> 1 ^ POLYNOMIAL },
        )
    });
    !sum == check
}

/// The content of a fragment's first frame.
fn carried(bytes: &[u8]) -> Option<Open> {
    let (transport, control, function) = (*bytes.get(10)?, *bytes.get(11)?, *bytes.get(12)?);
    let (role, name) = match function {
        CONFIRM => (Role::Neither, "confirm"),
        1 => (Role::Asks, "read"),
        2 => (Role::Asks, "write"),
        // Functions that want no response.
        6 | 8 | 10 | 12 | 33 => (Role::Pushes, "unconfirmed request"),
        3..=5 => (Role::Asks, "control"),
        7..=32 => (Role::Asks, "request"),
        RESPONSE | AUTHENTICATES => (Role::Answers, "response"),
        UNSOLICITED => (Role::Pushes, "report"),
        _ => return None,
    };
    (transport & FIRST != 0).then_some(Open { role, name, id: control & NUMBER })
}
