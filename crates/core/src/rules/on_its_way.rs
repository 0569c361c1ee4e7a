//! Was a request delayed on its way, where the capture is at the near end of that way?
//!
//! Proof: a reply later than its server's own delayed-acknowledgement timer is the first
//! acknowledgement of the request, so the request had just arrived; or an acknowledgement before
//! the reply carries the same time stamp, so both left together; or other packets between these
//! hosts were delayed as long in a queue at the time.
//! Refuted by: an acknowledgement before the reply with an earlier time stamp; packets missing from
//! the capture that may have been one. A timer's time before the acknowledgement may be the peer's, whatever
//! silence came before.
//! Source: TCP_DELACK_MIN and TCP_DELACK_MAX (40 to 200 ms), include/net/tcp.h, Linux 6.12: a host
//! acknowledges a request first, however long its program takes.
//! Seen from: near the requesting end.

use std::ops::Range;

use tcpwhy_wire::{Duration, Segment};

use super::pair::Pair;
use crate::bill::charge::Charge;
use crate::bill::exchange::Open;
use crate::flow::direction::Flow;
use crate::flow::ends::{CLIENT, SERVER};
use crate::words::cause::Cause;
use crate::words::form::Form;
use crate::words::limits::{DELAYED_ACK_MAX, DELAYED_ACK_MIN, QUEUED_MIN, TIMER_TICK};
use crate::words::report::{Confidence, Detail};

/// A retransmission timer is hardly longer, as this is its initial value (RFC 6298, 2.1).
const SILENCE_MIN: Duration = Duration::from_secs(1);
/// A queue seen this recently is still there.
const FRESH: Duration = Duration::from_millis(200);
/// Delayed-acknowledgement timers: Linux and Windows of today, the BSDs, older ones (TCP_DELACK_MIN and
/// TCP_DELACK_MAX, include/net/tcp.h, Linux 6.12; net.inet.tcp.delacktime, FreeBSD). Source of the play:
/// none written down.
pub(crate) const TIMERS: [Range<Duration>; 3] = [
    Duration::from_millis(36)..Duration::from_millis(60),
    Duration::from_millis(95)..Duration::from_millis(112),
    Duration::from_millis(185)..Duration::MAX,
];

/// The part of `left`, the wait for a reply less all else, that the request spent on its way.
pub(super) fn judge(pair: &Pair<'_>, open: &Open, left: Duration) -> Option<Charge> {
    let server = 1 - open.initiator;
    let (asked, answering) = (&pair.flows[open.initiator], &pair.flows[server]);
    let rtt_to_server = pair.tap_rtt[server];
    if rtt_to_server <= pair.tap_rtt[open.initiator]
        || !is_whole(answering)
        || !(asked.acked_just_now() || is_first_acknowledged(pair, open))
        || asked.on_one_host
        || pair.bound[server]
    {
        return None;
    }
    let timer = asked.peer_timer(rtt_to_server + pair.tap_rtt[open.initiator]);
    let longest = || is_first_acknowledged(pair, open).then_some(DELAYED_ACK_MAX);
    let timer = timer.or_else(longest);
    let unacknowledged = timer.map_or(Duration::ZERO, |timer| left - timer);
    // The queue must be another connection's.
    let lone = asked.newly_acked <= pair.sizes[open.initiator];
    // A queue keeps packets in order: a packet that passes much sooner met no queue.
    let stands = |queued: Duration| queued >= QUEUED_MIN && left >= queued.divided_by(2);
    let seen = pair.path_memory.queued_lately(server, pair.now).filter(|(queued, _)| lone && stands(*queued));
    let (ns, form, confidence) = match seen {
        // It was the same queue, if the wait was about as long as the queue was seen to be.
        Some((queued, ago)) if queued >= left - left.divided_by(4) => {
            (left, Form::Queue, if ago <= FRESH { Confidence::Likely } else { Confidence::Possible })
        }
        Some((queued, _)) if queued > unacknowledged => (queued, Form::Queue, Confidence::Possible),
        _ => (unacknowledged, Form::Unacknowledged, Confidence::Possible),
    };
    ns.is_positive().then(|| {
        let detail = Detail { form: Some(form), ..Detail::default() };
        Charge::new(Cause::Queueing, asked.side, ns, confidence).detail(detail)
    })
}

