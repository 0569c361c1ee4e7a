//! What if the capture's clock is set meanwhile, or steps back again and again?
//!
//! Where both ends stamp their packets, these say how long it was across one step: forward, what the clock went on by is nobody's time;
//! backward, it goes on from where it was.
//!
//! Queues of an interface hand over packets in another order, by less than milliseconds, and one step of a clock that is set is passed
//! over: no interval across it is measured (`general.rs`). A clock that steps back more often says nothing of the times between its
//! steps either.

use tcpwhy_wire::{Duration, Instant, Segment};

use super::Connection;
use crate::bill::account::Account;
use crate::bill::revise::Revision;
use crate::estimate::maybe::Maybe;
use crate::estimate::stamp_jump::JUMP_MIN;
use crate::estimate::stamp_step::greatest_common;
use crate::flow::ends::{CLIENT, SERVER};
use crate::rules::verdict::Verdict;
use crate::tally::closed::Closed;

/// No queue of an interface holds packets for so long. Source: none written down.
const STEP_MIN: Duration = Duration::from_millis(10);
/// From so many gaps on it is known what all of them are multiples of. Source: none written down.
const GAPS_MIN: u8 = 4;
/// Below this, what a coarse clock makes of a wait is no more than waits vary. Source: none written down.
const GRAIN_MIN: Duration = Duration::from_millis(5);
/// A gap has two ends.
const GRAINS_OFF: i64 = 2;
/// A clock is set once.
const STEPS_MAX: u8 = 2;

fn took(verdict: &Verdict) -> Duration {
    verdict.split.charges().map(|charge| charge.ns).sum()
}

impl Connection {
    /// The next packet, of this time, comes before the last one's.
    #[cold]
    pub(super) fn count_step(&mut self, at: Instant) {
        self.steps = self.steps.saturating_add(u8::from(self.last_at - at > STEP_MIN));
    }

    /// A packet's time is before the last one's. Where its sender's clock went on meanwhile the capture's was set back, and goes on from where
    /// it was. Returns the packet's time by that.
    #[cold]
    #[inline(never)]
    pub(super) fn weigh_step(&mut self, at: Instant, segment: &Segment, from: usize) -> Instant {
        let stamps = segment.options.timestamps;
        let expected = stamps.and_then(|stamps| self.flows[from].clock.expected(stamps.val));
        let Some(expected) = expected.filter(|&expected| expected - at >= JUMP_MIN) else { return at };
        let by = self.now.max(expected) - at;
        self.set_back += by;
        self.set = Some(Box::new((self.now, Duration::ZERO)));
        at + by
    }

    /// Whether both ends' clocks say that the capture's was set before this end's last packet.
    #[inline]
    pub(super) fn weigh_jump(&mut self, from: usize) {
        if self.flows[from].clock.jump().is_some() {
            self.on_jump(from);
        }
    }

    #[cold]
    #[inline(never)]
    fn on_jump(&mut self, from: usize) {
        let [one, other] = [from, 1 - from].map(|end| self.flows[end].clock.jump());
        let Some((at, by)) = one.zip(other).and_then(|(one, other)| one.with(other)) else { return };
        for flow in &mut self.flows {
            flow.clock.on_set(at, by);
            (flow.queued_on_way, flow.queued_peak) = (Maybe::NONE, Duration::ZERO);
        }
        if let Some(open) = self.open.as_deref_mut() {
            (open.late, open.way_base) = (None, Maybe::NONE); // by another clock
        }
        self.set = Some(Box::new((at, by.at_least_zero())));
    }

    /// What the clock was set on by while this was under way is nobody's, and of the rest nobody knows how long it was.
    #[cold]
    #[inline(never)]
    pub(super) fn leave_out_set(&self, closed: &Closed, account: &mut Account) {
        let Some((at, ns)) = self.set.as_deref().copied() else { return };
        let ways = self.tap_rtt(CLIENT) + self.tap_rtt(SERVER);
        if closed.start <= at && at <= closed.start + account.total() + ways {
            let begins = closed.start + ways >= at;
            let ns = if begins { Duration::ZERO } else { ns };
            account.revise(Revision::ClockSet { ns, asker: closed.initiator, packets: closed.packets });
        }
    }

    /// What the clock of a capture that counts milliseconds goes on by: a timer of 10 ms, for example. `now` is still the last packet's time.
    #[cold]
    #[inline(never)]
    pub(super) fn learn_grain(&mut self, at: Instant) {
        let gap = (at - self.now).as_nanos() / 1_000_000;
        if !self.fine && (gap <= 0 || gap > i64::from(u16::MAX) || self.packets == 0) {
            return;
        }
        let (ticks, count) = self.gaps;
        self.gaps = (
            greatest_common(u32::from(ticks), gap.clamp(0, i64::from(u16::MAX)) as u32) as u16,
            count.saturating_add(1),
        );
        let grain = Duration::from_millis(i64::from(self.gaps.0));
        let told = !self.fine && self.gaps.1 >= GAPS_MIN && grain >= GRAIN_MIN;
        for flow in &mut self.flows {
            flow.grain_ms = if told { self.gaps.0.min(u16::from(u8::MAX)) as u8 } else { 0 };
        }
    }

    /// Whether its clock steps back again and again.
    pub(super) fn is_unsteady(&self) -> bool {
        self.steps >= STEPS_MAX
    }

    /// What such a clock measured is no more than possible.
    #[inline]
    pub(super) fn doubt_times(&self, verdict: &mut Verdict) {
        if self.is_unsteady() || self.flows[CLIENT].grain_ms > 0 {
            self.doubt_what_is_blurred(verdict);
        }
    }

    #[cold]
    #[inline(never)]
    fn doubt_what_is_blurred(&self, verdict: &mut Verdict) {
        if self.is_unsteady() || took(verdict) <= self.flows[CLIENT].grain().times(GRAINS_OFF) {
            verdict.split.doubt();
        }
    }
}
