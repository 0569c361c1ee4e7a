//! How much of the memory that was allowed may each kind of thing take?
//!
//! What is counted here is the same however many shards there are: numbers of things and what their connections take, not what
//! a shard's tables have room for. The reader, the segments of an epoch and the tables' room get the last quarter.

use crate::connection::Connection;
use crate::epoch::options::Options;
use crate::flow::path_memory::PathMemory;

/// A connection takes so many bytes; one with more under way counts for several.
pub(crate) const CONNECTION: usize = size_of::<Connection>();
/// What is remembered of a finished one: about so many bytes, with its places in the table and among those that linger.
const FINISHED: usize = 256;
/// A pair of hosts whose path is known, in a map that is half full.
const WAY: usize = 2 * (size_of::<PathMemory>() + 48);
/// Pairs of hosts whose paths are remembered at most, or as many more for a moment as an epoch may bring.
const WAYS_MAX: usize = 65_536;

/// What may be kept, in all shards together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    bytes: usize,
    connections_max: usize,
}

impl Budget {
    pub(crate) fn new(options: &Options) -> Self {
        Self { bytes: options.memory, connections_max: options.max_connections }
    }

    /// What connections and the packets and exchanges of a listed one may take together.
    fn shared(self) -> usize {
        self.bytes / 4 * 3
    }

    /// Connections that may be open where lists take so many bytes: those give way to nothing, for they were asked for.
    pub(crate) fn connections(self, listed_bytes: usize) -> usize {
        let most = self.shared().saturating_sub(listed_bytes);
        (most.clamp(self.bytes / 8, self.bytes / 8 * 5) / CONNECTION).clamp(1, self.connections_max.max(1))
    }

    /// What the lists of one connection may take while so many bytes are in open ones.
    pub(crate) fn lists(self, open_bytes: usize) -> usize {
        self.shared().saturating_sub(open_bytes).max(self.bytes / 16)
    }

    /// Finished connections that may linger.
    pub(crate) fn finished(self) -> usize {
        self.bytes / 16 / FINISHED
    }

    /// Pairs of hosts in both generations of path memories.
    pub(crate) fn path_memories(self) -> usize {
        WAYS_MAX.min(self.bytes / 8 / WAY)
    }
}
