//! Was a partial segment held by TCP_CORK or MSG_MORE until the timer?
//!
//! Proof: a full segment of the same write came before, and the wait is the timer's; or a partial
//! segment lacks PSH; or several whole replies leave on their connection's timer and on the
//! kernel's tick (`timer_hits`), though a program that sleeps could do the same.
//! Refuted by: small segments that leave together or in quick succession, or replies sooner than
//! the timer. A whole reply as late as the timer counts as the server's own time until others have
//! shown the tick (`connection/held_back.rs`).
//! Source: tcp_check_probe_timer and tcp_probe0_base, include/net/tcp.h, Linux 4.19 to 6.18 (2.6.18
//! used the plain RTO); tcp_push, net/ipv4/tcp.c; tcp(7).
//! Seen from: both ends; the tick of whole replies is twice as blurred far from the sender.
//!
//! A corked tail leaves when the zero-window probe timer fires: max(RTO, 200 ms) after everything
//! before it was acknowledged. The 200 ms of tcp(7) hold only where the round trip is close to
//! zero.

use tcpwhy_wire::{Duration, Segment};

use super::pair::Pair;
use super::sender_model::SenderModel;
use super::verdict::Verdict;
use super::wait::Wait;
use crate::bill::charge::Charge;
use crate::bill::exchange::Open;
use crate::bill::split::Split;
use crate::estimate::ticks::LateReply;
use crate::estimate::timer_hits::{SHORTEST, TimerHits, is_of_timer};
use crate::flow::direction::Flow;
use crate::flow::segment_class::{SegmentClass, SendQueue};
use crate::words::cause::Cause;
use crate::words::form::Form;
use crate::words::limits::{BURST_GAP, FULL_MIN, INITIAL_WINDOW_SEGMENTS, RTO_MIN};
use crate::words::report::{Confidence, Detail, Trigger};

pub(crate) fn judge(wait: &Wait<'_>) -> Option<Verdict> {
    if let Some(verdict) = announced_more(wait) {
        return Some(verdict);
    }
    let small = wait.segment.payload_len < wait.mss && !may_be_full(wait);
    if wait.class != SegmentClass::New
        || !small
        || wait.last.queue == SendQueue::Emptied
        || wait.gap < RTO_MIN
    {
        return None;
    }
    let flow = wait.flow;
    if flow.room_left().is_some_and(|room| room < wait.mss as i32) {
        return None; // the window probe timer's other use: a window smaller than a segment
    }
    // A single full segment with PSH ended a write; with several, PSH does not tell
    // (__tcp_transmit_skb, since 5.4).
    if wait.last.queue == SendQueue::Unknown && wait.last.len <= wait.mss {
        return None;
    }
    let idle_since = flow.view.all_acked().filter(|ack| ack.earliest_departure >= wait.last.at)?;
    let waited = wait.segment.at - idle_since.earliest_departure;
    let timer = flow.rto.rto().max(RTO_MIN);
    if !agrees(waited, timer, wait.rtt(), wait.tolerance()) {
        return None;
    }
    // Far from a sender whose IP IDs do not tell, a lost tail looks the same: its retransmission
    // timer starts with that acknowledgement as well (tcp_rearm_rto, net/ipv4/tcp_input.c).
    let may_be_lost = !wait.near_sender() && !flow.numbers_tell();
    let confidence = if may_be_lost { Confidence::Possible } else { Confidence::Likely };
    let detail =
        Detail { held_bytes: Some(wait.segment.payload_len), timer: Some(timer), ..Detail::default() };
    let charge = Charge::new(Cause::Cork, flow.side, Duration::ZERO, confidence)
        .evidence(wait.last.packet, wait.segment.packet)
        .released_by(idle_since.packet)
        .detail(detail);
    Some(Verdict { split: Split::of(wait.gap).rest(charge), trigger: Trigger::Timer })
}

/// Whether the segment may be as large as its receiver takes: without both SYNs, only others show how
/// large that is, and a capture on the sender may have them as super-segments, however these are cut.
fn may_be_full(wait: &Wait<'_>) -> bool {
    let announced = wait.flow.mss_announced.is_some() && wait.peer.mss_announced.is_some();
    !announced && wait.segment.payload_len >= FULL_MIN
}

/// MSG_MORE holds for one call (tcp_push, net/ipv4/tcp.c): the next acknowledgement releases the
/// partial segment. It lacks PSH although it can only be short because the written data ended
/// there.
fn announced_more(wait: &Wait<'_>) -> Option<Verdict> {
    let (flow, segment) = (wait.flow, wait.segment);
    // Equally long segments with more after them are full: the path is narrower than was announced.
    let like_the_last = segment.payload_len == wait.last.len && segment.payload_len >= FULL_MIN;
    let partial = segment.payload_len < wait.mss && !may_be_full(wait) && !like_the_last;
    let flags = segment.flags;
    if wait.class != SegmentClass::New
        || !partial
        || flags.psh()
        || flags.fin()
        || wait.last.queue == SendQueue::Emptied
        || wait.gap < BURST_GAP
        || flow.full_size.tells_nothing()
    {
        return None;
    }
    let ack = flow.view.clocking_ack().filter(|ack| wait.follows(ack))?;
    if flow.room_left().is_some_and(|room| room < wait.mss as i32) || ack.room < wait.mss as i32 {
        return None; // the window cut the segment
    }
    if u32::from(wait.last.flight_segments) == INITIAL_WINDOW_SEGMENTS {
        return None; // an initial window is used up, which is counted in segments of any length (RFC 6928)
    }
    // What comes as soon as a path varies may have left with the segment before, on the same acknowledgement.
    if !wait.near_sender() && wait.gap <= wait.tolerance() {
        return None;
    }
    let detail = Detail {
        held_bytes: Some(segment.payload_len),
        form: Some(Form::UntilAcknowledged),
        ..Detail::default()
    };
    let sure = if flow.full_size.may_tell_nothing() { Confidence::Possible } else { Confidence::Likely };
    let charge = Charge::new(Cause::Cork, flow.side, Duration::ZERO, sure)
        .evidence(wait.last.packet, segment.packet)
        .released_by(ack.packet)
        .detail(detail);
    Some(Verdict { split: Split::of(wait.gap).rest(charge), trigger: Trigger::Packet(ack.packet) })
}

