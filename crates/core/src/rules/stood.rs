//! Was an answer delayed on the path for as long as its sender's retransmission timer?
//!
//! Proof: a retransmission of the answer's bytes arrives so soon after the first transmission that
//! no feedback on that can have caused it, and its number or time stamp is later than all of the
//! answer's: it left a timer later, so the first transmission was delayed by as much more. Without numbers and
//! stamps, a D-SACK for it says that both came from the path.
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
use crate::words::limits::{BURST_GAP, NEAR_MAX, RTO_MIN};

/// A nearer sender may have had feedback, unless both came in one burst. Source: none written down.
const FAR_MIN: Duration = Duration::from_millis(2);
/// A tail loss probe leaves at least two round trips later (RFC 8985, 7.2).
const PROBE_ROUNDS: i64 = 2;

/// The least time for which the answer of `from` was delayed; `segment` retransmits something that
/// this end has sent.
pub(crate) fn judge(pair: &Pair<'_>, open: &Open, segment: &Segment, from: usize) -> Option<Duration> {
    came_with_copy(pair, open, segment, from).filter(|_| is_later(pair, segment, from))
}

/// The same for a retransmission that nothing numbers: it may be the capture's own, until a D-SACK has named it.
pub(crate) fn judge_unnumbered(
    pair: &Pair<'_>,
    open: &Open,
    segment: &Segment,
    from: usize,
) -> Option<Duration> {
    let numbered = segment.ip_id.is_some_and(|id| id != 0) || segment.options.timestamps.is_some();
    came_with_copy(pair, open, segment, from).filter(|_| !numbered)
}

fn came_with_copy(pair: &Pair<'_>, open: &Open, segment: &Segment, from: usize) -> Option<Duration> {
    let first = open.reply_first.filter(|_| from != open.initiator)?;
    let since = segment.at - (open.request_at() + open.waited);
    let end = segment.seq + segment.payload_len;
    let timer =
        if segment.seq.at_or_before(first) { RTO_MIN } else { pair.tap_rtt[from].times(PROBE_ROUNDS) };
    (end.after(first) && is_unheard(pair, since, from)).then(|| (timer - since).at_least_zero())
}

/// Whether nothing can have told `from` of a packet so long ago.
fn is_unheard(pair: &Pair<'_>, since: Duration, from: usize) -> bool {
    let rtt = pair.tap_rtt[from];
    let at_once = rtt > NEAR_MAX && since <= BURST_GAP;
    at_once || rtt > FAR_MIN && since < rtt.divided_by(2)
}

fn is_later(pair: &Pair<'_>, segment: &Segment, from: usize) -> bool {
    pair.flows[from].left_behind(segment, pair.sizes[from])
}

/// Whether the path had stalled during a silence of `from`: `segment` is a retransmission of what ended
/// the silence, too soon after it to react to anything.
pub(crate) fn ended_with_copy(pair: &Pair<'_>, pause: &Pause, segment: &Segment, from: usize) -> bool {
    let is_copy = (segment.seq + segment.payload_len).after(pause.seq);
    is_copy && is_unheard(pair, segment.at - pause.at, from) && is_later(pair, segment, from)
}
