//! Did the server's host take the connection when the handshake was over?
//!
//! A queue of listen(2) that is full drops what ends the handshake, and all data behind it, until the program accepts
//! (tcp_v4_syn_recv_sock, net/ipv4/tcp_ipv4.c: sk_acceptq_is_full; tcp_check_req, net/ipv4/tcp_minisocks.c, then sends no SYN-ACK again).
//! The client repeats its first data by its timer, as if the path had lost it.
//!
//! Beside the server each copy was seen to arrive, so that nothing was lost on the path: the host dropped it. Elsewhere a path that
//! loses four small packets in a row, right behind a handshake, is rarer than that.

use tcpwhy_wire::{Instant, Segment};

use super::Connection;
use crate::bill::revise::Revision;
use crate::flow::ends::{CLIENT, SERVER, side};
use crate::rules::server_think;
use crate::words::form::Form;
use crate::words::limits::BESIDE;

/// Copies in a row that are rather dropped by a host than lost by a path.
const COPIES_MIN: u8 = 3;
/// What the server's queue drops.
pub(crate) const FORM: Form = Form::AcceptQueue;

impl Connection {
    /// The first data of the client's has gone out again, and the server has not acknowledged any.
    pub(super) fn count_unanswered(&mut self, from: usize) {
        let flow = &self.flows[CLIENT];
        let none = flow.first.is_some() && flow.highest_ack.is_none_or(|acked| Some(acked) == flow.first);
        if let Some(setup) = self.setup.as_mut().filter(|_| from == CLIENT && none) {
            setup.copies = setup.copies.saturating_add(1);
        }
    }

    /// The server has acknowledged the client's first data with this segment, and had let copies of it pass.
    #[inline]
    pub(super) fn accept_late(&mut self, segment: &Segment) {
        if self.setup.as_ref().is_some_and(|setup| setup.copies > 0) {
            self.settle_acceptance(segment);
        }
    }

    /// Whether a SYN at `at` with the number of those before is none of theirs.
    #[cold]
    #[inline(never)]
    pub(super) fn begins_anew(&self, at: Instant) -> bool {
        self.setup.as_ref().is_some_and(|setup| setup.is_over(at))
    }

    /// Whether its SYNs, which have no answer, have reached the server's host, as other connections between the same hosts show.
    #[cold]
    #[inline(never)]
    pub(super) fn is_ignored_beside(&self) -> bool {
        let [client, server] = [CLIENT, SERVER].map(|end| self.path_memory.min(end));
        server.zip(client).is_some_and(|(own, other)| own.times(BESIDE) <= other)
    }

    /// Whether what passes the capture has reached this end's host.
    pub(super) fn is_beside(&self, end: usize) -> bool {
        let near = self.tap_rtt[end]
            .get()
            .zip(self.tap_rtt[1 - end].get())
            .is_some_and(|(own, other)| own.times(BESIDE) <= other);
        self.is_on_one_host() || near
    }

    /// Whether its first data are acknowledged later than the last copy of them can have waited at any host, for what a queue has room for
    /// is acknowledged when it arrives: the path stands still, and need not have lost the others.
    fn is_taken_late(&self) -> bool {
        let copied = self.open.as_deref().and_then(|open| open.request.repaired_at());
        copied.is_some_and(|at| server_think::is_acked_late(&self.pair(), self.now - at))
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
        // What it acknowledges is the first copy: the later one cannot have arrived yet, and repaired nothing.
        if server_think::is_spurious(way, open, segment) {
            return;
        }
        open.request.commit();
        // What loses large packets alone lets those of a handshake through.
        if beside || copies >= COPIES_MIN && open.request_bytes < full && !late {
            open.request.revise(Revision::Dropped { by: side(SERVER), form: FORM });
        } else {
            open.request.revise(Revision::MayBeDropped);
        }
    }
}
