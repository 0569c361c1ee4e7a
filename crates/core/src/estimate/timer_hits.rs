//! Do late replies leave on the tick of their sender's kernel, as what one of its timers lets go does?
//!
//! A kernel timer fires on a tick (tick_sched_timer, kernel/time/tick-sched.c: each 4 ms at HZ=250, 10 ms at 100), or on a whole number
//! of them (calc_wheel_index, kernel/time/timer.c). A program sleeps by another clock, to the microsecond (hrtimer_nanosleep,
//! kernel/time/hrtimer.c), and one that computes keeps none. So waits that differ and end on one tick are a timer's.

use tcpwhy_wire::{Duration, Instant};

use crate::words::limits::RTO_MIN;

/// HZ=250, 100 and 300; with HZ=1000 timers as long as 200 ms fire on each eighth tick.
const TICKS: [Duration; 3] =
    [Duration::from_nanos(4_000_000), Duration::from_nanos(10_000_000), Duration::from_nanos(3_333_333)];
const ALL: u8 = (1 << TICKS.len()) - 1;

/// Two hosts' clocks differ by so many ppm at most while something is measured against both.
const DRIFT_PPM: i64 = 20;
/// After so long a tick is looked for afresh.
const ANCHORED_MAX: Duration = Duration::from_secs(10);

/// A wait longer or shorter than the last one by this ends on the same tick by chance in one case of ten or so: what counts.
const VARIED_MIN: Duration = Duration::from_micros(500);
const VARIED_POINTS: u8 = 3;
/// Waits of one length end on a tick again where the program's own round is a whole number of ticks, and drift away.
const ALIKE_POINTS: u8 = 1;
/// Three that vary, or more that do not.
const PROVEN_POINTS: u8 = 8;

/// A host lets go what its timer releases so much later at most. Source: recordings of corked replies, of 150 to 250 us.
const BUSY_MAX: Duration = Duration::from_micros(800);

/// Replies that came when a timer would have let them go.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct TimerHits {
    /// On whose ticks they all were: a bit for each of `TICKS`.
    ticks: u8,
    anchor: Option<Instant>,
    /// How long the last one took.
    waited: Duration,
    points: u8,
    hits: u16,
    misses: u16,
}

impl TimerHits {
    /// A reply left at `at`, when its timer would have fired; the capture blurs that by `blur`.
    pub(crate) fn on_hit(&mut self, at: Instant, waited: Duration, blur: Duration) {
        let before = std::mem::replace(&mut self.waited, waited);
        let Some(anchor) = self.anchor else { return self.begin(at) };
        let since = at - anchor;
        if since > ANCHORED_MAX || !since.is_positive() {
            return self.begin(at);
        }
        let (mut ticks, mut late) = (self.ticks, false);
        let blur = blur + Duration::from_nanos(since.as_nanos() / 1_000_000 * DRIFT_PPM);
        for (bit, tick) in TICKS.into_iter().enumerate() {
            let past = since.as_nanos() % tick.as_nanos();
            late |= self.ticks & (1 << bit) != 0 && past < BUSY_MAX.as_nanos();
            if past.min(tick.as_nanos() - past) > blur.as_nanos() {
                ticks &= !(1 << bit);
            }
        }
        if ticks == 0 {
            // A host that was busy leaves the tick where it was, and what had been proven.
            self.misses = self.misses.saturating_add(1);
            if !self.are_proven() {
                self.points = 0;
                if !late {
                    self.begin(at);
                }
            }
            return;
        }
        self.ticks = ticks;
        let differs = waited - before;
        let varied = differs.max(-differs) >= VARIED_MIN;
        self.points = self.points.saturating_add(if varied { VARIED_POINTS } else { ALIKE_POINTS });
        self.hits = self.hits.saturating_add(1);
    }

    /// One came on no tick, or at no timer's time.
    pub(crate) fn on_miss(&mut self) {
        self.points = 0;
        self.misses = self.misses.saturating_add(1);
    }

    /// Whether it was the timer that let them go.
    pub(crate) fn are_proven(self) -> bool {
        // A busy host is late now and then.
        self.points >= PROVEN_POINTS && self.misses <= self.hits / 4
    }

    /// Whether it may have been: the last one came on the tick of one before it.
    pub(crate) fn are_suspect(self) -> bool {
        self.points > 0 && self.misses <= self.hits / 2
    }

    fn begin(&mut self, at: Instant) {
        (self.anchor, self.ticks) = (Some(at), ALL);
        self.hits = self.hits.saturating_add(1);
    }
}

/// Sooner than the shortest of them: RTO_MIN less a twentieth.
pub(crate) const SHORTEST: Duration = Duration::from_millis(190);

/// Whether a small reply came when a timer that began with its write would have let it go, the whole reply being corked. A server
/// that takes as long is far more usual.
pub(crate) fn is_of_timer(waited: Duration, timer: Duration, on_tick: bool) -> bool {
    if waited < SHORTEST {
        return false;
    }
    let timer = timer.max(RTO_MIN);
    // The timer fires on a tick, 2 to 8 ms behind its time at HZ=250; from 256 ms on the wheel is coarser by eight
    // (kernel/time/timer.c), and the estimate of a long timer that decays is a few percent off.
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

    /// Replies that left at these times, us, after waits of so many us.
    fn after(replies: &[(i64, i64)]) -> TimerHits {
        let mut hits = TimerHits::default();
        for &(at_us, waited_us) in replies {
            hits.on_hit(Instant::from_nanos(at_us * 1_000), Duration::from_micros(waited_us), BLUR);
        }
        hits
    }

    #[test]
    fn waits_that_differ_and_end_on_one_tick_are_a_timer_s() {
        assert!(!after(&[(650, 205_300), (300_670, 207_800), (604_640, 206_100)]).are_proven());
        assert!(
            after(&[(650, 205_300), (300_670, 207_800), (604_640, 206_100), (900_660, 204_200)]).are_proven()
        );
        let coarse = [(0, 205_300), (310_020, 207_800), (629_980, 206_100), (950_000, 214_200)];
        assert!(after(&coarse).are_proven(), "HZ=100");
    }

    /// A server that sleeps for 203.4 ms, of a client that pauses for 20: 224.0 ms a round, less a little.
    #[test]
    fn a_round_that_is_nearly_a_whole_number_of_ticks_is_none() {
        let drifting: Vec<(i64, i64)> = (0..12).map(|n| (n * (224_000 - 18), 203_400)).collect();
        assert!(!after(&drifting).are_proven());
        let steady: Vec<(i64, i64)> = (0..12).map(|n| (n * 224_000 + n % 2 * 20, 203_400)).collect();
        assert!(after(&steady).are_proven());
    }

    /// A host that was busy once, when the second or the fifth reply was due, as three of twelve recordings were.
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

    /// A timer of up to 256 ms fires within a few ticks; a longer one on a coarser wheel, of an estimate that is a little off.
    #[test]
    fn a_whole_reply_leaves_with_its_timer() {
        let of_timer =
            |waited, timer| is_of_timer(Duration::from_millis(waited), Duration::from_millis(timer), false);
        assert!(!of_timer(204, 204) && of_timer(208, 204) && !of_timer(220, 204));
        assert!(!of_timer(280, 300) && of_timer(290, 300) && of_timer(340, 300) && !of_timer(349, 300));
    }
}
