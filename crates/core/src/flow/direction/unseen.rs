//! What has arrived although the capture missed it?

use std::cmp::Ordering;

use tcpwhy_wire::{Duration, Instant, Segment};

use super::{Flow, HOLE_BYTES_MAX};
use crate::words::limits::{DELAYED_ACK_MIN, HELD_BACK_MIN, TIMER_TICK};

/// No delayed-ACK timer runs longer: 200 ms (TCP_DELACK_MAX, include/net/tcp.h; Windows), 100 ms (BSD).
const PEER_TIMER_MAX: Duration = Duration::from_millis(200);
/// Two equal time stamps this far apart are not due to a slow clock (10 ms on some hosts today). Source:
/// none written down.
const HELD_WITH_MIN: Duration = Duration::from_millis(20);

impl Flow {
    /// Whether a hole that had been noticed by `at` is still open, neither filled nor acknowledged.
    pub(crate) fn had_hole(&self, at: Instant) -> bool {
        self.unusual.holes.first_noticed().is_some_and(|noticed| noticed <= at)
    }

    /// Since when it is known that the bytes that its peer expects next were sent, and have not come.
    pub(crate) fn unheard_since(&self) -> Option<Instant> {
        let holes = &self.unusual.holes;
        holes.first_noticed().filter(|_| holes.first() == self.highest_ack)
    }

    /// Whether the peer has acknowledged bytes that the capture does not have. They may still come, if the
    /// capture took the packets of two queues out of order.
    pub(crate) fn acked_unseen(&self) -> bool {
        self.highest_ack.zip(self.snd_nxt).is_some_and(|(acked, nxt)| acked.after(nxt))
    }

    /// A segment without data carries the next sequence number: bytes before it that the capture has not
    /// seen were sent, and lost or not captured. Those that the peer has acknowledged are not missing any
    /// more.
    pub(crate) fn on_pure(&mut self, segment: &Segment) {
        self.sent_bare = true;
        if self.snd_nxt == Some(segment.seq) {
            // Nothing before it is missing: the packets that the capture missed were ACKs too.
            self.missed_since_data = 0;
            self.nothing_out_at = segment.at;
        }
        let arrived = self.highest_ack.is_some_and(|acked| acked.at_or_after(segment.seq));
        // If the capture begins in the middle, the peer's ACKs tell what had arrived by then.
        let before = self.highest_ack.filter(|acked| segment.seq.after(*acked)).unwrap_or(segment.seq);
        self.snd_nxt.get_or_insert(before);
        if let Some(nxt) = self.snd_nxt
            && segment.seq.after(nxt)
            && (segment.seq - nxt) < HOLE_BYTES_MAX
            && (arrived || self.unusual.shown().holes.notice(nxt, segment.seq, segment))
        {
            self.snd_nxt = Some(segment.seq);
        }
    }

    /// The packets that it seems to have missed do not exist: the counter is not this connection's alone, or
    /// the capture has no ACKs without data.
    pub(crate) fn forget_missed(&mut self) {
        self.missed_since_data = 0;
        self.ip_id.acquit();
    }

    /// Outstanding bytes before the first hole.
    pub(crate) fn in_order(&self) -> u32 {
        let missing = self
            .unusual
            .holes
            .first()
            .zip(self.highest_ack)
            .map(|(first, acked)| (first - acked).max(0) as u32);
        missing.unwrap_or(u32::MAX).min(self.outstanding())
    }

    /// Whether packets before this segment are missing from the capture, though they did arrive.
    pub(crate) fn not_captured(&self, segment: &Segment) -> bool {
        self.acked_unseen() && self.snd_nxt.is_some_and(|nxt| segment.seq.after(nxt))
    }

    /// Whether its sender's IP ID or clock says that the present segment left before others that passed
    /// sooner: it was overtaken and is no retransmission.
    pub(crate) fn left_before(&self, segment: &Segment, mss: u32) -> bool {
        let packets = segment.payload_len.div_ceil(mss.max(1)).max(1) as u16;
        let by_number = || segment.ip_id.is_some_and(|id| self.ip_id.is_before_others(id, packets));
        self.beside_shown(segment)
            .map_or_else(|| by_number() || self.left_with_shown(segment), Ordering::is_lt)
    }

    /// Whether it is one of the packets that the identification of the last one skipped.
    pub(crate) fn lacked(&self, segment: &Segment) -> bool {
        segment.ip_id.is_some_and(|id| self.ip_id.lacked(id))
    }

