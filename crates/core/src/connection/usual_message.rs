//! What does a usual message change in the exchange under way?
//!
//! A request of one segment ends the exchange before it ([`closing`](super::closing)) and begins the
//! next one; a reply of one segment costs the path and the server's own time. Anything more, or any
//! doubt, is a matter for the general path ([`usual`](super::usual)).

use tcpwhy_wire::Duration;

use super::Connection;
use crate::bill::exchange::Open;
use crate::bill::usual::UsualBill;
use crate::flow::ends::{CLIENT, SERVER};
use crate::flow::packed::Packed;
use crate::flow::segment_class::SegmentClass;
use crate::rules::server_think::VARIED_MIN;
use crate::rules::{cork, late_answer, server_think};
use crate::tally::ledger::Ledger;
use crate::words::cause::Cause;
use crate::words::limits::{BESIDE, HELD_BACK_MIN, NEAR_MAX};
use crate::words::report::Confidence;

impl Connection {
    /// The client's next request closes the exchange under way, and begins the next one.
    #[inline(never)]
    pub(super) fn turn_over_usual(&mut self, segment: &Packed, ledger: &mut Ledger) {
        if self.open.is_some() {
            if !self.setup_billed && !self.waits_for_a_shorter_way() {
                self.close_setup(None, ledger);
            }
            self.close_usual(ledger);
        }
        self.begin_usual(segment, ledger);
    }

    /// [`Connection::begin`] for the client's request, and its path's first segment.
    #[inline]
    fn begin_usual(&mut self, segment: &Packed, ledger: &mut Ledger) {
        let mut open = self.spare.take().unwrap_or_else(|| ledger.places.take());
        self.frames.on_message();
        if self.next_n == 0 && self.setup.is_some() {
            self.next_n = 1; // 0 is the setup
        }
        let at = segment.at;
        let idle_since = self.idle_since();
        let idle = idle_since.map_or(Duration::ZERO, |since| (at - since).at_least_zero());
        open.restart(self.next_n, CLIENT, at, idle, (at, segment.packet));
        self.next_n += 1;
        (open.request_first, open.first_len) = (Some(segment.seq), segment.payload_len);
        if self.known_rtt(CLIENT) >= self.known_rtt(SERVER) {
            open.way_base = self.flows[CLIENT].clock.base_with_last().into();
            if self.flows[CLIENT].queued_on_way.get().is_some_and(Duration::is_positive)
                && let Some(late) = self.late_on_its_way(&segment.unpack(), CLIENT, idle_since)
            {
                open.late = Some(Box::new(late));
            }
        }
        self.open = Some(open);
    }

    /// [`Connection::bill`] for the first segment of a reply.
    #[inline(never)]
    pub(super) fn answer_usual(&mut self, segment: &Packed) {
        let Some(open) = self.open.as_deref() else { return };
        if open.request.index > 0 {
            self.on_both_answered(segment);
        }
        let Some(open) = self.open.as_deref() else { return };
        let Some(asked) = open.request.last.as_ref() else { return };
        let (flow, client) = (&self.flows[SERVER], &self.flows[CLIENT]);
        let rtt_to_server = self.known_rtt(SERVER);
        let gap = (segment.at - asked.at).at_least_zero();
        let path = rtt_to_server.at_least_zero().min(gap);
        let think = gap - path;
        let all_path = self.all_path(SERVER);
        let queued = flow.queued_on_way.get().is_some_and(Duration::is_positive);
        let varies = think >= VARIED_MIN
            && self.path_memory.varied_lately(SERVER, self.now, rtt_to_server) >= VARIED_MIN;
        let late =
            think >= HELD_BACK_MIN || varies || self.path_memory.queued_lately(SERVER, self.now).is_some();
        let link = client.unusual.busy_from(asked.at).is_positive();
        // If an end turns out to be nearer with this, another host may sit beyond it.
        let plain = !queued && !late && !link && !self.path_memory.news;
        let Some(sure) = all_path.filter(|_| plain) else { return self.answer_delayed(segment) };
        let (confidence, server) = (self.usual_confidence(open, think), flow.side);
        let packets = [asked.packet, segment.packet];
        self.models[SERVER].on_quick_reply(think);
        let Some(open) = self.open.as_deref_mut() else { return };
        open.on_reply(segment.seq, segment.at);
        open.answer(|| {
            let sure = [sure, Confidence::Certain];
            UsualBill { sure, packets, ..UsualBill::new(path, think, confidence, server) }
        });
    }

    /// What a reply to a request in two pieces shows of them.
    #[inline(never)]
    fn on_both_answered(&mut self, segment: &Packed) {
        let rate = self.shown_rate(CLIENT);
        let timing = self.open.as_deref().and_then(|open| self.timing(open, segment.at, SERVER));
        let Some(open) = self.open.as_deref_mut() else { return };
        open.request.charge_early(rate, self.flows[CLIENT].side);
        if let Some(timing) = timing {
            self.models[SERVER].answers.on_answer(timing, false);
        }
    }

    /// The same for a reply that something else may have delayed, which takes the full judgement.
    #[inline(never)]
    fn answer_delayed(&mut self, segment: &Packed) {
        let Some(open) = self.open.as_deref() else { return };
        let (whole, class) = (segment.unpack(), SegmentClass::New);
        let pair = self.pair();
        let mut verdict = server_think::judge(&pair, open, &whole, class, false);
        let reply = cork::late_reply(&pair, open, &whole, Duration::ZERO);
        if let Some(held) = self.held_beside_earlier(open, &whole, SERVER, class) {
            verdict.split.hold(Cause::ServerThink, &held);
        }
        let may_be_none = self.weigh_answer(open, segment.payload_len, &mut verdict);
        self.models[SERVER].on_first_reply(&verdict, reply, false);
        let late = late_answer::seems(&self.flows[SERVER], &whole, &verdict.split);
        let Some(open) = self.open.as_deref_mut() else { return };
        open.on_reply(segment.seq, segment.at);
        open.is_unheard |= may_be_none;
        open.answer_behind(&verdict.split);
        late.inspect(|&late| open.reply.seem_late(late));
    }

    /// The confidence that the server itself took the time before a reply: what [`server_think::judge`]
    /// says of a short one.
    #[inline]
    fn usual_confidence(&self, open: &Open, think: Duration) -> Confidence {
        let (rtt_to_server, rtt_to_client) = (self.known_rtt(SERVER), self.known_rtt(CLIENT));
        if rtt_to_server > rtt_to_client {
            let most = server_think::varies_from(think);
            if self.flows.iter().any(|flow| flow.queued_peak >= most) {
                return Confidence::Possible;
            }
        }
        let short = open.request_bytes <= u64::from(self.sizes[CLIENT]);
        let near = rtt_to_server.times(BESIDE) <= rtt_to_server + rtt_to_client
            || (rtt_to_server < NEAR_MAX && short);
        if near { Confidence::Certain } else { Confidence::Likely }
    }
}
