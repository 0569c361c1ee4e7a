//! Where are exchanges built, without an allocation for every connection?

use crate::bill::exchange::Open;

/// How many are kept: connections that end and begin take turns.
const PLACES_MAX: usize = 32;

/// Memory of exchanges that are over. Only those without further heap memory are kept: a
/// connection's memory use must not depend on which ones ended before it, because it decides which
/// connections are given up when there are too many.
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
    /// A clone starts without spare places.
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl PartialEq for Places {
    /// Spare places do not count.
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
