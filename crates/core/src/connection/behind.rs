//! Is there another host beyond the one that acknowledges for the server?
//!
//! The evidence is in `rules/proxy.rs`. Nearly always the handshake took hardly longer than
//! acknowledgements do, and nothing else is asked.

use tcpwhy_wire::Duration;

use super::Connection;
use crate::flow::ends::SERVER;
use crate::flow::handshake::Setup;
use crate::rules::handshake;
use crate::rules::proxy::{Beyond, NEARER_BETWEEN};

impl Connection {
    /// The path beyond the host that acknowledges for the server, if there can be one.
    #[inline]
    pub(super) fn beyond(&self) -> Option<Beyond> {
        let (setup, near) = (self.setup.as_ref()?, self.tap_rtt[SERVER].get()?);
        // A host that is not even twice as near as the server is the server.
        if setup.opened_at_least()? < near.times(NEARER_BETWEEN) {
            return None;
        }
        self.weigh_beyond(setup, near)
    }

    #[cold]
    #[inline(never)]
    fn weigh_beyond(&self, setup: &Setup, near: Duration) -> Option<Beyond> {
        if setup.is_repeated() {
            return self.opened_behind(setup, near);
        }
        let opened = setup.opened().filter(|_| !handshake::is_of_copy(setup, near))?;
        self.answers.beyond(opened, near, || self.answers.taken_over || self.has_host_between())
    }

    /// The same if several SYNs were sent: a host in between that acknowledges sooner than the last of them
    /// was answered does not measure the path that was opened.
    fn opened_behind(&self, setup: &Setup, near: Duration) -> Option<Beyond> {
        let opened = setup.opened_at_least().filter(|_| self.has_host_between())?;
        self.answers.beyond(opened, near, || true).map(Beyond::by_guess)
    }

    /// Whether there may be another host beyond the one that acknowledges for the server.
    #[inline]
    pub(super) fn may_be_behind(&self) -> bool {
        let opened = self.setup.as_ref().and_then(Setup::opened_at_least);
        let (Some(opened), Some(near)) = (opened, self.tap_rtt[SERVER].get()) else { return false };
        self.answers.may_be_behind(opened, near, || self.has_host_between())
    }
}
