//! Did the receiving application leave received data unread?
//!
//! Proof: the window shrinks well below its earlier size while all data is acknowledged (in the end
//! to zero), or an acknowledgement of several segments comes long after they arrived. A reader that
//! is only slightly behind shows by such acknowledgements and by window updates, and is billed what
//! a full window would not have waited.
//! Refuted by: a window at its ceiling with data acknowledged at once: then the buffer is too small
//! for the path. The same holds for a shrunken window that doubles only with the acknowledgement of
//! new data, or is large again within a moment.
//! Source: RFC 9293, 3.8.6.1 and 3.8.6.2.1; __tcp_ack_snd_check, net/ipv4/tcp_input.c, Linux 6.12:
//! two segments are acknowledged at once unless that makes the window smaller.
//! Seen from: both ends; beside the sender, when the segments arrived is unknown, and a withheld
//! acknowledgement is at most possible.
//!
//! A receiver's window is the free space in its buffer.

use tcpwhy_wire::Duration;

use super::link_share;
use super::verdict::Verdict;
use super::wait::Wait;
use crate::bill::charge::Charge;
use crate::bill::split::Split;
use crate::estimate::bottleneck::STRETCH_MAX;
use crate::flow::segment_class::{SegmentClass, SendQueue};
use crate::flow::view::ClockingAck;
use crate::words::cause::Cause;
use crate::words::form::Form;
use crate::words::limits::{HELD_BACK_MIN, NEAR_MAX, TIMER_TICK, UNREAD_MIN};
use crate::words::report::{Confidence, Detail, Trigger};

/// What a host may merge into one packet before it acknowledges (GRO_MAX_SIZE,
/// include/linux/netdevice.h).
const GATHERED_BYTES: u32 = 65_536;
/// This many acknowledgements in a row may be lost. Source: none written down.
const GATHERED_FEW: u32 = 4;
/// A probe leaves two round trips after the last segment (RFC 8985, 7.2), within one part in this
/// many, and ticks. Source: none written down; the smoothed round trip moves by an eighth with each
/// sample (RFC 6298, 2.3).
const PROBE_PLAY: i64 = 8;

/// How a full window shows a slow reader, if it does.
pub(super) fn form(wait: &Wait<'_>, ack: &ClockingAck) -> Option<Form> {
    // A single acknowledgement of all that was in flight, long after it arrived, opens the window
    // by as much as was read: two segments that were read are acknowledged at once (RFC 9293,
    // 3.8.6.3).
    let held_back = wait.ack_delay(ack).is_some_and(|delay| delay >= HELD_BACK_MIN);
    if held_back && ack.left < ack.flight / 4 && ack.flight > wait.mss {
        return Some(Form::SlowReader);
    }
    let smaller = ack.window < ack.window_peak / 2 || !peak_was_used_up(wait, ack);
    let shrunk = smaller && !was_read_at_once(wait, ack) && !was_taken_back(wait, ack);
    shrunk.then_some(if ack.window < wait.mss { Form::ZeroWindow } else { Form::SlowReader })
}

/// Whether the largest window has ever been used up, or is no larger than this one. If not, what this window lacks of it lies unread,
/// and read at once nothing would have waited for it.
fn peak_was_used_up(wait: &Wait<'_>, ack: &ClockingAck) -> bool {
    wait.flow.view.window_used_up().max(ack.window) + 2 * wait.mss >= ack.window_peak
}

/// The reader's part of a wait of `left` for its window, if the window shows a slow reader or the
/// reader has paused lately. With nothing unread, a round trip would release as much as the largest
/// window holds, so for want of buffer this window would have taken its share of a round trip. A
/// growing buffer (not `locked`) would not have taken that either.
pub(super) fn share(
    wait: &Wait<'_>,
    ack: &ClockingAck,
    is_slow: bool,
    locked: bool,
    left: Duration,
) -> Duration {
    let lately = wait.flow.unusual.reader_paused_at + wait.rtt().times(2) + wait.gap >= wait.segment.at;
    if is_slow && (!locked || !peak_was_used_up(wait, ack)) {
        return left;
    }
    let held_up = held_up(wait, ack, lately).min(left);
    if !is_slow && (!lately || was_taken_back(wait, ack)) {
        return held_up;
    }
    let peak = u64::from(ack.window_peak.max(1));
    let full = (u64::from(ack.window).min(peak) << 10) / peak; // in 1,024ths
    let prompt = left.min(wait.rtt()).times(full as i64).divided_by(1 << 10);
    (left - prompt).max(held_up)
}

