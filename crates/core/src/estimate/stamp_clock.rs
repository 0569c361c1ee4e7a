//! How much longer than usual did this packet take from its sender?
//!
//! The sender's time stamps (RFC 7323) are its clock at the time of sending. The smallest difference between
//! the capture's clock and the sender's is the path's own; a packet waited for whatever it exceeds that by.
//! The resolution is the sender's tick, and clocks drift, so packets are compared with the recent past only.

mod jump;
mod proof;

use tcpwhy_wire::{Duration, Instant};

use crate::estimate::maybe::Maybe;
use crate::estimate::stamp_drift::Drift;
use crate::estimate::stamp_jump::{JUMP_MIN, Jump};
use crate::estimate::stamp_step::Step;

/// Clock rates in use, the slowest first: 500 ms (4.4BSD's slow timer; OpenBSD and Mac OS X of old), 100 ms (Windows up
/// to 7), 10, 4 and 3.3 ms (jiffies of old), 1 ms (Linux, Windows, FreeBSD, macOS). RFC 7323, 5.4 allows 1 ms to 1 s.
const TICKS: [Duration; 6] = [
    Duration::from_millis(500),
    Duration::from_millis(100),
    Duration::from_millis(10),
    Duration::from_millis(4),
    Duration::from_nanos(3_333_333),
    TICK_SHORTEST,
];
/// The longest tick of systems that are still in use.
pub(crate) const TICK_LONGEST_TODAY: Duration = Duration::from_millis(10);
const TICK_SHORTEST: Duration = Duration::from_millis(1);
/// Shorter ticks than this can only be microseconds ...
const MICROSECONDS_BELOW: Duration = Duration::from_micros(100);
/// ... unless the first packet was late: after this time it would have to be late by a quarter of a second.
const MICROSECONDS_AFTER: Duration = Duration::from_millis(2);
/// TCP_USEC_TS (Linux 6.7, per route): far from all others, which a late first packet may make look halved.
const TICK_USEC: Duration = Duration::from_micros(1);
/// A growing queue stretches the first ticks of a microsecond clock at most this many times.
const STRETCHED_MAX: i64 = 8;
/// Ticks that must have passed to learn their length.
const LEARN_FROM_TICKS: i64 = 8;
/// No clock skips this many ticks.
const TICKS_WITHIN: i64 = 4;
/// Ticks that must lie between two packets to bound their length.
const BOUND_FROM_TICKS: i64 = 3;
/// A clock that has fallen back by this many fifths after this time does not show late packets: its rate is
/// not a known one, or it was learned while the clock jumped (a virtual machine's).
const RATE_SHOWN: [(Duration, i64); 2] = [(Duration::from_secs(2), 3), (Duration::from_secs(8), 1)];
/// Either of these is more than this.
const FALLEN_BACK_MIN: Duration = Duration::from_secs(1);
/// A packet after a silence of its sender finds no queue of that sender's own.
const CALM_AFTER: Duration = Duration::from_millis(100);
/// Before this, a late first packet may look like another rate.
const CONTRADICTED_FROM: Duration = Duration::from_millis(50);
/// No queue lasts for this long ...
const SLOW_FROM: Duration = Duration::from_millis(500);
/// ... and makes ticks look this many times longer than today's longest. Source: none written down.
const SLOW_TIMES: i64 = 5;
/// How long packets are compared with a smallest difference: at 100 ppm, clocks drift by 1 ms meanwhile.
const REMEMBER_FOR: Duration = Duration::from_secs(10);

const NEVER_AGREED: (Maybe<Instant>, Duration) = (Maybe::NONE, Duration::ZERO);

