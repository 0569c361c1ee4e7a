//! Which finished exchanges wait for what the next ones show?
//!
//! A server that takes as long as a timer runs and a cork look alike until several of its replies have left on the tick of its kernel
//! (`estimate/timer_hits.rs`). So an exchange whose reply may be one of these goes to the ledger once that has shown, or cannot show
//! any more: a reply that came much sooner, the end of the connection, or more exchanges than a proof needs. What is billed first is
//! its server's time, which is far more usual, and stays so unless the proof comes.

use std::collections::VecDeque;

use crate::bill::account::Account;
use crate::bill::line::LineView;
use crate::bill::revise::Revision;
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
pub(super) struct HeldBack(VecDeque<Finished>);

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
        self.0.push_back(Finished { closed, account: std::mem::take(account), reply });
        if self.0.len() > HELD_MAX { self.0.pop_front() } else { None }
    }

    pub(super) fn into_finished(self) -> impl Iterator<Item = Finished> {
        self.0.into_iter()
    }

    /// Bytes that it takes.
    pub(super) fn heap(&self) -> usize {
        let accounts: usize = self.0.iter().map(|finished| finished.account.heap()).sum();
        size_of::<Self>() + self.0.capacity() * size_of::<Finished>() + accounts
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
