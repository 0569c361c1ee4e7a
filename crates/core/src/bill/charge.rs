//! What was one interval spent on, who was sending, with what confidence, and which packets show
//! it?

use tcpwhy_wire::Duration;

use crate::words::cause::{Cause, Side};
use crate::words::report::{Confidence, Detail};

/// An interval and what it was spent on.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Charge {
    pub cause: Cause,
    /// Who was sending: resolves `sender` and `receiver` to client and server.
    pub sender: Side,
    pub ns: Duration,
    pub confidence: Confidence,
    /// The packets that show it, zero for none: the one at its start, the one at its end, and the
    /// one that released the latter.
    pub evidence: [u64; 3],
    /// `None` if nothing was measured, as in most charges.
    pub detail: Option<Box<Detail>>,
}

impl Charge {
    pub(crate) const fn new(cause: Cause, sender: Side, ns: Duration, confidence: Confidence) -> Self {
        Self { cause, sender, ns, confidence, evidence: [0; 3], detail: None }
    }

    /// The time that the bottleneck needed in a burst, between these packets.
    pub(crate) fn in_burst(share: (Duration, Confidence), sender: Side, packets: [u64; 2]) -> Self {
        let [begins, ends] = packets;
        Self::new(Cause::Bandwidth, sender, share.0, share.1).evidence(begins, ends)
    }

    /// Shown by the packet at its start and the one at its end.
    pub(crate) fn evidence(mut self, begins: u64, ends: u64) -> Self {
        self.evidence = [begins, ends, 0];
        self
    }

    /// The packet that released the last one.
    pub(crate) fn released_by(mut self, packet: u64) -> Self {
        self.evidence[2] = packet;
        self
    }

    pub(crate) fn detail(mut self, detail: Detail) -> Self {
        self.detail = (detail != Detail::default()).then(|| Box::new(detail));
        self
    }
}
