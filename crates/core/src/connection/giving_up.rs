//! How long did the asker wait for the rest of an answer that never came?
//!
//! It closes, and bytes of the answer are missing: what was lost was not repaired until then.

use tcpwhy_wire::Duration;

use super::Connection;
use crate::bill::charge::Charge;
use crate::bill::exchange::Open;
use crate::rules::black_hole;
use crate::words::cause::Cause;
use crate::words::limits::RTO_MIN;
use crate::words::report::{Confidence, Detail, Kind};

impl Connection {
    /// Charges the wait from the answer's last segment until its asker closed.
    #[inline]
    pub(super) fn charge_unrepaired(&self, open: &mut Open) {
        if let Some(closed_at) =
            self.roles.closed_at[open.initiator].filter(|_| open.kind() == Kind::Exchange)
        {
            let rtt_to_asker = self.tap_rtt(open.initiator);
            let last = open.last_path().frontier().map(|last| (last.at, last.packet));
            if let Some((at, packet)) = last {
                self.charge_missing(open, closed_at - rtt_to_asker - at, packet);
            }
        }
    }

    #[cold]
    fn charge_missing(&self, open: &mut Open, wait: Duration, packet: u64) {
        let speaker = 1 - open.initiator;
        let flow = &self.flows[speaker];
        let Some(form) = black_hole::unrepaired(flow, self.mss(speaker)).filter(|_| wait >= RTO_MIN) else {
            return;
        };
        let detail = Detail { form: Some(form), ..Detail::default() };
        let charge = Charge::new(Cause::Rto, flow.side, wait, Confidence::Likely);
        open.last_path().settle().charge(&charge.evidence(packet, packet).detail(detail));
    }
}
