//! What was a message like before the small segments that followed it at equal intervals?

use tcpwhy_wire::{Instant, Seq};

use crate::bill::account::Account;
use crate::estimate::grid::Grid;
use crate::flow::segment_class::LastData;

/// Small segments in a row at equal intervals, and the message as it was before them.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row {
    pub grid: Grid,
    /// The message that they seem to continue.
    pub of: u64,
    /// The sequence number where the next one begins.
    pub end: Seq,
    pub account: Account,
    pub packet: u64,
    /// The segment before them, and whether the reply began with it.
    pub first: LastData,
    pub is_answer: bool,
    /// Pieces of the request that had been set aside.
    pub pieces: usize,
    pub pushes: Vec<Push>,
}

/// One of these segments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Push {
    pub at: Instant,
    pub packet: u64,
    pub len: u32,
}

impl Row {
    /// Its size in bytes.
    pub(super) fn memory(&self) -> usize {
        size_of::<Self>() + self.account.heap() + self.pushes.capacity() * size_of::<Push>()
    }
}