/// The time taken by a reader that delayed one acknowledgement of several segments: with room in
/// its buffer, the second of them would have been acknowledged at once. It counts for the part of
/// the window that the acknowledgement covers. Beside the receiver, if all that had arrived is
/// acknowledged, nothing else can cause this, however large the window is afterwards; elsewhere the
/// reader must have paused `lately`.
fn held_up(wait: &Wait<'_>, ack: &ClockingAck, lately: bool) -> Duration {
    let acked = ack.flight.saturating_sub(ack.left);
    let beside = !wait.near_sender() && wait.rtt_to_receiver < NEAR_MAX;
    let counts = acked > 4 * wait.mss && (ack.whole && beside || lately);
    let delay = wait.ack_delay(ack).filter(|&delay| counts && delay >= UNREAD_MIN);
    let peak = ack.window_peak.max(1);
    delay.map_or(Duration::ZERO, |delay| delay.times(i64::from(acked.min(peak))).divided_by(i64::from(peak)))
}

/// Whether a shrunken window opens on the acknowledgement of data that has just arrived, to at
/// least twice its size: room made by the reader would have been announced in a window update
/// (__tcp_cleanup_rbuf, net/ipv4/tcp.c: as soon as the window doubles). The host had taken back
/// what its buffer cannot hold (tcp_clamp_window, net/ipv4/tcp_input.c), and lets the window grow
/// again.
fn was_taken_back(wait: &Wait<'_>, ack: &ClockingAck) -> bool {
    let acked = ack.flight.saturating_sub(ack.left);
    let at_once = wait.ack_delay(ack).is_some_and(|delay| delay < UNREAD_MIN);
    at_once
        && acked > 0
        && ack.window >= wait.mss
        && wait.flow.view.window.saturating_add(acked) >= ack.window.saturating_mul(2)
}

/// Whether the window was small only for a moment: a whole flight arrived at once and filled the
/// buffer faster than any reader can empty it, and this one emptied it right after.
fn was_read_at_once(wait: &Wait<'_>, ack: &ClockingAck) -> bool {
    let filled = wait.flow.view.clocking_ack().filter(|filled| filled.packet < ack.packet);
    let moment = filled.is_some_and(|filled| ack.earliest_departure - filled.earliest_departure < UNREAD_MIN);
    moment && wait.flow.view.window >= ack.window_peak / 2
}

/// On one host, only the reader can delay the acknowledgement of several segments
/// (__tcp_ack_snd_check, net/ipv4/tcp_input.c: the window would shrink).
pub(super) fn on_one_host(wait: &Wait<'_>, ack: &ClockingAck, held_back: Duration) -> bool {
    let several = ack.flight > 2 * wait.mss && ack.left < ack.flight / 4;
    wait.flow.on_one_host && several && held_back >= HELD_BACK_MIN
}

/// How long one acknowledgement of several segments waited for an application that does not read.
/// They are acknowledged at once unless that makes the window smaller (__tcp_ack_snd_check,
/// net/ipv4/tcp_input.c); then the timer does it, or a read.
pub(super) fn unread(wait: &Wait<'_>, ack: &ClockingAck) -> Option<Charge> {
    let acked = ack.flight.saturating_sub(ack.left);
    let several = acked > 4 * wait.mss;
    let shrunk = ack.window.saturating_sub(wait.flow.view.window);
    // Beside the receiver only the receiver can have delayed it; far away the path may have.
    let least = if wait.near_sender() { HELD_BACK_MIN } else { UNREAD_MIN };
    let held_back = wait.ack_delay(ack).filter(|&delay| delay >= least)?;
    if !several || shrunk < acked / 2 || wait.flow.unusual.scale_bounds.is_in_use() {
        return None;
    }
    let detail = Detail { ack_delay: Some(held_back), form: Some(Form::SlowReader), ..Detail::default() };
    let charge = Charge::new(Cause::ReceiverThink, wait.flow.side, held_back, Confidence::Likely);
    let charge = charge.evidence(wait.last.packet, wait.segment.packet).released_by(ack.packet);
    Some(charge.detail(detail))
}

/// Whether a receiver beside the capture held back the ACK of more than a segment for most of the wait: two
/// segments are acknowledged at once (RFC 9293, 3.8.6.3), and nothing else lies in between. Why it did so
/// is not told.
pub(super) fn acknowledged_late(wait: &Wait<'_>, ack: &ClockingAck) -> bool {
    let acked = ack.flight.saturating_sub(ack.left);
    let held_back = wait.ack_delay(ack).filter(|&delay| delay >= HELD_BACK_MIN);
    // Without any answer that times it, its distance is unknown and stands at zero.
    let timed = wait.rtt_to_receiver.is_positive();
    timed
        && !wait.near_sender()
        && wait.beside_receiver()
        && acked > wait.mss
        && held_back.is_some_and(|held_back| held_back.times(2) >= wait.gap)
}

