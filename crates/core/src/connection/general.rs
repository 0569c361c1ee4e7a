//! What does a segment change, and in which order?
//!
//! The general path takes the segments that [`usual`](super::usual) does not, either from the first
//! step or from their data on. Each step says why it comes before the next one.

use tcpwhy_wire::{Duration, Segment};

use super::Connection;
use super::turn::{Follows, Silence};
use crate::bill::revise::Revision;
use crate::bill::split::Split;
use crate::estimate::maybe::Maybe;
use crate::estimate::rounds;
use crate::estimate::tsecr_rtt::EchoProbe;
use crate::flow::direction::Flow;
use crate::flow::ends::{CLIENT, SERVER, side};
use crate::flow::segment_class::SegmentClass;
use crate::rules::nagle;
use crate::rules::repair;
use crate::rules::verdict::Verdict;
use crate::tally::ledger::Ledger;
use crate::words::cause::Cause;
use crate::words::limits::{BURST_GAP, HOST_VARIATION, RTO_MIN};
use crate::words::mark::Mark;
use crate::words::report::Trigger;

/// The resolution of coarse captures, in milliseconds; with a finer clock, one time stamp in a thousand
/// looks like that.
const COARSE_NS: i64 = 1_000_000;

impl Connection {
    /// Takes a segment, step by step. Returns whether packets before it are missing from the capture.
    pub(super) fn on_general(
        &mut self,
        segment: &Segment,
        marks: &[Mark],
        from: usize,
        ledger: &mut Ledger,
    ) -> bool {
        let from = from & 1; // so that the compiler sees that there are two of everything
        // First, packets missing before it: the direction must not have changed yet.
        let not_captured = segment.payload_len > 0 && self.flows[from].not_captured(segment);
        // Then its time: everything below measures from `now`.
        self.keep_time(segment, from);
        let held_back;
        let segment = if segment.at == self.now {
            segment
        } else {
            held_back = Segment { at: self.now, ..*segment };
            &held_back
        };
        // Its sender's distance, before anything from that sender is judged by it.
        if segment.payload_len <= 1 && segment.options.timestamps.is_none() {
            self.weigh_keep_alive(segment, from);
        }
        self.learn_distance(segment, from);
        // The size of full segments, before any is counted.
        self.learn_options(segment, from);
        // Whether it is this connection's at all, before it changes a direction.
        if self.is_foreign(segment, from) {
            self.rung(segment, from, Trigger::Control, None, ledger);
            return not_captured;
        }
        // Whether somebody has made it of another one: then what passed between such packets was no time of theirs.
        if segment.payload_len > 0 && self.flows[from].is_rewritten(segment, self.mss(from)) {
            self.be_unsteady();
        }
        // Its time stamp and IP identification show of any packet what was late or is missing before it.
        self.on_any_packet(segment, from);
        // A reset ends everything under way: nothing else that it carries counts.
        if segment.flags.rst() {
            self.on_rst(segment, from, ledger);
            return not_captured;
        }
        // A SYN opens its direction before data can have a place there.
        let bare = self.take_syn(segment, from, ledger);
        let segment = bare.as_ref().unwrap_or(segment);
        // Its ACK before its data: its sender had received what it acknowledges when it wrote.
        if segment.flags.ack() {
            if self.held_back.is_some() {
                self.weigh_kept(segment, from, ledger);
            }
            self.on_ack(segment, from);
            if self.is_concurrent() {
                self.close_answered(segment, from, ledger);
            }
        }
        // The marks of its messages before its bytes, since they decide which message the bytes belong
        // to.
        if segment.payload_len > 0 {
            self.take_marks(marks, segment, from, ledger);
            self.on_data(segment, from, ledger);
        } else {
            self.on_pure(segment, from);
            self.rung(segment, from, Trigger::Control, None, ledger);
        }
        // Its FIN last, after the data that comes with it.
        if segment.flags.fin() {
            self.flows[from].on_control(segment);
            self.on_close(segment.at, from, ledger);
        }
        not_captured
    }

    fn is_foreign(&mut self, segment: &Segment, from: usize) -> bool {
        self.is_stray(segment, from)
            || self.is_unacceptable(segment, from)
            || segment.flags.rst() && self.ignores_reset(segment, from)
    }

