//! Which connections and exchanges are shown one by one?
//!
//! Each shard keeps what may be wanted. What is, in the order of connections and of their bills, is known at the end.

use crate::tally::ledger::{ConnectionTotals, Listing, Spare};
use crate::tally::thinning::Kept;
use crate::words::report::{self, Report};

/// A connection that is over, and what was kept of its exchanges.
#[derive(Clone, Debug)]
pub(crate) struct Listed {
    pub connection: report::Connection,
    pub totals: ConnectionTotals,
}

impl Listed {
    /// It turned out to be beyond the limit.
    pub(crate) fn forget(&mut self) {
        self.connection.id = 0;
        self.totals = ConnectionTotals::default();
    }
}

/// Puts the lists into the report, with the earliest exchanges up to the limit.
pub(crate) fn put_into(report: &mut Report, mut listed: Vec<Listed>, listing: Listing, connections: u64) {
    if listing == Listing::None {
        return;
    }
    listed.retain(|listed| listed.connection.id != 0);
    // Large ones, each moved once.
    listed.sort_by_cached_key(|listed| listed.connection.id);
    report.omitted.connections = connections - listed.len() as u64;
    let limit = match listing {
        Listing::UpTo(most) => usize::try_from(most).unwrap_or(usize::MAX),
        Listing::Thinned(most) => {
            report.thinned = thin(&mut listed, report.thinned, most);
            usize::MAX
        }
        Listing::None | Listing::Connection(_) | Listing::Beginning(_) => usize::MAX,
    };
    let kept: usize = listed.iter().map(|listed| listed.totals.exchanges.len()).sum();
    // Of bills that the same packet closed, those of the connection that began first.
    let last = (kept > limit).then(|| {
        let closed = |listed: &Listed| {
            let id = listed.connection.id;
            listed
                .totals
                .exchanges
                .iter()
                .map(move |(packet, exchange)| (*packet, id, exchange.n))
                .collect::<Vec<_>>()
        };
        let mut all: Vec<_> = listed.iter().flat_map(closed).collect();
        all.sort_unstable();
        limit.checked_sub(1).map(|last| all[last])
    });
    for Listed { mut connection, mut totals } in listed {
        let id = connection.id;
        if let Some(last) = last {
            totals
                .exchanges
                .retain(|(packet, exchange)| last.is_some_and(|last| (*packet, id, exchange.n) <= last));
        }
        report.omitted.exchanges += totals.closed - totals.exchanges.len() as u64;
        connection.exchanges = totals.exchanges.into_iter().map(|(_, exchange)| exchange).collect();
        report.connections.push(connection);
    }
}

/// Keeps what the first level keeps, from this one on, that leaves no more than `most`, and returns it.
fn thin(listed: &mut [Listed], from: u32, most: usize) -> u32 {
    let mut kept = Kept::default();
    for (_, exchange) in listed.iter().flat_map(|listed| &listed.totals.exchanges) {
        kept.add(exchange.level());
    }
    let level = kept.level(from, most);
    let mut spare = Spare::default();
    for listed in listed {
        listed.totals.thin(level, &mut spare);
    }
    level
}
