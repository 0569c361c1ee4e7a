//! Had the application simply not written yet?
//!
//! Proof: a pushed segment followed by silence: the send queue was empty behind it.
//! Refuted by: a segment without PSH: more was queued, and something else held it.
//! Source: tcp_mark_push from tcp_push, net/ipv4/tcp.c, Linux 6.12; RFC 9293, 3.9.1.
//! Seen from: both ends; certain near the sender, likely far from it.
//!
//! It is asked last, and charges what no other rule explains.

use tcpwhy_wire::Duration;

use super::verdict::{Verdict, burst};
use super::wait::Wait;
use super::{link_share, nagle};
use crate::bill::charge::Charge;
use crate::bill::split::Split;
use crate::flow::segment_class::SendQueue;
use crate::words::cause::Cause;
use crate::words::form::Form;
use crate::words::limits::{BURST_GAP, HELD_BACK_MIN, RTO_MIN};
use crate::words::report::{Confidence, Detail};

pub(crate) fn judge(wait: &Wait<'_>) -> Verdict {
    let split = link_share::split(wait);
    // Far from the sender, a part of a wait is as well what the application took: only what came as fast as the bottleneck
    // lets it through was no wait of its own.
    let linked = wait.near_sender() || wait.last.queue == SendQueue::More || !split.left().is_positive();
    let split = if linked { split } else { Split::of(wait.gap) };
    let split = rest(wait, split);
    Verdict { split, trigger: burst(wait.last, wait.segment.at) }
}

/// Silence in which a message may have ended.
const MESSAGE_AFTER: Duration = Duration::from_millis(200);
/// ... or so many times what one end takes to react to the other.
const REACTIONS: i64 = 20;
/// ... and no less than this.
const REACTION_MIN: Duration = Duration::from_millis(50);
/// What nobody has acknowledged is sent again after so long at the latest, where no timer was doubled (RFC 6298, 2.4).
const TIMER_MAX: Duration = Duration::from_secs(1);
/// ... and so many round trips, by which a timer is longer where they vary.
const ROUND_TRIPS: i64 = 4;
/// A write that comes by itself falls into the time that an acknowledgement takes to the sender in one case of so many.
const CHANCE: i64 = 16;

/// Charges what is left of a wait that nothing else explains.
pub(crate) fn rest(wait: &Wait<'_>, split: Split) -> Split {
    let (cause, confidence) = match wait.last.queue {
        // A window that was used up may have opened just then, how large windows are not being known.
        SendQueue::Emptied if wait.flow.unusual.scale_bounds.is_in_use() && follows_ack(wait) => {
            (Cause::SenderThink, Confidence::Possible)
        }
        SendQueue::Emptied if may_be_woken(wait) => (Cause::SenderThink, Confidence::Possible),
        SendQueue::Emptied if may_be_released(wait) => (Cause::SenderThink, Confidence::Possible),
        SendQueue::Emptied if nagle::may_have_held(wait) => (Cause::SenderThink, Confidence::Possible),
        // It may have had nothing more to say, and what follows is another message.
        SendQueue::Emptied if may_begin_another(wait) => (Cause::SenderThink, Confidence::Possible),
        SendQueue::Emptied if begins_again(wait) => (Cause::SenderThink, Confidence::Possible),
        SendQueue::Emptied if wait.gap >= MESSAGE_AFTER => (Cause::SenderThink, Confidence::Likely),
        SendQueue::Emptied if wait.near_sender() && !nagle::would_hold(wait) => {
            (Cause::SenderThink, Confidence::Certain)
        }
        SendQueue::Emptied => (Cause::SenderThink, Confidence::Likely),
        _ if wait.gap < BURST_GAP => (Cause::Bandwidth, Confidence::Likely),
        // The queue behind it may have been empty or not.
        SendQueue::Unknown => (Cause::SenderThink, Confidence::Possible),
        // With the last segment all that is in flight, no window holds the next one, and a cork had no timer yet: a
        // segment that leaves because it is full waited for the bytes of its own (MSG_MORE, SPLICE_F_MORE).
        SendQueue::More if wait.flow.flight() <= wait.last.len && wait.gap < RTO_MIN => {
            (Cause::SenderThink, Confidence::Possible)
        }
        // Behind what is acknowledged neither Nagle nor a cork holds anything for so long: its stack does not push (RFC 9293, 3.9.1).
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

/// Whether everything before it had been acknowledged without an answer for so long that it may be a message of its own.
fn may_begin_another(wait: &Wait<'_>) -> bool {
    let usual = (wait.rtt_to_sender + wait.rtt_to_receiver).times(REACTIONS);
    // Acknowledgements that the capture does not have: the timer of what is in flight would have sent it again.
    let unseen = wait.gap >= TIMER_MAX + wait.rtt().times(ROUND_TRIPS);
    // Without a handshake, how large full segments are is a guess.
    (wait.flow.flight() == 0 || unseen)
        && (wait.last.len < wait.mss || wait.midway)
        && (wait.gap >= MESSAGE_AFTER || wait.gap >= REACTION_MIN.max(usual))
}

/// Whether it begins with what was sent before, as what a timer sends does: what is behind that may have been written, and held, at any time since.
fn begins_again(wait: &Wait<'_>) -> bool {
    wait.gap >= HELD_BACK_MIN && wait.flow.snd_nxt.is_some_and(|nxt| wait.segment.seq.before(nxt))
}

/// Whether an acknowledgement may have released it that has hardly reached the sender yet, as far as the way to it is known:
/// that is known from above, and without time stamps from a few packets. Chance alone seldom lets a write fall into so short
/// a time, or so near to the end of a longer one.
fn may_be_released(wait: &Wait<'_>) -> bool {
    wait.flow.acked_in_transit(wait.last.at).is_some_and(|passed| {
        let nearly = (wait.segment.at - passed).times(4) >= wait.rtt_to_sender.times(3);
        wait.gap >= wait.rtt_to_sender.times(CHANCE) || nearly && !wait.flow.timestamps
    })
}

/// Whether its writer may have slept for room in its send buffer, however small that was made (SO_SNDBUF): more than it had written last
/// was in flight, and the acknowledgement of some of that is what it goes on with.
fn may_be_woken(wait: &Wait<'_>) -> bool {
    wait.last.flight > wait.last.len.max(2 * wait.mss) && wait.gap >= HELD_BACK_MIN && follows_ack(wait)
}

fn follows_ack(wait: &Wait<'_>) -> bool {
    wait.flow.view.clocking_ack().is_some_and(|ack| wait.follows(&ack))
}
