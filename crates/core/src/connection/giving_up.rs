//! How long did the asker wait for the rest of an answer that never came?
//!
//! It closes, and bytes of the answer are missing: what was lost was not repaired until then.

use tcpwhy_wire::{Duration, Instant};

use super::Connection;
use crate::bill::exchange::Open;
use crate::rules::unrepaired;
use crate::words::report::Kind;

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
                self.charge_missing(open, closed_at, (closed_at - rtt_to_asker - at, packet));
            }
        }
    }

    #[cold]
    fn charge_missing(&self, open: &mut Open, closed_at: Instant, wait: (Duration, u64)) {
        let speaker = 1 - open.initiator;
        if let Some(charge) = unrepaired::judge(&self.flows[speaker], self.mss(speaker), closed_at, wait) {
            open.last_path().settle().charge(&charge);
        }
    }
}
