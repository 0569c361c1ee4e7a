//! How much of the time between the capture and an end is the path's own, and how much was queueing
//! throughout a connection?
//!
//! Proof: the smallest round trip of all connections between these hosts is the path's own; the
//! excess of this one is queueing, where a queue of about that length was seen.
//! Refuted by: a longer path that never varies: a different path (another host behind the same
//! address). Where the round trip has become shorter since the handshake, the least so far is certain
//! only once others agree with it; so is a first one that no other agrees with, of this connection or of another
//! at another time.
//! Source: arithmetic; delayed-acknowledgement timers that look like a round trip: TCP_DELACK_MIN
//! and TCP_DELACK_MAX, include/net/tcp.h, Linux 6.12.
//! Seen from: both ends; an end whose handshake packets are missing from the capture may be nearer
//! than its quickest answer says.

use std::ops::RangeInclusive;

use tcpwhy_wire::{Duration, Instant};

use super::pair::Pair;
use crate::bill::account::Account;
use crate::bill::charge::Charge;
use crate::flow::direction::Flow;
use crate::flow::ends::{CLIENT, SERVER, side};
use crate::flow::path_memory::PathMemory;
use crate::words::cause::{Cause, Side};
use crate::words::form::Form;
use crate::words::limits::QUEUED_MIN;
use crate::words::report::{Confidence, Detail, Kind};

/// A queue is at least one part in this many of the path, and varies by one part in this many.
/// Source: none written down.
const QUEUE_SHARE: i64 = 4;
/// Paths between the same hosts differ by less; on one longer by this much a queue shows by its round trips,
/// not only by time stamps. Source: none written down.
const OTHER_WAY_MAX: Duration = Duration::from_millis(20);
/// A client whose handshake has shown it this many times nearer is hardly another one behind the same address. Source: none written down.
const LONGER_TIMES: i64 = 10;
/// A path that varies is steady again if its smoothed round trip is above the least by at most one part in
/// this many. Source: none written down.
const STEADY_SHARE: i64 = 16;
/// ... and this many exchanges after it has become much shorter: until then, the shorter round trip may be all
/// that the smoothed one is made of. Source: none written down.
const STEADY_AFTER: u32 = 3;
/// It has become much shorter by one part in this many, or more. Source: none written down.
const SHORTER_SHARE: i64 = 10;

/// How the round trip to an end became shorter than the handshake had shown it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) enum Shortened {
    /// It has not, or hardly.
    #[default]
    No,
    /// A packet was answered sooner. If much sooner, others agree no earlier than in this exchange.
    Seen { from: u32 },
    /// An answer was not sooner, but its time stamp says how long it stood on its way back. What it answers
    /// may have stood as well: that is an upper bound.
    Reckoned,
}

impl Shortened {
    /// A packet was answered after `rtt` in the exchange `now`, sooner than any before, which took `known`.
    pub(crate) fn seen(self, known: Option<Duration>, rtt: Duration, now: u32) -> Self {
        let much = known.is_some_and(|known| known - rtt >= known.divided_by(SHORTER_SHARE));
        match self {
            Self::Seen { from } if !much => Self::Seen { from },
            _ => Self::Seen { from: if much { now.saturating_add(STEADY_AFTER) } else { 0 } },
        }
    }
}

/// Whether the least round trip to an end may be more than the path in the exchange `now`, since the
/// handshake's was: a later one may be shorter again, until several agree.
#[cold]
#[inline(never)]
pub(crate) fn varies(
    how: Shortened,
    now: u32,
    flows: &[Flow; 2],
    end: usize,
    tap_rtt: [Duration; 2],
) -> bool {
    let only = matches!(how, Shortened::Seen { from } if now < from);
    let alone = how == Shortened::Reckoned || only;
    let play = QUEUED_MIN.max(tap_rtt[end].divided_by(STEADY_SHARE));
    let smoothed = flows[1 - end].rto.srtt().map(|smoothed| smoothed - tap_rtt[CLIENT] - tap_rtt[SERVER]);
    tap_rtt[end] >= QUEUED_MIN && (alone || smoothed.is_none_or(|above| above > play))
}

