//! Does a sender's time-stamp clock run slower than the capture's?
//!
//! Packets after a silence of their sender find no queue of its own: if the smallest differences of several
//! periods in a row grow evenly among these, the clock drifts, and no packet is late.

use tcpwhy_wire::{Duration, Instant};

/// The least drift, in nanoseconds per second: crystals are within 100 ppm, and a clock far beyond that has
/// another unit (1,024 us to a tick, for example).
const DRIFT_MIN: i64 = 5_000_000;
const DRIFT_PERIOD: Duration = Duration::from_secs(1);
/// Periods in a row that drift alike. A queue of other senders grows as evenly for a moment only.
const DRIFT_PERIODS: u8 = 3;

/// Whether the differences grow evenly where there can be no queue of the sender's own.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Drift {
    /// No silence yet.
    #[default]
    Unknown,
    /// One packet after a silence, and its difference: most connections end before there is another.
    One(Instant, Duration),
    Followed(Box<Periods>),
}

impl Drift {
    /// Takes a packet after a silence. Returns whether the clock is certainly slow.
    pub(crate) fn on_calm(&mut self, at: Instant, difference: Duration, tick: Duration) -> bool {
        match self {
            Self::Unknown => *self = Self::One(at, difference),
            Self::One(first_at, first) => {
                let mut periods = Periods::new(*first_at, *first);
                let slow = periods.on_calm(at, difference, tick);
                *self = Self::Followed(Box::new(periods));
                return slow;
            }
            Self::Followed(periods) => return periods.on_calm(at, difference, tick),
        }
        false
    }
}

/// The last period and the present one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Periods {
    /// Smallest difference of the last period and of the present one, and when it was seen.
    before: Option<(Instant, Duration)>,
    now: (Instant, Duration),
    started: Instant,
    /// Nanoseconds per second.
    slope: i64,
    alike: u8,
}

impl Periods {
    fn new(at: Instant, difference: Duration) -> Self {
        Self { before: None, now: (at, difference), started: at, slope: 0, alike: 0 }
    }

    fn on_calm(&mut self, at: Instant, difference: Duration, tick: Duration) -> bool {
        if at - self.started < DRIFT_PERIOD {
            if difference < self.now.1 {
                self.now = (at, difference);
            }
            return false;
        }
        if let Some(before) = self.before {
            let (over, grown) = (self.now.0 - before.0, self.now.1 - before.1);
            let slope = grown.as_nanos().saturating_mul(1000) / (over.as_nanos() / 1_000_000).max(1);
            let slow = slope > DRIFT_MIN && grown > tick;
            let alike = (slope - self.slope).abs() <= self.slope / 4;
            self.alike = if slow && alike { self.alike.saturating_add(1) } else { u8::from(slow) };
            self.slope = slope;
        }
        self.before = Some(self.now);
        (self.now, self.started) = ((at, difference), at);
        self.alike >= DRIFT_PERIODS
    }
}
