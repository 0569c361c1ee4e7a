//! Which messages ask between a control centre and its stations (IEC 60870-5-104)? (5.1 to 5.3:
//! APCI; causes of transmission: IEC 60870-5-101, 7.2.3.)
//!
//! Stations report changes unsolicited, and supervisory frames only acknowledge: nothing waits for
//! either.

use crate::head::{Head, Role};
use crate::talk::{First, FirstBytes, Out, Side, Step, Talk};

const START: u8 = 0x68;
/// Start and length; the length counts the bytes after them.
const HEAD_LEN: u8 = 2;
/// The control field; frames without data consist of it alone.
const CONTROL_LEN: u8 = 4;
const LEN_MAX: u8 = 253;
/// Bytes before the objects of a frame, and the address of each object, or of the first of a
/// sequence.
const UNIT_LEN: u8 = 6;
const ADDRESS_LEN: u8 = 3;
/// In the number of objects: they are a sequence, and only the first has an address.
const ROW: u8 = 0x80;
/// Offsets of the type identification and of the cause of transmission.
const TYPE: usize = 6;
const CAUSE: usize = 8;
const CAUSE_MASK: u8 = 0x3f;
/// The command that reads one value: its answer has the same cause.
const READ: u8 = 102;

const COMMAND: &str = "command";
const CONFIRMATION: &str = "confirmation";

/// No state is needed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Iec104;

impl Talk for Iec104 {
    const FIRST: FirstBytes = FirstBytes::of(b"\x68");

    fn fits(client: First<'_>, server: First<'_>) -> bool {
        let framed = |first: First<'_>| first.is_empty() || is_framed(first);
        let (asks, told) = (what(client.bytes), what(server.bytes));
        let by_client = matches!(asks, Some((Role::Asks | Role::Neither, _)));
        let mirrored = told.is_some_and(|told| asks == Some(told) && told.1 == COMMAND);
        let by_server = mirrored || matches!(told, Some((Role::Pushes | Role::Answers, _)));
        framed(client)
            && framed(server)
            && (by_client || by_server)
            && (client.is_empty() || by_client)
            && (server.is_empty() || by_server || matches!(told, Some((Role::Neither, _))))
    }

    fn step(&mut self, side: Side, bytes: &[u8], out: &mut Out<'_>) -> Step {
        let Some(&[start, len]) = bytes.first_chunk() else { return Step::Need };
        if start != START || !(CONTROL_LEN..=LEN_MAX).contains(&len) {
            return Step::Wrong;
        }
        let needed = if len == CONTROL_LEN { TYPE } else { CAUSE + 1 };
        if bytes.len() < needed {
            return Step::Need;
        }
        let Some((mut role, mut name)) = what(bytes) else { return Step::Wrong };
        // Stations never command: some mirror a command with its cause unchanged.
        if name == COMMAND && !side.is_client() {
            (role, name) = (Role::Answers, CONFIRMATION);
        }
        let all = u64::from(len) + u64::from(HEAD_LEN);
        out.put(Head::whole(role, name, all));
        Step::Skip(all)
    }

    fn begins(&self, _: Side, first: First<'_>, _: bool) -> bool {
        is_framed(first)
    }

    fn lose(&mut self, _: Side) {}
}

/// A whole frame, followed by nothing that cannot be one.
fn is_framed(first: First<'_>) -> bool {
    let all = |len: u8| usize::from(HEAD_LEN) + usize::from(len);
    let len = first.bytes.get(1).copied().filter(|len| (CONTROL_LEN..=LEN_MAX).contains(len));
    let Some(all) = len.map(all).filter(|&all| all as u64 <= u64::from(first.len)) else { return false };
    let next = first.bytes.get(all).copied();
    what(first.bytes).is_some()
        && (all as u64 == u64::from(first.len) || next.is_none_or(|next| next == START))
}

/// The role of a frame, and its name.
fn what(bytes: &[u8]) -> Option<(Role, &'static str)> {
    let (&[start, len, control, second, third, fourth], rest) = bytes.split_first_chunk()?;
    let empty = len == CONTROL_LEN;
    match (start, control & 3) {
        (START, 1) if empty && control == 1 && second == 0 && third & 1 == 0 => Some((Role::Neither, "S")),
        (START, 3) if empty && [second, third, fourth] == [0; 3] => unnumbered(control),
        (START, 0 | 2) if len > CONTROL_LEN + UNIT_LEN && third & 1 == 0 => {
            let (kind, objects, cause) =
                (*rest.first()?, *rest.get(1)?, *rest.get(CAUSE - TYPE)? & CAUSE_MASK);
            if fill(objects, len - CONTROL_LEN - UNIT_LEN) { carried(kind, cause) } else { None }
        }
        _ => None,
    }
}

/// Start, stop and test, and their confirmations.
const fn unnumbered(control: u8) -> Option<(Role, &'static str)> {
    match control {
        0x07 | 0x13 | 0x43 => Some((Role::Asks, "U act")),
        0x0b | 0x23 | 0x83 => Some((Role::Answers, "U con")),
        _ => None,
    }
}

/// Whether this many objects of equal size fill `len` bytes.
const fn fill(objects: u8, len: u8) -> bool {
    let (row, count) = (objects & ROW != 0, objects & !ROW);
    let of_all = if row { len.saturating_sub(ADDRESS_LEN) } else { len };
    let least = if row { 1 } else { ADDRESS_LEN };
    count != 0 && of_all.is_multiple_of(count) && of_all / count >= least
}

/// The content of a frame: a command, its confirmation, or a report of a station.
const fn carried(kind: u8, cause: u8) -> Option<(Role, &'static str)> {
    match (kind, cause) {
        (0 | 41..=44 | 65..=69 | 71..=99 | 108..=109 | 114..=119 | 128.., _) | (_, 0 | 42..=43 | 48..) => {
            None
        }
        (READ, 5) | (_, 6 | 8) => Some((Role::Asks, COMMAND)),
        (_, 5 | 7 | 9 | 44..=47) => Some((Role::Answers, CONFIRMATION)),
        _ => Some((Role::Pushes, "report")),
    }
}
