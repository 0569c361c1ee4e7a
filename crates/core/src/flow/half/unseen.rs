//! What has arrived although the capture does not have it?

use tcpwhy_wire::Segment;

use super::Half;

impl Half {
    /// Whether the peer has acknowledged bytes that the capture does not have. They may still come, where the capture
    /// took the packets of two queues out of order.
    pub(crate) fn acked_unseen(&self) -> bool {
        self.una.zip(self.snd_nxt).is_some_and(|(una, nxt)| una.after(nxt))
    }

    /// Whether packets before this segment are missing from the capture, though they did arrive.
    pub(crate) fn not_captured(&self, segment: &Segment) -> bool {
        self.acked_unseen() && self.snd_nxt.is_some_and(|nxt| segment.seq.after(nxt))
    }
}
