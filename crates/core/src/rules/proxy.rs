//! Is the host that acknowledges nearer than the host that answers?
//!
//! Proof: a handshake ten times as long as the quickest acknowledgement, and no answer sooner than
//! the handshake. Twice is enough where a host must be in between: packets from a public address to
//! a private one have a TTL untouched by routers, or the server's packets come over fewer hops than
//! its SYN-ACK did. Four times is enough where an answer took about as long as the handshake.
//! Likely where a host must be in between, or where acknowledgements alone show it and answers take
//! about as long.
//! Refuted by: one answer that comes sooner (the handshake had waited for ARP, or for a radio);
//! time stamps by which the SYN-ACK was as much later; where a host must be in between, a path
//! beyond it that is as short as that.
//! Source: RFC 3135 (PEPs); observed of VirtualBox, QEMU (slirp) and Docker Desktop, which accept a
//! connection only once their own to the server is open.
//! Seen from: near the client. Where answers are too late to show this and too soon to prove the
//! path beyond, the server's own time is at most likely, and pauses within its answers, which may
//! be round trips beyond the proxy, are at most possible.
//!
//! A host that terminates TCP in the middle acknowledges at once what it has yet to forward. It
//! accepts a connection only once its own to the server is open, so the handshake shows the whole
//! path, and acknowledgements show the path to the proxy.

use tcpwhy_wire::Duration;

use crate::bill::charge::Charge;
use crate::words::cause::{Cause, Side};
use crate::words::form::Form;
use crate::words::limits::RTO_MIN;
use crate::words::report::{Confidence, Detail};

/// Shorter handshakes are late for other reasons, unless something else shows a host in between.
const OPENED_MIN: Duration = Duration::from_millis(10);
/// The host that acknowledges is this many times nearer. Source: none written down.
const NEARER: i64 = 10;
/// The same where a host must be in between. Source: none written down.
pub(crate) const NEARER_BETWEEN: i64 = 2;
/// The same where an answer takes as long as the handshake did, which a server's own time would
/// match only by chance. Source: none written down.
const NEARER_ALIKE: i64 = 4;
/// Such an answer is later than the handshake by less than one part in this many. Source: none
/// written down.
const AS_LONG_SHARE: i64 = 8;
/// An answer sooner than the handshake by one part in this many shows that the path is shorter.
/// Source: none written down.
const SOONER_SHARE: i64 = 5;
/// Answers later than the handshake by less than one part in this many took about as long. Source:
/// none written down.
const ALIKE_SHARE: i64 = 4;
/// This many answers about as late as the handshake are not a coincidence.
const ANSWERS_MIN: u8 = 2;
/// If no answer comes sooner than this many times the acknowledgements, another host may be
/// answering. Source: none written down.
const DOUBTED: i64 = 16;
/// A path shorter than this does not show who is on it. Source: none written down.
const BEHIND_MIN: Duration = Duration::from_millis(2);
pub(crate) const FORM: Form = Form::Proxy;

/// What answers have shown of the path beyond the host that acknowledges.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Answers {
    /// The quickest answer, counted from the request's last byte.
    quickest: Duration,
    /// The first one.
    first: Duration,
    count: u8,
    /// The server's packets now come from nearer than its SYN-ACK did.
    pub taken_over: bool,
    /// It acknowledged much sooner, with an earlier time stamp.
    pub stale: bool,
    /// Its time stamps put the SYN-ACK later by as much: the same host has sent both.
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
    /// Whether the SYN-ACK came from another host than the acknowledgements since: how far away
    /// that host was is unknown.
    pub(crate) fn is_of_another(self) -> bool {
        self.taken_over && self.stale
    }

    /// The greatest possible distance to the host that answers; later answers may have been
    /// triggered by something earlier.
    pub(crate) fn farthest(self) -> Duration {
        self.first
    }

    /// Whether an answer came in half the time that the handshake `took`.
    pub(crate) fn came_sooner(self, took: Duration) -> bool {
        took - self.quickest >= took.divided_by(2)
    }

    /// The same, and so much sooner that a handshake this long says little of the path: something may have
    /// kept the SYN, or something earlier triggered that answer.
    pub(crate) fn came_much_sooner(self, took: Duration) -> bool {
        self.came_sooner(took) && took - self.quickest >= RTO_MIN
    }

    /// An answer came this long after its request.
    pub(crate) fn on_answer(&mut self, wait: Duration) {
        self.quickest = self.quickest.min(wait);
        if self.count == 0 {
            self.first = wait;
        }
        self.count = self.count.saturating_add(1);
    }

    /// Whether there may be another host beyond the one that acknowledges, `near` away: neither the handshake,
    /// which took `opened` or more, nor any answer came as soon as acknowledgements do, or a host must be in
    /// `between`, however soon an answer came, and opened the connection by itself or behind the server. Then nothing
    /// that the server seems to do is certain.
    #[inline]
    pub(crate) fn may_be_behind(
        self,
        opened: Duration,
        near: Duration,
        between: impl FnOnce() -> bool,
    ) -> bool {
        let far = near.times(DOUBTED).max(BEHIND_MIN);
        let by_itself = opened < BEHIND_MIN;
        let nearer = opened >= near.times(NEARER_BETWEEN).max(BEHIND_MIN);
        opened >= far && self.quickest >= far || (nearer || by_itself) && between()
    }

    /// The path beyond a host that is `near` away, on a connection that took `opened` to open.
    /// `between` says whether a host must be in between.
    #[inline]
    pub(crate) fn beyond(
        self,
        opened: Duration,
        near: Duration,
        between: impl FnOnce() -> bool,
    ) -> Option<Beyond> {
        let between = opened >= near.times(NEARER_BETWEEN) && between();
        // If the host must be there, the path beyond it is no longer than the quickest answer,
        // however long opening took.
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

    /// Whether the quickest answer took at most as long as the handshake, or slightly longer.
    fn is_as_long(self, opened: Duration) -> bool {
        self.quickest <= opened + opened.divided_by(AS_LONG_SHARE)
    }

    /// Whether an answer came sooner than the path beyond allows.
    fn refute(self, opened: Duration) -> bool {
        self.quickest < opened - opened.divided_by(SOONER_SHARE)
    }
}

/// A path that acknowledgements do not show.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Beyond {
    opened: Duration,
    near: Duration,
    /// Acknowledgements alone show it.
    clear: bool,
    /// A host is certainly in between.
    between: bool,
    /// Which of several SYNs was answered is uncertain.
    guess: bool,
    answers: Answers,
}

impl Beyond {
    /// For a handshake with a retransmitted SYN: `opened` is a lower bound, so the result is at
    /// most possible.
    pub(crate) fn by_guess(self) -> Self {
        Self { guess: true, ..self }
    }

    /// How long the handshake over that path took.
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
        // A server that always takes the same time may match a radio that woke up for the
        // handshake.
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
