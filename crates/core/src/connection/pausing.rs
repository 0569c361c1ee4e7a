//! Was a pause within a message a round trip, rather than its sender's own?
//!
//! What passes at the capture does not always show when its sender knew of it: a host in between may acknowledge for it, and a path
//! may be shorter than it has been so far.

use super::Connection;
use crate::estimate::rounds::RoundBeyond;
use crate::flow::ends::{CLIENT, SERVER};
use crate::flow::segment_class::SendQueue;
use crate::rules::rounds_beyond;
use crate::rules::verdict::Verdict;
use crate::rules::wait::Wait;
use crate::words::cause::Cause;
use crate::words::limits::HELD_BACK_MIN;

/// A round trip that varies proves no shorter than one part in this many of what it was. Source: none written down.
const SHRINKS_TO: i64 = 4;

impl Connection {
    /// The server may have waited for a round trip beyond a host that acknowledges for it; the round that begins then.
    pub(super) fn weigh_round_beyond(
        &self,
        wait: &Wait<'_>,
        from: usize,
        verdict: &mut Verdict,
    ) -> Option<RoundBeyond> {
        let open = self.open.as_deref().filter(|open| from == SERVER && from != open.initiator)?;
        let beyond = if wait.gap >= HELD_BACK_MIN { self.beyond()? } else { return None };
        let first = open.reply_first?;
        let fresh = RoundBeyond { began: first, began_at: open.request_at() + open.waited, before: 0 };
        let known = self.models[SERVER].round_beyond().filter(|round| round.began.after(first));
        let round = known.unwrap_or(fresh);
        if let Some(held) = rounds_beyond::judge(wait, &beyond, round) {
            verdict.split.hold(Cause::SenderThink, &held);
        }
        rounds_beyond::next(wait, &beyond, round)
    }

    /// Whether more than two segments were in flight before a pause that is no longer than the round trip to their sender, which
    /// has become shorter: an acknowledgement may have ended it.
    pub(super) fn may_be_round(&self, wait: &Wait<'_>, from: usize) -> bool {
        let way = wait.rtt_to_sender;
        let lasts = wait.gap <= way && wait.gap >= way.divided_by(SHRINKS_TO);
        lasts && wait.last.flight > 2 * wait.mss && self.varies(from)
    }

    /// Whether a client's pause lies between encrypted records, each of which may be a request: HTTP/2 sends as many as it has
    /// before any is answered (RFC 9113, 5).
    pub(super) fn is_between_records(&self, wait: &Wait<'_>, from: usize) -> bool {
        let Some(open) = self.open.as_deref().filter(|open| from == CLIENT && open.initiator == from) else {
            return false;
        };
        let whole = wait.last.queue == SendQueue::Emptied && wait.last.len < wait.mss;
        whole && self.is_in_cipher(open)
    }
}
