//! Which tail of a message did Nagle hold last?

use tcpwhy_wire::Duration;

use crate::bill::charge::Charge;
use crate::bill::split::Split;
use crate::words::cause::Cause;

/// A tail that Nagle held, and how much was in flight until then.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Tail {
    pub packet: u64,
    pub cause: Cause,
    pub ns: Duration,
    pub flight: u32,
}

impl Tail {
    /// The tail that left in this packet after `split`, if Nagle had held it.
    pub(crate) fn of(split: &Split, packet: u64) -> Option<Self> {
        let held = |charge: &&Charge| matches!(charge.cause, Cause::Nagle | Cause::NagleDelayedAck);
        let charge = split.charges().find(held)?;
        let flight = charge.detail.as_ref().and_then(|detail| detail.flight_bytes).unwrap_or_default();
        Some(Self { packet, cause: charge.cause, ns: charge.ns, flight: flight as u32 })
    }
}