/// One sender's time-stamp clock as the capture sees it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StampClock {
    /// The first TSval, and when it passed.
    first_val: u32,
    first_at: Maybe<Instant>,
    /// Zero until it is known.
    tick: Duration,
    /// Before that: its likely maximum, from two packets that came shortly after one another.
    tick_max: Duration,
    /// Smallest difference of the present period and of the previous one; the longest time if there is none.
    smallest: [Duration; 2],
    period_ends: Instant,
    /// The present TSval, and when its first packet passed.
    stamp: u32,
    stamp_since: Maybe<Instant>,
    /// The one before it, likewise; itself if there is none.
    before: (u32, Instant),
    /// Its rate is not a known one, or it is no clock at all.
    unknown: bool,
    last: Instant,
    /// Of the last packet.
    difference: Duration,
    /// The last packet that took no longer than the fastest: when it passed, and its difference.
    agreed: (Maybe<Instant>, Duration),
    drift: Drift,
    step: Step,
    /// The last silence over which the capture's clock went on by more or less than this one.
    jump: Option<Box<Jump>>,
}

impl Default for StampClock {
    fn default() -> Self {
        Self {
            first_val: 0,
            first_at: Maybe::NONE,
            tick: Duration::ZERO,
            tick_max: Duration::MAX,
            smallest: [Duration::MAX; 2],
            period_ends: Instant::MIN,
            stamp: 0,
            stamp_since: Maybe::NONE,
            before: (0, Instant::MIN),
            unknown: false,
            last: Instant::MIN,
            difference: Duration::MAX,
            agreed: NEVER_AGREED,
            drift: Drift::default(),
            step: Step::default(),
            jump: None,
        }
    }
}

impl StampClock {
    #[inline]
    fn first(&self) -> Option<(u32, Instant)> {
        self.first_at.get().map(|at| (self.first_val, at))
    }

    #[inline]
    fn stamp(&self) -> Option<(u32, Instant)> {
        self.stamp_since.get().map(|since| (self.stamp, since))
    }

    #[inline]
    fn agreed(&self) -> Option<(Instant, Duration)> {
        self.agreed.0.get().map(|at| (at, self.agreed.1))
    }

    /// A packet stamped `val` passed at `at`. Returns how much longer than the fastest recent one it took,
    /// short by a tick at most, if that can be told. One that `overtook` others is no measure for these.
    pub(crate) fn on_packet(&mut self, at: Instant, val: u32, overtook: bool) -> Option<Duration> {
        self.on_usual_packet(at, val, overtook).get()
    }

    /// The same, inlined where most packets pass.
    #[expect(clippy::inline_always, reason = "its caller is large, and each segment passes it")]
    #[inline(always)]
    pub(crate) fn on_usual_packet(&mut self, at: Instant, val: u32, overtook: bool) -> Maybe<Duration> {
        if let Some((passed, difference)) = self.goes_on(at, val) {
            self.begin_stamp(at, val);
            self.last = at;
            return Maybe::of(self.compare(at, passed, difference, overtook));
        }
        self.learn(at, val, overtook).into()
    }

    /// In the usual case the packet says nothing about the clock: its rate is known and fits, and no silence
    /// or period ends. Returns the time since the first packet, and by how much that exceeds its stamp.
    #[inline]
    fn goes_on(&self, at: Instant, val: u32) -> Option<(Duration, Duration)> {
        let known = self.tick > Duration::ZERO && !self.unknown;
        let (first_val, first_at) = self.first().filter(|_| known)?;
        if at - self.last >= CALM_AFTER || at >= self.period_ends {
            return None;
        }
        let (passed, ticks) = (at - first_at, i64::from(val.wrapping_sub(first_val) as i32));
        let difference = passed - self.tick.times(ticks);
        let early = || difference >= -JUMP_MIN && self.fits(passed, ticks);
        let goes_on = if difference < Duration::ZERO { early() } else { difference <= FALLEN_BACK_MIN };
        goes_on.then_some((passed, difference))
    }

    /// Whether its ticks are milliseconds, and cannot be microseconds.
    #[inline]
    fn fits(&self, passed: Duration, ticks: i64) -> bool {
        self.tick == TICK_SHORTEST && passed >= MICROSECONDS_BELOW.times(ticks)
    }

    #[inline]
    fn begin_stamp(&mut self, at: Instant, val: u32) {
        if self.stamp_since.is_none() {
            return self.begin_first_stamp(at, val);
        }
        if self.stamp != val {
            self.before = (self.stamp, self.stamp_since.known());
            (self.stamp, self.stamp_since) = (val, Maybe::of(at));
        }
    }

