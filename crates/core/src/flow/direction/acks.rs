//! What does an ACK change when it passes the capture, and what when it reaches the sender?
//!
//! When it passes, the segments that it covers leave the queue, and show how far away the peer is and how
//! fast the link. What the sender knew changes only when the ACK reaches it: until then the ACK is in
//! transit ([`Flow::learn`]).

use tcpwhy_wire::{Duration, Instant, Segment, Seq};

use super::{Flow, REMEMBERED_MAX};
use crate::estimate::bottleneck::Acked;
use crate::estimate::maybe::Maybe;
use crate::flow::passing::{AckSeen, Sent};
use crate::flow::view::ClockingAck;
use crate::words::limits::{HOST_VARIATION, UNREAD_MIN};

/// Latest ACKs in transit that are looked at.
const ALL_ACKED_MAX: usize = 64;

/// The segments that an ACK is the first to cover.
#[derive(Clone, Copy, Debug, Default)]
struct Covered {
    bytes: u32,
    /// How many, and when the first and the last of them had left. The last one may be covered in part.
    segments: u32,
    oldest: Option<Instant>,
    newest_at: Option<Instant>,
    /// From the last of them to the ACK, if that is a round trip.
    rtt: Option<Duration>,
    /// The last of them was retransmitted.
    repaired: bool,
    /// From the end of the hole that it fills to the ACK, if the ACK had waited for that alone.
    filled_since: Option<Duration>,
}

impl Covered {
    /// The round trip that it shows, and whether a retransmission may have been acknowledged.
    #[inline]
    fn round_trip(self) -> (Option<Duration>, bool) {
        if self.filled_since.is_some() { (self.filled_since, false) } else { (self.rtt, self.repaired) }
    }
}

/// Where the only SACK block above the ACK begins, if there is just one.
#[cold]
fn only_hole_until(ack: &Segment) -> Option<Seq> {
    let mut beyond = ack.options.sack().iter().filter(|block| block.end.after(ack.ack));
    let first = beyond.next();
    first.filter(|_| beyond.next().is_none()).map(|block| block.start)
}

/// How long after it passes the capture an ACK counts as known to the sender: a little less than the round
/// trip, since an estimate of that may be slightly too long, and no ACK is missed for that.
#[inline]
fn early_by(rtt_to_sender: Duration) -> Duration {
    (rtt_to_sender - rtt_to_sender.divided_by(16) - HOST_VARIATION).at_least_zero()
}

impl Flow {
    /// Applies every ACK that the sender can have had when a segment of its passed at `now`. `rtt_to_sender`
    /// is the round trip between the capture and the sender.
    pub(crate) fn learn(&mut self, now: Instant, rtt_to_sender: Duration, mss: u32) {
        if self.in_transit.is_empty() {
            return;
        }
        let early = early_by(rtt_to_sender);
        while let Some(ack) = self.in_transit.pop_front_if(|ack| ack.at + early <= now) {
            self.take_effect(&ack, rtt_to_sender, mss);
        }
    }

    /// The same where at most one ACK is in transit, the usual case: it is applied in place.
    #[inline(never)]
    pub(crate) fn learn_usual(&mut self, now: Instant, rtt_to_sender: Duration, mss: u32) {
        let view = &mut self.view;
        let known = (self.in_transit.lone(), view.snd_una, view.right_edge, self.snd_nxt);
        let (Some(ack), Some(snd_una), Some(right_edge), Some(nxt)) = known else {
            return self.learn(now, rtt_to_sender, mss);
        };
        // A whole round trip later it has certainly arrived, nearly always.
        let departs = ack.at + rtt_to_sender;
        if departs > now && ack.at + early_by(rtt_to_sender) > now {
            return;
        }
        let room = right_edge - nxt;
        let small_acked =
            self.snd_sml.is_some_and(|small| small.after(snd_una) && small.at_or_before(ack.ack));
        let all_acked = ack.ack.at_or_after(nxt);
        let (window, window_peak) = (view.window, view.window_peak);
        let plain = ack.ack.after(snd_una) && !ack.signals_loss && i64::from(room) >= 2 * i64::from(mss);
        if !plain || !view.may_advance(small_acked, all_acked) {
            return self.learn(now, rtt_to_sender, mss);
        }
        let latest = view.latest_is(small_acked, all_acked);
        *latest = Some(ClockingAck {
            earliest_departure: departs,
            packet: ack.packet,
            rtt: ack.rtt,
            repaired: ack.repaired,
            whole: ack.whole,
            flight: (nxt - snd_una).max(0) as u32,
            window,
            window_peak,
            room,
            left: (nxt - ack.ack).max(0) as u32,
        });
        view.unanswered_since.set_first(departs);
        view.reach(ack.right_edge);
        (view.window, view.unscaled, view.snd_una) = (ack.window, ack.unscaled, Some(ack.ack));
        view.window_peak = view.window_peak.max(ack.window);
        self.in_transit.pop_lone();
    }

