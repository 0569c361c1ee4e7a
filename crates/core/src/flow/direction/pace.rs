//! Does a direction's sender space its segments itself, as its time stamps or a beat show?

use tcpwhy_wire::{Duration, Instant, Segment, Timestamps};

use super::{Flow, LastData, SegmentClass};
use crate::estimate::maybe::Maybe;
use crate::estimate::rate::RateEstimator;
use crate::estimate::stamp_clock::StampClock;
use crate::estimate::stamp_pacing::STAMP_BLUR;
use crate::flow::segment_class::SendQueue;
use crate::words::limits::{BURST_GAP, QUEUED_MIN};

/// The longest tick of clocks that `StampClock::ticks_apart` answers for.
const TICK: Duration = Duration::from_millis(1);

impl Flow {
    /// Time stamps that its SYN offered and the peer did not accept are in no segment (RFC 7323, 3.2).
    pub(crate) fn on_timestamps_answered(&mut self, syn_ack: &Segment) {
        if syn_ack.options.timestamps.is_none() && !syn_ack.options.cut {
            (self.timestamps, self.clock) = (false, StampClock::default());
        }
    }

    /// Learns whether the sender, which had more after the previous segment, spaced the two itself.
    #[inline]
    pub(crate) fn learn_pace(&mut self, at: Instant, stamps: Option<Timestamps>, class: SegmentClass) {
        let Some(last) =
            self.last_data.filter(|last| class == SegmentClass::New && last.queue != SendQueue::Emptied)
        else {
            return;
        };
        let gap = at - last.at;
        let apart = last.stamp.zip(stamps).and_then(|(then, now)| self.clock.ticks_apart(then, now.val));
        if let Some(apart) = apart.filter(|_| gap < STAMP_BLUR) {
            let waited = self.queued_on_way.get().is_some_and(Duration::is_positive);
            let pace = &mut self.unusual.shown().pace;
            let before = pace.is_paced();
            pace.on_segment(gap, apart, waited);
            if pace.is_paced() && !before {
                self.arrivals = RateEstimator::blurred(); // what they seemed to show was the sender's pace
            }
        }
    }

    /// A segment leaves at `at` after the last one: the beat goes on, unless the queue was empty or it is no
    /// new data.
    #[inline]
    pub(super) fn learn_beat(&mut self, at: Instant, class: SegmentClass) {
        match &self.last_data {
            Some(last) if class == SegmentClass::New && last.queue != SendQueue::Emptied => {
                self.unusual.shown().cadence.on_segment(at - last.at, last.len);
            }
            _ => self.interrupt_beat(),
        }
    }

    /// The same after an empty queue.
    #[inline]
    pub(super) fn interrupt_beat(&mut self) {
        if let Some(shown) = self.unusual.known() {
            shown.cadence.interrupt();
        }
    }

    /// How much longer than usual the present packet, which passed at `at`, took to get here, if that is
    /// beyond doubt. A clock with long ticks drifts, and is driven by a coarser timer: it adds up to a tick.
    pub(crate) fn proven_late(&self, at: Instant) -> Option<Duration> {
        let late = self.queued_on_way.get().filter(|late| late.is_positive())?;
        let shown = !self.clock.ticks_slowly() || late >= self.clock.tick();
        (shown && self.clock.proves(late, at)).then_some(late)
    }

    /// How much longer than usual the present packet took, unless its sender's clock ticks more slowly than
    /// the little seen of it suggests, or has stood still.
    pub(crate) fn seems_late(&self, at: Instant) -> Option<Duration> {
        let late = self.queued_on_way.get()?;
        let unproven = self.clock.is_beyond_rate(late, at) && !self.clock.proves(late, at);
        (unproven || !self.clock.is_rated()).then_some(late)
    }

    /// How long the present packet stood in a queue that others meet as well. Clocks drift: less than a tick
    /// shows none.
    #[inline]
    pub(crate) fn queue_shown(&self) -> Option<Duration> {
        self.queued_on_way.get().filter(|&queued| queued >= QUEUED_MIN.max(self.clock.tick()))
    }

    /// Keeps the longest delay of any packet.
    #[inline]
    pub(super) fn learn_peak(&mut self, at: Instant) {
        if self.queued_on_way.exceeds(self.queued_peak) {
            self.learn_higher_peak(at);
        }
    }

    #[cold]
    #[inline(never)]
    fn learn_higher_peak(&mut self, at: Instant) {
        self.queued_peak = self.proven_late(at).unwrap_or(self.queued_peak);
    }

    /// The present packet left after something that had passed the capture, so that it waited for at most
    /// `most`.
    #[inline]
    pub(crate) fn bound_late(&mut self, most: Duration) {
        if self.queued_on_way.get().is_some_and(Duration::is_positive) {
            self.bound_queue(most);
        }
    }

    #[inline(never)]
    fn bound_queue(&mut self, most: Duration) {
        let late = self.queued_on_way.get().unwrap_or_default();
        self.queued_on_way = Maybe::of(late.min(most));
        self.clock.on_bound(late, most);
    }

    /// Whether the stamps of two packets show that the later one, which came `late` after something in
    /// between, left late.
    pub(crate) fn left_late(&self, last: &LastData, segment: &Segment, late: Duration) -> bool {
        let stamps = last.stamp.zip(segment.options.timestamps);
        let apart = stamps.and_then(|(then, now)| self.clock.ticks_apart(then, now.val));
        // At least a tick less; had it been delayed on its way instead, `late` less.
        apart.is_some_and(|apart| apart - TICK > segment.at - last.at - late.divided_by(2))
    }

    /// How long after `last` this segment left, to within a tick, if time stamps tell.
    pub(crate) fn left_apart(&self, last: &LastData, segment: &Segment) -> Option<Duration> {
        self.clock.ticks_apart(last.stamp?, segment.options.timestamps?.val)
    }

    /// The longest time that can lie between the sending of `last` and of this segment, if time stamps tell.
    pub(crate) fn sent_apart(&self, last: &LastData, stamps: Option<Timestamps>) -> Option<Duration> {
        self.clock.sent_apart(last.stamp?, stamps?.val)
    }

    /// Whether the sender, and not the bottleneck, spaces the segments.
    pub(crate) fn is_paced(&self) -> bool {
        self.unusual.pace.is_paced()
    }

    /// Whether a segment was waiting after the one before it, as far as its arrival `gap` later shows: it
    /// had waited for as long, or left together with that one, or comes sooner than anything can have
    /// released it, or no later than those before it.
    #[inline]
    pub(crate) fn was_behind(&self, stamps: Option<Timestamps>, gap: Duration, path_rtt: Duration) -> bool {
        let Some(last) = self.last_data.as_ref().filter(|last| last.queue != SendQueue::Emptied) else {
            return false;
        };
        let soon = || gap < Duration::from_micros(200) || gap < path_rtt.divided_by(4);
        if self.queued_on_way.get().is_some_and(|queued| queued >= gap) {
            return true;
        }
        // Whatever delays paced segments delays all of them alike: that says nothing about the rate of the
        // path.
        if self.unusual.pace.is_paced() && gap >= BURST_GAP.divided_by(4) {
            return false;
        }
        let usual = || self.arrivals.spacing().is_some_and(|usual| gap < usual.times(3));
        if gap < STAMP_BLUR && (soon() || usual()) {
            return true;
        }
        self.sent_apart(last, stamps).map_or_else(soon, |apart| apart <= gap.divided_by(2))
    }
}
