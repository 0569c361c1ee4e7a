//! Which fixes does this finding call for, in which order, and what would each save?
//!
//! The saving is taken from the bill: the time of the cause, as far as the fix removes it. If the
//! bill cannot tell (a larger window runs into the next limit), it says so instead of guessing.

use tcpwhy_core::Form;
use tcpwhy_core::report::{Confidence, Finding};
use tcpwhy_core::{Cause, Side};
use tcpwhy_wire::Duration;

use crate::catalogue::application::{
    OTHER_END, PROFILE_SENDER, PROFILE_SERVER, RAISE_STREAM_WINDOW, READ_PROMPTLY,
};
use crate::catalogue::congestion::{BBR, INITCWND, PACING, SSAI_OFF};
use crate::catalogue::connection::{BACKLOG, FAST_OPEN, RESUME_TLS, REUSE};
use crate::catalogue::path::{
    AQM, CLOSER, FEWER_BYTES, FEWER_ROUND_TRIPS, FIND_DROPS, FIND_SILENT, KEEP_REPAIR, PATH_MTU, RTO_MIN,
    SYN_DROPS,
};
use crate::catalogue::windows::{KEEP_WINDOW, NO_RCVBUF, NO_SNDBUF, RAISE_RMEM, RAISE_WMEM, WINDOW_SCALING};
use crate::catalogue::writes::{NODELAY, ONE_WRITE, QUICKACK, UNCORK};
use crate::catalogue::{Fix, How};

/// One fix for one finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remedy {
    /// Stable kebab-case name.
    pub id: &'static str,
    /// Who applies it.
    pub side: Side,
    /// The change in one sentence.
    pub what: String,
    /// What it costs, or when it is the wrong fix.
    pub caveat: Option<&'static str>,
    /// What it would save over the whole capture.
    pub saves: Saves,
    /// How certain it is that this fix removes the cause.
    pub confidence: Confidence,
    /// How to apply it on that side, by language and server.
    pub how: Vec<How>,
}

/// What a fix would save over the whole capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Saves {
    /// This much: nothing else would cause the wait.
    Estimate(Duration),
    /// No more than this: the next limit may take part of it.
    AtMost(Duration),
    /// At least the first, if slow start is the only next limit, and at most the second.
    Between(Duration, Duration),
    /// The bill cannot tell.
    Unknown,
}

/// The fixes for a finding, best first.
pub fn remedies_for(finding: &Finding) -> Vec<Remedy> {
    let steps = plan(finding.cause);
    // A form without fixes of its own gets all fixes, like a finding without a form.
    let form = finding.detail.form.filter(|form| steps.iter().any(|step| step.forms.contains(form)));
    steps
        .iter()
        .filter(|step| !finding.detail.form.is_some_and(|form| step.unless.contains(&form)))
        .filter(|step| {
            step.forms.is_empty() || form.map_or(!step.other_reading, |form| step.forms.contains(&form))
        })
        .map(|step| {
            let side = step.who.side(finding.side);
            Remedy {
                id: step.fix.id,
                side,
                what: worded(step.what(), side),
                // The caveat is about the catalogue's own sentence.
                caveat: step.fix.caveat.filter(|_| !step.is_told()),
                saves: if_so(step.saves.of(finding), finding.confidence),
                confidence: step.confidence.min(finding.confidence),
                how: step.fix.how_on(side).collect(),
            }
        })
        .collect()
}

impl Fix {
    /// How the fix is applied on one side; all instructions if the side is the path or unknown.
    pub fn how_on(&self, side: Side) -> impl Iterator<Item = How> + use<> {
        self.how.iter().copied().filter(move |how| match side {
            Side::Client | Side::Server => how.only.is_none_or(|only| only == side),
            Side::Path | Side::Unknown => true,
        })
    }
}

/// Fills in the sides.
pub(crate) fn worded(what: &str, side: Side) -> String {
    let name = |side: Side| match side {
        Side::Client | Side::Server => side.name(),
        Side::Path | Side::Unknown => "sender",
    };
    what.replace("{side}", name(side)).replace("{peer}", name(side.peer()))
}

