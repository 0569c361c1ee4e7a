//! What was the interval before this segment spent on, and which path does it extend?

use tcpwhy_wire::{Duration, Instant, Segment, Seq};

use super::Connection;
use super::beside::matters_little;
use super::closing::doubt_pauses;
use super::talk::Talk;
use super::turn::{Follows, Paired, STREAM_MIN, STREAM_PIECES};
use crate::bill::charge::Charge;
use crate::bill::exchange::Open;
use crate::bill::exchange::pieces::Timing;
use crate::bill::held::{DOUBTED, KEPT};
use crate::bill::revise::Revision;
use crate::bill::split::Split;
use crate::estimate::rate::Rate;
use crate::flow::ends::{CLIENT, SERVER, side};
use crate::flow::ports;
use crate::flow::segment_class::{LastData, SegmentClass};
use crate::rules::pair::Pair;
use crate::rules::verdict::Verdict;
use crate::rules::wait::Wait;
use crate::rules::{
    self, cork, crossed, late_answer, late_request, late_start, nagle, not_captured, repair, server_think,
};
use crate::words::cause::Cause;
use crate::words::form::Form;
use crate::words::limits::{
    ASKS_ON_MAX, BURST_GAP, DELAYED_ACK_MIN, HELD_BACK_MIN, ROUND_TRIP_PLAY, WORD_MAX,
};
use crate::words::report::{Confidence, Trigger};

/// The most a woken writer takes to go on writing.
const BEHIND_TAIL_MAX: Duration = Duration::from_millis(1);

/// A frame this long after the other end's (WebSocket) may be an event. Source: none written down.
const FRAME_NEWS_MIN: Duration = Duration::from_secs(1);
/// What one program writes in several pieces is seldom so far apart. Source: none written down.
const PIECES_MIN: Duration = Duration::from_millis(2);
/// A client gives up on a reply that takes this long to come in. Source: none written down.
const STREAM_LONG: Duration = Duration::from_secs(5);

/// The causes that hold a small write until an ACK.
pub(super) const NAGLE: u32 = Cause::Nagle.bit() | Cause::NagleDelayedAck.bit();

impl Connection {
    /// Decides what the interval before this segment was spent on, and since when.
    pub(super) fn bill(
        &mut self,
        segment: &Segment,
        from: usize,
        class: SegmentClass,
        mss: u32,
    ) -> (Verdict, Follows) {
        let nothing = (Verdict { split: Split::of(Duration::ZERO), trigger: Trigger::Write }, Follows::Own);
        let Some(open) = self.open.as_deref() else { return nothing };
        let path = if from == open.initiator { &open.request } else { &open.reply };
        let wait = path.frontier().map(|last| self.wait(segment, from, class, mss, last, path.index));
        if self.answers(open, segment, from, class) {
            // Nagle may have held, beside the first reply, what a second request made the server write.
            let held = wait.as_ref().and_then(|wait| nagle::holds_answer(wait, open.request.last.as_ref()?));
            if let (Some(mut verdict), Some(wait)) = (held, &wait) {
                let observation = rules::observe(wait, &verdict);
                self.weigh_held(from, false, &mut verdict.split);
                self.models[from].take(&observation);
                return (verdict, Follows::Own);
            }
            return self.bill_answer(segment, from, class);
        }
        let Some(wait) = wait else {
            self.models[from].rounds.on_message(segment.seq);
            return nothing;
        };
        if let Some(verdict) = self.behind_unseen(&wait, from) {
            return (verdict, Follows::Own);
        }
        let beside_small = class == SegmentClass::New && segment.payload_len.max(wait.last.len) < mss;
        let gap = wait.gap;
        let later = open.late.as_deref().and_then(|late| late_start::written_later(late, &wait));
        let judged = rules::judge(&wait);
        let crossed = crossed::judge(open, &wait, &self.flows[1 - from], from, &judged);
        let mut verdict = crossed.unwrap_or(judged);
        if from != open.initiator && open.request_at() > wait.last.at - wait.rtt_to_sender {
            verdict.split.doubt(); // it may have waited for the rest of the request
        }
        let another = self.may_be_another(open, segment, from);
        self.weigh_pause(&wait, from, another, &mut verdict);
        let streams = verdict.split.has(Cause::SenderThink.bit())
            && from != open.initiator
            && wait.index >= STREAM_PIECES
            && segment.at - open.request_at() >= STREAM_MIN
            && !self.goes_on_by_its_bytes(from, segment.seq);
        let mut observation = rules::observe(&wait, &verdict);
        observation.beyond = self.weigh_round_beyond(&wait, from, &mut verdict);
        // Only a gap before any reply data shows an application that writes everything before it reads.
        let read = open.reply_first.is_some_and(|first| segment.ack.after(first));
        if read || from != open.initiator || open.request.index > 0 {
            observation.forget_shape();
        }
        self.take(from, &observation);
        if beside_small {
            self.models[from].on_small_behind_small(gap);
        }
        self.on_part(another);
        self.note_going_on(from, gap, &verdict.split);
        self.after_wait((segment, from), streams, later.as_ref(), &mut verdict);
        (verdict, Follows::Own)
    }