    /// It has no data.
    fn on_pure(&mut self, segment: &Segment, from: usize) {
        if segment.flags.syn() {
            return;
        }
        self.flows[from].on_pure(segment);
        if self.flows[from].nothing_out_at == segment.at {
            self.models[from].copies_due = 0; // nor is any of a tail whose first transmissions were lost
        }
    }

    /// Time does not run backwards within a connection, whatever the capture's clock did: it stands
    /// still until the clock has caught up.
    #[inline]
    fn keep_time(&mut self, segment: &Segment, from: usize) {
        let mut at = segment.at + self.set_back;
        if self.now - at.min(self.last_at) > HOST_VARIATION {
            at = self.weigh_step(at, segment, from);
            self.flows.iter_mut().for_each(Flow::on_clock_step);
            self.echoes.iter_mut().for_each(EchoProbe::interrupt);
            self.count_step(at);
        }
        if !self.fine {
            self.fine = segment.at.as_nanos() % COARSE_NS != 0;
            if !self.fine || self.gaps.1 > 0 {
                self.learn_grain(at);
            }
        }
        self.last_at = at;
        self.now = self.now.max(at);
    }

    /// Learns how much room options take in each segment.
    #[inline]
    fn learn_options(&mut self, segment: &Segment, from: usize) {
        if segment.options.beside_stamps > self.flows[from].other_options {
            self.on_other_options(segment, from);
        }
        if self.flows[from].options_cut && !segment.options.cut {
            self.on_whole_options(segment, from);
        }
    }

    /// Counts the packet, and learns its sender's distance from its time stamp echo or from its
    /// reaction.
    #[inline]
    fn learn_distance(&mut self, segment: &Segment, from: usize) {
        self.packets += 1;
        self.packet_range[1] = segment.packet;
        match segment.options.timestamps {
            Some(stamps) => self.learn_from_echo(stamps, from, segment.flags.ack()),
            None => self.learn_from_reaction(segment, from),
        }
        if self.last_packet[from].is_none() {
            self.ttl[from] = segment.ttl;
        } else if segment.ttl != self.ttl[from] {
            self.on_other_hops(segment, from);
        }
        self.last_packet[from] = Maybe::of(self.now);
    }

    /// Learns what any packet, with data or without, shows of its direction.
    #[inline]
    fn on_any_packet(&mut self, segment: &Segment, from: usize) {
        let mss = self.mss(from);
        let stamped = self.flows[from].timestamps;
        let missed = self.flows[from].on_packet(segment, mss);
        self.weigh_jump(from);
        self.on_missed(missed, from);
        // The end with more to send is the one that fills a queue.
        if segment.payload_len >= mss
            && let Some(queued) = self.flows[from].queue_shown()
        {
            self.path_memory.on_queued(from, self.now, queued);
        }
        // A SYN says more about them (`on_syn`).
        if stamped != self.flows[from].timestamps && !segment.flags.syn() {
            self.learn_sizes();
        }
    }

    fn on_rst(&mut self, segment: &Segment, from: usize, ledger: &mut Ledger) {
        self.rung(segment, from, Trigger::Control, None, ledger);
        self.on_reset(from);
        self.on_close(segment.at, from, ledger);
        if from == SERVER {
            self.close_setup(Some((segment.at, segment.packet)), ledger);
        }
        self.close(None, ledger);
        self.closed = true;
    }

    /// Takes a SYN and any data that it carries (RFC 7413). Returns the SYN without its data, if it has
    /// any.
    #[inline]
    fn take_syn(&mut self, segment: &Segment, from: usize, ledger: &mut Ledger) -> Option<Segment> {
        if !segment.flags.syn() {
            return None;
        }
        self.answer_syn_data(segment, from, ledger);
        if segment.payload_len == 0 {
            self.on_syn(segment, from);
            return None;
        }
        let bare = Segment { payload_len: 0, ..*segment };
        self.on_syn(&bare, from);
        self.keep_syn_data(segment, from);
        Some(bare)
    }

