//! How certain is it that a packet was late, and not its sender's clock slow? See `estimate/stamp_clock.rs`.

use tcpwhy_wire::{Duration, Instant};

use super::{CALM_AFTER, StampClock, TICK_LONGEST_TODAY, TICK_SHORTEST, TICK_USEC, TICKS};
use crate::words::limits::LATE_SHARE;

/// Hundredths by which a clock's true rate may be off the apparent one: 5 ms (HZ=200) for 4, or 1.29 ms
/// (macOS counts late while it is busy).
const OFF_MAX: i128 = 30;
/// ... and for a clock with the longest ticks of today, one part in this many. See `TICKS`.
const OFF_LONGEST: i64 = 8;
/// Two packets are equally punctual under a tick that explains the time between them within one part in this
/// many. Source: none written down.
const PUNCTUAL_SHARE: i64 = 16;
/// A silence longer than this, and than the rate was seen to hold before, proves nothing: a host may have
/// slept.
const UNPROVEN_MAX: Duration = Duration::from_secs(1);
/// So short a time shows no rate: if the first packet was late, eight ticks of 4 or 10 ms pass within it.
const RATE_FROM: Duration = Duration::from_millis(12);
/// If all packets so far took at most half as long again as their stamps say, the clock ticks no more slowly
/// than it seems to. See `TICKS`.
const SLOWER: i64 = 3;
/// Two clocks that are being adjusted differ by up to one part in this many, for minutes or hours: 500 ppm each (MAXFREQ,
/// include/linux/timex.h).
const GAINS_SHARE: i64 = 1_000;
/// No clock counts fewer ticks in this many times as long. Source: none written down.
const SLOWED_TIMES: i64 = 10;

impl StampClock {
    /// Whether a packet at `at` was this `late` beyond doubt: within as much time as the rate was seen to
    /// hold.
    pub(crate) fn proves(&self, late: Duration, at: Instant) -> bool {
        let Some((held, since, _)) = self.held(at) else { return false };
        let longest = if self.is_rated() { UNPROVEN_MAX } else { CALM_AFTER };
        (since <= held || since <= longest) && self.is_beyond_rate(late, at)
    }

    /// Whether a packet at `at` was this `late` unless its sender's clock stood still. Since the last packet
    /// that was not late, a slightly wrong rate makes the difference grow too, by at most what that packet
    /// shows. If it is off by more than a tick, the difference compared with, which may be older, was
    /// smaller by some of that as well.
    pub(crate) fn is_beyond_rate(&self, late: Duration, at: Instant) -> bool {
        let Some((held, since, off)) = self.held(at) else { return false };
        let [held, since] = [held, since].map(|time| i128::from(time.as_nanos()));
        let before =
            if off > self.tick { off - self.smallest[0].min(self.smallest[1]) } else { Duration::ZERO };
        let late = i128::from((late - before.at_least_zero()).as_nanos());
        let off = i128::from((off.at_least_zero() + self.tick).as_nanos());
        // Divisions of 128 bits would take longer than all else here.
        late * held.max(1) > since * off || late * 100 > since * OFF_MAX
    }

    /// Whether a packet may have taken this much `less` than one at `since` because this clock gains on the capture's.
    pub(crate) fn may_gain(&self, less: Duration, since: Instant) -> bool {
        less.times(GAINS_SHARE) <= self.last - since
    }

    /// Whether a packet that passed after `at` was on time again: a clock that stood still would have stayed
    /// behind.
    pub(crate) fn has_caught_up(&self, at: Instant) -> bool {
        self.is_rated() && self.agreed().is_some_and(|(agreed, _)| agreed > at)
    }

    /// The first packet may have been late by up to `most`, as a shorter round trip shows. If its stamp then fits a longer tick as well, and the
    /// known one only with a queue since, the clock is learned anew from the last packet. Returns whether it is.
    #[cold]
    #[inline(never)]
    pub(crate) fn began_late(&mut self, most: Duration) -> bool {
        let Some(((first_val, first_at), (stamp, _))) = self.first().zip(self.stamp()) else { return false };
        let (passed, ticks) = (self.last - first_at, i64::from(stamp.wrapping_sub(first_val) as i32));
        let longer = TICKS.into_iter().rev().find(|tick| *tick > self.tick);
        let fits = self.tick >= TICK_SHORTEST
            && passed.times(LATE_SHARE) > self.tick.times(ticks * (LATE_SHARE + 1))
            && longer.is_some_and(|longer| longer.times(ticks) - passed <= most);
        if fits {
            let at = self.last;
            *self = Self::default();
            self.learn(at, stamp, false);
        }
        fits
    }

    /// Whether its stamps have gone on since the first packet.
    pub(crate) fn has_ticked(&self) -> bool {
        self.first().zip(self.stamp()).is_some_and(|((first, _), (stamp, _))| stamp != first)
    }

    /// Whether no longer tick makes a packet at `at` punctual that is this `late`: one is at least three
    /// times a millisecond.
    pub(crate) fn ticks_no_slower(&self, late: Duration, at: Instant) -> bool {
        self.first().is_some_and(|(_, first_at)| late.times(SLOWER) <= at - first_at)
    }

    /// How long the rate was seen to hold, how long before `at` that was, and how far it was off then.
    #[inline]
    fn held(&self, at: Instant) -> Option<(Duration, Duration, Duration)> {
        let (_, first_at) = self.first().filter(|_| !self.unknown)?;
        let (agreed_at, off) = self.agreed().unwrap_or((first_at, Duration::ZERO));
        Some((agreed_at - first_at, at - agreed_at, off))
    }

