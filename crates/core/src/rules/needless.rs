//! Was a timer early, and its copy for nothing?
//!
//! Proof: a D-SACK behind the acknowledgement that seemed to answer the copy, or an acknowledgement sooner than the copy can have
//! brought it, or one that ends within the copy: the first one had arrived, and what acknowledges it was late.
//! Refuted by: time stamps (what echoes the copy's answers that), selective or duplicate acknowledgements of what left behind
//! it: it is missing at the receiver. Of several copies of the same bytes as many of the last ones as D-SACKs name.
//! Source: RFC 2883, 4; RFC 9293, 3.10.7.4 (whoever takes a segment acknowledges up to its end; only what left first ended there); RFC 3522, 1 and RFC 6298, 3 (neither sequence nor acknowledgement number tells which copy is
//! acknowledged); RFC 9293, 3.8.6.3 (nobody holds back an acknowledgement for as long as a timer of 200 ms and more takes).
//! Seen from: near the sender; near the receiver the first copy passed or did not.
//!
//! What it took until then was the path's all the same: it stood still, or was slow to bring the acknowledgement.

use tcpwhy_wire::{Duration, Instant, SackBlock, Segment};

use super::pair::Pair;
use super::server_think;
use crate::bill::exchange::Path;
use crate::bill::revise::Revision;
use crate::words::limits::{HOST_VARIATION, ROUND_TRIP_PLAY};

/// What an acknowledgement from `from`, and the D-SACK in it, show of what its peer's `path` has sent again.
pub(crate) fn judge(
    pair: &Pair<'_>,
    path: &mut Path,
    ack: &Segment,
    from: usize,
    told: Option<SackBlock>,
) -> Option<Revision<'static>> {
    let sender = &pair.flows[1 - from];
    // A receiver of which only answers to copies are known may be anywhere; a D-SACK says the same of it from everywhere.
    let anywhere = told.is_some() && !pair.tap_rtt[from].is_positive();
    if pair.tap_rtt[1 - from] > pair.tap_rtt[from] && !anywhere {
        return None;
    }
    if let Some(spare) = told.and_then(|block| path.told_spare(block, heard_of(pair, ack, from))) {
        return Some(Revision::CopySpare(spare));
    }
    path.repaired_at()?;
    let before = path.last.map(|last| last.at)?;
    if sender.newly_acked > 0 && ack.window > 0 && server_think::is_acked_late(pair, ack.at - before) {
        let around = path.spare_around(ack, pair.sizes[1 - from]);
        if around.is_some() {
            return around.map(Revision::CopySpare);
        }
    }
    if sender.timestamps || sender.unusual.sack_or_dupack_at > before {
        return None;
    }
    let way = pair.tap_rtt[from];
    path.last_spare(ack.at - (way - way.divided_by(ROUND_TRIP_PLAY)), ack.ack).map(Revision::CopySpare)
}

/// What had left by then `from` can speak of with this acknowledgement.
fn heard_of(pair: &Pair<'_>, ack: &Segment, from: usize) -> Instant {
    ack.at - soonest(pair.tap_rtt[from])
}

/// How long it takes at least to hear of something, where the way there and back is so long.
pub(crate) fn soonest(way: Duration) -> Duration {
    (way - way.divided_by(ROUND_TRIP_PLAY) - HOST_VARIATION).at_least_zero()
}

/// Whether the copy that this D-SACK names had stood: whoever has a copy acknowledges it as it comes (RFC 5681, 4.2), and none had left so lately.
/// What was asked may have stood as long, whatever acknowledged it.
#[cold]
#[inline(never)]
pub(crate) fn has_stood(pair: &Pair<'_>, path: &Path, ack: &Segment, from: usize) -> bool {
    let copied = path.last_copy_by(heard_of(pair, ack, from));
    copied.is_some_and(|at| server_think::is_acked_late(pair, ack.at - at))
}