    /// Takes what a wait shows of the message as a whole.
    #[inline]
    fn after_wait(
        &mut self,
        (segment, from): (&Segment, usize),
        streams: bool,
        later: Option<&Charge>,
        verdict: &mut Verdict,
    ) {
        if streams {
            self.doubt_stream(segment, from, verdict);
        }
        if let Some((own, open)) = later.zip(self.open.as_deref_mut()) {
            open.was_written_later(own);
        }
    }

    /// A reply in this many pieces may be a stream, whose sender's pauses were hardly waited for.
    #[cold]
    fn doubt_stream(&mut self, segment: &Segment, from: usize, verdict: &mut Verdict) {
        let (Some(open), sender) = (self.open.as_deref_mut(), side(from)) else { return };
        self.roles.goes_on.streams |= segment.at - open.request_at() >= STREAM_LONG;
        let revision = if self.roles.goes_on.streams {
            verdict.split.doubt();
            Revision::MayBeMany { sender, form: Form::OrMessages }
        } else {
            verdict.split.temper();
            Revision::MayBeStream { sender }
        };
        open.reply.settle().revise(revision);
    }

    /// The segment may answer something that is missing from the capture.
    fn behind_unseen(&self, wait: &Wait<'_>, from: usize) -> Option<Verdict> {
        let (last, segment) = (wait.last, wait.segment);
        if !self.flows[1 - from].acked_unseen() || segment.at - last.at < BURST_GAP {
            return None;
        }
        let charge = not_captured::charge(self.flows[from].side).evidence(last.packet, segment.packet);
        Some(Verdict { split: Split::of(segment.at - last.at).rest(charge), trigger: Trigger::Write })
    }

    /// A pause in an encrypted HTTP/2 message: another stream may go on, all the more if several are open.
    #[cold]
    fn weigh_stream(&self, from: usize, split: &mut Split) {
        let Some(open) = self.open.as_deref() else { return };
        if from != open.initiator && self.is_in_pieces(open) {
            split.doubt();
        } else {
            split.temper();
        }
    }

    /// Lowers the confidence in a wait within a message by what is unknown of its sender and receiver.
    fn weigh_pause(&self, wait: &Wait<'_>, from: usize, another: bool, verdict: &mut Verdict) {
        match repair::surest_of_arrived(wait) {
            _ if self.damaged[from] => {}
            Confidence::Possible => verdict.split.doubt(),
            Confidence::Likely => verdict.split.temper(),
            Confidence::Certain => {}
        }
        if verdict.split.has(NAGLE) {
            self.weigh_held(from, another, &mut verdict.split);
        }
        if self.frames.is_http2() {
            self.charge_room(wait, from, verdict);
        }
        if !verdict.split.has(Cause::SenderThink.bit()) {
            return;
        }
        if wait.gap >= DELAYED_ACK_MIN
            && wait.class == SegmentClass::New
            && let Some(held) = self.held_by_timer(wait, from)
        {
            *verdict = held;
        } else if another || self.open.as_deref().is_some_and(|open| open.is_guess) {
            verdict.split.doubt();
        } else if from == SERVER && self.may_be_behind() {
            verdict.split.doubt(); // it may be a round trip beyond the host that acknowledges
        } else if self.may_be_round(wait, from) {
            verdict.split.doubt(); // the path may be shorter than it has been so far
        } else if self.is_framed() || self.frames.is_guess() {
            verdict.split.doubt(); // each frame is a message of its own, and what was left out may have been messages
        } else if wait.gap >= ASKS_ON_MAX && self.open.as_deref().is_some_and(|open| open.initiator == from) {
            verdict.split.doubt(); // nobody may have waited for its answer yet
        } else if self.goes_on_by_its_bytes(from, wait.segment.seq) {
            verdict.split.settle_message();
        } else if wait.gap >= DELAYED_ACK_MIN && self.may_have_confirmed(wait, from) {
            verdict.split.doubt(); // it may have needed no answer, and what follows be the question
        } else if wait.gap >= HELD_BACK_MIN && self.may_ask_again(wait, from) {
            verdict.split.doubt(); // each may be a question
        } else if wait.gap >= PIECES_MIN && self.may_answer_several(from) {
            verdict.split.doubt(); // each may be a message of its own
        } else if wait.gap >= PIECES_MIN && self.may_have_ended(wait, from) {
            verdict.split.doubt_waiting(); // what came before may have been a whole message
        } else if from == SERVER && self.may_begin_again(wait.last) {
            verdict.split.doubt(); // it belongs to another stream, or begins the answer
        } else if self.frames.is_http2() {
            self.weigh_stream(from, &mut verdict.split);
        } else if from == SERVER && wait.last.len.max(wait.segment.payload_len) <= WORD_MAX {
            // Segments this short may be messages of their own; encrypted, they mostly are.
            if self.may_be_cipher() { verdict.split.doubt() } else { verdict.split.temper() }
        } else if self.is_signal(wait.segment.payload_len) {
            verdict.split.doubt(); // a ping beside the message under way
        } else if self.is_between_records(wait, from) || self.pauses_between_writes(wait, from) {
            verdict.split.temper(); // each may be a request
        }
    }

