//! What does a usual segment change in the state of a direction?
//!
//! A request, a reply or an ACK changes little where nothing is missing, out of order or unknown. The
//! functions here do just that, in the order and with the results of the general path (`Flow::on_packet`,
//! `on_ack`, `learn`, `on_data`), whose every other question is answered beforehand ([`Flow::is_calm`]).

#![expect(clippy::inline_always, reason = "the usual path is written out for either end")]

use tcpwhy_wire::{Duration, Instant, Seq};

use super::{AckSeen, Flow, LastData, REMEMBERED_MAX, SegmentClass, Sent};
use crate::estimate::bottleneck::Acked;
use crate::estimate::maybe::Maybe;
use crate::flow::packed::Packed;
use crate::flow::segment_class::SendQueue;

/// The segments that an ACK is the first to cover.
#[derive(Clone, Copy)]
struct Covered {
    /// When the first of them had left; and the last one, or the one in which the ACK ends.
    oldest: Option<Instant>,
    newest: Option<Sent>,
    segments: u32,
    /// Nothing else was in flight.
    whole: bool,
}

impl Flow {
    /// Whether nothing known of this direction makes its next segment unusual.
    pub(crate) fn is_calm(&self) -> bool {
        let told = self.mss_announced.is_some() && self.timestamps && !self.options_cut;
        told && self.unusual.is_whole()
            && !self.sack_pending
            && self.snd_nxt.is_some()
            && self.highest_ack.is_some()
            && !self.acked_unseen()
            && !self.plain
            && !self.on_one_host
    }

    /// Whether this segment is the one that comes next.
    #[inline(always)]
    pub(crate) fn expects(&self, segment: &Packed) -> bool {
        self.snd_nxt == Some(segment.seq) && self.ip_id.expects(segment.ip_id)
    }

    /// Whether everything sent was acknowledged at the capture.
    #[inline]
    pub(crate) fn is_acknowledged(&self) -> bool {
        self.highest_ack == self.snd_nxt
    }

    /// Whether nothing was queued after what it sent last.
    #[inline]
    pub(crate) fn has_emptied_its_queue(&self) -> bool {
        self.last_data.as_ref().is_none_or(|last| last.queue == SendQueue::Emptied)
    }

    /// Whether its sender has ever set PSH, which marks the ends of writes.
    pub(crate) fn has_pushed(&self) -> bool {
        u64::from(self.pushed_run) < self.bytes
    }

    /// Every packet of this direction: [`Flow::on_packet`] of the next one in order.
    #[inline(always)]
    pub(crate) fn on_usual_packet(&mut self, segment: &Packed, mss: u32) {
        let one = segment.payload_len <= mss; // the usual case, without a division
        let packets = if one { 1 } else { segment.payload_len.div_ceil(mss.max(1)) as u16 };
        self.ip_id.on_next(segment.ip_id, packets);
        debug_assert!(!self.on_one_host, "what passes twice is not calm");
        self.queued_on_way = self.clock.on_usual_packet(segment.at, segment.stamps.val, false);
        self.learn_peak(segment.at);
    }

    /// [`Flow::on_pure`] of a packet before which nothing is missing.
    #[inline(always)]
    pub(crate) fn on_usual_pure(&mut self, at: Instant) {
        self.sent_bare = true;
        self.missed_since_data = 0;
        self.nothing_out_at = at;
    }

    /// Whether this segment's ACK, of no more than was known, changes nothing.
    #[inline(always)]
    pub(crate) fn is_repeated(&self, segment: &Packed, window: u32) -> bool {
        let last_window = self.last_window();
        segment.payload_len > 0
            && self.highest_ack == Some(segment.ack)
            && last_window == window
            && self.window_first.is_some()
            && window <= self.window_max
    }

    /// An ACK of no more than was known.
    #[inline]
    pub(crate) fn on_repeated(&mut self) {
        self.newly_acked = 0;
    }

    /// How many bytes this segment is the first to acknowledge, if it acknowledges nothing that was not sent.
    #[inline(always)]
    pub(crate) fn acknowledged_by(&self, segment: &Packed) -> u32 {
        let (Some(acked), Some(nxt)) = (self.highest_ack, self.snd_nxt) else { return 0 };
        let new = segment.ack - acked;
        let usual = new > 0 && segment.ack.at_or_before(nxt) && self.in_transit.len() < REMEMBERED_MAX;
        if usual { new as u32 } else { 0 }
    }

