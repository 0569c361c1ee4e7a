//! Which packets does no host accept while a connection is being opened?
//!
//! An ACK of data never sent opens nothing (RFC 9293, 3.10.7.3 and 3.10.7.4): it is damaged, or belongs to
//! an older connection with the same ports. The SYN or the SYN-ACK is retransmitted then. Nor does a SYN-ACK that
//! acknowledges another SYN: its server retransmits it for an older connection, or its ports were used again.

use tcpwhy_wire::Segment;

use super::Connection;
use crate::flow::ends::{CLIENT, SERVER};

/// No packet carries more (RFC 791, 3.1).
const SYN_DATA_MAX: i32 = u16::MAX as i32;

impl Connection {
    /// Whether its receiver ignores this packet, which fits no handshake.
    #[inline]
    pub(super) fn is_unacceptable(&self, segment: &Segment, from: usize) -> bool {
        self.setup.as_ref().is_some_and(|setup| !setup.done) && self.opens_nothing(segment, from)
    }

    #[cold]
    #[inline(never)]
    fn opens_nothing(&self, segment: &Segment, from: usize) -> bool {
        let bare = segment.payload_len == 0 && !segment.flags.fin();
        let asked = self.flows[CLIENT].first.filter(|first| self.flows[CLIENT].snd_nxt == Some(*first));
        let Some(asked) = asked.filter(|_| bare) else { return false };
        if segment.flags.syn() {
            // It may acknowledge the SYN's data as well (RFC 7413, 4.1.2).
            let its = (0..=SYN_DATA_MAX).contains(&(segment.ack - asked));
            return from == SERVER && segment.flags.ack() && !its;
        }
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
