//! What do a direction's segments and ACKs say about the bottleneck beyond the capture?
//!
//! Its rate ([`crate::estimate::rate`]) and its load ([`crate::estimate::bottleneck`]) are estimated there;
//! here it is decided which bytes these are told about, and when.

use tcpwhy_wire::{Duration, Instant, SackBlock, Segment};

use super::{Flow, TIMESTAMP_OPTION_LEN};
use crate::estimate::bottleneck::{Acked, Link, Passed, is_gathered};
use crate::estimate::rate::Rate;
use crate::words::limits::{HELD_BACK_MIN, HOST_VARIATION, UNREAD_MIN};

/// Margin of error of the estimate of a flight's own queue.
const OWN_QUEUE_SLACK: Duration = Duration::from_micros(300);

/// This many full segments in a row are not by chance.
const BACKLOG_SEGMENTS: u32 = 32;
/// A gap between ACKs this many times as long as usual is a silence.
const SILENT: i64 = 3;

/// IPv4 and TCP, without options.
const HEADERS_LEN: u32 = 40;

/// A reader that was behind may be behind again for this many windows.
const UNREAD_WINDOWS: u32 = 4;
/// Nothing in a capture fills a larger window, and `UNREAD_WINDOWS` of these stay within half the sequence
/// space.
const WINDOW_MAX: u32 = 1 << 28;

/// TCP_DELACK_MIN (include/net/tcp.h) less a jiffy: the shortest delayed-ACK timer in wide use.
const DELACK_MIN: Duration = Duration::from_millis(36);

impl Flow {
    /// The bottleneck's rate as arrivals or ACKs show it.
    pub(crate) fn rate(&self, near_sender: bool) -> Option<Rate> {
        if near_sender { self.acknowledgements.best() } else { self.arrivals.best() }
    }

    /// Whether the receiver cannot have held back an ACK of `acked` bytes that left when they arrived at
    /// `by`: it acknowledges every second segment at once (RFC 9293, 3.8.6.3), and a single one right before
    /// another only if it is not delaying ACKs at all. Without a handshake to tell the MSS, a large segment
    /// may be a single one.
    pub(crate) fn is_at_once(&self, by: Instant, acked: u32, segments: u32, mss: u32) -> bool {
        let several = segments > 1 || self.mss_announced.is_some();
        acked > mss && several || self.sent.front().is_some_and(|next| next.at <= by)
    }

    /// Whether the receiver cannot have waited for its application to read before it acknowledged these
    /// bytes. Linux acknowledges at once what does not make the window smaller, and everything else when it
    /// is read (__tcp_ack_snd_check, net/ipv4/tcp_input.c; tcp_cleanup_rbuf, net/ipv4/tcp.c). A window well
    /// below its maximum holds bytes that nobody had read: it opens again at the application's pace, not the
    /// link's.
    fn was_read(&self, [before, now]: [u32; 2]) -> bool {
        now >= before && before >= self.window_max - self.window_max / 4
    }

    /// A window well below its maximum holds unread bytes: for some windows from then on, the application's
    /// pace decides when ACKs come, and those that it releases have large windows again.
    #[inline]
    pub(super) fn learn_unread(&mut self, windows: Option<[u32; 2]>) {
        if windows.is_some_and(|[_, now]| now < self.window_max - self.window_max / 4) {
            let windows = self.window_max.min(WINDOW_MAX) * UNREAD_WINDOWS;
            self.unread_until = self.snd_nxt.map(|nxt| nxt + windows);
        } else if self
            .unread_until
            .is_some_and(|until| self.highest_ack.is_some_and(|acked| acked.at_or_after(until)))
        {
            self.unread_until = None;
        }
    }

