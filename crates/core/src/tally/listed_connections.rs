//! Which connections that are over may be shown at the end?
//!
//! Of a list that is thinned most are not, and what is kept of one takes half a kilobyte. As soon as a connection ends it is known of nearly
//! all that neither an exchange nor a finding will show it, nor what it cost; of these, only what counts is kept.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use tcpwhy_wire::{Duration, Endpoint};

use crate::tally::ledger::LADDERS_MAX;
use crate::words::ids::UNNUMBERED;
use crate::words::report::Connection;

/// Connections that stay in a thinned list for what they took: more than can be drawn.
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

/// The connections of a shard, in the order in which they ended.
#[derive(Clone, Debug, Default)]
pub(crate) struct ListedConnections {
    pub shown: Vec<Connection>,
    pub left_out: Vec<LeftOut>,
    /// How many of both have their number.
    shown_numbered: usize,
    left_out_numbered: usize,
    /// What the most expensive ones cost that have a number.
    costs: BinaryHeap<Reverse<Duration>>,
}

impl ListedConnections {
    /// Whether one that comes to this may be among the most expensive ones: what may get no number does not count against it.
    pub(crate) fn is_expensive(&self, cost: Duration) -> bool {
        self.costs.len() < EXPENSIVE || self.costs.peek().is_some_and(|least| cost >= least.0)
    }

    /// Returns its place.
    pub(crate) fn put(&mut self, connection: Connection) -> usize {
        self.shown.push(connection);
        self.shown.len() - 1
    }

    pub(crate) fn leave_out(&mut self, connection: LeftOut) {
        self.left_out.push(connection);
    }

    pub(crate) fn get_mut(&mut self, place: usize) -> Option<&mut Connection> {
        self.shown.get_mut(place)
    }

    /// Connections get their numbers. One that turns out to be beyond the limit has 0.
    pub(crate) fn number(&mut self, number: impl Fn(u64) -> u64, lists: impl Fn(u64) -> bool) {
        let number = |id| Some(number(id)).filter(|id| id & UNNUMBERED != 0 || lists(*id)).unwrap_or(0);
        let has_number = |id: u64| id & UNNUMBERED == 0;
        for connection in &mut self.shown[self.shown_numbered..] {
            connection.id = number(connection.id);
        }
        while let Some(connection) = self.shown.get(self.shown_numbered).filter(|next| has_number(next.id)) {
            self.shown_numbered += 1;
            if connection.id != 0 && self.is_expensive(connection.cost()) {
                self.costs.push(Reverse(connection.cost()));
                if self.costs.len() > EXPENSIVE {
                    self.costs.pop();
                }
            }
        }
        let waiting = &mut self.left_out[self.left_out_numbered..];
        for connection in &mut *waiting {
            connection.id = number(connection.id);
        }
        self.left_out_numbered += waiting.iter().take_while(|next| has_number(next.id)).count();
    }

    /// Bytes that are reserved and not used.
    pub(crate) fn spare_bytes(&self) -> usize {
        (self.shown.capacity() - self.shown.len()) * size_of::<Connection>()
            + (self.left_out.capacity() - self.left_out.len()) * size_of::<LeftOut>()
    }
}
