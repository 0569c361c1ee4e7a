//! Until when is the bottleneck behind the capture busy with what has passed it?
//!
//! A link works off one packet behind the other, so one number says how much of it is still to come: the time at which
//! the last packet that passed the capture will have left it. What is sent moves that time by the packet's own time on
//! the link; an acknowledgement shows that what it covers had left one round trip before, and bounds what can be left.
//! Times are the capture's: the way to the link and the way back are the same for all packets.

use tcpwhy_wire::{Duration, Instant, Segment};

use crate::estimate::rate::Rate;
use crate::flow::half::{Half, TIMESTAMP_OPTION_LEN};
use crate::words::limits::{HELD_BACK_MIN, HOST_VARIATION};

/// What the estimate of a flight's own queue leaves open.
const OWN_QUEUE_SLACK: Duration = Duration::from_micros(300);

/// So many full segments in a row are no chance.
const BACKLOG_SEGMENTS: u32 = 32;
/// So many times as long as usual between two acknowledgements is a silence.
const SILENT: i64 = 3;

/// IPv4 and TCP, without options.
const HEADERS_LEN: u32 = 40;

/// TCP_DELACK_MIN (include/net/tcp.h) less a jiffy: the shortest timer of a delayed acknowledgement that many have.
const DELACK_MIN: Duration = Duration::from_millis(36);
/// A receiver acknowledges every second segment (RFC 9293, 3.8.6.3), or a few more that its interface gathered within a
/// moment. One acknowledgement of more segments after a longer time is no arrival: they came together long ago, or one by
/// one, and their receiver held it back until its application read. Super-segments may cross virtual links whole.
const STRETCH_MAX: u32 = 16;
const GATHERED_MAX: Duration = Duration::from_millis(2);

/// What of a direction is at the bottleneck behind the capture.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Link {
    /// It has been busy without a break since then ...
    since: Instant,
    /// ... until then.
    until: Instant,
    /// Bytes that were sent again and are not known to have passed it.
    resent: u32,
    /// The acknowledgement of a lone segment that a timer may have sent, were it not for the bytes right behind that.
    timed: Instant,
}

impl Default for Link {
    fn default() -> Self {
        Self { since: Instant::MIN, until: Instant::MIN, resent: 0, timed: Instant::MIN }
    }
}

/// What an acknowledgement says about the bottleneck.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Passed {
    /// When the last byte that it is about had left the bottleneck, at the latest.
    pub by: Instant,
    /// Bytes behind that one.
    pub behind: u32,
    /// It had left then and not before: its receiver did not hold the acknowledgement back, and no more than the flight
    /// can have delayed it.
    pub exact: bool,
}

/// An acknowledgement of new data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acked {
    pub at: Instant,
    pub bytes: u32,
    /// Segments as captured.
    pub segments: u32,
    /// When the first of these bytes had left, and the last.
    pub oldest: Option<Instant>,
    pub newest_at: Option<Instant>,
    pub rtt: Option<Duration>,
    /// The window until then and from then on, where it did nothing but acknowledge.
    pub windows: Option<[u32; 2]>,
}

impl Link {
    /// These bytes passed the capture; `again` if the first copy is taken for lost before it came to the bottleneck.
    #[inline]
    pub(crate) fn on_sent(&mut self, at: Instant, bytes: u32, again: bool, rate: Rate) {
        let needed = rate.time_for(bytes);
        let until = if again && self.until > at { self.until - needed } else { self.until };
        if until < at {
            self.since = at;
        }
        self.until = until.max(at) + needed;
    }

    #[inline]
    pub(crate) fn on_passed(&mut self, passed: Passed, rate: Option<Rate>) {
        let needed = rate.map_or(Duration::ZERO, |rate| rate.time_for(passed.behind));
        // What is behind it cannot be through sooner than that, ...
        let until = passed.by + needed;
        if passed.exact && until > self.until {
            self.since = self.since.min(passed.by);
            self.until = until;
        // ... and not later, if the link has had no break since, or nothing is behind it.
        } else if rate.is_some()
            && until < self.until
            && (passed.behind == 0 || self.until - needed > self.since)
        {
            self.until = until;
        }
    }

    /// Whether something was sent again that is not known to have passed it.
    #[inline]
    pub(crate) fn has_resent(&self) -> bool {
        self.resent > 0
    }

    /// The last acknowledgement was none of a timer that could be taken for the link.
    #[inline]
    pub(crate) fn forget_timer(&mut self) {
        self.timed = Instant::MIN;
    }

