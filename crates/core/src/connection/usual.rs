//! Is this one of the segments that make up nearly all of a capture, and what does it change?
//!
//! Header prediction (tcp_rcv_established, net/ipv4/tcp_input.c) for an observer: a few comparisons
//! recognize a request, a reply or an ACK on a connection where nothing is missing, late or unknown. It
//! takes the fast path, which skips every question whose answer is then known, and makes the same
//! changes in the same order. Everything else takes the general path, at any segment: both work on one
//! state, and [`Connection::on_usual_checked`] checks them against each other.

#![expect(clippy::inline_always, reason = "it is written out for either end")]

use tcpwhy_wire::Duration;

use super::Connection;
use super::frame_sizes::is_as_long_as_ping;
use super::turn::Paired;
use super::turns::PIECES_MAX;
use crate::bill::charge::Charge;
use crate::bill::exchange::Open;
use crate::estimate::maybe::Maybe;
use crate::estimate::polls::Polls;
use crate::estimate::rounds;
use crate::flow::ends::{CLIENT, SERVER};
use crate::flow::packed::Packed;
use crate::rules::late_start;
use crate::tally::ledger::Ledger;
use crate::words::limits::{BURST_GAP, QUEUED_MIN, RTO_MIN, WORD_MAX};
use crate::words::mark::Mark;
use crate::words::report::Confidence;

/// What a usual data segment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// A message begins with this one small segment: a request of the client's, or the server's reply.
    Message,
    /// It continues its sender's part, right after the segment before it.
    Burst,
    /// The general path must decide.
    General,
}

impl Connection {
    /// Decides whether the fast path may be taken; asked again whenever the general path has run.
    pub(super) fn ask_whether_calm(&mut self) {
        self.calm = self.is_calm();
        if self.calm {
            let scale = |end| self.window_scale(end).unwrap_or(0);
            self.scales = [scale(CLIENT), scale(SERVER)];
        }
    }

    fn is_calm(&self) -> bool {
        self.shown == [true; 2]
            && self.fine
            && !self.closed
            && self.paired <= Paired::Unread
            && !self.is_concurrent()
            && !self.is_framed()
            && self.last_at == self.now
            && self.set_back == Duration::ZERO
            && !self.is_unsteady()
            && self.tap_rtt.iter().all(Maybe::is_some)
            && self.setup.as_ref().is_none_or(|setup| setup.done)
            && !(self.beyond().is_some() || self.may_be_behind())
            && !self.roles.goes_on.is_suspect()
            && self.models.iter().all(|model| model.copies_due == 0)
            && self.open.as_deref().is_none_or(|open| open.later.is_none())
            && self.flows.iter().all(super::Flow::is_calm)
            && !self.is_unproven()
    }

    /// Takes a segment that is usual by itself (`Packed::is_usual`). Returns whether it is usual on
    /// this connection too; if not, nothing has changed.
    #[inline(never)]
    pub(crate) fn on_usual(
        &mut self,
        segment: &Packed,
        marks: &[Mark],
        from: usize,
        ledger: &mut Ledger,
    ) -> bool {
        // Written out for each end: all addresses are then known, and not computed for each field.
        if from == CLIENT {
            self.on_usual_of(segment, marks, CLIENT, ledger)
        } else {
            self.on_usual_of(segment, marks, SERVER, ledger)
        }
    }

    /// The same for one end.
    #[inline(always)]
    fn on_usual_of(&mut self, segment: &Packed, marks: &[Mark], from: usize, ledger: &mut Ledger) -> bool {
        let acked = self.flows[1 - from].acknowledged_by(segment);
        if !self.is_usual(segment, from, acked > 0) {
            return false;
        }
        self.on_usual_packet(segment, from);
        self.on_usual_ack(segment, from, acked);
        if segment.payload_len == 0 {
            self.flows[from].on_usual_pure(segment.at);
            self.usual_rung(segment, from, None, ledger);
        } else {
            if !marks.is_empty() {
                self.take_usual_marks(marks, segment, from, ledger);
            }
            let (rtt_to_sender, mss) = (self.known_rtt(from), self.sizes[from]);
            self.flows[from].learn_usual(segment.at, rtt_to_sender, mss);
            match self.shape(segment, from) {
                Shape::Message => self.on_message(segment, from, ledger),
                Shape::Burst => self.on_burst(segment, from, ledger),
                Shape::General => self.on_less_usual_data(segment, from, ledger),
            }
        }
        if segment.flags.fin() {
            self.on_usual_fin(segment, from, ledger);
        }
        if self.path_memory.news {
            // If an end is nearer than was known, another host may sit beyond it.
            self.ask_whether_calm();
        }
        true
    }