/// One fix that a cause calls for.
#[derive(Clone, Copy)]
pub(crate) struct Step {
    pub(crate) fix: &'static Fix,
    pub(crate) who: Who,
    saves: Rule,
    confidence: Confidence,
    /// Only for these forms of the cause; empty for all of them.
    pub(crate) forms: &'static [Form],
    /// Not for these forms.
    unless: &'static [Form],
    /// It is for the other reading of such a form, not for its cause.
    other_reading: bool,
    /// Its own sentence, if the catalogue's does not fit.
    said: Option<&'static str>,
}

impl Step {
    /// The change in one sentence, as in [`Fix::what`].
    pub(crate) fn what(&self) -> &'static str {
        self.said.unwrap_or(self.fix.what)
    }

    /// Whether another step of the cause already explains how to apply the same fix.
    pub(crate) const fn is_told(&self) -> bool {
        self.said.is_some()
    }
}

/// Who applies it, relative to the finding.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Who {
    /// The side that the finding names.
    Named,
    /// The other one.
    Peer,
    /// Always the client.
    Client,
    /// Always the server.
    Server,
    /// The network, or its operator.
    Path,
}

impl Who {
    fn side(self, named: Side) -> Side {
        match self {
            Self::Named => named,
            Self::Peer => named.peer(),
            Self::Client => Side::Client,
            Self::Server => Side::Server,
            Self::Path => Side::Path,
        }
    }
}

/// How much of the finding's time the fix removes.
#[derive(Clone, Copy)]
enum Rule {
    /// All of it.
    Whole,
    /// At most all of it.
    AtMost,
    /// Only the delay of the ACK; the round trip stays.
    AckDelay,
    /// All but one connection, which must still be opened.
    AllButFirst,
    /// A window that is no longer a limit still opens by doubling each round trip.
    Doubling,
    /// The bill cannot tell.
    Unknown,
}

impl Rule {
    fn of(self, finding: &Finding) -> Saves {
        let hits = i64::try_from(finding.hits).unwrap_or(i64::MAX).max(1);
        match self {
            Self::Whole => Saves::Estimate(finding.ns),
            Self::AtMost => Saves::AtMost(finding.ns),
            // The delay is the longest one of the most expensive occurrence, so the median is an
            // upper bound.
            Self::AckDelay => match finding.detail.ack_delay {
                Some(delay) => Saves::Estimate(delay.min(finding.p50).times(hits).min(finding.ns)),
                None => Saves::AtMost(finding.ns),
            },
            Self::AllButFirst if hits > 1 => Saves::Estimate(finding.ns - finding.ns.divided_by(hits)),
            Self::AllButFirst => Saves::AtMost(Duration::ZERO),
            Self::Doubling => match finding.detail.round {
                Some(round) if round.is_positive() && finding.max.is_positive() => {
                    Saves::Between(doubled(finding, round), finding.ns)
                }
                _ => Saves::AtMost(finding.ns),
            },
            Self::Unknown => Saves::Unknown,
        }
    }
}

/// The saving if the time may be due to another cause: possibly nothing.
fn if_so(saves: Saves, confidence: Confidence) -> Saves {
    match (saves, confidence) {
        (Saves::Estimate(most) | Saves::Between(_, most), Confidence::Possible) => Saves::AtMost(most),
        _ => saves,
    }
}

/// The time left when windows double instead of staying fixed: a wait of n round trips has sent n
/// windows, which take the k round trips for which 2^k - 1 >= n (RFC 5681, 3.1).
fn doubled(finding: &Finding, round: Duration) -> Duration {
    let rounds = (finding.max.as_nanos() + round.as_nanos() - 1) / round.as_nanos();
    let doublings = i64::from(u64::BITS - rounds.unsigned_abs().leading_zeros());
    let saved = (finding.max - round.times(doublings)).at_least_zero();
    let share = saved.as_nanos().saturating_mul(1_000) / finding.max.as_nanos();
    finding.ns.times(share).divided_by(1_000)
}

