//! What do an ACK, and the segment that carries it, show of retransmissions and of a reply?

use tcpwhy_wire::{Duration, Instant, SackBlock, Segment};

use super::Connection;
use crate::bill::revise::Revision;
use crate::bill::spare::CameTwice;
use crate::rules::{late_request, needless, stood};
use crate::words::limits::{HELD_BACK_MIN, HOST_VARIATION, ROUND_TRIP_PLAY};

impl Connection {
    /// All is acknowledged behind a retransmission: whether the echoed time stamp says that its original had arrived.
    #[cold]
    #[inline(never)]
    pub(super) fn discard_if_first_answered(&mut self, to: usize, echoed: Option<u32>, cut: bool) {
        let way = self.tap_rtt(1 - to);
        let (newly, acked) = (self.flows[to].newly_acked, self.flows[to].highest_ack);
        // A D-SACK that says so may be cut off.
        let whole = !cut && self.flows.iter().all(|flow| !flow.options_cut);
        let Some(open) = self.open.as_deref_mut() else { return };
        let path = if to == open.initiator { &mut open.request } else { &mut open.reply };
        // Sooner than any round trip so far, it may answer the first transmission all the same.
        let in_time = path.repaired_at().is_some_and(|at| self.now - at >= way);
        if let Some(acked) = acked.filter(|_| newly > 0 && in_time && whole) {
            path.hear_of_earlier(acked, newly);
        }
        if echoed.is_some_and(|echoed| path.answered_before_repair(echoed)) {
            self.discard_answered(to, false);
        }
    }

    /// A D-SACK (RFC 2883): the retransmitted data had already arrived, unless the block covers only
    /// part of it.
    #[cold]
    pub(super) fn discard_spare(&mut self, to: usize, block: SackBlock) {
        let mss = self.mss(to);
        let told_within = self.tap_rtt(1 - to) + HELD_BACK_MIN;
        let Some(open) = &mut self.open else { return };
        let path = if to == open.initiator { &mut open.request } else { &mut open.reply };
        if let Some(CameTwice { stood, packets, .. }) = path.take_twice(block, self.now - told_within) {
            path.revise(Revision::AnswerStood { server: self.flows[to].side, ns: stood, packets });
        }
        if path.is_told_in_part(block, mss) {
            return;
        }
        if self.flows[to].newly_acked > 0 {
            self.discard_answered(to, true);
        } else {
            path.discard();
        }
    }

    /// What is acknowledged now had arrived before it was retransmitted. If the ACK is later than any
    /// host would send it, the path held up the data or the ACK. A duplicate that the receiver has
    /// `told` of is acknowledged on arrival: if none was sent recently enough, the path held that up as
    /// well.
    #[cold]
    pub(super) fn discard_answered(&mut self, to: usize, told: bool) {
        self.flows[to].unusual.shown().spare_acked_at = self.now;
        let Some(mut open) = self.open.take() else { return };
        let path = if to == open.initiator { &mut open.request } else { &mut open.reply };
        if path.last.is_some_and(|last| late_request::is_acked_late(&self.pair(), self.now - last.at)) {
            let soonest = needless::soonest(self.tap_rtt(1 - to));
            let copied = path.copied_by(self.now - soonest);
            let stood = copied.filter(|at| told && late_request::is_acked_late(&self.pair(), self.now - *at));
            path.discard_late(stood.map(|_| self.now));
        } else {
            path.discard();
        }
        self.open = Some(open);
    }

    /// Whether an ACK says what its sender had said before and nothing else, with all that its peer has sent acknowledged: it
    /// answers a segment that had arrived before. With time stamps, the one before it has shown which that was.
    #[inline]
    pub(super) fn repeats_acknowledgement(&self, segment: &Segment, from: usize) -> bool {
        let peer = &self.flows[1 - from];
        segment.payload_len == 0
            && peer.highest_ack == Some(segment.ack)
            && peer.snd_nxt == Some(segment.ack)
            && segment.options.timestamps.is_none()
            && self.says_nothing_else(segment, from)
    }

    /// A keep-alive begins before the next byte, a window update has another window.
    #[cold]
    #[inline(never)]
    fn says_nothing_else(&self, segment: &Segment, from: usize) -> bool {
        let bare = segment.seq_len() == 0 && segment.options.sack().is_empty() && !segment.options.cut;
        let peer = &self.flows[1 - from];
        bare && self.flows[from].snd_nxt == Some(segment.seq)
            && peer.last_window() == self.window(segment, from)
            && peer.unusual.probed_at == Instant::MIN
    }

