//! Does whoever acknowledges stand nearer than whoever answers?
//!
//! Proof: a handshake ten times as long as the quickest acknowledgement (twice, where a host must stand in between, since no router has touched
//! what comes from a public address to a private one, or the server's packets come over fewer hops than its SYN-ACK did; four times, where an
//! answer took about as long as the handshake), and no answer sooner than it. It is likely where a host must stand in between, or where
//! acknowledgements alone show it and answers take about as long.
//! Refuted by: one answer that comes sooner (the handshake had waited for ARP, or for a radio); stamps by which the SYN-ACK was as much later; where a host must stand in between, the way behind it
//! is as short as that.
//! Source: RFC 3135 (PEPs); observed of VirtualBox, QEMU (slirp) and Docker Desktop, which take a connection only once their
//! own to the server is open.
//! Seen from: near the client. Where answers are too late to show that, and too soon to prove the way behind, what the server does is no
//! more than likely, and pauses within its answers, which may be rounds on the way behind, no more than possible.
//!
//! A host that ends TCP in the middle acknowledges at once what it has still to carry. It takes a connection only once its
//! own to the server is open, so that the handshake shows the whole way, and acknowledgements the way to itself.

use tcpwhy_wire::Duration;

use crate::bill::charge::Charge;
use crate::words::cause::{Cause, Side};
use crate::words::form::Form;
use crate::words::report::{Confidence, Detail};

/// Shorter handshakes are late for other reasons, where nothing else tells that a host stands in between.
const OPENED_MIN: Duration = Duration::from_millis(10);
/// Whoever acknowledges is so many times nearer. Source: none written down.
const NEARER: i64 = 10;
/// The same where a host must stand in between. Source: none written down.
pub(crate) const NEARER_BETWEEN: i64 = 2;
/// The same where an answer takes as long as the handshake did: that a server's own time makes up for the rest is chance. Source: none written
/// down.
const NEARER_ALIKE: i64 = 4;
/// Such an answer is later by less than one part in so many. Source: none written down.
const AS_LONG_SHARE: i64 = 8;
/// An answer that is sooner than the handshake by one part in so many shows that the way is shorter. Source: none written down.
const SOONER_SHARE: i64 = 5;
/// Answers that are later by less than one part in so many took about as long. Source: none written down.
const ALIKE_SHARE: i64 = 4;
/// As many answers about as late as the handshake are no chance.
const ANSWERS_MIN: u8 = 2;
/// Whoever acknowledges and never answers sooner than so many times that may not be whoever answers. Source: none written down.
const DOUBTED: i64 = 16;
/// A way that is shorter than this says nothing of who stands on it. Source: none written down.
const BEHIND_MIN: Duration = Duration::from_millis(2);
pub(crate) const FORM: Form = Form::Proxy;

/// What answers have shown of the way behind whoever acknowledges.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Answers {
    /// The quickest one, behind the question's last byte.
    quickest: Duration,
    /// The first one.
    first: Duration,
    count: u8,
    /// Whoever speaks for the server is nearer than its SYN-ACK was.
    pub taken_over: bool,
    /// It acknowledged much sooner, with a stamp of before.
    pub stale: bool,
    /// ... or with one by which the SYN-ACK was as much later: the same host has sent both.
    pub one_clock: bool,
}

impl Default for Answers {
    fn default() -> Self {
        Self {
            quickest: Duration::MAX,
            first: Duration::MAX,
            count: 0,
            taken_over: false,
            stale: false,
            one_clock: false,
        }
    }
}

impl Answers {
    /// Whether the SYN-ACK came from another host than what is acknowledged since: how far away that was nobody knows.
    pub(crate) fn is_of_another(self) -> bool {
        self.taken_over && self.stale
    }

    /// How far away at most is who answers, whoever acknowledges for him: what comes later may have been let go by something earlier.
    pub(crate) fn farthest(self) -> Duration {
        self.first
    }

    /// Whether an answer came in half the time that a handshake `took`.
    pub(crate) fn came_sooner(self, took: Duration) -> bool {
        took - self.quickest >= took.divided_by(2)
    }

