//! Have no sockets moved except those that were active at the first look? Then only those are read
//! again: on a host with many silent connections, a second walk of all of them would cost as much
//! as the first and find the same.

use std::collections::BinaryHeap;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tcpwhy_sockets::counters::Counters;
use tcpwhy_sockets::{Diag, Lately, Seen, Socket, Watch};

/// More are not asked one by one: a walk of all is cheaper then.
const ASKED_MAX: usize = 1_000;

/// A socket: its cookie, its local end and its remote end.
type Who = (u64, [SocketAddr; 2]);

/// The result of the first look.
#[derive(Default)]
pub(super) struct Calm {
    /// Sockets with something queued or awaited.
    restless: Vec<Who>,
    /// Among the others, those with the most recent segment, with the milliseconds since: a socket
    /// that goes on is likely to be among them.
    heard: BinaryHeap<(u32, Who)>,
    still: u64,
    is_busy: bool,
}

impl Calm {
    /// Notes a socket of the first look.
    pub(super) fn note(&mut self, seen: &Seen<'_>) {
        let is_still = seen.is_still();
        self.still += u64::from(is_still);
        let silent_ms = seen.silent_ms();
        let is_known =
            self.heard.len() == ASKED_MAX && self.heard.peek().is_some_and(|(most, _)| silent_ms >= *most);
        if (is_still && is_known) || self.is_busy {
            return;
        }
        let Some(socket) = seen.socket() else { return };
        let who = (socket.cookie, [socket.local, socket.remote]);
        if !is_still {
            self.restless.push(who);
            self.is_busy = self.restless.len() > ASKED_MAX;
            return;
        }
        self.heard.push((silent_ms, who));
        if self.heard.len() > ASKED_MAX {
            self.heard.pop();
        }
    }

    /// How many are not asked again.
    pub(super) fn still(&self) -> u64 {
        self.still - self.heard.len() as u64
    }

    /// The changes of the sockets that are asked again, if they account for every segment that the
    /// network namespace has counted since `before`, which was read before the first look; `None`
    /// if they do not, or if one of them is gone. A socket with nothing queued that has neither
    /// sent nor received a segment is unchanged.
    pub(super) fn moved(
        &self,
        diag: &mut Diag,
        watch: &Watch,
        now: Duration,
        counted: impl FnOnce() -> io::Result<Counters>,
    ) -> io::Result<Option<Vec<(Socket, Lately)>>> {
        if self.is_busy {
            return Ok(None);
        }
        let (mut sent, mut received) = (0, 0);
        let mut moved = Vec::with_capacity(self.restless.len() + self.heard.len());
        let heard = self.heard.iter().map(|(_, who)| who);
        for (cookie, [local, remote]) in self.restless.iter().chain(heard) {
            let Some(socket) = diag.one(*local, *remote)?.filter(|found| found.cookie == *cookie) else {
                return Ok(None);
            };
            let lately = watch.since(&socket, now);
            sent += u64::from(lately.segments_out);
            received += u64::from(lately.segments_in);
            moved.push((socket, lately));
        }
        // Read last: a segment that passes meanwhile is then not accounted for.
        let counted = counted()?;
        Ok((counted.segments_out == sent && counted.segments_in == received).then_some(moved))
    }
}