/// Several segments that arrived long ago, in order, are not acknowledged, and the sender has more
/// to send but little room. With less than a third of its window free it waits for an
/// acknowledgement (tcp_tso_should_defer, net/ipv4/tcp_output.c), as it does with the small
/// congestion window after a loss, until a timer makes it continue. The receiver withholds that
/// acknowledgement until the application reads (__tcp_ack_snd_check, net/ipv4/tcp_input.c).
pub(super) fn withheld(wait: &Wait<'_>) -> Option<Verdict> {
    let flow = wait.flow;
    let held_back = wait.gap - wait.rtt_to_receiver.at_least_zero();
    // Within a host nothing is on its way for that long.
    let least = if flow.on_one_host { UNREAD_MIN } else { HELD_BACK_MIN };
    if wait.class != SegmentClass::New
        || wait.last.queue == SendQueue::Emptied
        || held_back < least
        || flow.in_order() + u32::from(flow.on_one_host) <= 2 * wait.mss
        || wait.recovering()
        || flow.unusual.scale_bounds.is_in_use()
    {
        return None;
    }
    // A segment released by an acknowledgement was not waiting for one that was withheld, however
    // late others are.
    let let_go = flow.view.clocking_ack().is_some_and(|ack| wait.follows(&ack));
    let split = link_share::split(wait);
    if let_go || split.left() < least {
        return None;
    }
    let little = |room: &i32| *room >= 0 && (*room as u32) < flow.view.window / 3;
    let stands = flow.room_left().is_some_and(|room| little(&room)) || wait.model.rounds.lost;
    if !stands && !probes_reader(wait) {
        return None;
    }
    // Beside the sender, whether they arrived is unknown.
    let confidence = if wait.near_sender() { Confidence::Possible } else { Confidence::Likely };
    let detail = Detail {
        ack_delay: Some(held_back),
        window_bytes: Some(u64::from(flow.view.window)),
        form: Some(Form::SlowReader),
        ..Detail::default()
    };
    let charge = Charge::new(Cause::ReceiverThink, flow.side, Duration::ZERO, confidence)
        .evidence(wait.last.packet, wait.segment.packet)
        .detail(detail);
    Some(Verdict { split: split.rest(charge), trigger: Trigger::Timer })
}

/// Whether a sender with a full congestion window probes with one queued segment
/// (tcp_send_loss_probe, net/ipv4/tcp_output.c), and none of many segments before it was
/// acknowledged. If some of them were lost and others arrived, the receiver would have signalled it
/// at once (RFC 5681, 4.2), so all of them arrived or none. Beside the sender, a few
/// acknowledgements may have been lost as well, each covering all that a host merges (GRO_MAX_SIZE,
/// include/linux/netdevice.h).
pub(super) fn probes_reader(wait: &Wait<'_>) -> bool {
    let flow = wait.flow;
    // The second of two segments is acknowledged at once (RFC 9293, 3.8.6.3); within a host nothing
    // delays that.
    let many = if flow.on_one_host {
        (2 * wait.mss).saturating_sub(1)
    } else if wait.near_sender() {
        GATHERED_BYTES * GATHERED_FEW
    } else {
        STRETCH_MAX * wait.mss
    };
    let timer = flow.rto.srtt().unwrap_or(wait.rtt()).max(wait.rtt()).times(2);
    wait.class == SegmentClass::New
        && wait.last.queue != SendQueue::Emptied
        && flow.in_order() > many
        && wait.segment.payload_len <= wait.mss
        && wait.is_full()
        && !wait.recovering()
        && !flow.unusual.scale_bounds.is_in_use()
        && wait.gap >= timer - timer.divided_by(PROBE_PLAY)
        && wait.gap <= timer + timer.divided_by(PROBE_PLAY) + TIMER_TICK.times(3)
}

/// A window stays smaller than a segment: the sender holds out for more (silly window avoidance,
/// RFC 9293, 3.8.6.2.1) until its probe timer makes it send what fits.
pub(super) fn forced_into_small_window(wait: &Wait<'_>) -> Option<Verdict> {
    let flow = wait.flow;
    let room = flow.room_left()?;
    let fills = room > 0 && room < wait.mss as i32 && wait.segment.payload_len as i32 == room;
    if !fills || flow.flight() > 0 || flow.view.window >= flow.view.window_peak / 2 {
        return None;
    }
    let detail = Detail {
        window_bytes: Some(u64::from(flow.view.window)),
        form: Some(Form::SmallWindow),
        ..Detail::default()
    };
    let charge = Charge::new(Cause::ReceiverThink, flow.side, Duration::ZERO, Confidence::Likely)
        .evidence(wait.last.packet, wait.segment.packet)
        .detail(detail);
    Some(Verdict { split: Split::of(wait.gap).rest(charge), trigger: Trigger::Timer })
}
