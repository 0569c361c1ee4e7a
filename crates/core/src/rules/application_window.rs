//! Had a protocol's own window been used up, so that its sender waited for credit?
//!
//! Proof: all that the peer had granted had left, and the segment goes on with bytes that the grant which came since allows.
//! Refuted by: a repair in the same wait; credit that was left.
//! Source: RFC 9113, 5.2 (HTTP/2's WINDOW_UPDATE); the accounts of credit are `estimate/credit.rs`.
//! Seen from: both ends, where the payload is captured and read.

use tcpwhy_wire::Duration;

use crate::bill::charge::Charge;
use crate::bill::split::Split;
use crate::words::cause::{Cause, Side};
use crate::words::report::Confidence;

/// A wait of `sender`'s, which `split` says what it was spent on, of which it waited so long for credit. All that it might send had
/// left: neither Nagle nor a window of TCP's held anything.
pub(crate) fn judge(split: &Split, waited: Duration, sender: Side, packets: [u64; 2]) -> Split {
    let of = |cause| Charge::new(cause, sender, waited, Confidence::Likely).evidence(packets[0], packets[1]);
    let mut held = Split::of(split.charges().map(|charge| charge.ns).sum());
    held.take(of(Cause::ApplicationWindow));
    held.rest(of(Cause::SenderThink))
}
