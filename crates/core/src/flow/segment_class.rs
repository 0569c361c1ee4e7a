//! What is a data segment in the sequence space of its direction, and what does it say about the queue behind it?

use tcpwhy_wire::{Duration, Instant, Seq};

/// What a segment says about its sender's queue behind it.
///
/// Stacks set PSH on the last segment of their queue (RFC 9293, 3.9.1), so a segment without it has more behind it.
/// The other way round it proves less: Linux also sets it on every segment that TSO splits (since 5.4,
/// __tcp_transmit_skb) and every half window of a long write (forced_push, net/ipv4/tcp.c).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SendQueue {
    /// Nothing was behind it.
    Emptied,
    /// Nothing can be said.
    Unknown,
    /// More was behind it.
    More,
}

/// The data segment before the present one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LastData {
    pub at: Instant,
    pub packet: u64,
    /// What it says about the queue behind it.
    pub queue: SendQueue,
    pub len: u32,
    /// Bytes that passed the capture and were not acknowledged there, this segment included, and in how many segments.
    pub flight: u32,
    pub flight_segments: u16,
    /// The sender's clock.
    pub stamp: Option<u32>,
    /// What its sender had been acknowledged when it left.
    pub snd_una: Option<Seq>,
    /// How many segments, this one included, it has sent since it heard of that.
    pub unheard: u32,
    /// How long after the one before it.
    pub spacing: Duration,
}

impl LastData {
    /// `unheard`, if `snd_una` is still all that its sender has heard of.
    pub(crate) fn unheard_with(&self, snd_una: Option<Seq>) -> u32 {
        if self.snd_una == snd_una { self.unheard } else { 0 }
    }
}

/// What a data segment is in the sequence space of its direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SegmentClass {
    /// Bytes never seen before, following or leaving a hole behind the ones seen.
    New,
    /// Bytes seen before and not yet acknowledged when they passed again.
    Retransmission { original_at: Instant },
    /// Bytes not seen so far, older than others already seen: out of order, or a repair of what was lost before the capture.
    OutOfOrderOrRepair { noticed_at: Instant },
    /// Bytes already acknowledged: nothing waits for them.
    Duplicate,
    /// Keep-alive or window probe: a byte just below the window (RFC 9293, 3.8.6.1).
    Probe,
}
