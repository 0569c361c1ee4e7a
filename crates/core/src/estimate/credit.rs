//! Did a protocol's own flow control let its sender go on? (RFC 9113, 5.2)
//!
//! Each stream and the connection have a window of their own; DATA takes from both, and only the receiver's
//! program gives back. A sender that has used up one of them waits for it, however open TCP's window is.

use std::collections::VecDeque;

use tcpwhy_wire::{Duration, Instant};

/// The initial window (RFC 9113, 6.9.2).
const INITIAL: i64 = 65_535;
/// Streams remembered, the latest.
const STREAMS_MAX: usize = 64;
/// Grants remembered on their way to the sender.
const GRANTS_MAX: usize = 64;

/// What one side may still send.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Credit {
    connection: i64,
    initial: i64,
    /// Identifier and window.
    streams: Vec<(u64, i64)>,
    /// When each takes effect at the sender, its stream (0: the connection), and its bytes.
    grants: VecDeque<(Instant, u64, i64)>,
    /// The stream written last.
    last: u64,
}

impl Default for Credit {
    fn default() -> Self {
        let (streams, grants) = (Vec::new(), VecDeque::new());
        Self { connection: INITIAL, initial: INITIAL, streams, grants, last: 0 }
    }
}

impl Credit {
    /// The sender has written `bytes` of a stream.
    pub(crate) fn take(&mut self, stream: u64, bytes: u32) {
        self.connection -= i64::from(bytes);
        self.last = stream;
        *self.stream(stream) -= i64::from(bytes);
    }

    /// The receiver grants more, which the sender learns at `at`.
    pub(crate) fn grant(&mut self, at: Instant, stream: u64, bytes: u32) {
        if self.grants.len() == GRANTS_MAX
            && let Some(grant) = self.grants.pop_front()
        {
            self.apply(grant);
        }
        self.grants.push_back((at, stream, i64::from(bytes)));
    }

    /// Streams begin with `bytes` from now on, and open ones get the difference (RFC 9113, 6.9.2).
    pub(crate) fn begin_with(&mut self, bytes: u32) {
        let more = i64::from(bytes) - self.initial;
        self.initial = i64::from(bytes);
        self.streams.iter_mut().for_each(|(_, left)| *left += more);
    }

    /// How long a sender that wrote at `since` and next at `until` had no window in between.
    pub(crate) fn wait(&mut self, since: Instant, until: Instant) -> Duration {
        self.settle(since);
        let mut ends = since;
        while self.is_spent()
            && let Some(grant) = self.grants.front().copied().filter(|(at, ..)| *at <= until)
        {
            self.grants.pop_front();
            self.apply(grant);
            ends = grant.0;
        }
        if self.is_spent() { Duration::ZERO } else { (ends - since).at_least_zero() }
    }

    /// Heap memory in bytes.
    pub(crate) fn heap(&self) -> usize {
        self.streams.capacity() * size_of::<(u64, i64)>()
            + self.grants.capacity() * size_of::<(Instant, u64, i64)>()
    }

    fn is_spent(&self) -> bool {
        let stream = self.streams.iter().find(|(id, _)| *id == self.last);
        self.connection <= 0 || stream.is_some_and(|(_, left)| *left <= 0)
    }

    fn settle(&mut self, by: Instant) {
        while let Some(grant) = self.grants.pop_front_if(|(at, ..)| *at <= by) {
            self.apply(grant);
        }
    }

    fn apply(&mut self, (_, stream, bytes): (Instant, u64, i64)) {
        match stream {
            0 => self.connection += bytes,
            stream => *self.stream(stream) += bytes,
        }
    }

    fn stream(&mut self, id: u64) -> &mut i64 {
        let place = self.streams.iter().position(|(known, _)| *known == id).unwrap_or_else(|| {
            if self.streams.len() == STREAMS_MAX {
                self.streams.remove(0);
            }
            self.streams.push((id, self.initial));
            self.streams.len() - 1
        });
        &mut self.streams[place].1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: i64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn a_sender_waits_for_both_windows() {
        let mut credit = Credit::default();
        credit.take(1, 65_535);
        credit.grant(at(30), 1, 20_000);
        credit.grant(at(50), 0, 20_000);
        // The stream's window alone does not help.
        assert_eq!(credit.clone().wait(at(10), at(40)), Duration::ZERO);
        assert_eq!(credit.wait(at(10), at(60)), Duration::from_millis(40));
        credit.take(1, 19_999);
        assert_eq!(credit.wait(at(60), at(90)), Duration::ZERO, "a byte is left");
    }

    #[test]
    fn another_stream_has_a_window_of_its_own() {
        let mut credit = Credit::default();
        credit.begin_with(10_000);
        credit.take(1, 10_000);
        assert!(credit.is_spent());
        credit.take(3, 5_000);
        assert!(!credit.is_spent());
        credit.begin_with(5_000);
        assert!(credit.is_spent(), "open streams lose the difference");
    }
}