/// Whether a reply is the first packet to acknowledge any of a request of more than two segments. A host
/// acknowledges at least every second one (RFC 9293, 3.8.6.3), so they had only just arrived.
pub(super) fn is_first_acknowledged(pair: &Pair<'_>, open: &Open) -> bool {
    let asked = &pair.flows[open.initiator];
    let long = open.request_bytes > 2 * u64::from(pair.sizes[open.initiator]);
    long && asked.newly_acked > 0
        && u64::from(asked.newly_acked) + u64::from(asked.outstanding()) == open.request_bytes
}

/// Whether such a reply is too late for a delayed acknowledgement: `left` may be time that the request
/// spent on its way.
pub(super) fn came_first(pair: &Pair<'_>, open: &Open, left: Duration) -> bool {
    left >= DELAYED_ACK_MIN
        && pair.is_far(1 - open.initiator)
        && is_whole(&pair.flows[1 - open.initiator])
        && is_first_acknowledged(pair, open)
}

/// Packets that the capture does not have, or none of their kind, may have been acknowledgements.
pub(super) fn is_whole(answering: &Flow) -> bool {
    answering.missed_since_data == 0 && !answering.acked_unseen()
}

/// The same for a reply stamped within the same tick as its request's acknowledgement: a host
/// acknowledges a request within its timer, whatever its program does, so no time is left for the
/// program. A host that stalled looks the same.
#[cold]
#[inline(never)]
pub(super) fn left_together(
    pair: &Pair<'_>,
    open: &Open,
    segment: &Segment,
    left: Duration,
) -> Option<Charge> {
    let server = 1 - open.initiator;
    let (asked, answering) = (&pair.flows[open.initiator], &pair.flows[server]);
    let far = pair.is_far(server);
    let last = open.request.last.filter(|_| far && is_whole(answering))?;
    let arrived = asked.view.clocking_ack().filter(|ack| ack.packet != segment.packet);
    let arrived = arrived.map(|ack| ack.earliest_departure).filter(|&at| at > last.at);
    let acked_at = asked.acked_before(segment).or(arrived)?;
    let same = answering.clock.same_stamp_for(segment.at)?;
    let tick = answering.clock.tick();
    let (own, confidence) = if tick.is_positive() && was_acked_as_it_came(pair, open) {
        let held = acked_at - last.at - pair.tap_rtt[server];
        (tick, if is_timers(held) { Confidence::Possible } else { Confidence::Likely })
    } else {
        (DELAYED_ACK_MAX, Confidence::Possible)
    };
    let late = Charge::new(Cause::Queueing, asked.side, left - own, confidence)
        .detail(Detail { form: Some(Form::Unacknowledged), ..Detail::default() });
    (left > own && segment.at - acked_at <= same).then_some(late)
}

/// Whether an acknowledgement was held back for as long as a host's timer runs, and hardly longer than the longest.
fn is_timers(held: Duration) -> bool {
    held <= DELAYED_ACK_MAX + TIMER_TICK.times(2) && TIMERS.iter().any(|timer| timer.contains(&held))
}

/// Whether the request is a single segment after a silence longer than its receiver's
/// retransmission timer, and was acknowledged separately. Such a segment is acknowledged as it
/// arrives (tcp_event_data_recv, net/ipv4/tcp_input.c, Linux 6.12), unless a
/// delayed-acknowledgement timer is still running.
fn was_acked_as_it_came(pair: &Pair<'_>, open: &Open) -> bool {
    let asked = &pair.flows[open.initiator];
    let rtt = pair.tap_rtt[CLIENT] + pair.tap_rtt[SERVER];
    let one_write = open.request.index == 0 && open.request_bytes <= u64::from(pair.sizes[open.initiator]);
    one_write && open.client_idle > SILENCE_MIN.max(asked.rto.rto()).max(rtt.times(2))
}
