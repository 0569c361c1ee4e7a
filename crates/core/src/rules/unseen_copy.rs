//! Was the first transmission of a message's beginning lost before the capture point?
//!
//! Proof: a packet of the sender is missing by its IP identification, and the sender was silent for
//! about as long as its timer; or the first segment fills a hole.
//! Refuted by: an acknowledgement that may have been the missing packet, a silence that does not
//! match the timer, a FIN (nobody waits for it).
//! Source: RFC 6298, 2 and 5.5; RFC 6864 (IP identification); tcp_schedule_loss_probe,
//! net/ipv4/tcp_output.c, and dev_hard_start_xmit, net/core/dev.c (a capture sees what the queueing
//! discipline has let go), Linux 6.12.
//! Seen from: near the receiver; near the sender the first transmission would have passed, unless the
//! sender's own host dropped it.
//!
//! Only the timer's length is known, and that is an estimate: at most possible, unless it was doubled.

use tcpwhy_wire::{Duration, Instant, Segment};

use super::pair::Pair;
use super::repair;
use crate::bill::charge::Charge;
use crate::bill::exchange::Open;
use crate::flow::ends::{CLIENT, SERVER};
use crate::flow::segment_class::SegmentClass;
use crate::words::cause::Cause;
use crate::words::form::Form;
use crate::words::limits::{COPIES_MAX, RTO_MIN, TIMER_TICK};
use crate::words::report::{Confidence, Detail};

/// A timer is off by at most one part in this many: the wheel rounds up by an eighth (kernel/time/timer.c).
const PLAY_SHARE: i64 = 8;

/// What an answer took, `left` of the wait for it, if it had been lost before: as many of its sender's numbers are missing right before it as
/// copies of it that timers of that length sent, besides acknowledgements of the request and its copies. Then it came so long after the
/// request's first transmission, whenever that was repeated. A queueing discipline of the sender's own (netem) drops them before any capture
/// beside it; far from it, its clock and what is known of the path say more.
#[cold]
#[inline(never)]
pub(super) fn of_answer(pair: &Pair<'_>, open: &Open, segment: &Segment, left: Duration) -> Option<Charge> {
    let server = 1 - open.initiator;
    let flow = &pair.flows[server];
    let asked = open.request.last.as_ref()?;
    let copied = open.request.has_copies();
    let alone = open.request_bytes <= u64::from(pair.sizes[open.initiator]);
    let waited = segment.at - if alone { open.start } else { asked.at };
    if waited < RTO_MIN || pair.midway || pair.is_far(server) || flow.on_one_host {
        return None;
    }
    let skipped = flow.numbers_skipped(segment);
    let rtt = pair.tap_rtt[CLIENT] + pair.tap_rtt[SERVER];
    let timer = flow.rto.rto().max(RTO_MIN + rtt);
    let timed = |&copies: &u16| {
        let timers = repair::timers_of(timer, copies);
        (waited - timers).max(timers - waited) <= timers.divided_by(PLAY_SHARE)
    };
    let copies = (1..=skipped.min(COPIES_MAX)).find(timed)?;
    let heard = pair.acked_by_itself(open, segment).is_some();
    let acknowledgements = u16::from(!heard) + u16::from(copied);
    // A number that is missing alone may be that of the acknowledgement.
    if skipped - copies > acknowledgements || skipped == 1 && !heard {
        return None;
    }
    // One number is soon missing, and one timer as long as a program's time.
    let confidence = if copies > 1 { Confidence::Likely } else { Confidence::Possible };
    let detail = Detail {
        retransmits: Some(u32::from(copies)),
        timer: Some(timer),
        form: Some(Form::Timeout),
        ..Detail::default()
    };
    Some(Charge::new(Cause::Rto, flow.side, left, confidence).detail(detail))
}

/// Judges a message's first segment that is a retransmission, the first transmission lost before
/// the capture point: the sender's timer ran in between. Near the receiver only that timer's length
/// is known, and it is an estimate.
pub(crate) fn judge(
    pair: &Pair<'_>,
    segment: &Segment,
    from: usize,
    class: SegmentClass,
    idle_since: Option<Instant>,
) -> Option<Charge> {
    let flow = &pair.flows[from];
    let peer = &pair.flows[1 - from];
    // A message may leave before its sender has the last answer: then there was no silence.
    let silent = segment.at - idle_since?;
    if !silent.is_positive() {
        return None;
    }
    if segment.flags.fin() && matches!(class, SegmentClass::OutOfOrderOrRepair { .. }) {
        return None; // nobody waits for a FIN
    }
    let mut rto = flow.rto;
    if rto.srtt().is_none() {
        rto.on_sample(pair.tap_rtt[CLIENT] + pair.tap_rtt[SERVER]); // from the handshake, as the sender measured it
    }
    let timer = rto.rto() + TIMER_TICK;
    // A packet is missing, and the silence is about as long as the timer, or a little more if the
    // sender wrote later.
    let timed = |copies: u16| {
        let timers = repair::timers_of(timer, copies);
        silent >= timers - TIMER_TICK.times(2) && silent <= timers + timer
    };
    // Some of the missing packets may have been acknowledgements.
    let missed = flow.missed_since_data;
    let by_time = (1..=missed.min(COPIES_MAX)).rev().find(|&copies| timed(copies));
    let lost = if let SegmentClass::OutOfOrderOrRepair { .. } = class {
        true
    } else {
        // With nothing to acknowledge, the packets missing by their IP identification carried data.
        let data = peer.newly_acked == 0 || peer.is_acked_with_data();
        // After only two packets from a client, its IP IDs tell less than the timer does.
        let soon = silent <= timer + timer.divided_by(8);
        let ran = silent >= timer - TIMER_TICK.times(2);
        missed > 0 && (data && ran && flow.numbers_its_packets() || by_time.is_some())
            || flow.suspects_missing() && timed(1) && soon
    };
    if !lost || pair.tap_rtt[from] < pair.tap_rtt[1 - from] {
        return None;
    }
    let copies = if flow.numbers_its_packets() { missed.max(1) } else { by_time.unwrap_or(1) };
    let ns = repair::timers_of(timer, copies).min(silent);
    let detail = Detail {
        retransmits: Some(u32::from(copies)),
        timer: Some(timer),
        form: Some(Form::UnseenFirstCopy),
        ..Detail::default()
    };
    Some(
        Charge::new(Cause::Rto, flow.side, ns, Confidence::Possible)
            .evidence(segment.packet, 0)
            .detail(detail),
    )
}