    /// Bills the interval before a reply, from the request's last byte or from the piece that sufficed.
    fn bill_answer(&mut self, segment: &Segment, from: usize, class: SegmentClass) -> (Verdict, Follows) {
        let Some(open) = self.open.as_deref() else { unreachable!("it answers something") };
        let timing = self.timing(open, segment.at, from);
        let own_time = timing.is_some_and(|timing| self.models[from].answers.is_own(timing))
            || self.came_too_soon(open, segment.at, from);
        let mut verdict = server_think::judge(&self.pair(), open, segment, class, own_time);
        let late = late_request::answers_late(&self.pair(), open, segment)
            && !server_think::is_spurious(self.tap_rtt(from), open, segment);
        if let Some(held) = self.held_beside_earlier(open, segment, from, class) {
            verdict.split.hold(Cause::ServerThink, &held);
        }
        let answers_part = self.answers_part(open, segment);
        let between = !answers_part && open.request.index > 1 && self.comes_between(open, segment);
        let leaves_out = open.request.index > 0
            && segment.flags.ack()
            && open.leaves_out(segment.ack)
            && !self.frames.is_opening(); // what TLS says by itself is no reply
        if from == SERVER && (self.may_be_behind() || self.beyond().is_some()) {
            // If the request came in pieces, this may answer the first one.
            self.answers.on_answer(segment.at - open.passed);
            if self.may_be_behind() {
                verdict.split.temper();
            }
        }
        let by_guess = open.is_guess && !own_time || answers_part;
        let mut may_be_none = self.doubt_pairing(open, segment, from, by_guess, &mut verdict);
        let reply = cork::late_reply(&self.pair(), open, segment, Duration::ZERO);
        may_be_none |= self.weigh_answer(open, segment.payload_len, &mut verdict);
        self.doubt_turn(segment, from, &mut verdict);
        let small = segment.payload_len < self.mss(from);
        let midway = self.midway;
        let model = &mut self.models[from];
        model.rounds.on_message(segment.seq);
        if small {
            model.on_first_reply(&verdict, reply, midway);
        }
        if let Some(timing) = timing {
            model.answers.on_answer(timing, own_time);
        }
        if let Some(open) = self.open.as_deref_mut() {
            open.is_unheard |= may_be_none;
            if late {
                open.request.settle().revise(Revision::MayBeDropped);
            }
            if answers_part {
                open.is_guess |= !self.frames.answer_part();
            }
            if answers_part || leaves_out {
                doubt_pauses(open.request.settle(), side(1 - from));
            }
        }
        self.on_answer_between(from, between);
        (verdict, if own_time { Follows::Beginning } else { Follows::Request })
    }

    /// A wait is at most possible if the pairing is a guess. Returns whether the reply may be none.
    fn doubt_pairing(
        &self,
        open: &Open,
        segment: &Segment,
        from: usize,
        by_guess: bool,
        verdict: &mut Verdict,
    ) -> bool {
        // It may continue a reply that had begun.
        let goes_on = !self.frames.answers()
            && open.reply.frontier().is_some_and(|said| self.said_part_early(open, said, segment.at));
        // A reply of a few bytes was not the reply to one part.
        let word = open.reply_bytes <= u64::from(WORD_MAX);
        let little = word && (by_guess || goes_on) && matters_little(open, segment);
        let is_doubtful = (by_guess || goes_on) && !little
            || self.frames.is_doubtful()
            || self.paired == Paired::Guess
            || self.roles.goes_on.is_loose(self.next_n)
            || self.is_framed() && segment.at - open.passed >= FRAME_NEWS_MIN
            || from == SERVER && self.is_distance_doubtful();
        if is_doubtful {
            verdict.split.doubt();
        }
        if little || self.is_framed() || self.paired == Paired::Before || open.is_parted {
            verdict.split.temper(); // several may be under way at once
        }
        is_doubtful
    }

