//! Which packets does no host accept while a connection is being opened?
//!
//! An ACK of data never sent opens nothing (RFC 9293, 3.10.7.3 and 3.10.7.4): it is damaged, or belongs to
//! an older connection with the same ports. The SYN or the SYN-ACK is retransmitted then.

use tcpwhy_wire::Segment;

use super::Connection;
use crate::flow::ends::{CLIENT, SERVER};

impl Connection {
    /// Whether its receiver ignores this packet, which fits no handshake.
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
                // The RST answers such an ACK and takes its sequence number from it (RFC 9293, 3.10.7.3); the client
                // goes on sending SYNs.
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
