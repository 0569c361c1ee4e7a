//! Was the advertised window used up, and was the buffer or the reader the limit?
//!
//! Proof: flight and the next segment exceeded the window until an acknowledgement opened it.
//! Refuted by: room for the segment, a queue that was empty before the window was full, a segment
//! long after the opening, or an earlier segment that went beyond the old window.
//! Source: RFC 9293, 3.8.6; tcp_tso_should_defer and tcp_mss_split_point, net/ipv4/tcp_output.c;
//! tcp_grow_window, net/ipv4/tcp_input.c, Linux 6.12.
//! Seen from: both ends; without the handshake the window scale is an estimate, and this is at most
//! likely.
//!
//! A window at its ceiling while data is acknowledged at once is a buffer too small for the path; a
//! window that shrinks while data is acknowledged is an application that does not read
//! (`receiver_think`).

use tcpwhy_wire::{Duration, Seq};

use super::verdict::Verdict;
use super::wait::{SLOW_HOST, Wait};
use super::{link_share, queueing, receiver_think};
use crate::bill::charge::Charge;
use crate::flow::direction::Flow;
use crate::flow::segment_class::{SegmentClass, SendQueue};
use crate::flow::view::ClockingAck;
use crate::words::cause::Cause;
use crate::words::form::Form;
use crate::words::limits::{BURST_GAP, INITIAL_WINDOW_SEGMENTS, LATE_SHARE, RTO_MIN};
use crate::words::report::{Confidence, Detail, Trigger};

/// The window field without scaling.
const UNSCALED_MAX: u32 = 65_535;

/// A window that grew within this many round trips is growing (tcp_rcv_space_adjust,
/// net/ipv4/tcp_input.c, once a round trip).
const GREW_LATELY: i64 = 3;

/// An acknowledgement that leaves sooner after its segment came is prompt. Source: none written down.
const OPENED_LATE_MIN: Duration = Duration::from_millis(2);

/// A first flight differs from the window that a sender begins with by at most so many. Source: none written down.
const INITIAL_PLAY_SEGMENTS: u32 = 1;

/// A window of this many segments rarely ends within one segment of another limit.
const LARGE_SEGMENTS: u32 = 16;

pub(crate) fn judge(wait: &Wait<'_>) -> Option<Verdict> {
    let flow = wait.flow;
    // No gap is too short: within a host a round trip takes microseconds.
    if wait.class != SegmentClass::New {
        return None;
    }
    if wait.gap >= RTO_MIN
        && let Some(verdict) = receiver_think::forced_into_small_window(wait)
    {
        return Some(verdict);
    }
    // With more to send, Linux defers anything below two segments (tcp_tso_autosize and
    // tcp_tso_should_defer, net/ipv4/tcp_output.c). A small window may end that near to the
    // congestion window's end by chance: 5,840 bytes to three segments.
    let backlog = wait.is_full() && wait.last.queue != SendQueue::Emptied && wait.gap >= BURST_GAP;
    let fits = |ack: &ClockingAck| ack.room >= wait.segment.payload_len.min(wait.mss) as i32;
    let put_off = |ack: &ClockingAck| {
        backlog && ack.window >= LARGE_SEGMENTS * wait.mss && ack.room < 2 * wait.mss as i32
    };
    // A segment that went beyond the old window left with the opening, however quickly that was used.
    let passed = |ack: &ClockingAck| {
        wait.near_sender() && ack.packet < wait.last.packet && wait.last.len as i32 > ack.room
    };
    let limited = |ack: &ClockingAck| {
        ack.earliest_departure > wait.last.at && !passed(ack) && (!fits(ack) || put_off(ack))
    };
    let ack = flow.view.window_opened().filter(limited)?;
    let follows = wait.follows(&ack);
    // A writer that slept for room has to be woken, however short the path.
    let late = wait.segment.at - ack.earliest_departure;
    let woken = ack.room == 0 && late <= wait.gap.divided_by(LATE_SHARE).min(SLOW_HOST);
    let long_open = late > wait.rtt() + wait.tolerance() && !woken;
    // A segment that fills the window to its last byte was cut there (tcp_mss_split_point,
    // net/ipv4/tcp_output.c); if it is several packets it has PSH all the same (__tcp_transmit_skb,
    // since 5.4).
    let emptied = wait.last.queue == SendQueue::Emptied && ack.room != 0;
    if !follows && (long_open || emptied) {
        return went_on_late(wait, &ack).filter(|_| !emptied);
    }
    let reader = receiver_think::form(wait, &ack);
    // A window that shrinks without closing is normally a slow reader's, but Linux also takes back
    // what a fixed buffer cannot hold (tcp_clamp_window, net/ipv4/tcp_input.c).
    let certain = follows
        && !fits(&ack)
        && !flow.unusual.scale_bounds.is_in_use()
        && reader != Some(Form::SlowReader)
        && !may_be_initial(wait, &ack);
    let confidence = match (may_not_hold(wait, &ack, reader), certain) {
        (true, _) => Confidence::Possible,
        (false, true) => Confidence::Certain,
        (false, false) => Confidence::Likely,
    };
    let mut split = link_share::split(wait);
    let charge = |cause, confidence, form| {
        Charge::new(cause, flow.side, Duration::ZERO, confidence)
            .evidence(wait.last.packet, wait.segment.packet)
            .released_by(ack.packet)
            .detail(measured(&ack, Some(form)))
    };
    let buffer = form(flow, wait);
    let share = receiver_think::share(wait, &ack, reader.is_some(), buffer == Form::Locked, split.left());
    // A zero window is explicit; a merely smaller one is an inference.
    let sure = if reader.is_some() { confidence } else { confidence.min(Confidence::Likely) };
    let slow = charge(Cause::ReceiverThink, sure, reader.unwrap_or(Form::SlowReader));
    split.take(Charge { ns: share, ..slow });
    let charge = charge(Cause::ReceiveWindow, confidence, buffer);
    Some(Verdict { split: split.rest(charge), trigger: Trigger::Packet(ack.packet) })
}

