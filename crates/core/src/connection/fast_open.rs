//! What did a SYN carry besides itself (TCP Fast Open, RFC 7413)?
//!
//! The server accepts a SYN's data or not, and its SYN-ACK says which (tcp_try_fastopen,
//! net/ipv4/tcp_fastopen.c). Data that it accepts was sent with the SYN: the request shares the
//! handshake's round trip, and the connection cost nothing extra. Data that it does not accept counts
//! as never sent: the client retransmits it after the handshake (tcp_rcv_fastopen_synack,
//! net/ipv4/tcp_input.c).

use tcpwhy_wire::{Flags, Segment};

use super::Connection;
use crate::flow::ends::{CLIENT, SERVER};
use crate::tally::ledger::Ledger;

impl Connection {
    /// Keeps a SYN's data until it is answered.
    #[cold]
    pub(super) fn keep_syn_data(&mut self, syn: &Segment, from: usize) {
        let Some(setup) = self.setup.as_mut().filter(|_| from == CLIENT && !syn.flags.ack()) else { return };
        let data = Segment { seq: syn.seq + 1, flags: Flags(syn.flags.0 & !Flags::SYN), ..*syn };
        setup.keep_early(data);
    }

    /// The SYN-ACK tells whether the SYN's data was accepted.
    pub(super) fn answer_syn_data(&mut self, syn_ack: &Segment, from: usize, ledger: &mut Ledger) {
        let answered = |_: &&mut _| from == SERVER && syn_ack.flags.ack();
        let Some(setup) = self.setup.as_mut().filter(answered) else { return };
        if let Some(data) = setup.take_early() {
            self.take_syn_data(syn_ack, &data, ledger);
        }
    }

    #[cold]
    fn take_syn_data(&mut self, syn_ack: &Segment, data: &Segment, ledger: &mut Ledger) {
        let end = data.seq + data.payload_len;
        if syn_ack.ack.before(end) {
            return;
        }
        let went_on = self.flows.iter().any(|flow| flow.bytes > 0);
        let Some(setup) = self.setup.as_mut() else { return };
        if setup.is_repeated() || went_on {
            // It is unknown which of the SYNs brought the data to the server, and since when the server
            // works on it. What came between is an exchange by now, whose beginning stands.
            let next = &mut self.flows[CLIENT].snd_nxt;
            *next = Some(next.map_or(end, |next| next.latest(end)));
            return;
        }
        setup.is_fast = true;
        let now = std::mem::replace(&mut self.now, data.at);
        self.on_data(data, CLIENT, ledger);
        self.now = now;
    }
}
