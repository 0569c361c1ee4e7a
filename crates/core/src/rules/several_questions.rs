//! How much of the time between a request and its answer was the answering side's, with several
//! requests under way at once?
//!
//! Proof: nothing held either direction meanwhile, and the round trip is taken off.
//! Refuted by: whatever held the answers, or retransmissions of the requests (`bill/waits.rs`),
//! which are billed first.
//! Source: arithmetic; the protocol says which answer belongs to which request (`heads`).
//! Seen from: both ends, where the payload is captured and read; certain near the answering side if
//! messages have identifiers.

use tcpwhy_wire::Duration;

use super::pair::Pair;
use super::round_trip;
use crate::bill::asked::Ask;
use crate::bill::charge::Charge;
use crate::bill::split::Split;
use crate::flow::ends::side;
use crate::words::cause::Cause;
use crate::words::limits::{BESIDE, NEAR_MAX};
use crate::words::report::Confidence;

/// The path between the capture and the answering side, within a wait of this length.
pub(crate) fn way(pair: &Pair<'_>, ask: &Ask, wait: Duration, packets: [u64; 2]) -> Split {
    let other = 1 - ask.asker;
    let mut way = Split::of(wait);
    let (path, stood) = round_trip::of_path(pair, other, side(other));
    for charge in [Some(path), stood].into_iter().flatten() {
        way.take(charge.evidence(packets[0], packets[1]));
    }
    way
}

/// The answering side's own time, with no length yet: it gets what nothing else took.
pub(crate) fn think(pair: &Pair<'_>, ask: &Ask, packets: [u64; 2]) -> Charge {
    let by = side(1 - ask.asker);
    Charge::new(Cause::ServerThink, by, Duration::ZERO, confidence(pair, ask))
        .evidence(packets[0], packets[1])
}

/// A pause of the speaking end, with no length yet. Uncaptured data might show that it waited for
/// something else: message heads, missing packets, or all of its peer's packets.
pub(crate) fn pause(pair: &Pair<'_>, is_cut: bool, by: usize, packets: [u64; 2]) -> Charge {
    let hears = &pair.flows[1 - by];
    let is_told = !is_cut && hears.snd_nxt.is_some() && !is_missed(pair);
    let confidence = if is_told { Confidence::Likely } else { Confidence::Possible };
    Charge::new(Cause::SenderThink, side(by), Duration::ZERO, confidence).evidence(packets[0], packets[1])
}

/// A Nagle hold that ended with a request: the request is a reason to send as well, and the server
/// may have continued because it was asked.
pub(crate) fn or_asked(from: usize, wait: Duration, packets: [u64; 2]) -> Split {
    let think = Charge::new(Cause::ServerThink, side(from), Duration::ZERO, Confidence::Possible);
    Split::of(wait).rest(think.evidence(packets[0], packets[1]))
}

/// What leaves too late behind an acknowledgement to have been held until then was written later.
pub(crate) fn written_later(from: usize, wait: Duration, packets: [u64; 2]) -> Split {
    let pause = Charge::new(Cause::SenderThink, side(from), Duration::ZERO, Confidence::Possible);
    Split::of(wait).rest(pause.evidence(packets[0], packets[1]))
}

fn confidence(pair: &Pair<'_>, ask: &Ask) -> Confidence {
    let [rtt_to_server, rtt_to_asker] = [1 - ask.asker, ask.asker].map(|end| pair.tap_rtt[end]);
    let near = rtt_to_server.times(BESIDE) <= rtt_to_server + rtt_to_asker || rtt_to_server < NEAR_MAX;
    // Once answers are matched to requests off by one, they stay so.
    match (is_missed(pair) || pair.beyond.is_some(), near && ask.id.is_some()) {
        (true, _) => Confidence::Possible,
        (false, true) => Confidence::Certain,
        (false, false) => Confidence::Likely,
    }
}

/// Packets are missing from the capture, or may be.
fn is_missed(pair: &Pair<'_>) -> bool {
    pair.flows.iter().any(|flow| flow.missing_from_capture || flow.missed_since_data > 0)
}