    fn take_effect(&mut self, ack: &AckSeen, rtt_to_sender: Duration, mss: u32) {
        // If the capture starts after the connection, what it saw first was not acknowledged before.
        let snd_una_before = self.view.snd_una.or(self.first).unwrap_or(ack.ack);
        let flight = self.flight();
        let view = &mut self.view;
        let room = view.right_edge.zip(self.snd_nxt).map_or(i32::MAX, |(right_edge, nxt)| right_edge - nxt);
        let left = self.snd_nxt.map_or(0, |nxt| (nxt - ack.ack).max(0) as u32);
        let (window, window_peak) = (view.window, view.window_peak);
        // Built where it is kept.
        let clocking = || ClockingAck {
            earliest_departure: ack.at + rtt_to_sender,
            packet: ack.packet,
            rtt: ack.rtt,
            repaired: ack.repaired,
            whole: ack.whole,
            flight,
            window,
            window_peak,
            left,
            room,
        };
        if view.right_edge.is_some_and(|right_edge| ack.right_edge.after(right_edge))
            && view.had_too_little(room, self.last_data.as_ref(), mss)
        {
            view.open_window(clocking());
        }
        view.reach(ack.right_edge);
        (view.window, view.unscaled) = (ack.window, ack.unscaled);
        view.window_peak = view.window_peak.max(ack.window);
        if ack.signals_loss {
            view.loss_signal = Maybe::of(ack.at + rtt_to_sender);
        }
        if view.snd_una.is_none() || ack.ack.after(snd_una_before) {
            view.snd_una = Some(ack.ack);
            let small_acked =
                self.snd_sml.is_some_and(|small| small.after(snd_una_before) && small.at_or_before(ack.ack));
            let all_acked = self.snd_nxt.is_some_and(|nxt| ack.ack.at_or_after(nxt));
            view.advance(clocking, small_acked, all_acked);
        }
    }

    /// The peer acknowledged data of this direction. Returns the round trip between the capture and the
    /// peer, if this ACK shows one; `rtt_to_receiver` is what is known of it so far.
    pub(crate) fn on_ack(
        &mut self,
        ack: &Segment,
        window: u32,
        mss: u32,
        rtt_to_receiver: Duration,
    ) -> Option<Duration> {
        match self.take_first_acknowledged(ack) {
            Some(sent) => self.on_first_ack(ack, &sent, [window, mss], rtt_to_receiver),
            None => self.on_later_ack(ack, window, mss, rtt_to_receiver),
        }
    }

