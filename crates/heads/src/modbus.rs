//! Which Modbus/TCP response belongs to which request? (MODBUS Messaging on TCP/IP Implementation Guide V1.0b, 3.1.3)

use crate::head::{Head, Role};
use crate::talk::{First, FirstBytes, Out, Side, Step, Talk, u16_at};

/// Transaction, protocol and length.
const HEAD_LEN: u16 = 6;
const LEN_MAX: u16 = 254;
/// In the function code of a response: an exception.
const EXCEPTION: u8 = 0x80;

/// No state is needed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Modbus;

impl Talk for Modbus {
    // A transaction.
    const FIRST: FirstBytes = FirstBytes::ANY;

    fn fits(client: First<'_>, server: First<'_>) -> bool {
        // Seven bytes with three zeros prove nothing: the other side must repeat transaction, unit
        // and function.
        let same = |at: usize, but: u8| {
            let (asked, answered) = (client.bytes.get(at), server.bytes.get(at));
            asked.is_some() && asked.copied() == answered.map(|byte| byte & !but)
        };
        let alike = same(0, 0) && same(1, 0) && same(6, 0) && same(7, EXCEPTION);
        is_message(client)
            && is_message(server)
            && alike
            && client.bytes[7] & EXCEPTION == 0
            && is_question(client)
    }

    fn step(&mut self, side: Side, bytes: &[u8], out: &mut Out<'_>) -> Step {
        let (Some(id), Some(protocol), Some(len)) = (u16_at(bytes, 0), u16_at(bytes, 2), u16_at(bytes, 4))
        else {
            return Step::Need;
        };
        if protocol != 0 || !(2..=LEN_MAX).contains(&len) {
            return Step::Wrong;
        }
        let Some(&function) = bytes.get(7) else { return Step::Need };
        let role = if side.is_client() { Role::Asks } else { Role::Answers };
        let all = u64::from(len) + u64::from(HEAD_LEN);
        out.put(Head { id: Some(u64::from(id)), ..Head::whole(role, name_of(function), all) });
        Step::Skip(all)
    }

    fn begins(&self, _: Side, first: First<'_>, is_turn: bool) -> bool {
        is_turn && is_message(first)
    }

    fn lose(&mut self, _: Side) {}
}

fn is_message(first: First<'_>) -> bool {
    let len = u16_at(first.bytes, 4).filter(|len| (2..=LEN_MAX).contains(len));
    let whole = len.is_some_and(|len| u32::from(len + HEAD_LEN) == first.len);
    let function = first.bytes.get(7).is_some_and(|function| name_of(*function) != "function");
    u16_at(first.bytes, 2) == Some(0) && whole && function
}

/// The lengths of requests, by function (MODBUS Application Protocol V1.1b3, 6).
fn is_question(first: First<'_>) -> bool {
    match first.bytes.get(7) {
        Some(1..=6) => first.len == 12,
        Some(_) => first.len >= 8,
        None => false,
    }
}

const fn name_of(function: u8) -> &'static str {
    if function & EXCEPTION != 0 {
        return "exception";
    }
    match function {
        1 => "Read Coils",
        2 => "Read Discrete Inputs",
        3 => "Read Holding Registers",
        4 => "Read Input Registers",
        5 => "Write Single Coil",
        6 => "Write Single Register",
        7 => "Read Exception Status",
        8 => "Diagnostics",
        0x0f => "Write Multiple Coils",
        0x10 => "Write Multiple Registers",
        0x11 => "Report Server ID",
        0x16 => "Mask Write Register",
        0x17 => "Read/Write Multiple Registers",
        0x2b => "Encapsulated Interface Transport",
        _ => "function",
    }
}
