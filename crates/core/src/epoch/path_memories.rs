//! What is remembered of the paths between pairs of hosts, and for how long?
//!
//! If there are too many, the pairs unused for longest are forgotten: each is in one of two
//! generations, and as soon as the younger ones of all shards together take half of the room, they
//! replace the older ones. That is settled between epochs: what a pair of hosts knows does not depend
//! on which others share its shard.

use std::collections::HashMap;

use tcpwhy_wire::Endpoint;

use crate::connection::Connection;
use crate::flow::hash::Keys;
use crate::flow::path_memory::PathMemory;

type Known = HashMap<(u128, u128), PathMemory, Keys>;

/// The paths between pairs of hosts in one shard.
#[derive(Clone, Debug)]
pub(crate) struct PathMemories {
    younger: Known,
    older: Known,
}

impl PathMemories {
    pub(crate) fn new(seed: u64) -> Self {
        let [younger, older] = [(); 2].map(|()| HashMap::with_hasher(Keys::new(seed)));
        Self { younger, older }
    }

    /// The number of pairs used since the last generation.
    pub(crate) fn younger(&self) -> usize {
        self.younger.len()
    }

    /// The number of all known pairs.
    pub(crate) fn len(&self) -> usize {
        self.younger.len() + self.older.len()
    }

    /// Ends a generation.
    pub(crate) fn age(&mut self) {
        let empty = HashMap::with_hasher(*self.younger.hasher());
        self.older = std::mem::replace(&mut self.younger, empty);
    }

    /// Whether the server is known to have accepted a connection from the client's host at this port.
    pub(crate) fn accepts(&self, client: Endpoint, server: Endpoint) -> bool {
        let hosts = (client.addr, server.addr);
        let known = self.younger.get(&hosts).or_else(|| self.older.get(&hosts));
        known.is_some_and(|known| known.accepts(server.port))
    }

    /// What is known between these hosts, by connections of the one to the other.
    #[cold]
    fn known(&self, hosts: (u128, u128)) -> Option<PathMemory> {
        self.younger.get(&hosts).or_else(|| self.older.get(&hosts)).copied()
    }

    /// Shares what one connection learns about its path with all connections between the hosts. One that nobody answers takes what those in the
    /// opposite direction have shown.
    pub(crate) fn share(&mut self, connection: &mut Connection) {
        let [client, server] = connection.ends.get();
        let hosts = (client.addr, server.addr);
        let turned = if connection.failure().is_some() { self.known((hosts.1, hosts.0)) } else { None };
        let older = &mut self.older;
        let known = self.younger.entry(hosts).or_insert_with(|| older.remove(&hosts).unwrap_or_default());
        if !connection.assumed && connection.failure().is_none() {
            known.on_accepted(server.port);
        }
        let told = connection.told_distances();
        let opened = connection.opened_distances();
        known.share(&mut connection.path_memory, told, opened, connection.now);
        if let Some(turned) = turned {
            connection.path_memory.take_turned(&turned);
        }
        connection.take_known_path();
        connection.path_memory.news = false; // what it was just told is no news
    }
}
