//! How many connections can the segments of an epoch have begun?
//!
//! Any segment may begin one where the capture starts late, but between the same two endpoints one is open at a time.
//! So an epoch is as long as pays until it has segments of as many connections as there may be room for.

/// Room for this many connections is kept from epoch to epoch.
const ROOM_MIN: usize = 1 << 10;

/// The connections that an epoch has segments of, each by 64 bits that its endpoints are mixed to under a key which the
/// capture's author does not know: no two of so few share them.
#[derive(Clone, Debug)]
pub(crate) struct NewConnections {
    /// Open addressing, linear probing, at most half full, so that it stays in the near caches; 0 where there is none.
    seen: Vec<u64>,
    count: usize,
    most: usize,
}

impl NewConnections {
    pub(crate) fn new() -> Self {
        Self { seen: Vec::new(), count: 0, most: usize::MAX }
    }

    /// An epoch begins that may have segments of so many connections; any number needs no counting.
    pub(crate) fn begin(&mut self, most: Option<usize>) {
        // As many again are likely.
        let room = (2 * self.count).next_power_of_two().max(2 * ROOM_MIN);
        self.seen.clear();
        self.seen.resize(most.map_or(0, |_| room), 0);
        (self.count, self.most) = (0, most.unwrap_or(usize::MAX));
    }

    /// Takes note of a segment by what its endpoints are mixed to. Returns whether its connection was the last one that
    /// there is room for.
    #[inline]
    pub(crate) fn on_segment(&mut self, ends: u64) -> bool {
        let Some(mask) = self.seen.len().checked_sub(1) else { return false };
        let key = ends | 1;
        let mut i = (key >> 32) as usize;
        while self.seen[i & mask] != key {
            if self.seen[i & mask] == 0 {
                self.seen[i & mask] = key;
                return self.on_new();
            }
            i += 1;
        }
        false
    }

    #[cold]
    fn on_new(&mut self) -> bool {
        self.count += 1;
        if 2 * self.count > self.seen.len() {
            let old = std::mem::take(&mut self.seen);
            self.seen.resize(2 * old.len(), 0);
            let mask = self.seen.len() - 1;
            for key in old.into_iter().filter(|key| *key != 0) {
                let mut i = (key >> 32) as usize;
                while self.seen[i & mask] != 0 {
                    i += 1;
                }
                self.seen[i & mask] = key;
            }
        }
        self.count == self.most
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::epoch::hash::Keys;
    use tcpwhy_wire::Endpoint;

    fn ends(keys: &Keys, client: u16, back: bool) -> u64 {
        let (client, server) = (Endpoint::v4([10, 0, 0, 1], client), Endpoint::v4([10, 0, 0, 2], 80));
        let mixed = if back { keys.mix(server, client) } else { keys.mix(client, server) };
        mixed.ends
    }

    #[test]
    fn counts_each_connection_once_whoever_speaks() {
        for seed in 0..20 {
            let (keys, mut new_connections) = (Keys::new(seed), NewConnections::new());
            for most in [Some(1), Some(100), Some(37_500)] {
                new_connections.begin(most);
                let (mut connections, mut last) = (0, false);
                while !last {
                    connections += 1;
                    last = new_connections.on_segment(ends(&keys, connections, connections % 3 == 0));
                    assert!(!new_connections.on_segment(ends(&keys, connections.div_ceil(2), true)));
                    assert!(!new_connections.on_segment(ends(&keys, connections, false)));
                }
                assert_eq!(Some(usize::from(connections)), most);
            }
            new_connections.begin(None);
            assert!((0..10_000).all(|port| !new_connections.on_segment(ends(&keys, port, false))));
        }
    }
}
