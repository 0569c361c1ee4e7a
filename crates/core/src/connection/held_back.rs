//! Which finished exchanges wait for what the next ones show?
//!
//! A server that takes as long as a timer runs and a cork look alike until several of its replies have left on the tick of its kernel
//! (`estimate/timer_hits.rs`). So an exchange whose reply may be one of these goes to the ledger once that has shown, or cannot show
//! any more: a reply that came much sooner, the end of the connection, or more exchanges than a proof needs. What is billed first is
//! its server's time, which is far more usual, and stays so unless the proof comes.
//!
//! What a timer seemed to repair waits as well until its receiver has had the time to say that it had been there before (RFC 2883): of a
//! path that stands still, that comes behind the answer. Where there are time stamps, the acknowledgement itself says which copy it is for (RFC 3522).

use std::collections::VecDeque;

use tcpwhy_wire::{Instant, Segment};

use super::Connection;
use crate::bill::account::Account;
use crate::bill::exchange::Open;
use crate::bill::line::LineView;
use crate::bill::revise::Revision;
use crate::bill::spare::Copies;
use crate::estimate::ticks::LateReply;
use crate::estimate::timer_hits::{OfTimer, SHORTEST, TimerHits};
use crate::flow::ends::{SERVER, side};
use crate::rules::cork;
use crate::tally::closed::Closed;
use crate::tally::ledger::Ledger;
use crate::words::cause::Cause;
use crate::words::form::Form;
use crate::words::report::{Confidence, Kind};

/// As many as a proof needs whose waits are alike, but for the last one (`PROVEN_POINTS` in `estimate/timer_hits.rs`).
const HELD_MAX: usize = 8;

/// Finished exchanges in order, none of which may overtake another one.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct HeldBack {
    finished: VecDeque<Finished>,
    /// What either end has sent again of messages that are over, whether these are still here or not.
    copies: [Copies; 2],
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Finished {
    pub closed: Closed,
    pub account: Account,
    /// Its reply, if that was of one segment that came when the timer would have let it go.
    reply: Option<LateReply>,
}

impl HeldBack {
    /// Takes one more. Returns the first one where they are too many.
    fn push(&mut self, closed: Closed, account: &mut Account, reply: Option<LateReply>) -> Option<Finished> {
        self.finished.push_back(Finished { closed, account: std::mem::take(account), reply });
        if self.finished.len() > HELD_MAX { self.finished.pop_front() } else { None }
    }

    /// Whether it may still turn out that a message of these packets, or one that is kept back, was repaired for nothing.
    fn waits(&self, packets: [u64; 2], now: Instant) -> bool {
        let may_tell = |packets| self.copies.iter().any(|copies| copies.may_tell_of(packets, now));
        may_tell(packets) || self.finished.iter().any(|finished| may_tell(finished.closed.packets))
    }

    /// What was charged for copies in it that were for nothing was the path's.
    fn clear_spare(&mut self, packets: [u64; 2], account: &mut Account) {
        for copies in &mut self.copies {
            if let Some(spare) = copies.take_told_of(packets) {
                account.revise(Revision::CopySpare(spare));
            }
        }
    }

    /// The first one, where nothing more can show of it.
    fn pop_decided(&mut self, now: Instant) -> Option<Finished> {
        let first = self.finished.front().filter(|first| first.reply.is_none())?;
        let packets = first.closed.packets;
        let waits = self.copies.iter().any(|copies| copies.may_tell_of(packets, now));
        if waits { None } else { self.finished.pop_front() }
    }

    fn is_empty(&self) -> bool {
        self.finished.is_empty() && self.copies.iter().all(Copies::is_empty)
    }

    /// Bytes that it takes.
    pub(super) fn heap(&self) -> usize {
        let accounts: usize = self.finished.iter().map(|finished| finished.account.heap()).sum();
        let copies: usize = self.copies.iter().map(Copies::heap).sum();
        size_of::<Self>() + self.finished.capacity() * size_of::<Finished>() + accounts + copies
    }
}