    /// The same of any ACK but a handshake's.
    fn on_later_ack(
        &mut self,
        ack: &Segment,
        window: u32,
        mss: u32,
        rtt_to_receiver: Duration,
    ) -> Option<Duration> {
        let advanced = self.highest_ack.is_none_or(|acked| ack.ack.after(acked));
        self.newly_acked = 0;
        let sacked = !ack.options.sack().is_empty();
        let last_window = self.last_window();
        let window_changed = last_window != window;
        let repeated = !advanced && !window_changed && !sacked && ack.payload_len > 0;
        let known = self.window_first.is_some() && window <= self.window_max;
        if repeated && known && !self.plain {
            self.sack_pending = false;
            return None; // as on each segment of a burst
        }
        // Bytes beyond a hole had arrived before, and are acknowledged when the hole is filled.
        let beyond = ack.options.sack().iter().any(|block| block.end.after(ack.ack));
        let filled = std::mem::replace(&mut self.sack_pending, beyond) || beyond;
        let mut covered = Covered::default();
        if advanced {
            covered = self.on_advance(ack, [beyond, filled], [last_window, window], mss, rtt_to_receiver);
        }
        let duplicate = !advanced && !window_changed && ack.payload_len == 0 && !self.sent.is_empty();
        if !ack.flags.syn() {
            self.learn_window(ack.at, window);
        }
        let updates = !advanced && window > last_window && !sacked && ack.payload_len == 0;
        if updates && self.acknowledgements.last().is_some_and(|last| ack.at - last >= UNREAD_MIN) {
            self.unusual.shown().reader_paused_at = ack.at;
        }
        if !advanced && !window_changed && !sacked && !duplicate {
            return None;
        }
        if sacked || duplicate {
            self.acknowledgements.interrupt(); // its later jump covers bytes that did not arrive at once
            let shown = self.unusual.shown();
            (shown.sack_or_dupack_at, shown.hole_until) = (ack.at, only_hole_until(ack));
            let sacked = self.passed_or_lost(ack);
            self.on_passed(ack.at - rtt_to_receiver, 0, None, None, sacked, mss);
        }
        if self.in_transit.len() >= REMEMBERED_MAX {
            self.in_transit.pop_back();
        }
        let (rtt, repaired) = covered.round_trip();
        self.in_transit.push_back(AckSeen {
            at: ack.at,
            packet: ack.packet,
            ack: ack.ack,
            right_edge: ack.ack + window,
            window,
            rtt: rtt.into(),
            repaired,
            signals_loss: sacked || duplicate,
            unscaled: ack.flags.syn(),
            whole: self.sent.is_empty(),
        });
        rtt.filter(|_| !repaired)
    }

    /// Takes and learns from what `ack` is the first to acknowledge. `beyond` a hole it has more, which was `filled`.
    #[inline]
    fn on_advance(
        &mut self,
        ack: &Segment,
        [beyond, filled]: [bool; 2],
        windows: [u32; 2],
        mss: u32,
        rtt_to_receiver: Duration,
    ) -> Covered {
        let again = !ack.options.sack().is_empty() && self.reports_copy(ack);
        let bare = self.acked_bare;
        let covered = self.take_covered(ack, beyond, filled, mss);
        self.learn_from_covered(ack, &covered, filled, windows, mss, rtt_to_receiver);
        if again && ack.payload_len == 0 {
            self.acked_bare = bare;
        }
        covered
    }

    /// Whether an ACK says of bytes that it is the first to acknowledge that they arrived twice (RFC 2883): one
    /// copy passed before the capture began, and which one the ACK answers is unknown.
    #[cold]
    #[inline(never)]
    fn reports_copy(&self, ack: &Segment) -> bool {
        let first = ack.options.sack().first().filter(|block| block.end.at_or_before(ack.ack));
        let known = self.highest_ack.or(self.first);
        first.zip(known).is_some_and(|(block, acked)| block.end.after(acked))
            && self.sent.front().is_some_and(|sent| !sent.retransmitted)
    }

    /// Time from the last missing segment to the ACK of the only hole, if nothing of it was retransmitted:
    /// it was acknowledged as soon as it came (RFC 5681, 4.2), and not from a retransmission (Karn;
    /// tcp_clean_rtx_queue, net/ipv4/tcp_input.c, Linux 6.12).
    #[cold]
    #[inline(never)]
    fn filled_since(&self, ack: &Segment) -> Option<Duration> {
        let until = self.unusual.hole_until?;
        let missing = self.sent.get(self.sent_before(until).checked_sub(1)?)?;
        let once = !missing.retransmitted && !self.sent.front()?.retransmitted;
        let timed = self.unusual.untimed_until.is_none_or(|until| missing.end.after(until));
        let again = self.unusual.link.has_resent() || self.unusual.holes.reach(ack.ack);
        let filled = missing.end == until && ack.ack.after(until);
        (filled && once && timed && !again).then(|| (ack.at - missing.at).at_least_zero())
    }

    /// The only segment sent, if this is the first ACK and says nothing else: a handshake's.
    #[inline]
    fn take_first_acknowledged(&mut self, ack: &Segment) -> Option<Sent> {
        let first = self.highest_ack.is_none() && ack.payload_len == 0 && ack.options.sack().is_empty();
        if !first || self.plain || self.sack_pending || !self.unusual.is_none() {
            return None;
        }
        self.sent.pop_lone_if(|sent| !sent.end.after(ack.ack))
    }

