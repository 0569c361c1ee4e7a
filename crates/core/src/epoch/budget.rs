//! How much of the allowed memory may each kind of data take?
//!
//! Everything counted here is the same with any number of shards: numbers of items and their maximum
//! sizes, not the capacity of a shard's tables. Open connections get what the rest leaves them. Seven
//! of 32 parts are for an epoch's segments, spare table capacity, the allocator and the program itself
//! (`crates/tcpwhy/tests/memory.rs` compares).

use crate::connection::Connection;
use crate::epoch::options::Options;
use crate::flow::path_memory::PathMemory;
use crate::tally::ledger::LISTED;
use crate::tally::service::Found;
use crate::tally::tallied::Tallied;
use crate::tally::totals::ConnectionTotals;
use crate::words::limits::SERVERS_MAX;
use crate::words::report::{self, TotalLine};

/// The size of a connection; one with more under way counts for several.
pub(crate) const CONNECTION: usize = size_of::<Connection>();
/// A listed connection, in a list that is half full, with the lines of its bill and its place among
/// open ones.
const LISTED_CONNECTION: usize =
    2 * (size_of::<report::Connection>() + size_of::<(u64, ConnectionTotals)>()) + 4 * size_of::<TotalLine>();
/// At most this many connections have some of their exchanges listed.
const THINNED_OF: u64 = 200_000;
/// A finished connection as it is remembered, with its places in the table and among those that linger.
const FINISHED: usize = 256;
/// A pair of hosts whose path is known, in a map that is half full.
const WAY: usize = 2 * (size_of::<PathMemory>() + 48);
/// Pairs of hosts whose paths are remembered at most, not counting those that one epoch adds.
const WAYS_MAX: usize = 65_536;
/// A server, a cause found there with the packets that show it, one value of its spread, and the values
/// of an octave.
const SERVER: usize = 512;
const FOUND: usize = size_of::<Found>() + 256;
const VALUE: usize = 12;
const OCTAVE: usize = 512;
/// At least this many servers have findings of their own, however little memory there is.
const SERVERS_LEAST: usize = 64;
/// A server whose clients are in many shards is known in as many until they hand it over.
const SHARDS: usize = 32;

/// What all shards together may keep.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    bytes: usize,
    connections_max: usize,
}

/// What all shards together keep besides open connections.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Others {
    /// Bytes for the reading of conversations, and for lists.
    pub heard: usize,
    pub lists: usize,
    /// Pairs of hosts whose paths are known, and finished connections.
    pub ways: usize,
    pub finished: usize,
    /// Servers, what was found there, and the connections that may have found it.
    pub servers: usize,
    pub found: Tallied,
    pub open: usize,
}

/// The size of one of so many servers with so many findings: most have the same causes.
fn server(found: Tallied, servers: usize) -> usize {
    let causes = found.causes.count_ones() as usize;
    let each = found.values as usize * VALUE / servers.max(1);
    SERVER + causes * FOUND + each.min(causes * found.octaves.count_ones() as usize * OCTAVE)
}

impl Others {
    /// The size of everything in bytes.
    pub(crate) fn bytes(&self) -> usize {
        // In the shards, and where they hand servers over.
        let services = 2 * self.servers * server(self.found, self.servers);
        let known = self.open.min(SHARDS * self.servers) * (SERVER + FOUND);
        self.heard + self.lists + self.ways * WAY + self.finished * FINISHED + services + known
    }
}

impl Budget {
    pub(crate) fn new(options: &Options) -> Self {
        Self { bytes: options.memory, connections_max: options.max_connections }
    }

    /// The bytes that all counted data may take.
    fn counted(self) -> usize {
        self.bytes / 32 * 25
    }

    /// Connections that may be open, briefly a quarter more, beside these other data. Lists are not cut
    /// for them until they are full, for they were asked for.
    pub(crate) fn connections(self, others: &Others) -> usize {
        let most = self.counted().saturating_sub(others.bytes()) / 5 * 4;
        (most.clamp(self.bytes / 8, self.bytes / 8 * 5) / CONNECTION).clamp(1, self.connections_max.max(1))
    }

    /// What the lists of one connection may take beside open connections and the other data.
    pub(crate) fn lists(self, open_bytes: usize, others: &Others) -> usize {
        let others = others.bytes() - others.lists;
        self.counted().saturating_sub(open_bytes + others).max(self.bytes / 16)
    }

    /// The size of lists of so many exchanges and connections.
    pub(crate) fn listed(exchanges: u64, connections: u64) -> usize {
        exchanges as usize * LISTED + connections as usize * LISTED_CONNECTION
    }

    /// Whether lists are as large as they may be: later exchanges are counted but not listed.
    pub(crate) fn lists_are_full(self, listed_bytes: usize) -> bool {
        listed_bytes >= self.bytes / 8 * 3
    }

    /// Connections that may have some of their exchanges listed.
    pub(crate) fn thinned_of(memory: usize) -> u64 {
        THINNED_OF.min((memory / 16 * 5 / LISTED_CONNECTION) as u64)
    }

    /// Finished connections that may linger.
    pub(crate) fn finished(self) -> usize {
        self.bytes / 16 / FINISHED
    }

    /// Pairs of hosts in both generations of path memories.
    pub(crate) fn path_memories(self) -> usize {
        WAYS_MAX.min(self.bytes / 8 / WAY)
    }

    /// Servers with findings of their own.
    pub(crate) fn servers(self, servers: usize, found: Tallied) -> usize {
        (self.bytes / 8 / (2 * server(found, servers))).clamp(SERVERS_LEAST, SERVERS_MAX)
    }
}
