//! Which finished exchanges wait for what later ones show?
//!
//! A server that takes as long as a timer runs and a cork look alike until several of its replies have
//! been sent on its kernel's tick (`estimate/timer_hits.rs`). So an exchange whose reply may be one of
//! these goes to the ledger once that is proven, or cannot be any more: by a reply that came much
//! sooner, the end of the connection, or more exchanges than a proof needs. Until then the wait is
//! billed as its server's time, which is far more usual, and stays so without proof.
//!
//! An apparent repair by a timer waits as well, until the receiver has had time to report that the data
//! had already arrived (RFC 2883), which on a stalled path comes only after the reply. With time
//! stamps, the ACK itself says which transmission it answers (RFC 3522).
//!
//! So do the first exchanges of a connection until a second round trip agrees with the least
//! (`flow/path_memory.rs`): the handshake may have met a queue or a host that was slow for the first packet,
//! and often only the next exchange shows how short the path is.

use std::collections::VecDeque;

use tcpwhy_wire::{Duration, Instant};

use crate::bill::account::Account;
use crate::bill::line::LineView;
use crate::bill::revise::Revision;
use crate::bill::spare::Copies;
use crate::estimate::ticks::LateReply;
use crate::estimate::timer_hits::{OfTimer, SHORTEST, TimerHits};
use crate::flow::ends::{SERVER, side};
use crate::flow::path_memory;
use crate::rules::cork;
use crate::tally::closed::Closed;
use crate::words::cause::Cause;
use crate::words::form::Form;
use crate::words::report::{Confidence, Kind};

/// One less than the exchanges with like waits that a proof needs (`PROVEN_POINTS` in
/// `estimate/timer_hits.rs`).
const HELD_MAX: usize = 8;

/// Finished exchanges, in order: none may overtake another.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct HeldBack {
    pub finished: VecDeque<Finished>,
    /// Retransmissions of both ends in finished messages, whether these are still held or not.
    pub copies: [Copies; 2],
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Finished {
    pub closed: Closed,
    pub account: Account,
    /// Its reply, if that was one segment sent when the timer would have released it.
    reply: Option<LateReply>,
}

impl HeldBack {
    /// Adds one more. Returns the first one if there are too many.
    pub(super) fn push(
        &mut self,
        closed: Closed,
        account: &mut Account,
        reply: Option<LateReply>,
    ) -> Option<Finished> {
        if self.finished.capacity() == 0 {
            self.finished.reserve_exact(1); // most connections hold one at most
        }
        self.finished.push_back(Finished { closed, account: std::mem::take(account), reply });
        if self.finished.len() > HELD_MAX { self.finished.pop_front() } else { None }
    }

    /// Whether a message of these packets, or one held back, may still turn out to have been
    /// retransmitted needlessly.
    pub(super) fn waits(&self, packets: [u64; 2], now: Instant) -> bool {
        let may_tell = |packets| self.copies.iter().any(|copies| copies.may_tell_of(packets, now));
        may_tell(packets) || self.finished.iter().any(|finished| may_tell(finished.closed.packets))
    }

    /// Charges to the path what needless retransmissions had been charged for.
    pub(super) fn clear_spare(&mut self, packets: [u64; 2], account: &mut Account) {
        for copies in &mut self.copies {
            if let Some(spare) = copies.take_told_of(packets) {
                account.revise(Revision::CopySpare(spare));
            }
        }
    }

    /// The first one, if nothing more can change it.
    pub(super) fn pop_decided(&mut self, now: Instant) -> Option<Finished> {
        let first = self.finished.front().filter(|first| first.reply.is_none())?;
        let packets = first.closed.packets;
        let waits = self.copies.iter().any(|copies| copies.may_tell_of(packets, now));
        if waits { None } else { self.finished.pop_front() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.finished.is_empty() && self.copies.iter().all(Copies::is_empty)
    }

    /// Its size in bytes.
    pub(super) fn heap(&self) -> usize {
        let accounts: usize = self.finished.iter().map(|finished| finished.account.heap()).sum();
        let copies: usize = self.copies.iter().map(Copies::heap).sum();
        size_of::<Self>() + self.finished.capacity() * size_of::<Finished>() + accounts + copies
    }
}

impl Finished {
    /// The path's round trip has proved to be no more than `least`. What was not charged as one whole round trip, for whatever
    /// reason, is not measured by it.
    pub(super) fn shorten(&mut self, least: Duration) {
        let Closed { kind: Kind::Exchange, initiator: asker, round: Some(round), .. } = self.closed else {
            return;
        };
        let way = self.account.way();
        if way > least && way <= round && !path_memory::agree(least, way) {
            self.account.revise(Revision::WayShorter { least, asker });
        }
    }

    /// Applies to this exchange what all replies together show.
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
                // A program may also sleep by its kernel's tick.
                Revision::Corked { server, detail, confidence: Confidence::Possible }
            }
            OfTimer::MayBe => Revision::MayBeOther { server, form: Form::OrCork },
            OfTimer::Unknown => return,
        };
        self.account.revise(revision);
    }
}
