//! By how much does the delay vary? A random extra delay for each packet, uniform from zero to a limit.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use tcpwhy_wire::{Duration, Instant};

use super::release::{Due, release};
use super::{Output, Packet, Stream};

/// What happens to a packet whose delay would let it overtake an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// It waits, as on a single link.
    Kept,
    /// It overtakes, as between routes of different length.
    Free,
}

/// Holds each packet for a random time.
#[derive(Debug)]
pub struct Jitter {
    limit: Duration,
    order: Order,
    stream: Stream,
    /// When the latest packet so far is due.
    latest: Instant,
    arrivals: u64,
    held: BinaryHeap<Reverse<Due>>,
}

impl Jitter {
    /// Each packet leaves between zero and `limit` after it arrived.
    pub fn new(limit: Duration, order: Order, stream: Stream) -> Self {
        Self { limit, order, stream, latest: Instant::MIN, arrivals: 0, held: BinaryHeap::new() }
    }

    /// See [`super::Element::process`].
    pub fn process(&mut self, packet: Option<Packet>, now: Instant) -> Output {
        if let Some(mut packet) = packet {
            let extra = self.stream.below(self.limit.as_nanos().max(0).unsigned_abs().saturating_add(1));
            packet.at = packet.at + Duration::from_nanos(extra as i64);
            if self.order == Order::Kept {
                packet.at = packet.at.max(self.latest);
                self.latest = packet.at;
            }
            self.arrivals += 1;
            self.held.push(Reverse(Due { order: self.arrivals, packet }));
        }
        release(&mut self.held, now)
    }

    /// Packets inside.
    pub fn queued(&self) -> usize {
        self.held.len()
    }
}
