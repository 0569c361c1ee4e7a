//! How many connections can the segments of an epoch have begun?
//!
//! Any segment may begin one in a capture that starts late, but between the same two endpoints only one
//! is open at a time. So an epoch is as long as it pays, unless it first has segments of as many
//! connections as there may be room for.

/// Room for this many connections is kept from epoch to epoch.
const ROOM_MIN: usize = 1 << 10;

const IS_SEEN: u64 = 1;
const IS_DEAF: u64 = 2;

/// What is known of a connection before its segment is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Known {
    /// It was the last one that there is room for.
    pub is_last: bool,
    /// Its protocol is not read, see [`NewConnections::learn_deaf`].
    pub is_deaf: bool,
}

/// The connections with segments in an epoch, each by a 62-bit hash of its endpoints under a key that
/// the capture's author does not know: among so few, no two share a hash.
#[derive(Clone, Debug)]
pub(crate) struct NewConnections {
    /// Open addressing, linear probing, at most half full, so that it stays in the near caches; 0 is an
    /// empty place. In others the lowest bit is 1, and the next one says that the connection is not
    /// read.
    seen: Vec<u64>,
    count: usize,
    most: usize,
}

impl NewConnections {
    pub(crate) fn new() -> Self {
        Self { seen: Vec::new(), count: 0, most: usize::MAX }
    }

    /// Begins an epoch that may have segments of so many connections; `None` needs no counting.
    pub(crate) fn begin(&mut self, most: Option<usize>) {
        // As many again are likely.
        let room = (2 * self.count).next_power_of_two().max(2 * ROOM_MIN);
        self.seen.clear();
        self.seen.resize(most.map_or(0, |_| room), 0);
        (self.count, self.most) = (0, most.unwrap_or(usize::MAX));
    }

    /// Notes a segment by the hash of its endpoints.
    #[inline]
    pub(crate) fn on_segment(&mut self, ends: u64) -> Known {
        let Some(mask) = self.seen.len().checked_sub(1) else { return Known::default() };
        let key = key(ends);
        let mut i = (ends >> 32) as usize;
        while self.seen[i & mask] & !IS_DEAF != key {
            if self.seen[i & mask] == 0 {
                self.seen[i & mask] = key;
                return Known { is_last: self.on_new(), is_deaf: false };
            }
            i += 1;
        }
        Known { is_last: false, is_deaf: self.seen[i & mask] & IS_DEAF != 0 }
    }

    /// Notes until further notice whether a connection with a segment in this epoch is not read, so
    /// that its payload need not be looked up.
    #[cold]
    pub(crate) fn learn_deaf(&mut self, ends: u64, is_deaf: bool) {
        let Some(mask) = self.seen.len().checked_sub(1) else { return };
        let key = key(ends);
        let mut i = (ends >> 32) as usize;
        while self.seen[i & mask] != 0 {
            if self.seen[i & mask] & !IS_DEAF == key {
                self.seen[i & mask] = key | if is_deaf { IS_DEAF } else { 0 };
                return;
            }
            i += 1;
        }
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

fn key(ends: u64) -> u64 {
    ends & !IS_DEAF | IS_SEEN
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::hash::Keys;
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
                    last = new_connections.on_segment(ends(&keys, connections, connections % 3 == 0)).is_last;
                    assert!(!new_connections.on_segment(ends(&keys, connections.div_ceil(2), true)).is_last);
                    assert!(!new_connections.on_segment(ends(&keys, connections, false)).is_last);
                }
                assert_eq!(Some(usize::from(connections)), most);
            }
            new_connections.begin(None);
            assert!((0..10_000).all(|port| !new_connections.on_segment(ends(&keys, port, false)).is_last));
        }
    }
    #[test]
    fn knows_for_an_epoch_whom_nobody_listens_to() {
        let (keys, mut new_connections) = (Keys::new(7), NewConnections::new());
        new_connections.begin(Some(40_000));
        for port in 0..30_000 {
            new_connections.on_segment(ends(&keys, port, false));
            new_connections.learn_deaf(ends(&keys, port, true), port % 3 > 0);
        }
        // Never seen, so that nothing is known of them either.
        (30_000..31_000).for_each(|port| new_connections.learn_deaf(ends(&keys, port, false), true));
        (0..30_000).step_by(2).for_each(|port| new_connections.learn_deaf(ends(&keys, port, false), false));
        for port in 0..31_000 {
            let is_deaf = port < 30_000 && port % 3 > 0 && port % 2 > 0;
            assert_eq!(new_connections.on_segment(ends(&keys, port, port % 5 > 0)).is_deaf, is_deaf);
        }
        new_connections.begin(Some(40_000));
        assert!((0..30_000).all(|port| !new_connections.on_segment(ends(&keys, port, false)).is_deaf));
    }
}
