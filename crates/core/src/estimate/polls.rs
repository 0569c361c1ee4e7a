//! Are these waits for news, ended by some event or by a timer, and not a server's work?
//!
//! A client that waits for news (long poll, a subscription that is renewed) sends the same request again as
//! soon as it has got some. So does one in a closed loop, where a user feels the server's time. They differ
//! in how long the waits are and how they end: news comes at any time, and without news a timer of round
//! seconds ends the wait. That takes a few waits to show.

use tcpwhy_wire::Duration;

use crate::words::limits::NEWS_MIN;

/// A wait for news lasts at least this long, unless there is some at once.
const WAIT_MIN: Duration = Duration::from_secs(1);
/// ... and this long after one that took [`LONG`]: news may follow soon.
const WAIT_MIN_AGAIN: Duration = Duration::from_millis(200);
/// The longest wait is at least this long: nobody polls every second in this way.
const LONG: Duration = Duration::from_secs(10);
/// Timers of servers that have no news are multiples of this.
const TIMER_UNIT: Duration = Duration::from_secs(5);
/// ... to within this.
const TIMER_OFF: Duration = Duration::from_millis(30);
/// This many waits show it.
const WAITS_MIN: u8 = 3;

/// What some waits were for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum For {
    /// An answer.
    Answer,
    /// An answer, or news.
    Either,
    News,
}

/// Consecutive waits after requests of one length, each sent as soon as the previous one was answered.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Polls {
    len: u32,
    count: u8,
    /// Ended by a timer.
    timed: u8,
    shortest: Duration,
    longest: Duration,
    /// One of them took longer than most would wait for an answer.
    lasted: bool,
}

impl Polls {
    /// No wait yet.
    pub(crate) const NONE: Self =
        Self { len: 0, count: 0, timed: 0, shortest: Duration::ZERO, longest: Duration::ZERO, lasted: false };

    /// A request of `len` bytes was answered after `wait`; `again`: whether the client asked again at once,
    /// if that can be told.
    pub(crate) fn on_wait(&mut self, len: u32, wait: Duration, again: Option<bool>) -> For {
        if wait < WAIT_MIN && self.longest >= LONG {
            // A request like one that was answered with news may have been answered with news as well.
            return if len == self.len && again != Some(false) { For::Either } else { For::Answer };
        }
        let lasted = len == self.len && self.lasted;
        // A client that does not ask again at once may wait for news all the same, if a request like this
        // one waited for it before.
        let told = if lasted && wait >= LONG { For::Either } else { For::Answer };
        if again == Some(false) || len != self.len {
            *self = Self { len, shortest: Duration::MAX, ..Self::default() };
        }
        self.lasted = lasted || wait >= NEWS_MIN;
        if again == Some(false) {
            return told;
        }
        self.count = self.count.saturating_add(1);
        self.timed = self.timed.saturating_add(u8::from(is_of_timer(wait)));
        self.shortest = self.shortest.min(wait);
        self.longest = self.longest.max(wait);
        if self.are_for_news() {
            For::News
        } else if self.longest >= LONG && again.is_some() {
            For::Either
        } else {
            told
        }
    }

    /// No shorter wait is looked at, whatever has been seen.
    #[inline]
    pub(crate) const fn wait_least() -> Duration {
        WAIT_MIN_AGAIN
    }

    /// The least wait that is looked at.
    #[inline]
    pub(crate) fn wait_min(&self) -> Duration {
        if self.longest >= LONG { WAIT_MIN_AGAIN } else { WAIT_MIN }
    }

    fn are_for_news(&self) -> bool {
        let irregular = self.longest >= self.shortest.times(2);
        let cut_short = self.timed > 0 && self.longest - self.shortest > TIMER_OFF.times(2);
        self.count >= WAITS_MIN && self.longest >= LONG && (irregular || cut_short || self.timed >= WAITS_MIN)
    }
}

fn is_of_timer(wait: Duration) -> bool {
    let unit = TIMER_UNIT.as_nanos();
    let off = (wait.as_nanos() + unit / 2).rem_euclid(unit) - unit / 2;
    wait >= LONG - TIMER_OFF && Duration::from_nanos(off.abs()) <= TIMER_OFF
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(waits_ms: &[i64]) -> Vec<For> {
        let mut polls = Polls::default();
        waits_ms.iter().map(|&ms| polls.on_wait(150, Duration::from_millis(ms), Some(true))).collect()
    }

    #[test]
    fn news_come_at_any_time_or_not_before_a_timer() {
        use For::{Either, News};
        assert_eq!(told(&[10_002, 4_300, 10_001]), [Either, Either, News]);
        assert_eq!(told(&[30_001, 30_002, 30_000]), [Either, Either, News]);
        assert_eq!(told(&[17_300, 3_100, 41_900, 1_200]), [Either, Either, News, News]);
        assert_eq!(told(&[162_814, 1_209, 296, 0]), [Either; 4]);
    }

    #[test]
    fn a_server_that_takes_its_time_is_no_source_of_news() {
        for ms in [1_000, 2_000, 5_000] {
            assert_eq!(told(&[ms; 20]), [For::Answer; 20]);
        }
        assert_eq!(told(&[1_100, 7_900, 2_300, 4_700]), [For::Answer; 4]);
        assert_eq!(told(&[12_340, 12_390, 12_350, 12_380]), [For::Either; 4]);
        // A client that does other things in between got an answer.
        let mut polls = Polls::default();
        for ms in [10_000, 4_000, 10_000, 10_000] {
            assert_eq!(polls.on_wait(150, Duration::from_millis(ms), Some(false)), For::Answer);
        }
    }
}
