//! Where may an exchange be put together, so that not each connection asks for memory and gives it back?

use crate::bill::exchange::Open;

/// So many are kept: connections that end and begin take turns.
const PLACES_MAX: usize = 32;

/// Places of exchanges that are over. Only those are kept that took nothing besides their own: what a connection takes must not depend on who had
/// ended before it, as who is given up where there are too many depends on that.
#[derive(Debug, Default)]
pub(crate) struct Places(
    #[expect(clippy::vec_box, reason = "a place goes to its connection as it is, and is not copied")]
    Vec<Box<Open>>,
);

impl Places {
    #[inline]
    pub(crate) fn take(&mut self) -> Box<Open> {
        self.0.pop().unwrap_or_else(|| Box::new(Open::new()))
    }

    pub(crate) fn leave(&mut self, open: Box<Open>) {
        if self.0.len() < PLACES_MAX && open.memory() == size_of::<Open>() {
            self.0.push(open);
        }
    }
}

impl Clone for Places {
    /// What is cloned goes its own way, with nothing to spare.
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl PartialEq for Places {
    /// What lies about says nothing.
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
