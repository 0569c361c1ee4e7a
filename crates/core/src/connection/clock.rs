//! What if the capture's clock steps back again and again?
//!
//! Queues of an interface hand over packets in another order, by less than milliseconds, and one step of a clock that is set is passed
//! over: no interval across it is measured (`general.rs`). A clock that steps back more often says nothing of the times between its
//! steps either.

use tcpwhy_wire::{Duration, Instant};

use super::Connection;
use crate::rules::verdict::Verdict;

/// No queue of an interface holds packets for so long. Source: none written down.
const STEP_MIN: Duration = Duration::from_millis(10);
/// A clock is set once.
const STEPS_MAX: u8 = 2;

impl Connection {
    /// The next packet, of this time, comes before the last one's.
    #[cold]
    pub(super) fn count_step(&mut self, at: Instant) {
        self.steps = self.steps.saturating_add(u8::from(self.last_at - at > STEP_MIN));
    }

    /// Whether its clock steps back again and again.
    pub(super) fn is_unsteady(&self) -> bool {
        self.steps >= STEPS_MAX
    }

    /// What such a clock measured is no more than possible.
    #[inline]
    pub(super) fn doubt_times(&self, verdict: &mut Verdict) {
        if self.is_unsteady() {
            verdict.split.doubt();
        }
    }
}
