//! What has one end sent, and what did it know when it sent it?
//!
//! A capture shows an acknowledgement when it passes, not when it reaches the sender. `Flow` keeps acknowledgements in
//! transit until the time that they need from the capture to the sender and back has gone by, so that every rule about
//! a sender ("was it blocked until then?") is asked of what that sender knew, from whichever end the capture was taken.

mod link;
mod pace;
mod seen_again;
mod unseen;
mod usual;
mod windows;

use tcpwhy_wire::{Duration, Instant, Segment, Seq};

use crate::estimate::beat::Cadence;
use crate::estimate::bottleneck::{Acked, Link};
use crate::estimate::ip_id::IpIdCounter;
use crate::estimate::large::LargeSegments;
use crate::estimate::mss::FullSize;
use crate::estimate::rate::RateEstimator;
use crate::estimate::rto::RtoEstimator;
use crate::estimate::short_deque::ShortDeque;
use crate::estimate::stamp_clock::StampClock;
use crate::estimate::stamp_pacing::Pace;
use crate::estimate::window_scale::ScaleBounds;
use crate::flow::holes::Holes;
use crate::flow::passing::{AckSeen, Sent};
use crate::flow::segment_class::{LastData, SegmentClass};
use crate::flow::view::{ClockingAck, View};
use crate::words::cause::Side;
use crate::words::limits::HOST_VARIATION;

/// Segments and acknowledgements remembered at most per direction; beyond it the oldest are merged or forgotten.
const REMEMBERED_MAX: usize = 2048;
/// Acknowledgements of the same bytes that are looked at.
const ALL_ACKED_MAX: usize = 64;
const HOLE_BYTES_MAX: i32 = 1 << 30; // a jump further than any window is none
pub(crate) const TIMESTAMP_OPTION_LEN: u32 = 12;

/// One direction of a connection.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each says something of its own")]
pub(crate) struct Flow {
    pub side: Side,
    /// First payload byte, for offsets.
    pub first: Option<Seq>,
    pub snd_nxt: Option<Seq>, // after the highest byte seen
    /// Highest acknowledgement of this direction's data that passed the capture.
    pub highest_ack: Option<Seq>,
    pub bytes: u64, // of payload, each once
    pub mss_announced: Option<u16>,
    pub window_scale: Option<u8>,
    pub options_cut: bool,
    pub timestamps: bool,
    /// Bytes of the other options that full segments have (SACK, RFC 6824's DSS, RFC 2385's digest, AccECN), the most.
    pub other_options: u8,
    pub fin: Option<Seq>,
    /// End of the last segment whose last packet was below the MSS (`snd_sml`, net/ipv4/tcp_output.c).
    pub snd_sml: Option<Seq>,
    pub last_data: Option<LastData>,
    pub view: View,
    pub rto: RtoEstimator,
    pub sent: ShortDeque<Sent>,
    in_transit: ShortDeque<AckSeen>,
    holes: Holes,
    /// Where no handshake says how large segments are, and by how much the peer's windows are scaled.
    full_size: FullSize,
    pub scale_bounds: ScaleBounds,
    pub window_max: u32,
    pub window_first: Option<u32>,
    pub window_grew_at: Instant,
    /// The peer offered no window scaling, so that its window ends at 65,535 bytes.
    pub peer_unscaled: bool,
    pub clock: StampClock,
    /// The last acknowledgement reported bytes behind a hole by SACK.
    pub sack_pending: bool,
    /// When the last SACK or duplicate acknowledgement passed.
    pub sack_or_dupack_at: Instant,
    /// How much longer than the fastest recent one the present packet was on its way here; nothing on one host, where there is none.
    pub queued_on_way: Option<Duration>,
    /// The longest that any packet so far was on its way here above the fastest one.
    pub queued_peak: Duration,
    /// How often the peer acknowledged this direction's data with data of its own, and with a bare acknowledgement.
    acked_with_data: u32,
    pub acked_bare: u32,
    /// The longest that it held back an acknowledgement of a single segment: how long its timer runs at least.
    peer_timer: Duration,
    /// Bytes since the last segment with PSH.
    pushed_run: u32,
    pub large: LargeSegments,
    pub newly_acked: u32, // bytes that the last acknowledgement was the first to cover
    pub arrivals: RateEstimator,
    pub pace: Pace,
    pub cadence: Cadence,
    pub acknowledgements: RateEstimator,
    pub newest_acked_at: Option<Instant>, // when the newest bytes that were acknowledged had left
    pub link: Link,                       // what is at the bottleneck behind the capture
    /// Its peer's application is behind until this byte is acknowledged: acknowledgements come as it reads.
    unread_until: Option<Seq>,
    /// Times of what was sent before this byte are not to be measured with: the capture's clock stepped.
    untimed_until: Option<Seq>,
    /// Bytes that its peer acknowledged are missing from the capture.
    pub missing_from_capture: bool,
    ip_id: IpIdCounter,
    /// Packets of this direction that the capture did not see since the last data segment, by IP identification.
    pub missed_since_data: u16,
    /// It has sent a packet without data behind the handshake.
    pub sent_bare: bool,
    /// The last such packet whose sequence number shows that all that its sender had sent by then has passed the capture.
    pub nothing_out_at: Instant,
    /// When its peer last acknowledged bytes of a hole.
    pub unseen_acked_at: Instant,
    /// No shortcuts are taken, see `Options`.
    pub plain: bool,
    /// Both ends have the same address: there is no link in between, and what comes late was not read sooner.
    pub on_one_host: bool,
}

