//! Which Diameter answer belongs to which request? (RFC 6733, 3) Either side asks.

use crate::head::{Head, Role};
use crate::talk::{First, FirstBytes, Out, Side, Step, Talk, u32_at};

/// Version, length, flags, command, application, and two identifiers.
const HEADER_LEN: u32 = 20;
const VERSION: u8 = 1;
const REQUEST: u8 = 0x80;
const RESERVED: u8 = 0x0f;
/// Length of a message; its three bytes could express 16 MB.
const LEN_MAX: u32 = 1 << 20;
const CAPABILITIES: u32 = 257;

/// No state is needed: each message says which request it answers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Diameter;

impl Talk for Diameter {
    const FIRST: FirstBytes = FirstBytes::of(&[VERSION]);

    fn fits(client: First<'_>, server: First<'_>) -> bool {
        let (asked, told) = (header(client), header(server));
        let asks = asked.is_some_and(|asked| asked.role == Role::Asks);
        let both = server.is_empty() || told.is_some();
        // A session begins with capabilities; in the middle of one, both sides must have spoken
        // like this.
        asks && both && (told.is_some() || asked.is_some_and(|asked| asked.command == CAPABILITIES))
    }

    fn step(&mut self, _: Side, bytes: &[u8], out: &mut Out<'_>) -> Step {
        let Some(message) = read(bytes) else {
            return if bytes.len() < HEADER_LEN as usize { Step::Need } else { Step::Wrong };
        };
        let len = u64::from(message.len);
        out.put(Head { id: Some(u64::from(message.id)), ..Head::whole(message.role, message.name(), len) });
        Step::Skip(len)
    }

    fn begins(&self, _: Side, first: First<'_>, _: bool) -> bool {
        header(first).is_some()
    }

    fn lose(&mut self, _: Side) {}
}

#[derive(Clone, Copy, Debug)]
struct Message {
    len: u32,
    role: Role,
    command: u32,
    id: u32,
}

impl Message {
    const fn name(&self) -> &'static str {
        match self.command {
            CAPABILITIES => "Capabilities-Exchange",
            258 => "Re-Auth",
            271 => "Accounting",
            // RFC 8506, 3.
            272 => "Credit-Control",
            274 => "Abort-Session",
            275 => "Session-Termination",
            280 => "Device-Watchdog",
            282 => "Disconnect-Peer",
            _ => "command",
        }
    }
}

fn read(bytes: &[u8]) -> Option<Message> {
    let &[version, flags] = [bytes.first()?, bytes.get(4)?].map(|byte| *byte).first_chunk()?;
    let len = u32_at(bytes, 0)? & 0x00ff_ffff;
    let command = u32_at(bytes, 4)? & 0x00ff_ffff;
    // The end-to-end identifier: some peers answer with a hop-by-hop identifier of their own.
    let id = u32_at(bytes, 16).filter(|_| bytes.len() >= HEADER_LEN as usize)?;
    let sound = version == VERSION
        && flags & RESERVED == 0
        && (HEADER_LEN..=LEN_MAX).contains(&len)
        && len.is_multiple_of(4)
        && command != 0;
    let role = if flags & REQUEST == 0 { Role::Answers } else { Role::Asks };
    sound.then_some(Message { len, role, command, id })
}

/// A message, followed by nothing that cannot be one.
fn header(first: First<'_>) -> Option<Message> {
    let message = read(first.bytes)?;
    let next = first.bytes.get(message.len as usize);
    (message.len >= first.len || next.is_none_or(|next| *next == VERSION)).then_some(message)
}
