//! Had the application simply not written yet?
//!
//! Proof: a segment with PSH followed by silence: the send queue was empty after it.
//! Refuted by: a segment without PSH: more was queued, and something else held it.
//! Source: tcp_mark_push from tcp_push, net/ipv4/tcp.c, Linux 6.12; RFC 9293, 3.9.1.
//! Seen from: both ends; certain near the sender, likely far from it.
//!
//! This rule is asked last, and charges what no other rule explains.

use tcpwhy_wire::Duration;

use super::verdict::{Verdict, burst};
use super::wait::Wait;
use super::whole_round::lasts_a_round;
use super::{link_share, nagle, send_buffer};
use crate::bill::charge::Charge;
use crate::bill::split::Split;
use crate::flow::segment_class::SendQueue;
use crate::words::cause::Cause;
use crate::words::form::Form;
use crate::words::limits::{BURST_GAP, HELD_BACK_MIN, RTO_MIN};
use crate::words::report::{Confidence, Detail};

pub(crate) fn judge(wait: &Wait<'_>) -> Verdict {
    let split = link_share::split(wait);
    // Far from the sender, the link's part of a wait may as well be the application's: only
    // segments that come at the bottleneck's rate were not waiting for the application.
    let linked = wait.near_sender() || wait.last.queue == SendQueue::More || !split.left().is_positive();
    let split = if linked { split } else { Split::of(wait.gap) };
    let split = rest(wait, split);
    Verdict { split, trigger: burst(wait.last, wait.segment.at) }
}

/// Silence after which a message may have ended.
const MESSAGE_AFTER: Duration = Duration::from_millis(200);
/// The same as a multiple of the round trip, one end's time to react to the other.
const REACTIONS: i64 = 20;
/// The least value of that multiple.
const REACTION_MIN: Duration = Duration::from_millis(50);
/// The least time after which a sender that often speaks unasked may do so again, and the same in round trips.
/// Source: none written down.
const UNASKED_AFTER: Duration = Duration::from_millis(10);
const UNASKED_RTTS: i64 = 4;
/// Unacknowledged data is retransmitted after this long at the latest, unless the timer was doubled
/// (RFC 6298, 2.4).
const TIMER_MAX: Duration = Duration::from_secs(1);
/// Added to `TIMER_MAX`, in round trips: varying round trips lengthen the timer.
const ROUND_TRIPS: i64 = 4;
/// An unrelated write falls into an acknowledgement's travel time to the sender once in this many
/// cases.
const CHANCE: i64 = 16;

/// Charges the rest of a wait that nothing else explains.
pub(crate) fn rest(wait: &Wait<'_>, split: Split) -> Split {
    let (cause, confidence) = match wait.last.queue {
        // A full window may have opened just then: the scale of windows is unknown.
        SendQueue::Emptied if wait.flow.unusual.scale_bounds.is_in_use() && follows_ack(wait) => {
            (Cause::SenderThink, Confidence::Possible)
        }
        SendQueue::Emptied if may_be_woken(wait) => (Cause::SenderThink, Confidence::Possible),
        SendQueue::Emptied if may_be_released(wait) => (Cause::SenderThink, Confidence::Possible),
        SendQueue::Emptied if may_be_on_its_way(wait) => (Cause::SenderThink, Confidence::Possible),
        SendQueue::Emptied if nagle::may_have_held(wait) => (Cause::SenderThink, Confidence::Possible),
        SendQueue::Emptied if wait.model.writes_at_heels() && send_buffer::at_heels(wait).is_some() => {
            (Cause::SenderThink, Confidence::Possible)
        }
        // The sender may have been done, and what follows is another message.
        SendQueue::Emptied if may_begin_another(wait) => (Cause::SenderThink, Confidence::Possible),
        SendQueue::Emptied if begins_again(wait) => (Cause::SenderThink, Confidence::Possible),
        SendQueue::Emptied if wait.gap >= MESSAGE_AFTER => (Cause::SenderThink, Confidence::Likely),
        SendQueue::Emptied if wait.near_sender() && !nagle::would_hold(wait) && !may_be_complete(wait) => {
            (Cause::SenderThink, Confidence::Certain)
        }
        SendQueue::Emptied => (Cause::SenderThink, Confidence::Likely),
        _ if wait.gap < BURST_GAP => (Cause::Bandwidth, Confidence::Likely),
        // The queue after it may have been empty or not.
        SendQueue::Unknown => (Cause::SenderThink, Confidence::Possible),
        // With the last segment alone in flight, no window holds the next one, and a cork's timer
        // has not expired: a segment sent because it is full was waiting for its own bytes
        // (MSG_MORE, SPLICE_F_MORE).
        SendQueue::More if wait.flow.flight() <= wait.last.len && wait.gap < RTO_MIN => {
            (Cause::SenderThink, Confidence::Possible)
        }
        // Once all is acknowledged, neither Nagle nor a cork holds data this long: this stack does
        // not set PSH (RFC 9293, 3.9.1).
        SendQueue::More if wait.flow.flight() == 0 && wait.gap >= TIMER_MAX => {
            (Cause::SenderThink, Confidence::Possible)
        }
        SendQueue::More => (Cause::Unexplained, Confidence::Possible),
    };
    let charge = Charge::new(cause, wait.flow.side, Duration::ZERO, confidence)
        .evidence(wait.last.packet, wait.segment.packet);
    let charge =
        if cause == Cause::SenderThink && may_begin_another(wait) && wait.last.queue == SendQueue::Emptied {
            charge.detail(Detail { form: Some(Form::OrMessages), ..Detail::default() })
        } else {
            charge
        };
    split.rest(charge)
}