    /// How late a packet is compared with the fastest recent one.
    #[inline]
    fn compare(&mut self, at: Instant, passed: Duration, difference: Duration, overtook: bool) -> Duration {
        self.difference = difference;
        if !overtook {
            self.smallest[0] = self.smallest[0].min(difference);
        }
        // In the first period the very first packet is a sample too: its difference is zero by definition.
        let first = if passed < REMEMBER_FOR { Duration::ZERO } else { Duration::MAX };
        let smallest = self.smallest[0].min(self.smallest[1]).min(first);
        let late = difference - smallest - self.tick;
        if !late.is_positive() {
            self.agreed = (Maybe::of(at), difference);
        }
        late.at_least_zero()
    }

    /// [`Self::on_packet`] of a packet that may say something about the clock.
    #[inline(never)]
    fn learn(&mut self, at: Instant, val: u32, overtook: bool) -> Option<Duration> {
        if self.tick == TICK_USEC && at - self.last >= CALM_AFTER && self.stands_still(at, val) {
            *self = Self::default();
        }
        self.note_jump(at, val);
        if let Some((stamp, _)) = self.stamp() {
            self.step.on_stamp(val.wrapping_sub(stamp));
        }
        self.begin_stamp(at, val);
        let Some((first_val, first_at)) = self.first() else {
            (self.first_val, self.first_at) = (val, Maybe::of(at));
            return None;
        };
        let (passed, ticks) = (at - first_at, i64::from(val.wrapping_sub(first_val) as i32));
        let mut difference = passed - self.tick.times(ticks);
        if self.tick == Duration::ZERO && ticks >= BOUND_FROM_TICKS {
            // Sent at least `ticks - 1` ticks apart; half as much again, in case the first one was late.
            let apart = passed.divided_by(ticks - 1);
            self.tick_max = self.tick_max.min(apart + apart.divided_by(2)).max(TICK_SHORTEST);
        }
        // A tick that fits is not revised.
        if ticks >= LEARN_FROM_TICKS
            && (self.tick == Duration::ZERO || difference < Duration::ZERO)
            && !self.fits(passed, ticks)
        {
            self.revise(passed, ticks);
            difference = passed - self.tick.times(ticks);
        }
        let fallen_back = |after: Duration, fifths| {
            passed >= after && difference > Duration::from_nanos(passed.as_nanos() / 5 * fifths)
        };
        if difference > FALLEN_BACK_MIN {
            self.unknown |= RATE_SHOWN.into_iter().any(|(after, fifths)| fallen_back(after, fifths));
        }
        let calm = at - self.last >= CALM_AFTER;
        self.last = at;
        if calm && !self.unknown && self.tick > Duration::ZERO {
            self.unknown = self.drift.on_calm(at, difference, self.tick);
        }
        self.difference = difference;
        if self.unknown || self.tick == Duration::ZERO {
            return None;
        }
        if at >= self.period_ends {
            self.smallest = [Duration::MAX, self.smallest[0]];
            self.period_ends = at + REMEMBER_FOR;
        }
        let late = self.compare(at, passed, difference, overtook);
        self.unknown = self.step.may_be(late);
        (!self.unknown).then_some(late)
    }

    /// The last packet seemed `late`, and can have waited for at most `most`: it left after something that
    /// had passed here. The rest is the clock's: its host slept, or its rate is not a known one.
    #[inline]
    pub(crate) fn on_bound(&mut self, late: Duration, most: Duration) {
        let Some((_, first_at)) = self.first() else { return };
        let (passed, beyond) = (self.last - first_at, late - most);
        self.unknown |= passed >= CONTRADICTED_FROM && beyond > self.tick + passed.divided_by(64);
        if beyond.max(-beyond) <= self.tick {
            self.agreed = (Maybe::of(self.last), self.difference - late); // it waited for just that long
        }
    }

    /// The difference that packets are compared with. If it falls, earlier ones had waited that much longer.
    pub(crate) fn base(&self) -> Option<Duration> {
        (self.tick != Duration::ZERO).then(|| self.smallest[0].min(self.smallest[1]).min(Duration::ZERO))
    }

