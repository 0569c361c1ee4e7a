//! Was the first transmission of a message's beginning lost before the capture point?
//!
//! Proof: a packet of the sender is missing by its IP identification, and the sender was silent for
//! about as long as its timer; or the first segment fills a hole.
//! Refuted by: an acknowledgement that may have been the missing packet, a silence that does not
//! match the timer, a FIN (nobody waits for it).
//! Source: RFC 6298, 2 and 5.5; RFC 6864 (IP identification); tcp_schedule_loss_probe,
//! net/ipv4/tcp_output.c, Linux 6.12.
//! Seen from: near the receiver; near the sender the first transmission would have passed.
//!
//! Only the timer's length is known, and that is an estimate: at most possible.

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
    let by_time = (1..=missed.min(repair::COPIES_MAX)).rev().find(|&copies| timed(copies));
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