    fn resend(&mut self, bytes: u32) {
        self.resent = self.resent.saturating_add(bytes);
    }

    /// So many bytes more were acknowledged, and something behind them is missing or not.
    #[inline]
    pub(crate) fn on_advance(&mut self, acked: u32, missing: bool) {
        if self.resent > 0 {
            self.resent = if missing { self.resent.saturating_sub(acked) } else { 0 };
        }
    }

    /// For how long from `at` on it is busy.
    #[inline]
    pub(crate) fn busy_from(&self, at: Instant) -> Duration {
        self.busy_between(at, self.until)
    }

    /// The same, as far as it is before `end`.
    #[inline]
    pub(crate) fn busy_between(&self, at: Instant, end: Instant) -> Duration {
        // An `Instant` that was never set is far below every other. What it did before its last break is left out: the gap
        // is one of a sender that has sent again since.
        let until = self.until.min(end);
        if until <= at { Duration::ZERO } else { (until - at.max(self.since)).at_least_zero() }
    }
}

/// Whether an acknowledgement of so many segments as captured, `acked` bytes in all, so long after the last one, came
/// later than when they arrived: each super-segment that crosses a link whole is acknowledged by itself.
pub(crate) fn is_gathered(segments: u32, acked: u32, mss: u32, since_last: Option<Duration>) -> bool {
    segments > 1 && acked > STRETCH_MAX * mss && since_last.is_some_and(|since| since >= GATHERED_MAX)
}

impl Half {
    /// The bottleneck's rate as the arrivals or the acknowledgements show it.
    pub(crate) fn rate(&self, near_sender: bool) -> Option<Rate> {
        if near_sender { self.acknowledgements.best() } else { self.arrivals.best() }
    }

    /// Whether the receiver cannot have held back an acknowledgement of `acked` bytes that left it when they arrived at
    /// `by`: it acknowledges every second segment at once (RFC 9293, 3.8.6.3), and a single one with another right behind
    /// it only because it is in no mood to wait. Where no handshake says how large a segment may be, a large one may be single.
    pub(crate) fn is_at_once(&self, by: Instant, acked: u32, segments: u32, mss: u32) -> bool {
        let several = segments > 1 || self.mss_announced.is_some();
        acked > mss && several || self.sent.front().is_some_and(|next| next.at <= by)
    }

    /// Whether the receiver cannot have waited for its application to read before it acknowledged these bytes. Linux
    /// acknowledges at once what does not make the window smaller, and everything else when it is read
    /// (__tcp_ack_snd_check, net/ipv4/tcp_input.c; tcp_cleanup_rbuf, net/ipv4/tcp.c). A window well below what it was
    /// holds bytes that nobody had read: what opens it again is the application's pace, not the link's.
    fn was_read(&self, [before, now]: [u32; 2]) -> bool {
        now >= before && before >= self.window_max - self.window_max / 4
    }

    /// Learns from an acknowledgement how fast the bottleneck is, and what it is busy with.
    #[inline]
    pub(crate) fn learn_link(&mut self, acked: Acked, mss: u32, peer: Duration) {
        let Acked { at, bytes, segments, oldest, newest_at, rtt, windows } = acked;
        let since = self.acknowledgements.last().map(|last| at - last);
        let at_once = windows.is_some_and(|windows| self.was_read(windows))
            && !is_gathered(segments, bytes, mss, since)
            && self.is_at_once(at - peer, bytes, segments, mss);
        let late = rtt.filter(|_| at_once).map(|rtt| rtt - peer);
        // The bottleneck had no break since the last one if the oldest of these bytes were waiting then, the newest
        // before those were through, and it spreads what left together or has a queue: it is no sender's own pace.
        let before = self.newest_acked_at;
        let behind = |last: Instant| {
            let waited = oldest.is_some_and(|sent| sent + peer <= last + HOST_VARIATION);
            let Some(late) = late.filter(|_| waited) else { return false };
            let gap = at - last;
            let newest = gap.times(i64::from(mss.min(bytes))).divided_by(i64::from(bytes.max(1)));
            let spread = before.zip(newest_at).is_some_and(|(before, now)| (now - before).times(2) <= gap);
            late + HOST_VARIATION >= newest && (spread || late >= newest.times(2))
        };
        let behind = self.acknowledgements.last().filter(|&last| behind(last)).map(|last| at - last);
        let timed = bytes <= mss && behind.is_some_and(|since| since >= DELACK_MIN);
        self.newest_acked_at = newest_at;
        let passed = self.on_wire(bytes, segments, mss);
        self.on_acknowledged(at, passed, mss, behind.is_some(), peer);
        self.on_passed(at - peer, passed, late, behind, 0, mss);
        self.link.timed = if timed { at } else { Instant::MIN };
    }

