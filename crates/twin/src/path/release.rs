//! Which held packet is next? The one due first; of those due at the same time, the first to
//! arrive.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use tcpwhy_wire::Instant;

use super::{Output, Packet};

/// A packet due at `packet.at`, the `order`-th to arrive.
#[derive(Debug)]
pub(super) struct Due {
    pub(super) order: u64,
    pub(super) packet: Packet,
}

/// The next packet that is due by now.
pub(super) fn release(held: &mut BinaryHeap<Reverse<Due>>, now: Instant) -> Output {
    match held.peek() {
        None => Output::Nothing,
        Some(Reverse(first)) if first.packet.at > now => Output::Wait(first.packet.at),
        Some(_) => held.pop().map_or(Output::Nothing, |Reverse(first)| Output::Packet(first.packet)),
    }
}

impl Due {
    fn key(&self) -> (Instant, u64) {
        (self.packet.at, self.order)
    }
}

impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Due {}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Due {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}