    /// Continues on the general path, which asks again what the sender knew; nothing is left to learn.
    #[inline(never)]
    fn on_less_usual_data(&mut self, segment: &Packed, from: usize, ledger: &mut Ledger) {
        self.on_data(&segment.unpack(), from & 1, ledger);
        self.ask_whether_calm();
    }

    /// Takes the marks; the general path follows if more than one request is under way from here on.
    #[cold]
    #[inline(never)]
    fn take_usual_marks(&mut self, marks: &[Mark], segment: &Packed, from: usize, ledger: &mut Ledger) {
        self.take_marks(marks, &segment.unpack(), from, ledger);
    }

    #[inline(never)]
    fn on_usual_fin(&mut self, segment: &Packed, from: usize, ledger: &mut Ledger) {
        let from = from & 1;
        self.flows[from].on_control(&segment.unpack());
        self.on_close(segment.at, from, ledger);
    }

    /// As [`Self::on_usual`], but also takes the segment on the general path, on a copy: panics unless
    /// both leave the same state.
    #[cold]
    #[inline(never)]
    pub(crate) fn on_usual_checked(
        &mut self,
        segment: &Packed,
        marks: &[Mark],
        from: usize,
        ledger: &mut Ledger,
    ) -> bool {
        let (mut general, mut general_ledger) = (self.clone(), ledger.clone());
        if !self.on_usual(segment, marks, from, ledger) {
            return false;
        }
        general.on_segment(&segment.unpack(), marks, from, &mut general_ledger);
        if &general != self {
            let [general, usual] = [&general, self].map(|state| format!("{state:#?}"));
            let differ: Vec<_> = general.lines().zip(usual.lines()).filter(|(a, b)| a != b).collect();
            panic!("packet {}: the general path and the usual one leave {differ:#?}", segment.packet);
        }
        assert!(&general_ledger == ledger, "packet {}: the bills differ", segment.packet);
        true
    }

    /// Whether this is the next segment of its direction on a calm connection, and acknowledges data
    /// sent or nothing new.
    #[inline(always)]
    fn is_usual(&self, segment: &Packed, from: usize, acknowledges: bool) -> bool {
        let (flow, peer) = (&self.flows[from], &self.flows[1 - from]);
        self.calm
            && segment.at >= self.now
            // A single byte may be a window probe, which does not advance the stream: its
            // retransmission would look new.
            && segment.payload_len != 1
            && flow.expects(segment)
            && (acknowledges || peer.is_repeated(segment, self.usual_window(segment, from)))
    }

    /// What its data is, once its ACK has been taken.
    #[inline(always)]
    fn shape(&self, segment: &Packed, from: usize) -> Shape {
        let (flow, len) = (&self.flows[from], segment.payload_len);
        // Packets missing from the capture may be retransmissions.
        let fin = segment.flags.fin(); // after a reply it changes nothing
        let plain = flow.missed_since_data == 0 && !flow.suspects_missing() && (from == SERVER || !fin);
        let closed = self.roles.closed_at[CLIENT].is_some(); // nobody may wait for data to it
        let watched = from == SERVER && (self.roles.watch() || closed);
        if !plain || self.is_told_apart() || watched || !self.frames.passes(len, from) {
            return Shape::General;
        }
        let Some(open) = self.open.as_deref() else {
            return if from == CLIENT && self.is_small(segment, from) {
                Shape::Message
            } else {
                Shape::General
            };
        };
        if flow.has_emptied_its_queue() {
            if open.initiator == CLIENT && self.is_small(segment, from) {
                let comes = if from == CLIENT {
                    self.ends_usual(open, segment)
                } else {
                    let waited = || {
                        !is_as_long_as_ping(len)
                            && self.waited_for_both(open, (segment.at, segment.ack), from)
                    };
                    open.awaits_usual(segment) && (open.request.index == 0 || waited())
                };
                if comes {
                    return Shape::Message;
                }
            }
        } else if len == self.sizes[from]
            && !fin
            && !is_as_long_as_ping(len)
            && self.goes_on(open, segment, from)
        {
            return Shape::Burst;
        }
        Shape::General
    }

    /// Whether this is a small segment that nothing holds back, with nothing after it, on a connection
    /// without a ladder.
    #[inline(always)]
    fn is_small(&self, segment: &Packed, from: usize) -> bool {
        let flow = &self.flows[from];
        segment.payload_len < self.sizes[from]
            && segment.flags.psh()
            && flow.highest_ack == Some(segment.seq) // which comes next
            && flow.has_emptied_its_queue()
            && !flow.view.had_no_room()
            && self.ladder.is_none()
    }

