//! A part of a message that may be a message of its own.

use tcpwhy_wire::{Instant, Seq};

use super::account::Account;
use super::split::Split;
use crate::flow::segment_class::LastData;

/// A part of a message that is a message of its own if no answer comes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Piece {
    pub account: Account,
    pub start: Instant,
    pub bytes: u64,
    pub packets: [u64; 2],
    /// The sender's pause after it.
    pub silence: Split,
    /// Its last segment, and where that ends.
    pub last: LastData,
    pub end: Seq,
}
