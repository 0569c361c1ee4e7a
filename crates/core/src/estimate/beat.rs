//! Does a sender keep a beat of its own, whatever acknowledgements come?
//!
//! Pacing sends each segment as long after the previous one as that one takes at the pacing rate
//! (tcp_update_skb_after_send, net/ipv4/tcp_output.c), while there is something to send. ACKs then come at
//! the same beat, each shortly before some segment, and look as if they released it. A sender held by a
//! window stops once a round trip, or has a queue at the bottleneck.

use tcpwhy_wire::Duration;

use crate::words::limits::BURST_GAP;

/// Two intervals are alike within one part in this many.
const ALIKE: i64 = 8;
/// A beat lasts at least this many quarters of a round trip: a train and a pause, with what is left of
/// earlier rounds, is shorter.
const QUARTERS: i64 = 5;
/// This many intervals are not by chance.
const STEADY: i64 = 8;
/// No pacing is this slow.
const LONG: Duration = Duration::from_secs(1);
/// A shorter beat may be by chance.
const LASTS_MIN: Duration = Duration::from_millis(4);

/// How long segments have left at one rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cadence {
    /// The beat: an interval, and the bytes of the segment before it.
    gap: Duration,
    len: u32,
    lasts: Duration,
    /// How late the last segment was: the next one comes sooner by as much if it keeps to its own time.
    late: Duration,
}

impl Cadence {
    pub(crate) const NONE: Self =
        Self { gap: Duration::ZERO, len: 0, lasts: Duration::ZERO, late: Duration::ZERO };

    /// The sender had nothing more to send, or retransmitted.
    #[inline]
    pub(crate) fn interrupt(&mut self) {
        if self.len > 0 {
            *self = Self::NONE;
        }
    }

    /// A segment left `gap` after one of `len` bytes that had more queued after it.
    #[inline]
    pub(crate) fn on_segment(&mut self, gap: Duration, len: u32) {
        if gap < BURST_GAP && self.lasts == Duration::ZERO {
            (self.gap, self.len) = (gap, len);
        } else {
            self.on_later_segment(gap, len);
        }
    }

    /// The same outside a burst, or after a beat that lasted.
    #[inline(never)]
    fn on_later_segment(&mut self, gap: Duration, len: u32) {
        if gap >= LONG {
            *self = Self::NONE;
            return;
        }
        // Cross-multiplied, to avoid a division for each packet.
        let due = self.gap.times(i64::from(len));
        let off = (gap + self.late).times(i64::from(self.len)) - due;
        let (one_late, late) = (self.late == Duration::ZERO && off.is_positive() && off <= due, self.late);
        self.late = Duration::ZERO;
        if due.is_positive() && off.max(-off).times(ALIKE) <= due {
            self.lasts += gap + late;
            if late == Duration::ZERO {
                (self.gap, self.len) = (gap, len);
            }
        } else if one_late && self.lasts >= self.gap.times(2) {
            self.late = off.divided_by(i64::from(self.len.max(1)));
        } else {
            (self.gap, self.len, self.lasts) = (gap, len, self.lasts.divided_by(8));
        }
    }

    /// How long it had been kept before the last segment, including the interval that began it.
    pub(crate) fn lasts(&self) -> Duration {
        self.lasts
    }

    /// Whether it has lasted for several segments, each of them acknowledged before the next one left.
    pub(crate) fn is_steady(&self) -> bool {
        self.lasts >= self.gap.times(STEADY) && self.lasts >= LASTS_MIN
    }

    /// Whether it has lasted for more than a round trip of `rtt` in which several segments left.
    pub(crate) fn is_kept(&self, rtt: Duration) -> bool {
        self.gap.times(3) <= rtt && self.lasts.times(4) >= rtt.times(QUARTERS) && self.lasts >= LASTS_MIN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(20);

    fn after(gaps_us: impl IntoIterator<Item = (i64, u32)>) -> bool {
        let mut cadence = Cadence::NONE;
        for (us, len) in gaps_us {
            cadence.on_segment(Duration::from_micros(us), len);
        }
        cadence.is_kept(RTT)
    }

    #[test]
    fn segments_of_two_sizes_at_one_rate_keep_a_beat() {
        assert!(after((0..20).map(|i| if i % 3 == 0 { (2_300, 2_896) } else { (1_150, 1_448) })));
    }

    #[test]
    fn one_that_is_late_is_forgiven_if_the_next_one_is_not() {
        assert!(after((0..40).map(|i| (
            if i % 7 == 5 {
                4_000
            } else if i % 7 == 6 {
                600
            } else {
                2_300
            },
            2_896
        ))));
        assert!(!after((0..40).map(|i| (if i % 7 == 6 { 4_000 } else { 2_300 }, 2_896))));
    }

    #[test]
    fn a_train_and_a_pause_in_each_round_are_a_window() {
        assert!(!after((0..200).map(|i| if i % 18 == 0 { (3_000, 1_448) } else { (1_000, 1_448) })));
    }

    #[test]
    fn one_segment_in_a_round_is_a_window() {
        assert!(!after((0..40).map(|_| (20_000, 1_448))));
    }
}
