//! What was the interval before this segment spent on, and which path does it extend?

use tcpwhy_wire::{Duration, Segment};

use super::Connection;
use crate::bill::charge::Charge;
use crate::bill::exchange::Open;
use crate::bill::held::{DOUBTED, KEPT};
use crate::bill::split::Split;
use crate::estimate::rate::Rate;
use crate::flow::order::{LastData, Order};
use crate::rules::verdict::Verdict;
use crate::rules::wait::Wait;
use crate::rules::{self, cork, nagle, not_captured, repair};
use crate::words::cause::{Cause, Side};
use crate::words::limits::{BURST_GAP, QUEUED_MIN, RTO_MIN};
use crate::words::report::{Confidence, Detail, Trigger};

/// A path whose packets were late by this much varies.
pub(super) const VARIED_MIN: Duration = Duration::from_millis(1);

/// What a segment follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Follows {
    /// What its sender sent before.
    Own,
    /// The latest byte of the request that it answers.
    Request,
    /// The first piece of that request: what came later delayed nothing.
    Beginning,
    /// Nothing of the message under way.
    Nothing,
}

impl Connection {
    /// Decides what the interval before this segment was spent on, and since when.
    pub(super) fn bill(
        &mut self,
        segment: &Segment,
        from: usize,
        order: Order,
        mss: u32,
    ) -> (Verdict, Follows) {
        let nothing = || Verdict { split: Split::of(Duration::ZERO), trigger: Trigger::Write };
        let Some(open) = self.open.as_deref() else { return (nothing(), Follows::Own) };
        let path = if from == open.initiator { &open.request } else { &open.reply };
        let wait = path.frontier().map(|last| self.wait(segment, from, order, mss, last, path.index));
        if self.answers(open, segment, from, order) {
            // What a second request let the server write may have been held beside the first reply.
            let held = wait.as_ref().and_then(|wait| nagle::holds_answer(wait, open.request.last.as_ref()?));
            if let (Some(verdict), Some(wait)) = (held, &wait) {
                let lessons = rules::lessons(wait, &verdict);
                self.habits[from].take(&lessons);
                return (verdict, Follows::Own);
            }
            let timing = open.timing(segment);
            let own_time = timing.is_some_and(|timing| self.habits[from].answers.is_own(timing));
            let mut verdict = self.think(open, segment, order, own_time);
            if self.frames.is_doubtful() {
                verdict.split.doubt();
            }
            let small = segment.payload_len < mss;
            let habits = &mut self.habits[from];
            habits.rounds.on_message(segment.seq);
            habits.on_first_reply(&verdict, small);
            if let Some(timing) = timing {
                habits.answers.on_answer(timing, own_time);
            }
            return (verdict, if own_time { Follows::Beginning } else { Follows::Request });
        }
        let Some(wait) = wait else {
            self.habits[from].rounds.on_message(segment.seq);
            return (nothing(), Follows::Own);
        };
        if self.halves[1 - from].acked_unseen() && segment.at - wait.last.at >= BURST_GAP {
            // It may answer something that is missing from the capture.
            let charge =
                not_captured::charge(self.halves[from].side).evidence(wait.last.packet, segment.packet);
            let split = Split::of(segment.at - wait.last.at).rest(charge);
            return (Verdict { split, trigger: Trigger::Write }, Follows::Own);
        }
        let verdict = rules::judge(&wait);
        let verdict = self.crossed(open, &wait, from, &verdict).unwrap_or(verdict);
        let mut lessons = rules::lessons(&wait, &verdict);
        // Nothing of an answer had arrived: the application wrote all of it before it read.
        let read = open.reply_first.is_some_and(|first| segment.ack.after(first));
        if read || from != open.initiator || open.request.index > 0 {
            lessons.forget_shape();
        }
        self.habits[from].take(&lessons);
        (verdict, Follows::Own)
    }

