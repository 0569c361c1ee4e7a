//! Had an answer stood on the path for as long as its sender's timer runs?
//!
//! Proof: a copy of the answer's first bytes arrives in one instant with them, numbered or stamped behind all of the answer: it left a
//! timer later, and the first one was as much later on its way.
//! Refuted by: a copy that an acknowledgement can have caused; a second sighting of one packet, which has the number of the first.
//! Source: RFC 6298, 2.4 and 5; TCP_RTO_MIN, include/net/tcp.h; RFC 8985, 7.3 (the probe sends the last segment again, and takes as long
//! where that is the only one).
//! Seen from: far from the sender; near it the timer passes between the two.
//!
//! How long the first one stood beyond that nothing tells: what is left of the wait may be the path's as well.

use tcpwhy_wire::{Duration, Segment};

use super::pair::Pair;
use crate::bill::exchange::Open;
use crate::words::limits::RTO_MIN;

/// What came together had waited together. Source: none written down.
const AT_ONCE: Duration = Duration::from_millis(1);

/// For how long the answer of `from` stood at least, `segment` being a copy of something that this end has sent.
pub(crate) fn judge(pair: &Pair<'_>, open: &Open, segment: &Segment, from: usize) -> Option<Duration> {
    let first = open.reply_first.filter(|_| from != open.initiator)?;
    let came_at = open.request_at() + open.waited;
    let since = segment.at - came_at;
    let end = segment.seq + segment.payload_len;
    let begins = segment.seq.at_or_before(first) && end.after(first);
    let unheard = pair.tap_rtt[from] > AT_ONCE.times(2) && pair.tap_rtt[from] > pair.tap_rtt[1 - from];
    let later = || pair.flows[from].left_behind(segment, pair.sizes[from]);
    (begins && unheard && since <= AT_ONCE && later()).then(|| RTO_MIN - since)
}