/// The part of that path which was queueing, where other connections have seen it shorter.
#[inline(never)]
pub(crate) fn stood(pair: &Pair<'_>, end: usize, sender: Side) -> Option<Charge> {
    above_least(pair.path_memory, end, pair.tap_rtt[end]).and_then(|_| of_path(pair, end, sender).1)
}

/// The round trip between the capture and an end: the path's minimum, and the queueing throughout
/// this connection, where other connections between the same hosts have seen it shorter.
pub(crate) fn of_path(pair: &Pair<'_>, end: usize, sender: Side) -> (Charge, Option<Charge>) {
    let tap_rtt = pair.tap_rtt[end];
    // If no handshake packet shows it, an end may be nearer than its quickest answer, and is if it
    // never answers without data.
    let sure = if end == SERVER && pair.is_client_untimed() {
        Confidence::Possible
    } else if pair.shown[end] && (end == CLIENT || !pair.is_unproven()) {
        Confidence::Certain
    } else if pair.shown[end] {
        Confidence::Likely
    } else if pair.bound[end] || pair.is_ambiguous(end) || is_timers(tap_rtt) || !is_agreed(pair, end) {
        Confidence::Possible
    } else {
        Confidence::Likely
    };
    let sure = if pair.varies[end] { sure.min(Confidence::Likely) } else { sure };
    let Some(above) = above_least(pair.path_memory, end, tap_rtt) else {
        return (Charge::new(Cause::RoundTrip, sender, tap_rtt, sure), None);
    };
    let Some((queued, seen)) = standing(pair.flows, pair.path_memory, end, pair.tap_rtt, pair.now, above)
    else {
        // It is another path, or this connection was queued throughout.
        return (Charge::new(Cause::RoundTrip, sender, tap_rtt, sure.min(Confidence::Likely)), None);
    };
    let confidence = if seen { Confidence::Likely } else { Confidence::Possible };
    let round_trip = |path| Charge::new(Cause::RoundTrip, sender, path, sure);
    let stood = Charge::new(Cause::Queueing, sender, queued, confidence);
    (
        round_trip(tap_rtt - queued),
        Some(stood.detail(Detail { form: Some(Form::Standing), ..Detail::default() })),
    )
}

/// Whether other round trips to an end, of this connection or others, agree with the least of a connection
/// without a handshake. A first one may be a queue's, or a program's.
fn is_agreed(pair: &Pair<'_>, end: usize) -> bool {
    let tap_rtt = pair.tap_rtt[end];
    let play = QUEUED_MIN.max(tap_rtt.divided_by(QUEUE_SHARE));
    let least = pair.tap_rtt[CLIENT] + pair.tap_rtt[SERVER];
    let steady = pair.flows[1 - end].rto.settled().is_some_and(|smoothed| smoothed - least <= play);
    let known = pair.path_memory.shown(end).is_some_and(|known| tap_rtt - known <= play);
    tap_rtt < QUEUED_MIN || steady || known
}

/// How much longer the round trip to an end, now `tap_rtt`, is than the least of all connections
/// between these hosts; nothing if that is too little for a queue.
#[inline]
pub(crate) fn above_least(path_memory: &PathMemory, end: usize, tap_rtt: Duration) -> Option<Duration> {
    let above = path_memory.above(end, tap_rtt);
    // Compared first: most are hardly longer.
    let path = path_memory.min(end).filter(|_| above >= QUEUED_MIN)?;
    (above >= path.divided_by(QUEUE_SHARE)).then_some(above)
}

/// How much of the excess `above` was queueing, and whether such a queue was seen; nothing if there
/// is no sign of one.
#[inline]
pub(crate) fn standing(
    flows: &[Flow; 2],
    path_memory: &PathMemory,
    end: usize,
    tap_rtt: [Duration; 2],
    now: Instant,
    above: Duration,
) -> Option<(Duration, bool)> {
    // A longer path that never varies is a different path (another host behind the same address),
    // not a queue. Time stamps show how late a packet came, and round trips what both directions
    // took together.
    let late = flows.iter().map(|flow| flow.queued_peak).max().unwrap_or_default();
    let least = tap_rtt[CLIENT] + tap_rtt[SERVER];
    let smoothed = || flows[1 - end].rto.srtt().map_or(Duration::ZERO, |smoothed| smoothed - least);
    let varied = if above >= OTHER_WAY_MAX { late.max(smoothed()) } else { late };
    let seen = path_memory.stood(end, now, above);
    // A server much nearer may be a host in between that acknowledges for it (`rules/proxy.rs`).
    let much = || {
        let times = |path: Duration| tap_rtt[end] - path >= OTHER_WAY_MAX.max(path.times(LONGER_TIMES));
        end == CLIENT && path_memory.shown(end).is_some_and(times)
    };
    (seen || varied >= above.divided_by(QUEUE_SHARE) || much()).then_some((above, seen))
}

