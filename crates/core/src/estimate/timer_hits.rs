//! Do late replies leave on the tick of their sender's kernel, like everything that its timers release?
//!
//! A kernel timer fires on a tick (tick_sched_timer, kernel/time/tick-sched.c: every 4 ms at HZ=250, 10 ms
//! at 100), or on a whole number of them (calc_wheel_index, kernel/time/timer.c). A program sleeps by
//! another clock, to the microsecond (hrtimer_nanosleep, kernel/time/hrtimer.c), and one that computes keeps
//! none. So waits that differ and end on one tick are a timer's.
//!
//! A tick does not say whose timer it was: a program that sleeps by the kernel's ticks leaves on them too.
//! But a connection's own timer always runs for the same time, and fires on the first tick after that, or
//! the first that the wheel has for it: such waits differ by at most one step. A program's differ as its
//! work does.

use tcpwhy_wire::{Duration, Instant};

use super::tick_band::TickBand;
use super::ticks::{ALL, ANCHORED_MAX, DRIFT_PPM, LateReply, OF_PROGRAMS, TICKS, fits_one_timer};
use crate::words::limits::RTO_MIN;

/// What counts: a wait that differs from the last one by this ends on the same tick by chance in one case of
/// ten or so.
const VARIED_MIN: Duration = Duration::from_micros(500);
const VARIED_POINTS: u8 = 3;
/// Waits of one length end on a tick again if the program's own round is a whole number of ticks, and drift
/// away if its client asks again at once; if the client keeps a schedule they do not.
const ALIKE_POINTS: u8 = 1;
/// A client that asks again this soon keeps no schedule of its own.
const AT_ONCE_MAX: Duration = Duration::from_millis(1);
/// Three that vary, or more that do not.
const PROVEN_POINTS: u8 = 8;

/// The most by which a host is late with what its timer releases. Source: recordings of corked replies, of
/// 150 to 250 us.
const BUSY_MAX: Duration = Duration::from_micros(800);

/// Whether a late reply was a timer's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OfTimer {
    /// It left on the tick of others that were, or a little later, as from a busy host.
    OnTick,
    /// It left on the tick of one or two others.
    MayBe,
    Unknown,
}

/// Replies that came when a timer would have released them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct TimerHits {
    /// The ticks that they were all on: a bit for each of `TICKS`.
    ticks: u8,
    anchor: Option<Instant>,
    /// How long the last one took.
    waited: Duration,
    /// How much longer than the connection's timer they took: the least and the most.
    beyond: [Duration; 2],
    points: u8,
    hits: u16,
    misses: u16,
    /// One of them was on no tick that programs keep.
    is_kernel_s: bool,
    /// The last one.
    last: Option<LateReply>,
    /// The same for a busy host.
    band: TickBand,
}

impl TimerHits {
    /// A reply left when its timer would have fired.
    #[cold]
    #[inline(never)]
    pub(crate) fn on_hit(&mut self, reply: LateReply) {
        self.last = Some(reply);
        self.band.on_hit(reply);
        let LateReply { at, waited, .. } = reply;
        let before = std::mem::replace(&mut self.waited, waited);
        let Some(since) = self.anchor.map(|anchor| at - anchor) else { return self.begin(at) };
        if since > ANCHORED_MAX || !since.is_positive() {
            return self.begin(at);
        }
        let (ticks, late) = self.ticks_of(reply);
        if ticks == 0 {
            // A busy host leaves the tick where it was, and what had been proven stays so.
            self.misses = self.misses.saturating_add(1);
            if !self.are_on_tick() {
                self.forget();
                if !late {
                    self.begin(at);
                }
            }
            return;
        }
        self.ticks = ticks;
        let beyond = waited - reply.timer;
        self.beyond = [self.beyond[0].min(beyond), self.beyond[1].max(beyond)];
        self.is_kernel_s |= ticks & OF_PROGRAMS == 0;
        let differs = waited - before;
        let varied = differs.max(-differs) >= VARIED_MIN;
        let points = match (varied, reply.idle < AT_ONCE_MAX) {
            (true, _) => VARIED_POINTS,
            (false, true) => ALIKE_POINTS,
            (false, false) => 0,
        };
        self.points = self.points.saturating_add(points);
        self.hits = self.hits.saturating_add(1);
    }

    /// Which of the ticks it left on, and whether it left a little after one of them.
    fn ticks_of(self, reply: LateReply) -> (u8, bool) {
        let Some(anchor) = self.anchor else { return (0, false) };
        let since = (reply.at - anchor).as_nanos();
        let blur = reply.blur.as_nanos() + since.abs() / 1_000_000 * DRIFT_PPM;
        let (mut ticks, mut late) = (self.ticks, false);
        for (bit, tick) in TICKS.into_iter().enumerate() {
            let past = since.rem_euclid(tick.as_nanos());
            late |= self.ticks & (1 << bit) != 0 && past < BUSY_MAX.as_nanos();
            if past.min(tick.as_nanos() - past) > blur {
                ticks &= !(1 << bit);
            }
        }
        (ticks, late)
    }

