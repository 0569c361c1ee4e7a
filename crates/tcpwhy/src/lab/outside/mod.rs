//! What was an exchange's time spent on, by the path's records of each packet, the kernels' own
//! counters, and the applications' clocks? The engine is not used.
//!
//! Exchanges are followed backwards from their end: the last reply byte was written after a read in
//! which the server had waited; the data that this read returned was on its way since the client
//! began to write. So an exchange has two phases, the request's from the client's first write to
//! that read, and the reply's from there to the end ([`phase`]).

mod class;
mod phase;
mod recording;
mod rows;
mod score;
mod spent;
#[cfg(test)]
mod tests;

use tcpwhy_lab::truth::{TrueConnection, TrueExchange, TruePath};
use tcpwhy_lab::workload::{Event, Op};

use self::class::Class;
use self::phase::{HOST_GAP_NS, Phase};
pub(super) use self::recording::judge;
use self::rows::Rows;
pub(super) use self::score::{Bill, Score};
pub(super) use self::spent::Spent;

/// Everything outside truth about a connection.
pub(super) struct Outside<'a> {
    connection: &'a TrueConnection,
    up: Rows,
    down: Rows,
}

impl<'a> Outside<'a> {
    /// `until` is when the next connection began. `None` if the path's records are incomplete.
    pub(super) fn of(path: &TruePath, connection: &'a TrueConnection, until: i64) -> Option<Self> {
        let port = connection.client.rsplit(':').next()?.parse().ok()?;
        let from = connection.setup.start_ns;
        let rows = |direction| Rows::of(path, direction, port, from, until);
        (path.omitted == 0).then_some(())?;
        Some(Self { connection, up: rows("forward")?, down: rows("backward")? })
    }

    /// What the connect call was spent on.
    pub(super) fn setup(&self) -> Spent {
        let setup = &self.connection.setup;
        let mut spent = Spent::default();
        let trip = (self.up.delay + self.down.delay).min(setup.elapsed_ns);
        let left = setup.elapsed_ns - trip;
        let again = self.up.syns.len() + self.down.syns.len() > 2;
        spent.add(Class::Trip, trip);
        if again {
            spent.add(Class::Repair, left);
        } else {
            spent.add_any(left);
        }
        spent
    }

    /// What several consecutive exchanges were spent on, including the client's pauses between
    /// them.
    pub(super) fn stretch(&self, exchanges: &[TrueExchange]) -> Option<Spent> {
        let mut spent = Spent::default();
        for (n, exchange) in exchanges.iter().enumerate() {
            spent += &self.exchange(exchange)?;
            if n > 0 {
                spent.add(Class::App, exchange.client_idle_ns);
            }
        }
        Some(spent)
    }

    /// What an exchange was spent on; `None` if the records are incomplete.
    pub(super) fn exchange(&self, exchange: &TrueExchange) -> Option<Spent> {
        let before = self.connection.exchanges.iter().take_while(|other| other.n < exchange.n);
        let (asked, answered) = before.fold((0, 0), |(asked, answered), other| {
            (asked + other.request_bytes, answered + other.reply_bytes)
        });
        let (asked_to, answered_to) = (asked + exchange.request_bytes, answered + exchange.reply_bytes);
        let mut spent = Spent::default();
        spent.add_any(exchange.path_late_ns);
        let events = &self.connection.events;
        let [up, down] = [
            (&self.up, &self.connection.samples.client, &events.client),
            (&self.down, &self.connection.samples.server, &events.server),
        ]
        .map(|(rows, samples, events)| Phase { rows, samples, writes: writes(events) });
        if exchange.reply_bytes == 0 {
            up.spend(exchange.start_ns, asked_to as i64, &mut spent)?;
            // It is billed until its ACK could be back.
            spent.add(Class::Trip, self.down.delay);
            return Some(spent);
        }
        let mut from = exchange.start_ns;
        if let Some(read) = self.waited_for(asked, answered_to) {
            let read_to = read.offset.unwrap_or(0) + read.bytes.unwrap_or(0);
            let delivered = up.spend(from, read_to.min(asked_to) as i64, &mut spent)?;
            from = read.end_ns;
            let late = from - delivered;
            spent.add_either(if late < HOST_GAP_NS { class::ANY } else { Class::App.bit() }, late);
            from = up.read_slowly(from, asked_to as i64, &mut spent)?;
        }
        down.spend(from, answered_to as i64, &mut spent)?;
        if exchange.request_bytes == 0 {
            spent.add(Class::Trip, self.up.delay);
        }
        Some(spent)
    }

    /// The server's last read of bytes from `asked` on in which it had to wait before it wrote the
    /// last byte before `answered_to`.
    fn waited_for(&self, asked: u64, answered_to: u64) -> Option<&Event> {
        let events = &self.connection.events.server;
        let last =
            |event: &Event| event.op.writes() && event.offset.is_some_and(|offset| offset < answered_to);
        let last = events.iter().rposition(last)?;
        let reads = events[..last].iter().rev().filter(|event| event.op == Op::Read);
        let reads = reads.filter(|read| read.bytes.unwrap_or(0) > 0 && read.offset >= Some(asked));
        // A read that did not wait returned data that had arrived while the server was busy; if
        // none waited, the earliest is taken.
        let mut found = None;
        for read in reads {
            found = Some(read);
            let to = read.offset.unwrap_or(0) + read.bytes.unwrap_or(0);
            let arrived = self.up.completes(to as i64).and_then(|row| row.delivered);
            if arrived.is_none_or(|arrived| arrived >= read.start_ns) {
                break;
            }
        }
        found
    }
}

fn writes(events: &[Event]) -> Vec<&Event> {
    events.iter().filter(|event| event.op.writes() && event.bytes.is_some_and(|bytes| bytes > 0)).collect()
}