    /// Whether a full segment is sent together with the one before it.
    #[inline(always)]
    fn goes_on(&self, open: &Open, segment: &Packed, from: usize) -> bool {
        let flow = &self.flows[from];
        let (own, other) =
            if from == open.initiator { (&open.request, &open.reply) } else { (&open.reply, &open.request) };
        let (Some(last), Some(sent)) = (&own.last, &flow.last_data) else { return false };
        if last.packet != sent.packet || segment.at - last.at >= BURST_GAP || own.has_pending() {
            return false;
        }
        let turn = if from == open.initiator {
            open.reply_first.is_none()
        } else {
            // Nothing of the request has reached it since.
            let rtt_to_sender = self.known_rtt(from);
            let asked = other.last.as_ref().map(|asked| asked.at + rtt_to_sender);
            open.reply_first.is_some() && asked.is_some_and(|asked| asked <= last.at)
        };
        // In this many pieces it is a stream, in which a message may begin at any moment
        // (`Connection::silence`).
        turn && open.pieces.len() < PIECES_MAX && flow.may_go_on(last, self.sizes[from])
    }

    /// Whether the client's next request ends the exchange under way.
    #[inline(always)]
    fn ends_usual(&self, open: &Open, segment: &Packed) -> bool {
        open.reply_first.is_some_and(|first| segment.ack.after(first))
            && open.request_bytes > 0 // what follows a greeting says whether it was one
            && open.request_acks.is_none_or(|acks| segment.ack.after(acks))
            // Nagle may have held the rest of a request that has come in one piece so far.
            && (open.request.index > 0 || self.models[CLIENT].held_shape.is_none())
            && open.reply.is_settled()
            && !open.is_guess
            && !open.is_unheard
            && (open.waited < Polls::wait_least() || open.waited < self.roles.polls().wait_min())
            && !self.roles.watch()
            // Behind a full segment, a short one may be a frame of HTTP/2's own.
            && (segment.payload_len > WORD_MAX || open.reply.last.is_none_or(|last| last.len < self.sizes[SERVER]))
    }

    #[inline(always)]
    fn usual_window(&self, segment: &Packed, from: usize) -> u32 {
        u32::from(segment.window) << self.scales[from]
    }

    #[inline(always)]
    fn on_usual_packet(&mut self, segment: &Packed, from: usize) {
        self.last_at = segment.at;
        self.now = segment.at;
        self.packets += 1;
        self.packet_range[1] = segment.packet;
        self.learn_from_usual_echo(segment, from);
        self.last_packet[from] = Maybe::of(segment.at);
        let mss = self.sizes[from];
        self.flows[from].on_usual_packet(segment, mss);
        self.weigh_jump(from);
        self.models[1 - from].on_peer_packet(0);
        // The end with more to send is the one that fills a queue.
        if segment.payload_len >= mss
            && let Some(queued) = self.flows[from].queue_shown()
        {
            self.path_memory.on_queued(from, segment.at, queued);
        }
    }

    #[inline(always)]
    fn on_usual_ack(&mut self, segment: &Packed, from: usize, acked: u32) {
        let to = 1 - from;
        if acked > 0 {
            let window = self.usual_window(segment, from);
            let (mss, peer) = (self.sizes[to], self.known_rtt(from));
            if let Some(rtt) = self.flows[to].on_usual_ack(segment, (acked, window), mss, peer) {
                let bare = segment.payload_len == 0 && !segment.flags.fin();
                self.on_usual_round_trip(rtt, from, bare);
            }
        } else {
            self.flows[to].on_repeated();
        }
        self.discard_if_answered(to, Some(segment.stamps.ecr), false);
    }

    /// [`Connection::learn_from_echo`] where both distances are known.
    #[inline(always)]
    fn learn_from_usual_echo(&mut self, segment: &Packed, from: usize) {
        self.echoes[from].on_stamp(segment.stamps.val, segment.at);
        if let Some(bound) = self.echoes[1 - from].on_echo(segment.stamps.ecr, segment.at, true)
            && bound < self.known_rtt(from)
        {
            self.take_bound(bound, from, segment.stamps.val);
        }
    }

