//! Had a protocol's own window been used up, so that its sender waited for credit?
//!
//! Proof: the sender had sent all the bytes that its peer had granted, and the segment starts with
//! bytes that only a later grant allows.
//! Refuted by: a retransmission in the same wait; credit left over.
//! Source: RFC 9113, 5.2 (HTTP/2's WINDOW_UPDATE); `estimate/credit.rs` keeps the accounts of
//! credit.
//! Seen from: both ends, where the payload is captured and can be read.

use tcpwhy_wire::Duration;

use crate::bill::charge::Charge;
use crate::bill::split::Split;
use crate::words::cause::{Cause, Side};
use crate::words::report::Confidence;

/// Bills a wait of `sender`, already charged as in `split`, of which it waited `waited` for credit.
/// It had sent all that it was allowed to send, so neither Nagle nor a TCP window held anything.
pub(crate) fn judge(split: &Split, waited: Duration, sender: Side, packets: [u64; 2]) -> Split {
    let of = |cause| Charge::new(cause, sender, waited, Confidence::Likely).evidence(packets[0], packets[1]);
    let mut held = Split::of(split.charges().map(|charge| charge.ns).sum());
    held.take(of(Cause::ApplicationWindow));
    held.rest(of(Cause::SenderThink))
}