/// Connections that a server's host drops while its program does not accept.
const ACCEPT_QUEUE: &[Form] = &[Form::AcceptQueue];
/// Data that may be a message of its own.
const OWN_MESSAGE: &[Form] = &[Form::OwnMessage];
/// The first choice for these: they cannot be joined with data that had to leave before.
const LEAVES_AT_ONCE: Step = or_else(
    OWN_MESSAGE,
    said(
        "Set TCP_NODELAY on the {side}'s socket; each write then leaves at once",
        step(&NODELAY, Who::Named, Rule::Whole, Confidence::Certain),
    ),
);
/// ... unless the earlier data need not leave first, or it is not a separate message.
const WRITTEN_TOGETHER: Step = or_else(
    OWN_MESSAGE,
    said(
        "If the {side} has both writes ready at the same time, join them: one buffer, or writev",
        step(&ONE_WRITE, Who::Named, Rule::AtMost, Confidence::Possible),
    ),
);
/// Packets that are too large for the path.
const BLACK_HOLE: &[Form] = &[Form::BlackHole];
/// Forms that faster repair does not help.
const NO_CHANCE: &[Form] = &[Form::AcceptQueue, Form::BlackHole, Form::Ignored, Form::Unrepaired];
/// Forms of packets that no interface drops.
const NO_DROPS: &[Form] = &[Form::BlackHole, Form::Ignored];
const IGNORED: &[Form] = &[Form::Ignored];

const fn step(fix: &'static Fix, who: Who, saves: Rule, confidence: Confidence) -> Step {
    Step { fix, who, saves, confidence, forms: &[], unless: &[], other_reading: false, said: None }
}

const fn only(forms: &'static [Form], step: Step) -> Step {
    Step { forms, ..step }
}

const fn unless(unless: &'static [Form], step: Step) -> Step {
    Step { unless, ..step }
}

const fn or_else(forms: &'static [Form], step: Step) -> Step {
    Step { forms, other_reading: true, ..step }
}

const fn said(said: &'static str, step: Step) -> Step {
    Step { said: Some(said), ..step }
}

