//! A request among others under way, and as much of its answer as there is.

use tcpwhy_wire::{Duration, Instant, Seq};

use crate::bill::account::Account;

/// A part of an exchange as captured: when its first and its last byte passed, and in which
/// packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Passed {
    pub first: (Instant, u64),
    pub last: (Instant, u64),
    pub bytes: u64,
    /// The sequence number after the last byte that passed.
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

/// What the sender of a message expects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Expects {
    #[default]
    Answer,
    /// News, however late.
    News,
    Nothing,
}

/// A request, with as much of its answer as has come.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ask {
    pub n: u64,
    /// Index of the requesting end.
    pub asker: usize,
    pub id: Option<u64>,
    pub expects: Expects,
    pub idle: Duration,
    pub start: Instant,
    pub question: Passed,
    pub answer: Option<Passed>,
    /// How many parts the question and the answer came in.
    pub parts: [u8; 2],
    /// The whole answer has passed, or the whole message if it expects none.
    pub is_answered: bool,
    /// The end of its answer was not captured.
    pub is_cut: bool,
    /// Its cost so far.
    pub account: Account,
}

impl Ask {
    /// The end that speaks last, and what has passed of that message.
    pub(crate) fn last_word(&self) -> (usize, Option<Passed>) {
        match self.expects {
            Expects::Nothing => (self.asker, Some(self.question)),
            _ => (1 - self.asker, self.answer),
        }
    }

    /// Whether its last byte has been acknowledged; `acked` is indexed by the end that sent the
    /// bytes.
    pub(crate) fn is_over(&self, acked: [Option<Seq>; 2]) -> bool {
        let (speaker, last) = self.last_word();
        let end = last.filter(|_| self.is_answered).map(|last| last.end);
        end.zip(acked[speaker]).is_some_and(|(end, acked)| acked.at_or_after(end))
    }

    /// Whether all that has passed of its answer was acknowledged, when the end of the answer was
    /// not captured.
    pub(crate) fn may_be_over(&self, una: [Option<Seq>; 2]) -> bool {
        let end =
            self.answer.filter(|_| self.is_cut && self.expects != Expects::Nothing).map(|answer| answer.end);
        end.zip(una[1 - self.asker]).is_some_and(|(end, una)| una.at_or_after(end))
    }

    /// The time up to which its account runs.
    pub(crate) fn until(&self) -> Instant {
        self.start + self.account.total()
    }
}