impl Flow {
    pub(crate) fn new(side: Side) -> Self {
        Self {
            side,
            first: None,
            snd_nxt: None,
            highest_ack: None,
            bytes: 0,
            mss_announced: None,
            window_scale: None,
            options_cut: false,
            other_options: 0,
            timestamps: false,
            fin: None,
            snd_sml: None,
            last_data: None,
            view: View::default(),
            rto: RtoEstimator::default(),
            sent: ShortDeque::default(),
            in_transit: ShortDeque::default(),
            holes: Holes::default(),
            full_size: FullSize::default(),
            scale_bounds: ScaleBounds::default(),
            window_max: 0,
            window_first: None,
            window_grew_at: Instant::MIN,
            peer_unscaled: false,
            clock: StampClock::default(),
            sack_pending: false,
            sack_or_dupack_at: Instant::MIN,
            queued_on_way: None,
            queued_peak: Duration::ZERO,
            acked_with_data: 0,
            acked_bare: 0,
            peer_timer: Duration::ZERO,
            pushed_run: 0,
            large: LargeSegments::default(),
            newly_acked: 0,
            arrivals: RateEstimator::blurred(),
            pace: Pace::default(),
            cadence: Cadence::default(),
            acknowledgements: RateEstimator::default(),
            newest_acked_at: None,
            link: Link::default(),
            unread_until: None,
            untimed_until: None,
            missing_from_capture: false,
            ip_id: IpIdCounter::default(),
            missed_since_data: 0,
            sent_bare: false,
            nothing_out_at: Instant::MIN,
            unseen_acked_at: Instant::MIN,
            plain: false,
            on_one_host: false,
        }
    }

    /// The largest payload of one packet, given what the peer announced.
    pub(crate) fn mss(&self, peer_announced: Option<u16>) -> u32 {
        // Where the snap length ends before them, nearly all hosts have them all the same.
        let stamps = if self.timestamps || self.options_cut { TIMESTAMP_OPTION_LEN } else { 0 };
        let options = stamps + u32::from(self.other_options);
        match (self.mss_announced, peer_announced) {
            (Some(own), Some(peer)) => u32::from(own.min(peer)).saturating_sub(options).max(1),
            _ => self.full_size.mss(options),
        }
    }

    /// Whether a segment of `len` bytes is as large as they get. Without the handshake, a whole number of what seems to
    /// be the MSS.
    pub(crate) fn is_full(&self, len: u32, mss: u32) -> bool {
        len >= mss && (self.mss_announced.is_some() || len.is_multiple_of(mss))
    }

    /// Bytes that it takes besides its own, a few words apart.
    pub(crate) fn heap(&self) -> usize {
        self.sent.heap() + self.in_transit.heap() + self.holes.heap()
    }

    /// Gives these bytes up.
    pub(crate) fn free(&mut self) {
        self.sent.free();
        self.in_transit.free();
        if self.holes.heap() > 0 {
            self.holes = Holes::default();
        }
    }

