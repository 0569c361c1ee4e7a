//! What of one direction passes a capture: its segments and their acknowledgements.

use tcpwhy_wire::{Duration, Instant, Seq};

use crate::estimate::maybe::Maybe;

/// A data segment not acknowledged yet.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Sent {
    pub end: Seq,
    pub at: Instant,
    pub retransmitted: bool,
}

/// An ACK that passed the capture on its way to the sender.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each says something of its own")]
pub(crate) struct AckSeen {
    pub at: Instant,
    pub packet: u64,
    pub ack: Seq,
    /// First byte beyond the advertised window.
    pub right_edge: Seq,
    pub window: u32,
    /// Time at the capture from the newest segment that it acknowledges; none if it acknowledges nothing
    /// new, or bytes that had arrived before.
    pub rtt: Maybe<Duration>,
    /// It acknowledges a retransmission and is timed from the last one: the true time may be longer (Karn).
    pub repaired: bool,
    /// Duplicate ACK or SACK: something is missing at the receiver.
    pub signals_loss: bool,
    /// It has SYN set: its window is not scaled (RFC 7323, 2.2).
    pub unscaled: bool,
    /// It acknowledges everything that has passed the capture.
    pub whole: bool,
}
