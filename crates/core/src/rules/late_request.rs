//! Was a request delayed on its way, by when it was acknowledged?
//!
//! Proof: its acknowledgement came by itself, and at no time at which a host's timer sends one; or it
//! came together with the answer, which it had not waited for.
//! Refuted by: a delayed-acknowledgement timer that fits, an acknowledgement that came with data, or
//! missing packets.
//! Source: TCP_DELACK_MIN and TCP_DELACK_MAX, include/net/tcp.h, Linux 6.12; RFC 3522 (spurious timeouts).
//! Seen from: far from the answering end; beside it nothing has had time to be late.

use tcpwhy_wire::{Duration, Segment};

use super::pair::Pair;
use super::{late_answer, on_its_way};
use crate::bill::charge::Charge;
use crate::bill::exchange::Open;
use crate::flow::ends::{CLIENT, SERVER};
use crate::flow::segment_class::LastData;
use crate::words::cause::Cause;
use crate::words::form::Form;
use crate::words::limits::{DELAYED_ACK_MAX, DELAYED_ACK_MIN, HELD_BACK_MIN, QUEUED_MIN};
use crate::words::report::{Confidence, Detail};

/// A delayed-acknowledgement timer exceeds its minimum by at most this (4 ms per tick). Source: HZ,
/// arch/x86/Kconfig, Linux 6.12.
const DELAYED_ACK_PLAY: Duration = Duration::from_millis(4);
/// Packets this close together had waited together.
pub(crate) const TOGETHER: Duration = Duration::from_millis(1);
/// The same as one part in this many of the wait before them, where no delayed-acknowledgement timer
/// fits.
const TOGETHER_SHARE: i64 = 4;
/// The same where such a timer may fit. Source: none written down.
const TOGETHER_SHARE_TIMED: i64 = 64;
/// The answer to a part of at most this many segments of a request had waited for that part. Source:
/// none written down.
const PART_SEGMENTS: u64 = 4;

/// Whether the question's acknowledgement came by itself and, `left` of the wait being over, shortly before the answer: it had not waited for
/// that. The question had just arrived, or both stood on the way back.
pub(super) fn had_just_arrived(pair: &Pair<'_>, open: &Open, segment: &Segment, left: Duration) -> bool {
    let [to_server, to_client] = [pair.tap_rtt[1 - open.initiator], pair.tap_rtt[open.initiator]];
    if to_server <= TOGETHER.max(to_client) || left < HELD_BACK_MIN {
        return false;
    }
    let timer = DELAYED_ACK_MIN - DELAYED_ACK_PLAY..DELAYED_ACK_MIN + DELAYED_ACK_PLAY;
    let together = if left >= timer.end {
        TOGETHER.max(left.divided_by(TOGETHER_SHARE_TIMED))
    } else if left < timer.start && open.request_bytes <= u64::from(pair.sizes[open.initiator]) {
        left.divided_by(TOGETHER_SHARE)
    } else {
        return false;
    };
    // Of longer requests, something is being acknowledged all the time.
    let asked = &pair.flows[open.initiator];
    let few = open.request_bytes <= PART_SEGMENTS * u64::from(pair.sizes[open.initiator]);
    (few || asked.snd_nxt == Some(segment.ack)) && asked.was_acked_together(segment, together)
}

/// Whether the request was acknowledged later than any host delays that: it or the acknowledgement was
/// delayed on the path.
#[cold]
#[inline(never)]
pub(super) fn was_acked_too_late(pair: &Pair<'_>, open: &Open, segment: &Segment) -> bool {
    let Some(last) = open.request.last else { return false };
    pair.acked_by_itself(open, segment)
        .is_some_and(|acked| is_acked_late(pair, acked - last.at - HELD_BACK_MIN))
}

/// The part of `left` that a request spent on its way if it was acknowledged later than any host delays
/// that, or its acknowledgement did. A separate acknowledgement leaves the server the time after it; one
/// that came with the answer to a retransmitted request leaves a delayed-acknowledgement timer. For a
/// request sent once, the timer may be longer than any known.
#[cold]
#[inline(never)]
pub(super) fn acknowledged_late(
    pair: &Pair<'_>,
    open: &Open,
    segment: &Segment,
    from: &LastData,
    left: Duration,
) -> Option<Charge> {
    let server = 1 - open.initiator;
    let asked = &pair.flows[open.initiator];
    let far = pair.is_far(server);
    // An acknowledgement caused by a retransmission may be the second one, and so may one after a
    // missing packet.
    if !far || open.request.was_acked_late() || !on_its_way::is_whole(&pair.flows[server]) {
        return None;
    }
    // A retransmission that counts as the original by now was sent twice all the same.
    let copied = asked.acked_just_now() && open.request.is_copy(from.packet);
    let (acked, own) = match pair.acked_by_itself(open, segment) {
        Some(acked) => (acked - HELD_BACK_MIN, segment.at - acked),
        None if open.request.repaired_at().is_some() || copied => (segment.at, DELAYED_ACK_MAX),
        None => return None,
    };
    let detail = Detail { form: Some(Form::Unacknowledged), ..Detail::default() };
    let late = Charge::new(Cause::Queueing, asked.side, left - own, Confidence::Possible).detail(detail);
    (left > own && is_acked_late(pair, acked - from.at)).then_some(late)
}

