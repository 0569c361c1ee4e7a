//! Which causes took how much time, in the capture and in one connection?

use tcpwhy_wire::Duration;

use crate::bill::told::Brief;
use crate::words::cause::{Cause, Side};
use crate::words::report::TotalLine;

/// What one cause took on one side, and how often.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Total {
    ns: Duration,
    /// The part that is only possible.
    possible: Duration,
    hits: u64,
}

/// Time by cause and side, and how often.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Totals {
    lines: [[Total; 4]; Cause::COUNT],
}

impl Totals {
    pub(crate) fn add(&mut self, line: Brief) {
        let total = &mut self.lines[line.cause as usize][line.side as usize];
        total.ns += line.ns;
        total.possible += line.possible();
        total.hits += 1;
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for (line, more) in self.lines.iter_mut().flatten().zip(other.lines.iter().flatten()) {
            line.ns += more.ns;
            line.possible += more.possible;
            line.hits += more.hits;
        }
    }

    pub(crate) fn to_lines(self) -> Vec<TotalLine> {
        let sides = [Side::Client, Side::Server, Side::Path, Side::Unknown];
        let mut lines: Vec<TotalLine> = Vec::new();
        for cause in Cause::ALL {
            for side in sides {
                let Total { ns, possible, hits } = self.lines[cause as usize][side as usize];
                if hits > 0 {
                    lines.push(TotalLine { cause, side, ns, possible, hits });
                }
            }
        }
        lines.sort_by_key(|line| std::cmp::Reverse(line.ns));
        lines
    }
}

/// The small form of [`Totals`] for a single connection.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ConnectionTotals {
    lines: Vec<TotalLine>,
    /// The number of closed exchanges, and the packet that closed as many as may be listed of all
    /// connections.
    pub closed: u64,
    pub enough_at: u64,
    /// Their time, each moment once.
    pub by_clock: Duration,
    /// The last level of thinning that keeps one of its listed exchanges.
    pub level: Option<u32>,
    /// One of them was the most expensive of a finding when it was closed.
    pub was_worst: bool,
}

impl ConnectionTotals {
    pub(crate) fn add(&mut self, line: Brief) {
        if let Some(known) = self.lines.iter_mut().find(|l| l.cause == line.cause && l.side == line.side) {
            known.ns += line.ns;
            known.possible += line.possible();
            known.hits += 1;
        } else {
            let (cause, side, ns, possible) = (line.cause, line.side, line.ns, line.possible());
            self.lines.push(TotalLine { cause, side, ns, possible, hits: 1 });
        }
    }

    /// The last level of thinning that leaves something of it to show.
    pub(crate) fn shown_until(&self) -> u32 {
        if self.was_worst { u32::MAX } else { self.level.unwrap_or(0) }
    }

    /// Its total cost.
    pub(crate) fn cost(&self) -> Duration {
        self.lines.iter().map(|line| line.ns).sum()
    }

    /// The connection's bill, largest line first.
    pub(crate) fn into_bill(self) -> Vec<TotalLine> {
        let mut lines = self.lines;
        lines.sort_by(|a, b| b.ns.cmp(&a.ns).then(a.cause.cmp(&b.cause)).then(a.side.cmp(&b.side)));
        lines
    }
}
