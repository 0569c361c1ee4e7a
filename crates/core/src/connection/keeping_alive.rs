//! How far away is an end that answers a keep-alive?
//!
//! A keep-alive repeats the last byte, or none before the next, on a connection where everything is acknowledged
//! (RFC 1122, 4.2.3.6; tcp_xmit_probe_skb, net/ipv4/tcp_output.c, Linux 6.12). The peer's TCP answers it at once
//! with a bare acknowledgement, whatever its program does and whatever delays its other acknowledgements (RFC 9293,
//! 3.10.7.4): that is an upper bound of its distance. Time stamps show it as well, by their echo.

use tcpwhy_wire::{Duration, Instant, Segment};

use super::Connection;
use crate::flow::path_memory::is_held_back;
use crate::words::limits::RTO_MIN;

impl Connection {
    /// Takes a packet of at most one byte without time stamps: a keep-alive, or the answer to one.
    #[cold]
    #[inline(never)]
    pub(super) fn weigh_keep_alive(&mut self, segment: &Segment, from: usize) {
        let to = 1 - from;
        if self.is_keep_alive(segment, from) {
            // What the peer sent before may still be on its way: that would look like an answer.
            let silent = |last: Option<Instant>| {
                last.is_some_and(|last| self.now - last >= self.tap_rtt(to).max(RTO_MIN))
            };
            let quiet = self.last_packet.iter().all(|last| silent(last.get()));
            if quiet && self.flows[from].unusual.probed_at == Instant::MIN {
                self.flows[from].unusual.shown().probed_at = self.now;
            }
        } else if let Some(probed_at) = self.flows[to].unusual.take_probe() {
            let asked = &self.flows[to];
            let bare = segment.seq_len() == 0 && segment.flags.ack() && !segment.flags.rst();
            let answers = asked.snd_nxt == Some(segment.ack) && self.flows[from].snd_nxt == Some(segment.seq);
            if bare && answers {
                self.on_keep_alive_answered(self.now - probed_at, from);
            }
        }
    }

    fn is_keep_alive(&self, segment: &Segment, from: usize) -> bool {
        let flow = &self.flows[from];
        let plain =
            segment.flags.ack() && !segment.flags.syn() && !segment.flags.fin() && !segment.flags.rst();
        plain && segment.payload_len <= 1 && flow.snd_nxt == Some(segment.seq + 1) && flow.is_acknowledged()
    }

    /// An end has answered a keep-alive after `rtt`: no sample for its peer's timer (tcp_ack_update_rtt takes one
    /// from new acknowledgements only), but it is no farther away.
    fn on_keep_alive_answered(&mut self, rtt: Duration, from: usize) {
        let Some(known) = self.tap_rtt[from].get() else { return };
        self.path_memory.on_another(from, self.now, known, rtt);
        if rtt >= known || self.is_anothers(rtt, known, from) {
            return;
        }
        if self.shown[from] {
            self.on_shorter(Some(known), rtt, rtt, from);
        }
        self.set_tap_rtt(from, rtt);
        if is_held_back(known, rtt) {
            self.was_held_back(1 - from);
        }
    }
}
