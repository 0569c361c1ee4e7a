//! When does a finished message go to the ledger: at once, or once nothing can change it any more?

use tcpwhy_wire::{Duration, Segment};

use super::Connection;
use super::held_back::Finished;
use crate::bill::account::Account;
use crate::bill::exchange::Open;
use crate::bill::spare::Copies;
use crate::estimate::timer_hits::TimerHits;
use crate::flow::ends::{CLIENT, SERVER, side};
use crate::rules::{cork, needless};
use crate::tally::closed::Closed;
use crate::tally::ledger::Ledger;
use crate::words::report::Kind;

/// Exchanges after which a path that still shows no second round trip is taken to vary. Source: none written
/// down.
pub(super) const SHOWN_AFTER: u64 = 8;

impl Connection {
    /// Hands a finished exchange to the ledger, or holds it back.
    pub(super) fn hand_over(&mut self, closed: Closed, account: &mut Account, ledger: &mut Ledger) {
        if self.set.is_some() {
            self.leave_out_set(&closed, account);
        }
        if self.is_told_late() || self.is_way_to_show(closed.n) && closed.kind == Kind::Exchange {
            self.hand_over_late(closed, account, ledger);
        } else {
            ledger.close(&closed, account.bill());
        }
    }

    /// Whether one of the first exchanges has been billed a round trip that no other agrees with so far: the
    /// path may prove to be shorter with the next one.
    #[inline]
    pub(super) fn is_way_to_show(&self, n: u64) -> bool {
        let is_single = |end: usize| self.shown[end] && self.path_memory.is_single(end, self.tap_rtt(end));
        n <= SHOWN_AFTER && (is_single(SERVER) || is_single(CLIENT))
    }

    /// The same if a reply of the server's has come as late as a timer, something was retransmitted, or the
    /// path may be shorter.
    #[cold]
    fn hand_over_late(&mut self, closed: Closed, account: &mut Account, ledger: &mut Ledger) {
        let model = &self.models[SERVER];
        let (hits, shown) = (model.timer_hits(), self.have_timers_shown());
        let copied = self.held_back.as_ref().is_some_and(|held| held.waits(closed.packets, self.now));
        let waits = copied || self.is_way_to_show(closed.n);
        if shown && !waits {
            self.release(ledger);
        }
        let is_reply = closed.kind == Kind::Exchange && closed.initiator != side(SERVER) && !shown;
        let reply = hits.last_in(closed.packets);
        let reply = reply.filter(|reply| is_reply && u64::from(reply.len) == closed.reply_bytes);
        let waits_for_none = self.held_back.as_ref().is_none_or(|held| held.finished.is_empty());
        if reply.is_none() && !waits && waits_for_none {
            if let Some(held) = &mut self.held_back {
                held.clear_spare(closed.packets, account);
            }
            return ledger.close(&closed, account.bill());
        }
        let first = self.held_back.get_or_insert_default().push(closed, account, reply);
        self.hand_over_held(first, ledger);
    }

    /// Whether it is known if timers held replies, or there are no such replies.
    fn have_timers_shown(&self) -> bool {
        let model = &self.models[SERVER];
        !model.has_timer_hits() || cork::is_refuted(model) || model.timer_hits().are_proven()
    }

    /// Releases the exchanges held back: all that could change them is known.
    pub(super) fn release(&mut self, ledger: &mut Ledger) {
        let Some(held) = &mut self.held_back else { return };
        let finished = std::mem::take(&mut held.finished);
        self.hand_over_held(finished, ledger);
        self.forget_held();
    }

    fn hand_over_held(&mut self, held: impl IntoIterator<Item = Finished>, ledger: &mut Ledger) {
        let model = &self.models[SERVER];
        let hits = if cork::is_refuted(model) { TimerHits::default() } else { model.timer_hits() };
        let way = self.shown_way();
        for mut finished in held {
            finished.revise(hits);
            if let Some(least) = way {
                finished.shorten(least);
            }
            if let Some(held) = &mut self.held_back {
                held.clear_spare(finished.closed.packets, &mut finished.account);
            }
            // Its connection may have been numbered since, and its service moved.
            let Closed { connection, service, .. } = self.closed(ledger);
            let closed = Closed { connection, service, ..finished.closed };
            ledger.close(&closed, finished.account.bill());
        }
    }

    /// The connection's least round trip; nothing if that need not lead to the host that answers.
    fn shown_way(&self) -> Option<Duration> {
        let other = self.beyond().is_some() || self.may_be_behind() || self.shown != [true; 2];
        if other { None } else { self.rtt_min() }
    }

    fn forget_held(&mut self) {
        if self.held_back.as_ref().is_some_and(|held| held.is_empty()) {
            self.held_back = None;
        }
    }

    /// Keeps the retransmissions of a finished message that may yet prove needless: near the sender
    /// only the receiver's ACKs tell that, near the receiver the capture itself shows it.
    #[cold]
    #[inline(never)]
    pub(super) fn keep_copies(&mut self, open: &Open) {
        if self.flows.iter().any(|flow| flow.timestamps) {
            return;
        }
        let ends = [open.initiator, 1 - open.initiator];
        for (end, path) in ends.into_iter().zip([&open.request, &open.reply]) {
            let beside = self.tap_rtt(end) > self.tap_rtt(1 - end) && self.tap_rtt(1 - end).is_positive();
            if let Some(copies) = path.copies().filter(|copies| !beside && copies.are_undecided(self.now)) {
                self.held_back.get_or_insert_default().copies[end].append(copies);
            }
        }
    }

    /// Learns from this segment about retransmissions in finished messages, and hands over those that
    /// are decided.
    #[cold]
    #[inline(never)]
    pub(super) fn weigh_kept(&mut self, segment: &Segment, from: usize, ledger: &mut Ledger) {
        let (end, now) = (1 - from, self.now);
        let soonest = needless::soonest(self.tap_rtt(from));
        let repeats =
            !self.flows[end].unusual.repeated_unasked && self.repeats_acknowledgement(segment, from);
        let Some(held) = self.held_back.as_deref_mut() else { return };
        if held.copies.iter().all(Copies::is_empty) {
            return;
        }
        let told = segment.options.sack().first().filter(|block| block.end.at_or_before(segment.ack));
        let repeated = || if repeats { held.copies[end].only_bytes(now) } else { None };
        if let Some(block) = told.copied().or_else(repeated) {
            held.copies[end].name(block, now - soonest);
        }
        if segment.payload_len > 0 {
            held.copies[from].note_after(segment);
        }
        let waits = self.is_way_to_show(self.next_n);
        while let Some(finished) =
            self.held_back.as_deref_mut().filter(|_| !waits).and_then(|held| held.pop_decided(now))
        {
            self.hand_over_held([finished], ledger);
        }
        if let Some(held) = self.held_back.as_deref_mut() {
            held.copies.iter_mut().for_each(|copies| copies.forget_decided(now));
        }
        self.forget_held();
    }
}