    /// An answer came so long behind its question.
    pub(crate) fn on_answer(&mut self, wait: Duration) {
        self.quickest = self.quickest.min(wait);
        if self.count == 0 {
            self.first = wait;
        }
        self.count = self.count.saturating_add(1);
    }

    /// Whether neither the handshake, which took `opened` or more, nor any answer ever came as soon as acknowledgements do, of whoever is
    /// `near` away, or a host must stand in `between`, however soon an answer came: it may have been to an earlier question. Then another may stand
    /// behind it, and nothing that this server seems to do is sure.
    #[inline]
    pub(crate) fn may_be_behind(
        self,
        opened: Duration,
        near: Duration,
        between: impl FnOnce() -> bool,
    ) -> bool {
        let far = near.times(DOUBTED).max(BEHIND_MIN);
        let nearer = opened >= near.times(NEARER_BETWEEN).max(BEHIND_MIN);
        opened >= far && self.quickest >= far || nearer && between()
    }

    /// The way behind a host that is `near` away, of a connection that took `opened` to open. `between` where a host must stand in between.
    #[inline]
    pub(crate) fn beyond(
        self,
        opened: Duration,
        near: Duration,
        between: impl FnOnce() -> bool,
    ) -> Option<Beyond> {
        let between = opened >= near.times(NEARER_BETWEEN) && between();
        // Behind a host that must be there the way is as short as the quickest answer, however long opening took.
        let opened = if between { opened.min(self.quickest) } else { opened };
        let least = if between { BEHIND_MIN.max(near.times(NEARER_BETWEEN)) } else { OPENED_MIN };
        if opened < least || !between && (self.one_clock || self.refute(opened)) {
            return None;
        }
        let clear = between || opened >= near.times(NEARER);
        let unsettled = self.count == 0 || self.is_as_long(opened);
        let suspect = clear || opened >= near.times(NEARER_ALIKE) && unsettled;
        suspect.then_some(Beyond { opened, near, clear, between, guess: false, answers: self })
    }

    /// Whether the quickest answer took as long as the handshake.
    fn is_as_long(self, opened: Duration) -> bool {
        self.quickest <= opened + opened.divided_by(AS_LONG_SHARE)
    }

    /// Whether an answer came sooner than the way behind allows.
    fn refute(self, opened: Duration) -> bool {
        self.quickest < opened - opened.divided_by(SOONER_SHARE)
    }
}

/// A way that acknowledgements do not show.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Beyond {
    opened: Duration,
    near: Duration,
    /// Acknowledgements alone show it.
    clear: bool,
    /// A host stands in between for certain.
    between: bool,
    /// Nor is it sure which of several SYNs was answered.
    guess: bool,
    answers: Answers,
}

impl Beyond {
    /// Of a handshake whose SYN was sent more than once: it took at least so long, and that is no more than possible.
    pub(crate) fn by_guess(self) -> Self {
        Self { guess: true, ..self }
    }

    /// How long that way took to open.
    pub(crate) fn opened(self) -> Duration {
        self.opened
    }

    /// What of the wait for an answer is that way, and how sure that is; `wait` is what is left of it behind the way that shows.
    pub(crate) fn charge(self, wait: Duration, sender: Side) -> Option<Charge> {
        let mut answers = self.answers;
        answers.on_answer(wait + self.near);
        let sooner = !self.between && answers.refute(self.opened);
        if sooner || !self.clear && !answers.is_as_long(self.opened) {
            return None;
        }
        // A server that always takes the same may be as late as a radio that woke up for the handshake.
        let alike = self.clear
            && answers.count >= ANSWERS_MIN
            && answers.quickest <= self.opened + self.opened.divided_by(ALIKE_SHARE);
        let shown = (alike || self.between) && !self.guess;
        let confidence = if shown { Confidence::Likely } else { Confidence::Possible };
        let ns = wait.min(self.opened - self.near);
        let detail = Detail { form: Some(FORM), ..Detail::default() };
        Some(Charge::new(Cause::RoundTrip, sender, ns, confidence).detail(detail))
    }
}
