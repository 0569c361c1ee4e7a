//! How does what is kept of a connection come into the near caches?
//!
//! Several kilobytes of it are asked for line by line while its first segment of an epoch is worked on, and each line
//! that comes from afar is waited for. Whoever reads a little of every part beforehand waits for all of them at once. The
//! sums mean nothing: they are there so that the compiler does read.

use tcpwhy_wire::{Duration, Instant};

use super::Flow;

impl Flow {
    #[inline]
    pub(crate) fn touch(&self) -> u64 {
        let rates = [true, false].map(|near| self.rate(near).map_or(0, |rate| rate.time_for(1).as_nanos()));
        let clock = self.clock.base().map_or(0, Duration::as_nanos);
        let times = rates[0] ^ rates[1] ^ clock ^ self.link.busy_from(Instant::MAX).as_nanos();
        let right_edge = self.right_edge_seen().map_or(0, |right_edge| right_edge.0);
        let numbers =
            u64::from(self.view.window ^ self.window_max ^ right_edge ^ u32::from(self.missed_since_data));
        let last = self.last_data.as_ref().map_or(0, |last| last.packet);
        times.cast_unsigned() ^ numbers ^ last ^ self.bytes ^ self.sent.len() as u64
    }
}