    /// Bytes on their way as the sender knew it.
    pub(crate) fn flight(&self) -> u32 {
        match (self.snd_nxt, self.view.snd_una) {
            (Some(nxt), Some(snd_una)) => (nxt - snd_una).max(0) as u32,
            _ => 0,
        }
    }

    /// Bytes that passed the capture and were not acknowledged there.
    pub(crate) fn outstanding(&self) -> u32 {
        match (self.snd_nxt, self.highest_ack) {
            (Some(nxt), Some(acked)) => (nxt - acked).max(0) as u32,
            (Some(nxt), None) => self.first.map_or(0, |first| (nxt - first).max(0) as u32),
            _ => 0,
        }
    }

    /// Whether the peer is in the habit of acknowledging with its next data, so that a packet of its that is missing
    /// was hardly a bare acknowledgement.
    pub(crate) fn is_acked_with_data(&self) -> bool {
        self.acked_with_data > self.acked_bare
    }

    /// Whether the peer mostly acknowledges before it has data of its own, so that a packet of its that is missing may
    /// have been that.
    pub(crate) fn is_acked_bare(&self) -> bool {
        self.acked_bare > self.acked_with_data
    }

    /// When an acknowledgement of all that was sent passed the capture since then that is still on its way to the sender. What
    /// leaves before that can have arrived has hardly anything to do with it, unless the sender is nearer than it seems.
    pub(crate) fn acked_in_transit(&self, since: Instant) -> Option<Instant> {
        let all =
            |ack: &&AckSeen| ack.at >= since && self.snd_nxt.is_some_and(|nxt| ack.ack.at_or_after(nxt));
        // Acknowledgements come in their order: those of all that was sent are the last ones.
        let latest =
            (0..self.in_transit.len()).rev().take(ALL_ACKED_MAX).map_while(|n| self.in_transit.get(n));
        latest.take_while(all).last().map(|ack| ack.at)
    }

    /// Whether the sender numbers this connection's packets by themselves, and the capture has hardly missed one.
    pub(crate) fn numbers_its_packets(&self) -> bool {
        self.ip_id.is_proven()
    }

    /// Whether a packet may be missing before the last one, early in a connection.
    pub(crate) fn suspects_missing(&self) -> bool {
        self.ip_id.suspects()
    }

    /// Every packet of this direction, data or not. Returns how many before it are missing from the capture.
    pub(crate) fn on_packet(&mut self, segment: &Segment, mss: u32) -> u16 {
        let one = segment.payload_len <= mss; // as nearly always, and is not divided then
        let packets = if one { 1 } else { segment.payload_len.div_ceil(mss.max(1)) as u16 };
        self.ip_id.on_ttl(segment.ttl);
        let missed = segment.ip_id.map_or(0, |id| self.ip_id.on_packet(id, packets));
        self.missed_since_data = self.missed_since_data.saturating_add(missed);
        self.queued_on_way = None;
        if let Some(stamps) = segment.options.timestamps {
            self.timestamps = true;
            let overtook = self.snd_nxt.is_some_and(|nxt| segment.seq.after(nxt));
            let late = self.clock.on_packet(segment.at, stamps.val, overtook);
            self.queued_on_way = late.filter(|_| !self.on_one_host);
            self.learn_peak(segment.at);
        }
        missed
    }

    /// The capture's clock stepped back: no interval from before the step to behind it can be measured.
    pub(crate) fn on_clock_step(&mut self) {
        self.untimed_until = self.snd_nxt;
        self.clock.interrupt();
        self.arrivals.interrupt();
        self.acknowledgements.interrupt();
    }

    /// Lets every acknowledgement take effect that the sender can have had when a segment of its passed at `now`.
    /// `rtt_to_sender` is the round trip between the capture and the sender.
    pub(crate) fn learn(&mut self, now: Instant, rtt_to_sender: Duration, mss: u32) {
        if self.in_transit.is_empty() {
            return;
        }
        // An estimate of the round trip may be slightly too long; an acknowledgement is not missed for that.
        let early = (rtt_to_sender - rtt_to_sender.divided_by(16) - HOST_VARIATION).at_least_zero();
        while let Some(ack) = self.in_transit.pop_front_if(|ack| ack.at + early <= now) {
            self.take_effect(&ack, rtt_to_sender, mss);
        }
    }

