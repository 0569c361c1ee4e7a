//! Which SOFA Bolt response belongs to which request? (SOFABolt: RpcProtocol and RpcProtocolV2)

use crate::head::{Head, Role};
use crate::talk::{First, FirstBytes, Out, Side, Step, Talk, is_text, u16_at, u32_at};

const RESPONSE: u8 = 0;
const REQUEST: u8 = 1;
const ONE_WAY: u8 = 2;
const HEARTBEAT: u16 = 0;
const CONTENT_LEN_MAX: u32 = 1 << 28;

/// No state is needed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Bolt;

/// The header of a command.
#[derive(Clone, Copy, Debug)]
struct Command {
    kind: u8,
    code: u16,
    id: u32,
    class_len: u16,
    header_len: u16,
    /// Offset of the class name.
    class_at: usize,
    len: u64,
}

impl Command {
    /// `None` if more bytes are needed, an error if it is not a command.
    fn read(bytes: &[u8]) -> Result<Option<Self>, ()> {
        let Some(&version) = bytes.first() else { return Ok(None) };
        // Version 2 has one more number and a switch; the switch says whether a checksum ends the
        // command.
        let more = match version {
            1 => 0,
            2 => 1,
            _ => return Err(()),
        };
        let Some(&kind) = bytes.get(1 + more) else { return Ok(None) };
        if kind > ONE_WAY {
            return Err(());
        }
        let id_at = 5 + more;
        let lengths_at = id_at + 4 + 1 + more + if kind == RESPONSE { 2 } else { 4 };
        let class_at = lengths_at + 8;
        if bytes.len() < class_at {
            return Ok(None);
        }
        let (half, word) = (|at| u16_at(bytes, at).unwrap_or(0), |at| u32_at(bytes, at).unwrap_or(0));
        let code = half(2 + more);
        let content_len = word(lengths_at + 4);
        if code > 2 || content_len > CONTENT_LEN_MAX {
            return Err(());
        }
        let (class_len, header_len) = (half(lengths_at), half(lengths_at + 2));
        let checksum = if more == 1 && bytes[id_at + 5] & 1 != 0 { 4 } else { 0 };
        let len = class_at as u64
            + u64::from(class_len)
            + u64::from(header_len)
            + u64::from(content_len)
            + checksum;
        Ok(Some(Self { kind, code, id: word(id_at), class_len, header_len, class_at, len }))
    }
}

impl Talk for Bolt {
    // A version.
    const FIRST: FirstBytes = FirstBytes::of(&[1, 2]);

    fn fits(client: First<'_>, server: First<'_>) -> bool {
        let asks = is_command(client).is_some_and(|command| command.kind != RESPONSE);
        asks && (server.is_empty() || is_command(server).is_some())
    }

    fn step(&mut self, _: Side, bytes: &[u8], out: &mut Out<'_>) -> Step {
        let command = match Command::read(bytes) {
            Ok(Some(command)) => command,
            Ok(None) => return Step::Need,
            Err(()) => return Step::Wrong,
        };
        let (role, kind) = match command.kind {
            _ if command.code == HEARTBEAT => (Role::Neither, "heartbeat"),
            REQUEST => (Role::Asks, "request"),
            ONE_WAY => (Role::Pushes, "one-way"),
            _ => (Role::Answers, "response"),
        };
        let class_end = bytes.len().min(command.class_at + usize::from(command.class_len));
        let name = out.span(command.class_at, class_end).filter(|_| command.kind != RESPONSE);
        out.put(Head { id: Some(u64::from(command.id)), name, ..Head::whole(role, kind, command.len) });
        Step::Skip(command.len)
    }

    fn begins(&self, _: Side, first: First<'_>, _: bool) -> bool {
        is_command(first).is_some()
    }

    fn lose(&mut self, _: Side) {}
}

/// A command with a class name, or a heartbeat that fills its segment.
fn is_command(first: First<'_>) -> Option<Command> {
    let command = Command::read(first.bytes).ok()??;
    let class = first.bytes.get(command.class_at..)?;
    let class = &class[..class.len().min(usize::from(command.class_len))];
    let named = class.len() >= 3 && class.contains(&b'.') | (class.len() < 12) && is_text(class);
    let is_heartbeat = command.code == HEARTBEAT && command.class_len == 0 && command.header_len == 0;
    let sound = if is_heartbeat { command.len == u64::from(first.len) } else { named };
    (sound && command.len >= u64::from(first.len.min(64)) && command.class_len < 1024).then_some(command)
}
