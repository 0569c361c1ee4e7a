//! Do small writes leave with the ACK that releases them, whenever it comes?
//!
//! A program that pauses for about as long as its peer delays ACKs looks held. But no program sees an ACK:
//! if the ACK comes sooner and later from one exchange to the next, and the write with it each time, the
//! write is held.

use tcpwhy_wire::Duration;

/// How much sooner or later an ACK has to come, and how many times as much as the write is late. Source:
/// none written down.
const MOVED_MIN: Duration = Duration::from_micros(250);
const MOVED_SHARE: i64 = 16;
/// This often, not counting the first as a move. By chance that happens once in some thousand connections.
const SHOWN: u8 = 5;

/// What the holds so far have shown.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Released {
    /// How long the last ACK was held back.
    last: Duration,
    moved: u8,
}

impl Released {
    /// A write left `late` after an ACK that had been held back.
    pub(crate) fn on_release(&mut self, held_back: Duration, late: Duration) {
        let (moved, late) = (held_back - self.last, late.max(-late));
        if moved.max(-moved) >= MOVED_MIN.max(late.times(MOVED_SHARE)) {
            self.moved = self.moved.saturating_add(1);
        }
        self.last = held_back;
    }

    pub(crate) fn is_shown(&self) -> bool {
        self.moved >= SHOWN
    }
}

/// By what part of that a write may be nearer to its ACK, or farther, that leaves with it. Source: none written down.
const KEPT_SHARE: i64 = 4;

/// Whether whole writes do the same, each of which leaves when the one before has been acknowledged: by chance as many leave by
/// themselves as with their ACK.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct AtHeels {
    /// How long after the write before its ACK came, and how long after that the next write left.
    last: Option<(Duration, Duration)>,
    with: u8,
    without: u8,
}

impl AtHeels {
    /// A write left `late` after the ACK that came `acked` after the write before.
    pub(crate) fn on_write(&mut self, acked: Duration, late: Duration) {
        if let Some((acked_before, late_before)) = self.last {
            let (moved, apart) = (acked - acked_before, late - late_before);
            let (moved, apart) = (moved.max(-moved), apart.max(-apart));
            let count = if apart.times(KEPT_SHARE) <= moved { &mut self.with } else { &mut self.without };
            *count = count.saturating_add(u8::from(moved >= MOVED_MIN));
        }
        self.last = Some((acked, late));
    }

    pub(crate) fn is_shown(&self) -> bool {
        self.with >= SHOWN && i64::from(self.without) * KEPT_SHARE <= i64::from(self.with)
    }
}
