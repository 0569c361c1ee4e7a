//! Which reply of a controller belongs to which request? (EtherNet/IP, CIP Networks Library volume 2, 2-3 and 2-4)
//!
//! Each side echoes the sender context that the other wrote, unless it was empty; without it
//! replies come in order.

use crate::head::{Head, Role};
use crate::talk::{First, FirstBytes, Out, Side, Step, Talk, u16_le, u32_le};

/// Command, length, session, status, context, options.
const HEADER_LEN: u16 = 24;
const LEN_MAX: u16 = 65_511;
const NOP: u16 = 0;
const REGISTER: u16 = 0x65;
const UNREGISTER: u16 = 0x66;
const CONNECTED: u16 = 0x70;

/// No state is needed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct EthernetIp;

impl Talk for EthernetIp {
    const FIRST: FirstBytes = FirstBytes::of(b"\x04\x63\x64\x65\x66\x6f\x70");

    fn fits(client: First<'_>, server: First<'_>) -> bool {
        // A session begins with its version, and has no handle yet.
        let registers = u16_le(client.bytes, 0) == Some(REGISTER)
            && u32_le(client.bytes, 4) == Some(0)
            && client.len == 28;
        // In the middle of a session, nothing shows which side asks.
        registers && is_message(client) && (server.is_empty() || is_message(server))
    }

    fn step(&mut self, side: Side, bytes: &[u8], out: &mut Out<'_>) -> Step {
        let Some((len, name, id)) = read(bytes) else {
            return if bytes.len() < usize::from(HEADER_LEN) { Step::Need } else { Step::Wrong };
        };
        let role = match (side, u16_le(bytes, 0)) {
            (_, Some(NOP | UNREGISTER)) => Role::Neither,
            (Side::Client, _) => Role::Asks,
            (Side::Server, _) => Role::Answers,
        };
        out.put(Head { id, ..Head::whole(role, name, len) });
        Step::Skip(len)
    }

    fn begins(&self, _: Side, first: First<'_>, is_turn: bool) -> bool {
        is_turn && is_message(first)
    }

    fn lose(&mut self, _: Side) {}
}

fn read(bytes: &[u8]) -> Option<(u64, &'static str, Option<u64>)> {
    let len = u16_le(bytes, 2).filter(|len| *len <= LEN_MAX)?;
    let command = u16_le(bytes, 0)?;
    let name = named(command)?;
    let context = [u32_le(bytes, 12)?, u32_le(bytes, 16)?].map(u64::from);
    let options = u32_le(bytes, 20)?;
    // Connected messages are answered by other connected messages, whose context is arbitrary.
    let id = Some(context[0] | context[1] << 32).filter(|id| *id != 0 && command != CONNECTED);
    (options == 0).then_some((u64::from(HEADER_LEN) + u64::from(len), name, id))
}

/// The segment ends with the message, or is filled by it.
fn is_message(first: First<'_>) -> bool {
    read(first.bytes).is_some_and(|(len, ..)| len >= u64::from(first.len))
}

const fn named(command: u16) -> Option<&'static str> {
    Some(match command {
        NOP => "NOP",
        0x04 => "ListServices",
        0x63 => "ListIdentity",
        0x64 => "ListInterfaces",
        REGISTER => "RegisterSession",
        UNREGISTER => "UnRegisterSession",
        0x6f => "SendRRData",
        CONNECTED => "SendUnitData",
        _ => return None,
    })
}
