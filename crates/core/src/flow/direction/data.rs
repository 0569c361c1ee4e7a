//! Where does a segment lie in its direction's sequence space, and what does it change there?
//!
//! New data, the filling of a hole, a retransmission, a probe: [`Flow::classify`] is asked before the
//! segment is taken into the state ([`Flow::on_data`]), and rules are asked in between.

use tcpwhy_wire::{Duration, Instant, Segment, Seq};

use super::{Flow, LastData, REMEMBERED_MAX, SegmentClass};
use crate::estimate::maybe::Maybe;
use crate::flow::passing::Sent;
use crate::words::limits::BURST_GAP;

/// Sooner, the same bytes may be the same packet, captured again and cut differently.
const SENT_AGAIN_MIN: Duration = Duration::from_millis(20);

impl Flow {
    /// What a data segment is in the sequence space of its direction.
    pub(crate) fn classify(&self, segment: &Segment) -> SegmentClass {
        let (Some(nxt), end) = (self.snd_nxt, segment.seq + segment.payload_len) else {
            // The first packet in the capture: a write of a single byte would leave with PSH.
            let probe = segment.payload_len == 1 && !segment.flags.psh();
            return if probe { SegmentClass::Probe } else { SegmentClass::New };
        };
        if end.after(nxt) {
            // A byte beyond a closed window asks whether it is still closed. A receiver that takes it
            // acknowledges it, and the data after it begins one later; one that does not gets it again with
            // the data.
            let closed = self.room_left().is_some_and(|room| room <= 0);
            return if closed && segment.payload_len == 1 && segment.seq == nxt {
                SegmentClass::Probe
            } else {
                SegmentClass::New
            };
        }
        if let Some(noticed_at) = self.unusual.holes.noticed_at(segment.seq, end) {
            return SegmentClass::OutOfOrderOrRepair { noticed_at };
        }
        if self.highest_ack.is_some_and(|acked| end.at_or_before(acked)) {
            let probe =
                segment.payload_len <= 1 && self.highest_ack.is_some_and(|acked| segment.seq + 1 == acked);
            return if probe { SegmentClass::Probe } else { SegmentClass::Duplicate };
        }
        // Nothing has been acknowledged yet if the capture starts in the middle.
        if segment.payload_len == 1 && end == nxt && !segment.flags.psh() && self.highest_ack.is_none() {
            return SegmentClass::Probe;
        }
        let original = self.sent.get(self.sent_before(segment.seq));
        SegmentClass::Retransmission { original_at: original.map_or(segment.at, |sent| sent.at) }
    }

    /// Segments with more after them, each as long as the one before, are as long as the path allows (RFC
    /// 1191; tcp_sync_mss, net/ipv4/tcp_output.c, Linux 6.12), whatever was announced: two of them, neither
    /// of which waited for a window. PSH on the one before may mark the end of one of many writes.
    #[cold]
    fn learn_path_size(&mut self, segment: &Segment, path_rtt: Duration) {
        let in_order = self.snd_nxt == Some(segment.seq);
        let last = self.last_data.as_ref().filter(|last| in_order && last.len == segment.payload_len);
        let soon = |last: &LastData| (segment.at - last.at).times(4) <= path_rtt.max(BURST_GAP.times(4));
        if last.is_some_and(|last| !soon(last)) {
            return; // says nothing
        }
        let at_once = self.last_data.as_ref().is_some_and(|before| segment.at - before.at < BURST_GAP);
        if last.is_none() && at_once && in_order {
            self.full_size.on_short_at_once();
        }
        if self.full_size.repeats(last.map(|last| last.len)) {
            self.mss_announced = u16::try_from(segment.payload_len + self.options_len()).ok();
        }
    }

    /// The byte after all that an application can have been given.
    pub(crate) fn delivered(&self) -> Option<Seq> {
        self.unusual.holes.first().or(self.snd_nxt)
    }

    /// Takes a data segment into the state. Returns how many of its bytes were new.
    pub(crate) fn on_data(
        &mut self,
        segment: &Segment,
        class: SegmentClass,
        mss: u32,
        path_rtt: Duration,
    ) -> u32 {
        self.first.get_or_insert(segment.seq);
        if !segment.flags.psh() && !segment.flags.fin() {
            match self.mss_announced {
                None => self.full_size.on_unpushed(segment.payload_len),
                Some(_) if segment.payload_len < mss => self.learn_path_size(segment, path_rtt),
                Some(_) => {}
            }
        }
        let small = match segment.payload_len {
            len if len <= mss => len > 0 && len < mss, // without a division
            len => !len.is_multiple_of(mss.max(1)),
        };
        if self.snd_nxt.is_some() && self.snd_nxt == self.view.snd_una {
            self.arrivals.interrupt(); // the sender had waited for the last ACK
        }
        let new_bytes = self.take_bytes(segment, class, small, mss);
        self.bytes += u64::from(new_bytes);
        self.learn_from_data(segment, class, new_bytes, mss, path_rtt);
        if !matches!(class, SegmentClass::Duplicate | SegmentClass::Probe) {
            self.keep_last(segment, class, small);
        }
        new_bytes
    }

