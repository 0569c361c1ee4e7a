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
    /// The packets that show it, zero for none: what stopped the sender, what released it.
    pub evidence: [u64; 2],
    /// `None` where nothing was measured: most charges are handed around without.
    pub detail: Option<Box<Detail>>,
}

impl Charge {
    pub(crate) const fn new(cause: Cause, sender: Side, ns: Duration, confidence: Confidence) -> Self {
        Self { cause, sender, ns, confidence, evidence: [0; 2], detail: None }
    }

    pub(crate) fn evidence(mut self, stopped: u64, released: u64) -> Self {
        self.evidence = [stopped, released];
        self
    }

    pub(crate) fn detail(mut self, detail: Detail) -> Self {
        self.detail = (detail != Detail::default()).then(|| Box::new(detail));
        self
    }
}
