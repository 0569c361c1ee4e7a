//! Which fixes does this finding call for, in which order, and what would each save?
//!
//! The saving is the bill's own: what the cause took, as far as the fix takes it away. Where the bill cannot tell (a
//! larger window runs into the next limit), it says so instead of guessing.

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
    AQM, CLOSER, FEWER_BYTES, FEWER_ROUND_TRIPS, FIND_DROPS, KEEP_REPAIR, PATH_MTU, RTO_MIN, SYN_DROPS,
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
    /// How sure it is that this fix takes the cause away.
    pub confidence: Confidence,
    /// How to apply it on that side, by language and server.
    pub how: Vec<How>,
}

/// What a fix would save over the whole capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Saves {
    /// This much: nothing else stands behind the wait.
    Estimate(Duration),
    /// No more than this: the next limit may take part of it.
    AtMost(Duration),
    /// So much at least, where nothing but the start of a transfer is the next limit, and so much at most.
    Between(Duration, Duration),
    /// The bill cannot tell.
    Unknown,
}

/// The fixes for a finding, the best one first.
pub fn remedies_for(finding: &Finding) -> Vec<Remedy> {
    let steps = plan(finding.cause);
    // A form that no fix is made for is answered like a finding without a form: with all of them.
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
                // It speaks of what the catalogue's sentence advises.
                caveat: step.fix.caveat.filter(|_| !step.is_told()),
                saves: if_so(step.saves.of(finding), finding.confidence),
                confidence: step.confidence.min(finding.confidence),
                how: step.fix.how_on(side).collect(),
            }
        })
        .collect()
}

impl Fix {
    /// How the fix is applied on one side; everything where the side is the path's or unknown.
    pub fn how_on(&self, side: Side) -> impl Iterator<Item = How> + use<> {
        self.how.iter().copied().filter(move |how| match side {
            Side::Client | Side::Server => how.only.is_none_or(|only| only == side),
            Side::Path | Side::Unknown => true,
        })
    }
}

/// Fills in who is meant.
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
    /// Only for these sub-forms of the cause; none for all of them.
    pub(crate) forms: &'static [Form],
    /// Not for these.
    unless: &'static [Form],
    /// It is for what such a form can be instead of its cause.
    other_reading: bool,
    /// How it is said there, where the catalogue's sentence does not fit.
    said: Option<&'static str>,
}

impl Step {
    /// The change in one sentence, as in [`Fix::what`].
    pub(crate) fn what(&self) -> &'static str {
        self.said.unwrap_or(self.fix.what)
    }

    /// Whether another step of the cause has told how the same fix is applied.
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
    /// The network, or whoever runs it.
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

