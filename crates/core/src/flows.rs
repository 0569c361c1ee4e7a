//! How many connections can the segments of an epoch have begun?
//!
//! Any segment may begin one where the capture starts late, but between the same two endpoints one is open at a time.
//! So an epoch is as long as pays until it has segments of as many connections as there may be room for.

use tcpwhy_wire::Segment;

use crate::table::Keys;

/// The connections that an epoch has segments of, each by 64 bits that its endpoints are mixed to under a key which the
/// capture's author does not know: no two of so few share them.
#[derive(Clone, Debug)]
pub(crate) struct Flows {
    keys: Keys,
    /// Open addressing, linear probing; 0 where there is none.
    seen: Vec<u64>,
    left: usize,
}

impl Flows {
    pub(crate) fn new(seed: u64) -> Self {
        Self { keys: Keys::new(seed), seen: Vec::new(), left: usize::MAX }
    }

    /// An epoch begins that may have segments of so many connections; any number needs no counting.
    pub(crate) fn begin(&mut self, most: Option<usize>) {
        self.seen.clear();
        if let Some(most) = most {
            self.seen.resize((most + most / 2).next_power_of_two(), 0);
        }
        self.left = most.unwrap_or(usize::MAX);
    }

    /// Takes note of a segment. Returns whether its connection was the last one that there is room for.
    #[inline]
    pub(crate) fn on_segment(&mut self, segment: &Segment) -> bool {
        let Some(mask) = self.seen.len().checked_sub(1) else { return false };
        let flow = self.keys.mix(segment.src, segment.dst) | 1;
        let mut i = (flow >> 32) as usize;
        while self.seen[i & mask] != flow {
            if self.seen[i & mask] == 0 {
                self.seen[i & mask] = flow;
                self.left -= 1;
                return self.left == 0;
            }
            i += 1;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcpwhy_wire::{Endpoint, Flags, Instant, Seq, TcpOptions};

    fn segment(client: u16, back: bool) -> Segment {
        let (client, server) = (Endpoint::v4([10, 0, 0, 1], client), Endpoint::v4([10, 0, 0, 2], 80));
        let (src, dst) = if back { (server, client) } else { (client, server) };
        Segment {
            packet: 1,
            at: Instant::from_nanos(0),
            src,
            dst,
            seq: Seq(0),
            ack: Seq(0),
            window: 0,
            flags: Flags(Flags::ACK),
            payload_len: 0,
            options: TcpOptions::default(),
            ip_id: None,
            ttl: 64,
        }
    }

    #[test]
    fn counts_each_connection_once_whoever_speaks() {
        for seed in 0..20 {
            let mut flows = Flows::new(seed);
            for most in [Some(1), Some(100), Some(37_500)] {
                flows.begin(most);
                let (mut connections, mut last) = (0, false);
                while !last {
                    connections += 1;
                    last = flows.on_segment(&segment(connections, connections % 3 == 0));
                    assert!(!flows.on_segment(&segment(connections.div_ceil(2), true)));
                    assert!(!flows.on_segment(&segment(connections, false)));
                }
                assert_eq!(Some(usize::from(connections)), most);
            }
            flows.begin(None);
            assert!((0..10_000).all(|port| !flows.on_segment(&segment(port, false))));
        }
    }
}