    /// What looks held may answer what the peer sent by itself, before any of the request had reached it (both ends of HTTP/2
    /// begin with their settings, RFC 9113, 3.4): the sender waited for that to arrive, a part of one round trip. With the
    /// acknowledgement right behind it, only a sender that is known to mind Nagle may have written before.
    fn crossed(&self, open: &Open, wait: &Wait<'_>, from: usize, verdict: &Verdict) -> Option<Verdict> {
        let unanswered = from == open.initiator && open.reply_first.is_none() && wait.habits.nagle_held == 0;
        let peer = &self.halves[1 - from];
        let last = peer.last_data.filter(|_| unanswered && verdict.split.has(Cause::Nagle.bit()))?;
        let arrived = last.at + wait.own;
        let late = wait.segment.at - arrived;
        let read = peer.snd_nxt.is_some_and(|next| wait.segment.ack.at_or_after(next));
        if !read || arrived <= wait.last.at || late > wait.hair() || late < -wait.hair() {
            return None;
        }
        let mut split = Split::of(wait.gap);
        split.take(
            Charge::new(Cause::RoundTrip, wait.half.side, arrived - wait.last.at, Confidence::Likely)
                .evidence(last.packet, wait.segment.packet),
        );
        let own = Charge::new(Cause::SenderThink, wait.half.side, Duration::ZERO, Confidence::Likely)
            .evidence(last.packet, wait.segment.packet);
        Some(Verdict { split: split.rest(own), trigger: Trigger::Packet(last.packet) })
    }

