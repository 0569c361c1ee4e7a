//! What was one interval spent on, who was sending, how sure is that, and which packets show it?

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
    /// The packets that show it, zero for none: with which it begins, which ends it, and which let that one leave.
    pub evidence: [u64; 3],
    /// `None` where nothing was measured: most charges are handed around without.
    pub detail: Option<Box<Detail>>,
}

impl Charge {
    pub(crate) const fn new(cause: Cause, sender: Side, ns: Duration, confidence: Confidence) -> Self {
        Self { cause, sender, ns, confidence, evidence: [0; 3], detail: None }
    }

    /// What the bottleneck needed in a burst, between these packets.
    pub(crate) fn in_burst(share: (Duration, Confidence), sender: Side, packets: [u64; 2]) -> Self {
        let [begins, ends] = packets;
        Self::new(Cause::Bandwidth, sender, share.0, share.1).evidence(begins, ends)
    }

    /// Shown by the packet with which it begins and the one that ends it.
    pub(crate) fn evidence(mut self, begins: u64, ends: u64) -> Self {
        self.evidence = [begins, ends, 0];
        self
    }

    /// The packet that let the last one leave.
    pub(crate) fn released_by(mut self, packet: u64) -> Self {
        self.evidence[2] = packet;
        self
    }

    pub(crate) fn detail(mut self, detail: Detail) -> Self {
        self.detail = (detail != Detail::default()).then(|| Box::new(detail));
        self
    }
}