/// Whether a wait since the last acknowledgement (or since the write, with nothing in flight)
/// matches the timer.
pub(crate) fn agrees(waited: Duration, timer: Duration, rtt: Duration, variation: Duration) -> bool {
    let timer = timer.max(RTO_MIN);
    // A sleep of 200 ms starts with the write, a round trip before the acknowledgement, and ends
    // sooner.
    let floor = RTO_MIN + rtt + SLEEP_LATE;
    // The timer wheel rounds up by up to an eighth (kernel/time/timer.c), and the estimate lags the
    // kernel's.
    waited >= floor.max(timer - timer.divided_by(EARLY_SHARE))
        && waited <= timer + timer.divided_by(LATE_TIMER_SHARE) + WHEEL + variation
}

/// Whether a small reply leaves on the timer like others before it, each on a tick of its sender's
/// kernel.
pub(crate) fn on_tick(pair: &Pair<'_>, server: usize, reply: LateReply) -> bool {
    let of_timer = is_of_timer(reply.waited, pair.flows[server].rto.rto(), true);
    of_timer && hits_with(pair, server, reply).is_some_and(TimerHits::are_proven)
}

/// The same if one reply before it left on the same tick: no more than a suspicion.
pub(crate) fn may_be_on_tick(pair: &Pair<'_>, server: usize, reply: LateReply) -> bool {
    hits_with(pair, server, reply).is_some_and(TimerHits::are_suspect)
}

/// The timer hits of this sender with this reply added, unless something refutes a cork.
fn hits_with(pair: &Pair<'_>, server: usize, reply: LateReply) -> Option<TimerHits> {
    let (flow, model) = (&pair.flows[server], &pair.models[server]);
    // Without the handshake the timer's value may differ.
    let of_timer = reply.waited >= SHORTEST && pair.midway || is_of_timer(reply.waited, flow.rto.rto(), true);
    if is_refuted(model) || !of_timer {
        return None;
    }
    let mut hits = model.timer_hits();
    hits.on_hit(reply);
    Some(hits)
}

/// Whether a cork is ruled out: with one, no small segment leaves together with another, or soon
/// after its request.
pub(crate) fn is_refuted(model: &SenderModel) -> bool {
    model.quick_replies > 0 || model.nagle_ignored > 0
}

/// A reply that began with `segment`, `waited` after its request.
pub(crate) fn late_reply(pair: &Pair<'_>, open: &Open, segment: &Segment, waited: Duration) -> LateReply {
    let server = 1 - open.initiator;
    LateReply {
        at: segment.at,
        blur: blur(pair.tap_rtt[server], pair.tap_rtt[1 - server]),
        packet: segment.packet,
        len: segment.payload_len,
        waited,
        idle: open.client_idle,
        timer: pair.flows[server].rto.rto(),
    }
}

/// How much the capture blurs the tick on which a packet left, given its distance to sender and
/// receiver.
fn blur(rtt_to_sender: Duration, rtt_to_receiver: Duration) -> Duration {
    if rtt_to_sender <= rtt_to_receiver { TICK_BLUR } else { TICK_BLUR.times(2) }
}

/// The time from a host's timer to its interface. Source: recordings of corked replies, of 20 to 80
/// us.
const TICK_BLUR: Duration = Duration::from_micros(100);

/// A sleep of 200 ms ends at most this late. Source: none written down.
const SLEEP_LATE: Duration = Duration::from_micros(800);
/// The estimated timer exceeds the kernel's by at most one part in this many. Source: none written
/// down.
const EARLY_SHARE: i64 = 20;
/// The timer fires at most one part in this many late: the wheel rounds up by an eighth
/// (kernel/time/timer.c), and the estimate lags.
const LATE_TIMER_SHARE: i64 = 6;
/// Four ticks on top of `LATE_TIMER_SHARE`. Source: none written down.
const WHEEL: Duration = Duration::from_millis(16);

/// The charge for a reply that was corked as a whole.
pub(crate) fn alone(flow: &Flow, held_bytes: u32) -> Charge {
    let detail = whole_reply(held_bytes, flow.rto.rto());
    Charge::new(Cause::Cork, flow.side, Duration::ZERO, Confidence::Possible).detail(detail)
}

pub(crate) fn whole_reply(held_bytes: u32, timer: Duration) -> Detail {
    let form = Some(Form::WholeReply);
    Detail { held_bytes: Some(held_bytes), timer: Some(timer), form, ..Detail::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The timer starts with the acknowledgement and fires late rather than early; a sleep of 200
    /// ms starts with the write, a round trip earlier.
    #[test]
    fn a_tail_leaves_with_the_timer_and_not_with_a_sleep() {
        let [rtt, timer, none] = [4_000, 204_000, 0].map(Duration::from_micros);
        let tail = |waited_us, variation| agrees(Duration::from_micros(waited_us), timer, rtt, variation);
        assert!(!tail(200_900, none) && !tail(204_500, none) && tail(205_000, none) && tail(253_000, none));
        assert!(!tail(260_000, none) && tail(260_000, Duration::from_millis(8)));
        assert!(!agrees(Duration::from_millis(350), Duration::from_millis(400), rtt, none));
    }
}
