//! Which ticks do kernels and programs keep, and which replies may have left on one?

use tcpwhy_wire::{Duration, Instant};

/// HZ=250, 300 and 100 (with HZ=1000, timers as long as 200 ms fire on each eighth tick); and the refresh
/// rate of screens.
pub(super) const TICKS: [Duration; 4] = [
    Duration::from_nanos(4_000_000),
    Duration::from_nanos(3_333_333),
    Duration::from_nanos(10_000_000),
    Duration::from_nanos(16_666_667),
];
pub(super) const ALL: u8 = (1 << TICKS.len()) - 1;
/// Those that programs keep as well, by timers that repeat (timerfd_create(2)): every 10, 20 or 50 ms, or 60
/// times a second. A reply on one of them may be that of a program that works in steps.
pub(super) const OF_PROGRAMS: u8 = 0b1100;

/// The first of them, on which steps of 8 ms lie as well.
pub(super) const FOUR_MS: u8 = 1;
/// The wheel's steps (calc_wheel_index, kernel/time/timer.c): one tick for timers of up to 63 ticks, eight
/// for longer ones. 200 ms are 50 ticks at HZ=250 and 200 at HZ=1000, ...
const STEP: Duration = Duration::from_millis(8);
/// ... from 252 ms on at HZ=250, and from 210 ms on at HZ=300, a step is eight ticks as well.
const COARSE_STEP: Duration = Duration::from_millis(32);
const COARSE_MIN: Duration = Duration::from_millis(250);
/// How much a server's own work before it writes differs, and a timer's estimate. Source: none written down.
const WORK_MAX: Duration = Duration::from_millis(2);

/// Two hosts' clocks differ by at most this many ppm while something is measured against both.
pub(super) const DRIFT_PPM: i64 = 20;
/// After this long a tick is looked for anew.
pub(super) const ANCHORED_MAX: Duration = Duration::from_secs(10);

/// A reply that came when a timer would have released it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LateReply {
    /// When it left, to within `blur`.
    pub at: Instant,
    pub blur: Duration,
    pub packet: u64,
    pub len: u32,
    /// How long it took.
    pub waited: Duration,
    /// How long its client had been silent before it asked.
    pub idle: Duration,
    /// The length of the timer, as far as that is known.
    pub timer: Duration,
}

/// Whether one timer, always of the same length, may have released replies that took longer than it by so
/// much, the least and the most.
pub(super) fn fits_one_timer([least, most]: [Duration; 2], ticks: u8, timer: Duration) -> bool {
    let coarse = timer >= COARSE_MIN || ticks & FOUR_MS == 0;
    let step = if coarse { COARSE_STEP } else { STEP };
    most - least <= step + WORK_MAX
}
