//! What do shards and their coordinator tell each other between epochs?

use tcpwhy_wire::{Duration, Endpoint, Instant};

use crate::tally::service::Service;
use crate::tally::tallied::Tallied;
use crate::tally::thinning::Kept;

/// How long an epoch is.
#[derive(Clone, Copy, Debug)]
pub struct Epoch {
    pub(crate) segments: usize,
    /// It ends earlier if its segments belong to this many different connections.
    pub(crate) connections: usize,
}

/// When an epoch ended, and what the front knows then.
#[derive(Clone, Copy, Debug)]
pub struct End {
    /// The capture's time, and its last packet.
    pub(crate) now: Instant,
    pub(crate) packet: u64,
    /// Bytes for the reading of conversations.
    pub(crate) heard: usize,
}

/// A shard's report at the end of an epoch.
#[derive(Clone, Debug, Default)]
pub struct Roll {
    /// First packets of the connections that it has begun, in order.
    pub(crate) opened: Vec<u64>,
    /// Connections open now, and their heap bytes.
    pub(crate) open: usize,
    pub(crate) heap: usize,
    /// Pairs of hosts whose paths were used since the last generation, and all that are known.
    pub(crate) path_memories: usize,
    pub(crate) ways: usize,
    /// On request: the last time and the first packet of each open connection, and its heap bytes.
    pub(crate) ages: Vec<((Instant, u64), usize)>,
    /// Connections that have finished in this epoch.
    pub(crate) finished: usize,
    /// Exchanges kept of numbered connections, and the size of the lists of the one connection that was
    /// asked for.
    pub(crate) listed: u64,
    pub(crate) listed_bytes: usize,
    /// How many of them each level of thinning keeps, and of those whose connections have no number
    /// yet.
    pub(crate) kept: [Kept; 2],
    /// Servers with their first bill.
    pub(crate) servers: Vec<Endpoint>,
    /// On request: the cost of each of its servers.
    pub(crate) costs: Vec<(Endpoint, Duration)>,
    pub(crate) tells_costs: bool,
    /// The findings at its servers so far.
    pub(crate) found: Tallied,
    /// Findings of servers that a shard would have too many of.
    pub(crate) services: Vec<Service>,
}

/// What a shard is told about an epoch.
#[derive(Clone, Debug, Default)]
pub struct Orders {
    /// Numbers for the connections in its roll.
    pub(crate) ids: Vec<u64>,
    /// Connections numbered so far in all shards.
    pub(crate) count: u64,
    /// The capture's time, and its last packet.
    pub(crate) now: Instant,
    pub(crate) packet: u64,
    /// Give up connections up to this age.
    pub(crate) evicted: Option<(Instant, u64)>,
    /// Forget connections that finished before this epoch.
    pub(crate) finished_before: u32,
    /// Exchanges that close from now on are no longer listed.
    pub(crate) listed_enough: bool,
    /// Lists keep what this level keeps.
    pub(crate) level: u32,
    /// What the lists of the one connection may take.
    pub(crate) lists_bytes: usize,
    /// A generation of path memories is over.
    pub(crate) memories_age: bool,
    /// Servers with findings of their own in all shards.
    pub(crate) servers_max: usize,
    /// Let these servers share their findings.
    pub(crate) given_up: Vec<Endpoint>,
    pub(crate) asked: Asked,
}

/// What a shard is to report next time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Asked {
    pub(crate) ages: bool,
    pub(crate) costs: bool,
}
