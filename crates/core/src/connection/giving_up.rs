//! How long did the requester wait for a reply that never came, for the rest of one, or for one that
//! only closing ends?
//!
//! If it closes while bytes of the reply are missing, these were lost and not retransmitted until then.
//! If its request has arrived but either end closes before a byte of the reply, it waited that long,
//! provided that its protocol calls it a request. A reply whose head does not give its length ends with
//! the connection (RFC 9112, 6.3), and is waited for until then.

use tcpwhy_wire::{Duration, Instant, Seq};

use super::Connection;
use crate::bill::asked::Expects;
use crate::bill::exchange::Open;
use crate::flow::ends::{CLIENT, SERVER};
use crate::flow::segment_class::LastData;
use crate::rules::{ended, unrepaired};
use crate::words::limits::RTO_MIN;
use crate::words::report::Kind;

/// A client that closes later than this after its request no longer waits for the reply. Source: none
/// written down.
const GIVES_UP_MIN: Duration = Duration::from_secs(1);

impl Connection {
    /// Charges the wait for the reply to a request that had arrived but was not answered before the
    /// connection ended.
    #[cold]
    #[inline(never)]
    pub(super) fn weigh_unanswered(&self, open: &mut Open, is_parked: bool) {
        if open.kind() != Kind::OneWay || is_parked {
            return;
        }
        let (asker, server) = (open.initiator, 1 - open.initiator);
        let pending = self.talk.as_deref().and_then(|talk| talk.pending);
        let first = open.request_first;
        // After the hello that begins its session, nothing more is due from a client.
        let hello = self.talk.as_deref().and_then(|talk| talk.session[asker]);
        let greets = hello.is_some_and(|[_, end]| open.request_end == Some(end));
        // A server that does not understand the hello, and says so once its client is gone, has not
        // answered.
        let alone = greets && hello.is_some_and(|[begin, _]| first == Some(begin));
        let owed = pending.map_or(alone, |ask| {
            let asked = ask.asker == asker && (ask.is_over || greets) && ask.expects == Expects::Answer;
            asked && !ask.is_answering && first.is_some_and(|first| ask.seq.at_or_after(first))
        });
        let arrived = self.flows[asker].highest_ack.zip(open.request_end);
        let arrived = arrived.is_some_and(|(acked, end)| acked.at_or_after(end));
        let whole = open.pieces.is_empty() && open.request.repaired_at().is_none();
        let Some(asked) = open.request.last.filter(|_| owed && arrived && whole && !self.has_missed()) else {
            return;
        };
        let closed = [asker, server].map(|end| self.roles.closed_at[end].get().map(|at| at - asked.at));
        let said = |since| self.flows[server].last_data.is_some_and(|said| said.at >= since);
        let late = self.roles.closed_at[asker].get().is_some_and(said);
        let spoke = [said(asked.at), late];
        let Some(split) = ended::unanswered(&self.pair(), server, asked.packet, closed, spoke) else {
            return;
        };
        let wait: Duration = split.charges().map(|charge| charge.ns).sum();
        // The sequence number of a later ACK shows that the reply had been sent, and lost.
        let lost = self.flows[server].had_hole(asked.at + wait);
        let split = if lost { ended::lost(&self.pair(), server, asked.packet, wait) } else { split };
        open.on_reply(self.flows[server].snd_nxt.unwrap_or(Seq(0)), asked.at + wait);
        open.answer_behind(&split);
    }

    /// Whether the capture lacks packets that arrived: what it does not have may have been said.
    fn has_missed(&self) -> bool {
        self.flows.iter().any(|flow| flow.acked_unseen() || flow.missing_from_capture)
    }

