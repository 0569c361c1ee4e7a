//! Did Nagle hold a tail, or did its writer sleep for room in its send buffer all the while?

use super::Path;
use crate::bill::account::Account;
use crate::bill::revise::Revision;
use crate::bill::tail::Tail;
use crate::flow::segment_class::LastData;
use crate::words::cause::{Cause, Side};

impl Path {
    /// Whether a send buffer has held earlier parts of the message: its writer may have slept, and what Nagle seems to hold was not written yet.
    #[cold]
    pub(crate) fn may_have_slept(&self) -> bool {
        let held = |account: &Account| account.has(Cause::SendBuffer);
        held(&self.account) || self.aside.as_ref().is_some_and(|aside| held(&aside.blocked))
    }

    /// A full segment left right behind a tail that Nagle had held. What is written while Nagle holds a tail is joined to it
    /// (tcp_sendmsg_locked, net/ipv4/tcp.c), and full it goes: so the writer had slept all the time, for room in its send buffer, and
    /// would have without Nagle.
    pub(crate) fn blame_send_buffer(&mut self, at: &LastData, sender: Side, mss: u32) {
        let Some(aside) = &mut self.aside else { return };
        let behind = |tail: &Tail| self.last.is_some_and(|last| last.packet == tail.packet);
        let Some(held) = aside.held_tail.filter(behind).filter(|tail| tail.flight > 3 * mss) else { return };
        aside.held_tail = None;
        self.revise(Revision::WriterSlept { tail: held, packet: at.packet, sender });
    }
}