    /// Its place in the sequence space: after all others, in a hole, or where others were before. Returns
    /// how many of its bytes were new.
    fn take_bytes(&mut self, segment: &Segment, class: SegmentClass, small: bool, mss: u32) -> u32 {
        let (start, end) = (segment.seq, segment.seq + segment.payload_len);
        match class {
            SegmentClass::New => {
                let nxt = self.snd_nxt.unwrap_or(start);
                if start.after(nxt) {
                    let arrived = self.highest_ack.map_or(0, |acked| (acked - nxt).max(0) as u32);
                    let shown = self.unusual.shown();
                    shown.holes.notice(nxt, start, segment);
                    shown.miss(arrived.min((start - nxt) as u32), segment.at, mss);
                    self.ip_id.on_hole(((start - nxt) as u32).div_ceil(mss.max(1)));
                }
                self.snd_nxt = Some(end);
                if small {
                    self.snd_sml = Some(end);
                }
                self.remember(end, segment.at, start.before(nxt));
                (end - start.latest(nxt)).max(0) as u32
            }
            SegmentClass::OutOfOrderOrRepair { .. } => {
                if small && self.snd_sml.is_none_or(|sml| end.after(sml)) {
                    self.snd_sml = Some(end); // however late it comes, its sender sent it small
                }
                self.unusual.known().map_or(0, |shown| {
                    shown.filled = Some((end, segment.packet));
                    shown.holes.fill(start, end)
                })
            }
            SegmentClass::Retransmission { .. } => {
                let first = self.sent_before(start);
                let first = self.keep_front(first, start);
                self.note_front(first, end, mss);
                for n in first..self.sent.len() {
                    let Some(sent) = self.sent.get_mut(n) else { break };
                    if sent.end.after(end) {
                        self.cut_sent(n, end, segment.at);
                        break;
                    }
                    sent.retransmitted = true;
                    sent.at = segment.at;
                }
                0
            }
            SegmentClass::Duplicate | SegmentClass::Probe => 0,
        }
    }

    /// What it says about its sender's pace, about the rate at which bytes arrive, and about the link's load
    /// from now on.
    fn learn_from_data(
        &mut self,
        segment: &Segment,
        class: SegmentClass,
        new_bytes: u32,
        mss: u32,
        path_rtt: Duration,
    ) {
        let stamps = segment.options.timestamps;
        self.learn_pace(segment.at, stamps, class);
        let behind =
            self.arrivals.last().is_some_and(|last| self.was_behind(stamps, segment.at - last, path_rtt));
        if !self.on_one_host {
            self.arrivals.on_bytes(segment.at, self.on_wire(new_bytes, 1, mss), mss, behind);
        }
        let again = matches!(class, SegmentClass::Retransmission { .. });
        let next_again = again && self.highest_ack == Some(segment.seq);
        self.large.on_segment(segment.payload_len, mss, next_again);
        if again {
            self.resend(segment.payload_len);
        }
        if let Some(rate) = self.acknowledgements.best() {
            let bytes = self.on_wire(segment.payload_len, 1, mss);
            let again = again && !self.sack_pending;
            self.unusual.shown().link.on_sent(segment.at, bytes, again, rate);
        }
    }

    /// Keeps it as the last segment with data, with which the next one is compared.
    fn keep_last(&mut self, segment: &Segment, class: SegmentClass, small: bool) {
        self.view.unanswered_since = Maybe::NONE;
        self.learn_beat(segment.at, class);
        self.last_data = Some(LastData {
            at: segment.at,
            packet: segment.packet,
            queue: self.queue_left(segment, class, small),
            len: segment.payload_len,
            flight: self.outstanding(),
            flight_segments: self.sent.len() as u16,
            stamp: segment.options.timestamps.map(|stamps| stamps.val),
            snd_una: self.view.snd_una,
            unheard: self.last_data.map_or(0, |last| last.unheard_with(self.view.snd_una)) + 1,
            spacing: self.last_data.map_or(Duration::ZERO, |before| segment.at - before.at),
        });
        self.missed_since_data = 0;
        self.pushed_run =
            if segment.flags.psh() { 0 } else { self.pushed_run.saturating_add(segment.payload_len) };
    }

