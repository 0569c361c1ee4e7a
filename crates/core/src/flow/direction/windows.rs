//! How far do the peer's windows let this direction send?

use tcpwhy_wire::{Segment, Seq};

use super::Flow;
use crate::flow::segment_class::{LastData, SegmentClass, SendQueue};

/// The largest window that a sender knows early in a connection.
const EARLY_WINDOW_MAX: u32 = 65_536;

impl Flow {
    /// Learns from the peer's ACK how its windows are scaled, where no handshake tells.
    pub(crate) fn learn_scale(&mut self, ack: &Segment, mss: u32) {
        let outstanding = self.outstanding();
        let bounds = &mut self.unusual.shown().scale_bounds;
        let before = bounds.scale();
        bounds.on_ack(ack.ack, ack.window, outstanding, mss);
        let scale = bounds.scale();
        if scale < before {
            self.shrink_windows(before - scale);
        }
    }

    /// The windows so far are smaller than they were taken for by this many powers of two.
    fn shrink_windows(&mut self, powers: u8) {
        for ack in self.in_transit.iter_mut().filter(|ack| !ack.unscaled) {
            ack.window >>= powers;
            ack.right_edge = ack.ack + ack.window;
        }
        self.window_max >>= powers;
        self.window_first = self.window_first.map(|window| window >> powers);
        self.view.shrink_windows(powers);
    }

    /// Bytes that fit the window as the sender knows it.
    pub(crate) fn room_left(&self) -> Option<i32> {
        Some(self.view.right_edge? - self.snd_nxt?)
    }

    /// Bytes that still fit after `len` more; negative if these exceed the window. An unknown window has no
    /// end.
    pub(crate) fn room_behind(&self, len: u32) -> i32 {
        self.room_left().map_or(i32::MAX, |room| room.saturating_sub_unsigned(len))
    }

    /// First byte beyond every window that passed the capture, whether the sender had it yet or not.
    pub(crate) fn right_edge_seen(&self) -> Option<Seq> {
        self.in_transit.iter().map(|ack| ack.right_edge).chain(self.view.right_edge).reduce(Seq::latest)
    }

    /// Half of the largest window that the sender can have known early in the connection.
    pub(super) fn forced_push_after(&self) -> u32 {
        if self.window_max == 0 { EARLY_WINDOW_MAX / 2 } else { self.window_max.min(EARLY_WINDOW_MAX) / 2 }
    }

    /// Whether a small segment of `len` bytes that left while a small one was outstanding shows that Nagle
    /// is off: within a long write, every half window is pushed regardless (forced_push, net/ipv4/tcp.c).
    pub(crate) fn shows_nodelay(&self, len: u32) -> bool {
        self.outstanding() + len < self.window_max / 2
    }

    /// Bytes that the sender learned to have arrived since it sent `last`.
    pub(crate) fn acked_since(&self, last: &LastData) -> u32 {
        match (self.view.snd_una, last.snd_una) {
            (Some(now), Some(then)) => (now - then).max(0) as u32,
            _ => 0,
        }
    }

    /// What is known of its sender's queue after a segment; an overtaken one leaves that as the segments
    /// beyond it told.
    #[inline]
    pub(super) fn queue_left(&self, segment: &Segment, class: SegmentClass, small: bool) -> SendQueue {
        let overtaken = matches!(class, SegmentClass::OutOfOrderOrRepair { .. })
            && self.snd_nxt.is_some_and(|nxt| (segment.seq + segment.payload_len).before(nxt));
        match &self.last_data {
            Some(last) if overtaken => last.queue,
            _ => self.queue_behind(segment, small),
        }
    }

    /// What a segment says about its sender's queue after it.
    pub(super) fn queue_behind(&self, segment: &Segment, small: bool) -> SendQueue {
        let forced = self.pushed_run.saturating_add(segment.payload_len) >= self.forced_push_after();
        match (segment.flags.psh(), small && !forced) {
            (false, _) => SendQueue::More,
            (true, true) if self.snd_nxt.is_some_and(|nxt| self.view.cuts(nxt)) => SendQueue::Unknown,
            (true, true) => SendQueue::Emptied,
            (true, false) => SendQueue::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use tcpwhy_wire::{Duration, Endpoint, Flags, Instant, TcpOptions};

    use super::*;
    use crate::words::cause::Side;

    fn ack(flags: u8, ack: u32, window: u16) -> Segment {
        Segment {
            packet: 1,
            at: Instant::from_nanos(0),
            src: Endpoint::v4([10, 0, 0, 2], 80),
            dst: Endpoint::v4([10, 0, 0, 1], 40_000),
            seq: Seq(9),
            ack: Seq(ack),
            window,
            flags: Flags(flags | Flags::ACK),
            payload_len: 0,
            options: TcpOptions::default(),
            ip_id: None,
            ttl: 64,
            damaged: false,
        }
    }

    /// A scale of 7 shows while a SYN-ACK, whose window of 64,000 bytes is not scaled (RFC 7323, 2.2), is
    /// still in transit.
    #[test]
    fn a_syn_s_window_in_transit_shrinks_with_no_scale() {
        let mut flow = Flow::new(Side::Client);
        flow.snd_nxt = Some(Seq(1));
        flow.on_ack(&ack(Flags::SYN, 1, 64_000), 64_000, 1448, Duration::ZERO);
        for (bytes, field) in [(1, 500), (2_897, 477)] {
            flow.learn_scale(&ack(0, bytes, field), 1448);
        }
        assert_eq!(flow.unusual.scale_bounds.scale(), 7);
        assert_eq!(flow.right_edge_seen(), Some(Seq(64_001)));
    }
}
