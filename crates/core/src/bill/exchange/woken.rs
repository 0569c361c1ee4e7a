//! Did Nagle hold a tail, or was its writer asleep waiting for send buffer space?

use super::Path;
use crate::bill::account::Account;
use crate::bill::revise::Revision;
use crate::bill::tail::Tail;
use crate::flow::segment_class::LastData;
use crate::words::cause::{Cause, Side};

impl Path {
    /// Whether a send buffer has held earlier parts of the message: the writer may have been
    /// asleep, and what Nagle seems to hold had not been written yet.
    #[cold]
    pub(crate) fn may_have_slept(&self) -> bool {
        let held = |account: &Account| account.has(Cause::SendBuffer);
        held(&self.account) || self.aside.as_ref().is_some_and(|aside| held(&aside.blocked))
    }

    /// A full segment left right after a tail that Nagle had held. Data written while Nagle holds a
    /// tail is appended to it (tcp_sendmsg_locked, net/ipv4/tcp.c), and leaves once full: so the
    /// writer had been asleep all the time, waiting for send buffer space, and would have been
    /// without Nagle.
    pub(crate) fn blame_send_buffer(&mut self, at: &LastData, sender: Side, mss: u32) {
        let Some(aside) = &mut self.aside else { return };
        let behind = |tail: &Tail| self.last.is_some_and(|last| last.packet == tail.packet);
        let Some(held) = aside.held_tail.filter(behind).filter(|tail| tail.flight > 3 * mss) else { return };
        aside.held_tail = None;
        self.revise(Revision::WriterSlept { tail: held, packet: at.packet, sender });
    }
}
