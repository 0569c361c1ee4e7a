//! When is one of several replies over, even if its end was not captured, and what becomes of them once
//! nothing is read any more?

use tcpwhy_wire::Segment;

use super::Connection;
use super::concurrent::OWN;
use super::numbered::open;
use super::talk::Talk;
use super::turn::Paired;
use crate::bill::asked::Ask;
use crate::tally::ledger::Ledger;
use crate::words::mark::Mark;

impl Connection {
    /// From now on, nothing more is read.
    pub(super) fn lose_talk(&mut self, marks: &[Mark], from: usize, ledger: &mut Ledger) {
        self.close_asked(ledger);
        let mut talk = self.talk.take().unwrap_or_default();
        if talk.is_concurrent {
            let paired = if talk.some_are.several { Paired::Guess } else { Paired::Before };
            self.paired = self.paired.max(paired);
        }
        for mark in marks {
            talk.note_session(mark, if mark.by_peer { 1 - from } else { from });
        }
        if talk.session != [None; 2] {
            self.talk = Some(Box::new(Talk { session: talk.session, ..Talk::default() }));
        }
    }

    /// Closes the exchanges whose replies this ACK covers, for nothing of them is retransmitted.
    #[cold]
    pub(super) fn close_answered(&mut self, ack: &Segment, from: usize, ledger: &mut Ledger) {
        if let Some(talk) = self.talk.as_deref_mut() {
            talk.settle_resent(ack, 1 - from, OWN);
        }
        let acked = [0, 1].map(|end| self.flows[end].highest_ack);
        let over = self.talk.as_deref_mut().map(|talk| talk.ripe.take(acked));
        // Mostly they are neighbours.
        let mut place = 0;
        for n in over.into_iter().flatten() {
            let talk = self.talk.as_deref_mut();
            if let Some(ask) = talk.and_then(|talk| talk.take_over(n, acked, &mut place)) {
                self.close_ask(ask, ledger);
            }
        }
        let now = self.now;
        if let Some(talk) = self.talk.as_deref_mut() {
            let since = talk.asked.front().map_or(now, |oldest| oldest.start);
            talk.waits.iter_mut().for_each(|waits| waits.forget(since));
        }
    }

    /// A requester that asks anew has the replies that have arrived, as far as it is known where these
    /// end.
    pub(super) fn close_cut(&mut self, asker: usize, ledger: &mut Ledger) {
        let una = [0, 1].map(|end| self.flows[end].highest_ack);
        let is_over = |ask: &Ask| ask.asker == asker && ask.may_be_over(una);
        while let Some(talk) = self.talk.as_deref_mut().filter(|talk| talk.some_are.cut)
            && let Some(place) = talk.asked.iter().position(is_over)
            && let Some(ask) = talk.asked.remove(place)
        {
            self.close_ask(ask, ledger);
        }
        if let Some(talk) = self.talk.as_deref_mut() {
            talk.some_are.cut = talk.some_are.cut && talk.asked.iter().any(|ask| ask.is_cut);
        }
    }

    /// The exchange of bytes whose heads were not captured.
    pub(super) fn cut(&mut self, mark: &Mark, from: usize) -> Option<u64> {
        let talk = self.talk.as_deref_mut()?;
        talk.heads_lost = true;
        let id = mark.id?;
        let has_begun = |ask: &&Ask| ask.asker == from || ask.answer.is_some();
        let latest = |asker: usize| {
            let numbers = talk.numbered.with(asker, id, &talk.asked).iter().rev();
            numbers.filter_map(|(_, n)| open(&talk.asked, *n)).find(has_begun).map(|ask| ask.n)
        };
        let n = [0, 1].into_iter().filter_map(latest).max()?;
        let ask = talk.find(n)?;
        ask.is_cut |= ask.asker != from;
        let is_cut = ask.is_cut;
        talk.some_are.cut |= is_cut;
        Some(n)
    }
}
