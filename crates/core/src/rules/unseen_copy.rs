//! Was the first copy of a message's beginning lost before the capture saw it?
//!
//! Proof: a packet of the sender is missing by its IP identification, and it was silent for about as long as its timer runs;
//! or the first segment fills a hole.
//! Refuted by: an acknowledgement that may have been the missing packet, a silence that is no timer's, a FIN (nobody waits
//! for last words).
//! Source: RFC 6298, 2 and 5.5; RFC 6864 (IP identification); tcp_schedule_loss_probe, net/ipv4/tcp_output.c, Linux 6.12.
//! Seen from: near the receiver; near the sender the first copy would have passed.
//!
//! Only the timer's length can be said, and it is an estimate: no more than possible.

use tcpwhy_wire::{Instant, Segment};

use super::pair::Pair;
use super::repair;
use crate::bill::charge::Charge;
use crate::flow::ends::{CLIENT, SERVER};
use crate::flow::segment_class::SegmentClass;
use crate::words::cause::Cause;
use crate::words::form::Form;
use crate::words::limits::TIMER_TICK;
use crate::words::report::{Confidence, Detail};

/// A message's first segment that is a second copy, the first one lost before the capture saw it: the sender's
/// timer had run in between. Near the receiver only that timer's length can be said, and it is an estimate.
pub(crate) fn judge(
    pair: &Pair<'_>,
    segment: &Segment,
    from: usize,
    class: SegmentClass,
    idle_since: Option<Instant>,
) -> Option<Charge> {
    let flow = &pair.flows[from];
    let peer = &pair.flows[1 - from];
    // A message may leave before its sender has the last answer: nothing was silent then.
    let silent = segment.at - idle_since?;
    if !silent.is_positive() {
        return None;
    }
    if segment.flags.fin() && matches!(class, SegmentClass::OutOfOrderOrRepair { .. }) {
        return None; // last words: nobody waits for them
    }
    let mut rto = flow.rto;
    if rto.srtt().is_none() {
        rto.on_sample(pair.tap_rtt[CLIENT] + pair.tap_rtt[SERVER]); // of the handshake, as its sender has it
    }
    let timer = rto.rto() + TIMER_TICK;
    // A packet is missing, and the sender was silent for about as long as its timer runs, or a little before it wrote.
    let timed = |copies: u16| {
        let timers = repair::timers_of(timer, copies);
        silent >= timers - TIMER_TICK.times(2) && silent <= timers + timer
    };
    // Some of the packets that are missing may have been acknowledgements.
    let missed = flow.missed_since_data;
    let by_time = (1..=missed.min(repair::COPIES_MAX)).rev().find(|&copies| timed(copies));
    let lost = if let SegmentClass::OutOfOrderOrRepair { .. } = class {
        true
    } else {
        // With nothing to acknowledge, the packets that are missing by their identification carried data.
        let data = peer.newly_acked == 0 || peer.is_acked_with_data();
        // Of a client that has sent two packets before, the numbers say less than the timer.
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
