//! Which packets does nobody take while a connection is opened?
//!
//! An acknowledgement of what was never sent opens nothing (RFC 9293, 3.10.7.3 and 3.10.7.4): bits of it are damaged, or it belongs to an older connection with the
//! same ports. What follows shows that: the SYN or the SYN-ACK comes again.

use tcpwhy_wire::Segment;

use super::Connection;
use crate::flow::ends::{CLIENT, SERVER};

impl Connection {
    /// Whether an end takes no notice of it, as no handshake has such a packet.
    #[inline]
    pub(super) fn is_unacceptable(&self, segment: &Segment, from: usize) -> bool {
        self.setup.as_ref().is_some_and(|setup| !setup.done) && self.opens_nothing(segment, from)
    }

    #[cold]
    #[inline(never)]
    fn opens_nothing(&self, segment: &Segment, from: usize) -> bool {
        let bare = segment.payload_len == 0 && !segment.flags.syn() && !segment.flags.fin();
        let asked = self.flows[CLIENT].first.filter(|first| self.flows[CLIENT].snd_nxt == Some(*first));
        let Some(asked) = asked.filter(|_| bare) else { return false };
        if self.only_syns_of(CLIENT) {
            return if segment.flags.rst() {
                // It answers such an acknowledgement, of which it has the number (RFC 9293, 3.10.7.3), and the client asks on.
                from == CLIENT && segment.seq != asked && self.last_packet[SERVER].is_some()
            } else {
                from == SERVER && segment.flags.ack() && segment.ack != asked
            };
        }
        let answered = self.flows[SERVER].first.filter(|first| self.flows[SERVER].snd_nxt == Some(*first));
        let other = |first| segment.ack != first;
        from == CLIENT && !segment.flags.rst() && answered.is_some_and(other)
    }
}
