//! What few connections show about which end asks: kept in a box of its own, so that all others spend
//! one word on it.

use tcpwhy_wire::{Duration, Instant, Seq};

use crate::bill::account::Account;
use crate::estimate::grid::Grid;
use crate::estimate::own_beat::OwnBeat;
use crate::estimate::own_time::OwnTime;
use crate::estimate::polls::Polls;
use crate::flow::segment_class::LastData;

/// An answer that comes sooner was written because of its question. Source: none written down.
const STREAM_WAIT_MIN: Duration = Duration::from_millis(1);
/// Packets of one stream differ in length by at most one part in this many. Source: none written down.
const ALIKE_SHARE: u64 = 16;

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
    /// ... and all but its quick ones.
    pub own_beat: OwnBeat,
    /// When requests continued after a silence.
    pub asks: Grid,
    pub pushes: Pushes,
    pub reacted: Reacted,
    pub steady: Steady,
    /// The length of what the server says by itself now and then, and the client with as many bytes right behind it.
    pub beat_len: u32,
}

impl Seldom {
    /// Nothing seen yet.
    pub(super) const NONE: Self = Self {
        unanswered: Unanswered { len: 0, count: 0, ever: 0, last: None, every: Duration::ZERO },
        polls: Polls::NONE,
        grid: Grid::NONE,
        grid_len: 0,
        own_time: OwnTime::NONE,
        own_beat: OwnBeat::NONE,
        asks: Grid::NONE,
        pushes: Pushes { count: 0, first: None, last: None, every: Duration::ZERO },
        reacted: Reacted { count: 0, shortest: Duration::ZERO, longest: Duration::ZERO },
        steady: Steady {
            reaction: Duration::ZERO,
            count: 0,
            shortest: Duration::ZERO,
            longest: Duration::ZERO,
        },
        beat_len: 0,
    };

    /// The server took its time, or a `long` one, to answer, at `at`, a request of `asked_at`. Returns its timer's
    /// grid, if its long replies come by one.
    pub(super) fn on_slow_answer(&mut self, at: Instant, asked_at: Instant, long: bool) -> Option<Grid> {
        self.own_beat.on_answer(at, asked_at);
        if !long {
            return None;
        }
        self.own_time.on_answer(at, asked_at);
        (self.own_time.is_shown() && !self.grid.is_kept()).then_some(self.own_time.grid)
    }
}

/// Unrequested messages at intervals no shorter than this,
const PUSHES_EVERY: Duration = Duration::from_millis(500);
/// ... which differ by no more than this, or one part in so many: a timer's do.
const PUSH_PLAY: Duration = Duration::from_millis(2);
const PUSH_PART: i64 = 500;
/// Some of them in a row may have seemed to answer something.
const PUSHES_MISSED: i64 = 3;
/// So many unrequested messages are a habit.
const PUSHES_MIN: u32 = 3;

impl Pushes {
    /// One more passed at `at`.
    pub(super) fn on_push(&mut self, at: Instant) {
        self.count = self.count.saturating_add(1);
        self.first.get_or_insert(at);
        self.every = self.last.map_or(Duration::ZERO, |last| at - last);
        self.last = Some(at);
    }

    /// Whether they are a habit.
    pub(super) fn are_often(&self) -> bool {
        self.count >= PUSHES_MIN
    }

    /// Whether they come as often as a message that is `times` as late, on average.
    pub(super) fn may_be_next(&self, times: Duration) -> bool {
        let Self { count, first: Some(first), last: Some(last), .. } = *self else { return false };
        self.are_often() && times.times(i64::from(count - 1)) >= last - first
    }

    /// Whether the next one, or one of the few after it, is due at `at`.
    pub(super) fn are_due(&self, at: Instant) -> bool {
        let Self { last: Some(last), every, .. } = *self else { return false };
        let play = PUSH_PLAY.max(every.divided_by(PUSH_PART));
        let off = |n: i64| at - last - every.times(n);
        self.are_often() && every >= PUSHES_EVERY && (1..=PUSHES_MISSED).any(|n| off(n).max(-off(n)) <= play)
    }
}

/// Whether a question of `len` bytes is about as long as its answer, as what two ends send each other by timers of their own is,
/// at whatever distance from each other.
#[inline]
pub(super) fn may_be_streams(wait: Duration, len: u32, answer_bytes: u64) -> bool {
    wait >= STREAM_WAIT_MIN && u64::from(len).abs_diff(answer_bytes) <= answer_bytes / ALIKE_SHARE
}
