//! How far away is an end, if no handshake shows it?
//!
//! A packet that echoes a time stamp left after that stamp had arrived (RFC 7323, 4.1): it comes at least a
//! round trip after the stamp passed, however its sender's application times its writes.

use tcpwhy_wire::{Duration, Instant};

/// A later echo means that its sender had nothing to say until then.
const ECHO_MAX: Duration = Duration::from_secs(1);

/// The TSval of one end that the other is to echo, one at a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct EchoProbe {
    /// The TSval, and when it passed; [`Instant::MIN`] if there is none.
    awaited: u32,
    awaited_since: Instant,
    /// The last TSval that passed. Of several packets with the same one, the first to arrive is echoed.
    last: Option<u32>,
    /// The quickest echo; the longest time if there was none.
    bound: Duration,
}

impl Default for EchoProbe {
    fn default() -> Self {
        Self { awaited: 0, awaited_since: Instant::MIN, last: None, bound: Duration::MAX }
    }
}

impl EchoProbe {
    /// A packet with this stamp passed on its way to the other end.
    #[inline]
    pub(crate) fn on_stamp(&mut self, val: u32, now: Instant) {
        let first = self.last.is_none_or(|last| (val.wrapping_sub(last) as i32) > 0);
        if first {
            self.last = Some(val);
            // An ACK's TSval may not be echoed until a probe of the idle connection comes (RFC 1122,
            // 4.2.3.6), which is answered at once.
            if now - self.awaited_since >= ECHO_MAX {
                (self.awaited, self.awaited_since) = (val, now);
            }
        }
    }

    /// The capture's clock stepped: the echo can no longer be timed.
    pub(crate) fn interrupt(&mut self) {
        self.awaited_since = Instant::MIN;
    }

    /// The quickest echo was not the other end's.
    pub(crate) fn forget_bound(&mut self) {
        self.bound = Duration::MAX;
    }

    /// The other end echoes this TSval. If it is the awaited one or a later one, returns an upper bound of
    /// the round trip between the capture and that end; not from the first echo if none is `known`, because
    /// that may be of a write a while later.
    #[inline]
    pub(crate) fn on_echo(&mut self, ecr: u32, now: Instant, known: bool) -> Option<Duration> {
        let at = self.awaited_since;
        if at == Instant::MIN || (ecr.wrapping_sub(self.awaited) as i32) < 0 {
            return None;
        }
        self.awaited_since = Instant::MIN;
        let before = self.bound;
        self.bound = before.min((now - at).at_least_zero());
        ((known || before < Duration::MAX) && self.bound < ECHO_MAX).then_some(self.bound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: i64) -> Instant {
        Instant::from_nanos(us * 1_000)
    }

    #[test]
    fn the_echo_of_a_stamp_is_counted_from_the_first_packet_that_had_it() {
        let mut probe = EchoProbe::default();
        probe.on_stamp(6, at(0));
        probe.on_stamp(7, at(600));
        assert_eq!(probe.on_echo(6, at(20_000), true), Some(Duration::from_millis(20)));
        probe.on_stamp(7, at(20_100)); // echoed for the packet at 600 us
        assert_eq!(probe.on_echo(7, at(20_600), true), None);
    }

    #[test]
    fn a_stamp_that_nobody_echoes_for_a_second_makes_room_for_the_next_one() {
        let mut probe = EchoProbe::default();
        probe.on_stamp(6, at(0));
        probe.on_stamp(900, at(900_000));
        probe.on_stamp(10_000, at(10_000_000));
        assert_eq!(probe.on_echo(900, at(10_000_100), true), None);
        assert_eq!(probe.on_echo(10_000, at(10_004_600), true), Some(Duration::from_micros(4_600)));
    }
}