    /// Takes a data segment, step by step.
    #[inline]
    pub(super) fn on_data(&mut self, segment: &Segment, from: usize, ledger: &mut Ledger) {
        if let Some(setup) = self.setup.as_mut().filter(|_| !segment.flags.syn()) {
            setup.done = true;
        }
        let mss = self.mss(from);
        // What its sender knew when it sent this, before anything is asked of that sender.
        let rtt_to_sender = self.tap_rtt(from);
        self.flows[from].learn(segment.at, rtt_to_sender, mss);
        // Its class, while its bytes are not yet in the sequence space.
        let class = self.flows[from].classify(segment);
        if matches!(class, SegmentClass::Retransmission { .. }) {
            self.count_unanswered(from);
        }
        if matches!(class, SegmentClass::Retransmission { .. } | SegmentClass::Duplicate) {
            self.weigh_copy(segment, from);
        }
        if matches!(class, SegmentClass::Duplicate | SegmentClass::Probe)
            || self.is_past_answering(from, class)
        {
            self.on_nothing_new(segment, from, class, ledger);
            return;
        }
        // What it shows of its sender's congestion window, before a rule asks for the window's phase.
        self.learn_rounds(segment, from, class, mss);
        if self.is_concurrent() {
            self.on_concurrent_data(segment, from, class, mss, ledger);
            return;
        }
        // Whose turn it is: an exchange that it ends is closed, and one that it begins opened, before
        // the interval is billed.
        let opening = if self.frames.is_opening() { self.opening_gap(segment, from) } else { None };
        let left_out = self.is_of_protocol(segment, from, class, opening)
            || self.frames.is_http2() && self.gives_room(segment, from, class)
            || self.speaks_meanwhile(segment, from, class)
            || self.passes_tick(segment, from, class, ledger)
            || self.answers_close(segment, from, class)
            || class == SegmentClass::New && self.has_read_settings(segment, from)
            || self.fills_up_to_its_end(segment, from);
        if !left_out && self.begins_turn(segment, from, class, ledger) {
            self.turn_over(segment, from, class, ledger);
        }
        // What its receiver had when it closed, before more arrives.
        if from == SERVER && self.roles.closed_at[CLIENT].is_some() {
            self.on_more_for_closed(from);
        }
        if from == SERVER && self.frames.answers() {
            self.on_more_than_opening(segment, from);
        }
        // What the interval before it was spent on, in the state before its own bytes.
        let (mut verdict, follows) = self.bill_or_leave_out(segment, from, class, left_out);
        // What the silence before it means: that needs the verdict, and may take the interval out of
        // the bill.
        let push = if left_out { None } else { self.on_push(segment, from, class, &mut verdict) };
        let silence = push.unwrap_or_else(|| self.silence(segment, from, class, &verdict));
        if !left_out && self.ends_part(silence, &verdict, segment, from, class, ledger) {
            verdict.split = Split::of(Duration::ZERO);
        }
        let explained = Cause::Rto.bit() | Cause::Loss.bit() | Cause::NagleDelayedAck.bit();
        if !verdict.split.has(explained) && nagle::is_ignored(&self.pair(), from, segment, class) {
            self.on_nagle_ignored(from);
        }
        // Its bytes become part of its direction, and then it part of its exchange, where the next
        // interval begins with it.
        let new_bytes = u64::from(self.take_data(segment, from, class, mss));
        let last = self.flows[from].last_data.unwrap_or_else(|| unreachable!("it is the segment just taken"));
        if let Some(open) = self.open.as_mut().filter(|_| !left_out) {
            open.count(segment, from, new_bytes);
        }
        self.extend(segment, from, class, last, &verdict, follows);
        self.rung(segment, from, verdict.trigger, Some(&verdict.split), ledger);
    }

    /// Bytes that had already arrived, or a probe: nobody waits for them.
    fn on_nothing_new(&mut self, segment: &Segment, from: usize, class: SegmentClass, ledger: &mut Ledger) {
        self.flows[from].on_data(segment, class, self.mss(from), Duration::ZERO);
        if self.flows[from].mss_announced.is_none() {
            self.learn_sizes();
        }
        self.rung(segment, from, Trigger::Timer, None, ledger);
    }