    /// Whether what seemed to be a slow link was the timer of a delayed acknowledgement: the bytes right behind the segment that
    /// it acknowledged are missing, as is known when they are sent again.
    pub(crate) fn was_timed(&self) -> bool {
        self.acknowledgements.last() == Some(self.link.timed)
    }

    /// Bytes were sent again.
    pub(crate) fn resend(&mut self, bytes: u32) {
        if self.was_timed() {
            self.acknowledgements.forget(DELACK_MIN);
            if self.acknowledgements.best().is_none() {
                self.link = Link::default();
            }
        }
        self.link.resend(bytes);
    }

    /// How many of the outstanding bytes cannot be at the bottleneck any more: packets keep their order in a queue, so that what
    /// was sent before bytes that have arrived has passed it or is lost, except for what was sent again.
    pub(crate) fn passed_or_lost(&self, ack: &Segment) -> u32 {
        let blocks = ack.options.sack().iter();
        let arrived: i32 = blocks.clone().map(|block| (block.end - block.start.latest(ack.ack)).max(0)).sum();
        let reached = blocks.map(|block| block.end - ack.ack).max().unwrap_or(0);
        (arrived.max(0) as u32).max((reached.max(0) as u32).saturating_sub(self.link.resent))
    }

    /// Whether so much has left since the last small segment that its sender has had more to send all the time: what an application
    /// writes at a time is hardly ever a whole number of segments.
    pub(crate) fn is_backlogged(&self, mss: u32) -> bool {
        let since = self.snd_sml.or(self.first).zip(self.snd_nxt);
        since.is_some_and(|(small, nxt)| (nxt - small).max(0) as u32 >= BACKLOG_SEGMENTS * mss)
    }

    /// After how long from `last` on, when the sender sent last before `now`, the bottleneck had nothing more to do. While something
    /// is missing a receiver acknowledges each packet at once (RFC 5681, 4.2), or what comes within a twentieth of the round trip
    /// together (tcp_comp_sack_delay_ns, net/ipv4/tcp_input.c): none comes, none has passed.
    pub(crate) fn silent_from(&self, last: Instant, now: Instant, peer: Duration) -> Option<Duration> {
        if !self.signalled {
            return None;
        }
        let heard = self.signalled_at;
        let usual = self.acknowledgements.usual_spacing()?;
        let together = peer.divided_by(20).min(Duration::from_millis(1));
        let idle_from = (heard - peer).max(last) + usual.times(SILENT) + together + OWN_QUEUE_SLACK;
        (idle_from + peer < now).then(|| idle_from - last)
    }

    /// What so many payload bytes in so many segments as captured come to on the link: each packet has its headers.
    #[inline]
    pub(crate) fn on_wire(&self, payload: u32, segments: u32, mss: u32) -> u32 {
        let headers = HEADERS_LEN + if self.timestamps { TIMESTAMP_OPTION_LEN } else { 0 };
        if payload <= mss && segments <= 1 {
            return if payload == 0 { 0 } else { payload.saturating_add(headers) };
        }
        let packets = payload.div_ceil(mss.max(1)).max(segments.min(payload));
        payload.saturating_add(packets.saturating_mul(headers))
    }

    /// So many bytes more were acknowledged; `behind` as the estimate of the rate has it.
    #[inline]
    pub(crate) fn on_acknowledged(
        &mut self,
        at: Instant,
        bytes: u32,
        mss: u32,
        behind: bool,
        peer: Duration,
    ) {
        if self.on_one_host {
            return;
        }
        let known = self.rate(true).is_some();
        self.acknowledgements.on_bytes(at, bytes, mss, behind);
        if let Some(rate) = self.rate(true).filter(|_| !known) {
            self.begin_link(at - peer, rate, mss);
        }
    }

    /// The rate has shown for the first time: what is on its way went to the link when it left, behind what had passed it
    /// by then.
    #[cold]
    fn begin_link(&mut self, passed: Instant, rate: Rate, mss: u32) {
        let Some(first) = self.sent.front().map(|sent| sent.at) else { return };
        self.link = Link { since: first.min(passed), until: passed, resent: 0, timed: Instant::MIN };
        let mut from = self.una;
        for n in 0..self.sent.len() {
            let Some(&sent) = self.sent.get(n) else { return };
            let payload = from.replace(sent.end).map_or(0, |from| (sent.end - from).max(0) as u32);
            let bytes = self.on_wire(payload, 1, mss);
            self.link.on_sent(sent.at, bytes, false, rate);
        }
    }