    /// The responder closes at `at`: the end of a reply that nothing else marks was waited for until
    /// then.
    #[cold]
    #[inline(never)]
    pub(super) fn end_by_closing(&mut self, at: Instant, from: usize) {
        let is_open = self.talk.as_deref().is_some_and(|talk| talk.is_endless(from));
        let flow = &self.flows[from];
        // Nothing is missing before the FIN.
        let whole = flow.fin.is_some_and(|fin| flow.highest_ack.is_some_and(|acked| acked + 1 == fin));
        let (packet, rtt) = (self.packet_range[1], self.tap_rtt(CLIENT) + self.tap_rtt(SERVER));
        let Some(open) = self.open.as_deref_mut().filter(|_| is_open && whole) else { return };
        let Some(said) = open.reply.last.filter(|said| said.at < at) else { return };
        open.reply.commit();
        let waited = ended::with_connection(from, at - said.at, [said.packet, packet], rtt);
        open.reply.settle().charge(&waited);
        open.reply.last = Some(LastData { at, packet, ..said });
        open.packets[1] = packet;
    }

    /// Charges the wait from the last retransmission of a request that never arrived until the server
    /// closed or the client gave up with a reset, when the next retransmission would have been due.
    #[inline]
    pub(super) fn charge_never_arrived(&self, open: &mut Open) {
        if open.kind() == Kind::OneWay && open.initiator == CLIENT {
            self.charge_until_given_up(open);
        }
    }

    #[cold]
    #[inline(never)]
    fn charge_until_given_up(&self, open: &mut Open) {
        let reset = self.flows[CLIENT].fin.is_none();
        let gave_up = self.roles.closed_at[CLIENT].get().filter(|_| reset || self.has_given_up(open));
        // The first end to close ends the wait: nobody waits for the rest.
        if let Some(closed_at) = self.roles.closed_at[SERVER].get().into_iter().chain(gave_up).min() {
            self.charge_unheard_of(open, closed_at);
        }
    }

    /// Whether a client closed long after a request of which nothing has arrived: a client that only
    /// announces its last request closes at once.
    #[cold]
    pub(super) fn has_given_up(&self, open: &Open) -> bool {
        let closed_at = self.roles.closed_at[CLIENT].get();
        self.is_unheard_of(open) && closed_at.is_some_and(|at| at - open.start >= GIVES_UP_MIN)
    }

    pub(super) fn is_unheard_of(&self, open: &Open) -> bool {
        let Some(first) = open.request_first else { return false };
        match self.flows[CLIENT].highest_ack {
            Some(acked) => acked.at_or_before(first),
            // The client may have received something that is missing from the capture, which its own
            // ACKs would show.
            None => open.request_acks.is_some() && open.request_acks == self.flows[SERVER].highest_ack,
        }
    }

    #[cold]
    fn charge_unheard_of(&self, open: &mut Open, closed_at: Instant) {
        let none = self.is_unheard_of(open);
        // A request without a retransmission may still be on its way.
        let again = none && open.request.has_copies();
        let last = open.request.last.filter(|last| again && last.at > open.start && last.at < closed_at);
        // A server that closes sooner than any timer answers the last copy: that has arrived.
        let soon = RTO_MIN + self.tap_rtt(SERVER);
        let by_server = self.roles.closed_at[SERVER].get() == Some(closed_at);
        let last = last.filter(|last| !by_server || closed_at - last.at >= soon);
        if let Some(last) = last {
            let charge = ended::never_arrived(CLIENT, closed_at - last.at, last.packet);
            open.request.settle().charge(&charge);
        }
    }

    /// Charges the wait from the reply's last segment until the requester closed.
    #[inline]
    pub(super) fn charge_unrepaired(&self, open: &mut Open) {
        if let Some(closed_at) =
            self.roles.closed_at[open.initiator].get().filter(|_| open.kind() == Kind::Exchange)
        {
            let rtt_to_asker = self.tap_rtt(open.initiator);
            let last = open.last_path().frontier().map(|last| (last.at, last.packet));
            if let Some((at, packet)) = last {
                self.charge_missing(open, closed_at, (closed_at - rtt_to_asker - at, packet));
            }
        }
    }

    #[cold]
    fn charge_missing(&self, open: &mut Open, closed_at: Instant, wait: (Duration, u64)) {
        let speaker = 1 - open.initiator;
        if self.has_missed() {
            return;
        }
        if let Some(charge) = unrepaired::judge(&self.flows[speaker], self.mss(speaker), closed_at, wait) {
            open.last_path().settle().charge(&charge);
        }
    }
}
