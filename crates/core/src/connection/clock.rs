//! What if the capture's clock is set during a connection, or steps back repeatedly?
//!
//! If both ends send time stamps, these tell how much time really passed across one step. After a step
//! forward, the step is charged to nobody; after a step back, time goes on from where it was.
//!
//! Interface queues reorder packets by less than a few milliseconds. A single step of a clock being set
//! is skipped: no interval across it is measured (`general.rs`). A clock that steps back more often
//! measures nothing between its steps either.

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

/// A step back of more than this is the clock's: no interface queue holds packets for so long. Source:
/// none written down.
const STEP_MIN: Duration = Duration::from_millis(10);
/// From this many gaps on, their common divisor is the clock's tick. Source: none written down.
const GAPS_MIN: u8 = 4;
/// Ticks below this blur a wait by no more than waits vary. The shortest above it is that of kernels with 250 timer interrupts a second (HZ,
/// kernel/Kconfig.hz).
const GRAIN_MIN: Duration = Duration::from_millis(4);
/// A gap has two ends, each off by up to a tick.
const GRAINS_OFF: i64 = 2;
/// This many steps back make a clock unsteady: a clock is set once.
const STEPS_MAX: u8 = 2;

impl Connection {
    /// Counts a step if the next packet, captured at `at`, is dated before the last one.
    #[cold]
    pub(super) fn count_step(&mut self, at: Instant) {
        self.steps = self.steps.saturating_add(u8::from(self.last_at - at > STEP_MIN));
    }

    /// A packet is dated before the last one. If its sender's clock went on meanwhile, the capture's
    /// clock was set back; time goes on from where it was. Returns the packet's corrected time.
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

    /// Whether both ends' clocks show that the capture's clock was set before this end's last packet.
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

    /// Charges nobody for the step of a clock set forward during an exchange; how long the rest took is
    /// then unknown.
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

    /// Learns the tick of a capture clock in milliseconds, such as a timer of 10 ms. `now` is still the
    /// last packet's time.
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

    /// The capture was edited: its times are no measurements.
    #[cold]
    #[inline(never)]
    pub(super) fn be_unsteady(&mut self) {
        self.steps = STEPS_MAX;
    }

    /// Whether the capture's clock steps back repeatedly.
    pub(super) fn is_unsteady(&self) -> bool {
        self.steps >= STEPS_MAX
    }

    /// Measurements of an unsteady or coarse clock are at most possible.
    #[inline]
    pub(super) fn doubt_times(&self, verdict: &mut Verdict) {
        if self.is_unsteady() || self.flows[CLIENT].grain_ms > 0 {
            self.doubt_what_is_blurred(verdict);
        }
    }

    #[cold]
    #[inline(never)]
    fn doubt_what_is_blurred(&self, verdict: &mut Verdict) {
        if self.is_unsteady() {
            verdict.split.doubt();
        } else {
            verdict.split.doubt_up_to(self.flows[CLIENT].grain().times(GRAINS_OFF));
        }
    }
}
