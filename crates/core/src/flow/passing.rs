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

/// An acknowledgement that passed the capture on its way to the sender.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each says something of its own")]
pub(crate) struct AckSeen {
    pub at: Instant,
    pub packet: u64,
    pub ack: Seq,
    /// First byte beyond the advertised window.
    pub right_edge: Seq,
    pub window: u32,
    /// Time from the newest segment that it acknowledges to itself, at the capture; none where it acknowledges
    /// nothing new, or what had arrived before.
    pub rtt: Maybe<Duration>,
    /// It acknowledges a retransmission, and is timed from the last copy: the time may be longer (Karn).
    pub repaired: bool,
    /// Duplicate or selective acknowledgement: something is missing at the receiver.
    pub signals_loss: bool,
    /// It is a SYN's, whose window is in bytes (RFC 7323, 2.2).
    pub unscaled: bool,
    /// It acknowledges all that has passed the capture.
    pub whole: bool,
}
