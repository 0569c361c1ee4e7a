//! Had an answer stood on the path for as long as its sender's timer runs?
//!
//! Proof: a copy of the answer's bytes arrives sooner behind its first ones than anything can have been heard of these, numbered or stamped
//! behind all of the answer: it left a timer later, and the first one was as much later on its way.
//! Refuted by: a copy that an acknowledgement can have caused; a second sighting of one packet, which has the number of the first.
//! Source: RFC 6298, 2.4 and 5; TCP_RTO_MIN, include/net/tcp.h; RFC 8985, 7.3 (the probe sends the last segment again, and takes as long
//! where that is the only one).
//! Seen from: where some of the way to the sender lies before the capture; near it the timer passes between the two.
//!
//! How long the first one stood beyond that nothing tells: what is left of the wait may be the path's as well.

use tcpwhy_wire::{Duration, Segment};

use super::pair::Pair;
use crate::bill::exchange::Open;
use crate::bill::pause::Pause;
use crate::words::limits::RTO_MIN;

/// Nearer ends may have been heard of it. Source: none written down.
const FAR_MIN: Duration = Duration::from_millis(2);
/// A probe of the tail leaves two round trips behind it at the earliest (RFC 8985, 7.2).
const PROBE_ROUNDS: i64 = 2;

/// For how long the answer of `from` stood at least, `segment` being a copy of something that this end has sent.
pub(crate) fn judge(pair: &Pair<'_>, open: &Open, segment: &Segment, from: usize) -> Option<Duration> {
    let first = open.reply_first.filter(|_| from != open.initiator)?;
    let came_at = open.request_at() + open.waited;
    let since = segment.at - came_at;
    let end = segment.seq + segment.payload_len;
    let rtt = pair.tap_rtt[from];
    let unheard = rtt > FAR_MIN && since < rtt.divided_by(2);
    let later = || pair.flows[from].left_behind(segment, pair.sizes[from]);
    let timer = if segment.seq.at_or_before(first) { RTO_MIN } else { rtt.times(PROBE_ROUNDS) };
    (end.after(first) && unheard && later()).then(|| (timer - since).at_least_zero())
}

/// Whether a silence of `from` ended with a first segment that had stood as long, `segment` being a copy of what came with that.
pub(crate) fn ended_with_copy(pair: &Pair<'_>, pause: &Pause, segment: &Segment, from: usize) -> bool {
    let rtt = pair.tap_rtt[from];
    let unheard = rtt > FAR_MIN && segment.at - pause.at < rtt.divided_by(2);
    let is_copy = (segment.seq + segment.payload_len).after(pause.seq);
    is_copy && unheard && pair.flows[from].left_behind(segment, pair.sizes[from])
}
