//! What few connections show about which end asks: kept in a box of its own, so that all others spend
//! one word on it.

use tcpwhy_wire::{Duration, Instant, Seq};

use crate::bill::account::Account;
use crate::estimate::grid::Grid;
use crate::estimate::own_time::OwnTime;
use crate::estimate::polls::Polls;
use crate::flow::segment_class::LastData;

/// Long waits in a row, each after a message by which the client reacted to the server.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Reacted {
    pub count: u8,
    pub shortest: Duration,
    pub longest: Duration,
}

/// How alike the client's reactions are before slow replies, and how much those replies differ.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Steady {
    pub reaction: Duration,
    pub count: u8,
    pub shortest: Duration,
    pub longest: Duration,
}

/// Unrequested messages of the server's.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Pushes {
    pub count: u32,
    pub first: Option<Instant>,
    pub last: Option<Instant>,
    /// From the one before to the last one.
    pub every: Duration,
}

/// Messages of the client's without a reply.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Unanswered {
    pub len: u32,
    pub count: u8,
    /// Including those in between that something followed.
    pub ever: u8,
    pub last: Option<Instant>,
    pub every: Duration,
}

/// What a requester had of its reply when it closed.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Had {
    /// The number of the exchange.
    pub n: u64,
    /// What it had cost so far.
    pub account: Account,
    pub last: LastData,
    pub bytes: u64,
    pub packet: u64,
    /// The byte after it.
    pub end: Seq,
    /// When more of it arrived.
    pub more_at: Instant,
}

/// What only long waits, long silences and unanswered messages tell.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Seldom {
    pub unanswered: Unanswered,
    pub polls: Polls,
    /// What the server sends at equal intervals, and its length if that is constant.
    pub grid: Grid,
    pub grid_len: u32,
    /// What the server's slow replies show of a timer of its own.
    pub own_time: OwnTime,
    /// When requests continued after a silence.
    pub asks: Grid,
    pub pushes: Pushes,
    pub reacted: Reacted,
    pub steady: Steady,
}

impl Seldom {
    /// Nothing seen yet.
    pub(super) const NONE: Self = Self {
        unanswered: Unanswered { len: 0, count: 0, ever: 0, last: None, every: Duration::ZERO },
        polls: Polls::NONE,
        grid: Grid::NONE,
        grid_len: 0,
        own_time: OwnTime::NONE,
        asks: Grid::NONE,
        pushes: Pushes { count: 0, first: None, last: None, every: Duration::ZERO },
        reacted: Reacted { count: 0, shortest: Duration::ZERO, longest: Duration::ZERO },
        steady: Steady {
            reaction: Duration::ZERO,
            count: 0,
            shortest: Duration::ZERO,
            longest: Duration::ZERO,
        },
    };
}
