//! Is this the packet before it, seen again on another interface (`-i any`), after a hop, or because a radio link repeated it?
//!
//! Asked per connection, because on a busy host packets of other connections pass in between.

use tcpwhy_wire::{Duration, Flags, Instant, Segment, Seq};

use crate::flow::packed::Packed;

/// A packet crosses a host's interfaces in less time.
pub(crate) const WITHIN: Duration = Duration::from_millis(1);
/// A radio link repeats a frame that its receiver has not acknowledged (IEEE 802.11, 10.3) for less than the shortest
/// retransmission timeout (TCP_RTO_MIN, include/net/tcp.h).
const REPEATED_WITHIN: Duration = Duration::from_millis(200);

/// What identifies the last packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct DuplicateFilter {
    at: Instant,
    seq: Seq,
    ack: Seq,
    payload_len: u32,
    window: u16,
    ip_id: Option<u16>,
    flags: Flags,
    from: u8,
}

impl DuplicateFilter {
    pub(crate) fn of(segment: &Segment, from: usize) -> Self {
        Self {
            at: segment.at,
            seq: segment.seq,
            ack: segment.ack,
            payload_len: segment.payload_len,
            window: segment.window,
            ip_id: segment.ip_id,
            flags: segment.flags,
            from: from as u8,
        }
    }

    #[inline]
    pub(crate) fn of_packed(packed: &Packed, from: usize) -> Self {
        Self {
            at: packed.at,
            seq: packed.seq,
            ack: packed.ack,
            payload_len: packed.payload_len,
            window: packed.window,
            ip_id: packed.ip_id,
            flags: packed.flags,
            from: from as u8,
        }
    }

    /// Whether `segment` is the same packet. Without an IP ID (IPv6, or 0 as in a SYN-ACK of Linux) an ACK
    /// may well be repeated within a millisecond; a segment that takes sequence space is not, without a
    /// packet of the peer in between.
    pub(crate) fn is_again(&self, segment: &Segment, from: usize) -> bool {
        let identified = || is_numbered(segment) || segment.seq_len() > 0;
        self.is_same(segment, from) && identified() && self.comes_within(WITHIN, segment)
    }

    /// Whether a radio link has repeated it as `segment`: a retransmission would have another IP ID.
    pub(crate) fn is_repeated(&self, segment: &Segment, from: usize) -> bool {
        self.is_same(segment, from)
            && segment.payload_len > 0
            && is_numbered(segment)
            && self.comes_within(REPEATED_WITHIN, segment)
    }

    #[inline]
    fn is_same(&self, segment: &Segment, from: usize) -> bool {
        self.seq == segment.seq // rejects most packets
            && self.ip_id == segment.ip_id
            && usize::from(self.from) == from
            && (self.ack, self.flags) == (segment.ack, segment.flags)
            && (self.payload_len, self.window) == (segment.payload_len, segment.window)
    }

    fn comes_within(&self, within: Duration, segment: &Segment) -> bool {
        segment.at - self.at < within && self.at - segment.at < WITHIN
    }
}

fn is_numbered(segment: &Segment) -> bool {
    segment.ip_id.is_some_and(|id| id != 0)
}
