//! Which answer of ZooKeeper belongs to which request? (Apache ZooKeeper, zookeeper.jute: ConnectRequest, RequestHeader, ReplyHeader,
//! WatcherEvent; the numbers of its operations are those of ZooDefs.OpCode)

use crate::head::{Head, Role};
use crate::talk::{First, FirstBytes, Out, Side, Step, Talk, u32_at};

/// jute.maxbuffer is 1 MB by default.
const MESSAGE_LEN_MAX: u32 = 64 << 20;
/// Lengths of a session's request and its answer; a later version adds a read-only flag.
const CONNECT: [u32; 2] = [44, 45];
const CONNECTED: [u32; 2] = [36, 37];
/// Offset of the length of a session's password, in both.
const PASSWORD: [usize; 2] = [28, 20];
const PASSWORD_LEN: u32 = 16;
/// Reserved identifiers: an event, a ping and its answer, authentication, resent watches.
const EVENT: u32 = (-1_i32).cast_unsigned();
const PING: u32 = (-2_i32).cast_unsigned();
/// Minimum lengths: an identifier and an operation; an identifier, a transaction identifier and an
/// error.
const REQUEST_LEN: u32 = 8;
const REPLY_LEN: u32 = 16;

/// State: whether each side has begun its session.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct ZooKeeper {
    begun: [bool; 2],
}

impl Talk for ZooKeeper {
    // The first byte of a length; session messages are short.
    const FIRST: FirstBytes = FirstBytes::of(&[0]);

    fn fits(client: First<'_>, server: First<'_>) -> bool {
        is_connect(client, CONNECT, PASSWORD[0])
            && (server.is_empty() || is_connect(server, CONNECTED, PASSWORD[1]))
    }

    fn step(&mut self, side: Side, bytes: &[u8], out: &mut Out<'_>) -> Step {
        let Some(size) = u32_at(bytes, 0) else { return Step::Need };
        if !(REQUEST_LEN..=MESSAGE_LEN_MAX).contains(&size) {
            return Step::Wrong;
        }
        let len = u64::from(size) + 4;
        if !std::mem::replace(&mut self.begun[side as usize], true) {
            let (role, kind) =
                if side.is_client() { (Role::Asks, "connect") } else { (Role::Answers, "connected") };
            out.put(Head { id: Some(0), ..Head::whole(role, kind, len) });
            return Step::Skip(len);
        }
        let Some(id) = u32_at(bytes, 4) else { return Step::Need };
        let (role, kind) = match (side, id) {
            (_, PING) => (Role::Neither, "ping"),
            (Side::Server, EVENT) => (Role::Pushes, "event"),
            (Side::Server, _) if size < REPLY_LEN => return Step::Wrong,
            (Side::Server, _) => (Role::Answers, "reply"),
            (Side::Client, _) => match u32_at(bytes, 8) {
                Some(operation) => (Role::Asks, name_of(operation)),
                None => return Step::Need,
            },
        };
        out.put(Head { id: Some(u64::from(id)), ..Head::whole(role, kind, len) });
        Step::Skip(len)
    }

    fn begins(&self, side: Side, first: First<'_>, _: bool) -> bool {
        let least = if side.is_client() { REQUEST_LEN } else { REPLY_LEN };
        let sized = u32_at(first.bytes, 0)
            .is_some_and(|size| size >= least && size.checked_add(4) == Some(first.len));
        let known = u32_at(first.bytes, 8).is_some_and(|operation| name_of(operation) != "request");
        self.begun[side as usize] && sized && (known || !side.is_client())
    }

    fn lose(&mut self, _: Side) {}
}

/// A session's first message, which fills its segment.
fn is_connect(first: First<'_>, sizes: [u32; 2], password_at: usize) -> bool {
    let size = u32_at(first.bytes, 0);
    size.is_some_and(|size| sizes.contains(&size) && size + 4 == first.len)
        && u32_at(first.bytes, 4) == Some(0)
        && u32_at(first.bytes, password_at) == Some(PASSWORD_LEN)
}

const fn name_of(operation: u32) -> &'static str {
    match operation.cast_signed() {
        1 => "create",
        2 => "delete",
        3 => "exists",
        4 => "getData",
        5 => "setData",
        6 => "getACL",
        7 => "setACL",
        8 => "getChildren",
        9 => "sync",
        12 => "getChildren2",
        13 => "check",
        14 => "multi",
        15 => "create2",
        16 => "reconfig",
        17 => "checkWatches",
        18 => "removeWatches",
        19 => "createContainer",
        21 => "createTTL",
        22 => "multiRead",
        100 => "auth",
        101 => "setWatches",
        102 => "sasl",
        103 => "getEphemerals",
        105 => "setWatches2",
        106 => "addWatch",
        107 => "whoAmI",
        -11 => "closeSession",
        _ => "request",
    }
}