    /// What all of them say about this one.
    pub(crate) fn of_timer(self, reply: LateReply) -> OfTimer {
        let since = self.anchor.map_or(Duration::MAX, |anchor| reply.at - anchor);
        if since.max(-since) > ANCHORED_MAX {
            return OfTimer::Unknown;
        }
        match self.ticks_of(reply) {
            (ticks, late) if (ticks == self.ticks || ticks == 0 && late) && self.are_proven() => {
                OfTimer::OnTick
            }
            _ if self.is_band_proven() && self.band.holds(reply) => OfTimer::OnTick,
            (ticks, _) if ticks == self.ticks && self.are_suspect() => OfTimer::MayBe,
            _ if self.band.is_suspect() && self.band.holds(reply) => OfTimer::MayBe,
            _ => OfTimer::Unknown,
        }
    }

    /// The last one, if it is among these packets.
    pub(crate) fn last_in(self, [since, until]: [u64; 2]) -> Option<LateReply> {
        self.last.filter(|last| last.packet >= since && last.packet <= until)
    }

    /// A reply came on no tick, or at no timer's time.
    #[cold]
    #[inline(never)]
    pub(crate) fn on_miss(&mut self) {
        self.forget();
        self.band.on_miss();
        self.misses = self.misses.saturating_add(1);
    }

    /// Whether it was the timer that released them.
    pub(crate) fn are_proven(self) -> bool {
        // A busy host is late now and then, or nearly always.
        self.are_on_tick() && fits_one_timer(self.beyond, self.ticks, self.timer()) || self.is_band_proven()
    }

    /// Whether they left on a kernel's tick.
    fn are_on_tick(self) -> bool {
        self.is_kernel_s && self.points >= PROVEN_POINTS && self.misses <= self.hits / 4
    }

    fn is_band_proven(self) -> bool {
        self.band.is_proven(self.timer())
    }

    /// Whether it may have been the timer: the last one came on the tick of one before it.
    pub(crate) fn are_suspect(self) -> bool {
        self.points > 0 && self.misses <= self.hits / 2 || self.band.is_suspect()
    }

    fn timer(self) -> Duration {
        self.last.map_or(Duration::ZERO, |last| last.timer)
    }

    fn forget(&mut self) {
        (self.points, self.is_kernel_s) = (0, false);
    }

    fn begin(&mut self, at: Instant) {
        (self.anchor, self.ticks) = (Some(at), ALL);
        let beyond = self.last.map_or(Duration::ZERO, |last| last.waited - last.timer);
        self.beyond = [beyond; 2];
        self.hits = self.hits.saturating_add(1);
    }
}

/// A wait below this is shorter than any of the timers: RTO_MIN less a twentieth.
pub(crate) const SHORTEST: Duration = Duration::from_millis(190);