    /// What this end announces, and where its bytes begin.
    pub(crate) fn on_syn(&mut self, syn: &Segment) {
        // RFC 9293, 3.7.1: the default without the option.
        self.mss_announced = syn.options.mss.or((!syn.options.cut).then_some(536));
        self.window_scale = syn.options.window_scale;
        (self.options_cut, self.unstamped) = (syn.options.cut, false);
        self.timestamps = syn.options.timestamps.is_some();
        self.first = Some(syn.seq + 1);
        // Linux gives a SYN-ACK the IP ID 0 and begins to count after it (ip_build_and_send_pkt,
        // net/ipv4/ip_output.c).
        if syn.flags.ack() && syn.ip_id.is_some_and(|id| id != 0) {
            self.ip_id.on_numbered_syn_ack();
        }
        self.on_control(syn);
    }

    /// A SYN or FIN takes one number of the sequence space and is acknowledged like data.
    #[inline]
    pub(crate) fn on_control(&mut self, segment: &Segment) {
        let end = segment.seq_end();
        if segment.flags.fin() {
            self.fin = Some(end);
        }
        let new = self.snd_nxt.is_none_or(|nxt| end.after(nxt));
        if new {
            self.snd_nxt = Some(end);
            if segment.payload_len == 0 {
                self.remember(end, segment.at, false);
            }
        } else {
            let place = self.sent.partition_point(|sent| sent.end.before(end));
            if let Some(sent) = self.sent.get_mut(place).filter(|sent| sent.end == end) {
                sent.retransmitted = true;
                sent.at = segment.at;
            }
        }
    }

    /// How many unacknowledged segments end at or before this byte: they are in the order of their ends.
    pub(super) fn sent_before(&self, seq: Seq) -> usize {
        self.sent.partition_point(|sent| sent.end.at_or_before(seq))
    }

    /// The first bytes of the n-th unacknowledged segment did not pass again with those from `start` on, as a probe may begin
    /// within a segment: they are a segment by themselves. Returns the place of the rest.
    #[cold]
    #[inline(never)]
    fn keep_front(&mut self, n: usize, start: Seq) -> usize {
        let before = n.checked_sub(1).and_then(|n| self.sent.get(n)).map(|before| before.end);
        let begins = before.or(self.highest_ack);
        let sent = self.sent.get(n).copied().filter(|_| begins.is_some_and(|begins| start.after(begins)));
        let Some(sent) = sent.filter(|_| self.sent.len() < REMEMBERED_MAX) else { return n };
        self.sent.insert(n, Sent { end: start, ..sent });
        n + 1
    }

    /// Notes the packet, from the n-th unacknowledged segment on, of which only the first bytes are retransmitted, up to `end`.
    #[cold]
    #[inline(never)]
    fn note_front(&mut self, n: usize, end: Seq, mss: u32) {
        let cut = (n..self.sent.len()).find(|&n| self.sent.get(n).is_some_and(|sent| !sent.end.before(end)));
        let begins = cut.map(|n| n.checked_sub(1).and_then(|n| self.sent.get(n)).map(|before| before.end));
        let whole =
            cut.and_then(|n| self.sent.get(n)).filter(|sent| sent.end.after(end) && !sent.retransmitted);
        let bytes = begins.and_then(|begins| Some([begins.or(self.highest_ack)?, whole?.end]));
        let one = bytes.filter(|[begins, ends]| end.after(*begins) && *ends - *begins <= mss as i32);
        if one.is_some() || self.unusual.front_again.is_some() {
            self.unusual.shown().front_again = one;
        }
    }

    /// Whether the last acknowledgement ends a packet, and covers none before it, of which only the first bytes had passed again: the
    /// packet itself had arrived.
    pub(crate) fn is_front_spare(&self) -> bool {
        let of = |[begins, ends]: [Seq; 2]| {
            self.highest_ack == Some(ends) && (ends - begins) as u32 >= self.newly_acked
        };
        self.newly_acked > 0 && self.unusual.front_again.is_some_and(of)
    }

    /// The first bytes of the n-th unacknowledged segment passed again, in a shorter segment than at first
    /// (RFC 1191; a super-segment's first part): what acknowledges only these answers the second one.
    #[cold]
    fn cut_sent(&mut self, n: usize, end: Seq, at: Instant) {
        let again = n.checked_sub(1).and_then(|n| self.sent.get(n)).is_some_and(|before| before.end == end);
        let seen_again = self.sent.get(n).is_none_or(|sent| at - sent.at < SENT_AGAIN_MIN);
        if !again && !seen_again && self.sent.len() < REMEMBERED_MAX {
            self.sent.insert(n, Sent { end, at, retransmitted: true });
        }
    }

    pub(super) fn remember(&mut self, end: Seq, at: Instant, retransmitted: bool) {
        if self.sent.len() >= REMEMBERED_MAX {
            self.sent.pop_front();
        }
        self.sent.push_back(Sent { end, at, retransmitted });
    }
}