    /// Learns from a data segment about its sender's congestion window: a loss, an idle time, or
    /// neither.
    #[inline]
    fn learn_rounds(&mut self, segment: &Segment, from: usize, class: SegmentClass, mss: u32) {
        let late = matches!(class, SegmentClass::OutOfOrderOrRepair { .. });
        let overtaken = late && self.flows[from].left_before(segment, mss);
        if (late || matches!(class, SegmentClass::Retransmission { .. })) && !overtaken {
            // Overtaken too, however little tells that, if no signal can have reached its sender.
            let soon = late && repair::came_too_soon(segment, class, self.tap_rtt(from));
            self.models[from].rounds.on_loss(soon);
        }
        let flow = &self.flows[from];
        let silent = flow.last_data.map_or(Duration::ZERO, |last| segment.at - last.at);
        if !late && silent >= RTO_MIN && matches!(class, SegmentClass::Retransmission { .. }) {
            self.models[from].rounds.on_timeout();
        }
        if overtaken {
            self.find_first_copy(segment, from);
        }
        let flow = &self.flows[from];
        // Segments lost before the capture were sent meanwhile.
        let sent = flow.missed_since_data > 1;
        let rto = flow.rto.rto();
        if flow.flight() == 0 && silent > rounds::idle_min(rto) {
            if sent {
                self.models[from].rounds.may_be_reset = true;
                return;
            }
            self.models[from].rounds.on_idle(silent, rto, mss);
            self.models[from].may_be_restarted = true;
        } else if flow.flight() > 0 && class == SegmentClass::New {
            self.models[from].may_be_restarted = false;
        }
    }

    /// A segment that seemed to be missing when a reply began arrives with it, reordered: no first
    /// transmission had been lost. Reordering spans at most a quarter of a round trip (RFC 8985, 6.2),
    /// while a segment that waited for the ACK of a retransmission is a whole one late.
    #[cold]
    #[inline(never)]
    fn find_first_copy(&mut self, segment: &Segment, from: usize) {
        let together = (self.tap_rtt(CLIENT) + self.tap_rtt(SERVER)).divided_by(4).max(BURST_GAP);
        let Some(open) = self.open.as_deref_mut().filter(|open| from != open.initiator) else { return };
        let begun_at = open.request_at() + open.waited;
        if open.reply_first.is_some() && segment.at - begun_at <= together {
            let packets = [open.request.last.map_or(0, |last| last.packet), segment.packet];
            open.reply.settle().revise(Revision::NoneLost { server: side(from), packets });
        }
    }

    /// A segment outside the request under way is charged to nobody, for nobody waits for it.
    #[inline]
    fn bill_or_leave_out(
        &mut self,
        segment: &Segment,
        from: usize,
        class: SegmentClass,
        left_out: bool,
    ) -> (Verdict, Follows) {
        let crosses =
            self.open.as_deref().is_some_and(|open| from != open.initiator && open.crosses(segment));
        if crosses || left_out {
            let nothing = Verdict { split: Split::of(Duration::ZERO), trigger: Trigger::Write };
            return (nothing, Follows::Nothing);
        }
        let (mut verdict, follows) = self.bill(segment, from, class, self.mss(from));
        self.doubt_times(&mut verdict);
        (verdict, follows)
    }

    /// Ends a piece, a message or a stream if the silence before a segment does. Returns whether the
    /// interval is then nobody's.
    #[inline]
    fn ends_part(
        &mut self,
        silence: Silence,
        verdict: &Verdict,
        segment: &Segment,
        from: usize,
        class: SegmentClass,
        ledger: &mut Ledger,
    ) -> bool {
        match silence {
            Silence::None => return false,
            Silence::Piece => {
                let rate = self.shown_rate(from);
                if let Some(open) = self.open.as_deref_mut() {
                    open.request.charge_early(rate, self.flows[from].side);
                    open.set_piece_aside(&verdict.split, segment);
                }
            }
            Silence::Message => {
                self.close(Some(segment), ledger);
                self.begin(segment, from, class);
            }
            Silence::Stream => {
                self.close_stream(from, ledger);
                self.begin(segment, from, class);
            }
        }
        true
    }

    /// Adds the segment to its direction. Returns how many of its bytes are new.
    #[inline]
    pub(super) fn take_data(&mut self, segment: &Segment, from: usize, class: SegmentClass, mss: u32) -> u32 {
        if class == SegmentClass::New {
            let flow = &self.flows[from];
            let (flight, snd_una) = (flow.flight() + segment.payload_len, flow.view.snd_una);
            let room = flow.room_behind(segment.payload_len);
            self.models[from].rounds.on_flight(segment.seq, flight, snd_una, room, mss);
        }
        let path_rtt = self.tap_rtt(CLIENT) + self.tap_rtt(SERVER);
        let announced = self.flows[from].mss_announced;
        let new_bytes = self.flows[from].on_data(segment, class, mss, path_rtt);
        if self.flows[from].mss_announced != announced || announced.is_none() {
            self.learn_sizes();
        }
        new_bytes
    }
}
