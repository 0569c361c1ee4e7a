//! How long did the requester wait for the rest of an answer that never came?
//!
//! Proof: it closes, and some bytes of the answer are missing and were not retransmitted by then.
//! Refuted by: nothing missing, or a hole that only a packet after the close shows; a wait shorter
//! than a timer.
//! Source: RFC 6298, 2; TCP_RTO_MIN, include/net/tcp.h, Linux 6.12; a path that loses only large
//! packets is `black_hole`.
//! Seen from: both ends.

use tcpwhy_wire::{Duration, Instant};

use super::black_hole;
use crate::bill::charge::Charge;
use crate::flow::direction::Flow;
use crate::words::cause::Cause;
use crate::words::limits::RTO_MIN;
use crate::words::report::{Confidence, Detail};

/// The charge for the wait after `packet` until the receiver of `flow` closed at `closed_at`.
pub(crate) fn judge(
    flow: &Flow,
    mss: u32,
    closed_at: Instant,
    (wait, packet): (Duration, u64),
) -> Option<Charge> {
    let form = black_hole::unrepaired(flow, mss, closed_at).filter(|_| wait >= RTO_MIN)?;
    let detail = Detail { form: Some(form), ..Detail::default() };
    let charge = Charge::new(Cause::Rto, flow.side, wait, Confidence::Likely);
    Some(charge.evidence(packet, packet).detail(detail))
}
