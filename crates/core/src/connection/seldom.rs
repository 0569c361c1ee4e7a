//! What few connections show of who asks: kept in a box of its own, so that all others take a word for it.

use tcpwhy_wire::{Duration, Instant, Seq};

use crate::bill::account::Account;
use crate::estimate::grid::Grid;
use crate::estimate::own_time::OwnTime;
use crate::estimate::polls::Polls;
use crate::flow::segment_class::LastData;

/// Long waits in a row, each behind a message with which the client had reacted to what the server said.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Reacted {
    pub count: u8,
    pub shortest: Duration,
    pub longest: Duration,
}

/// How alike the client's reactions are before answers that take long, and how much those differ.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Steady {
    pub reaction: Duration,
    pub count: u8,
    pub shortest: Duration,
    pub longest: Duration,
}

/// Messages of the server's that nobody asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Pushes {
    pub count: u32,
    pub first: Option<Instant>,
    pub last: Option<Instant>,
}

/// Messages of the client's without an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Unanswered {
    pub len: u32,
    pub count: u8,
    /// Those in between that something followed, too.
    pub ever: u8,
    pub last: Option<Instant>,
    pub every: Duration,
}

/// What an asker had of its answer when it closed.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Had {
    /// Of this exchange.
    pub n: u64,
    /// What that had cost.
    pub account: Account,
    pub last: LastData,
    pub bytes: u64,
    pub packet: u64,
    /// The byte behind it.
    pub end: Seq,
    /// When more of it came.
    pub more_at: Instant,
}

/// What only long waits, long silences and messages without an answer tell.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Seldom {
    pub unanswered: Unanswered,
    pub polls: Polls,
    /// What the server sends at equal distances, and how long it is if that is always the same.
    pub grid: Grid,
    pub grid_len: u32,
    /// What the server's long answers tell of a timer of its own.
    pub own_time: OwnTime,
    /// When questions went on behind a silence.
    pub asks: Grid,
    pub pushes: Pushes,
    pub reacted: Reacted,
    pub steady: Steady,
}

impl Seldom {
    /// Nothing of it has been seen.
    pub(super) const NONE: Self = Self {
        unanswered: Unanswered { len: 0, count: 0, ever: 0, last: None, every: Duration::ZERO },
        polls: Polls::NONE,
        grid: Grid::NONE,
        grid_len: 0,
        own_time: OwnTime::NONE,
        asks: Grid::NONE,
        pushes: Pushes { count: 0, first: None, last: None },
        reacted: Reacted { count: 0, shortest: Duration::ZERO, longest: Duration::ZERO },
        steady: Steady {
            reaction: Duration::ZERO,
            count: 0,
            shortest: Duration::ZERO,
            longest: Duration::ZERO,
        },
    };
}
