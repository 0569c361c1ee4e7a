//! What do a usual handshake and a usual exchange cost?
//!
//! A handshake of one SYN and one SYN-ACK costs one line: the path. An answered exchange costs what its
//! reply did and the way back. A few comparisons rule out everything else; if they fail,
//! [`closing`](super) draws up the bill.

use tcpwhy_wire::{Duration, Instant};

use super::super::Connection;
use super::super::handing_over::SHOWN_AFTER;
use super::super::opened_late::takes_longer;
use super::super::turn::{Paired, STREAM_PIECES};
use crate::bill::account::Account;
use crate::bill::exchange::Open;
use crate::bill::revise::Revision;
use crate::bill::usual::OneLine;
use crate::estimate::maybe::Maybe;
use crate::flow::ends::{CLIENT, SERVER};
use crate::rules::{drain, handshake, late_start, round_trip};
use crate::tally::closed::Closed;
use crate::tally::ledger::Ledger;
use crate::words::limits::{BESIDE, QUEUED_MIN, ROUND_TRIP_PLAY};
use crate::words::report::{Confidence, Kind, Pairing};

impl Connection {
    /// How certain it is that the measured round trip to an end is all path: nothing if part of it may be a
    /// standing queue, since other connections know a shorter one, or if this one has varied.
    #[inline]
    pub(in crate::connection) fn all_path(&self, end: usize) -> Option<Confidence> {
        if self.varies(end) {
            return None;
        }
        match round_trip::above_least(&self.path_memory, end, self.tap_rtt(end)) {
            None if self.is_alone(end) => Some(Confidence::Likely),
            None => Some(Confidence::Certain),
            Some(above) => self.all_longer_path(end, above),
        }
    }

    /// Whether no other round trip agrees with the least to an end, or, among the first ones, hosts answer by themselves so much later that the least may
    /// be too long as well.
    #[inline]
    pub(in crate::connection) fn is_alone(&self, end: usize) -> bool {
        let least = self.tap_rtt(end);
        self.path_memory.is_alone(end, least)
            || least > QUEUED_MIN && (self.varies_at_first(end, least) || self.is_part_of_way(end, least))
    }

    /// Whether a capture between the ends has the client's part of the path by its answers alone: its host and its radio are in them, and when it
    /// began to wait passed no capture.
    fn is_part_of_way(&self, end: usize, least: Duration) -> bool {
        let other = self.tap_rtt(SERVER);
        end == CLIENT && least < other.times(BESIDE) && other < least.times(BESIDE)
    }

    fn varies_at_first(&self, end: usize, least: Duration) -> bool {
        let much = QUEUED_MIN.max(least.divided_by(ROUND_TRIP_PLAY));
        self.next_n <= SHOWN_AFTER && self.path_memory.varied_lately(end, self.now, least) >= much
    }

    /// The same for a round trip that is longer by `above` than the least known one.
    #[cold]
    #[inline(never)]
    fn all_longer_path(&self, end: usize, above: Duration) -> Option<Confidence> {
        let ways = [self.tap_rtt(CLIENT), self.tap_rtt(SERVER)];
        let queued = round_trip::standing(&self.flows, &self.path_memory, end, ways, self.now, above);
        if queued.is_none() { Some(Confidence::Likely) } else { None }
    }

    /// [`Connection::close_setup`] for a handshake without retransmission, loss or delay. Returns
    /// whether it was one; if not, nothing has changed.
    pub(super) fn close_usual_setup(&mut self, ledger: &mut Ledger) -> bool {
        let Some(setup) = &self.setup else { return false };
        let Some((answered_at, last)) = setup.only_syn_ack() else { return false };
        let (begun_at, first) = setup.first_syn;
        let took = answered_at - begun_at;
        let soon = took < handshake::LOST_AFTER && self.shown[CLIENT] && !self.is_told_late();
        let kept = self.opened_by_host(setup).is_some() || self.answers.came_much_sooner(took);
        if !soon || kept || self.flows[CLIENT].plain {
            return false;
        }
        let (Some(back), Some(way)) = (self.all_path(CLIENT), self.all_path(SERVER)) else { return false };
        let path = self.way_of(setup);
        if takes_longer(setup, path) && self.opened_late(setup, path).is_some() {
            return false;
        }
        let other = self.answers.is_of_another() || self.answers.came_sooner(took);
        let doubtful = self.is_opened_longer(took, path) || self.is_unproven() || other;
        let sure = if doubtful { Confidence::Likely } else { back.min(way) };
        let way = handshake::usual(took + self.tap_rtt(CLIENT), sure, [first, last]);
        let closed = Closed { start: begun_at, packets: [first, last], ..self.closed(ledger) };
        ledger.close(&closed, &OneLine::new(way).told());
        true
    }

    /// Whether bills are weighed once more before they are handed over.
    #[inline]
    pub(in crate::connection) fn is_told_late(&self) -> bool {
        self.models[SERVER].has_timer_hits() || self.set.is_some() || self.held_back.is_some()
    }

