//! Does an end speak at equal intervals, however long before that it was asked?
//!
//! Two ends that exchange sound or readings, each by a timer of its own, look like requests and replies. A
//! reply is late by as much as its request was, and what a timer sends is not. A request that comes as long
//! after the last reply as those before it says nothing: then a server that takes its time keeps the
//! interval as well. [`own_time`](super::own_time) asks the same of replies that take long.

use tcpwhy_wire::{Duration, Instant};

use super::grid::Grid;

/// A request that is later or sooner than usual by less says nothing, nor does one by less than a part of the interval.
/// Source: none written down.
const OFF_USUAL_MIN: Duration = Duration::from_millis(1);
const OFF_USUAL_SHARE: i64 = 20;
/// How closely a reply keeps to the timer, or follows its request, as a part of how far that was off.
const PART: i64 = 4;
/// This many are not by chance,
const KEPT_MIN: u8 = 3;
/// ... unless more than one in so many follows its request.
const FOLLOWED_SHARE: u8 = 8;
/// ... or more than one in so many comes after an interval without one.
const SILENT_SHARE: u8 = 4;
/// What is usual changes by this part with each request, as the interval does (`grid.rs`).
const LEARNT: i64 = 4;

/// Replies at one interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct OwnBeat {
    grid: Grid,
    last: Option<Instant>,
    /// The usual time from a reply to the next request.
    behind: Option<Duration>,
    /// Replies at their own time after a request at an unusual one, and replies that such a request moved.
    kept: u8,
    followed: u8,
    /// Intervals without a reply: nobody may have asked, or the server spoke all the same.
    silent: u8,
}

impl OwnBeat {
    /// No reply yet.
    pub(crate) const NONE: Self =
        Self { grid: Grid::NONE, last: None, behind: None, kept: 0, followed: 0, silent: 0 };

    /// A reply passed at `at`, its request at `asked_at`.
    pub(crate) fn on_answer(&mut self, at: Instant, asked_at: Instant) {
        // A reply in between says nothing of the interval: who asks by a timer may ask for more.
        let last = self.last.filter(|last| self.grid.is_last(*last) && self.grid.is_due(at, 1));
        if let Some((last, off)) = last.zip(self.grid.off(at)) {
            self.weigh(at - last, asked_at - last, off);
        }
        self.grid.on_moment(at);
        self.last = Some(at);
    }

    /// A reply comes `after` the one before it and `off` the interval, its request so long `behind` that one.
    fn weigh(&mut self, after: Duration, behind: Duration, off: Duration) {
        let kept = self.grid.is_kept();
        if after.times(2) >= self.grid.every.times(3) {
            // What a timer sends comes each time, though some of it may not seem to answer.
            self.silent = self.silent.saturating_add(u8::from(kept));
            return;
        }
        let usual = self.behind.unwrap_or(behind);
        let late = behind - usual;
        self.behind = Some(usual + late.divided_by(LEARNT));
        if kept && late.max(-late) >= OFF_USUAL_MIN.max(self.grid.every.divided_by(OFF_USUAL_SHARE)) {
            let part = late.max(-late).divided_by(PART);
            self.kept = self.kept.saturating_add(u8::from(off.max(-off) <= part));
            let follows = (off - late).max(late - off) <= part;
            self.followed = self.followed.saturating_add(u8::from(follows));
        }
    }

    /// Whether it is a timer's.
    pub(crate) fn is_shown(&self) -> bool {
        self.kept >= KEPT_MIN
            && self.followed <= self.kept / FOLLOWED_SHARE
            && self.silent <= self.kept / SILENT_SHARE
            && self.grid.is_kept()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: i64) -> Instant {
        Instant::MIN + Duration::from_millis(ms)
    }

    /// The client is 7 ms later for ten replies, and then again not.
    fn late(n: i64) -> i64 {
        n / 10 % 2 * 7
    }

    #[test]
    fn who_is_on_time_behind_requests_at_any_time_keeps_its_own() {
        let mut own = OwnBeat::default();
        (1..40).for_each(|n| own.on_answer(at(n * 20), at((n - 1) * 20 + late(n))));
        assert!(own.is_shown());
    }

    #[test]
    fn who_is_as_late_as_its_request_answers() {
        let (mut own, mut now) = (OwnBeat::default(), 0);
        for n in 1..60 {
            own.on_answer(at(now + late(n) + 20), at(now + late(n)));
            now += late(n) + 20;
        }
        assert!(!own.is_shown());
    }

    #[test]
    fn who_is_asked_by_a_timer_and_sometimes_in_between_answers() {
        let mut own = OwnBeat::default();
        for n in 1..60 {
            own.on_answer(at(n * 100 + 20), at(n * 100));
            if n % 3 == 0 {
                own.on_answer(at(n * 100 + 30 + n), at(n * 100 + 20 + n));
            }
        }
        assert!(!own.is_shown());
    }

    #[test]
    fn who_takes_longer_now_and_then_behind_a_timer_s_requests_answers() {
        let mut own = OwnBeat::default();
        (1..60).for_each(|n| own.on_answer(at(n * 100 + 20 + n % 4), at(n * 100)));
        assert!(!own.is_shown());
    }

    #[test]
    fn who_is_silent_while_nobody_asks_answers() {
        let mut own = OwnBeat::default();
        let ticks = (1..60).map(|n| n + n / 3);
        ticks.for_each(|n| own.on_answer(at(n * 20), at((n - 1) * 20 + late(n))));
        assert!(!own.is_shown());
    }

    #[test]
    fn one_quick_request_makes_no_others_late() {
        let (mut own, mut now) = (OwnBeat::default(), 0);
        for n in 1..60 {
            let idle = if n == 1 { 0 } else { 7 };
            own.on_answer(at(now + idle + 13), at(now + idle));
            now += idle + 13;
        }
        assert!(!own.is_shown());
    }
}
