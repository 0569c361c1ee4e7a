//! What was the time before a reply's first byte spent on: the way, the server, or what it did not say?
//!
//! What proves that a server thought: nothing else is left of the wait from the request's last byte, less one round trip. What refutes
//! it: packets that are missing, a repair, a queue on either way, or a reply that was corked as a whole and left with the timer.

use tcpwhy_wire::{Duration, Segment};

use super::pair::Pair;
use super::verdict::Verdict;
use super::{cork, not_captured, repair, round_trip};
use crate::bill::charge::Charge;
use crate::bill::exchange::Open;
use crate::bill::split::Split;
use crate::estimate::rate::Rate;
use crate::flow::order::Order;
use crate::words::cause::Cause;
use crate::words::limits::RTO_MIN;
use crate::words::report::{Confidence, Detail, Trigger};

/// A path whose packets were late by this much varies.
pub(crate) const VARIED_MIN: Duration = Duration::from_millis(1);

/// The interval from the last request byte to the first reply byte: a round trip and the server's own time.
pub(crate) fn judge(
    pair: &Pair<'_>,
    open: &Open,
    segment: &Segment,
    order: Order,
    from_beginning: bool,
) -> Verdict {
    let server = 1 - open.initiator;
    let request = &open.request;
    let own = pair.delay[server];
    // A retransmission that the reply cannot have answered had repaired nothing.
    let spurious = is_spurious(own, open, segment);
    let from = if spurious { request.last.as_ref() } else { request.frontier() };
    let Some(from) = from else {
        return Verdict { split: Split::of(Duration::ZERO), trigger: Trigger::Write };
    };
    let half = &pair.halves[server];
    let client = &pair.halves[open.initiator];
    let since = if from_beginning { open.start } else { from.at };
    let mut split = Split::of(segment.at - since);
    let (path, stood) = round_trip::way(pair, server, half.side);
    split.take(path.evidence(from.packet, segment.packet));
    if let Some(stood) = stood {
        split.take(stood.evidence(from.packet, segment.packet));
    }
    if client.acked_unseen() || half.not_captured(segment) {
        // The request ended, or the reply began, with packets that are missing from the capture.
        let charge = not_captured::charge(half.side).evidence(from.packet, segment.packet);
        return Verdict { split: split.rest(charge), trigger: Trigger::Packet(from.packet) };
    }
    let rtt = own + pair.delay[open.initiator];
    if let Some(charge) = repair::first_reply(half, client, (order, segment.at), split.left(), own, rtt) {
        split.take(charge.evidence(from.packet, segment.packet));
    }
    // Near the client, the request's last flight had to pass the bottleneck behind the capture.
    let busy = client.link.busy_from(from.at);
    if own > pair.delay[open.initiator] && busy.is_positive() {
        let detail = Detail { rate_bps: client.rate(true).map(Rate::bits_per_second), ..Detail::default() };
        split.take(
            Charge::new(Cause::Bandwidth, client.side, busy, Confidence::Likely)
                .evidence(from.packet, segment.packet)
                .detail(detail),
        );
    }
    if let Some(queued) = half.queued_on_way.filter(|queued| queued.is_positive()) {
        let detail = Detail { form: Some("reply"), ..Detail::default() };
        split.take(
            Charge::new(Cause::Queueing, half.side, queued, Confidence::Likely)
                .evidence(from.packet, segment.packet)
                .detail(detail),
        );
    }
    // Of a request of several segments a slow link behind the capture may have taken a part.
    let short =
        open.request_bytes <= u64::from(pair.sizes[open.initiator]) || pair.halves[server].on_one_host;
    let near = own.times(9) <= rtt || (own < Duration::from_millis(1) && short);
    let habits = &pair.habits[server];
    let small = segment.payload_len < pair.sizes[server];
    let lone = small && cork::agrees_alone(split.left(), half.rto.rto(), habits.corked);
    // What the server's kernel measured before the capture began is not known, and how long its timer runs.
    let unknown = small && pair.assumed && split.left() >= RTO_MIN && habits.quick_replies == 0;
    if lone && habits.quick_replies == 0 {
        let charge = cork::alone(half, segment.payload_len, habits.corked > 0);
        return Verdict {
            split: split.rest(charge.evidence(from.packet, segment.packet)),
            trigger: Trigger::Timer,
        };
    }
    // A packet that is missing before it may be the first copy, or an acknowledgement that held it.
    let missed = half.missed_since_data > 0 && split.left() >= RTO_MIN;
    // As long as the timer is a sleep of a round number as well.
    let either =
        small && habits.quick_replies == 0 && cork::is_of_timer(split.left(), half.rto.rto(), habits.corked);
    let lone = lone || unknown || missed || either;
    // Near the client, a request that was late on its way looks like a server that took longer.
    let varied = own > pair.delay[open.initiator]
        && pair.halves.iter().any(|half| half.queued_peak >= split.left().max(VARIED_MIN));
    let confidence = match (lone || varied, near) {
        (true, _) => Confidence::Possible,
        (false, true) => Confidence::Certain,
        (false, false) => Confidence::Likely,
    };
    let mut think = Charge::new(Cause::ServerThink, half.side, Duration::ZERO, confidence)
        .evidence(from.packet, segment.packet);
    if lone {
        think = think.detail(Detail { form: Some("or-cork"), ..Detail::default() });
    }
    Verdict { split: split.rest(think), trigger: Trigger::Packet(from.packet) }
}

/// Whether the last of a request that went out again cannot be what the peer reacted to with `segment`: it came sooner
/// than that can have reached the peer, as far as the way there is known, and does not echo its time stamp.
pub(crate) fn is_spurious(away: Duration, open: &Open, segment: &Segment) -> bool {
    let echoed = segment.options.timestamps.is_some_and(|stamps| open.request.answers_repair(stamps.ecr));
    let too_late = |at| segment.at - at < away - away.divided_by(8);
    !echoed && open.request.repaired_at().is_some_and(too_late)
}