    fn take_effect(&mut self, ack: &AckSeen, rtt_to_sender: Duration, mss: u32) {
        // Where the capture starts later than the connection, what it saw first was not acknowledged before.
        let snd_una_before = self.view.snd_una.or(self.first).unwrap_or(ack.ack);
        let flight = self.flight();
        let view = &mut self.view;
        let clocking = ClockingAck {
            earliest_departure: ack.at + rtt_to_sender,
            packet: ack.packet,
            rtt: ack.rtt,
            repaired: ack.repaired,
            flight,
            window: view.window,
            window_peak: view.window_peak,
            left: self.snd_nxt.map_or(0, |nxt| (nxt - ack.ack).max(0) as u32),
            room: view.right_edge.zip(self.snd_nxt).map_or(i32::MAX, |(right_edge, nxt)| right_edge - nxt),
        };
        if view.right_edge.is_some_and(|right_edge| ack.right_edge.after(right_edge)) {
            view.open_window(&clocking, self.last_data.as_ref(), mss);
        }
        view.reach(ack.right_edge);
        (view.window, view.unscaled) = (ack.window, ack.unscaled);
        view.window_peak = view.window_peak.max(ack.window);
        if ack.signals_loss {
            view.loss_signal = Some(ack.at + rtt_to_sender);
        }
        if view.snd_una.is_none() || ack.ack.after(snd_una_before) {
            view.snd_una = Some(ack.ack);
            let small_acked =
                self.snd_sml.is_some_and(|small| small.after(snd_una_before) && small.at_or_before(ack.ack));
            let all_acked = self.snd_nxt.is_some_and(|nxt| ack.ack.at_or_after(nxt));
            view.advance(clocking, small_acked, all_acked);
        }
    }

    /// The peer, `rtt_to_receiver` away as far as that is known, acknowledged data of this direction. Returns the round trip that
    /// it shows between the capture and the peer, where it shows one.
    pub(crate) fn on_ack(
        &mut self,
        ack: &Segment,
        window: u32,
        mss: u32,
        rtt_to_receiver: Duration,
    ) -> Option<Duration> {
        let advanced = self.highest_ack.is_none_or(|acked| ack.ack.after(acked));
        let (mut rtt, mut repaired) = (None, false);
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
        // What was behind a hole had arrived before, and is acknowledged when the hole is filled.
        let beyond = ack.options.sack().iter().any(|block| block.end.after(ack.ack));
        let filled = std::mem::replace(&mut self.sack_pending, beyond) || beyond;
        if advanced {
            let acked = self.highest_ack.map_or(0, |before| (ack.ack - before).max(0) as u32);
            self.newly_acked = acked;
            self.large.on_acknowledged(acked, mss);
            self.link.on_advance(acked, beyond);
            self.highest_ack = Some(ack.ack);
            if self.holes.first().is_some_and(|first| ack.ack.after(first)) {
                self.unseen_acked_at = ack.at;
            }
            let oldest = self.sent.front().map(|sent| sent.at);
            let (mut popped, mut newest_at, mut segments) = (None, None, 0);
            while let Some(sent) = self.sent.front() {
                if sent.end.after(ack.ack) {
                    break;
                }
                let timed = !filled && self.untimed_until.is_none_or(|until| sent.end.after(until));
                rtt = timed.then(|| (ack.at - sent.at).at_least_zero());
                repaired = sent.retransmitted;
                popped = Some(sent.end);
                newest_at = Some(sent.at);
                segments += 1;
                self.sent.pop_front();
            }
            // The first packets of a super-segment that the sender's interface is to split; not what left before the
            // capture began.
            let into = |split: &&Sent| match popped {
                Some(end) => ack.ack.after(end) && ack.ack.before(split.end),
                None => acked >= mss && self.first.is_some_and(|first| ack.ack.after(first)),
            };
            if let Some(split) = self.sent.front().filter(into) {
                let timed = !filled && self.untimed_until.is_none_or(|until| split.end.after(until));
                rtt = timed.then(|| (ack.at - split.at).at_least_zero());
                repaired = split.retransmitted;
                newest_at = Some(split.at);
            }
            self.untimed_until = self.untimed_until.filter(|until| until.after(ack.ack));
            self.missing_from_capture |= self.holes.on_ack(ack.ack);
            let count = if ack.payload_len > 0 { &mut self.acked_with_data } else { &mut self.acked_bare };
            *count = count.saturating_add(1);
            // One that comes with an answer may have waited for that.
            let bare = !filled && ack.payload_len == 0;
            if bare && acked <= mss && !repaired && !ack.flags.syn() {
                self.learn_timer(rtt, rtt_to_receiver);
            }
            let windows = bare.then_some([last_window, window]);
            self.learn_unread(windows);
            self.learn_link(
                Acked { at: ack.at, bytes: acked, segments, oldest, newest_at, rtt, windows },
                mss,
                rtt_to_receiver,
            );
        }
        let duplicate = !advanced && !window_changed && ack.payload_len == 0 && !self.sent.is_empty();
        if !ack.flags.syn() {
            self.window_first.get_or_insert(window);
            if u64::from(window) * 20 > u64::from(self.window_max) * 21 {
                self.window_grew_at = ack.at;
            }
            self.window_max = self.window_max.max(window);
        }
        if !advanced && !window_changed && !sacked && !duplicate {
            return None;
        }
        if sacked || duplicate {
            self.acknowledgements.interrupt(); // what it will jump by later did not arrive at once
            self.sack_or_dupack_at = ack.at;
            let sacked = self.passed_or_lost(ack);
            self.on_passed(ack.at - rtt_to_receiver, 0, None, None, sacked, mss);
        }
        if self.in_transit.len() >= REMEMBERED_MAX {
            self.in_transit.pop_back();
        }
        self.in_transit.push_back(AckSeen {
            at: ack.at,
            packet: ack.packet,
            ack: ack.ack,
            right_edge: ack.ack + window,
            window,
            rtt,
            repaired,
            signals_loss: sacked || duplicate,
            unscaled: ack.flags.syn(),
        });
        rtt.filter(|_| !repaired)
    }

