//! Which SMPP response belongs to which request? (SMPP v3.4, 3.2) Either side asks.

use crate::head::{Head, Role};
use crate::talk::{First, FirstBytes, Out, Side, Step, Talk, is_text, u32_at};

/// Length, command, status, sequence number.
const HEADER_LEN: u32 = 16;
/// The longest message has 64 KB of payload and less than 1 KB of other fields.
const LEN_MAX: u32 = 66_000;
/// Length of a name, with its terminating zero.
const NAME_LEN_MAX: usize = 16;
const RESPONSE: u32 = 0x8000_0000;
/// Messages without a response.
const ALERT: u32 = 0x102;
const OUTBIND: u32 = 0x0b;

/// No state is needed: each message says which request it answers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Smpp;

impl Talk for Smpp {
    // The first byte of a length of about 64 KB at most.
    const FIRST: FirstBytes = FirstBytes::of(b"\0");

    fn fits(client: First<'_>, server: First<'_>) -> bool {
        let asks = read(client.bytes).is_some_and(|(_, role, ..)| role == Role::Asks);
        let answers = || read(server.bytes).is_some_and(|(_, role, ..)| role == Role::Answers);
        let told = server.is_empty() || fills(server) && answers();
        asks && fills(client) && told && (binds(client) || !server.is_empty())
    }

    fn step(&mut self, _: Side, bytes: &[u8], out: &mut Out<'_>) -> Step {
        let Some((len, role, name, id)) = read(bytes) else {
            return if bytes.len() < HEADER_LEN as usize { Step::Need } else { Step::Wrong };
        };
        out.put(Head { id: Some(u64::from(id)), ..Head::whole(role, name, u64::from(len)) });
        Step::Skip(u64::from(len))
    }

    fn begins(&self, _: Side, first: First<'_>, _: bool) -> bool {
        read(first.bytes).is_some() && fills(first)
    }

    fn lose(&mut self, _: Side) {}
}

fn read(bytes: &[u8]) -> Option<(u32, Role, &'static str, u32)> {
    let len = u32_at(bytes, 0).filter(|len| (HEADER_LEN..=LEN_MAX).contains(len))?;
    let command = u32_at(bytes, 4)?;
    let status = u32_at(bytes, 8)?;
    let sequence = u32_at(bytes, 12)?;
    let name = named(command & !RESPONSE).filter(|_| command != 0)?;
    let role = match command {
        ALERT | OUTBIND => Role::Pushes,
        _ if command & RESPONSE != 0 => Role::Answers,
        _ => Role::Asks,
    };
    // A request has no status, and sequence numbers are not 0.
    let sound = role == Role::Answers || status == 0;
    (sound && sequence != 0).then_some((len, role, name, sequence))
}

/// A whole bind request, with the name of the client.
fn binds(first: First<'_>) -> bool {
    let name = first.bytes.get(HEADER_LEN as usize..).unwrap_or_default();
    let end = name.iter().position(|byte| *byte == 0).filter(|end| (1..NAME_LEN_MAX).contains(end));
    matches!(u32_at(first.bytes, 4), Some(1 | 2 | 9))
        && u32_at(first.bytes, 0) == Some(first.len)
        && end.is_some_and(|end| is_text(&name[..end]))
}

/// The segment ends with the message, or another one follows it.
fn fills(first: First<'_>) -> bool {
    let len = u32_at(first.bytes, 0).unwrap_or(0);
    let next = first.bytes.get(len as usize);
    len >= first.len || next.is_none_or(|next| *next == 0)
}

const fn named(command: u32) -> Option<&'static str> {
    Some(match command {
        0 => "generic_nack",
        0x01 => "bind_receiver",
        0x02 => "bind_transmitter",
        0x03 => "query_sm",
        0x04 => "submit_sm",
        0x05 => "deliver_sm",
        0x06 => "unbind",
        0x07 => "replace_sm",
        0x08 => "cancel_sm",
        0x09 => "bind_transceiver",
        OUTBIND => "outbind",
        0x15 => "enquire_link",
        0x21 => "submit_multi",
        ALERT => "alert_notification",
        0x103 => "data_sm",
        _ => return None,
    })
}