    /// What an ACK from this end shows of its peer's retransmissions.
    #[inline]
    pub(super) fn weigh_copies(&mut self, segment: &Segment, from: usize, spurious: bool, repeats: bool) {
        if !self.open.as_ref().is_some_and(|open| open.request.has_copies() || open.reply.has_copies()) {
            if repeats {
                self.flows[1 - from].unusual.shown().repeated_unasked = true;
            }
            return;
        }
        let Some(mut open) = self.open.take() else { return };
        let path = if from == open.initiator { &mut open.reply } else { &mut open.request };
        let told = segment.options.sack().first().copied().filter(|_| spurious);
        let unasked = self.flows[1 - from].unusual.repeated_unasked;
        let told = told.or_else(|| if repeats && !unasked { path.only_copied(segment.at) } else { None });
        if let Some(revision) = needless::judge(&self.pair(), path, segment, from, told) {
            open.request.revise(revision);
            open.reply.revise(revision);
            self.flows[1 - from].unusual.shown().spare_acked_at = self.now;
        }
        let sender = &self.flows[1 - from];
        let whole = sender.highest_ack == sender.snd_nxt;
        let asked = whole && told.is_some() && from != open.initiator && open.reply.last.is_none();
        if asked && needless::has_stood(&self.pair(), &open.request, segment, from) {
            open.request.stood_beside_copy(self.now);
        }
        self.open = Some(open);
    }

    /// An ACK that covers less than the reply it comes with had left first, as soon as its sender had
    /// the request or part of it. The path had brought the two together, however late.
    #[cold]
    #[inline(never)]
    pub(super) fn weigh_overtaken(&mut self, segment: &Segment, from: usize) {
        let far = self.tap_rtt(from) > self.tap_rtt(1 - from);
        let Some(open) = self.open.as_deref_mut().filter(|open| far && from != open.initiator) else {
            return;
        };
        let together = self.now - (open.request_at() + open.waited) <= late_request::TOGETHER;
        let of_question = open.request_first.is_some_and(|first| segment.ack.after(first));
        if open.reply.last.is_some() && together && of_question {
            open.reply.revise(Revision::CameTogether { server: self.flows[from].side });
        }
    }

    /// Notes that this segment of a reply came with its first transmission: a copy of the capture's, or both had stood.
    #[cold]
    #[inline(never)]
    pub(super) fn note_twice(&mut self, segment: &Segment, from: usize) {
        let Some(mut open) = self.open.take() else { return };
        if let Some(stood) = stood::judge_unnumbered(&self.pair(), &open, segment, from) {
            let bytes = [segment.seq, segment.seq + segment.payload_len];
            let packets = open.reply.last.map_or([0; 2], |last| [last.packet, segment.packet]);
            open.reply.note_twice(CameTwice { at: segment.at + self.set_back, bytes, stood, packets });
        }
        self.open = Some(open);
    }

    /// What a retransmission from this end shows of the reply that came before it.
    #[cold]
    pub(super) fn weigh_copy(&mut self, segment: &Segment, from: usize) {
        let Some(mut open) = self.open.take() else { return };
        if let Some(stood) = stood::judge(&self.pair(), &open, segment, from) {
            let came_at = open.request_at() + open.waited;
            let earlier = open.request_at() + self.tap_rtt(from) > came_at - stood;
            let spare = if earlier { open.request.only_spare() } else { None };
            let late = spare.map_or(Duration::ZERO, |spare| open.reply.revise(Revision::CopySpare(spare)));
            let packets = open.reply.last.map_or([0; 2], |last| [last.packet, segment.packet]);
            // The clock went on in between, while both came together: as late as the answer seemed by it, it was.
            let seemed = open.reply.take_seemed_late().unwrap_or_default();
            let ns = (stood.max(seemed) - late).at_least_zero();
            open.reply.revise(Revision::AnswerStood { server: self.flows[from].side, ns, packets });
        }
        let path = if from == open.initiator { &mut open.request } else { &mut open.reply };
        if let Some(pause) =
            path.take_pause(|pause| stood::ended_with_copy(&self.pair(), pause, segment, from))
        {
            let sender = self.flows[from].side;
            path.revise(Revision::PauseStood { sender, pause, packet: segment.packet });
        }
        // Whoever asks again has no answer yet, though that has had the time to arrive.
        let way = self.tap_rtt(from) + self.tap_rtt(from).divided_by(ROUND_TRIP_PLAY) + HOST_VARIATION;
        let far = from == open.initiator && self.tap_rtt(from) > self.tap_rtt(1 - from);
        let answered = open.reply.last.filter(|_| far);
        open.is_unheard |= answered.is_some_and(|last| segment.at - last.at > way);
        self.open = Some(open);
    }
}
