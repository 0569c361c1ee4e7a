//! Do large segments get through at all?
//!
//! A link with a smaller MTU behind a router that does not say so (RFC 2923, 2.1) takes all small packets and none of the large ones: a
//! connection opens, asks, and hangs with the first full segment. Its sender repeats that by its timer, and where it probes
//! (tcp_mtu_probing, net/ipv4/tcp_timer.c; RFC 4821) sends smaller ones in the end, which pass at once.

/// Copies after which it is the size that is lost: three in a row and their acknowledgements hardly are by chance.
const COPIES_MIN: u8 = 2;

/// What is known of full segments of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct LargeSegments {
    /// So many bytes were acknowledged at once that one of them was full.
    passed: bool,
    /// One has passed the capture.
    seen: bool,
    /// How often the one that is waited for was sent again.
    copies: u8,
}

impl LargeSegments {
    /// Some bytes are acknowledged.
    #[inline]
    pub(crate) fn on_acknowledged(&mut self, bytes: u32, mss: u32) {
        self.passed |= bytes >= mss;
        self.copies = 0;
    }

    /// A segment passes, the one that is waited for `again` or another one.
    pub(crate) fn on_segment(&mut self, len: u32, mss: u32, again: bool) {
        self.seen |= len >= mss;
        if again && len >= mss {
            self.copies = self.copies.saturating_add(1);
        }
    }

    /// [`Self::on_segment`] of a full one that is new.
    #[inline]
    pub(crate) fn on_full(&mut self) {
        self.seen = true;
    }

    /// Near the sender: whether it repeats its first full segment in vain. `is_waited_for` says that the peer has what lies behind.
    pub(crate) fn is_stuck(self, len: u32, mss: u32, is_waited_for: bool) -> bool {
        !self.passed && self.copies >= COPIES_MIN && (len < mss || is_waited_for)
    }

    /// Whether the full one that is waited for was sent again.
    pub(crate) fn is_repeated(self) -> bool {
        self.copies > 0
    }

    /// Near the receiver: whether none has arrived yet of a sender that has enough for one.
    pub(crate) fn is_none_seen(self) -> bool {
        !self.seen
    }
}
