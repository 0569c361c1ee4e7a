//! How long has a host taken lately for what it answers by itself? What a program answers no sooner than that may have come as
//! soon.

use tcpwhy_wire::Duration;

use super::Connection;
use crate::rules::{handshake, on_its_way};
use crate::words::limits::QUEUED_MIN;

impl Connection {
    /// This end acknowledged after `rtt`, the first one or longer than the `least`. Nobody delays an acknowledgement of more than a segment (RFC 5681,
    /// 4.2), no program a `bare` one, and no timer one by so little.
    #[cold]
    #[inline(never)]
    pub(super) fn on_long_answer(&mut self, [rtt, least]: [Duration; 2], from: usize, bare: bool) {
        let above = rtt - least;
        let several = self.flows[1 - from].newly_acked > self.mss(1 - from);
        if several && above >= QUEUED_MIN {
            self.path_memory.on_queued(from, self.now, above);
        }
        if bare && (several || above < on_its_way::TIMERS[0].start) && rtt < handshake::LOST_AFTER {
            self.path_memory.on_long(from, self.now, rtt);
        }
    }
}
