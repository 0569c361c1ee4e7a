//! What do the sums over bills need from one, and how do they get the rest?
//!
//! For nearly all lines, duration, cause, side and confidence suffice. A bill in compact form can
//! give these directly, and is drawn up only if its packets are asked for.

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

impl Brief {
    /// Its time, if that is only possible.
    pub(crate) fn possible(self) -> Duration {
        if self.confidence == Confidence::Possible { self.ns } else { Duration::ZERO }
    }
}

/// A bill as it is handed over, in whatever form it is kept.
pub(crate) trait Told: Copy {
    fn total(self) -> Duration;

    /// How many lines it has.
    fn count(self) -> usize;

    /// The n-th line, in order of first appearance.
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
