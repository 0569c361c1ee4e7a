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