    /// The same, or that of the last packet if it took even less.
    pub(crate) fn base_with_last(&self) -> Option<Duration> {
        self.base().map(|base| base.min(self.difference))
    }

    /// Whether a microsecond clock would have to have stood still for nearly all of the silence before this
    /// packet: a late first packet made longer ticks look like microseconds.
    fn stands_still(&self, at: Instant, val: u32) -> bool {
        let microseconds = (at - self.last).as_nanos() / TICK_USEC.as_nanos();
        self.stamp().is_some_and(|(stamp, _)| i64::from(val.wrapping_sub(stamp) as i32) < microseconds / 10)
    }

    /// Takes the longest known tick that fits, later only a shorter one: queues make ticks look long.
    fn revise(&mut self, passed: Duration, ticks: i64) {
        let longest = (passed.as_nanos() / ticks).min(self.tick_max.as_nanos());
        if longest < MICROSECONDS_BELOW.as_nanos() && passed < MICROSECONDS_AFTER {
            return;
        }
        let fitting = if longest <= TICK_USEC.as_nanos() * STRETCHED_MAX {
            TICK_USEC
        } else if longest < MICROSECONDS_BELOW.as_nanos() {
            return;
        } else {
            TICKS.into_iter().find(|tick| tick.as_nanos() <= longest + longest / 8).unwrap_or(TICK_SHORTEST)
        };
        if self.tick == Duration::ZERO || fitting < self.tick {
            (self.tick, self.agreed) = (fitting, NEVER_AGREED);
            self.smallest = [Duration::MAX; 2];
        }
    }

    /// Whether this stamp is later than that of the last packet.
    pub(crate) fn is_newer(&self, val: u32) -> bool {
        self.stamp().is_none_or(|(stamp, _)| (val.wrapping_sub(stamp) as i32) > 0)
    }

    /// How long packets with the present stamp have been passing, unless its tick is known to be long.
    pub(crate) fn same_stamp_for(&self, now: Instant) -> Option<Duration> {
        let known = !self.unknown && self.tick <= TICK_SHORTEST && !self.may_be_slow();
        self.stamp().filter(|_| known).map(|(_, since)| now - since)
    }

    /// Whether, before the tick is known, so few ticks have passed that it is longer than any of today's.
    fn may_be_slow(&self) -> bool {
        let Some(((first_val, first_at), (stamp, _))) = self.first().zip(self.stamp()) else { return false };
        let (passed, ticks) = (self.last - first_at, i64::from(stamp.wrapping_sub(first_val) as i32));
        let today = TICK_LONGEST_TODAY.times(SLOW_TIMES * (ticks.max(0) + 1));
        self.tick == Duration::ZERO && passed >= SLOW_FROM && passed > today
    }

    /// Whether it has shown to tick several times within `gap`, at whatever rate, standing still or not.
    pub(crate) fn ticks_within(&self, gap: Duration) -> bool {
        let Some(((first_val, first_at), (stamp, _))) = self.first().zip(self.stamp()) else { return false };
        let (passed, ticks) = (self.last - first_at, i64::from(stamp.wrapping_sub(first_val) as i32));
        ticks >= LEARN_FROM_TICKS && gap > passed.divided_by(ticks).times(TICKS_WITHIN)
    }

    /// The time between the sending of two packets with these stamps, to within a tick, if it can be told.
    pub(crate) fn ticks_apart(&self, earlier: u32, later: u32) -> Option<Duration> {
        let known = !self.unknown && self.tick > Duration::ZERO && self.tick <= TICK_SHORTEST;
        known.then(|| self.tick.times(i64::from(later.wrapping_sub(earlier) as i32).max(0)))
    }