    /// Learns from an ACK how fast the bottleneck is, and what it is busy with.
    #[inline]
    pub(crate) fn learn_link(&mut self, acked: Acked, mss: u32, rtt_to_receiver: Duration) {
        let Acked { at, bytes, segments, oldest, newest_at, rtt, windows } = acked;
        if windows.is_some() && !self.sent.is_empty() {
            self.part_acked_at = at;
        }
        // Held back because the window would have shrunk by what it acknowledges (__tcp_ack_snd_check,
        // net/ipv4/tcp_input.c).
        if bytes > 4 * mss && windows.is_some_and(|[before, now]| before.saturating_sub(now) >= bytes / 2) {
            let held = rtt.is_some_and(|rtt| rtt - rtt_to_receiver >= UNREAD_MIN);
            if held {
                self.unusual.shown().reader_paused_at = at;
            }
        }
        let since = self.acknowledgements.last().map(|last| at - last);
        let at_once = self.unread_until.is_none()
            && windows.is_some_and(|windows| self.was_read(windows))
            && !is_gathered(segments, bytes, mss, since)
            && self.is_at_once(at - rtt_to_receiver, bytes, segments, mss);
        let late = rtt.filter(|_| at_once).map(|rtt| rtt - rtt_to_receiver);
        // The bottleneck had no break since the last ACK if the oldest of these bytes were waiting then, the
        // newest joined them before they were through, and it spreads what left together or has a queue:
        // this is not the sender's own pace.
        let before = self.newest_acked_at.get();
        let behind = |last: Instant| {
            let waited = oldest.is_some_and(|sent| sent + rtt_to_receiver <= last + HOST_VARIATION);
            let Some(late) = late.filter(|_| waited) else { return false };
            let gap = at - last;
            let newest = gap.times(i64::from(mss.min(bytes))).divided_by(i64::from(bytes.max(1)));
            let spread = before.zip(newest_at).is_some_and(|(before, now)| (now - before).times(2) <= gap);
            late + HOST_VARIATION >= newest && (spread || late >= newest.times(2))
        };
        let behind = self.acknowledgements.last().filter(|&last| behind(last)).map(|last| at - last);
        let timed = bytes <= mss && behind.is_some_and(|since| since >= DELACK_MIN);
        self.newest_acked_at = newest_at.into();
        let passed = self.on_wire(bytes, segments, mss);
        self.on_acknowledged(at, passed, mss, behind.is_some(), rtt_to_receiver);
        let by = at - rtt_to_receiver;
        // Bytes beyond a hole had passed before the bytes that fill it left.
        if let (Some(rate), Some(oldest), Some(_)) = (self.rate(true), oldest, rtt)
            && !self.unusual.link.has_resent()
        {
            // The smallest round trip includes one segment, and bytes timed together may have left a little
            // sooner.
            let segment = self.on_wire(mss, 1, mss);
            let needed = rate.time_for(passed.saturating_sub(segment)) - OWN_QUEUE_SLACK;
            let shown = self.unusual.shown();
            shown.link.on_through(needed.at_least_zero(), by - oldest);
            if !self.acknowledgements.is_settled() {
                shown.bursts.on_through([oldest, by], passed, segment, OWN_QUEUE_SLACK, rate);
            }
        }
        self.on_passed(by, passed, late, behind, 0, mss);
        if timed {
            self.unusual.shown().link.on_timer(at);
        } else {
            self.forget_timer();
        }
    }

    /// The last ACK was not one of a timer that could be taken for the link.
    #[inline]
    pub(super) fn forget_timer(&mut self) {
        if let Some(shown) = self.unusual.known() {
            shown.link.forget_timer();
        }
    }

    /// Whether what seemed to be a slow link was a delayed-ACK timer: the bytes right after the segment that
    /// it acknowledged are missing, as their retransmission shows.
    pub(crate) fn was_timed(&self) -> bool {
        self.unusual.link.was_timed(self.acknowledgements.last())
    }

    /// Bytes were retransmitted.
    pub(crate) fn resend(&mut self, bytes: u32) {
        if self.was_timed() {
            self.acknowledgements.forget(DELACK_MIN);
            if self.acknowledgements.best().is_none() {
                self.unusual.shown().link = Link::NONE;
            }
        }
        self.unusual.shown().link.resend(bytes);
    }

    /// How many outstanding bytes cannot be at the bottleneck any more: packets stay in order in a queue, so
    /// whatever was sent before bytes that have arrived has passed it or is lost, except for
    /// retransmissions.
    pub(crate) fn passed_or_lost(&self, ack: &Segment) -> u32 {
        let blocks = ack.options.sack().iter();
        let bytes = |block: &SackBlock| (block.end - block.start.latest(ack.ack)).max(0) as u32;
        let arrived = blocks.clone().map(bytes).fold(0, u32::saturating_add);
        let reached = blocks.map(|block| block.end - ack.ack).max().unwrap_or(0);
        arrived.max((reached.max(0) as u32).saturating_sub(self.unusual.link.resent()))
    }