    /// [`Flow::on_ack`] of an ACK of new data, where nothing was missing.
    #[inline(always)]
    pub(crate) fn on_usual_ack(
        &mut self,
        segment: &Packed,
        (acked, window): (u32, u32),
        mss: u32,
        rtt_to_receiver: Duration,
    ) -> Option<Duration> {
        let ack = segment.ack;
        self.newly_acked = acked;
        self.large.on_acknowledged(acked, mss);
        self.highest_ack = Some(ack);
        if let Some(lone) = self.sent.pop_lone_if(|sent| !sent.end.after(ack)) {
            let covered = Covered { oldest: Some(lone.at), newest: Some(lone), segments: 1, whole: true };
            return self.on_covered(segment, window, mss, rtt_to_receiver, covered);
        }
        self.on_flight_acked(segment, window, mss, rtt_to_receiver)
    }

    /// The same for all but a single segment.
    #[inline(never)]
    fn on_flight_acked(
        &mut self,
        segment: &Packed,
        window: u32,
        mss: u32,
        rtt_to_receiver: Duration,
    ) -> Option<Duration> {
        let covered = self.take_acknowledged(segment.ack, self.newly_acked, mss);
        self.on_covered(segment, window, mss, rtt_to_receiver, covered)
    }

    /// What an ACK says about the segments that it covers, once they have left the queue.
    #[inline(always)]
    fn on_covered(
        &mut self,
        segment: &Packed,
        window: u32,
        mss: u32,
        rtt_to_receiver: Duration,
        covered: Covered,
    ) -> Option<Duration> {
        let (at, ack, acked) = (segment.at, segment.ack, self.newly_acked);
        let Covered { oldest, newest, segments, whole } = covered;
        let newest_at = newest.map(|sent| sent.at);
        let rtt = newest_at.map(|sent| (at - sent).at_least_zero());
        let repaired = newest.is_some_and(|sent| sent.retransmitted);
        let mut windows = None;
        if segment.payload_len > 0 {
            self.acked_with_data = self.acked_with_data.saturating_add(1);
        } else {
            self.acked_bare = self.acked_bare.saturating_add(1);
            if acked <= mss && !repaired {
                self.learn_timer(rtt, rtt_to_receiver);
            }
            windows = Some([self.last_window(), window]);
        }
        self.learn_unread(windows);
        if acked <= mss && segments <= 1 && whole && self.acknowledgements.best().is_none() {
            // A single segment says nothing about the link.
            self.newest_acked_at = newest_at.into();
            self.acknowledgements.on_lone(at);
            self.forget_timer();
        } else {
            self.learn_link(
                Acked { at, bytes: acked, segments, oldest, newest_at, rtt, windows },
                mss,
                rtt_to_receiver,
            );
        }
        self.window_first.get_or_insert(window);
        if window > self.window_max {
            if u64::from(window) * 20 > u64::from(self.window_max) * 21 {
                self.window_grew_at = at;
            }
            self.window_max = window;
        }
        self.in_transit.push_back_with(|| AckSeen {
            at,
            packet: segment.packet,
            ack,
            right_edge: ack + window,
            window,
            rtt: rtt.into(),
            repaired,
            signals_loss: false,
            unscaled: false,
            whole,
        });
        rtt.filter(|_| !repaired)
    }

    /// Removes the segments that `ack` covers, `acked` bytes more than before.
    #[inline]
    fn take_acknowledged(&mut self, ack: Seq, acked: u32, mss: u32) -> Covered {
        let oldest = self.sent.front().map(|sent| sent.at);
        let (mut newest, mut segments) = (None, 0);
        self.sent.pop_while(
            |sent| !sent.end.after(ack),
            |sent| {
                newest = Some(sent);
                segments += 1;
            },
        );
        if let Some(split) = self.sent.front().copied() {
            let into = match newest.map(|sent| sent.end) {
                Some(end) => ack.after(end) && ack.before(split.end),
                None => acked >= mss && self.first.is_some_and(|first| ack.after(first)),
            };
            if into {
                newest = Some(split);
            }
        }
        Covered { oldest, newest, segments, whole: self.sent.is_empty() }
    }

