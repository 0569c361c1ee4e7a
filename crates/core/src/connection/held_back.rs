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

use tcpwhy_wire::Instant;

use crate::bill::account::Account;
use crate::bill::line::LineView;
use crate::bill::revise::Revision;
use crate::bill::spare::Copies;
use crate::estimate::ticks::LateReply;
use crate::estimate::timer_hits::{OfTimer, SHORTEST, TimerHits};
use crate::flow::ends::{SERVER, side};
use crate::rules::cork;
use crate::tally::closed::Closed;
use crate::words::cause::Cause;
use crate::words::form::Form;
use crate::words::report::Confidence;

/// As many as a proof needs whose waits are alike, but for the last one (`PROVEN_POINTS` in `estimate/timer_hits.rs`).
const HELD_MAX: usize = 8;

/// Finished exchanges in order, none of which may overtake another one.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct HeldBack {
    pub finished: VecDeque<Finished>,
    /// What either end has sent again of messages that are over, whether these are still here or not.
    pub copies: [Copies; 2],
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
    pub(super) fn push(
        &mut self,
        closed: Closed,
        account: &mut Account,
        reply: Option<LateReply>,
    ) -> Option<Finished> {
        self.finished.push_back(Finished { closed, account: std::mem::take(account), reply });
        if self.finished.len() > HELD_MAX { self.finished.pop_front() } else { None }
    }

    /// Whether it may still turn out that a message of these packets, or one that is kept back, was repaired for nothing.
    pub(super) fn waits(&self, packets: [u64; 2], now: Instant) -> bool {
        let may_tell = |packets| self.copies.iter().any(|copies| copies.may_tell_of(packets, now));
        may_tell(packets) || self.finished.iter().any(|finished| may_tell(finished.closed.packets))
    }

    /// What was charged for copies in it that were for nothing was the path's.
    pub(super) fn clear_spare(&mut self, packets: [u64; 2], account: &mut Account) {
        for copies in &mut self.copies {
            if let Some(spare) = copies.take_told_of(packets) {
                account.revise(Revision::CopySpare(spare));
            }
        }
    }

    /// The first one, where nothing more can show of it.
    pub(super) fn pop_decided(&mut self, now: Instant) -> Option<Finished> {
        let first = self.finished.front().filter(|first| first.reply.is_none())?;
        let packets = first.closed.packets;
        let waits = self.copies.iter().any(|copies| copies.may_tell_of(packets, now));
        if waits { None } else { self.finished.pop_front() }
    }

    pub(super) fn is_empty(&self) -> bool {
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
