//! What of the time between the capture and an end is the path's own, and what stood in its queues for all of a connection?
//!
//! Proof: the smallest round trip of all connections between these hosts is the path's own; what this one exceeds it by stood
//! in queues, where a queue of about that length was seen.
//! Refuted by: a longer way that never varies: it is another way (another host behind the same address).
//! Source: arithmetic; timers of delayed acknowledgements that look like a round trip: TCP_DELACK_MIN and TCP_DELACK_MAX,
//! include/net/tcp.h, Linux 6.12.
//! Seen from: both ends; an end of which no packet of the handshake is in the capture may be nearer than its quickest answer says.

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

/// A queue is one part in so many of the path at least, and varies by one part in so many. Source: none written down.
const QUEUE_SHARE: i64 = 4;
/// Ways between the same hosts differ by less; what is longer by as much may have stood, or stands for another host. Source: none written down.
const OTHER_WAY_MAX: Duration = Duration::from_millis(20);

/// What of that way stood in its queues, where other connections have seen it shorter.
#[inline(never)]
pub(crate) fn stood(pair: &Pair<'_>, end: usize, sender: Side) -> Option<Charge> {
    above_least(pair.path_memory, end, pair.tap_rtt[end]).and_then(|_| of_path(pair, end, sender).1)
}

/// The way between the capture and an end and back: the path's smallest round trip, and what stood in its queues
/// during this whole connection, where other connections between the same hosts have seen it shorter.
pub(crate) fn of_path(pair: &Pair<'_>, end: usize, sender: Side) -> (Charge, Option<Charge>) {
    let tap_rtt = pair.tap_rtt[end];
    // Where no packet of the handshake shows it, an end may be nearer than its quickest answer says, and is if it never answers without data.
    let sure = if pair.shown[end] && (end == CLIENT || !pair.is_unproven()) {
        Confidence::Certain
    } else if pair.shown[end] {
        Confidence::Likely
    } else if pair.bound[end] || pair.is_ambiguous(end) || is_timers(tap_rtt) {
        Confidence::Possible
    } else {
        Confidence::Likely
    };
    let Some(above) = above_least(pair.path_memory, end, tap_rtt) else {
        return (Charge::new(Cause::RoundTrip, sender, tap_rtt, sure), None);
    };
    let Some((queued, seen)) = standing(pair.flows, pair.path_memory, end, pair.tap_rtt, pair.now, above)
    else {
        // It is another way, or all of this connection stood.
        let sure = if above >= OTHER_WAY_MAX { sure.min(Confidence::Likely) } else { sure };
        return (Charge::new(Cause::RoundTrip, sender, tap_rtt, sure), None);
    };
    let round_trip = |path| Charge::new(Cause::RoundTrip, sender, path, sure);
    let confidence = if seen { Confidence::Likely } else { Confidence::Possible };
    let stood = Charge::new(Cause::Queueing, sender, queued, confidence);
    (
        round_trip(tap_rtt - queued),
        Some(stood.detail(Detail { form: Some(Form::Standing), ..Detail::default() })),
    )
}

/// By how much the way to an end, which takes `tap_rtt` now, is longer than any connection between these hosts knows it: nothing where
/// that is too little for a queue.
#[inline]
pub(crate) fn above_least(path_memory: &PathMemory, end: usize, tap_rtt: Duration) -> Option<Duration> {
    let path = path_memory.min(end).filter(|path| tap_rtt - *path >= QUEUED_MIN)?;
    Some(tap_rtt - path).filter(|above| *above >= path.divided_by(QUEUE_SHARE))
}

/// Whether what the way to an end takes may not be all its round trip, as other connections know it shorter: some of it stood in queues, or it is longer
/// than by another way.
#[inline]
pub(crate) fn may_stand(
    flows: &[Flow; 2],
    path_memory: &PathMemory,
    end: usize,
    tap_rtt: [Duration; 2],
    now: Instant,
) -> bool {
    above_least(path_memory, end, tap_rtt[end]).is_some_and(|above| {
        above >= OTHER_WAY_MAX || standing(flows, path_memory, end, tap_rtt, now, above).is_some()
    })
}

/// How much of what the way to an end takes `above` the least stood in queues, and whether such a queue was seen: nothing where nothing shows a
/// queue.
#[inline]
fn standing(
    flows: &[Flow; 2],
    path_memory: &PathMemory,
    end: usize,
    tap_rtt: [Duration; 2],
    now: Instant,
    above: Duration,
) -> Option<(Duration, bool)> {
    // A longer way that never varies is another way (another host behind the same address), not a queue. Stamps say how late a packet came, and round
    // trips what both ways took together.
    let late = flows.iter().map(|flow| flow.queued_peak).max().unwrap_or_default();
    let least = tap_rtt[CLIENT] + tap_rtt[SERVER];
    let smoothed = || flows[1 - end].rto.srtt().map_or(Duration::ZERO, |smoothed| smoothed - least);
    let varied = if above >= OTHER_WAY_MAX { late.max(smoothed()) } else { late };
    let seen = path_memory.stood(end, now, above);
    (seen || varied >= above.divided_by(QUEUE_SHARE)).then_some((above, seen))
}

/// The same behind a message that nobody answers: that its sender waits until it could know that it has arrived is no more than possible,
/// however well the way is known.
pub(crate) fn behind_one_way(pair: &Pair<'_>, end: usize, sender: Side) -> (Charge, Option<Charge>) {
    let (mut path, mut stood) = of_path(pair, end, sender);
    for charge in std::iter::once(&mut path).chain(&mut stood) {
        charge.confidence = Confidence::Possible;
    }
    (path, stood)
}

/// The way from the capture to whoever asked; for a one-way message to the receiver and back.
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

/// The same of an answer on a path that is as long as ever.
#[inline]
pub(crate) fn charge_usual_way_back(account: &mut Account, side: Side, rtt: Duration, packet: u64) {
    let way = Charge::new(Cause::RoundTrip, side, rtt, Confidence::Certain);
    account.charge_back(&way.evidence(packet, 0));
}

/// The same of an answer that had not reached whoever asked when it should have.
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

/// What is known from above only may be the next question's pause, or a timer: nobody waited for that.
fn is_unknown(pair: &Pair<'_>, end: usize) -> bool {
    pair.bound[end] || !pair.shown[end] && is_timers(pair.tap_rtt[end])
}

/// The way back to a client that waits for the handshake's end, and how sure that is.
pub(crate) fn to_client(pair: &Pair<'_>) -> (Duration, Confidence) {
    if is_unknown(pair, CLIENT) {
        return (Duration::ZERO, Confidence::Certain); // nothing of it is billed
    }
    let sure = if pair.shown[CLIENT] { Confidence::Certain } else { Confidence::Likely };
    (pair.tap_rtt[CLIENT], sure)
}

/// Whether a round trip is as long as a timer of delayed acknowledgements and its tick: 40 and 200 ms (TCP_DELACK_MIN and TCP_DELACK_MAX,
/// include/net/tcp.h), 100 ms (BSD), 200 ms (Windows), of which newer versions take 40 ms and a tick of 15.6 ms (DelayedAckTimeout of Get-NetTCPSetting).
fn is_timers(rtt: Duration) -> bool {
    [36..57, 95..112, 190..216].iter().any(|range| range.contains(&(rtt.as_nanos() / 1_000_000)))
}