/// Whether something else than the window may have held the segment back.
fn may_not_hold(wait: &Wait<'_>, ack: &ClockingAck, reader: Option<Form>) -> bool {
    let flow = wait.flow;
    // A window does not advance past a missing segment: without the loss it might not have held anything.
    let behind_hole =
        flow.view.loss_signal.get().is_some_and(|at| at + wait.rtt() + wait.tolerance() >= wait.segment.at);
    // Far from the sender, what comes much later than a round trip behind the opening may have stood, or left with a later one.
    let late = wait.segment.at - ack.earliest_departure;
    let stood = !wait.follows(ack) && !wait.near_sender() && late.times(2) >= wait.rtt();
    // Whoever has sent beyond the window, without room, had read an update that is not in the capture.
    let missed = ack.room < 0;
    // Without a reader that shows, what held the opening back may have been any program.
    let held_back = reader.is_none() && opened_late(wait, ack);
    behind_hole || missed || stood || held_back
}

/// Whether a connection's first flight is about as long as the window that any sender begins with: both may have stopped it.
fn may_be_initial(wait: &Wait<'_>, ack: &ClockingAck) -> bool {
    let initial = INITIAL_WINDOW_SEGMENTS * wait.mss;
    wait.model.rounds.is_first() && ack.flight.abs_diff(initial) <= INITIAL_PLAY_SEGMENTS * wait.mss
}

/// Whether most of the wait passed between a segment's arrival and the acknowledgement that made room: a reader that takes
/// its time may keep a window as small as a buffer that was set.
fn opened_late(wait: &Wait<'_>, ack: &ClockingAck) -> bool {
    wait.ack_delay(ack).is_some_and(|delay| delay >= OPENED_LATE_MIN && delay.times(2) >= wait.gap)
}

/// A window without room for a byte releases nothing, whatever else the sender does: the wait until
/// it opened was the window's. The time after that must be shorter, or the wait would be the
/// sender's own pause.
fn went_on_late(wait: &Wait<'_>, ack: &ClockingAck) -> Option<Verdict> {
    let late = wait.segment.at - ack.earliest_departure;
    let shut = ack.room <= 0 || wait.last.queue == SendQueue::More;
    if !shut || late > wait.gap.divided_by(2) {
        return None;
    }
    let mut split = link_share::split(wait);
    split.take(if wait.near_sender() {
        let late = Charge::new(Cause::SenderThink, wait.flow.side, late, Confidence::Possible);
        late.evidence(ack.packet, wait.segment.packet)
    } else {
        queueing::behind(wait, ack)
    });
    let (cause, form) = whose(wait, ack);
    let charge = Charge::new(cause, wait.flow.side, Duration::ZERO, Confidence::Likely)
        .evidence(wait.last.packet, ack.packet)
        .detail(measured(ack, form));
    Some(Verdict { split: split.rest(charge), trigger: Trigger::Packet(ack.packet) })
}

/// How long a full window held a small segment before it opened, where Nagle then held it until
/// `ack`.
pub(crate) fn before_nagle(wait: &Wait<'_>, ack: &ClockingAck) -> Option<Charge> {
    let opened = wait.flow.view.window_opened().filter(|opened| {
        opened.earliest_departure > wait.last.at
            && opened.packet < ack.packet
            && opened.room < wait.segment.payload_len as i32
    })?;
    let (cause, form) = whose(wait, &opened);
    let held = opened.earliest_departure - wait.last.at;
    let charge = Charge::new(cause, wait.flow.side, held, Confidence::Likely);
    Some(charge.evidence(wait.last.packet, opened.packet).detail(measured(&opened, form)))
}

/// Whether the segment exceeds every window that passed the capture: the update that allowed it is
/// missing.
pub(crate) fn update_unseen(wait: &Wait<'_>) -> bool {
    let flow = wait.flow;
    let beyond = |right_edge: Seq| (wait.segment.seq + wait.segment.payload_len).after(right_edge);
    wait.class == SegmentClass::New
        && !flow.unusual.scale_bounds.is_in_use()
        && flow.right_edge_seen().is_some_and(beyond)
}

/// The size of the window, and how much of it was in flight.
fn measured(ack: &ClockingAck, form: Option<Form>) -> Detail {
    Detail {
        window_bytes: Some(u64::from(ack.window)),
        flight_bytes: Some(u64::from(ack.flight)),
        form,
        ..Detail::default()
    }
}

/// A window at its ceiling is the buffer's limit; one that had shrunk is the reader's.
fn whose(wait: &Wait<'_>, ack: &ClockingAck) -> (Cause, Option<Form>) {
    match receiver_think::form(wait, ack) {
        Some(form) => (Cause::ReceiverThink, Some(form)),
        None => (Cause::ReceiveWindow, Some(form(wait.flow, wait))),
    }
}

pub(crate) fn form(flow: &Flow, wait: &Wait<'_>) -> Form {
    let first = flow.window_first.unwrap_or(flow.window_max);
    if flow.peer_unscaled && flow.window_max > UNSCALED_MAX / 2 {
        Form::Unscaled
    } else if wait.segment.at - flow.window_grew_at < wait.rtt().times(GREW_LATELY) {
        Form::Growing
    } else if flow.window_max <= first + first / 2 {
        // Without autotuning, Linux opens from the first window to the ratio of payload to memory,
        // a quarter more (tcp_grow_window, net/ipv4/tcp_input.c).
        Form::Locked
    } else {
        Form::Capped
    }
}
