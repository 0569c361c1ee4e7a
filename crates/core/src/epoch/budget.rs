//! How much of the memory that was allowed may each kind of thing take?
//!
//! What is counted here is the same however many shards there are: numbers of things and what they take at most, not what a
//! shard's tables have room for. Open connections get what the others leave them. Of 32 parts seven are for an epoch's
//! segments, the tables' room, the allocator's and the program itself (`crates/tcpwhy/tests/memory.rs` compares).

use crate::connection::Connection;
use crate::epoch::options::Options;
use crate::flow::path_memory::PathMemory;
use crate::tally::ledger::LISTED;
use crate::tally::service::Found;
use crate::tally::tallied::Tallied;
use crate::tally::totals::ConnectionTotals;
use crate::words::limits::SERVERS_MAX;
use crate::words::report::{self, TotalLine};

/// A connection takes so many bytes; one with more under way counts for several.
pub(crate) const CONNECTION: usize = size_of::<Connection>();
/// One that is listed, in a list that is half full, with the lines of its bill, and its place among those that go on.
const LISTED_CONNECTION: usize =
    2 * (size_of::<report::Connection>() + size_of::<(u64, ConnectionTotals)>()) + 4 * size_of::<TotalLine>();
/// Connections of which some exchanges are listed at most.
const THINNED_OF: u64 = 200_000;
/// What is remembered of a finished one: about so many bytes, with its places in the table and among those that linger.
const FINISHED: usize = 256;
/// A pair of hosts whose path is known, in a map that is half full.
const WAY: usize = 2 * (size_of::<PathMemory>() + 48);
/// Pairs of hosts whose paths are remembered at most, or as many more for a moment as an epoch may bring.
const WAYS_MAX: usize = 65_536;
/// A server, a cause that was found there with the packets that show it, a value of its spread, and the values of an octave.
const SERVER: usize = 512;
const FOUND: usize = size_of::<Found>() + 256;
const VALUE: usize = 12;
const OCTAVE: usize = 512;
/// Servers with findings of their own, however little room there is.
const SERVERS_LEAST: usize = 64;
/// A server whose clients are in many shards is known in many until they hand it over.
const SHARDS: usize = 32;

/// What may be kept, in all shards together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    bytes: usize,
    connections_max: usize,
}

/// What there is besides open connections, in all shards together.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Others {
    /// Bytes of what is heard of conversations, and of lists.
    pub heard: usize,
    pub lists: usize,
    /// Pairs of hosts whose paths are known, and connections that have finished.
    pub ways: usize,
    pub finished: usize,
    /// Servers, what was found there, and in how many connections that may be.
    pub servers: usize,
    pub found: Tallied,
    pub open: usize,
}

/// What one of so many servers takes where so much was found: most have the same causes.
fn server(found: Tallied, servers: usize) -> usize {
    let causes = found.causes.count_ones() as usize;
    let each = found.values as usize * VALUE / servers.max(1);
    SERVER + causes * FOUND + each.min(causes * found.octaves.count_ones() as usize * OCTAVE)
}

impl Others {
    /// Bytes that all of it takes.
    pub(crate) fn bytes(&self) -> usize {
        // In the shards, and where they hand them over.
        let services = 2 * self.servers * server(self.found, self.servers);
        let known = self.open.min(SHARDS * self.servers) * (SERVER + FOUND);
        self.heard + self.lists + self.ways * WAY + self.finished * FINISHED + services + known
    }
}

impl Budget {
    pub(crate) fn new(options: &Options) -> Self {
        Self { bytes: options.memory, connections_max: options.max_connections }
    }

    /// What is counted may take together.
    fn counted(self) -> usize {
        self.bytes / 32 * 25
    }

    /// Connections that may be open, or a quarter more for a moment, beside these others: lists give way to nothing before they are
    /// full, for they were asked for.
    pub(crate) fn connections(self, others: &Others) -> usize {
        let most = self.counted().saturating_sub(others.bytes()) / 5 * 4;
        (most.clamp(self.bytes / 8, self.bytes / 8 * 5) / CONNECTION).clamp(1, self.connections_max.max(1))
    }

    /// What the lists of one connection may take beside open ones and these others.
    pub(crate) fn lists(self, open_bytes: usize, others: &Others) -> usize {
        let others = others.bytes() - others.lists;
        self.counted().saturating_sub(open_bytes + others).max(self.bytes / 16)
    }

    /// What lists of so many exchanges and connections take.
    pub(crate) fn listed(exchanges: u64, connections: u64) -> usize {
        exchanges as usize * LISTED + connections as usize * LISTED_CONNECTION
    }

    /// Whether lists take as much as they may: what comes later is counted, and not listed.
    pub(crate) fn lists_are_full(self, listed_bytes: usize) -> bool {
        listed_bytes >= self.bytes / 8 * 3
    }

    /// Connections of which some exchanges may be listed.
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