    /// What held a reply whose request came while an earlier small segment was unacknowledged, as Nagle does.
    pub(super) fn held_beside_earlier(
        &self,
        open: &Open,
        segment: &Segment,
        from: usize,
        class: SegmentClass,
    ) -> Option<Charge> {
        let (last, request) = (self.flows[from].last_data.as_ref()?, open.request.last.as_ref()?);
        let released = self.flows[from].view.small_acked().is_some_and(|ack| ack.flight > 0);
        let late = segment.at - request.at - self.tap_rtt(from) >= HELD_BACK_MIN;
        if open.reply.last.is_some() || last.at > request.at || !released || !late {
            return None;
        }
        let wait = self.wait(segment, from, class, self.mss(from), last, 0);
        let mut held = nagle::holds_answer(&wait, request)?;
        held.split.holds_message();
        held.split
            .charges()
            .find(|charge| matches!(charge.cause, Cause::Nagle | Cause::NagleDelayedAck))
            .cloned()
    }

    /// Whether a reply came too soon for the last of its request to have caused it: the first part alone did.
    fn came_too_soon(&self, open: &Open, at: Instant, from: usize) -> bool {
        let rtt_to_sender = self.tap_rtt(from);
        open.request.index == 1
            && open.pieces.is_empty()
            && (open.reply_first.is_none() || self.frames.answers())
            && at - open.request_at() < rtt_to_sender - rtt_to_sender.divided_by(ROUND_TRIP_PLAY)
    }

    /// How a reply at `at` lies to the pieces of its request, if the capture's clock is fine enough.
    pub(super) fn timing(&self, open: &Open, at: Instant, from: usize) -> Option<Timing> {
        open.timing(at).filter(|_| self.flows[from].grain_ms == 0)
    }

    /// Whether a reply had waited for both pieces of its request, as nearly all do.
    #[inline(never)]
    pub(super) fn waited_for_both(&self, open: &Open, (at, ack): (Instant, Seq), from: usize) -> bool {
        let timing = self.timing(open, at, from);
        open.request.index == 1
            && !open.leaves_out(ack)
            && !open.is_guess
            && !open.is_unheard
            && !timing.is_some_and(|timing| self.models[from].answers.is_own(timing))
            && !self.came_too_soon(open, at, from)
    }

