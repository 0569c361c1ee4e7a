//! Was the sender blocked, and by what? One file for each mechanism, asked in the order of certainty.
//!
//! Every rule gets the same [`Wait`]: an interval in which a sender in the middle of a message sent
//! nothing, and what that sender knew by its end. A rule answers with a split of the interval, or
//! with nothing.

pub(crate) mod answers;
pub(crate) mod application_window;
mod bandwidth;
pub(crate) mod black_hole;
mod congestion_window;
pub(crate) mod cork;
pub(crate) mod crossed;
mod delayed_ack_cwnd;
pub(crate) mod drain;
pub(crate) mod ended;
pub(crate) mod handshake;
pub(crate) mod late_answer;
pub(crate) mod late_request;
pub(crate) mod late_start;
mod link_share;
pub(crate) mod nagle;
pub(crate) mod needless;
mod next_repair;
pub(crate) mod not_captured;
pub(crate) mod on_its_way;
mod pacing;
pub(crate) mod pair;
mod pieces;
pub(crate) mod proxy;
mod queueing;
mod receive_window;
mod receiver_think;
pub(crate) mod repair;
pub(crate) mod round_trip;
pub(crate) mod rounds_beyond;
mod send_buffer;
pub(crate) mod sender_model;
pub(crate) mod server_think;
pub(crate) mod several_questions;
pub(crate) mod shut_window;
mod slow_start;
pub(crate) mod stood;
mod stopped_clock;
mod think;
pub(crate) mod unrepaired;
pub(crate) mod unseen_copy;
mod used_up;
pub(crate) mod verdict;
pub(crate) mod wait;
mod whole_round;

use crate::flow::segment_class::SegmentClass;
use crate::words::cause::Cause;
use crate::words::limits::BURST_GAP;
use sender_model::Observation;
use verdict::Verdict;
use wait::Wait;

/// Asks each mechanism in turn.
pub(crate) fn judge(wait: &Wait<'_>) -> Verdict {
    let mut verdict = ask(wait);
    if wait.behind_host && wait.has_nothing_under_way() && verdict.split.has(Cause::ReceiveWindow.bit()) {
        verdict = think::judge(wait); // with the window open, the host in between had nothing to send
    }
    let by_acks = Cause::ReceiveWindow.bit() | Cause::ReceiverThink.bit() | Cause::SenderThink.bit();
    let missed = || verdict.split.has(by_acks) && not_captured::behind_stretch(wait);
    if wait.far_unknown || wait.behind_host || wait.coarse || missed() {
        verdict.split.doubt(); // what the sender knew is not known, or what came before what
    } else if wait.midway {
        verdict.split.temper(); // the unseen beginning may have shown how this sender behaves when nothing holds it
    }
    verdict
}

fn ask(wait: &Wait<'_>) -> Verdict {
    // Within a burst (nearly every packet of a bulk transfer) the other rules cannot apply.
    if wait.gap < BURST_GAP && wait.class == SegmentClass::New && !wait.flow.plain {
        return receive_window::judge(wait).unwrap_or_else(|| think::judge(wait));
    }
    // Nothing can be said of a sender when its packets, or what it waited for, are missing.
    not_captured::judge(wait)
        // Nor of a sender that was suspended.
        .or_else(|| stopped_clock::judge(wait))
        // A retransmission is one, whatever else could have held the segment.
        .or_else(|| repair::judge(wait))
        // A segment delayed on the path, by its time stamp, left before any rule about its sender
        // applies.
        .or_else(|| bandwidth::judge(wait))
        // A small segment released by an acknowledgement: the hold with the most specific proof.
        .or_else(|| nagle::judge(wait))
        // The advertised window is in the capture; the congestion window is not.
        .or_else(|| receive_window::judge(wait))
        // A wait as long as a timer, where neither window nor Nagle held a partial segment.
        .or_else(|| cork::judge(wait))
        // Missing acknowledgements, before anything inferred from those that came.
        .or_else(|| receiver_think::withheld(wait))
        // The rest of a queue that an acknowledgement released.
        .or_else(|| congestion_window::judge(wait))
        // The application, if nothing else explains the wait.
        .unwrap_or_else(|| think::judge(wait))
}

/// What a verdict teaches about its sender.
pub(crate) fn observe(wait: &Wait<'_>, verdict: &Verdict) -> Observation {
    Observation {
        nagle: nagle::observe(wait, verdict),
        index: wait.index,
        before: wait.last.len,
        copies_due: repair::copies_due(wait, verdict),
        writes_on: send_buffer::writes_on(wait),
        drained_to: send_buffer::drained_to(wait, verdict).map(|left| (left, wait.mss)),
        silent_behind: whole_round::flight(wait, verdict).map(|flight| (flight, wait.mss)),
        filled: whole_round::filled(wait, verdict),
        beyond: None,
        at_heels: send_buffer::at_heels(wait).filter(|_| verdict.split.has_only(Cause::SenderThink.bit())),
    }
}
