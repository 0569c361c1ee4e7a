//! A question among others that are under way, and as much of its answer as there is.

use tcpwhy_wire::{Duration, Instant, Seq};

use crate::bill::account::Account;

/// A part of an exchange as the capture saw it: when its first and its last byte passed, and in which packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Passed {
    pub first: (Instant, u64),
    pub last: (Instant, u64),
    pub bytes: u64,
    /// The byte behind what has passed.
    pub end: Seq,
}

impl Passed {
    pub(crate) fn begin(at: Instant, packet: u64, seq: Seq) -> Self {
        Self { first: (at, packet), last: (at, packet), bytes: 0, end: seq }
    }

    /// More of it passed.
    pub(crate) fn take(&mut self, at: Instant, packet: u64, bytes: u32, end: Seq) {
        self.last = (at, packet);
        self.bytes += u64::from(bytes);
        self.end = self.end.latest(end);
    }
}

/// What the sender of a message waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Expects {
    #[default]
    Answer,
    /// News, however late.
    News,
    Nothing,
}

/// A question, with its answer as far as that has come.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ask {
    pub n: u64,
    /// Index of the end that asks.
    pub asker: usize,
    pub id: Option<u64>,
    pub expects: Expects,
    pub idle: Duration,
    pub start: Instant,
    pub question: Passed,
    pub answer: Option<Passed>,
    /// How many parts the question and the answer have come in.
    pub parts: [u8; 2],
    /// All of the answer has passed; all of the message itself where it expects none.
    pub is_answered: bool,
    /// Where its answer ends was not captured.
    pub is_cut: bool,
    /// What it has cost until then.
    pub account: Account,
}

impl Ask {
    /// The end that has the last word, and that word as far as it has passed.
    pub(crate) fn last_word(&self) -> (usize, Option<Passed>) {
        match self.expects {
            Expects::Nothing => (self.asker, Some(self.question)),
            _ => (1 - self.asker, self.answer),
        }
    }

    /// Whether its last byte has been acknowledged, by what each end's other one has.
    pub(crate) fn is_over(&self, acked: [Option<Seq>; 2]) -> bool {
        let (speaker, last) = self.last_word();
        let end = last.filter(|_| self.is_answered).map(|last| last.end);
        end.zip(acked[speaker]).is_some_and(|(end, acked)| acked.at_or_after(end))
    }

    /// Whether all that has passed of its answer has been acknowledged, and where that ends was not captured.
    pub(crate) fn may_be_over(&self, una: [Option<Seq>; 2]) -> bool {
        let end =
            self.answer.filter(|_| self.is_cut && self.expects != Expects::Nothing).map(|answer| answer.end);
        end.zip(una[1 - self.asker]).is_some_and(|(end, una)| una.at_or_after(end))
    }

    /// Until when its account goes.
    pub(crate) fn until(&self) -> Instant {
        self.start + self.account.total()
    }
}
