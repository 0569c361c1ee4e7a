//! When would this sender's retransmission timer fire? RFC 6298 as Linux computes it.

use crate::estimate::maybe::Maybe;
use crate::words::limits::RTO_MIN;
use tcpwhy_wire::Duration;

/// TCP_TIMEOUT_INIT, before any sample (RFC 6298, 2.1).
const RTO_INITIAL: Duration = Duration::from_secs(1);
/// The same if a SYN or a SYN-ACK was retransmitted (RFC 6298, 5.7; TCP_TIMEOUT_FALLBACK, tcp_init_metrics,
/// net/ipv4/tcp_metrics.c, Linux 6.12).
const RTO_FALLBACK: Duration = Duration::from_secs(3);

/// Smoothed round-trip time and the timer that follows from it, as the sender would have them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct RtoEstimator {
    srtt: Maybe<Duration>,
    /// Four times the mean deviation is kept, as the kernel does.
    rttvar: Duration,
    /// A round trip has been measured since the first.
    settling: bool,
    /// No sample was taken of the handshake ...
    untimed: bool,
    /// ... which is still to be acknowledged.
    skips: bool,
}

impl RtoEstimator {
    /// A round trip as the sender measured it.
    #[expect(clippy::inline_always, reason = "each usual acknowledgement is a sample, of either end")]
    #[inline(always)]
    pub(crate) fn on_sample(&mut self, rtt: Duration) {
        let Some(srtt) = self.srtt.get() else {
            if std::mem::take(&mut self.skips) {
                return;
            }
            self.srtt = Maybe::of(rtt);
            self.rttvar = rtt.times(2).max(RTO_MIN);
            return;
        };
        let error = rtt - srtt;
        self.srtt = Maybe::of(srtt + error.divided_by(8));
        // tcp_rtt_estimator: the floor of the deviation is rto_min, and it decays by a quarter each round
        // trip. At the end of the first one mdev_max_us is still what the first sample set, so nothing
        // decays.
        let deviation = if error < Duration::ZERO { -error } else { error };
        // Compared first: most deviate by less.
        let target = if deviation <= RTO_MIN.divided_by(4) { RTO_MIN } else { deviation.times(4) };
        if target > self.rttvar {
            self.rttvar = target;
        } else if std::mem::replace(&mut self.settling, true) {
            self.rttvar = self.rttvar - (self.rttvar - target).divided_by(4);
        }
    }

    /// For a sender that retransmitted a SYN or SYN-ACK and takes no sample from its ACK. `skips` if the
    /// capture has it once.
    pub(crate) fn behind_a_copy(skips: bool) -> Self {
        Self { untimed: true, skips, ..Self::default() }
    }

    /// Whether it still has no sample, having retransmitted a SYN or SYN-ACK.
    pub(crate) fn is_untimed(&self) -> bool {
        self.untimed && self.srtt.is_none()
    }

    /// The timer's length.
    pub(crate) fn rto(&self) -> Duration {
        let first = if self.untimed { RTO_FALLBACK } else { RTO_INITIAL };
        self.srtt.get().map_or(first, |srtt| srtt + self.rttvar.max(RTO_MIN))
    }

    /// The smoothed round trip, after more than one.
    pub(crate) fn settled(&self) -> Option<Duration> {
        self.srtt.get().filter(|_| self.settling)
    }

    /// The smoothed round trip.
    pub(crate) fn srtt(&self) -> Option<Duration> {
        self.srtt.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_tcp_info_at_three_round_trips() {
        // tcpi_rto read from the kernel (6.18): 40 ms -> 244..248 ms settled; 200 ms -> 604 ms after the handshake.
        let mut at_200 = RtoEstimator::default();
        at_200.on_sample(Duration::from_millis(200));
        assert!((600..=604).contains(&(at_200.rto().as_nanos() / 1_000_000)), "{}", at_200.rto());
        // A second one changes nothing, a third takes a quarter off: 604, 604, 560 ms.
        at_200.on_sample(Duration::from_millis(200));
        assert_eq!(at_200.rto(), Duration::from_millis(600));
        at_200.on_sample(Duration::from_millis(200));
        assert_eq!(at_200.rto(), Duration::from_millis(550));
        let mut at_40 = RtoEstimator::default();
        for _ in 0..20 {
            at_40.on_sample(Duration::from_millis(40));
        }
        assert!((240..=248).contains(&(at_40.rto().as_nanos() / 1_000_000)), "{}", at_40.rto());
    }

    #[test]
    fn behind_a_copy_of_a_syn_ack_nothing_is_known_until_data_is_acknowledged() {
        let mut rto = RtoEstimator::behind_a_copy(true);
        assert_eq!(rto.rto(), Duration::from_secs(3));
        rto.on_sample(Duration::from_millis(997));
        assert_eq!(rto.rto(), Duration::from_secs(3));
        rto.on_sample(Duration::from_millis(20));
        assert_eq!(rto.rto(), Duration::from_millis(220));
    }
}
