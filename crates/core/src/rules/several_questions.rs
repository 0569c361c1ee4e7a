//! What of the time between a question and its answer was the answering side's, where several questions were under way at once?
//!
//! Proof: nothing held either direction meanwhile, and the way there and back is taken off.
//! Refuted by: what held the answers, or repairs of the questions (`bill/waits.rs`), which are billed first.
//! Source: arithmetic; which answer belongs to which question the protocol says (`heads`).
//! Seen from: both ends, where the payload is captured and read; near the answering side it is certain where messages have identifiers.

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

/// The way between the capture and who answers, in a wait so long.
pub(crate) fn way(pair: &Pair<'_>, ask: &Ask, wait: Duration, packets: [u64; 2]) -> Split {
    let other = 1 - ask.asker;
    let mut way = Split::of(wait);
    let (path, stood) = round_trip::of_path(pair, other, side(other));
    for charge in [Some(path), stood].into_iter().flatten() {
        way.take(charge.evidence(packets[0], packets[1]));
    }
    way
}

/// The answering side's own time, without its length: what nothing else took.
pub(crate) fn think(pair: &Pair<'_>, ask: &Ask, packets: [u64; 2]) -> Charge {
    let by = side(1 - ask.asker);
    Charge::new(Cause::ServerThink, by, Duration::ZERO, confidence(pair, ask))
        .evidence(packets[0], packets[1])
}

/// A pause of the end that speaks, without its length. What was not captured may say that it waited for something else: the heads of
/// messages, packets that are missing, its peer's all.
pub(crate) fn pause(pair: &Pair<'_>, is_cut: bool, by: usize, packets: [u64; 2]) -> Charge {
    let hears = &pair.flows[1 - by];
    let is_told = !is_cut && hears.snd_nxt.is_some() && !is_missed(pair);
    let confidence = if is_told { Confidence::Likely } else { Confidence::Possible };
    Charge::new(Cause::SenderThink, side(by), Duration::ZERO, confidence).evidence(packets[0], packets[1])
}

/// A hold of Nagle that ended with a question: that is a reason to send as well, and the server may have gone on when it was asked.
pub(crate) fn or_asked(from: usize, wait: Duration, packets: [u64; 2]) -> Split {
    let think = Charge::new(Cause::ServerThink, side(from), Duration::ZERO, Confidence::Possible);
    Split::of(wait).rest(think.evidence(packets[0], packets[1]))
}

fn confidence(pair: &Pair<'_>, ask: &Ask) -> Confidence {
    let [rtt_to_server, rtt_to_asker] = [1 - ask.asker, ask.asker].map(|end| pair.tap_rtt[end]);
    let near = rtt_to_server.times(BESIDE) <= rtt_to_server + rtt_to_asker || rtt_to_server < NEAR_MAX;
    // An order that is out by one stays so.
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