    /// [`Flow::on_data`] of a small segment with PSH after an empty queue. Returns what is kept of it.
    #[inline(always)]
    pub(crate) fn on_usual_data(&mut self, segment: &Packed, mss: u32) -> LastData {
        let (at, len, end) = (segment.at, segment.payload_len, segment.seq + segment.payload_len);
        self.snd_nxt = Some(end);
        self.snd_sml = Some(end);
        if self.sent.is_empty() {
            self.sent.push_back_with(|| Sent { end, at, retransmitted: false });
        } else {
            self.remember(end, at, false);
        }
        self.bytes += u64::from(len);
        self.arrivals.on_lone(at);
        if let Some(rate) = self.acknowledgements.best() {
            let wire = self.on_wire(len, 1, mss);
            self.unusual.shown().link.on_sent(at, wire, false, rate);
        }
        let forced = self.pushed_run.saturating_add(len) >= self.forced_push_after();
        let queue = if forced || self.view.cuts(end) { SendQueue::Unknown } else { SendQueue::Emptied };
        self.pushed_run = 0;
        self.interrupt_beat();
        self.on_last(segment, queue, len) // nothing else is in flight here
    }

    /// Whether only the bottleneck can have delayed a full segment that comes right after `last`, a moment
    /// ago, and nothing is to be learned from it.
    #[inline]
    pub(crate) fn may_go_on(&self, last: &LastData, mss: u32) -> bool {
        let shows_no_pause = || {
            let acked = self.view.small_acked();
            last.len >= mss && acked.is_none_or(|acked| acked.earliest_departure <= last.at)
        };
        (last.queue == SendQueue::More || last.queue == SendQueue::Unknown && shows_no_pause())
            && self.view.window_opened().is_none_or(|opened| opened.earliest_departure <= last.at)
    }

    /// How long the bottleneck was busy between `last` and this segment: `link_share::split`, and what
    /// `think::judge` makes of it.
    #[inline]
    pub(crate) fn busy_in_burst(
        &self,
        segment: &Packed,
        last: &LastData,
        gap: Duration,
        near: bool,
        mss: u32,
    ) -> Duration {
        if near {
            return self.unusual.busy_from(last.at).min(gap);
        }
        let Some(rate) = self.arrivals.best() else { return Duration::ZERO };
        let needed = rate.time_for(self.on_wire(segment.payload_len, 1, mss));
        let idle = self.is_paced() || gap > needed.times(2) + Duration::from_micros(300);
        let busy = if idle { needed.min(gap) } else { gap };
        if last.queue == SendQueue::More || busy == gap { busy } else { Duration::ZERO }
    }

    /// [`Flow::on_data`] of a full segment after another one. Returns what is kept of it.
    #[inline]
    pub(crate) fn on_burst_data(&mut self, segment: &Packed, mss: u32, path_rtt: Duration) -> LastData {
        let (at, len, end) = (segment.at, segment.payload_len, segment.seq + segment.payload_len);
        if self.view.snd_una == Some(segment.seq) {
            self.arrivals.interrupt(); // the sender had waited for the last ACK
        }
        self.snd_nxt = Some(end);
        let flight = self.outstanding();
        if self.sent.len() >= REMEMBERED_MAX {
            self.sent.pop_front();
        }
        self.sent.push_back_with(|| Sent { end, at, retransmitted: false });
        self.bytes += u64::from(len);
        self.large.on_full();
        let stamps = Some(segment.stamps);
        self.learn_pace(at, stamps, SegmentClass::New);
        let behind = self.arrivals.last().is_some_and(|last| self.was_behind(stamps, at - last, path_rtt));
        let wire = self.on_wire(len, 1, mss);
        self.arrivals.on_bytes(at, wire, mss, behind);
        if let Some(rate) = self.acknowledgements.best() {
            self.unusual.shown().link.on_sent(at, wire, false, rate);
        }
        let pushed = segment.flags.psh();
        self.pushed_run = if pushed { 0 } else { self.pushed_run.saturating_add(len) };
        self.learn_beat(at, SegmentClass::New);
        self.on_last(segment, if pushed { SendQueue::Unknown } else { SendQueue::More }, flight)
    }

    /// Keeps a segment as the last one with data, and what it says about the queue after it. The caller gets
    /// it as it is built, without copying what was just written.
    #[inline(always)]
    fn on_last(&mut self, segment: &Packed, queue: SendQueue, flight: u32) -> LastData {
        debug_assert_eq!(flight, self.outstanding(), "what is in flight is known");
        self.view.unanswered_since = Maybe::NONE;
        self.missed_since_data = 0;
        let snd_una = self.view.snd_una;
        let before = self.last_data.as_ref();
        let last = LastData {
            at: segment.at,
            packet: segment.packet,
            queue,
            len: segment.payload_len,
            flight,
            flight_segments: self.sent.len() as u16,
            stamp: Some(segment.stamps.val),
            snd_una,
            unheard: before.map_or(0, |last| last.unheard_with(snd_una)) + 1,
            spacing: before.map_or(Duration::ZERO, |before| segment.at - before.at),
        };
        self.last_data = Some(last);
        last
    }
}
