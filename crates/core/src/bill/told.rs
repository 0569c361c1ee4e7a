//! What do the sums over bills ask of one, and how do they get the rest of it?
//!
//! Of nearly all lines it is enough how long, on what, at which side and how sure. A bill that is kept shorter than its lines says that
//! by itself, and is drawn up only where somebody wants the packets that show it.

use tcpwhy_wire::Duration;

use crate::bill::line::Bill;
use crate::words::cause::{Cause, Side};
use crate::words::report::{Confidence, Detail};

/// A line, as far as sums need it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Brief {
    pub cause: Cause,
    pub side: Side,
    pub ns: Duration,
    pub confidence: Confidence,
}

/// A bill as it is handed over, however it is kept.
pub(crate) trait Told: Copy {
    fn total(self) -> Duration;

    /// How many lines it has.
    fn count(self) -> usize;

    /// The n-th of them, in the order in which they first appeared.
    fn brief(self, n: usize) -> Brief;

    /// Draws it up.
    fn in_full<T>(self, read: impl FnOnce(Bill<'_>) -> T) -> T;

    /// The packets that show the n-th line.
    fn cited(self, n: usize) -> Vec<u64> {
        let mut cited = Vec::new();
        self.in_full(|bill| bill.line(n).cite_in(&mut cited));
        cited
    }

    /// What the n-th line measured.
    fn detail(self, n: usize) -> Detail {
        self.in_full(|bill| bill.line(n).detail())
    }
}

impl Told for Bill<'_> {
    #[inline]
    fn total(self) -> Duration {
        self.total
    }

    #[inline]
    fn count(self) -> usize {
        self.lines.len()
    }

    #[inline]
    fn brief(self, n: usize) -> Brief {
        let line = self.line(n);
        Brief { cause: line.cause(), side: line.side(), ns: line.ns(), confidence: line.confidence() }
    }

    fn in_full<T>(self, read: impl FnOnce(Bill<'_>) -> T) -> T {
        read(self)
    }
}
