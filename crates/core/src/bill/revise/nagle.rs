//! What becomes of what Nagle's algorithm seemed to hold?

use tcpwhy_wire::Duration;

use super::{Accounts, own_pace};
use crate::words::cause::{Cause, Side};

impl Accounts<'_> {
    /// Its acknowledgements were held back.
    pub(super) fn on_held_back(self, sender: Side) {
        let rename =
            |account: &mut super::Account| account.rename(Cause::Nagle, Cause::NagleDelayedAck, sender);
        [self.blocked, self.pending, Some(self.settled)].into_iter().flatten().for_each(rename);
    }

    /// It may not be in use.
    pub(super) fn on_no_delay(self, sender: Side) {
        for account in [self.blocked, self.pending, Some(self.settled)].into_iter().flatten() {
            account.doubt_line(Cause::Nagle, sender);
            account.doubt_line(Cause::NagleDelayedAck, sender);
        }
    }

    /// What it held left whole with `packet`: the hold delayed nothing.
    pub(super) fn on_tail_left(self, packet: u64, sender: Side) -> Duration {
        let Some(blocked) = self.blocked else { return Duration::ZERO };
        let mut held = |cause| blocked.take_back(cause, sender, Duration::MAX);
        let held = held(Cause::Nagle) + held(Cause::NagleDelayedAck);
        blocked.charge(&own_pace(held, packet, sender));
        held
    }
}