/// Whether a small reply came when a timer that began with its write would have released it, if the whole
/// reply was corked. A server that takes as long is far more usual.
pub(crate) fn is_of_timer(waited: Duration, timer: Duration, on_tick: bool) -> bool {
    if waited < SHORTEST {
        return false;
    }
    let timer = timer.max(RTO_MIN);
    // The timer fires on a tick, 2 to 8 ms after its time at HZ=250; from 256 ms on the wheel is eight times
    // as coarse (kernel/time/timer.c), and the estimate of a long timer that decays is a few percent off.
    let coarse = on_tick || timer > Duration::from_millis(256);
    let (early, late) = if coarse {
        (timer - timer.divided_by(20), timer + timer.divided_by(8) + Duration::from_millis(8))
    } else {
        (timer + Duration::from_micros(2_500), timer + Duration::from_millis(12))
    };
    waited >= early && waited <= late
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLUR: Duration = Duration::from_micros(100);

    /// A reply that left at `at_us` after a wait, to a client that had been silent for so long.
    fn reply((at_us, waited_us, idle_us): (i64, i64, i64)) -> LateReply {
        LateReply {
            at: Instant::from_nanos(at_us * 1_000),
            blur: BLUR,
            packet: 0,
            len: 100,
            waited: Duration::from_micros(waited_us),
            idle: Duration::from_micros(idle_us),
            timer: RTO_MIN,
        }
    }

    /// Replies that left at these times, us, after waits of so many us, each to a request that came at once.
    fn after(replies: &[(i64, i64)]) -> TimerHits {
        behind(&replies.iter().map(|&(at_us, waited_us)| (at_us, waited_us, 0)).collect::<Vec<_>>())
    }

    fn behind(replies: &[(i64, i64, i64)]) -> TimerHits {
        let mut hits = TimerHits::default();
        for &late in replies {
            hits.on_hit(reply(late));
        }
        hits
    }

    #[test]
    fn waits_that_differ_and_end_on_one_tick_are_a_timer_s() {
        assert!(!after(&[(650, 205_300), (300_670, 207_800), (604_640, 206_100)]).are_proven());
        assert!(
            after(&[(650, 205_300), (300_670, 207_800), (604_640, 206_100), (900_660, 204_200)]).are_proven()
        );
        let at_300 = [(0, 205_300), (303_350, 207_800), (610_020, 206_100), (913_320, 204_900)];
        assert!(after(&at_300).are_proven(), "HZ=300");
    }

    /// A timer of HZ=100, or a program that works every 10 or 20 ms, or 60 times a second.
    #[test]
    fn steps_that_programs_take_as_well_prove_no_timer() {
        for step in [10_000, 20_000, 40_000, 100_000] {
            let n = |n: i64| (n * 200_000 + n * n % 7 * step, 204_000 + n * 611 % 5_000);
            let hits = after(&(0..40).map(n).collect::<Vec<_>>());
            assert!(!hits.are_proven() && hits.are_suspect(), "{step}");
        }
        let drawn = |n: i64| ((n * 13 + n * n % 7) * 50_000 / 3, 204_000 + n * 611 % 5_000);
        let hits = after(&(0..40).map(drawn).collect::<Vec<_>>());
        assert!(!hits.are_proven() && hits.are_suspect());
    }

    /// A server that sleeps for 205 ms, asked every 304 ms: all of its replies lie on ticks of 4 ms, and
    /// none differs.
    #[test]
    fn a_schedule_of_the_client_s_is_no_tick_of_the_server_s() {
        let jitter = |n: i64| n * 37 % 60;
        let scheduled = |n: i64| (n * 304_000 + jitter(n), 205_060 + jitter(n), 98_900);
        assert!(!behind(&(0..40).map(scheduled).collect::<Vec<_>>()).are_proven());
    }

    /// Replies before the proof are judged by it: on the tick or a little after it, or not.
    #[test]
    fn a_proof_says_of_each_before_whether_it_was_a_timer_s() {
        let replies =
            [(0, 205_300), (300_450, 207_800), (604_000, 206_100), (900_020, 204_200), (1_228_010, 207_900)];
        let hits = after(&replies);
        assert!(hits.are_proven());
        let of = |(at, waited)| hits.of_timer(reply((at, waited, 0)));
        let said: Vec<_> = replies[..3].iter().copied().map(of).collect();
        assert_eq!(said, [OfTimer::OnTick; 3]);
        assert_eq!(of((602_000, 206_100)), OfTimer::Unknown);
        assert_eq!(after(&replies[2..4]).of_timer(reply((604_000, 206_100, 0))), OfTimer::MayBe);
    }

    /// A server that sleeps for 203.4 ms, and a client that pauses for 20: 224.0 ms a round, less a little.
    #[test]
    fn a_round_that_is_nearly_a_whole_number_of_ticks_is_none() {
        let drifting: Vec<(i64, i64)> = (0..12).map(|n| (n * (224_000 - 18), 203_400)).collect();
        assert!(!after(&drifting).are_proven());
        let steady: Vec<(i64, i64)> = (0..12).map(|n| (n * 224_000 + n % 2 * 20, 203_400)).collect();
        assert!(after(&steady).are_proven());
    }

    /// A host that was busy once, when the second or the fifth reply was due, as in three of twelve
    /// recordings.
    #[test]
    fn one_late_reply_takes_nothing_back() {
        let after_late = |n: usize, replies: i64| {
            let waits = |n: i64| 204_000 + n % 3 * 1_000;
            let mut late: Vec<(i64, i64)> = (0..replies).map(|n| (n * 224_000, waits(n))).collect();
            late[n].0 += 200;
            after(&late)
        };
        assert!(!after_late(1, 4).are_proven() && after_late(1, 4).are_suspect());
        assert!(after_late(1, 5).are_proven());
        assert!(after_late(4, 5).are_proven() && after_late(4, 12).are_proven());
    }

    #[test]
    fn waits_that_end_on_no_tick_are_no_timer_s_and_a_late_one_is_forgiven() {
        let varied = |n: i64| (n * 230_000 + n * n * 700, 203_000 + n * 611 % 5_000);
        assert!(!after(&(0..40).map(varied).collect::<Vec<_>>()).are_proven());
        let mut late: Vec<(i64, i64)> = (0..12).map(|n| (n * 224_000, 204_000 + n % 3 * 1_000)).collect();
        late[4].0 += 900;
        assert!(after(&late).are_proven());
    }

    /// A timer of up to 256 ms fires within a few ticks; a longer one on a coarser wheel, by an estimate
    /// that is a little off.
    #[test]
    fn a_whole_reply_leaves_with_its_timer() {
        let of_timer =
            |waited, timer| is_of_timer(Duration::from_millis(waited), Duration::from_millis(timer), false);
        assert!(!of_timer(204, 204) && of_timer(208, 204) && !of_timer(220, 204));
        assert!(!of_timer(280, 300) && of_timer(290, 300) && of_timer(340, 300) && !of_timer(349, 300));
    }
}
