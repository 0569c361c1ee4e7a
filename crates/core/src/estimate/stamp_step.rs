//! Does a sender's time-stamp clock tick as often as it counts?
//!
//! Some clocks count milliseconds and go on every 500 of them (OS/400, AIX): all packets sent in between
//! have one stamp, and the later of two looks late.

use tcpwhy_wire::Duration;

/// Stamps that differ by multiples of at least this, this many times in a row, may be such a clock's.
/// Source: none written down.
const STEP_MIN: u32 = 100;
const STEPS_MIN: u8 = 4;
/// A packet late by less than this is late whatever its clock is. Source: none written down.
const LATE_MIN: Duration = Duration::from_millis(10);

/// The greatest common divisor of the steps between stamps after silences, and how many steps have shown it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Step {
    ticks: u32,
    count: u8,
}

impl Step {
    /// A packet after a silence has a stamp `apart` later than the previous one.
    pub(crate) fn on_stamp(&mut self, apart: u32) {
        if apart != 0 && apart <= u32::MAX / 2 {
            self.ticks = greatest_common(self.ticks, apart);
            self.count = self.count.saturating_add(1);
        }
    }

    /// Whether the clock's step may be what makes a packet look this `late`.
    pub(crate) fn may_be(self, late: Duration) -> bool {
        self.ticks >= STEP_MIN && self.count >= STEPS_MIN && late >= LATE_MIN
    }
}

pub(crate) fn greatest_common(mut one: u32, mut other: u32) -> u32 {
    while other != 0 {
        (one, other) = (other, one % other);
    }
    one
}
