//! Is there another host beyond the one that acknowledges for the server?
//!
//! The evidence is in `rules/proxy.rs`. Nearly always the handshake took hardly longer than
//! acknowledgements do, and nothing else is asked.

use std::ops::RangeInclusive;

use tcpwhy_wire::Duration;

use super::Connection;
use crate::flow::ends::SERVER;
use crate::flow::handshake::Setup;
use crate::rules::handshake;
use crate::rules::proxy::{Beyond, NEARER_BETWEEN};
use crate::words::limits::HELD_BACK_MIN;

/// What is left of an initial TTL of 128 (DefaultTTL of Windows), if not of 64.
const COUNTING_TTLS: RangeInclusive<u8> = 65..=128;
/// A host sends no more than one packet in this time to all others together. Source: none written down.
const PACKET_MIN: Duration = Duration::from_micros(10);

impl Connection {
    /// Whether the capture stands at least as near to this end as to the other.
    pub(super) fn is_near(&self, end: usize) -> bool {
        self.tap_rtt(end) <= self.tap_rtt(1 - end)
    }

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
        if setup.is_repeated() || handshake::is_of_copy(setup, near) {
            return self.opened_behind(setup, near);
        }
        let opened = setup.opened()?;
        self.answers.beyond(opened, near, || self.answers.taken_over || self.has_host_between())
    }

    /// The same if several SYNs were sent, or the only one took a SYN's timer, which the path beyond may take as well: a host in between that acknowledges sooner than the last of them
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

    /// Whether a packet that would put this end much closer than the `known` distance is another host's, by its
    /// time stamp or its number.
    #[cold]
    #[inline(never)]
    pub(super) fn is_anothers(&self, rtt: Duration, known: Duration, from: usize) -> bool {
        let stamp = self.flows[from].clock.present();
        stamp.is_some_and(|stamp| self.is_stale(rtt, known, from, stamp))
            || self.is_numbered_elsewhere(rtt, known, from)
    }

    /// Whether its number is as far from those of this end's other packets as no host gets in that time.
    /// Windows counts one by one, and begins with a TTL of 128.
    fn is_numbered_elsewhere(&self, rtt: Duration, known: Duration, from: usize) -> bool {
        let counts = from == SERVER && COUNTING_TTLS.contains(&self.ttl[from]);
        let much = rtt.times(NEARER_BETWEEN) <= known && known - rtt >= HELD_BACK_MIN;
        let opened = self.setup.as_ref().and_then(Setup::last_syn_ack).filter(|_| self.shown[from]);
        let Some((opened, _)) = opened.filter(|_| counts && much) else { return false };
        let apart = self.flows[from].numbered_apart().map(i64::from);
        apart.is_some_and(|apart| PACKET_MIN.times(apart) > self.now - opened)
    }
}