    /// How long before the packet that has just passed, at `at`, the previous one with another stamp was
    /// sent, to within a tick; zero if an earlier packet had the same stamp.
    pub(crate) fn since_before(&self, at: Instant) -> Option<Duration> {
        let known = !self.unknown && self.tick > Duration::ZERO;
        let (stamp, since) = self.stamp().filter(|_| known)?;
        let ticks = if since < at { 0 } else { i64::from(stamp.wrapping_sub(self.before.0) as i32) };
        Some(self.tick.times(ticks.max(0)))
    }

    /// When the first packet with the previous stamp passed.
    pub(crate) fn passed_before(&self) -> Option<Instant> {
        self.stamp().map(|_| self.before.1)
    }

    /// How much longer the first packet with the present stamp took than the first one with the previous
    /// stamp, if that one passed after `since`; none if another rate explains it. It needs no packet that
    /// was on time.
    pub(crate) fn later_than_before(&self, since: Instant) -> Option<Duration> {
        let known = !self.unknown && self.tick > Duration::ZERO;
        let ((stamp, at), (before, before_at)) = (self.stamp().filter(|_| known)?, self.before);
        let ticks = i64::from(stamp.wrapping_sub(before) as i32);
        if ticks <= 0 || before_at <= since {
            return None;
        }
        let apart = at - before_at;
        let late = apart - self.tick.times(ticks + 1);
        // There are no ticks between 10 ms and 100 ms.
        let off = if self.tick == TICK_LONGEST_TODAY {
            apart.divided_by(OFF_LONGEST)
        } else {
            Duration::from_nanos(apart.as_nanos() / 100 * OFF_MAX as i64)
        };
        // A late first packet makes ticks look shorter than they are.
        let punctual = |tick: &Duration| {
            let off = apart - tick.times(ticks);
            *tick > self.tick && off.max(-off) <= *tick + apart.divided_by(PUNCTUAL_SHARE)
        };
        (late > off && !TICKS.iter().any(punctual)).then_some(late)
    }

    /// The longest time in which the clock counted the ticks from the previous stamp to the present one: it had counted
    /// more, by a tick at either end, from the first stamp to the previous one, within a small part of the time
    /// that lies between the last two here. No rate explains both.
    #[cold]
    #[inline(never)]
    pub(crate) fn slowed_down(&self, rtt: Duration) -> Option<Duration> {
        let ((first, first_at), (stamp, at)) = self.first().zip(self.stamp())?;
        let (before, before_at) = self.before;
        let ticks = |from: u32, to: u32| i64::from(to.wrapping_sub(from) as i32);
        let (sooner, later) = (ticks(first, before), ticks(before, stamp));
        let long = (before_at - first_at + rtt).times(SLOWED_TIMES);
        let slowed = later > 0 && sooner - 1 > later && at - before_at >= long;
        slowed.then(|| TICK_LONGEST_TODAY.times(later + 1))
    }

    /// Whether a packet at `at` with this stamp would have left within a tick of one before it, although a
    /// whole round trip of `rtt` lies between the two, which is longer than any tick of today.
    pub(crate) fn is_stale(&self, stamp: u32, at: Instant, rtt: Duration) -> bool {
        let since =
            self.stamp().filter(|(present, _)| *present == stamp && !self.unknown).map(|(_, since)| since);
        rtt > self.tick.max(TICK_LONGEST_TODAY)
            && !self.may_be_slow()
            && since.is_some_and(|since| at - since >= rtt)
    }

    /// The last packet's stamp.
    pub(crate) fn present(&self) -> Option<u32> {
        self.stamp().map(|(stamp, _)| stamp)
    }

    /// When the first packet with a stamp passed.
    pub(crate) fn began(&self) -> Option<Instant> {
        self.first_at.get()
    }

    /// Zero until it is known.
    pub(crate) fn tick(&self) -> Duration {
        self.tick
    }

    /// Whether its ticks are longer than those of most hosts of today.
    pub(crate) fn ticks_slowly(&self) -> bool {
        self.tick > TICK_SHORTEST
    }

    /// Whether its rate was seen to hold long enough to tell a late packet from another rate.
    pub(crate) fn is_rated(&self) -> bool {
        let held =
            self.agreed().zip(self.first()).map_or(Duration::ZERO, |((at, _), (_, first_at))| at - first_at);
        held >= RATE_FROM || self.tick == TICK_USEC
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames 3 to 49 of a small web server whose ticks of 10 ms lose one in a thousand: since the last
    /// packets that were not late its clock has lost nearly all that the last one is late by, and the packet
    /// compared with came 20 s before.
    #[test]
    fn what_a_clock_has_lost_since_the_fastest_packet_proves_nothing() {
        let sent = [
            (0, 323),
            (4_755, 323),
            (33_007, 326),
            (37_102, 327),
            (4_077_495, 730),
            (4_081_897, 731),
            (8_474_615, 1_169),
            (8_477_154, 1_170),
            (8_485_939, 1_171),
            (13_714_136, 1_693),
            (13_716_234, 1_693),
            (13_777_953, 1_699),
            (13_781_629, 1_700),
            (16_920_348, 2_013),
            (16_924_633, 2_014),
            (17_002_446, 2_021),
            (17_004_415, 2_022),
            (17_009_711, 2_022),
            (24_652_020, 2_786),
            (24_659_697, 2_786),
        ];
        let mut clock = StampClock::default();
        let at = |us: i64| Instant::from_nanos(us * 1_000);
        let late = sent.map(|(us, val)| clock.on_packet(at(us), val, false))[sent.len() - 1];
        let late = late.expect("its rate is known");
        assert!(late > Duration::from_millis(17) && !clock.proves(late, at(24_659_697)), "{late}");
    }
}
