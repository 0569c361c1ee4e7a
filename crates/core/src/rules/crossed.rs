//! Did a sender that looks held by Nagle wait for a message that its peer sent unasked, not for an
//! acknowledgement?
//!
//! Proof: the segment leaves just as the peer's own first message reaches its sender, and
//! acknowledges it, before any of the request was answered.
//! Refuted by: a sender known to obey Nagle: it may have written earlier.
//! Source: RFC 9113, 3.4 (both ends of HTTP/2 begin with their settings).
//! Seen from: both ends; as exactly as the round trip to the sender is known.

use tcpwhy_wire::Duration;

use super::verdict::Verdict;
use super::wait::Wait;
use crate::bill::charge::Charge;
use crate::bill::exchange::Open;
use crate::bill::split::Split;
use crate::flow::direction::Flow;
use crate::words::cause::Cause;
use crate::words::report::{Confidence, Trigger};

/// A segment that looks held may respond to what the peer sent unasked, before any of the request
/// had reached it (both ends of HTTP/2 begin with their settings, RFC 9113, 3.4): the sender waited
/// for that message, for part of one round trip. As the acknowledgement comes right after it, only
/// a sender known to obey Nagle may have written earlier.
pub(crate) fn judge(
    open: &Open,
    wait: &Wait<'_>,
    peer: &Flow,
    from: usize,
    verdict: &Verdict,
) -> Option<Verdict> {
    let unanswered = from == open.initiator && open.reply_first.is_none() && wait.model.nagle_held == 0;
    let last = peer.last_data.filter(|_| unanswered && verdict.split.has(Cause::Nagle.bit()))?;
    let arrived = last.at + wait.rtt_to_sender;
    let late = wait.segment.at - arrived;
    let read = peer.snd_nxt.is_some_and(|next| wait.segment.ack.at_or_after(next));
    if !read || arrived <= wait.last.at || late > wait.tolerance() || late < -wait.tolerance() {
        return None;
    }
    let mut split = Split::of(wait.gap);
    split.take(
        Charge::new(Cause::RoundTrip, wait.flow.side, arrived - wait.last.at, Confidence::Likely)
            .evidence(last.packet, wait.segment.packet),
    );
    let own = Charge::new(Cause::SenderThink, wait.flow.side, Duration::ZERO, Confidence::Likely)
        .evidence(last.packet, wait.segment.packet);
    Some(Verdict { split: split.rest(own), trigger: Trigger::Packet(last.packet) })
}