    /// What a data segment is in the sequence space of its direction.
    pub(crate) fn classify(&self, segment: &Segment) -> SegmentClass {
        let (Some(nxt), end) = (self.snd_nxt, segment.seq + segment.payload_len) else {
            // The first packet that the capture has: data leaves with PSH where one byte is all that there is.
            let probe = segment.payload_len == 1 && !segment.flags.psh();
            return if probe { SegmentClass::Probe } else { SegmentClass::New };
        };
        if end.after(nxt) {
            // A byte beyond a closed window asks whether it is still closed. Who takes it acknowledges it, and the data
            // behind it begins one later; who does not gets it again with the data.
            let closed = self.room_left().is_some_and(|room| room <= 0);
            return if closed && segment.payload_len == 1 && segment.seq == nxt {
                SegmentClass::Probe
            } else {
                SegmentClass::New
            };
        }
        if let Some(noticed_at) = self.holes.noticed_at(segment.seq, end) {
            return SegmentClass::OutOfOrderOrRepair { noticed_at };
        }
        if self.highest_ack.is_some_and(|acked| end.at_or_before(acked)) {
            let probe =
                segment.payload_len <= 1 && self.highest_ack.is_some_and(|acked| segment.seq + 1 == acked);
            return if probe { SegmentClass::Probe } else { SegmentClass::Duplicate };
        }
        // Nobody has acknowledged anything yet where the capture starts in the middle.
        if segment.payload_len == 1 && end == nxt && !segment.flags.psh() && self.highest_ack.is_none() {
            return SegmentClass::Probe;
        }
        let original = self.sent.get(self.sent_before(segment.seq));
        SegmentClass::Retransmission { original_at: original.map_or(segment.at, |sent| sent.at) }
    }

    /// The byte behind all that an application can have been given.
    pub(crate) fn delivered(&self) -> Option<Seq> {
        self.holes.first().or(self.snd_nxt)
    }

