//! Does a message that goes on begin anew? Streams stay open between the messages that pass on them (server-sent data of gRPC,
//! conversations of both sides), and their protocol does not say where one of these ends.

use tcpwhy_wire::{Duration, Instant, Seq};

use super::Connection;
use crate::bill::asked::{Ask, Expects, Passed};
use crate::tally::ledger::Ledger;
use crate::words::mark::Mark;

/// Who is silent for so long, with everything acknowledged, between two parts of a message has nothing to send.
const SILENCE_MIN: Duration = Duration::from_millis(200);

impl Connection {
    /// The exchange that a part of an answer belongs to. Behind a silence in the middle of an answer it is news, for which nobody
    /// waits: the answer ended before.
    pub(super) fn answer_of(&mut self, mark: &Mark, from: usize, ledger: &mut Ledger) -> Answered {
        let (now, acked) = (self.now, self.flows[from].highest_ack);
        let Some(talk) = self.talk.as_deref_mut() else { return Answered::Nothing };
        let open = talk.answered_by(mark, from).or_else(|| talk.told_by(mark, from));
        let Some(ask) = open.and_then(|n| talk.find(n)) else { return Answered::Nothing };
        let said = if ask.expects == Expects::Nothing { Some(ask.question) } else { ask.answer };
        let begun = ask.parts[1] > 1 || ask.expects == Expects::Nothing;
        let n = ask.n;
        if !mark.first && begun && said.is_some_and(|said| fell_silent(&said, now, acked)) {
            self.close_asked_number(n, ledger);
            return Answered::ByNews;
        }
        let Some(ask) = self.talk.as_deref_mut().and_then(|talk| talk.find(n)) else {
            return Answered::Nothing;
        };
        ask.parts[1] = ask.parts[1].saturating_add(1);
        Answered::Part(n)
    }

    /// Whether a part of a question on a stream that is open asks anew: its answer so far has been read, or it comes behind a silence.
    pub(super) fn asks_anew(&mut self, n: u64, from: usize, ledger: &mut Ledger) -> bool {
        let (now, acked) = (self.now, [0, 1].map(|end| self.flows[end].highest_ack));
        let Some(ask) = self.talk.as_deref_mut().and_then(|talk| talk.find(n)) else { return false };
        let is_read = |said: &Passed| acked[1 - from].is_some_and(|acked| acked.at_or_after(said.end));
        let anew = match &ask.answer {
            Some(answer) => is_read(answer),
            None => ask.parts[0] > 1 && fell_silent(&ask.question, now, acked[from]),
        };
        if anew {
            self.close_asked_number(n, ledger);
        } else {
            ask.parts[0] = ask.parts[0].saturating_add(1);
        }
        anew
    }

    /// An answer will come when there is news.
    pub(super) fn defer(&mut self, mark: &Mark, from: usize) {
        let Some(talk) = self.talk.as_deref_mut() else { return };
        let deferred = talk.answered_by(mark, from);
        if let Some(ask) = deferred.and_then(|n| talk.find(n)) {
            ask.expects = Expects::News;
        }
    }

    fn close_asked_number(&mut self, n: u64, ledger: &mut Ledger) {
        let Some(talk) = self.talk.as_deref_mut() else { return };
        let Ok(place) = talk.asked.binary_search_by_key(&n, |ask: &Ask| ask.n) else { return };
        if let Some(ask) = talk.asked.remove(place) {
            self.close_ask(ask, ledger);
        }
    }
}

/// What a part of an answer is.
pub(super) enum Answered {
    /// It belongs to this exchange.
    Part(u64),
    /// Nobody waited for it.
    ByNews,
    /// Nothing that is known of.
    Nothing,
}

fn fell_silent(said: &Passed, now: Instant, acked: Option<Seq>) -> bool {
    now - said.last.0 >= SILENCE_MIN && acked.is_some_and(|acked| acked.at_or_after(said.end))
}
