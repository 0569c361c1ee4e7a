//! How does a usual segment change the exchange under way?

use tcpwhy_wire::Duration;

use super::{Open, Path};
use crate::bill::account::Account;
use crate::bill::charge::Charge;
use crate::bill::split::Split;
use crate::bill::usual::UsualBill;
use crate::flow::packed::Packed;
use crate::flow::segment_class::LastData;
use crate::words::cause::{Cause, Side};
use crate::words::report::Confidence;

#[inline(never)]
fn charge_first(blocked: &mut Account, share: (Duration, Confidence), sender: Side, packets: [u64; 2]) {
    blocked.charge(&Charge::in_burst(share, sender, packets));
}

impl Path {
    /// Whether a retransmission may have repaired nothing, a timer ran, or Nagle seems to have held
    /// the last segment.
    #[inline]
    pub(crate) fn has_pending(&self) -> bool {
        let last = self.last.as_ref().map(|last| last.packet);
        self.aside.as_ref().is_some_and(|aside| {
            let held = aside.held_tail.as_ref().is_some_and(|tail| Some(tail.packet) == last);
            held || aside.pending_last.is_some() || aside.timer.is_some()
        })
    }

    /// [`Path::advance`] with what the bottleneck needed in a burst, between these packets.
    #[inline]
    pub(crate) fn advance_in_burst(
        &mut self,
        shares: [(Duration, Confidence); 2],
        sender: Side,
        packets: [u64; 2],
        last: LastData,
    ) {
        if shares.iter().all(|(ns, _)| !ns.is_positive()) {
            self.absorb_blocked();
            self.blocked_bytes = 0;
        } else {
            let blocked = &mut self.aside.get_or_insert_default().blocked;
            for share in shares.into_iter().filter(|(ns, _)| ns.is_positive()) {
                if !blocked.charge_again(Cause::Bandwidth, sender, share) {
                    charge_first(blocked, share, sender, packets);
                }
            }
        }
        self.blocked_bytes = self.blocked_bytes.saturating_add(last.len);
        self.last = Some(last);
        self.index += 1;
    }

    /// Whether no retransmission may have repaired nothing, and none was acknowledged late.
    #[inline]
    fn is_certain(&self) -> bool {
        self.aside.as_ref().is_none_or(|aside| {
            let late = aside.acked_late.is_some() || aside.passed_again.is_some();
            aside.pending_last.is_none() && aside.timer.is_none() && !late
        })
    }

    /// Whether nothing is kept aside that may or may not count.
    #[inline]
    pub(crate) fn is_settled(&self) -> bool {
        self.aside.as_ref().is_none_or(|aside| {
            aside.pending_last.is_none()
                && aside.timer.is_none()
                && aside.early.is_empty()
                && aside.blocked.is_empty()
                && aside.seemed_late.is_none()
        })
    }
}

impl Open {
    /// Whether this is the first segment of an answer to a request about which nothing is in doubt.
    #[inline]
    pub(crate) fn awaits_usual(&self, segment: &Packed) -> bool {
        self.reply_first.is_none()
            && self.request_first.is_some_and(|first| segment.ack.after(first))
            && self.request.last.is_some()
            && self.pieces.is_empty()
            && self.request.is_certain()
            && self.reply.is_settled()
            && self.reply.last.is_none()
    }

    /// The reply's path starts at the end of the request's, after a usual reply: [`Path::branch`]
    /// with nothing aside.
    #[inline]
    pub(crate) fn answer(&mut self, usual: impl FnOnce() -> UsualBill) {
        let account = self.request.settle();
        self.reply.clear();
        if account.is_empty() {
            self.reply.account.begin_usual(usual()); // built where it is kept
        } else {
            self.reply.account.copy_from(account);
            self.reply.account.charge_usual(&usual());
        }
    }

    /// The same after a reply that something else may have delayed.
    pub(crate) fn answer_behind(&mut self, split: &Split) {
        self.reply.clear();
        self.reply.account.copy_from(self.request.settle());
        self.reply.account.charge_split(split);
    }

    /// [`Open::count`] of a usual segment.
    #[inline]
    pub(crate) fn count_usual(&mut self, segment: &Packed, from: usize) {
        let new_bytes = u64::from(segment.payload_len);
        self.packets[1] = segment.packet;
        if from == self.initiator {
            self.request_acks = Some(segment.ack);
            self.request_bytes += new_bytes;
            self.piece.2 += new_bytes;
            self.request_end = Some(segment.seq + segment.payload_len);
        } else {
            self.reply_bytes += new_bytes;
        }
    }
}
