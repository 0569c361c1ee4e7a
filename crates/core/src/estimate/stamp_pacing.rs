//! Did the sender itself space what arrives evenly?
//!
//! What a sender that paces its segments (BBR, the fq queue, SO_MAX_PACING_RATE) sends arrives like a
//! backlog before a slow link. Its time stamps tell the two apart: with pacing they advance as the packets
//! do, and no packet waited on its way; a burst that a link spreads out carries one stamp, and a packet that
//! arrives at the pace of a link has others waiting before it.

use tcpwhy_wire::Duration;

/// Time stamps in milliseconds say nothing about shorter intervals than these.
pub(crate) const STAMP_BLUR: Duration = Duration::from_millis(3);
/// Time stamps in milliseconds tell over this long.
const JUDGED_OVER: Duration = Duration::from_millis(6);

/// Short intervals between segments of one queue, summed up until stamps in milliseconds can tell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Pace {
    arrived: Duration,
    sent: Duration,
    /// The part of `arrived` that came before packets that had waited on their way.
    waited: Duration,
    paced: bool,
}

impl Pace {
    pub(crate) const NONE: Self =
        Self { arrived: Duration::ZERO, sent: Duration::ZERO, waited: Duration::ZERO, paced: false };

    /// A segment came `gap` after the previous one and had left `sent` after it; `waited` if it took longer
    /// than the path needs.
    #[inline]
    pub(crate) fn on_segment(&mut self, gap: Duration, sent: Duration, waited: bool) {
        self.arrived += gap;
        self.sent += sent;
        if waited {
            self.waited += gap;
        }
        if self.arrived >= JUDGED_OVER {
            let apart = self.sent.times(4) >= self.arrived.times(3);
            *self = Self { paced: apart && self.waited.times(2) < self.arrived, ..Self::NONE };
        }
    }

    /// Whether the spacing of the last segments was their sender's.
    pub(crate) fn is_paced(&self) -> bool {
        self.paced
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(sent_us: i64, waited: bool) -> bool {
        let mut pace = Pace::NONE;
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
