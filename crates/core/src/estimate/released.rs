//! Do small writes go with the acknowledgement that lets them go, whenever it comes?
//!
//! A program that pauses for about as long as its peer holds acknowledgements back looks held. But no program sees an acknowledgement:
//! where this comes sooner and later from one exchange to the next, and the write with it each time, it is held.

use tcpwhy_wire::Duration;

/// So much sooner or later an acknowledgement has to come, and so many times more than the write is behind it. Source: none written down.
const MOVED_MIN: Duration = Duration::from_micros(250);
const MOVED_SHARE: i64 = 16;
/// So often, the first of which is no move. By chance that happens once in some thousand connections.
const SHOWN: u8 = 5;

/// What the holds so far have shown.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Released {
    /// By how much the last acknowledgement was held back.
    last: Duration,
    moved: u8,
}

impl Released {
    /// A write left `late` behind an acknowledgement that had been held back.
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