/// Whether everything before the segment had been acknowledged without an answer for so long that
/// it may be a message of its own.
fn may_begin_another(wait: &Wait<'_>) -> bool {
    let usual = (wait.rtt_to_sender + wait.rtt_to_receiver).times(REACTIONS);
    // The acknowledgements are missing from the capture: otherwise the timer would have
    // retransmitted what was in flight.
    let unseen = wait.gap >= TIMER_MAX + wait.rtt().times(ROUND_TRIPS);
    let unasked = wait.speaks_unasked && wait.gap >= UNASKED_AFTER.max(wait.rtt().times(UNASKED_RTTS));
    // Without a handshake, the size of full segments is a guess.
    (wait.flow.flight() == 0 || unseen)
        && (wait.last.len < wait.mss || wait.midway)
        && (wait.gap >= MESSAGE_AFTER || wait.gap >= REACTION_MIN.max(usual) || unasked)
}

/// Whether the peer had not answered what came before the segment, though an answer would hardly have taken
/// longer: it may have been a message that needs none. Whether the peer has acknowledged it says little: with
/// nothing to send, it waits with that (RFC 9293, 3.8.6.3).
fn may_be_complete(wait: &Wait<'_>) -> bool {
    let way = if wait.flow.flight() == 0 { Duration::ZERO } else { wait.rtt() };
    wait.last.len < wait.mss && wait.gap >= REACTION_MIN + way
}

/// Whether the segment starts with bytes sent before, as a timer's retransmission does: the data
/// after them may have been written, and held, at any time since.
fn begins_again(wait: &Wait<'_>) -> bool {
    wait.gap >= HELD_BACK_MIN && wait.flow.snd_nxt.is_some_and(|nxt| wait.segment.seq.before(nxt))
}

/// Whether the segment may have been released by an acknowledgement that has hardly reached the
/// sender, as far as the distance to it is known: that is an upper bound, and without time stamps
/// rests on a few packets. By chance alone, a write seldom falls into so short a time, or so near
/// to the end of a longer one.
fn may_be_released(wait: &Wait<'_>) -> bool {
    wait.flow.acked_in_transit(wait.last.at).is_some_and(|passed| {
        let nearly = (wait.segment.at - passed).times(4) >= wait.rtt_to_sender.times(3);
        wait.gap >= wait.rtt_to_sender.times(CHANCE) || nearly && !wait.flow.timestamps
    })
}

/// Whether the path may have put the two segments apart, far from their sender: by less than a round trip to it, as a radio
/// that delivers in steps and the queues of others do. The sender's time stamps show when they left; a tick tells nothing.
fn may_be_on_its_way(wait: &Wait<'_>) -> bool {
    wait.gap < wait.rtt_to_sender && !wait.near_sender() && !left_apart(wait)
}

#[cold]
#[inline(never)]
fn left_apart(wait: &Wait<'_>) -> bool {
    let apart = wait.flow.left_apart(wait.last, wait.segment);
    apart.is_some_and(|apart| (apart - wait.flow.clock.tick()).times(2) >= wait.gap)
}

/// Whether the writer may have slept for room in a send buffer, however small (SO_SNDBUF): more
/// than its last write was in flight, and it continues when some of that is acknowledged.
fn may_be_woken(wait: &Wait<'_>) -> bool {
    // Far from the sender, more was in flight than the acknowledgements that have passed leave: a round of it.
    let unheard = wait.last.snd_una.filter(|_| lasts_a_round(wait));
    let unheard = unheard.map_or(0, |snd_una| (wait.segment.seq - snd_una).max(0) as u32);
    let flight = wait.last.flight.max(unheard);
    flight > wait.last.len.max(2 * wait.mss) && wait.gap >= HELD_BACK_MIN && follows_ack(wait)
}

fn follows_ack(wait: &Wait<'_>) -> bool {
    wait.flow.view.clocking_ack().is_some_and(|ack| wait.follows(&ack))
}