/// The same after a message that nobody answers: that its sender waits until it could know of the
/// arrival is at most possible, however well the path is known.
pub(crate) fn behind_one_way(pair: &Pair<'_>, end: usize, sender: Side) -> (Charge, Option<Charge>) {
    let (mut path, mut stood) = of_path(pair, end, sender);
    for charge in std::iter::once(&mut path).chain(&mut stood) {
        charge.confidence = Confidence::Possible;
    }
    (path, stood)
}

/// The round trip from the capture to the requester; for a one-way message to both ends.
pub(crate) fn charge_way_back(
    pair: &Pair<'_>,
    account: &mut Account,
    kind: Kind,
    speaker: usize,
    packet: u64,
) -> Duration {
    let ends = if kind == Kind::OneWay { CLIENT..=SERVER } else { 1 - speaker..=1 - speaker };
    let way = if kind == Kind::OneWay { behind_one_way } else { of_path };
    charge_ways(pair, account, ends, way, (speaker, packet))
}

/// The same for an answer on a path of its usual length.
#[inline]
pub(crate) fn charge_usual_way_back(
    account: &mut Account,
    side: Side,
    (rtt, sure): (Duration, Confidence),
    packet: u64,
) {
    let way = || Charge::new(Cause::RoundTrip, side, rtt, sure).evidence(packet, 0);
    account.charge_back((rtt, sure), packet, way);
}

/// The same for an answer that had not reached the requester when it should have.
#[cold]
#[inline(never)]
pub(crate) fn charge_doubtful_way_back(
    pair: &Pair<'_>,
    account: &mut Account,
    speaker: usize,
    packet: u64,
) -> Duration {
    charge_ways(pair, account, 1 - speaker..=1 - speaker, behind_one_way, (speaker, packet))
}

fn charge_ways(
    pair: &Pair<'_>,
    account: &mut Account,
    ends: RangeInclusive<usize>,
    way: impl Fn(&Pair<'_>, usize, Side) -> (Charge, Option<Charge>),
    (speaker, packet): (usize, u64),
) -> Duration {
    let before = account.total();
    for end in ends {
        if is_unknown(pair, end) {
            continue;
        }
        let (path, stood) = way(pair, end, side(speaker));
        account.charge(&path.evidence(packet, 0));
        if let Some(stood) = stood {
            account.charge(&stood.evidence(packet, 0));
        }
    }
    account.total() - before
}

/// A mere upper bound may be the next request's pause, or a timer: nobody waited for that.
fn is_unknown(pair: &Pair<'_>, end: usize) -> bool {
    pair.bound[end] || !pair.shown[end] && is_timers(pair.tap_rtt[end])
}

/// The round trip to a client that waits for the end of the handshake, and its confidence.
pub(crate) fn to_client(pair: &Pair<'_>) -> (Duration, Confidence) {
    if is_unknown(pair, CLIENT) {
        return (Duration::ZERO, Confidence::Certain); // none of it is billed
    }
    let told = pair.shown[CLIENT] && !pair.varies[CLIENT];
    let sure = if told { Confidence::Certain } else { Confidence::Likely };
    (pair.tap_rtt[CLIENT], sure)
}

/// Whether a round trip is as long as a delayed-acknowledgement timer plus its tick: 40 and 200 ms
/// (TCP_DELACK_MIN and TCP_DELACK_MAX, include/net/tcp.h), 100 ms (BSD), 200 ms (Windows; newer
/// versions 40 ms and a tick of 15.6 ms, DelayedAckTimeout of Get-NetTCPSetting).
fn is_timers(rtt: Duration) -> bool {
    [36..57, 95..112, 190..216].iter().any(|range| range.contains(&(rtt.as_nanos() / 1_000_000)))
}
