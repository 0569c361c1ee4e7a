//! Does an end speak when it is its time, whatever it was asked before?
//!
//! A controller reports every second, and its peer confirms each report at once: that looks like a request
//! that takes a second to answer. A server that takes a second to answer is late by as much as the request
//! was; a timer is not. So only replies to late requests tell, and there must be some.

use tcpwhy_wire::{Duration, Instant};

use super::grid::Grid;

/// A request that is late by less says nothing.
const LATE_MIN: Duration = Duration::from_millis(8);
/// How closely a reply keeps to the timer, or follows the request, as a part of how late that was.
const PART: i64 = 4;
/// This many are not by chance.
const KEPT_MIN: u8 = 3;

/// Programs' timers are whole multiples of this.
const ROUND: Duration = Duration::from_millis(500);
/// ... and are accurate to this, including the jitter of the path. Source: none written down.
const ROUND_OFF: Duration = Duration::from_millis(3);
/// Hosts serve timers by ticks of up to 15.6 ms, and some wake a sleeping program a tick early (Sleep of
/// Windows: "the wait can be anywhere between one and two ticks").
const TICK_MAX: Duration = Duration::from_millis(16);
/// No clock runs off faster than this in so short a time.
const CLOCK_OFF: Duration = Duration::from_micros(100);
/// Longer intervals have other explanations already.
const ROUNDS_MAX: i64 = 20;

/// Whether a message that comes `behind` its sender's previous one may come by a timer, although it comes
/// `wait` after a request: a server that sleeps for a round time before it answers sleeps no less, and its
/// request takes some time to come.
pub(crate) fn is_round(behind: Duration, wait: Duration) -> bool {
    due(behind, ROUND_OFF).is_some_and(|due| wait + CLOCK_OFF <= due)
}

/// The same of a timer that its host may be late to serve.
pub(crate) fn is_beat(behind: Duration) -> bool {
    due(behind, TICK_MAX).is_some()
}

/// The round time that has just passed, at most so long ago.
fn due(behind: Duration, late_max: Duration) -> Option<Duration> {
    let rounds = (behind + ROUND.divided_by(2)).as_nanos() / ROUND.as_nanos();
    let due = ROUND.times(rounds);
    let off = behind - due;
    ((1..=ROUNDS_MAX).contains(&rounds) && -off <= ROUND_OFF && off <= late_max).then_some(due)
}

/// Replies that took long.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct OwnTime {
    pub grid: Grid,
    last: Option<Instant>,
    /// The least time from a reply to the next request.
    soonest: Option<Duration>,
    /// Replies at their own time after a late request, and replies as late as the request.
    kept: u8,
    followed: u8,
    /// One came a round time after the reply before it, too soon for a program that had slept.
    beats: bool,
}

impl OwnTime {
    /// No reply yet.
    pub(crate) const NONE: Self =
        Self { grid: Grid::NONE, last: None, soonest: None, kept: 0, followed: 0, beats: false };

    /// A reply passed at `at`, its request at `asked_at`.
    pub(crate) fn on_answer(&mut self, at: Instant, asked_at: Instant) {
        let behind = self.last.map(|last| asked_at - last);
        let soonest = self.soonest.into_iter().chain(behind).min();
        if let (Some(behind), Some(soonest), Some(off)) = (behind, soonest, self.grid.off(at)) {
            let late = behind - soonest;
            if late >= LATE_MIN {
                let part = late.divided_by(PART);
                self.kept = self.kept.saturating_add(u8::from(off.max(-off) <= part));
                let follows = (off - late).max(late - off) <= part;
                self.followed = self.followed.saturating_add(u8::from(follows));
            }
        }
        let beat = self.last.and_then(|last| due(at - last, TICK_MAX));
        self.beats |= beat.is_some_and(|due| at - asked_at + TICK_MAX <= due);
        self.grid.on_moment(at);
        (self.last, self.soonest) = (Some(at), soonest);
    }

    /// Whether a reply has come by its server's own timer and not because of its request.
    pub(crate) fn beats(&self) -> bool {
        self.beats
    }

    /// Whether it may be a timer.
    pub(crate) fn may_be(&self) -> bool {
        self.kept > 0 && self.followed == 0
    }

    /// Whether it is a timer.
    pub(crate) fn is_shown(&self) -> bool {
        self.kept >= KEPT_MIN && self.followed == 0 && self.grid.is_kept()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: i64) -> Instant {
        Instant::MIN + Duration::from_millis(ms)
    }

    /// The request of every third reply comes 15 ms late.
    fn late(n: i64) -> i64 {
        if n % 3 == 0 { 15 } else { 1 }
    }

    #[test]
    fn a_timer_is_not_late_behind_a_late_question() {
        let mut own = OwnTime::default();
        (1..14).for_each(|n| own.on_answer(at(n * 1_000), at((n - 1) * 1_000 + late(n))));
        assert!(own.is_shown());
    }

    #[test]
    fn a_loop_over_a_path_says_nothing() {
        let mut own = OwnTime::default();
        (1..14).for_each(|n| own.on_answer(at(n * 220), at(n * 220 - 200)));
        assert!(!own.may_be());
    }

    #[test]
    fn a_server_that_takes_a_second_is() {
        let (mut own, mut now) = (OwnTime::default(), 0);
        for n in 1..14 {
            own.on_answer(at(now + late(n) + 1_000), at(now + late(n)));
            now += late(n) + 1_000;
        }
        assert!(!own.is_shown() && !own.may_be());
    }
}
