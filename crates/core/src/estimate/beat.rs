//! Does a sender keep a beat of its own, whatever acknowledgements come?
//!
//! Pacing sends each segment as long after the one before it as that one takes at the pacing rate
//! (tcp_update_skb_after_send, net/ipv4/tcp_output.c), for as long as there is something to send. Acknowledgements come at
//! the same beat then, each shortly before some segment, and look as if they let it go. Whom a window holds stands still
//! once a round trip, or has a queue at the bottleneck.

use tcpwhy_wire::Duration;

use crate::words::limits::BURST_GAP;

/// Two intervals are alike to within this part.
const ALIKE: i64 = 8;
/// A round of a train and a pause, and what is left of the rounds before it, is less than this many quarters of one.
const QUARTERS: i64 = 5;
/// So many intervals are no chance.
const STEADY: i64 = 8;
/// No pace is so slow.
const LONG: Duration = Duration::from_secs(1);
/// A beat that lasts less may be chance.
const LASTS_MIN: Duration = Duration::from_millis(4);

/// For how long segments have left at one rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cadence {
    /// The beat: an interval, and the segment before it in bytes.
    gap: Duration,
    len: u32,
    lasts: Duration,
    /// By how much the last segment was late: the next one is so much the sooner, if it keeps to its own time.
    late: Duration,
}

impl Cadence {
    pub(crate) const NONE: Self =
        Self { gap: Duration::ZERO, len: 0, lasts: Duration::ZERO, late: Duration::ZERO };

    /// It had nothing more to send, or sent something again.
    #[inline]
    pub(crate) fn interrupt(&mut self) {
        if self.len > 0 {
            *self = Self::NONE;
        }
    }

    /// A segment left `gap` after one of `len` bytes behind which more was queued.
    pub(crate) fn on_segment(&mut self, gap: Duration, len: u32) {
        if gap >= LONG {
            *self = Self::NONE;
            return;
        }
        if gap < BURST_GAP && self.lasts == Duration::ZERO {
            (self.gap, self.len) = (gap, len);
            return;
        }
        // Both in bytes of the other: nothing is divided for each packet.
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

    /// For how long it had been kept before the last segment, the interval that began it included.
    pub(crate) fn lasts(&self) -> Duration {
        self.lasts
    }

    /// Whether it has lasted for several segments, each of which was acknowledged before the next one left.
    pub(crate) fn is_steady(&self) -> bool {
        self.lasts >= self.gap.times(STEADY) && self.lasts >= LASTS_MIN
    }

    /// Whether it has lasted for more than a round trip of `rtt`, in which several segments left.
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
