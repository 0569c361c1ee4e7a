//! Where does a data segment lie in its direction's sequence space, and what does it say about the send
//! queue after it?

use tcpwhy_wire::{Duration, Instant, Seq};

/// What a segment says about its sender's queue after it.
///
/// Stacks set PSH on the last segment of the send queue (RFC 9293, 3.9.1), so a segment without it has more
/// after it. The converse proves less: Linux also sets PSH on every segment that TSO splits (since 5.4,
/// __tcp_transmit_skb) and on every half window of a long write (forced_push, net/ipv4/tcp.c).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SendQueue {
    /// Nothing was left after it.
    Emptied,
    /// Cannot be told.
    Unknown,
    /// More was queued after it.
    More,
}

/// The data segment before the present one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LastData {
    pub at: Instant,
    pub packet: u64,
    /// What it says about the queue after it.
    pub queue: SendQueue,
    pub len: u32,
    /// Bytes in flight at the capture, this segment included, and in how many segments.
    pub flight: u32,
    pub flight_segments: u16,
    /// The sender's TSval.
    pub stamp: Option<u32>,
    /// What the sender knew to be acknowledged when it left.
    pub snd_una: Option<Seq>,
    /// How many segments the sender has sent since it learned that, this one included.
    pub unheard: u32,
    /// Time since the data segment before it.
    pub spacing: Duration,
}

impl LastData {
    /// `unheard`, if `snd_una` is still the latest that its sender has heard of.
    pub(crate) fn unheard_with(&self, snd_una: Option<Seq>) -> u32 {
        if self.snd_una == snd_una { self.unheard } else { 0 }
    }
}

/// What a data segment is in the sequence space of its direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SegmentClass {
    /// Bytes not seen before, right after those seen or leaving a hole.
    New,
    /// Bytes seen before and not acknowledged when they passed again.
    Retransmission { original_at: Instant },
    /// Bytes not seen before, below others already seen: out of order, or a retransmission of what was lost
    /// before the capture.
    OutOfOrderOrRepair { noticed_at: Instant },
    /// Bytes already acknowledged: nothing waits for them.
    Duplicate,
    /// Keep-alive or window probe: a byte just below the window (RFC 9293, 3.8.6.1).
    Probe,
}
