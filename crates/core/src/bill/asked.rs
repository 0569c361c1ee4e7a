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

/// A question, with its answer as far as that has come.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ask {
    pub n: u64,
    /// Index of the half that asks.
    pub asker: usize,
    pub id: Option<u64>,
    pub idle: Duration,
    pub start: Instant,
    pub question: Passed,
    pub answer: Option<Passed>,
    /// All of the answer has passed.
    pub is_answered: bool,
    /// What it has cost until then.
    pub account: Account,
}

impl Ask {
    /// Whether its asker has acknowledged all of the answer.
    pub(crate) fn is_over(&self, una: Option<Seq>) -> bool {
        let end = self.answer.filter(|_| self.is_answered).map(|answer| answer.end);
        end.zip(una).is_some_and(|(end, una)| una.at_or_after(end))
    }

    /// Until when its account goes.
    pub(crate) fn until(&self) -> Instant {
        self.start + self.account.total()
    }
}