    /// The longest time between the sending of two packets with these stamps, if it can be told.
    pub(crate) fn sent_apart(&self, earlier: u32, later: u32) -> Option<Duration> {
        if self.unknown || self.may_be_slow() {
            return None;
        }
        let ticks = i64::from(later.wrapping_sub(earlier) as i32);
        // Without a measured tick: that of nearly all senders, or today's longest if the stamps differ.
        let longest = TICKS.into_iter().find(|tick| *tick <= self.tick_max.min(TICK_LONGEST_TODAY));
        let assumed = if ticks == 0 { TICK_SHORTEST } else { longest.unwrap_or(TICK_SHORTEST) };
        let tick = if self.tick == Duration::ZERO { assumed } else { self.tick };
        Some(tick.times(ticks.max(0) + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: i64) -> Instant {
        Instant::from_nanos(n * 1_000_000)
    }

    #[test]
    fn a_late_first_packet_does_not_make_milliseconds_microseconds() {
        // The first one is 55 ms late: 56 ticks pass within 0.2 or 1.4 ms; later ones are on time.
        for passed_us in [200, 1_400] {
            let mut clock = StampClock::default();
            let at = |us: i64| Instant::from_nanos(us * 1_000);
            clock.on_packet(at(0), 1_000, false);
            clock.on_packet(at(passed_us), 1_056, false);
            for n in 1..20 {
                let late = clock.on_packet(at(passed_us + n * 700_000), 1_056 + 700 * n as u32, false);
                assert!(late.unwrap_or_default() < Duration::from_millis(2), "{late:?}");
            }
        }
    }

    #[test]
    fn a_packet_that_waited_30_ms_shows_29_to_30_of_them() {
        let mut clock = StampClock::default();
        for i in 0..40 {
            clock.on_packet(ms(1000 + 10 * i), 5000 + 10 * i as u32, false);
        }
        let waited = clock.on_packet(ms(1400 + 30), 5400, false).expect("the rate is known");
        assert!(waited >= Duration::from_millis(29) && waited <= Duration::from_millis(30), "{waited}");
        assert_eq!(clock.on_packet(ms(1500), 5500, false), Some(Duration::ZERO));
    }

    /// Ticks of 500 ms (OpenBSD, Mac OS X of old), 100 ms (Windows of old) and 3.3 ms (HZ=300), and one that nobody has.
    #[test]
    fn a_slow_clock_is_no_queue() {
        for tick_ms in [500, 100, 10, 1] {
            let mut clock = StampClock::default();
            for i in 0..400 {
                let waited = clock.on_packet(ms(1000 + 250 * i), (250 * i / tick_ms) as u32, false);
                assert!(
                    waited.is_none_or(|waited| waited <= Duration::from_millis(1)),
                    "{tick_ms}: {waited:?}"
                );
            }
        }
        let mut clock = StampClock::default();
        let late =
            (0..400).filter_map(|i| clock.on_packet(ms(1000 + 250 * i), (250 * i * 3 / 10) as u32, false));
        assert!(late.max().is_none_or(|waited| waited <= Duration::from_millis(4)), "HZ=300");
        let mut clock = StampClock::default();
        let odd = (0..400).map(|i| clock.on_packet(ms(1000 + 250 * i), (250 * i / 40) as u32, false)).last();
        assert_eq!(odd, Some(None), "40 ms");
        assert_eq!(clock.sent_apart(7, 7), None);
        let mut clock = StampClock::default();
        let late =
            (0..400).map(|i| clock.on_packet(ms(1000 + 250 * i), (250 * i * 1000 / 1024) as u32, false));
        assert_eq!(late.skip(24).flatten().next(), None, "1,024 us");
    }

    /// 28 bytes 236 ms, one stamp, after 568; four stamps had taken 2 s (frames 16 to 45, an old system).
    #[test]
    fn stamps_of_half_a_second_do_not_date_what_was_sent_before_their_length_is_known() {
        let mut clock = StampClock::default();
        for (at_ms, val) in [(0, 92_452), (230, 92_453), (600, 92_453), (780, 92_454), (1_020, 92_455)] {
            clock.on_packet(ms(at_ms), val, false);
        }
        assert_eq!(clock.sent_apart(92_454, 92_455), None);
        assert_eq!(clock.same_stamp_for(ms(1_200)), None);
    }

    /// A clock that counts milliseconds and goes on every 500 of them (frames 1 to 40 of an OS/400's FTP); a
    /// sender with a beat goes on by about as many.
    #[test]
    fn a_clock_that_counts_more_than_it_ticks_is_no_queue() {
        let sent = [
            (0, 0),
            (275, 500),
            (4_217, 4_500),
            (7_639, 8_000),
            (8_184, 8_500),
            (20_766, 21_000),
            (20_798, 21_000),
            (21_394, 21_500),
        ];
        let mut clock = StampClock::default();
        let late = sent.map(|(at, val)| clock.on_packet(ms(1_000 + at), val, false));
        assert_eq!(late.into_iter().flatten().find(|late| late.is_positive()), None);
        let mut clock = StampClock::default();
        for at in (0..10).map(|n| n * 500 + n % 3) {
            clock.on_packet(ms(1_000 + at), 7_000 + at as u32, false);
        }
        assert_eq!(clock.on_packet(ms(6_030), 12_000, false), Some(Duration::from_millis(29)));
    }

    #[test]
    fn a_first_packet_that_was_late_makes_no_microseconds_of_milliseconds() {
        // Sent at 0, 8, 35 and 62 ms; the first one only comes when the second one is sent.
        let mut clock = StampClock::default();
        for (at_us, val) in [(8_900, 0), (8_934, 8), (35_090, 35), (62_080, 62)] {
            clock.on_packet(Instant::from_nanos(at_us * 1_000), val, false);
        }
        assert_eq!(clock.ticks_apart(35, 62), Some(Duration::from_millis(27)));
    }

    #[test]
    fn a_queue_that_grows_while_the_clock_is_learned_does_not_slow_the_clock() {
        // 1 ms ticks, sent every 10 ms, each 5 ms longer on its way than the one before.
        let mut clock = StampClock::default();
        let mut waited = None;
        for i in 0..20 {
            waited = clock.on_packet(ms(1000 + 15 * i), 5000 + 10 * i as u32, false);
        }
        let waited = waited.expect("the rate is known");
        assert!(waited >= Duration::from_millis(80), "{waited}");
    }

    #[test]
    fn a_handshake_bounds_the_tick_for_the_queue_behind_it() {
        // A round trip of 3.7 ms over 1 Mbit/s: the window's first packets fill the queue, and 8 ticks after
        // the SYN the first full segment arrives, 25.6 ms after it; it had left at 8 ms.
        let mut clock = StampClock::default();
        for (at_us, val) in [(0, 129), (3_679, 132), (4_683, 133), (9_481, 133), (13_322, 133)] {
            clock.on_packet(Instant::from_nanos(at_us * 1_000), val, false);
        }
        let waited = clock.on_packet(Instant::from_nanos(25_645_000), 137, false);
        assert_eq!(waited.map(|waited| waited.as_nanos() / 1_000_000), Some(16));
    }

    #[test]
    fn a_handshake_dates_what_was_sent_soon_behind_it() {
        let mut clock = StampClock::default();
        clock.on_packet(Instant::from_nanos(0), 810, false);
        assert_eq!(clock.sent_apart(814, 815), Some(Duration::from_millis(20)));
        // Four ticks within 3.6 ms are not of 3.3 ms.
        clock.on_packet(Instant::from_nanos(3_620_000), 814, false);
        assert_eq!(clock.sent_apart(814, 815), Some(Duration::from_millis(2)));
    }

    #[test]
    fn a_late_syn_does_not_shorten_ticks_of_4_ms() {
        // HZ=250 before Linux 4.13; the SYN waited 2 ms for its neighbour's address.
        let mut clock = StampClock::default();
        for i in 0..40 {
            let sent_ms = 13 * i;
            let late =
                clock.on_packet(ms(1000 + sent_ms + if i == 0 { 2 } else { 0 }), (sent_ms / 4) as u32, false);
            assert!(late.is_none_or(|late| late <= Duration::from_millis(2)), "{i}: {late:?}");
        }
        assert_eq!(clock.sent_apart(1, 1), Some(Duration::from_millis(4)));
    }
}
