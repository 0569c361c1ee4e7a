//! What was a message like before the small segments that came at equal distances behind it?

use tcpwhy_wire::{Instant, Seq};

use crate::bill::account::Account;
use crate::estimate::grid::Grid;
use crate::flow::segment_class::LastData;

/// Small segments in a row at equal distances, and what the message was before them.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row {
    pub grid: Grid,
    /// The message that they seem to go on with.
    pub of: u64,
    /// Where the next one begins.
    pub end: Seq,
    pub account: Account,
    pub packet: u64,
    /// The segment before them, and whether the answer began with it.
    pub first: LastData,
    pub is_answer: bool,
    /// Pieces of the question that had been set aside.
    pub pieces: usize,
    pub pushes: Vec<Push>,
}

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Push {
    pub at: Instant,
    pub packet: u64,
    pub len: u32,
}

impl Row {
    /// Bytes that it takes.
    pub(super) fn memory(&self) -> usize {
        size_of::<Self>() + self.account.heap() + self.pushes.capacity() * size_of::<Push>()
    }
}
