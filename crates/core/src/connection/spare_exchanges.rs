//! Where is an exchange kept that begins, without asking for memory?
//!
//! Its place serves one exchange of a connection after the other, and then one of a connection that begins: in many captures most have
//! one exchange, or a few.

use super::Connection;
use crate::bill::exchange::Open;
use crate::flow::direction::Flow;

/// So many are kept at most: as many connections begin as end.
const KEPT_MAX: usize = 64;
/// What a connection has taken besides its own whose place is kept: a small exchange, or two.
const KEPT_BYTES: usize = 2 * size_of::<Open>();

/// Places of connections that are over.
#[derive(Clone, Debug, Default)]
#[expect(clippy::vec_box, reason = "a connection has it in a box")]
pub(crate) struct SpareExchanges(Vec<Box<Open>>);

impl SpareExchanges {
    /// A connection begins.
    pub(crate) fn lend(&mut self, connection: &mut Connection) {
        connection.spare = self.0.pop();
    }

    /// A connection is over: gives up what it takes besides its own, for its place may stay unused for long.
    pub(crate) fn take_from(&mut self, connection: &mut Connection) {
        let is_small = connection.heap <= KEPT_BYTES;
        let spare = connection.spare.take().filter(|_| is_small && self.0.len() < KEPT_MAX);
        self.0.extend(spare);
        connection.open = None;
        connection.talk = None;
        connection.roles.take_parked();
        connection.roles.row = None;
        connection.held_back = None;
        connection.flows.iter_mut().for_each(Flow::free);
        connection.heap = 0;
    }

    /// Bytes that they take, about.
    pub(crate) fn bytes(&self) -> usize {
        self.0.len() * KEPT_BYTES
    }
}
