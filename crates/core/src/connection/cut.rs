//! What of a question or an answer was not captured, and when is an answer over of which the end is not in the capture?

use super::Connection;
use crate::bill::asked::Ask;
use crate::tally::ledger::Ledger;
use crate::words::mark::Mark;

impl Connection {
    /// Whoever asks anew has had the answers that have arrived, as far as is known where these end.
    pub(super) fn close_cut(&mut self, asker: usize, ledger: &mut Ledger) {
        let una = [0, 1].map(|end| self.flows[end].highest_ack);
        let is_over = |ask: &Ask| ask.asker == asker && ask.may_be_over(una);
        while let Some(talk) = self.talk.as_deref_mut()
            && let Some(place) = talk.asked.iter().position(is_over)
            && let Some(ask) = talk.asked.remove(place)
        {
            self.close_ask(ask, ledger);
        }
    }

    /// The exchange that bytes belong to of which the heads were not captured.
    pub(super) fn cut(&mut self, mark: &Mark, from: usize) -> Option<u64> {
        let talk = self.talk.as_deref_mut()?;
        let is_of = |ask: &&mut Ask| {
            let begun = ask.asker == from || ask.answer.is_some();
            mark.id.is_some() && ask.id == mark.id && begun && !ask.is_answered
        };
        let ask = talk.asked.iter_mut().rev().find(is_of)?;
        ask.is_cut |= ask.asker != from;
        Some(ask.n)
    }
}
