//! Did the initiator wait for news?

use tcpwhy_wire::{Duration, Segment};

use super::Connection;
use crate::bill::exchange::Open;
use crate::bill::revise::Revision;
use crate::estimate::polls::For;
use crate::flow::ends::{CLIENT, side};
use crate::words::form::Form;
use crate::words::report::Kind;

/// A client that polls asks again within this.
const AT_ONCE: Duration = Duration::from_millis(100);

impl Connection {
    /// Takes the wait for news out of a finished exchange's bill, if it is known to be one. Returns its
    /// length.
    pub(super) fn weigh_wait(&mut self, open: &mut Open, next: Option<&Segment>) -> Duration {
        if open.kind() != Kind::Exchange
            || open.initiator != CLIENT
            || open.waited < self.roles.polls().wait_min()
        {
            return Duration::ZERO;
        }
        self.weigh_long_wait(open, next)
    }

    #[cold]
    fn weigh_long_wait(&mut self, open: &mut Open, next: Option<&Segment>) -> Duration {
        let server = 1 - open.initiator;
        let len = open.request_bytes as u32;
        let wait = open.waited - self.tap_rtt(server);
        let read_at = open.reply.last.map(|last| last.at + self.tap_rtt(CLIENT));
        let again = next.zip(read_at).map(|(next, read_at)| {
            next.src == self.ends.end(CLIENT)
                && next.payload_len == open.first_len
                && next.at - read_at <= AT_ONCE
        });
        let told = self.roles.polls_mut().on_wait(len, wait, again);
        let account = open.last_path().settle();
        match told {
            For::Answer => Duration::ZERO,
            For::Either => {
                account.revise(Revision::MayBeOther { server: side(server), form: Form::OrNews });
                Duration::ZERO
            }
            For::News => account.revise(Revision::News { server: side(server) }),
        }
    }
}
