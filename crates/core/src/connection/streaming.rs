//! Does a continued message begin anew, and is a reply complete? Streams stay open between the messages on them (server
//! streaming in gRPC, conversations in both directions), and their protocol does not say where one of
//! these ends.

use tcpwhy_wire::{Duration, Instant, Seq};

use super::Connection;
use super::talk::Talk;
use crate::bill::asked::{Ask, Expects, Passed};
use crate::flow::ends::{CLIENT, SERVER};
use crate::tally::ledger::Ledger;
use crate::words::mark::{Mark, Role};

/// A sender that is silent for this long between two parts of a message, with everything acknowledged,
/// has nothing to send.
const SILENCE_MIN: Duration = Duration::from_millis(200);

impl Connection {
    /// The exchange that part of a reply belongs to. A part that follows a silence within the reply is
    /// news, for which nobody waits: the reply ended before it.
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

    /// Whether a part of a request on an open stream is a new request: its reply so far has been read,
    /// or it follows a silence.
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

    /// Notes the lines of a greeting. A client may not speak before the last one (RFC 5321, 3.1 and 4.2.1; RFC 959, 4.2).
    pub(super) fn note_greeting(&mut self, marks: &[Mark], from: usize) {
        let greets = from == SERVER && self.flows[CLIENT].bytes == 0;
        let Some(talk) = self.talk.as_deref_mut().filter(|_| greets) else { return };
        let lines =
            |mark: &&Mark| mark.role == Role::Answers && mark.id.is_none() && !(mark.by_peer || mark.session);
        for mark in marks.iter().filter(lines) {
            let in_lines = !(mark.first && mark.last);
            talk.greeting = mark.end.filter(|_| in_lines).map(|end| (end, mark.last));
        }
    }

    /// The reply will come when there is news.
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

impl Talk {
    /// Whether `from` is in the middle of a reply of unknown length: the last of its chunks (RFC 9112, 7.1)
    /// has not come, or it ends with the connection.
    pub(super) fn is_answer_open(&self, from: usize) -> bool {
        self.pending.is_some_and(|ask| {
            ask.asker != from
                && ask.is_answering
                && ask.answer_end.is_none()
                && !ask.is_cut
                && ask.id.is_none()
        })
    }

    /// Whether that reply may end with its connection: its head was captured completely.
    pub(super) fn is_endless(&self, from: usize) -> bool {
        self.is_answer_open(from) && self.pending.is_some_and(|ask| ask.head_is_over)
    }

    /// Whether more of its reply is to come.
    pub(super) fn is_unfinished(&self, from: usize) -> bool {
        self.is_answer_open(from) || self.is_answer_in_parts(from)
    }

    /// Whether the part of a reply that `from` has sent is not the last, as its head says.
    fn is_answer_in_parts(&self, from: usize) -> bool {
        self.pending.is_some_and(|ask| {
            let answers = ask.asker != from && ask.is_answering && ask.id.is_none() && !ask.is_cut;
            answers && ask.answer_end.is_some() && !ask.answer_is_last
        })
    }
}

/// What part of a reply is.
pub(super) enum Answered {
    /// Part of this exchange.
    Part(u64),
    /// Nobody waited for it.
    ByNews,
    /// Nothing known.
    Nothing,
}

fn fell_silent(said: &Passed, now: Instant, acked: Option<Seq>) -> bool {
    now - said.last.0 >= SILENCE_MIN && acked.is_some_and(|acked| acked.at_or_after(said.end))
}
