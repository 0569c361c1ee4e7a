//! Which finished connections may be shown at the end?
//!
//! In a thinned list most are not, and one takes half a kilobyte. As soon as a connection ends it is
//! known for nearly all that neither an exchange, nor a finding, nor its cost will show it; of these,
//! only the counts are kept.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};

use tcpwhy_wire::{Duration, Endpoint};

use crate::flow::hash::Keys;
use crate::tally::ledger::LADDERS_MAX;
use crate::words::ids::UNNUMBERED;
use crate::words::report::Connection;

/// Connections that stay in a thinned list for their cost: more than can be drawn.
pub(crate) const EXPENSIVE: usize = 4 * LADDERS_MAX;

/// A connection that is not shown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LeftOut {
    pub id: u64,
    pub client: Endpoint,
    pub server: Endpoint,
    /// Setups, exchanges and one-way messages.
    pub billed: u64,
}

impl LeftOut {
    fn of(connection: &Connection) -> Self {
        let &Connection { id, client, server, billed, .. } = connection;
        Self { id, client, server, billed }
    }
}

/// Counts for connections that have their number and are not shown.
#[derive(Clone, Debug)]
pub(crate) struct Counted {
    pub connections: u64,
    /// Setups, exchanges and one-way messages.
    pub billed: u64,
    /// Which host asked which server, each once.
    pub asked: HashSet<(u128, Endpoint), Keys>,
}

impl Counted {
    fn add(&mut self, connection: &LeftOut) {
        self.connections += 1;
        self.billed += connection.billed;
        self.asked.insert((connection.client.addr, connection.server));
    }
}

/// Why a connection stays; kept apart, since the connection itself is large.
#[derive(Clone, Copy, Debug)]
struct Worth {
    /// The last level of thinning that leaves something of it to show.
    until: u32,
    cost: Duration,
}

/// The connections of a shard, in the order in which they ended.
#[derive(Clone, Debug)]
pub(crate) struct ListedConnections {
    pub shown: Vec<Connection>,
    /// What decides whether each of these stays.
    worth: Vec<Worth>,
    /// How many of them have their number.
    shown_numbered: usize,
    /// Those that are not shown and have no number yet.
    left_out: Vec<LeftOut>,
    pub counted: Counted,
    /// The costs of the most expensive numbered ones.
    costs: BinaryHeap<Reverse<Duration>>,
}

impl ListedConnections {
    /// `seed` is the key that hosts are hashed with.
    pub(crate) fn new(seed: u64) -> Self {
        let asked = HashSet::with_hasher(Keys::new(seed));
        Self {
            shown: Vec::new(),
            worth: Vec::new(),
            shown_numbered: 0,
            left_out: Vec::new(),
            counted: Counted { connections: 0, billed: 0, asked },
            costs: BinaryHeap::new(),
        }
    }

    /// Whether a connection of this cost may be among the most expensive ones; those that may get no
    /// number do not count against it.
    pub(crate) fn is_expensive(&self, cost: Duration) -> bool {
        self.costs.len() < EXPENSIVE || self.costs.peek().is_some_and(|least| cost >= least.0)
    }

    /// Adds a connection. Returns its place.
    pub(crate) fn put(&mut self, connection: Connection, shown_until: u32) -> usize {
        self.worth.push(Worth { until: shown_until, cost: connection.cost() });
        self.shown.push(connection);
        self.shown.len() - 1
    }

    /// Drops numbered connections that show nothing from this level on. Returns where each of the
    /// others is now, by its earlier place.
    #[cold]
    pub(crate) fn thin(&mut self, level: u32) -> Vec<Option<usize>> {
        let numbered = self.shown_numbered;
        let (mut places, mut stay) = (Vec::with_capacity(self.shown.len()), 0);
        for (at, worth) in self.worth.iter().enumerate() {
            let stays = at >= numbered || worth.until >= level || self.is_expensive(worth.cost);
            places.push(stays.then_some(stay));
            if stays {
                stay += 1;
            } else {
                self.counted.add(&LeftOut::of(&self.shown[at]));
                self.shown_numbered -= 1;
            }
        }
        let (mut shown, mut worth) = (places.iter(), places.iter());
        let stays = |place: Option<&Option<usize>>| place.is_some_and(Option::is_some);
        self.shown.retain(|_| stays(shown.next()));
        self.worth.retain(|_| stays(worth.next()));
        places
    }

    pub(crate) fn leave_out(&mut self, connection: LeftOut) {
        if connection.id & UNNUMBERED == 0 {
            self.counted.add(&connection);
        } else {
            self.left_out.push(connection);
        }
    }

    pub(crate) fn get_mut(&mut self, place: usize) -> Option<&mut Connection> {
        self.shown.get_mut(place)
    }

    /// Numbers connections. One that proves to be beyond the limit gets 0.
    pub(crate) fn number(&mut self, number: impl Fn(u64) -> u64, lists: impl Fn(u64) -> bool) {
        let number = |id| Some(number(id)).filter(|id| id & UNNUMBERED != 0 || lists(*id)).unwrap_or(0);
        let has_number = |id: u64| id & UNNUMBERED == 0;
        for connection in &mut self.shown[self.shown_numbered..] {
            connection.id = number(connection.id);
        }
        while let Some(connection) = self.shown.get(self.shown_numbered).filter(|next| has_number(next.id)) {
            let cost = self.worth[self.shown_numbered].cost;
            self.shown_numbered += 1;
            if connection.id != 0 && self.is_expensive(cost) {
                self.costs.push(Reverse(cost));
                if self.costs.len() > EXPENSIVE {
                    self.costs.pop();
                }
            }
        }
        let counted = &mut self.counted;
        self.left_out.retain_mut(|connection| {
            connection.id = number(connection.id);
            if has_number(connection.id) && connection.id != 0 {
                counted.add(connection);
            }
            !has_number(connection.id)
        });
    }

    /// Bytes that are reserved but unused.
    pub(crate) fn spare_bytes(&self) -> usize {
        (self.shown.capacity() - self.shown.len()) * size_of::<Connection>()
            + (self.worth.capacity() - self.worth.len()) * size_of::<Worth>()
            + (self.left_out.capacity() - self.left_out.len()) * size_of::<LeftOut>()
    }
}