    /// Takes a data segment into the state. Returns how many of its bytes were new.
    pub(crate) fn on_data(
        &mut self,
        segment: &Segment,
        class: SegmentClass,
        mss: u32,
        path_rtt: Duration,
    ) -> u32 {
        let (start, end) = (segment.seq, segment.seq + segment.payload_len);
        self.first.get_or_insert(start);
        if self.mss_announced.is_none() && !segment.flags.psh() && !segment.flags.fin() {
            self.full_size.on_unpushed(segment.payload_len);
        }
        let small = match segment.payload_len {
            len if len <= mss => len > 0 && len < mss, // not divided
            len => !len.is_multiple_of(mss.max(1)),
        };
        if self.snd_nxt.is_some() && self.snd_nxt == self.view.snd_una {
            self.arrivals.interrupt(); // the sender had waited for the last acknowledgement
        }
        let new_bytes = match class {
            SegmentClass::New => {
                let nxt = self.snd_nxt.unwrap_or(start);
                if start.after(nxt) {
                    self.holes.notice(nxt, start, segment);
                }
                self.snd_nxt = Some(end);
                if small {
                    self.snd_sml = Some(end);
                }
                self.remember(Sent { end, at: segment.at, retransmitted: start.before(nxt) });
                (end - start.latest(nxt)).max(0) as u32
            }
            SegmentClass::OutOfOrderOrRepair { .. } => self.holes.fill(start, end),
            SegmentClass::Retransmission { .. } => {
                let first = self.sent_before(start);
                for n in first..self.sent.len() {
                    let Some(sent) = self.sent.get_mut(n).filter(|sent| sent.end.at_or_before(end)) else {
                        break;
                    };
                    sent.retransmitted = true;
                    sent.at = segment.at;
                }
                0
            }
            SegmentClass::Duplicate | SegmentClass::Probe => 0,
        };
        self.bytes += u64::from(new_bytes);
        let stamps = segment.options.timestamps;
        self.learn_pace(segment.at, stamps, class);
        let behind =
            self.arrivals.last().is_some_and(|last| self.was_behind(stamps, segment.at - last, path_rtt));
        if !self.on_one_host {
            self.arrivals.on_bytes(segment.at, self.on_wire(new_bytes, 1, mss), mss, behind);
        }
        let again = matches!(class, SegmentClass::Retransmission { .. });
        self.large.on_segment(segment.payload_len, mss, again && self.highest_ack == Some(start));
        if again {
            self.resend(segment.payload_len);
        }
        if let Some(rate) = self.acknowledgements.best() {
            let bytes = self.on_wire(segment.payload_len, 1, mss);
            self.link.on_sent(segment.at, bytes, again && !self.sack_pending, rate);
        }
        if !matches!(class, SegmentClass::Duplicate | SegmentClass::Probe) {
            self.view.unanswered_since = None;
            self.learn_beat(segment.at, class);
            self.last_data = Some(LastData {
                at: segment.at,
                packet: segment.packet,
                queue: self.queue_left(segment, class, small),
                len: segment.payload_len,
                flight: self.outstanding(),
                flight_segments: self.sent.len() as u32,
                stamp: segment.options.timestamps.map(|stamps| stamps.val),
                snd_una: self.view.snd_una,
                unheard: self.last_data.map_or(0, |last| last.unheard_with(self.view.snd_una)) + 1,
                spacing: self.last_data.map_or(Duration::ZERO, |before| segment.at - before.at),
            });
            self.missed_since_data = 0;
            self.pushed_run =
                if segment.flags.psh() { 0 } else { self.pushed_run.saturating_add(segment.payload_len) };
        }
        new_bytes
    }

    /// A SYN or FIN takes one number of the sequence space and is acknowledged like data.
    pub(crate) fn on_control(&mut self, segment: &Segment) {
        let end = segment.seq_end();
        if segment.flags.fin() {
            self.fin = Some(end);
        }
        let new = self.snd_nxt.is_none_or(|nxt| end.after(nxt));
        if new {
            self.snd_nxt = Some(end);
            if segment.payload_len == 0 {
                self.remember(Sent { end, at: segment.at, retransmitted: false });
            }
        } else {
            let place = self.sent.partition_point(|sent| sent.end.before(end));
            if let Some(sent) = self.sent.get_mut(place).filter(|sent| sent.end == end) {
                sent.retransmitted = true;
                sent.at = segment.at;
            }
        }
    }

    /// How many of the segments that are not acknowledged end at this byte or before it: they are in the order of their ends.
    fn sent_before(&self, seq: Seq) -> usize {
        self.sent.partition_point(|sent| sent.end.at_or_before(seq))
    }

    fn remember(&mut self, sent: Sent) {
        if self.sent.len() >= REMEMBERED_MAX {
            self.sent.pop_front();
        }
        self.sent.push_back(sent);
    }
}