    /// [`Connection::on_round_trip`] where both distances are known: nearly none is shorter, or was queued.
    #[inline(always)]
    fn on_usual_round_trip(&mut self, rtt: Duration, from: usize, bare: bool) {
        let (least, to) = (self.known_rtt(from), 1 - from);
        let queued = self.flows[from].queued_on_way.get().is_some_and(|waited| waited >= QUEUED_MIN);
        if queued || rtt < least {
            return self.on_round_trip(rtt, from, bare);
        }
        self.path_memory.on_another(from, self.now, least, rtt);
        let beyond = rtt - least;
        self.flows[from].bound_late(beyond);
        if let Some(open) = self.open.as_deref_mut().filter(|open| open.initiator == from) {
            late_start::refute(open, self.now, beyond);
        }
        if beyond >= QUEUED_MIN {
            self.on_long_answer([rtt, least], from, bare);
        }
        self.path_memory.on_least(from, self.now, least, QUEUED_MIN);
        self.flows[to].rto.on_sample(rtt + self.known_rtt(to));
    }

    /// What a data segment changes before it is known which message it belongs to. Returns how much was in
    /// flight before it.
    #[inline(always)]
    fn before_usual_data(&mut self, segment: &Packed, from: usize) -> u32 {
        let flow = &self.flows[from];
        let flight = flow.view.flight_before(segment.seq);
        if flight > 0 {
            self.models[from].may_be_restarted = false;
        } else {
            let silent = flow.last_data.as_ref().map_or(Duration::ZERO, |last| segment.at - last.at);
            // No timer is shorter, so that most silences need not be compared with this one's.
            if silent > RTO_MIN {
                self.on_silence(silent, from);
            }
        }
        self.frames.on_passing(segment.payload_len, from);
        flight
    }

    /// Nothing was in flight for longer than the shortest timer.
    #[inline(never)]
    fn on_silence(&mut self, silent: Duration, from: usize) {
        let from = from & 1;
        let rto = self.flows[from].rto.rto();
        if silent > rounds::idle_min(rto) {
            self.models[from].rounds.on_idle(silent, rto, self.sizes[from]);
            self.models[from].may_be_restarted = true;
        }
    }

    /// A request that ends the exchange before it, or the reply to one.
    #[inline(always)]
    fn on_message(&mut self, segment: &Packed, from: usize, ledger: &mut Ledger) {
        let flight = self.before_usual_data(segment, from);
        if from == CLIENT {
            self.turn_over_usual(segment, ledger);
        } else {
            self.answer_usual(segment);
        }
        self.on_usual_data(segment, from, flight);
    }

    /// A full segment after another: [`Connection::on_data`] if nothing can have stopped its sender.
    #[inline(never)]
    fn on_burst(&mut self, segment: &Packed, from: usize, ledger: &mut Ledger) {
        let flight = self.before_usual_data(segment, from);
        let (mss, flow) = (self.sizes[from], &self.flows[from]);
        let Some(before) = &flow.last_data else { return };
        let gap = (segment.at - before.at).at_least_zero();
        let near = self.known_rtt(from) <= self.known_rtt(1 - from);
        let busy = flow.busy_in_burst(segment, before, gap, near, mss);
        let sure = if flow.missing_from_capture { Confidence::Possible } else { Confidence::Likely };
        let shares = [(busy, sure), (gap - busy, Confidence::Likely)];
        let (side, packets) = (flow.side, [before.packet, segment.packet]);
        let charges = move || shares.map(|share| Charge::in_burst(share, side, packets));
        let (snd_una, room) = (flow.view.snd_una, flow.room_behind(segment.payload_len));
        let flight = flight + segment.payload_len;
        self.models[from].rounds.on_flight(segment.seq, flight, snd_una, room, mss);
        let path_rtt = self.known_rtt(CLIENT) + self.known_rtt(SERVER);
        let last = self.flows[from].on_burst_data(segment, mss, path_rtt);
        let Some(open) = self.open.as_deref_mut() else { return };
        open.count_usual(segment, from);
        let path = if from == open.initiator { &mut open.request } else { &mut open.reply };
        path.advance_in_burst(shares, side, packets, last);
        if self.ladder.is_some() {
            self.usual_rung(segment, from, Some(charges()), ledger);
        }
    }

    /// Adds the segment to its direction and to the message under way.
    #[inline(always)]
    fn on_usual_data(&mut self, segment: &Packed, from: usize, flight: u32) {
        let (mss, len) = (self.sizes[from], segment.payload_len);
        let room = self.flows[from].view.right_edge.map(|edge| i64::from(edge - segment.seq));
        let fills = room.is_some_and(|room| room < i64::from(mss) + i64::from(len));
        self.models[from].rounds.begin_with(segment.seq, flight + len, fills);
        let last = self.flows[from].on_usual_data(segment, mss);
        let Some(open) = self.open.as_deref_mut() else { return };
        open.count_usual(segment, from);
        let path = if from == CLIENT { &mut open.request } else { &mut open.reply };
        path.begin(last);
    }
}
