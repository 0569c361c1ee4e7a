//! What time is it? The path must not jump when the clock is set, and its records must agree with
//! captures.

use rustix::time::{ClockId, clock_gettime};
use tcpwhy_wire::{Duration, Instant};

/// The monotonic clock, shifted once so that it counts from the Unix epoch as captures do.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    offset: Duration,
}

impl Clock {
    /// Reads both clocks once. Afterwards, clock discipline makes them drift apart by at most 0.5
    /// ms per second.
    pub fn start() -> Self {
        // Each reading of one clock is between two of the other; the closest pair bounds the error
        // to their distance.
        let reading = || {
            let before = read(ClockId::Monotonic);
            let wall = read(ClockId::Realtime);
            let after = read(ClockId::Monotonic);
            (after - before, wall - before - (after - before).divided_by(2))
        };
        let (_, offset) = (0..8).map(|_| reading()).min().unwrap_or_default();
        Self { offset }
    }

    /// Now, in nanoseconds since the Unix epoch.
    pub fn now(self) -> Instant {
        read(ClockId::Monotonic) + self.offset
    }
}

fn read(clock: ClockId) -> Instant {
    let time = clock_gettime(clock);
    Instant::from_nanos(time.tv_sec.saturating_mul(1_000_000_000).saturating_add(time.tv_nsec))
}