    /// Whether it has the same TSval as the packet that revealed the hole, although the sender's clock has
    /// ticked several times since: both left together, so it is no retransmission.
    #[cold]
    #[inline(never)]
    fn left_with_shown(&self, segment: &Segment) -> bool {
        let shown = self.unusual.holes.stamp(segment.seq, segment.seq + segment.payload_len);
        let same = shown.is_some() && shown == segment.options.timestamps.map(|stamps| stamps.val);
        let since = self.clock.same_stamp_for(segment.at).filter(|_| same);
        let ticks = |since| self.clock.ticks_apart(0, 0).is_some() || self.clock.ticks_within(since);
        since.is_some_and(|since| since >= HELD_WITH_MIN && ticks(since))
    }

    /// Whether they say that it left after the packet that revealed the hole: a retransmission, as new data
    /// leaves in order.
    pub(crate) fn left_behind(&self, segment: &Segment, mss: u32) -> bool {
        let packets = segment.payload_len.div_ceil(mss.max(1)).max(1) as u16;
        let by_number = || segment.ip_id.is_some_and(|id| self.ip_id.is_newest(id, packets));
        self.beside_shown(segment).map_or_else(by_number, Ordering::is_gt)
    }

    /// Whether its IP ID follows that of the packet before it, which it cannot have overtaken or be overtaken by.
    pub(crate) fn is_next(&self, segment: &Segment, mss: u32) -> bool {
        let packets = segment.payload_len.div_ceil(mss.max(1)).max(1) as u16;
        segment.ip_id.is_some_and(|id| self.ip_id.has_followed(id, packets))
    }

    /// Its TSval compared with that of the packet that revealed the hole, if the clock has ticked in
    /// between.
    fn beside_shown(&self, segment: &Segment) -> Option<Ordering> {
        let missing = self.unusual.holes.stamp(segment.seq, segment.seq + segment.payload_len);
        let then = missing.or_else(|| self.last_data.as_ref()?.stamp)?;
        let apart = segment.options.timestamps?.val.wrapping_sub(then) as i32;
        Some(apart.cmp(&0)).filter(|order| order.is_ne())
    }

    /// How many segments are missing before this one, if it had been sent before: its IP ID shows one packet
    /// more missing than its bytes do.
    #[cold]
    #[inline(never)]
    pub(crate) fn came_again_behind(&self, segment: &Segment, mss: u32) -> Option<u32> {
        let missing = self.snd_nxt.map_or(0, |nxt| segment.seq - nxt);
        let segments = (missing.max(0) as u32).div_ceil(mss.max(1));
        let jumped = u32::from(self.ip_id.jumped(segment.ip_id?));
        (segments > 0 && jumped == segments + 1).then_some(segments)
    }

    /// How many numbers the present packet skips, by a counter that often follows: one that packets to others use as well skips more, and
    /// more often.
    #[cold]
    #[inline(never)]
    pub(crate) fn numbers_skipped(&self, segment: &Segment) -> u16 {
        segment.ip_id.filter(|_| self.ip_id.often_follows()).map_or(0, |id| self.ip_id.jumped(id))
    }

    /// Whether the numbers between its last two packets may be those of unseen ones, even if too few
    /// packets came in order to prove that the counter is the connection's own.
    #[cold]
    #[inline(never)]
    pub(crate) fn skipped_numbers(&self, segment: &Segment) -> bool {
        segment.ip_id.is_some_and(|id| self.ip_id.jumped(id) > 0)
    }

    /// The peer took `rtt` for a bare ACK and is `rtt_to_receiver` away.
    #[inline]
    pub(super) fn learn_timer(&mut self, rtt: Option<Duration>, rtt_to_receiver: Duration) {
        let held = rtt.map_or(Duration::ZERO, |rtt| rtt - rtt_to_receiver);
        if held >= HELD_BACK_MIN && held > self.peer_timer && rtt_to_receiver.is_positive() {
            self.peer_timer = held;
        }
    }

    /// How long the peer may have had bytes of this direction without acknowledging them, whatever its
    /// program did: the longest timer that it has shown, which may grow with the round trip
    /// (tcp_send_delayed_ack, net/ipv4/tcp_output.c). One that has always been sooner than the shortest timer has
    /// not shown its own.
    pub(crate) fn peer_timer(&self, rtt: Duration) -> Option<Duration> {
        let longest = (self.peer_timer + self.peer_timer.divided_by(4)).max(DELAYED_ACK_MIN);
        let bounded = longest.max(rtt.min(PEER_TIMER_MAX)) + TIMER_TICK.times(2);
        self.peer_timer.is_positive().then_some(bounded)
    }

    /// Whether the peer's last segment was its first ACK of what was sent last.
    pub(crate) fn acked_just_now(&self) -> bool {
        self.newly_acked > 0 && self.highest_ack == self.snd_nxt
    }
}
