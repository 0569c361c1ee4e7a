//! What appeared and disappeared between two captures, and is it more than chance?
//!
//! Exchanges of the same service and kind are compared, as a whole and by cause. A difference is
//! reported if chance alone would hardly give it, and if it is large enough to be noticed: noise
//! from other hosts moves microseconds all the time.

pub mod chance;

use std::collections::BTreeMap;

use tcpwhy_core::Cause;
use tcpwhy_core::report::{Exchange, Kind, Report};
use tcpwhy_wire::{Duration, Endpoint};

pub use chance::Chance;

/// Chance alone gives such a difference less often than this, over all comparisons.
const P_MAX: f64 = 0.05;
/// A noticeable change is at least a twentieth of the old value...
const NOTICED_SHARE: f64 = 0.05;
/// ...and at least this many nanoseconds.
const NOTICED_NS: f64 = 100_000.0;

/// The differences of two captures.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// By service and kind, most total time first.
    pub rows: Vec<Row>,
    /// Services that only one of them has: name, exchanges before and after.
    pub unmatched: Vec<Unmatched>,
    /// Exchanges of both that were billed but not kept one by one; they are not compared.
    pub omitted: u64,
}

/// A service that only one side has: its name, and its exchanges before and after.
pub type Unmatched = (String, u64, u64);

/// The servers before and after that count as one service, and a kind that both have.
type Pair = ([Endpoint; 2], Kind);

/// One kind of exchange of one service.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The server's address and port; both if they differ.
    pub service: String,
    /// Setups, exchanges, one-way messages.
    pub kind: Kind,
    /// Its total time.
    pub elapsed: Change,
    /// The time of each cause, largest change first.
    pub causes: Vec<(Cause, Change)>,
}

/// Two means and their difference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// Exchanges.
    pub counts: [u64; 2],
    /// Mean over all of them, before and after.
    pub means: [Duration; 2],
    /// Median and 99th percentile.
    pub p50: [Duration; 2],
    /// See `p50`.
    pub p99: [Duration; 2],
    /// `None` if there are too few exchanges.
    pub chance: Option<Chance>,
    /// The conclusion.
    pub verdict: Verdict,
}

/// The conclusion about a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Takes longer, by more than chance.
    Slower,
    /// Takes less, by more than chance.
    Faster,
    /// No change that is more than chance and large enough to be noticed.
    Same,
    /// Fewer than five exchanges on one side.
    TooFew,
}

impl Verdict {
    /// The name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Slower => "slower",
            Self::Faster => "faster",
            Self::Same => "no-difference",
            Self::TooFew => "too-few",
        }
    }
}

impl Comparison {
    /// Compares the exchanges that both reports list.
    pub fn of(before: &Report, after: &Report) -> Self {
        let sides = [services(before), services(after)];
        let (pairs, unmatched) = pairs(&sides);
        let is_tested = |([one, other], kind): &&Pair| {
            let counts = [sides[0][&(*one, *kind)].len(), sides[1][&(*other, *kind)].len()];
            counts.iter().all(|count| *count >= chance::VALUES_MIN)
        };
        let tested = pairs.iter().filter(is_tested).count().max(1) as f64;
        let mut rows: Vec<Row> = pairs
            .into_iter()
            .map(|([one, other], kind)| {
                let exchanges = [&sides[0][&(one, kind)], &sides[1][&(other, kind)]];
                let service = if one == other { one.to_string() } else { format!("{one}, then {other}") };
                Row::of(service, kind, exchanges, P_MAX / tested)
            })
            .collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.elapsed.weight()));
        let omitted = before.omitted.exchanges + after.omitted.exchanges;
        Self { rows, unmatched, omitted }
    }

    /// Whether a service takes longer, by more than chance.
    pub fn is_slower(&self) -> bool {
        self.rows.iter().any(|row| row.elapsed.verdict == Verdict::Slower)
    }
}

impl Row {
    fn of(service: String, kind: Kind, exchanges: [&Vec<&Exchange>; 2], p_max: f64) -> Self {
        let values = |take: &dyn Fn(&Exchange) -> Duration| {
            exchanges
                .map(|side| side.iter().map(|exchange| take(exchange).as_nanos() as f64).collect::<Vec<_>>())
        };
        let elapsed = Change::of(&values(&|exchange| exchange.elapsed), None, p_max);
        let whole = elapsed.means[0].as_nanos() as f64;
        let mut causes: Vec<(Cause, Change)> = Cause::ALL
            .into_iter()
            .filter_map(|cause| {
                let spent = |exchange: &Exchange| {
                    exchange.bill.iter().filter(|line| line.cause == cause).map(|line| line.ns).sum()
                };
                let values = values(&spent);
                // Without any time, nothing is tested: thousands of services have no time of most
                // causes.
                let is_spent = values.iter().flatten().any(|ns| *ns > 0.0);
                is_spent.then(|| (cause, Change::of(&values, Some(whole), p_max)))
            })
            .filter(|(_, change)| change.means != [Duration::ZERO; 2])
            .collect();
        causes.sort_by_key(|(_, change)| {
            std::cmp::Reverse((change.means[1] - change.means[0]).as_nanos().abs())
        });
        Self { service, kind, elapsed, causes }
    }
}