    /// Whether the exchange under way is answered, without doubt, as its connection ends.
    pub(super) fn ends_answered(&self) -> bool {
        let usual = |open: &Open| {
            open.initiator == CLIENT
                && open.reply_first.is_some()
                && !open.is_guess
                && !open.is_unheard
                && !open.is_parted
                && open.later.is_none()
                && open.reply.is_settled()
                && open.reply.index < STREAM_PIECES
                && open.waited < self.roles.polls().wait_min()
        };
        self.open.as_deref().is_some_and(usual)
            && self.shown[CLIENT]
            && !self.flows[CLIENT].plain
            && self.talk.is_none()
            && self.held_back.is_none()
            && !self.roles.has_parked()
            && self.paired != Paired::Guess
            && !self.frames.is_http2()
            && !self.frames.is_doubtful()
    }

    /// [`Connection::close_open`] at the connection's end, if [`Self::ends_answered`].
    pub(super) fn close_last(&mut self, ledger: &mut Ledger) {
        let Some(mut open) = self.open.take() else { return };
        self.charge_unrepaired(&mut open);
        self.settle_usual(&mut open);
        let packet = open.packets[1];
        let account = open.reply.settle();
        if let Some(sure) = self.all_path(CLIENT) {
            let way = (self.tap_rtt(CLIENT), sure);
            round_trip::charge_usual_way_back(account, self.flows[SERVER].side, way, packet);
        } else {
            round_trip::charge_way_back(&self.pair(), account, Kind::Exchange, SERVER, packet);
        }
        self.close_told(open, ledger);
    }

    /// The same before the client's next request.
    #[inline]
    pub(in crate::connection) fn close_usual(&mut self, ledger: &mut Ledger) {
        let Some(mut open) = self.open.take() else { return };
        self.settle_usual(&mut open);
        let is_own = self.asks_nothing(&open);
        let is_session = self.is_session(&open);
        let packet = open.packets[1];
        let answered_at = open.reply.last.as_ref().map_or(self.now, |last| last.at);
        let account = open.reply.settle();
        self.charge_usual_way_back(account, answered_at, packet);
        if is_session {
            account.revise(Revision::SetUpTls { asker: self.flows[CLIENT].side });
        }
        if is_own {
            account.revise(Revision::MayBeOwn { server: self.flows[SERVER].side });
        }
        self.close_told(open, ledger);
    }

    /// Charges what the link and a late start of the request took besides.
    #[inline]
    fn settle_usual(&self, open: &mut Open) {
        if let Some(last) = &open.reply.last
            && self.flows[SERVER].unusual.busy_from(last.at).is_positive()
        {
            drain::charge(
                &self.flows[SERVER],
                self.mss(SERVER),
                [self.tap_rtt(SERVER), self.tap_rtt(CLIENT)],
                open,
            );
        }
        if open.way_base.is_some() || open.late.is_some() {
            late_start::charge(&self.flows[CLIENT], open);
        }
    }

    /// [`Connection::charge_way_back`] of a usual reply, all of which had passed at `answered_at`.
    #[inline]
    fn charge_usual_way_back(&self, account: &mut Account, answered_at: Instant, packet: u64) {
        let rtt_to_client = self.tap_rtt(CLIENT);
        if self.is_acked_late(answered_at, rtt_to_client, SERVER) {
            round_trip::charge_doubtful_way_back(&self.pair(), account, SERVER, packet);
        } else if let Some(sure) = self.all_path(CLIENT) {
            let way = (rtt_to_client, sure);
            round_trip::charge_usual_way_back(account, self.flows[SERVER].side, way, packet);
        } else {
            round_trip::charge_way_back(&self.pair(), account, Kind::Exchange, SERVER, packet);
        }
    }

    /// Everything is charged: learns which end asks, and hands the exchange over.
    #[expect(clippy::inline_always, reason = "each usual request passes it")]
    #[inline(always)]
    fn close_told(&mut self, mut open: Box<Open>, ledger: &mut Ledger) {
        let (wait, idle) = (open.waited - self.tap_rtt(SERVER), open.client_idle);
        let (asked_at, len) = (open.request_at(), open.request_bytes as u32);
        if self.assumed || self.paired == Paired::Unread {
            self.temper_assumed(&mut open, Kind::Exchange);
        }
        if self.greeted {
            self.doubt_asked(&mut open);
        }
        let account = open.reply.settle();
        self.last_wait_end = Maybe::of(open.start + account.total());
        self.roles.on_question(len, wait, false, idle, asked_at, open.reply_bytes);
        let closed = Closed {
            n: open.n,
            kind: Kind::Exchange,
            initiator: self.flows[CLIENT].side,
            by: Some(Pairing::OnlyOpen),
            start: open.start,
            client_idle: open.client_idle,
            request_bytes: open.request_bytes,
            reply_bytes: open.reply_bytes,
            packets: open.packets,
            ..self.closed(ledger)
        };
        let account = open.reply.settle();
        match account.usual() {
            _ if self.is_told_late() || self.is_way_to_show(closed.n) => {
                self.hand_over(closed, account, ledger);
            }
            Some(usual) => ledger.close(&closed, &usual.told()),
            None => ledger.close(&closed, account.bill()),
        }
        self.spare = Some(open);
    }
}
