//! What did a SYN carry besides itself (TCP Fast Open, RFC 7413)?
//!
//! The server takes a SYN's data or leaves it, and its SYN-ACK says so (tcp_try_fastopen, net/ipv4/tcp_fastopen.c). Data that
//! it took left with the SYN: the request's round trip is the handshake's as well, and the connection cost nothing by itself.
//! Data that it left was never sent as far as the request goes: the client sends it again behind the handshake
//! (tcp_rcv_fastopen_synack, net/ipv4/tcp_input.c).

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

    /// The SYN-ACK tells what became of the SYN's data.
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
            // Which of the SYNs the server had it from, and since when it works on it, is not known; what came between the
            // two is an exchange by now, and its beginning stands.
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
