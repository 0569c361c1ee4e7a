//! Was an answer delayed on the path for as long as its sender's retransmission timer?
//!
//! Proof: a retransmission of the answer's bytes arrives so soon after the first transmission that
//! no feedback on that can have caused it, and its number or time stamp is later than all of the
//! answer's: it left a timer later, so the first transmission was delayed by as much more.
//! Refuted by: a retransmission that an acknowledgement can have caused; a packet seen twice, with
//! the number of the first.
//! Source: RFC 6298, 2.4 and 5; TCP_RTO_MIN, include/net/tcp.h; RFC 8985, 7.3 (the probe sends the
//! last segment again, and takes as long where that is the only one).
//! Seen from: where part of the path to the sender lies before the capture; near the sender the
//! timer shows between the two packets.
//!
//! Nothing shows how much longer the first transmission was delayed: the rest of the wait may be
//! the path's as well.

use tcpwhy_wire::{Duration, Segment};

use super::pair::Pair;
use crate::bill::exchange::Open;
use crate::bill::pause::Pause;
use crate::words::limits::RTO_MIN;

/// A nearer sender may have had feedback. Source: none written down.
const FAR_MIN: Duration = Duration::from_millis(2);
/// A tail loss probe leaves at least two round trips later (RFC 8985, 7.2).
const PROBE_ROUNDS: i64 = 2;

/// The least time for which the answer of `from` was delayed; `segment` retransmits something that
/// this end has sent.
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

/// Whether the path had stalled during a silence of `from`: `segment` is a retransmission of what ended
/// the silence, too soon after it to react to anything.
pub(crate) fn ended_with_copy(pair: &Pair<'_>, pause: &Pause, segment: &Segment, from: usize) -> bool {
    let rtt = pair.tap_rtt[from];
    let unheard = rtt > FAR_MIN && segment.at - pause.at < rtt.divided_by(2);
    let is_copy = (segment.seq + segment.payload_len).after(pause.seq);
    is_copy && unheard && pair.flows[from].left_behind(segment, pair.sizes[from])
}