/// How much of the finding's time the fix takes away.
#[derive(Clone, Copy)]
enum Rule {
    /// All of it.
    Whole,
    /// No more than all of it.
    AtMost,
    /// Only the delay of the acknowledgement; the round trip stays.
    AckDelay,
    /// All but the first of each: one connection must still be opened.
    AllButFirst,
    /// A window that is no limit any more is still opened by doubling it each round trip.
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
            // The delay is the longest of the most expensive hit, so the median bounds it from above.
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

/// What a fix saves of time that may be another cause's: perhaps nothing.
fn if_so(saves: Saves, confidence: Confidence) -> Saves {
    match (saves, confidence) {
        (Saves::Estimate(most) | Saves::Between(_, most), Confidence::Possible) => Saves::AtMost(most),
        _ => saves,
    }
}

/// What of a finding's time is left when windows double instead of standing still: a hit of n round trips has sent n windows, which
/// leave in the k round trips for which 2^k - 1 >= n (RFC 5681, 3.1).
fn doubled(finding: &Finding, round: Duration) -> Duration {
    let rounds = (finding.max.as_nanos() + round.as_nanos() - 1) / round.as_nanos();
    let doublings = i64::from(u64::BITS - rounds.unsigned_abs().leading_zeros());
    let saved = (finding.max - round.times(doublings)).at_least_zero();
    let share = saved.as_nanos().saturating_mul(1_000) / finding.max.as_nanos();
    finding.ns.times(share).divided_by(1_000)
}

/// What a server's host drops while its program does not accept.
const ACCEPT_QUEUE: &[Form] = &[Form::AcceptQueue];
/// What may be no part of what was written before.
const OWN_MESSAGE: &[Form] = &[Form::OwnMessage];
/// The first choice for such: it cannot be written with something that had to leave before.
const LEAVES_AT_ONCE: Step = or_else(
    OWN_MESSAGE,
    said(
        "Set TCP_NODELAY on the {side}'s socket; each write then leaves at once",
        step(&NODELAY, Who::Named, Rule::Whole, Confidence::Certain),
    ),
);
/// ... unless it need not, or was no such.
const WRITTEN_TOGETHER: Step = or_else(
    OWN_MESSAGE,
    said(
        "If the {side} has both writes ready at the same time, join them: one buffer, or writev",
        step(&ONE_WRITE, Who::Named, Rule::AtMost, Confidence::Possible),
    ),
);
/// What is too large for the path.
const BLACK_HOLE: &[Form] = &[Form::BlackHole];
/// What no repair helps, however soon it is.
const NO_CHANCE: &[Form] = &[Form::AcceptQueue, Form::BlackHole, Form::Unrepaired];

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

/// What each cause calls for, the best fix first.
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
                    unless(BLACK_HOLE, step(&FIND_DROPS, Who::Path, Rule::Whole, Likely)),
                    unless(NO_CHANCE, step(&KEEP_REPAIR, Who::Path, Rule::AtMost, Possible)),
                    unless(NO_CHANCE, step(&RTO_MIN, Who::Path, Rule::AtMost, Possible)),
                ]
            }
        }
        Cause::SynRetransmit => {
            const {
                &[
                    // A SYN may have been lost anywhere, unless more that opens connections is dropped at the server.
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
mod tests {
    use tcpwhy_core::report::{Detail, Servers};
    use tcpwhy_wire::Endpoint;

    use super::*;
    use crate::Stack;

    fn finding(cause: Cause, sender: Side) -> Finding {
        Finding {
            cause,
            side: cause.side(sender),
            servers: Servers::One(Endpoint::v4([10, 0, 0, 2], 8080)),
            hits: 10,
            of: 10,
            ns: Duration::from_millis(440),
            p50: Duration::from_millis(44),
            p99: Duration::from_millis(45),
            max: Duration::from_millis(45),
            slow: None,
            without: None,
            confidence: Confidence::Certain,
            evidence: vec![],
            worst: (1, 1),
            detail: Detail { ack_delay: Some(Duration::from_millis(40)), ..Detail::default() },
        }
    }

    fn ids(remedies: &[Remedy]) -> Vec<(&'static str, Side)> {
        remedies.iter().map(|r| (r.id, r.side)).collect()
    }

    #[test]
    fn one_write_comes_before_nodelay_and_both_belong_to_who_writes() {
        for sender in [Side::Client, Side::Server] {
            let remedies = remedies_for(&finding(Cause::NagleDelayedAck, sender));
            assert_eq!(
                ids(&remedies),
                [("one-write", sender), ("nodelay", sender), ("quickack", sender.peer())]
            );
            assert_eq!(remedies[0].saves, Saves::Estimate(Duration::from_millis(440)));
            // The peer's acknowledgement saves its own delay; the round trip of the hold stays.
            assert_eq!(remedies[2].saves, Saves::Estimate(Duration::from_millis(400)));
            assert!(remedies[1].caveat.is_some_and(|caveat| caveat.contains("tiny packets")));
        }
    }

    /// A send buffer at its ceiling, possibly: raised, it saved 0.7 ms of 251, since the receiver's window was the next limit.
    #[test]
    fn the_fix_of_what_is_only_possible_saves_from_nothing_up() {
        let mut held = finding(Cause::NagleDelayedAck, Side::Server);
        assert_eq!(remedies_for(&held)[0].saves, Saves::Estimate(held.ns));
        held.confidence = Confidence::Possible;
        assert_eq!(remedies_for(&held)[0].saves, Saves::AtMost(held.ns));
    }

    /// A message of its own cannot be written with one that had to leave before it.
    #[test]
    fn what_may_be_a_message_of_its_own_is_told_to_leave_at_once_first() {
        for cause in [Cause::Nagle, Cause::NagleDelayedAck] {
            let mut held = finding(cause, Side::Server);
            held.detail.form = Some(Form::OwnMessage);
            let remedies = remedies_for(&held);
            assert_eq!(ids(&remedies)[..2], [("nodelay", Side::Server), ("one-write", Side::Server)]);
            assert!(remedies[0].what.starts_with("Set TCP_NODELAY on the server's socket"));
            assert!(remedies[..2].iter().all(|remedy| remedy.caveat.is_none()), "{remedies:?}");
            assert_eq!(remedies[1].saves, Saves::AtMost(Duration::from_millis(440)));
            // Any other form is told as before.
            held.detail.form = Some(Form::Rfc896);
            assert_eq!(ids(&remedies_for(&held))[0], ("one-write", Side::Server));
        }
    }

    #[test]
    fn a_lost_syn_is_looked_for_on_the_path_unless_the_server_shows_that_its_queue_is_full() {
        let mut lost = finding(Cause::SynRetransmit, Side::Client);
        assert_eq!(
            ids(&remedies_for(&lost)),
            [("find-syn-drops", Side::Path), ("listen-backlog", Side::Server)]
        );
        lost.detail.form = Some(Form::AcceptQueue);
        assert_eq!(ids(&remedies_for(&lost)), [("listen-backlog", Side::Server)]);
    }

    #[test]
    fn a_server_is_told_its_own_nginx_lines_and_a_client_is_not() {
        let nginx = |side| {
            remedies_for(&finding(Cause::NagleDelayedAck, side))[0]
                .how
                .iter()
                .find(|how| how.stack == Stack::Nginx)
                .map(|how| how.text)
        };
        assert!(nginx(Side::Server).is_some_and(|text| text.contains("tcp_nopush")));
        assert!(nginx(Side::Client).is_some_and(|text| text.contains("proxy_request_buffering")));
    }

    #[test]
    fn a_receive_window_is_answered_by_its_form() {
        let mut finding = finding(Cause::ReceiveWindow, Side::Server);
        assert_eq!(finding.side, Side::Client);
        // Which of the two bounds a window that stands still, packets hardly tell: neither alone, neither for certain.
        for form in [Form::Locked, Form::Capped] {
            finding.detail.form = Some(form);
            let remedies = remedies_for(&finding);
            assert_eq!(ids(&remedies), [("no-rcvbuf", Side::Client), ("raise-tcp-rmem", Side::Client)]);
            assert!(remedies.iter().all(|remedy| remedy.confidence < Confidence::Certain));
            assert!(
                remedies.iter().all(|remedy| remedy.caveat.is_some_and(|caveat| caveat.contains("ss -tm")))
            );
        }
        finding.detail.form = Some(Form::Growing);
        assert_eq!(ids(&remedies_for(&finding)), [("keep-connection", Side::Client)]);
        finding.detail.form = Some(Form::Timeout);
        assert_eq!(remedies_for(&finding).len(), 4);
    }

    /// 1.2 s of a window of 64 KB at 50 ms are 24 rounds, and 24 windows leave in five rounds that double: measured without
    /// SO_RCVBUF, the same transfer takes 0.9 s less.
    #[test]
    fn a_window_that_is_no_limit_any_more_is_still_opened() {
        let mut finding = finding(Cause::ReceiveWindow, Side::Server);
        finding.detail.form = Some(Form::Locked);
        finding.detail.round = Some(Duration::from_millis(50));
        (finding.ns, finding.max, finding.hits) =
            (Duration::from_millis(2_400), Duration::from_millis(1_200), 2);
        let saves = remedies_for(&finding)[0].saves;
        let [least, most] = [2 * (1_200 - 5 * 50), 2_400].map(Duration::from_millis);
        assert!(
            matches!(saves, Saves::Between(l, m) if m == most && l <= least && least - l < Duration::from_millis(3))
        );
        // A single round is no less.
        finding.max = Duration::from_millis(50);
        assert_eq!(remedies_for(&finding)[0].saves, Saves::Between(Duration::ZERO, most));
    }

    #[test]
    fn a_reply_as_late_as_a_cork_s_timer_is_answered_with_the_other_reading_too() {
        let mut finding = finding(Cause::ServerThink, Side::Server);
        assert_eq!(ids(&remedies_for(&finding)), [("profile-server", Side::Server)]);
        finding.detail.form = Some(Form::OrCork);
        let remedies = remedies_for(&finding);
        assert_eq!(ids(&remedies), [("profile-server", Side::Server), ("uncork", Side::Server)]);
        assert_eq!(remedies[1].confidence, Confidence::Possible);
    }

    #[test]
    fn nobody_is_told_to_set_tcp_options_where_the_time_is_the_programs_or_the_paths() {
        let tcp_knobs = ["nodelay", "quickack", "one-write", "initcwnd", "no-rcvbuf", "no-sndbuf", "bbr"];
        for cause in
            [Cause::ServerThink, Cause::SenderThink, Cause::ReceiverThink, Cause::RoundTrip, Cause::Bandwidth]
        {
            for remedy in remedies_for(&finding(cause, Side::Client)) {
                assert!(!tcp_knobs.contains(&remedy.id), "{cause}: {}", remedy.id);
            }
        }
    }

    #[test]
    fn a_fix_is_never_surer_than_the_finding_and_never_saves_more_than_it_cost() {
        for cause in Cause::ALL {
            let mut finding = finding(cause, Side::Server);
            finding.confidence = Confidence::Possible;
            let remedies = remedies_for(&finding);
            assert!(!remedies.is_empty(), "{cause} has no remedy");
            for remedy in remedies {
                assert_eq!(remedy.confidence, Confidence::Possible);
                assert!(!remedy.what.contains('{'), "{}", remedy.what);
                match remedy.saves {
                    Saves::Estimate(ns) | Saves::AtMost(ns) => {
                        assert!(ns <= finding.ns && ns >= Duration::ZERO);
                    }
                    Saves::Between(least, most) => {
                        assert!(Duration::ZERO <= least && least <= most && most <= finding.ns);
                    }
                    Saves::Unknown => {}
                }
            }
        }
    }
}