    /// The interval before a segment that continues what its sender sent at `last`.
    pub(super) fn wait<'a>(
        &'a self,
        segment: &'a Segment,
        from: usize,
        order: Order,
        mss: u32,
        last: &'a LastData,
        index: usize,
    ) -> Wait<'a> {
        let answer = self.open.as_deref().filter(|open| from == open.initiator);
        let beside_answer =
            answer.and_then(|open| open.reply_first).is_some_and(|first| segment.ack.after(first));
        Wait {
            half: &self.halves[from],
            segment,
            order,
            last,
            gap: (segment.at - last.at).at_least_zero(),
            mss,
            own: self.delay(from),
            peer: self.delay(1 - from),
            habits: &self.habits[from],
            index,
            beside_answer,
            far_unknown: self.far_unknown(from),
        }
    }

    /// Whether the capture stands at least as near to this end as to the other.
    pub(super) fn is_near(&self, end: usize) -> bool {
        self.delay(end) <= self.delay(1 - end)
    }

    /// The rate at which the path lets this end's bytes through, as far as it has shown.
    pub(super) fn shown_rate(&self, end: usize) -> Option<Rate> {
        self.halves[end].rate(self.is_near(end))
    }

    /// Whether a segment of the responder answers request bytes that came since its last one.
    pub(super) fn answers(&self, open: &Open, segment: &Segment, from: usize, order: Order) -> bool {
        if from == open.initiator {
            return false;
        }
        let Some(request) = &open.request.last else { return false };
        let server = self.delay(1 - open.initiator);
        match open.reply.frontier() {
            None => matches!(order, Order::New | Order::HoleFill { .. }),
            Some(_) if self.frames.answers() => true,
            Some(reply) => {
                let reached = request.at + (server - server.divided_by(8));
                order == Order::New
                    && reached <= segment.at
                    && reached > reply.at
                    && request.at > reply.at - server
            }
        }
    }

    /// Whether the last of a request that went out again cannot be what the peer reacted to with `segment`: it came sooner
    /// than that can have reached the peer, as far as the way there is known, and does not echo its time stamp.
    fn is_spurious(&self, open: &Open, segment: &Segment) -> bool {
        let away = self.delay(1 - open.initiator);
        let echoed = segment.options.timestamps.is_some_and(|stamps| open.request.answers_repair(stamps.ecr));
        let too_late = |at| segment.at - at < away - away.divided_by(8);
        !echoed && open.request.repaired_at().is_some_and(too_late)
    }

    /// The interval from the last request byte to the first reply byte: a round trip and the server's own time.
    pub(super) fn think(
        &self,
        open: &Open,
        segment: &Segment,
        order: Order,
        from_beginning: bool,
    ) -> Verdict {
        let server = 1 - open.initiator;
        let request = &open.request;
        let own = self.delay(server);
        // A retransmission that the reply cannot have answered had repaired nothing.
        let spurious = self.is_spurious(open, segment);
        let from = if spurious { request.last.as_ref() } else { request.frontier() };
        let Some(from) = from else {
            return Verdict { split: Split::of(Duration::ZERO), trigger: Trigger::Write };
        };
        let half = &self.halves[server];
        let client = &self.halves[open.initiator];
        let since = if from_beginning { open.start } else { from.at };
        let mut split = Split::of(segment.at - since);
        let (path, stood) = self.way(server, half.side);
        split.take(path.evidence(from.packet, segment.packet));
        if let Some(stood) = stood {
            split.take(stood.evidence(from.packet, segment.packet));
        }
        if client.acked_unseen() || half.not_captured(segment) {
            // The request ended, or the reply began, with packets that are missing from the capture.
            let charge = not_captured::charge(half.side).evidence(from.packet, segment.packet);
            return Verdict { split: split.rest(charge), trigger: Trigger::Packet(from.packet) };
        }
        let rtt = own + self.delay(open.initiator);
        if let Some(charge) = repair::first_reply(half, client, (order, segment.at), split.left(), own, rtt) {
            split.take(charge.evidence(from.packet, segment.packet));
        }
        // Near the client, the request's last flight had to pass the bottleneck behind the capture.
        let busy = client.link.busy_from(from.at);
        if own > self.delay(open.initiator) && busy.is_positive() {
            let detail =
                Detail { rate_bps: client.rate(true).map(Rate::bits_per_second), ..Detail::default() };
            split.take(
                Charge::new(Cause::Bandwidth, client.side, busy, Confidence::Likely)
                    .evidence(from.packet, segment.packet)
                    .detail(detail),
            );
        }
        if let Some(queued) = half.queued_on_way.filter(|queued| queued.is_positive()) {
            let detail = Detail { form: Some("reply"), ..Detail::default() };
            split.take(
                Charge::new(Cause::Queueing, half.side, queued, Confidence::Likely)
                    .evidence(from.packet, segment.packet)
                    .detail(detail),
            );
        }
        // Of a request of several segments a slow link behind the capture may have taken a part.
        let short = open.request_bytes <= u64::from(self.mss(open.initiator)) || self.is_on_one_host();
        let near = own.times(9) <= rtt || (own < Duration::from_millis(1) && short);
        let habits = &self.habits[server];
        let small = segment.payload_len < self.mss(server);
        let lone = small && cork::agrees_alone(split.left(), half.rto.rto(), habits.corked);
        // What the server's kernel measured before the capture began is not known, and how long its timer runs.
        let unknown = small && self.assumed && split.left() >= RTO_MIN && habits.quick_replies == 0;
        if lone && habits.quick_replies == 0 {
            let charge = cork::alone(half, segment.payload_len, habits.corked > 0);
            return Verdict {
                split: split.rest(charge.evidence(from.packet, segment.packet)),
                trigger: Trigger::Timer,
            };
        }
        // A packet that is missing before it may be the first copy, or an acknowledgement that held it.
        let missed = half.missed_since_data > 0 && split.left() >= RTO_MIN;
        // As long as the timer is a sleep of a round number as well.
        let either = small
            && habits.quick_replies == 0
            && cork::is_of_timer(split.left(), half.rto.rto(), habits.corked);
        let lone = lone || unknown || missed || either;
        // Near the client, a request that was late on its way looks like a server that took longer.
        let varied = own > self.delay(open.initiator)
            && self.halves.iter().any(|half| half.queued_peak >= split.left().max(VARIED_MIN));
        let confidence = match (lone || varied, near) {
            (true, _) => Confidence::Possible,
            (false, true) => Confidence::Certain,
            (false, false) => Confidence::Likely,
        };
        let mut think = Charge::new(Cause::ServerThink, half.side, Duration::ZERO, confidence)
            .evidence(from.packet, segment.packet);
        if lone {
            think = think.detail(Detail { form: Some("or-cork"), ..Detail::default() });
        }
        Verdict { split: split.rest(think), trigger: Trigger::Packet(from.packet) }
    }

    /// The way between the capture and an end and back: the path's smallest round trip, and what stood in its queues
    /// during this whole connection, where other connections between the same hosts have seen it shorter.
    pub(super) fn way(&self, end: usize, sender: Side) -> (Charge, Option<Charge>) {
        let own = self.delay(end);
        // Without the handshake an end may be nearer than its quickest answer says, and is if it never answers without data.
        let sure = match self.halves[1 - end].acked_bare {
            _ if !self.assumed => Confidence::Certain,
            0 => Confidence::Possible,
            _ => Confidence::Likely,
        };
        let round_trip = |path| Charge::new(Cause::RoundTrip, sender, path, sure);
        let Some(path) = self.way.min(end).filter(|path| own - *path >= QUEUED_MIN) else {
            return (round_trip(own), None);
        };
        let varied = self.halves.iter().map(|half| half.queued_peak).max().unwrap_or_default();
        let queued = own - path;
        // A longer way that never varies is another way (another host behind the same address), not a queue.
        let seen = self.way.stood(end, self.now, queued);
        if queued < path.divided_by(4) || (varied < queued.divided_by(4) && !seen) {
            return (round_trip(own), None);
        }
        let confidence = if seen { Confidence::Likely } else { Confidence::Possible };
        let stood = Charge::new(Cause::Queueing, sender, queued, confidence);
        (round_trip(path), Some(stood.detail(Detail { form: Some("standing"), ..Detail::default() })))
    }

    /// Takes the billed segment into its path.
    pub(super) fn extend(
        &mut self,
        segment: &Segment,
        from: usize,
        order: Order,
        last: LastData,
        verdict: &Verdict,
        follows: Follows,
    ) {
        let Some(open) = self.open.as_deref().filter(|_| follows != Follows::Nothing) else { return };
        let spurious = self.is_spurious(open, segment);
        let half = &self.halves[from];
        let unsettled =
            if self.is_near(from) { !half.acknowledgements.is_settled() } else { half.rate(false).is_none() };
        let early = verdict.split.has(KEPT) && unsettled;
        let early = early.then(|| (self.mss(from), [self.delay(from), self.delay(1 - from)]));
        let asked_rate = self.shown_rate(open.initiator);
        let path = if from == open.initiator { &open.request } else { &open.reply };
        let timer_from = repair::timer_from(order, &verdict.split, half, path.probed_at());
        let held = verdict.split.has(DOUBTED | Cause::SendBuffer.bit());
        let shape = self.habits[from].rounds.growth.shape();
        let (side, beat) = (half.side, half.cadence.lasts());
        let Some(open) = self.open.as_deref_mut() else { return };
        if from != open.initiator {
            open.reply_first.get_or_insert(segment.seq);
        }
        if follows != Follows::Own {
            if spurious {
                open.request.discard();
            }
            let asked = &self.halves[open.initiator];
            open.request.charge_early(asked_rate, asked.side);
            open.join_pieces();
            let Open { request, reply, .. } = open;
            if follows == Follows::Beginning {
                reply.begin_with(&verdict.split, last);
            } else {
                reply.branch(request, &verdict.split, last);
            }
            return;
        }
        let path = if from == open.initiator { &mut open.request } else { &mut open.reply };
        match order {
            Order::Retransmission { .. } => {
                path.repair(&verdict.split, last, segment, timer_from.map(|at| (at, half.side)));
            }
            _ if path.last.is_none() => path.begin(last),
            _ => {
                let early = early.filter(|_| path.keeps_early());
                let before = early.and_then(|early| Some((*path.frontier()?, early)));
                path.advance(&verdict.split, last, half, timer_from);
                path.keep_beat(&verdict.split, beat, side);
                if let Some((before, (mss, ways))) = before {
                    path.keep_early(&verdict.split, &before, half, mss, ways);
                }
                if held {
                    path.weigh(&verdict.split, shape, side);
                }
            }
        }
    }
}
