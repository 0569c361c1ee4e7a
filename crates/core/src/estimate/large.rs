//! Do large segments get through at all?
//!
//! A link with a smaller MTU behind a router that does not report it (RFC 2923, 2.1) passes all small
//! packets and no large ones: a connection opens, sends a request, and hangs at the first full segment. Its
//! sender retransmits that by its timer, and if it probes (tcp_mtu_probing, net/ipv4/tcp_timer.c; RFC 4821)
//! sends smaller ones in the end, which pass at once.

/// Retransmissions after which it is the size that is lost: three segments in a row, or their ACKs, are
/// hardly lost by chance.
const COPIES_MIN: u8 = 2;

/// What is known of full segments of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct LargeSegments {
    /// So many bytes were acknowledged at once that one segment was full.
    passed: bool,
    /// A full segment has passed the capture.
    seen: bool,
    /// How often the full segment that the peer waits for was retransmitted.
    copies: u8,
}

impl LargeSegments {
    /// Some bytes are acknowledged.
    #[inline]
    pub(crate) fn on_acknowledged(&mut self, bytes: u32, mss: u32) {
        self.passed |= bytes >= mss;
        self.copies = 0;
    }

    /// A segment passes; `again` if it is a retransmission of the one that the peer waits for.
    pub(crate) fn on_segment(&mut self, len: u32, mss: u32, again: bool) {
        self.seen |= len >= mss;
        if again && len >= mss {
            self.copies = self.copies.saturating_add(1);
        }
    }

    /// [`Self::on_segment`] of a new full segment.
    #[inline]
    pub(crate) fn on_full(&mut self) {
        self.seen = true;
    }

    /// Near the sender: whether it retransmits its first full segment in vain. `is_waited_for`: the peer has
    /// what comes after it.
    pub(crate) fn is_stuck(self, len: u32, mss: u32, is_waited_for: bool) -> bool {
        !self.passed && self.copies >= COPIES_MIN && (len < mss || is_waited_for)
    }

    /// Whether the full segment that the peer waits for was retransmitted.
    pub(crate) fn is_repeated(self) -> bool {
        self.copies > 0
    }

    /// Near the receiver: whether no full segment has arrived yet from a sender that has enough for one.
    pub(crate) fn is_none_seen(self) -> bool {
        !self.seen
    }
}
