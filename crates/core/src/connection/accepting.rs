//! Did the server's host accept the connection when the handshake was over?
//!
//! When the accept queue (listen(2)) is full, the host drops the ACK that ends the handshake and all
//! data after it until the program accepts (tcp_v4_syn_recv_sock, net/ipv4/tcp_ipv4.c:
//! sk_acceptq_is_full; tcp_check_req, net/ipv4/tcp_minisocks.c, then does not retransmit the SYN-ACK).
//! The client retransmits its first data on its timer, as if the path had lost it.
//!
//! Near the server, the capture shows that each retransmission arrived, so the path lost nothing and
//! the host dropped it. Elsewhere, it is less likely that a path loses four small packets in a row
//! right after a handshake.

use tcpwhy_wire::{Duration, Instant, Segment};

use super::Connection;
use crate::bill::revise::Revision;
use crate::flow::ends::{CLIENT, SERVER, side};
use crate::rules::{handshake, late_request, server_think};
use crate::words::form::Form;
use crate::words::limits::BESIDE;

/// Retransmissions in a row: at this many, a drop by the host is likelier than loss on the path.
const COPIES_MIN: u8 = 3;
/// What a clock of milliseconds measures as nothing is less than this.
const CLOCK_TICK: Duration = Duration::from_millis(1);
/// How drops by a full accept queue are reported.
pub(crate) const FORM: Form = Form::AcceptQueue;

impl Connection {
    /// Counts a retransmission of the client's first data, none of which the server has acknowledged.
    pub(super) fn count_unanswered(&mut self, from: usize) {
        let flow = &self.flows[CLIENT];
        let none = flow.first.is_some() && flow.highest_ack.is_none_or(|acked| Some(acked) == flow.first);
        if let Some(setup) = self.setup.as_mut().filter(|_| from == CLIENT && none) {
            setup.copies = setup.copies.saturating_add(1);
        }
    }

    /// The server acknowledges the client's first data, which had been retransmitted past the capture.
    #[inline]
    pub(super) fn accept_late(&mut self, segment: &Segment) {
        if self.setup.as_ref().is_some_and(|setup| setup.copies > 0) {
            self.settle_acceptance(segment);
        }
    }

    /// Whether a SYN at `at` with the same sequence number as earlier ones belongs to a new connection.
    #[cold]
    #[inline(never)]
    pub(super) fn begins_anew(&self, at: Instant) -> bool {
        self.setup.as_ref().is_some_and(|setup| setup.is_over(at))
    }

    /// Whether its unanswered SYNs reached the server's host, as other connections between the same
    /// hosts show.
    #[cold]
    #[inline(never)]
    pub(super) fn is_ignored_beside(&self) -> bool {
        let [client, server] = [CLIENT, SERVER].map(|end| self.path_memory.min(end));
        server.zip(client).is_some_and(|(own, other)| self.is_much_nearer(own, other))
    }

    /// Whether packets that pass the capture have practically reached this end's host.
    pub(super) fn is_beside(&self, end: usize) -> bool {
        let near = self.tap_rtt[end]
            .get()
            .zip(self.tap_rtt[1 - end].get())
            .is_some_and(|(own, other)| self.is_much_nearer(own, other));
        self.is_on_one_host() || near
    }

    /// Whether the capture is beside an end at the distance `own`. A clock of milliseconds measures distances
    /// below its tick as none.
    fn is_much_nearer(&self, own: Duration, other: Duration) -> bool {
        let whole = |way: Duration| way.as_nanos() % CLOCK_TICK.as_nanos() == 0;
        let coarse = !self.fine && whole(own) && whole(other);
        let tick = if coarse { CLOCK_TICK } else { Duration::ZERO };
        (own + tick).times(BESIDE) <= other
    }

    /// [`handshake::is_longer`], where a clock of milliseconds may have measured the path as nothing.
    pub(super) fn is_opened_longer(&self, took: Duration, path: Duration) -> bool {
        let least = if self.fine { Duration::ZERO } else { CLOCK_TICK };
        handshake::is_longer(took, path.max(least))
    }

    /// Whether the first data is acknowledged later than any host can have delayed an ACK of its last
    /// retransmission. A host with room in its queue acknowledges data on arrival, so the path stalled
    /// and need not have lost the others.
    fn is_taken_late(&self) -> bool {
        let copied = self.open.as_deref().and_then(|open| open.request.repaired_at());
        copied.is_some_and(|at| late_request::is_acked_late(&self.pair(), self.now - at))
    }

    #[cold]
    fn settle_acceptance(&mut self, segment: &Segment) {
        let flow = &self.flows[CLIENT];
        let accepted = flow.first.zip(flow.highest_ack).is_some_and(|(first, acked)| acked.after(first));
        let (beside, way) = (self.is_beside(SERVER), self.tap_rtt(SERVER));
        let full = u64::from(self.mss(CLIENT));
        let late = self.is_taken_late();
        let Some(setup) = self.setup.as_mut().filter(|_| accepted) else { return };
        let copies = std::mem::take(&mut setup.copies);
        let Some(open) = self.open.as_deref_mut().filter(|open| open.initiator == CLIENT) else { return };
        // This acknowledges the first transmission: the retransmission cannot have arrived yet, and
        // repaired nothing.
        if server_think::is_spurious(way, open, segment) {
            return;
        }
        open.request.commit();
        // A path that loses only large packets lets a handshake's through.
        if beside || copies >= COPIES_MIN && open.request_bytes < full && !late {
            open.request.revise(Revision::Dropped { by: side(SERVER), form: FORM });
        } else {
            open.request.revise(Revision::MayBeDropped);
        }
    }
}