/// The fixes of each cause, best first.
pub(crate) const fn plan(cause: Cause) -> &'static [Step] {
    use Confidence::{Certain, Likely, Possible};
    match cause {
        Cause::RoundTrip => {
            const {
                &[
                    step(&FEWER_ROUND_TRIPS, Who::Client, Rule::Unknown, Likely),
                    step(&CLOSER, Who::Path, Rule::Unknown, Certain),
                ]
            }
        }
        Cause::Bandwidth => const { &[step(&FEWER_BYTES, Who::Server, Rule::Unknown, Certain)] },
        Cause::Queueing => const { &[step(&AQM, Who::Path, Rule::AtMost, Possible)] },
        Cause::Loss => {
            const {
                &[
                    or_else(ACCEPT_QUEUE, step(&BACKLOG, Who::Server, Rule::Whole, Likely)),
                    step(&FIND_DROPS, Who::Path, Rule::Whole, Likely),
                    step(&KEEP_REPAIR, Who::Path, Rule::Unknown, Possible),
                ]
            }
        }
        Cause::Rto => {
            const {
                &[
                    or_else(ACCEPT_QUEUE, step(&BACKLOG, Who::Server, Rule::Whole, Likely)),
                    or_else(BLACK_HOLE, step(&PATH_MTU, Who::Path, Rule::Whole, Likely)),
                    or_else(IGNORED, step(&FIND_SILENT, Who::Path, Rule::Whole, Likely)),
                    unless(NO_DROPS, step(&FIND_DROPS, Who::Path, Rule::Whole, Likely)),
                    unless(NO_CHANCE, step(&KEEP_REPAIR, Who::Path, Rule::AtMost, Possible)),
                    unless(NO_CHANCE, step(&RTO_MIN, Who::Path, Rule::AtMost, Possible)),
                ]
            }
        }
        Cause::SynRetransmit => {
            const {
                &[
                    // A SYN may have been lost anywhere, unless other SYNs are dropped at the
                    // server.
                    unless(ACCEPT_QUEUE, step(&SYN_DROPS, Who::Path, Rule::Whole, Possible)),
                    step(&BACKLOG, Who::Server, Rule::Whole, Possible),
                ]
            }
        }
        Cause::Handshake => {
            const {
                &[
                    step(&REUSE, Who::Client, Rule::AllButFirst, Certain),
                    step(&FAST_OPEN, Who::Client, Rule::AllButFirst, Possible),
                ]
            }
        }
        Cause::TlsHandshake => {
            const {
                &[
                    step(&REUSE, Who::Client, Rule::AllButFirst, Certain),
                    step(&RESUME_TLS, Who::Server, Rule::AtMost, Possible),
                ]
            }
        }
        Cause::ServerThink => {
            const {
                &[
                    step(&PROFILE_SERVER, Who::Server, Rule::Unknown, Certain),
                    or_else(&[Form::OrCork], step(&UNCORK, Who::Server, Rule::Unknown, Possible)),
                ]
            }
        }
        Cause::SenderThink => const { &[step(&PROFILE_SENDER, Who::Named, Rule::Whole, Certain)] },
        Cause::ReceiverThink => const { &[step(&READ_PROMPTLY, Who::Named, Rule::Whole, Certain)] },
        Cause::NagleDelayedAck => {
            const {
                &[
                    unless(OWN_MESSAGE, step(&ONE_WRITE, Who::Named, Rule::Whole, Certain)),
                    unless(OWN_MESSAGE, step(&NODELAY, Who::Named, Rule::Whole, Certain)),
                    LEAVES_AT_ONCE,
                    WRITTEN_TOGETHER,
                    step(&QUICKACK, Who::Peer, Rule::AckDelay, Likely),
                ]
            }
        }
        Cause::Nagle => {
            const {
                &[
                    unless(OWN_MESSAGE, step(&ONE_WRITE, Who::Named, Rule::Whole, Certain)),
                    unless(OWN_MESSAGE, step(&NODELAY, Who::Named, Rule::Whole, Certain)),
                    LEAVES_AT_ONCE,
                    WRITTEN_TOGETHER,
                ]
            }
        }
        Cause::Cork => const { &[step(&UNCORK, Who::Named, Rule::Whole, Certain)] },
        Cause::DelayedAckCwnd => {
            const {
                &[
                    step(&INITCWND, Who::Peer, Rule::AckDelay, Likely),
                    step(&QUICKACK, Who::Named, Rule::AckDelay, Likely),
                    step(&REUSE, Who::Client, Rule::AtMost, Possible),
                ]
            }
        }
        Cause::SlowStart => {
            const {
                &[
                    step(&REUSE, Who::Client, Rule::AtMost, Likely),
                    step(&INITCWND, Who::Named, Rule::AtMost, Possible),
                    step(&FEWER_BYTES, Who::Named, Rule::Unknown, Possible),
                ]
            }
        }
        Cause::SlowStartAfterIdle => {
            const {
                &[
                    step(&SSAI_OFF, Who::Named, Rule::Whole, Certain),
                    step(&BBR, Who::Named, Rule::AtMost, Possible),
                ]
            }
        }
        Cause::CongestionWindow => {
            const {
                &[
                    step(&FIND_DROPS, Who::Path, Rule::AtMost, Likely),
                    step(&BBR, Who::Named, Rule::AtMost, Possible),
                ]
            }
        }
        Cause::ReceiveWindow => {
            const {
                &[
                    only(&[Form::Locked, Form::Capped], step(&NO_RCVBUF, Who::Named, Rule::Doubling, Likely)),
                    only(&[Form::Unscaled], step(&WINDOW_SCALING, Who::Named, Rule::Doubling, Likely)),
                    only(
                        &[Form::Locked, Form::Capped],
                        step(&RAISE_RMEM, Who::Named, Rule::Doubling, Likely),
                    ),
                    only(&[Form::Growing], step(&KEEP_WINDOW, Who::Client, Rule::AtMost, Likely)),
                ]
            }
        }
        Cause::ApplicationWindow => {
            const {
                &[
                    step(&RAISE_STREAM_WINDOW, Who::Named, Rule::Doubling, Likely),
                    step(&READ_PROMPTLY, Who::Named, Rule::AtMost, Possible),
                ]
            }
        }
        Cause::SendBuffer => {
            const {
                &[
                    step(&NO_SNDBUF, Who::Named, Rule::Doubling, Likely),
                    step(&RAISE_WMEM, Who::Named, Rule::Doubling, Possible),
                ]
            }
        }
        Cause::Pacing => const { &[step(&PACING, Who::Named, Rule::AtMost, Possible)] },
        Cause::Unexplained => const { &[step(&OTHER_END, Who::Path, Rule::Unknown, Possible)] },
    }
}

#[cfg(test)]
mod tests;