    /// [`Self::on_ack`] of that: the link has carried nothing yet.
    #[inline]
    fn on_first_ack(
        &mut self,
        ack: &Segment,
        sent: &Sent,
        [window, mss]: [u32; 2],
        rtt_to_receiver: Duration,
    ) -> Option<Duration> {
        let rtt = (ack.at - sent.at).at_least_zero();
        let (repaired, syn) = (sent.retransmitted, ack.flags.syn());
        self.newly_acked = 0;
        self.large.on_acknowledged(0, mss);
        self.highest_ack = Some(ack.ack);
        self.acked_bare = self.acked_bare.saturating_add(1);
        if !repaired && !syn {
            self.learn_timer(Some(rtt), rtt_to_receiver);
        }
        self.learn_unread(Some([self.last_window(), window]));
        self.newest_acked_at = Maybe::of(sent.at);
        if !syn {
            self.learn_window(ack.at, window);
        }
        self.in_transit.push_back_with(|| AckSeen {
            at: ack.at,
            packet: ack.packet,
            ack: ack.ack,
            right_edge: ack.ack + window,
            window,
            rtt: Maybe::of(rtt),
            repaired,
            signals_loss: false,
            unscaled: syn,
            whole: true,
        });
        (!repaired).then_some(rtt)
    }

    /// Removes the segments that are acknowledged for the first time. If `filled`, some of their bytes may
    /// have arrived before, beyond a hole; if `beyond`, some still lie there.
    fn take_covered(&mut self, ack: &Segment, beyond: bool, filled: bool, mss: u32) -> Covered {
        let filled_since = if filled { self.filled_since(ack) } else { None };
        let bytes = self.highest_ack.map_or(0, |before| (ack.ack - before).max(0) as u32);
        self.newly_acked = bytes;
        self.large.on_acknowledged(bytes, mss);
        self.highest_ack = Some(ack.ack);
        if let Some(shown) = self.unusual.known() {
            shown.link.on_advance(bytes, beyond);
            if let Some(first) = shown.holes.first().filter(|&first| ack.ack.after(first)) {
                shown.unseen_acked_at = ack.at;
                shown.miss(shown.holes.first_len().min((ack.ack - first) as u32), ack.at, mss);
            }
        }
        let oldest = self.sent.front().map(|sent| sent.at);
        let mut covered = Covered { bytes, oldest, filled_since, ..Covered::default() };
        let untimed_until = self.unusual.untimed_until;
        let rtt = |sent: &Sent| {
            let timed = !filled && untimed_until.is_none_or(|until| sent.end.after(until));
            timed.then(|| (ack.at - sent.at).at_least_zero())
        };
        let mut last_end = None;
        while let Some(sent) = self.sent.front().copied() {
            if sent.end.after(ack.ack) {
                break;
            }
            last_end = Some(sent.end);
            covered.rtt = rtt(&sent);
            covered.repaired = sent.retransmitted;
            covered.newest_at = Some(sent.at);
            covered.segments += 1;
            self.sent.pop_front();
        }
        // The ACK covers the first packets of a super-segment that the sender's interface is to split; not
        // bytes sent before the capture began, or bytes missing before that segment.
        let into = |split: &&Sent| match last_end {
            Some(end) => ack.ack.after(end) && ack.ack.before(split.end),
            None => bytes >= mss && self.first.is_some_and(|first| ack.ack.after(first)),
        };
        if let Some(split) = self.sent.front().filter(into)
            && !self.unusual.holes.reach(ack.ack)
        {
            covered.rtt = rtt(split);
            covered.repaired = split.retransmitted;
            covered.newest_at = Some(split.at);
        }
        if let Some(shown) = self.unusual.known() {
            shown.untimed_until = untimed_until.filter(|until| until.after(ack.ack));
            self.missing_from_capture |= shown.holes.on_ack(ack.ack);
        }
        covered
    }

    /// What that says about the peer's timer, its reader and the link. `windows` are the one advertised
    /// before and the one advertised now.
    fn learn_from_covered(
        &mut self,
        ack: &Segment,
        covered: &Covered,
        filled: bool,
        windows: [u32; 2],
        mss: u32,
        rtt_to_receiver: Duration,
    ) {
        let &Covered { bytes, segments, oldest, newest_at, rtt, repaired, .. } = covered;
        let count = if ack.payload_len > 0 { &mut self.acked_with_data } else { &mut self.acked_bare };
        *count = count.saturating_add(1);
        // An ACK that comes with a reply may have waited for that.
        let bare = !filled && ack.payload_len == 0;
        if bare && bytes <= mss && !repaired && !ack.flags.syn() {
            self.learn_timer(rtt, rtt_to_receiver);
        }
        let windows = bare.then_some(windows);
        self.learn_unread(windows);
        self.learn_link(
            Acked { at: ack.at, bytes, segments, oldest, newest_at, rtt, windows },
            mss,
            rtt_to_receiver,
        );
    }

