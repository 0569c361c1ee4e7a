//! How many packets of this sender did the capture not see?

/// Counts packets that the capture missed, where the sender numbers its packets one by one.
///
/// Linux numbers the packets of a connection from a random start, a super-segment taking one number a packet
/// (`ip_select_ident_segs`). Senders that do otherwise never reach the trust threshold.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct IpIdCounter {
    expected: Option<u16>,
    hits: u8,
}

impl IpIdCounter {
    const TRUSTED: u8 = 2;
    const PLAUSIBLE_GAP: u16 = 256;

    /// A packet of this sender with `id`, which stands for `packets` on the wire. Returns how many before it are missing.
    pub(crate) fn on_packet(&mut self, id: u16, packets: u16) -> u16 {
        let next = id.wrapping_add(packets);
        let Some(expected) = self.expected else {
            // A SYN-ACK carries 0, the connection's own counter starts behind it.
            self.expected = (id != 0).then_some(next);
            return 0;
        };
        let missed = id.wrapping_sub(expected);
        if missed > u16::MAX - Self::PLAUSIBLE_GAP {
            return 0; // overtaken on the way
        }
        self.expected = Some(next);
        if missed == 0 {
            self.hits = self.hits.saturating_add(1);
            return 0;
        }
        if missed > Self::PLAUSIBLE_GAP {
            self.hits = 0; // not this connection's counter
            return 0;
        }
        if self.hits >= Self::TRUSTED { missed } else { 0 }
    }
}