    /// Whether so much has left since the last small segment that its sender always had more to send: what
    /// an application writes at a time is hardly ever a whole number of segments.
    pub(crate) fn is_backlogged(&self, mss: u32) -> bool {
        let since = self.snd_sml.or(self.first).zip(self.snd_nxt);
        since.is_some_and(|(small, nxt)| (nxt - small).max(0) as u32 >= BACKLOG_SEGMENTS * mss)
    }

    /// How long after `last`, when the sender last sent before `now`, the bottleneck ran out of work, if it
    /// did. While something is missing a receiver acknowledges each packet at once (RFC 5681, 4.2), or those
    /// that come within a twentieth of the round trip together (tcp_comp_sack_delay_ns,
    /// net/ipv4/tcp_input.c): if no ACK comes, no packet has passed.
    pub(crate) fn silent_from(
        &self,
        last: Instant,
        now: Instant,
        rtt_to_receiver: Duration,
    ) -> Option<Duration> {
        if !self.sack_pending {
            return None;
        }
        let heard = self.unusual.sack_or_dupack_at;
        let usual = self.acknowledgements.usual_spacing()?;
        let together = rtt_to_receiver.divided_by(20).min(Duration::from_millis(1));
        let idle_from = (heard - rtt_to_receiver).max(last);
        let known_at = idle_from + usual.times(SILENT) + together + OWN_QUEUE_SLACK + rtt_to_receiver;
        (known_at < now).then(|| idle_from - last)
    }

    /// Bytes on the link for this much payload in this many segments as captured: each packet has its
    /// headers.
    #[inline]
    pub(crate) fn on_wire(&self, payload: u32, segments: u32, mss: u32) -> u32 {
        let headers = HEADERS_LEN + if self.timestamps { TIMESTAMP_OPTION_LEN } else { 0 };
        if payload <= mss && segments <= 1 {
            return if payload == 0 { 0 } else { payload.saturating_add(headers) };
        }
        let packets = payload.div_ceil(mss.max(1)).max(segments.min(payload));
        payload.saturating_add(packets.saturating_mul(headers))
    }

    /// `bytes` more were acknowledged; `behind` is that of the rate estimator.
    #[inline]
    pub(crate) fn on_acknowledged(
        &mut self,
        at: Instant,
        bytes: u32,
        mss: u32,
        behind: bool,
        rtt_to_receiver: Duration,
    ) {
        if self.on_one_host {
            return;
        }
        let known = self.rate(true).is_some();
        self.acknowledgements.on_bytes(at, bytes, mss, behind);
        if let Some(rate) = self.rate(true).filter(|_| !known) {
            self.begin_link(at - rtt_to_receiver, rate, mss);
        }
    }

    /// The rate has shown for the first time: bytes in flight reached the link when they left, after what
    /// had passed it by then.
    #[cold]
    fn begin_link(&mut self, passed: Instant, rate: Rate, mss: u32) {
        let Some(first) = self.sent.front().map(|sent| sent.at) else { return };
        self.unusual.shown().link = Link::begin(first.min(passed), passed);
        let mut from = self.highest_ack;
        for n in 0..self.sent.len() {
            let Some(&sent) = self.sent.get(n) else { return };
            let payload = from.replace(sent.end).map_or(0, |from| (sent.end - from).max(0) as u32);
            let bytes = self.on_wire(payload, 1, mss);
            self.unusual.shown().link.on_sent(sent.at, bytes, false, rate);
        }
    }

    /// An ACK shows what had left the bottleneck at `by`: `acked` more bytes than before, the last of which
    /// took `late` longer than the path needs unless it was held back, and `sacked` bytes beyond a hole. If
    /// they had been waiting `behind` others, the bottleneck was busy since the last ACK, that long ago.
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
        // A flight's own queue is no longer than the flight.
        let own = |late: Duration| {
            rate.is_some_and(|rate| {
                let flight = rate.time_for(acked.saturating_add(left));
                late <= flight + flight.divided_by(4) + OWN_QUEUE_SLACK
            })
        };
        // A receiver holds back the ACK of a single segment if what was sent after it is lost.
        let held = |after: Duration| {
            after >= HELD_BACK_MIN
                && acked <= self.on_wire(mss, 1, mss)
                && rate.is_some_and(|rate| after >= rate.time_for(acked).times(3) + HELD_BACK_MIN)
        };
        let exact = late.is_some_and(|late| own(late) || behind.is_some_and(|after| !held(after)));
        if exact || rate.is_some() {
            self.unusual.shown().link.on_passed(Passed { by, behind: left, exact }, rate);
        }
    }
}