impl Change {
    /// For values in order of time; a part is measured relative to `whole`.
    fn of(values: &[Vec<f64>; 2], whole: Option<f64>, p_max: f64) -> Self {
        let mean = |values: &Vec<f64>| values.iter().sum::<f64>() / values.len().max(1) as f64;
        let means = values.each_ref().map(mean);
        let sorted = values.each_ref().map(|values| {
            let mut sorted = values.clone();
            sorted.sort_by(f64::total_cmp);
            sorted
        });
        let at = |share: f64| {
            sorted.each_ref().map(|sorted| {
                let rank = (sorted.len() as f64 * share).ceil() as usize;
                Duration::from_nanos(sorted.get(rank.max(1) - 1).copied().unwrap_or(0.0) as i64)
            })
        };
        let chance = chance::of(&values[0], &values[1], p_max);
        let difference = means[1] - means[0];
        let is_noticed = difference.abs() >= NOTICED_NS.max(NOTICED_SHARE * whole.unwrap_or(means[0]));
        let verdict = match chance {
            None => Verdict::TooFew,
            Some(chance) if chance.p >= p_max || !is_noticed => Verdict::Same,
            Some(_) if difference > 0.0 => Verdict::Slower,
            Some(_) => Verdict::Faster,
        };
        Self {
            counts: values.each_ref().map(|values| values.len() as u64),
            means: means.map(|mean| Duration::from_nanos(mean.round() as i64)),
            p50: at(0.5),
            p99: at(0.99),
            chance,
            verdict,
        }
    }

    /// The total time before and after.
    fn weight(&self) -> u64 {
        let [before, after] =
            [0, 1].map(|side| self.counts[side].saturating_mul(self.means[side].as_nanos().max(0) as u64));
        before.saturating_add(after)
    }
}

/// Exchanges by service and kind, in order of time.
type Services<'a> = BTreeMap<(Endpoint, Kind), Vec<&'a Exchange>>;

fn services(report: &Report) -> Services<'_> {
    let mut services = Services::new();
    for connection in &report.connections {
        for exchange in connection.exchanges.iter().filter(|exchange| exchange.kind != Kind::Subscription) {
            services.entry((connection.server, exchange.kind)).or_default().push(exchange);
        }
    }
    for exchanges in services.values_mut() {
        exchanges.sort_by_key(|exchange| exchange.start);
    }
    services
}

/// Matches services: those with the same address and port; then those that are the only ones on
/// their port on both sides; then, if each side has one left, these.
fn pairs(sides: &[Services<'_>; 2]) -> (Vec<Pair>, Vec<Unmatched>) {
    let mut left = sides.each_ref().map(|side| {
        let mut servers: Vec<Endpoint> = side.keys().map(|(server, _)| *server).collect();
        servers.dedup();
        servers
    });
    let mut same: Vec<[Endpoint; 2]> = Vec::new();
    let mut take = |left: &mut [Vec<Endpoint>; 2], pair: [Endpoint; 2]| {
        same.push(pair);
        left[0].retain(|server| *server != pair[0]);
        left[1].retain(|server| *server != pair[1]);
    };
    for server in left[0].clone() {
        if left[1].contains(&server) {
            take(&mut left, [server; 2]);
        }
    }
    for server in left[0].clone() {
        let alike = |side: &Vec<Endpoint>| {
            let mut of_port = side.iter().filter(|other| other.port == server.port);
            of_port.next().copied().filter(|_| of_port.next().is_none())
        };
        if let (Some(one), Some(other)) = (alike(&left[0]), alike(&left[1])) {
            take(&mut left, [one, other]);
        }
    }
    if let [[one], [other]] = left.each_ref().map(Vec::as_slice) {
        let pair = [*one, *other];
        take(&mut left, pair);
    }
    let kinds = [Kind::Setup, Kind::Exchange, Kind::OneWay];
    let both =
        |pair: &[Endpoint; 2], kind: Kind| (0..2).all(|side| sides[side].contains_key(&(pair[side], kind)));
    let pairs = same
        .iter()
        .flat_map(|pair| kinds.into_iter().filter(|kind| both(pair, *kind)).map(|kind| (*pair, kind)))
        .collect();
    let count = |side: usize, server: Endpoint| {
        kinds
            .iter()
            .filter_map(|kind| sides[side].get(&(server, *kind)))
            .map(|of| of.len() as u64)
            .sum::<u64>()
    };
    let only_before = left[0].iter().map(|server| (server.to_string(), count(0, *server), 0));
    let only_after = left[1].iter().map(|server| (server.to_string(), 0, count(1, *server)));
    (pairs, only_before.chain(only_after).collect())
}
