//! Which Kafka request does a response belong to? (Apache Kafka protocol guide: sizes, request header v1 and v2, response header)

use crate::head::{Head, Role};
use crate::talk::{CARRY, First, FirstBytes, Out, Side, Step, Talk, is_text, u16_at, u32_at};

/// socket.request.max.bytes.
const MESSAGE_LEN_MAX: u32 = 100 << 20;
/// Size, key, version, correlation identifier and the length of the client identifier.
const HEAD_LEN: usize = 14;
const PRODUCE: u16 = 0;
const FETCH: u16 = 1;
const API_KEY_MAX: u16 = 100;
const API_VERSION_MAX: u16 = 24;

/// The requests that clients make, by their keys.
const NAMES: [&str; 26] = [
    "Produce",
    "Fetch",
    "ListOffsets",
    "Metadata",
    "LeaderAndIsr",
    "StopReplica",
    "UpdateMetadata",
    "ControlledShutdown",
    "OffsetCommit",
    "OffsetFetch",
    "FindCoordinator",
    "JoinGroup",
    "Heartbeat",
    "LeaveGroup",
    "SyncGroup",
    "DescribeGroups",
    "ListGroups",
    "SaslHandshake",
    "ApiVersions",
    "CreateTopics",
    "DeleteTopics",
    "DeleteRecords",
    "InitProducerId",
    "OffsetForLeaderEpoch",
    "AddPartitionsToTxn",
    "AddOffsetsToTxn",
];

/// The most requests that a client may have under way, generously.
const OPEN_MAX: u32 = 1000;

/// What both sides have said so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Kafka {
    /// The client's latest correlation identifier; it counts them.
    latest: Option<u32>,
}

impl Talk for Kafka {
    // A length.
    const FIRST: FirstBytes = FirstBytes::ANY;

    fn fits(client: First<'_>, server: First<'_>) -> bool {
        let answers = u32_at(server.bytes, 4) == u32_at(client.bytes, 8) && is_sized(server);
        is_request(client) && (server.is_empty() || answers)
    }

    fn step(&mut self, side: Side, bytes: &[u8], out: &mut Out<'_>) -> Step {
        let Some(size) = u32_at(bytes, 0) else { return Step::Need };
        let smallest = if side.is_client() { HEAD_LEN as u32 - 4 } else { 4 };
        if !(smallest..=MESSAGE_LEN_MAX).contains(&size) {
            return Step::Wrong;
        }
        let len = u64::from(size) + 4;
        if !side.is_client() {
            let Some(id) = u32_at(bytes, 4) else { return Step::Need };
            if self.latest.is_some() && !self.is_open(id) {
                return Step::Wrong;
            }
            out.put(Head { id: Some(u64::from(id)), ..Head::whole(Role::Answers, "response", len) });
            return Step::Skip(len);
        }
        let (Some(key), Some(version)) = (u16_at(bytes, 4), u16_at(bytes, 6)) else { return Step::Need };
        if key > API_KEY_MAX || version > API_VERSION_MAX {
            return Step::Wrong;
        }
        // Up to where a producer says whether it wants an answer, which may not have been captured of other
        // requests; bytes after the request belong to the next one.
        let needed = if key == PRODUCE { len.min(CARRY as u64) as usize } else { HEAD_LEN };
        let Some(own) = bytes.get(..needed) else { return Step::Need };
        self.latest = u32_at(bytes, 8);
        let kind = NAMES.get(usize::from(key)).copied().unwrap_or("request");
        let asks = key != PRODUCE || !wants_no_answer(version, own);
        let role = match key {
            // The broker waits until there are enough bytes, or for fetch.max.wait.ms.
            FETCH => Role::Subscribes,
            _ if asks => Role::Asks,
            _ => Role::Pushes,
        };
        out.put(Head { id: u32_at(bytes, 8).map(u64::from), ..Head::whole(role, kind, len) });
        Step::Skip(len)
    }

    fn begins(&self, side: Side, first: First<'_>, is_turn: bool) -> bool {
        if side.is_client() {
            is_request(first)
        } else {
            is_turn && is_sized(first) && u32_at(first.bytes, 4).is_some_and(|id| self.is_open(id))
        }
    }

    fn lose(&mut self, _: Side) {}
}

impl Kafka {
    /// Whether its number is one of the latest.
    fn is_open(self, id: u32) -> bool {
        self.latest.is_some_and(|latest| latest.wrapping_sub(id) < OPEN_MAX)
    }
}

/// acks=0, which follows the client identifier and, from version 3 on, the transaction identifier.
fn wants_no_answer(version: u16, bytes: &[u8]) -> bool {
    let text_len =
        |at: usize| u16_at(bytes, at).map(|len| if len == u16::MAX { 0 } else { usize::from(len) });
    let acks = || {
        let mut at = HEAD_LEN + text_len(HEAD_LEN - 2)?;
        match version {
            0..=2 => {}
            3..=8 => at += 2 + text_len(at)?,
            // Here lengths are one higher and take a byte (request header v2): no tags, then the
            // name.
            _ => at += 2 + usize::from(bytes.get(at + 1)?.saturating_sub(1)),
        }
        u16_at(bytes, at)
    };
    acks() == Some(0)
}

/// The message fills the segment, or is longer.
fn is_sized(first: First<'_>) -> bool {
    u32_at(first.bytes, 0).is_some_and(|size| {
        (8..=MESSAGE_LEN_MAX).contains(&size)
            && u64::from(size) + 4 >= u64::from(first.len)
            && size >> 24 == 0
    })
}

/// A known key and version, and a client with a name.
fn is_request(first: First<'_>) -> bool {
    let (Some(key), Some(version)) = (u16_at(first.bytes, 4), u16_at(first.bytes, 6)) else { return false };
    let Some(name_len) = u16_at(first.bytes, HEAD_LEN - 2) else { return false };
    let name = first.bytes.get(HEAD_LEN..).unwrap_or_default();
    let named = match name_len {
        u16::MAX => true,
        // Every library names its clients; a request without a name may be a ZooKeeper session,
        // among others.
        len => (1..=255).contains(&len) && is_text(&name[..name.len().min(usize::from(len))]),
    };
    let whole = u32_at(first.bytes, 0).is_some_and(|size| u64::from(size) + 4 == u64::from(first.len));
    key <= API_KEY_MAX && version <= API_VERSION_MAX && named && whole
}
