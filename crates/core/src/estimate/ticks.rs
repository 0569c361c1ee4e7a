//! Which ticks do kernels and programs keep, and which replies may have left on one?

use tcpwhy_wire::{Duration, Instant};

/// HZ=250, 300 and 100, with HZ=1000 timers as long as 200 ms fire on each eighth tick; and what a screen's rate is counted in.
pub(super) const TICKS: [Duration; 4] = [
    Duration::from_nanos(4_000_000),
    Duration::from_nanos(3_333_333),
    Duration::from_nanos(10_000_000),
    Duration::from_nanos(16_666_667),
];
pub(super) const ALL: u8 = (1 << TICKS.len()) - 1;
/// Those that programs keep as well, by timers that repeat (timerfd_create(2)): each 10, 20 or 50 ms, or 60 times a second. What is on one
/// of them may be a program's that works in steps.
pub(super) const OF_PROGRAMS: u8 = 0b1100;

/// The first of them, on which those are as well that take 8 ms.
pub(super) const FOUR_MS: u8 = 1;
/// The wheel's steps (calc_wheel_index, kernel/time/timer.c): of timers of up to 63 ticks one tick, of longer ones eight. 200 ms are 50
/// ticks at HZ=250 and 200 at HZ=1000, ...
const STEP: Duration = Duration::from_millis(8);
/// ... from 252 ms on at HZ=250, and from 210 ms on at HZ=300, a step is eight ticks as well.
const COARSE_STEP: Duration = Duration::from_millis(32);
const COARSE_MIN: Duration = Duration::from_millis(250);
/// What a server's own work differs by before it writes, and a timer's estimate. Source: none written down.
const WORK_MAX: Duration = Duration::from_millis(2);

/// Two hosts' clocks differ by so many ppm at most while something is measured against both.
pub(super) const DRIFT_PPM: i64 = 20;
/// After so long a tick is looked for afresh.
pub(super) const ANCHORED_MAX: Duration = Duration::from_secs(10);

/// A reply that came when a timer would have let it go.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LateReply {
    /// When it left, as far as `blur` lets tell.
    pub at: Instant,
    pub blur: Duration,
    pub packet: u64,
    pub len: u32,
    /// How long it took.
    pub waited: Duration,
    /// How long its client had been silent before it asked.
    pub idle: Duration,
    /// How long the timer runs, as far as that is known.
    pub timer: Duration,
}

/// Whether one timer, which is always as long, may have let all of them go, which were by so much longer, the shortest and the longest.
pub(super) fn fits_one_timer([least, most]: [Duration; 2], ticks: u8, timer: Duration) -> bool {
    let coarse = timer >= COARSE_MIN || ticks & FOUR_MS == 0;
    let step = if coarse { COARSE_STEP } else { STEP };
    most - least <= step + WORK_MAX
}