    /// Both ends, for rules that ask about both.
    #[inline]
    pub(super) fn pair(&self) -> Pair<'_> {
        Pair {
            flows: &self.flows,
            models: &self.models,
            sizes: self.sizes,
            tap_rtt: [self.tap_rtt(CLIENT), self.tap_rtt(SERVER)],
            path_memory: &self.path_memory,
            now: self.now,
            midway: self.midway,
            heard_first: self.assumed && ports::says_nothing(self.ends.get().map(|end| end.port)),
            greeted: self.greeted && self.talk.is_none(),
            fine: self.fine,
            shown: self.shown,
            setup: &self.setup,
            bound: [self.is_bound(CLIENT), self.is_bound(SERVER)],
            varies: [CLIENT, SERVER].map(|end| self.varies(end) || self.is_alone(end)),
            dialogue: self.talk.as_deref().is_some_and(Talk::is_dialogue),
            released: self.talk.as_deref().is_some_and(Talk::is_released),
            beyond: self.beyond(),
        }
    }

    /// The interval before a segment that continues what its sender sent at `last`.
    pub(super) fn wait<'a>(
        &'a self,
        segment: &'a Segment,
        from: usize,
        class: SegmentClass,
        mss: u32,
        last: &'a LastData,
        index: usize,
    ) -> Wait<'a> {
        let answer = self.open.as_deref().filter(|open| from == open.initiator);
        let beside_answer =
            answer.and_then(|open| open.reply_first).is_some_and(|first| segment.ack.after(first));
        Wait {
            flow: &self.flows[from],
            peer: &self.flows[1 - from],
            asked: if index == 0 { self.asked_by(from, last) } else { 0 },
            segment,
            class,
            last,
            gap: (segment.at - last.at).at_least_zero(),
            mss,
            rtt_to_sender: self.tap_rtt(from),
            rtt_to_receiver: self.tap_rtt(1 - from),
            model: &self.models[from],
            index,
            beside_answer,
            far_unknown: self.far_unknown(from),
            behind_host: self.is_behind_host(from),
            midway: self.midway,
            coarse: !self.fine,
            nodelay_beside: self.path_memory.has_nodelay(from, self.ends.get()[SERVER].port),
            speaks_unasked: from == SERVER && self.roles.pushes_often(),
        }
    }

    /// The rate at which the path delivers this end's bytes, as far as that has been seen.
    pub(super) fn shown_rate(&self, end: usize) -> Option<(Rate, Confidence)> {
        let (flow, near) = (&self.flows[end], self.is_near(end));
        let guessed = || near && flow.acknowledgements.is_guess();
        flow.rate(near).map(|rate| (rate, if guessed() { Confidence::Possible } else { Confidence::Likely }))
    }

    /// Whether a segment of the responder answers request bytes that arrived after its last one.
    pub(super) fn answers(&self, open: &Open, segment: &Segment, from: usize, class: SegmentClass) -> bool {
        if from == open.initiator {
            return false;
        }
        let Some(request) = &open.request.last else { return false };
        let server = self.tap_rtt(1 - open.initiator);
        match open.reply.frontier() {
            None => matches!(class, SegmentClass::New | SegmentClass::OutOfOrderOrRepair { .. }),
            Some(_) if self.frames.answers() => true,
            Some(reply) => {
                let reached = request.at + (server - server.divided_by(ROUND_TRIP_PLAY));
                let begun = reached > reply.at && request.at > reply.at - server;
                class == SegmentClass::New
                    && reached <= segment.at
                    && (begun || self.said_part_early(open, reply, segment.at))
            }
        }
    }

    pub(super) fn extend(
        &mut self,
        segment: &Segment,
        from: usize,
        class: SegmentClass,
        last: LastData,
        verdict: &Verdict,
        follows: Follows,
    ) {
        let Some(open) = self.open.as_deref().filter(|_| follows != Follows::Nothing) else { return };
        let spurious = server_think::is_spurious(self.tap_rtt(1 - open.initiator), open, segment);
        let (flow, full_size) = (&self.flows[from], self.mss(from));
        let unsettled =
            if self.is_near(from) { !flow.acknowledgements.is_settled() } else { flow.rate(false).is_none() };
        let early = verdict.split.has(KEPT) && unsettled;
        let early = early.then(|| (full_size, [self.tap_rtt(from), self.tap_rtt(1 - from)]));
        let asked_rate = self.shown_rate(open.initiator);
        let path = if from == open.initiator { &open.request } else { &open.reply };
        let timer_from = repair::timer_from(class, &verdict.split, flow, path.probed_at());
        let held = verdict.split.has(DOUBTED | Cause::SendBuffer.bit());
        let shape = self.models[from].rounds.growth.shape();
        let (side, beat) = (flow.side, flow.unusual.cadence.lasts());
        let late = late_answer::seems(flow, segment, &verdict.split).filter(|_| follows != Follows::Own);
        let Some(open) = self.open.as_deref_mut() else { return };
        if from != open.initiator {
            open.on_reply(segment.seq, segment.at);
        }
        if follows != Follows::Own {
            open.request.answer_begins(segment.ack, spurious);
            open.request.charge_early(asked_rate, self.flows[open.initiator].side);
            open.begin_reply(&verdict.split, last, follows == Follows::Beginning);
            late.inspect(|&late| open.reply.seem_late(late));
            return;
        }
        let path = if from == open.initiator { &mut open.request } else { &mut open.reply };
        match class {
            SegmentClass::Retransmission { .. } => {
                path.repair(&verdict.split, last, segment, timer_from.map(|at| (at, flow.side)));
            }
            _ if path.last.is_none() => path.begin(last),
            _ => {
                let full = last.len >= full_size;
                if full && path.frontier().is_some_and(|before| last.at - before.at <= BEHIND_TAIL_MAX) {
                    path.blame_send_buffer(&last, side, full_size);
                }
                let early = early.filter(|_| path.keeps_early());
                let before = early.and_then(|early| Some((*path.frontier()?, early)));
                path.advance(&verdict.split, last, flow, timer_from);
                path.keep_beat(&verdict.split, beat, side);
                if let Some((before, (mss, ways))) = before {
                    path.keep_early(&verdict.split, &before, flow, mss, ways);
                }
                if held {
                    path.weigh(&verdict.split, shape, side);
                }
            }
        }
    }
}