    /// Windows of segments with SYN are not scaled and do not count here.
    fn learn_window(&mut self, at: Instant, window: u32) {
        self.window_first.get_or_insert(window);
        if u64::from(window) * 20 > u64::from(self.window_max) * 21 {
            self.window_grew_at = at;
        }
        self.window_max = self.window_max.max(window);
    }

    /// Whether the peer tends to acknowledge with its next data, so that a packet missing from it was hardly
    /// a bare ACK.
    pub(crate) fn is_acked_with_data(&self) -> bool {
        self.acked_with_data > self.acked_bare
    }

    /// Whether the peer mostly acknowledges before it has data of its own, so that a packet missing from it
    /// may have been a bare ACK.
    pub(crate) fn is_acked_bare(&self) -> bool {
        self.acked_bare > self.acked_with_data
    }

    /// When an ACK of everything sent passed the capture, `since` or later, if it is still on its way to the
    /// sender. Data sent before it can have arrived has hardly anything to do with it, unless the sender is
    /// nearer than it seems.
    pub(crate) fn acked_in_transit(&self, since: Instant) -> Option<Instant> {
        self.earliest_of_all(|ack| ack.at >= since).map(|ack| ack.at)
    }

    /// When the first ACK of everything sent passed the capture, if that was before `segment` of the same
    /// end and it is still on its way.
    pub(crate) fn acked_before(&self, segment: &Segment) -> Option<Instant> {
        let first =
            self.earliest_of_all(|_| true).filter(|ack| ack.rtt.is_some() && ack.packet < segment.packet);
        first.map(|ack| ack.at)
    }

    /// When the ACK of the last small segment passed the capture, and its packet number, if it is still on
    /// its way to the sender.
    pub(crate) fn small_acked_at(&self) -> Option<(Instant, u64)> {
        let end = self.snd_sml.filter(|end| self.view.snd_una.is_none_or(|acked| end.after(acked)))?;
        let acks = (0..self.in_transit.len()).map_while(|n| self.in_transit.get(n));
        acks.filter(|ack| ack.ack.at_or_after(end)).map(|ack| (ack.at, ack.packet)).next()
    }

    /// Whether the first ACK of everything sent passed the capture after `at`, and the sender has been
    /// silent since.
    pub(crate) fn was_last_acked_behind(&self, at: Instant) -> bool {
        self.earliest_of_all(|_| true).is_some_and(|ack| ack.at > at && ack.rtt.is_some())
    }

    /// Whether the first ACK of all that `segment` of the same end acknowledges came by itself, at most
    /// `together` before it.
    pub(crate) fn was_acked_together(&self, segment: &Segment, together: Duration) -> bool {
        let latest = self.latest().take_while(|ack| ack.ack.at_or_after(segment.ack));
        let first = latest.last().filter(|ack| ack.rtt.is_some());
        first.is_some_and(|ack| ack.packet < segment.packet && segment.at - ack.at <= together)
    }

    /// The first of the latest ACKs that acknowledge everything sent.
    fn earliest_of_all(&self, counts: impl Fn(&AckSeen) -> bool) -> Option<&AckSeen> {
        // A FIN takes a sequence number after the data, and says nothing.
        let fin = u32::from(self.fin.is_some() && self.fin == self.snd_nxt);
        let all =
            |ack: &&AckSeen| counts(ack) && self.snd_nxt.is_some_and(|nxt| (ack.ack + fin).at_or_after(nxt));
        // ACKs are in order: those of everything sent are the last ones.
        self.latest().take_while(all).last()
    }

    /// The latest ACKs in transit, newest first, as many as are looked at.
    fn latest(&self) -> impl Iterator<Item = &AckSeen> {
        (0..self.in_transit.len()).rev().take(ALL_ACKED_MAX).map_while(|n| self.in_transit.get(n))
    }
}