/// The same for a separate acknowledgement that is later than the quickest ones but matches no host's
/// timer: its sender had not delayed it, so it or the request was delayed on the path, and the server
/// took no more than the time after it. A host's free-running timer may expire at any moment.
#[cold]
#[inline(never)]
pub(super) fn acknowledged_before_any_timer(
    pair: &Pair<'_>,
    open: &Open,
    segment: &Segment,
    from: &LastData,
    left: Duration,
) -> Option<Charge> {
    let server = 1 - open.initiator;
    let asked = &pair.flows[open.initiator];
    let far = pair.is_far(server);
    // A program that reads a second write late releases its acknowledgement (ICSK_ACK_PUSHED2,
    // tcp_cleanup_rbuf, net/ipv4/tcp.c, Linux 6.12). Requests longer than a segment are acknowledged as
    // they come (__tcp_ack_snd_check, net/ipv4/tcp_input.c).
    let long = open.request_bytes > u64::from(pair.sizes[open.initiator]);
    let parted = asked.part_acked_at > from.at;
    let one_write = open.request.index == 0 || long || parted;
    // Shorter waits are not examined on the fast path for usual packets.
    if left < HELD_BACK_MIN || !far || !one_write || pair.bound[server] || pair.beyond.is_some() {
        return None;
    }
    // A short frame after the request, as in HTTP/2, is acknowledged separately.
    let is_last = asked.last_data.is_some_and(|last| last.packet == from.packet);
    let whole = is_last && on_its_way::is_whole(&pair.flows[server]) && open.request.repaired_at().is_none();
    let acked = pair.acked_by_itself(open, segment).filter(|_| whole)?;
    let held = acked - from.at - pair.tap_rtt[server];
    let by_timer = on_its_way::TIMERS.iter().any(|timer| timer.contains(&held));
    // A timer acknowledges all that has come, and so does a program: what is acknowledged piece by piece within a
    // moment had just come, or its acknowledgements stood on their way together.
    let pieces = parted && acked - asked.part_acked_at <= TOGETHER;
    let by_timer = !pieces && (by_timer || open.request.index > 0 && !long);
    // An acknowledgement that came with data was sent by the program. And by its time stamps, the server
    // may have taken longer than the time after the acknowledgement here, which was late itself.
    let with_data = pair.flows[server].last_data.is_some_and(|last| last.at == acked);
    let own = late_answer::own_time(pair, open, segment).unwrap_or_default().max(segment.at - acked);
    let late = left - own;
    let detail = Detail { form: Some(Form::Unacknowledged), ..Detail::default() };
    (!by_timer && !with_data && late >= QUEUED_MIN)
        .then(|| Charge::new(Cause::Queueing, asked.side, late, Confidence::Possible).detail(detail))
}

/// Whether the request's acknowledgement came separately, well before the answer: how long that was
/// delayed says nothing about what followed.
#[cold]
#[inline(never)]
pub(super) fn had_arrived_before(pair: &Pair<'_>, open: &Open, segment: &Segment, left: Duration) -> bool {
    pair.acked_by_itself(open, segment).is_some_and(|acked| (segment.at - acked).times(TOGETHER_SHARE) > left)
}

/// Whether a retransmitted request was acknowledged much later than the copy that arrived can have
/// reached the host, which acknowledges within its timer, whatever its program does. Either the path
/// delayed the data or the acknowledgement (a spurious timeout, RFC 3522), or it lost another copy
/// (Karn's ambiguity).
pub(crate) fn answers_late(pair: &Pair<'_>, open: &Open, segment: &Segment) -> bool {
    if open.request.was_acked_late() {
        return true;
    }
    let Some(repaired) = open.request.repaired_at() else { return false };
    let asked = &pair.flows[open.initiator];
    let known = asked.view.clocking_ack().map(|ack| ack.earliest_departure).filter(|&at| at > repaired);
    let acked = asked.acked_in_transit(repaired).or(known).unwrap_or(segment.at);
    let echoed = segment.options.timestamps.map(|stamps| stamps.ecr);
    let first = echoed.is_some_and(|echoed| open.request.answered_before_repair(echoed));
    let from = open.request.last.filter(|_| first).map_or(repaired, |last| last.at);
    is_acked_late(pair, acked - from)
}

/// Whether an acknowledgement `since` after what it acknowledges is later than any host sends one,
/// whatever its program does.
pub(crate) fn is_acked_late(pair: &Pair<'_>, since: Duration) -> bool {
    since > pair.tap_rtt[CLIENT] + pair.tap_rtt[SERVER] + DELAYED_ACK_MAX
}
