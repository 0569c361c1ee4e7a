//! How long did the last flight still have to pass the bottleneck behind the capture?
//!
//! Behind the capture a backlog drains at the bottleneck's rate, and the acknowledgements of what passed come back at
//! that pace. The time from the last segment to its acknowledgement, less the path's round trip, is the backlog's. An
//! acknowledgement that its receiver held back (RFC 1122, 4.2.3.2) is later than the pace of those before it: by so much
//! it says nothing about the path.

use tcpwhy_wire::{Duration, Instant};

use crate::rate::Rate;

/// What each packet carries besides its payload: Ethernet, IP and TCP with time stamps.
const HEADER_BYTES: u64 = 66;
/// The pace of so few intervals is not exact.
const PACE_SLACK: Duration = Duration::from_micros(300);

/// The acknowledgements that came since the last data segment.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Drain {
    /// The last one, and when the one before it came; nothing before the first.
    last: Option<Instant>,
    /// Intervals between them, without the last.
    over: Duration,
    bytes: u64,
    /// The last interval.
    last_gap: Duration,
    last_bytes: u64,
}

impl Drain {
    /// An acknowledgement covered `bytes` in `packets` for the first time.
    #[inline]
    pub(crate) fn on_ack(&mut self, now: Instant, bytes: u32, packets: u32) {
        if let Some(last) = self.last {
            self.over += self.last_gap;
            self.bytes += self.last_bytes;
            self.last_gap = now - last;
            self.last_bytes = u64::from(bytes) + u64::from(packets) * HEADER_BYTES;
        }
        self.last = Some(now);
    }

    /// The part of `late`, by which the last acknowledgement exceeded the path's round trip, that the bottleneck needed
    /// for the last `flight`: what the pace of the acknowledgements or its rate explains.
    pub(crate) fn backlog(&self, late: Duration, rate: Option<Rate>, flight: u32) -> Duration {
        let by_rate = rate.map(|rate| late.min(rate.time_for(flight)));
        self.explains(late).max(by_rate).unwrap_or_default().at_least_zero()
    }

    /// The same where the last acknowledgement came with an answer, and may have waited for that: the pace goes first.
    pub(crate) fn backlog_before_answer(&self, late: Duration, rate: Option<Rate>, flight: u32) -> Duration {
        let by_rate = || rate.map(|rate| late.min(rate.time_for(flight)));
        self.explains(late).or_else(by_rate).unwrap_or_default().at_least_zero()
    }

    /// What the pace of the acknowledgements before it explains; nothing where they show no pace.
    fn explains(&self, late: Duration) -> Option<Duration> {
        if self.bytes == 0 {
            return None;
        }
        let needed = i128::from(self.over.as_nanos()) * i128::from(self.last_bytes) / i128::from(self.bytes);
        let needed = Duration::from_nanos(i64::try_from(needed).unwrap_or(i64::MAX));
        let held_back = (self.last_gap - needed - needed.divided_by(4) - PACE_SLACK).at_least_zero();
        Some((late - held_back).at_least_zero())
    }
}
