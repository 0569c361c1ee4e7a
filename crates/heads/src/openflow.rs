//! Which messages ask between a switch and its controller? (OpenFlow Switch Specification 1.0.0,
//! 5.1 and 5.3 to 5.5; 1.5.1, 7.1 and 7.3 to 7.5)
//!
//! Both greet, and both check whether the other is alive; the controller asks about the switch.
//! Reports of the switch, and commands to it, are not answered.

use crate::head::{Head, Role};
use crate::talk::{First, FirstBytes, Out, Side, Step, Talk, u16_at, u32_at};

const HEAD_LEN: u16 = 8;
/// Flags say whether more parts of an answer follow (ofp_stats_reply, ofp_multipart_reply).
const PARTS_LEN: usize = 12;
const MORE: u16 = 1;
const VERSION_MAX: u8 = 6;
/// The first version with the later message numbers.
const RENUMBERED: u8 = 2;
const HELLO: u8 = 0;
/// The optional element of a greeting: the versions that its sender supports
/// (ofp_hello_elem_versionbitmap).
const VERSIONS: u16 = 1;

/// No state is needed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct OpenFlow;

impl Talk for OpenFlow {
    const FIRST: FirstBytes = FirstBytes::NONE.and_range(1, VERSION_MAX);

    fn fits(client: First<'_>, server: First<'_>) -> bool {
        // Eight bytes prove nothing: both must greet, or one must answer the other by its
        // identifier.
        let (Some(one), Some(other)) = (message(client.bytes), message(server.bytes)) else { return false };
        let greet = is_hello(client.bytes, &one) && is_hello(server.bytes, &other);
        let pair =
            matches!((one.role, other.role), (Role::Asks, Role::Answers) | (Role::Answers, Role::Asks));
        let same = one.version == other.version && one.id == other.id;
        is_framed(client) && is_framed(server) && (greet || pair && same)
    }

    fn step(&mut self, _: Side, bytes: &[u8], out: &mut Out<'_>) -> Step {
        if bytes.len() < usize::from(HEAD_LEN) {
            return Step::Need;
        }
        let Some(message) = message(bytes) else { return Step::Wrong };
        let len = u64::from(message.len);
        let mut head =
            Head { id: Some(u64::from(message.id)), ..Head::whole(message.role, message.name, len) };
        if message.name == "multipart reply" && message.len as usize >= PARTS_LEN {
            let Some(flags) = u16_at(bytes, PARTS_LEN - 2) else { return Step::Need };
            head.last = flags & MORE == 0;
        }
        if message.role != Role::Asks && message.role != Role::Answers {
            head.id = None;
        }
        out.put(head);
        Step::Skip(len)
    }

    fn begins(&self, _: Side, first: First<'_>, _: bool) -> bool {
        is_framed(first)
    }

    fn lose(&mut self, _: Side) {}
}

struct Message {
    version: u8,
    kind: u8,
    len: u16,
    id: u32,
    name: &'static str,
    role: Role,
}

fn is_hello(bytes: &[u8], message: &Message) -> bool {
    let element = || u16_at(bytes, 8).zip(u16_at(bytes, 10));
    let fills = |len: u16| u32::from(HEAD_LEN) + u32::from(len) == u32::from(message.len);
    message.kind == HELLO
        && (message.len == HEAD_LEN || element().is_some_and(|(kind, len)| kind == VERSIONS && fills(len)))
}

fn message(bytes: &[u8]) -> Option<Message> {
    let &[version, kind] = bytes.first_chunk()?;
    let (len, id) = (u16_at(bytes, 2)?, u32_at(bytes, 4)?);
    let known = (1..=VERSION_MAX).contains(&version) && len >= HEAD_LEN;
    let (name, role) = named(version, kind).filter(|_| known)?;
    Some(Message { version, kind, len, id, name, role })
}

/// The segment consists of messages of one version, as far as it was captured.
fn is_framed(first: First<'_>) -> bool {
    let Some(begin) = message(first.bytes) else { return false };
    let next = first.bytes.get(usize::from(begin.len)..).unwrap_or_default();
    let fits = u32::from(begin.len) <= first.len;
    fits && (u32::from(begin.len) == first.len || next.first().is_none_or(|&next| next == begin.version))
}

/// The messages of all versions, and those from [`RENUMBERED`] on.
const fn named(version: u8, kind: u8) -> Option<(&'static str, Role)> {
    Some(match kind {
        HELLO => ("hello", Role::Greets),
        1 => ("error", Role::Answers),
        2 => ("echo request", Role::Asks),
        3 => ("echo reply", Role::Answers),
        4 => ("experimenter", Role::Neither),
        5 => ("features request", Role::Asks),
        6 => ("features reply", Role::Answers),
        7 => ("get config request", Role::Asks),
        8 => ("get config reply", Role::Answers),
        9 => ("set config", Role::Pushes),
        10 => ("packet in", Role::Pushes),
        11 => ("flow removed", Role::Pushes),
        12 => ("port status", Role::Pushes),
        13 => ("packet out", Role::Pushes),
        14 => ("flow mod", Role::Pushes),
        _ if version < RENUMBERED => return first_version(kind),
        15 => ("group mod", Role::Pushes),
        16 => ("port mod", Role::Pushes),
        17 => ("table mod", Role::Pushes),
        18 => ("multipart request", Role::Asks),
        19 => ("multipart reply", Role::Answers),
        20 => ("barrier request", Role::Asks),
        21 => ("barrier reply", Role::Answers),
        22 => ("queue request", Role::Asks),
        23 => ("queue reply", Role::Answers),
        24 => ("role request", Role::Asks),
        25 => ("role reply", Role::Answers),
        26 => ("get async request", Role::Asks),
        27 => ("get async reply", Role::Answers),
        28 => ("set async", Role::Pushes),
        29 => ("meter mod", Role::Pushes),
        30..=32 | 35 => ("status", Role::Pushes),
        33 => ("bundle control", Role::Neither),
        34 => ("bundle add", Role::Pushes),
        _ => return None,
    })
}

const fn first_version(kind: u8) -> Option<(&'static str, Role)> {
    Some(match kind {
        15 => ("port mod", Role::Pushes),
        16 => ("multipart request", Role::Asks),
        17 => ("multipart reply", Role::Answers),
        18 => ("barrier request", Role::Asks),
        19 => ("barrier reply", Role::Answers),
        20 => ("queue request", Role::Asks),
        21 => ("queue reply", Role::Answers),
        _ => return None,
    })
}