    /// An acknowledgement shows what had left the bottleneck behind the capture at `by`: `acked` more bytes than before,
    /// the last of which had taken `late` longer than the path needs where it was not held back, and `sacked` bytes behind
    /// a hole. The bottleneck was busy since the one before, so long ago, if they were waiting `behind` others.
    #[inline]
    pub(crate) fn on_passed(
        &mut self,
        by: Instant,
        acked: u32,
        late: Option<Duration>,
        behind: Option<Duration>,
        sacked: u32,
        mss: u32,
    ) {
        let rate = self.rate(true);
        let segments = if sacked == 0 { self.sent.len() as u32 } else { 0 };
        let left = rate.map_or(0, |_| self.on_wire(self.outstanding().saturating_sub(sacked), segments, mss));
        // A queue of the flight's own is no longer than the flight.
        let own = |late: Duration| {
            rate.is_some_and(|rate| {
                let flight = rate.time_for(acked.saturating_add(left));
                late <= flight + flight.divided_by(4) + OWN_QUEUE_SLACK
            })
        };
        // A receiver holds back the acknowledgement of a single segment where what was sent behind it is lost.
        let held = |after: Duration| {
            after >= HELD_BACK_MIN
                && acked <= self.on_wire(mss, 1, mss)
                && rate.is_some_and(|rate| after >= rate.time_for(acked).times(3) + HELD_BACK_MIN)
        };
        let exact = late.is_some_and(|late| own(late) || behind.is_some_and(|after| !held(after)));
        self.link.on_passed(Passed { by, behind: left, exact }, rate);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::rate::RateEstimator;

    fn ms(n: i64) -> Duration {
        Duration::from_millis(n)
    }

    fn at(n: i64) -> Instant {
        Instant::from_nanos(n * 1_000_000)
    }

    /// 1,000 bytes in 10 ms.
    fn rate() -> Option<Rate> {
        let mut estimator = RateEstimator::default();
        for n in 0..20 {
            estimator.on_bytes(at(10 * n), 1_000, 1_000, n > 0);
        }
        estimator.best()
    }

    fn known() -> Rate {
        rate().expect("twenty events show it")
    }

    #[test]
    fn what_is_sent_adds_up_and_an_idle_link_begins_anew() {
        let mut link = Link::default();
        link.on_sent(at(100), 1_000, false, known());
        link.on_sent(at(101), 1_000, false, known());
        assert_eq!(link.busy_from(at(101)), ms(19));
        assert_eq!(link.busy_from(at(130)), ms(0));
        link.on_sent(at(150), 1_000, false, known());
        assert_eq!(link.busy_from(at(150)), ms(10));
    }

    #[test]
    fn a_copy_takes_the_place_of_what_was_lost() {
        let mut link = Link::default();
        link.on_sent(at(100), 3_000, false, known());
        link.on_sent(at(110), 1_000, true, known());
        assert_eq!(link.busy_from(at(110)), ms(20));
    }

    #[test]
    fn an_acknowledgement_bounds_what_is_left_from_both_sides() {
        let mut link = Link::default();
        link.on_sent(at(100), 3_000, false, known());
        link.on_passed(Passed { by: at(105), behind: 2_000, exact: false }, rate());
        assert_eq!(link.busy_from(at(105)), ms(20));
        // Held back, it does not say that the link was slower; otherwise it does.
        link.on_passed(Passed { by: at(130), behind: 1_000, exact: false }, rate());
        assert_eq!(link.busy_from(at(120)), ms(5));
        link.on_passed(Passed { by: at(130), behind: 1_000, exact: true }, rate());
        assert_eq!(link.busy_from(at(120)), ms(20));
    }

    #[test]
    fn what_stood_idle_before_a_copy_was_not_busy() {
        let mut link = Link::default();
        link.on_sent(at(100), 1_000, false, known());
        link.on_sent(at(150), 1_000, true, known());
        assert_eq!(link.busy_from(at(100)), ms(10));
    }

    #[test]
    fn what_was_sent_after_a_break_is_not_through_with_what_was_before() {
        let mut link = Link::default();
        link.on_sent(at(100), 1_000, false, known());
        link.on_sent(at(200), 2_000, false, known());
        link.on_passed(Passed { by: at(110), behind: 2_000, exact: true }, rate());
        assert_eq!(link.busy_from(at(200)), ms(20));
    }
}
