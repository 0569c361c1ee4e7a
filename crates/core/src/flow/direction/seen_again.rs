//! Has this packet passed before, on another interface (`-i any`) or a hop earlier, however it is cut there?
//!
//! A container's host sees a super-segment leave and its pieces pass the bridge, or pieces arrive that are
//! merged for the guest: the bytes have been seen, and so has the IP ID, which a retransmission would have
//! increased. Without IP IDs: a sender has no reason to retransmit so soon, as its timers are longer (RFC
//! 6298, 2.4; tcp_schedule_loss_probe, net/ipv4/tcp_output.c), and a fast retransmit follows a signal. A
//! packet that has passed one router more than the rest was seen on the other side of that router.

use tcpwhy_wire::{Duration, Instant, Segment};

use super::Flow;

/// A packet crosses a host's interfaces, or a router, in less time; the shortest tail loss probe takes as
/// long.
const WITHIN: Duration = Duration::from_millis(2);
/// A packet that left together with another, by its sender's clock, was held up in between; no bridge or
/// tunnel holds it for as long as the shortest retransmission timeout (TCP_RTO_MIN, include/net/tcp.h).
const COPIED_WITHIN: Duration = Duration::from_millis(200);

impl Flow {
    /// Whether this packet of the peer acknowledges no more than others before it.
    pub(crate) fn knows_acknowledgement(&self, segment: &Segment) -> bool {
        !segment.flags.ack() || self.highest_ack.is_some_and(|acked| segment.ack.at_or_before(acked))
    }

    /// The window that the peer advertised last.
    #[inline]
    pub(crate) fn last_window(&self) -> u32 {
        self.in_transit.back().map_or(self.view.window, |last| last.window)
    }

    /// Whether this is the last segment under other sequence numbers: no two of a sender have one IP ID and one time stamp, but the pieces of a
    /// super-segment, which are full (NETIF_F_TSO_MANGLEID, include/linux/netdev_features.h).
    pub(crate) fn is_rewritten(&self, segment: &Segment, mss: u32) -> bool {
        let (Some(last), Some(id)) = (self.last_data, segment.ip_id) else { return false };
        let stamp = segment.options.timestamps.map(|stamps| stamps.val);
        let same =
            last.len == segment.payload_len && stamp.is_some() && last.stamp == stamp && self.ip_id.was(id);
        same && segment.payload_len < mss && self.snd_nxt.is_some_and(|nxt| segment.seq.at_or_after(nxt))
    }

    /// Whether this packet's IP ID says that it left after all others of its end.
    pub(crate) fn is_numbered_behind(&self, segment: &Segment) -> bool {
        segment.ip_id.is_some_and(|id| self.ip_id.is_behind_others(id))
    }

    /// Whether this packet is one of those before it. `doubled`: some have been; `elsewhere`: it has passed
    /// other routers than they had, or comes right after one of them.
    pub(crate) fn is_seen_again(&self, segment: &Segment, doubled: bool, elsewhere: bool) -> bool {
        let known = self.snd_nxt.is_some_and(|nxt| segment.seq_end().at_or_before(nxt));
        let since_first =
            self.first.is_none_or(|first| segment.flags.syn() || segment.seq.at_or_after(first));
        if !known || !since_first {
            return false;
        }
        if segment.seq_len() == 0 {
            return self.is_acknowledged_again(segment, doubled, elsewhere);
        }
        let end = segment.seq_end();
        if self.unusual.holes.noticed_at(segment.seq, end).is_some() {
            return false;
        }
        if let Some(old) = segment.ip_id.and_then(|id| self.ip_id.is_old(id)) {
            return old;
        }
        // Bytes acknowledged since then cost nobody anything.
        let sent = self.sent.iter().find(|sent| sent.end.at_or_after(end));
        // The timer of a SYN is longer than the shortest one of data (RFC 6298, 2.1); if it has marks, these
        // tell.
        let unmarked = segment.ip_id.is_none_or(|id| id == 0) && segment.options.timestamps.is_none();
        let within = if elsewhere || segment.flags.syn() && unmarked { COPIED_WITHIN } else { WITHIN };
        let soon = |at| segment.at - at < within || self.left_long_ago(segment, at, doubled);
        let acked = || (doubled || elsewhere || segment.flags.syn()) && !self.is_newer(segment, elsewhere);
        let called_for = |at| !elsewhere && self.unusual.sack_or_dupack_at >= at;
        sent.map_or_else(acked, |sent| soon(sent.at) && !called_for(sent.at))
    }

    /// Whether this packet, whose bytes passed at `at`, has been on its way since then, by its sender's
    /// clock, which has ticked meanwhile: it left with the last data, which is those bytes or, if everything
    /// is seen twice, other data that passed a while ago.
    fn left_long_ago(&self, segment: &Segment, at: Instant, doubled: bool) -> bool {
        let (Some(last), Some(stamps)) = (self.last_data, segment.options.timestamps) else { return false };
        let gap = segment.at - at;
        if gap >= COPIED_WITHIN || self.clock.ticks_apart(0, 0).is_none() && !self.clock.ticks_within(gap) {
            return false;
        }
        let with_last = last.at == at && last.stamp == Some(stamps.val);
        let standing = || self.clock.same_stamp_for(segment.at).is_some_and(|since| since >= WITHIN);
        with_last || doubled && !self.is_newer(segment, false) && standing()
    }

    /// An ACK of nothing new. A sender may well repeat it within a millisecond.
    fn is_acknowledged_again(&self, segment: &Segment, doubled: bool, elsewhere: bool) -> bool {
        if segment.flags.rst() || !segment.flags.ack() {
            return false;
        }
        let old = segment.ip_id.and_then(|id| self.ip_id.is_old(id));
        old.unwrap_or(doubled && segment.options.sack().is_empty() && !self.is_newer(segment, elsewhere))
    }

    /// Whether its sender's clock says that it left after all others or, without time stamps, the routers
    /// that it passed do not say that it is one of them.
    fn is_newer(&self, segment: &Segment, elsewhere: bool) -> bool {
        segment.options.timestamps.map_or(!elsewhere, |stamps| self.clock.is_newer(stamps.val))
    }
}
