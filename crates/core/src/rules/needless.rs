//! Was a timer early and its retransmission unnecessary?
//!
//! Proof: a D-SACK after the acknowledgement that seemed to answer the retransmission, an
//! acknowledgement sooner than the retransmission can have caused it, or one that ends within the
//! retransmission, or beyond it where only the first transmission ended: this had arrived, and its
//! acknowledgement was late. The same of
//! a retransmission that duplicate acknowledgements had asked for, if the acknowledgement that begins
//! with its bytes echoes an older time stamp, or comes within half a round trip: it was reordered. Nor was it
//! lost if one ended within it, and the next one comes sooner than a round trip.
//! Refuted by: time stamps (an echo of the retransmission's answers that); another connection of these hosts whose round
//! trip is short enough; selective or duplicate
//! acknowledgements of what was sent after it: the receiver lacks it. If the same bytes were
//! retransmitted several times, D-SACKs count from the last.
//! Source: RFC 2883, 4; RFC 9293, 3.10.7.4 (a receiver acknowledges up to a segment's end; only the
//! first transmission ended there); RFC 3522, 1 and RFC 6298, 3 (neither sequence nor
//! acknowledgement number tells which transmission is acknowledged); RFC 9293, 3.8.6.3 (nobody
//! delays an acknowledgement for as long as a timer of 200 ms or more).
//! Seen from: near the sender; near the receiver the first transmission either passed or did not.
//!
//! The time until then still belongs to the path: it stood still, or was slow to bring the
//! acknowledgement.

use tcpwhy_wire::{Duration, Instant, SackBlock, Segment};

use super::late_request;
use super::pair::Pair;
use crate::bill::exchange::Path;
use crate::bill::revise::Revision;
use crate::words::limits::{HOST_VARIATION, ROUND_TRIP_PLAY};

/// A round trip that no other agrees with may be shorter by one part in this many. Source: none written down.
const VARIES_PLAY: i64 = 2;
/// An acknowledgement comes by chance within a round trip of a retransmission that it does not answer, if it was as late as so
/// many round trips: it hardly ever does. Source: none written down.
const CHANCE_RTTS: i64 = 64;

/// What an acknowledgement from `from`, and the D-SACK in it, show of the retransmissions on its
/// peer's `path`.
pub(crate) fn judge(
    pair: &Pair<'_>,
    path: &mut Path,
    ack: &Segment,
    from: usize,
    told: Option<SackBlock>,
) -> Option<Revision<'static>> {
    let sender = &pair.flows[1 - from];
    // A receiver known only by answers to retransmissions may be anywhere; a D-SACK means the same
    // from everywhere.
    let anywhere = told.is_some() && !pair.tap_rtt[from].is_positive();
    if pair.tap_rtt[1 - from] > pair.tap_rtt[from] && !anywhere {
        return None;
    }
    if let Some(spare) = told.and_then(|block| path.told_spare(block, heard_of(pair, ack, from))) {
        return Some(Revision::CopySpare(spare));
    }
    let way = pair.tap_rtt[from];
    if sender.newly_acked > 0 {
        // Without time stamps, an acknowledgement within half a round trip answers the first transmission.
        let since = (!sender.timestamps).then(|| ack.at - way.divided_by(2));
        let spare = path.unanswered_spare(ack, sender.newly_acked, since, sender.is_front_spare());
        if spare.is_some() {
            return spare.map(Revision::CopySpare);
        }
        path.enter_copies(ack.ack, pair.sizes[1 - from]);
    }
    path.repaired_at()?;
    let before = path.last.map(|last| last.at)?;
    if sender.newly_acked > 0 && ack.window > 0 && late_request::is_acked_late(pair, ack.at - before) {
        let around = path.spare_around(ack, pair.sizes[1 - from]);
        if around.is_some() {
            return around.map(Revision::CopySpare);
        }
    }
    let by_chance = ack.at - before > way.times(CHANCE_RTTS);
    // What was reported as missing when the copy left was on its way all the same, if the first of it has come since.
    let came = path.came_late();
    let missing = sender.unusual.sack_or_dupack_at > before && !came;
    if sender.timestamps || by_chance || missing {
        return None;
    }
    // A round trip that no other agrees with, or that became shorter, may do so again.
    let play = if pair.varies[from] && !came { VARIES_PLAY } else { ROUND_TRIP_PLAY };
    // Another connection has shown how near its receiver is: a late first transmission has an acknowledgement of its own.
    let way = pair.path_memory.min(from).map_or(way, |least| way.min(least));
    path.last_spare(ack.at - (way - way.divided_by(play)), ack.ack).map(Revision::CopySpare)
}

/// The latest time at which something can have left for `from` to know of it in this
/// acknowledgement.
fn heard_of(pair: &Pair<'_>, ack: &Segment, from: usize) -> Instant {
    ack.at - soonest(pair.tap_rtt[from])
}

/// The least time until a sender has feedback, given the round trip `way`.
pub(crate) fn soonest(way: Duration) -> Duration {
    (way - way.divided_by(ROUND_TRIP_PLAY) - HOST_VARIATION).at_least_zero()
}

/// Whether the retransmission that this D-SACK names was delayed on the path: a receiver
/// acknowledges a duplicate as it comes (RFC 5681, 4.2), and none had been sent so recently. The
/// request may have been delayed as long, whatever acknowledged it.
#[cold]
#[inline(never)]
pub(crate) fn has_stood(pair: &Pair<'_>, path: &Path, ack: &Segment, from: usize) -> bool {
    let copied = path.last_copy_by(heard_of(pair, ack, from));
    copied.is_some_and(|at| late_request::is_acked_late(pair, ack.at - at))
}
