//! Did the sender itself space what arrives evenly?
//!
//! A sender that paces its segments (BBR, the fq queue, SO_MAX_PACING_RATE) sends what a backlog in front of a slow link
//! looks like when it arrives. Its time stamps tell one from the other: behind a pacing sender they advance as the
//! packets do and none of them waited on its way; a burst that a link spreads out carries one stamp, and what goes on at
//! the pace of a link has others waiting before it.

use tcpwhy_wire::{Duration, Instant, Segment, Timestamps};

use crate::estimate::rate::RateEstimator;
use crate::estimate::stamp_clock::StampClock;
use crate::flow::half::{Half, LastData, Order, Queue};
use crate::words::limits::BURST_GAP;

/// Stamps count milliseconds or less where it is asked how far they are apart.
const TICK: Duration = Duration::from_millis(1);
/// Time stamps of a millisecond say nothing about shorter intervals than these.
const STAMP_BLUR: Duration = Duration::from_millis(3);
/// Time stamps of a millisecond tell over this long.
const JUDGED_OVER: Duration = Duration::from_millis(6);

/// Short intervals between segments of one queue, summed up until stamps of a millisecond can tell.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Pace {
    arrived: Duration,
    sent: Duration,
    /// Of `arrived`, what came in front of packets that had waited on their way.
    waited: Duration,
    paced: bool,
}

impl Pace {
    /// A segment came `gap` after the one before it and had left `sent` after that one; `waited` if it had been on its
    /// way for longer than the path needs.
    #[inline]
    pub(crate) fn on_segment(&mut self, gap: Duration, sent: Duration, waited: bool) {
        self.arrived += gap;
        self.sent += sent;
        if waited {
            self.waited += gap;
        }
        if self.arrived >= JUDGED_OVER {
            let apart = self.sent.times(4) >= self.arrived.times(3);
            *self = Self { paced: apart && self.waited.times(2) < self.arrived, ..Self::default() };
        }
    }

    /// Whether the spacing of the last segments was their sender's.
    pub(crate) fn is_paced(&self) -> bool {
        self.paced
    }
}

impl Half {
    /// Time stamps that its SYN offered and the peer's did not take up are in no segment (RFC 7323, 3.2).
    pub(crate) fn on_timestamps_answered(&mut self, syn_ack: &Segment) {
        if syn_ack.options.timestamps.is_none() && !syn_ack.options.cut {
            (self.timestamps, self.clock) = (false, StampClock::default());
        }
    }

    /// Whether the sender had more behind the segment before this one and spaced them itself.
    #[inline]
    pub(crate) fn learn_pace(&mut self, at: Instant, stamps: Option<Timestamps>, order: Order) {
        let Some(last) = self.last_data.filter(|last| order == Order::New && last.queue != Queue::Emptied)
        else {
            return;
        };
        let gap = at - last.at;
        let apart = last.stamp.zip(stamps).and_then(|(then, now)| self.clock.ticks_apart(then, now.val));
        if let Some(apart) = apart.filter(|_| gap < STAMP_BLUR) {
            let waited = self.queued_on_way.is_some_and(Duration::is_positive);
            let before = self.pace.is_paced();
            self.pace.on_segment(gap, apart, waited);
            if self.pace.is_paced() && !before {
                self.arrivals = RateEstimator::blurred(); // what they seemed to show was the sender's pace
            }
        }
    }

    /// Whether the stamps of two packets show that the later one, `late` behind something in between, had left late.
    pub(crate) fn left_late(&self, last: &LastData, segment: &Segment, late: Duration) -> bool {
        let stamps = last.stamp.zip(segment.options.timestamps);
        let apart = stamps.and_then(|(then, now)| self.clock.ticks_apart(then, now.val));
        // A tick less at least; had it been late on its way instead, `late` less.
        apart.is_some_and(|apart| apart - TICK > segment.at - last.at - late.divided_by(2))
    }

    /// The longest time that can lie between the sending of `last` and of `segment`, where time stamps tell.
    pub(crate) fn sent_apart(&self, last: &LastData, stamps: Option<Timestamps>) -> Option<Duration> {
        self.clock.sent_apart(last.stamp?, stamps?.val)
    }

    /// Whether the spacing in which segments arrive is their sender's, not the bottleneck's.
    pub(crate) fn is_paced(&self) -> bool {
        self.pace.is_paced()
    }

    /// Whether a segment was waiting behind the one before it, as far as its arrival `gap` later shows: it had waited
    /// for as long, or left together with that one, or comes sooner than anything can have let it leave, or no later
    /// than those before it.
    #[inline]
    pub(crate) fn was_behind(&self, stamps: Option<Timestamps>, gap: Duration, path_rtt: Duration) -> bool {
        let Some(last) = self.last_data.as_ref().filter(|last| last.queue != Queue::Emptied) else {
            return false;
        };
        let soon = path_rtt.divided_by(4).max(Duration::from_micros(200));
        if self.queued_on_way.is_some_and(|queued| queued >= gap) {
            return true;
        }
        // What the path holds up of paced segments it holds up whole: that says nothing about how fast it is.
        if self.pace.is_paced() && gap >= BURST_GAP.divided_by(4) {
            return false;
        }
        let usual = || self.arrivals.spacing().is_some_and(|usual| gap < usual.times(3));
        if gap < STAMP_BLUR && (gap < soon || usual()) {
            return true;
        }
        self.sent_apart(last, stamps).map_or(gap < soon, |apart| apart <= gap.divided_by(2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(sent_us: i64, waited: bool) -> bool {
        let mut pace = Pace::default();
        for _ in 0..10 {
            pace.on_segment(Duration::from_micros(700), Duration::from_micros(sent_us), waited);
        }
        pace.is_paced()
    }

    #[test]
    fn stamps_that_advance_with_the_packets_are_a_pacing_sender() {
        assert!(after(700, false));
    }

    #[test]
    fn one_burst_spread_out_is_a_link() {
        assert!(!after(0, false));
    }

    #[test]
    fn what_goes_on_behind_a_queue_is_a_link() {
        assert!(!after(700, true));
    }
}