impl Finished {
    /// Applies what all replies together say of this one.
    pub(super) fn revise(&mut self, hits: TimerHits) {
        let Some(reply) = self.reply else { return };
        let server = side(SERVER);
        let held = |line: LineView<'_>| line.cause() == Cause::ServerThink && line.ns() >= SHORTEST;
        if !self.account.bill().summary().any(held) {
            return;
        }
        let revision = match hits.of_timer(reply) {
            OfTimer::OnTick => {
                let detail = cork::whole_reply(reply.len, reply.timer);
                // A program may sleep by its kernel's tick as well.
                Revision::Corked { server, detail, confidence: Confidence::Possible }
            }
            OfTimer::MayBe => Revision::MayBeOther { server, form: Form::OrCork },
            OfTimer::Unknown => return,
        };
        self.account.revise(revision);
    }
}

impl Connection {
    /// Hands what is over to the ledger, or keeps it back.
    pub(super) fn hand_over(&mut self, closed: Closed, account: &mut Account, ledger: &mut Ledger) {
        if self.set.is_some() {
            self.leave_out_set(&closed, account);
        }
        if self.models[SERVER].has_timer_hits() || self.held_back.is_some() {
            self.hand_over_late(closed, account, ledger);
        } else {
            ledger.close(&closed, account.bill());
        }
    }

    /// The same where a reply of the server's has come as late as a timer, or something was sent again.
    #[cold]
    fn hand_over_late(&mut self, closed: Closed, account: &mut Account, ledger: &mut Ledger) {
        let model = &self.models[SERVER];
        let (hits, shown) = (model.timer_hits(), self.have_timers_shown());
        let waits = self.held_back.as_ref().is_some_and(|held| held.waits(closed.packets, self.now));
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

    /// Whether it is known if timers held replies, or there are none.
    fn have_timers_shown(&self) -> bool {
        let model = &self.models[SERVER];
        !model.has_timer_hits() || cork::is_refuted(model) || model.timer_hits().are_proven()
    }

    /// Nothing more can show of those that were kept back, or it has shown.
    pub(super) fn release(&mut self, ledger: &mut Ledger) {
        let Some(held) = &mut self.held_back else { return };
        let finished = std::mem::take(&mut held.finished);
        self.hand_over_held(finished, ledger);
        self.forget_held();
    }

    fn hand_over_held(&mut self, held: impl IntoIterator<Item = Finished>, ledger: &mut Ledger) {
        let model = &self.models[SERVER];
        let hits = if cork::is_refuted(model) { TimerHits::default() } else { model.timer_hits() };
        for mut finished in held {
            finished.revise(hits);
            if let Some(held) = &mut self.held_back {
                held.clear_spare(finished.closed.packets, &mut finished.account);
            }
            // Meanwhile it may have got its number, and its service another place.
            let Closed { connection, service, .. } = self.closed(ledger);
            let closed = Closed { connection, service, ..finished.closed };
            ledger.close(&closed, finished.account.bill());
        }
    }

    fn forget_held(&mut self) {
        if self.held_back.as_ref().is_some_and(|held| held.is_empty()) {
            self.held_back = None;
        }
    }

    /// Remembers what was sent again in a message that is over, if it may still turn out that it was for nothing: what its receiver says of that near
    /// the sender alone, beside the receiver it is seen.
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

    /// What this segment says of copies in messages that are over, and which of these go to the ledger then.
    #[cold]
    #[inline(never)]
    pub(super) fn weigh_kept(&mut self, segment: &Segment, from: usize, ledger: &mut Ledger) {
        let (end, now) = (1 - from, self.now);
        let Some(held) = self.held_back.as_deref_mut() else { return };
        if held.copies.iter().all(Copies::is_empty) {
            return;
        }
        if let Some(block) =
            segment.options.sack().first().filter(|block| block.end.at_or_before(segment.ack))
        {
            held.copies[end].name(*block);
        }
        if segment.payload_len > 0 {
            held.copies[from].note_after(segment);
        }
        while let Some(finished) = self.held_back.as_deref_mut().and_then(|held| held.pop_decided(now)) {
            self.hand_over_held([finished], ledger);
        }
        if let Some(held) = self.held_back.as_deref_mut() {
            held.copies.iter_mut().for_each(|copies| copies.forget_decided(now));
        }
        self.forget_held();
    }
}
