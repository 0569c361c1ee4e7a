//! Do both ends of a recording bill the same? Compared cause by cause for each exchange; and
//! separately for exchanges in which the laboratory's path kept its promise: a path that stalls for
//! a moment looks different from each end.

use std::collections::BTreeMap;
use std::fmt;

use tcpwhy_core::report::{Confidence, Connection, Exchange, Line};
use tcpwhy_core::{Cause, Report};
use tcpwhy_lab::truth::{TrueConnection, Truth};
use tcpwhy_wire::Duration;

use super::pairing;

/// Both ends may differ by this on a cause of an exchange, or by `PER_CENT` of the exchange,
/// whichever is more.
const TOLERANCE: Duration = Duration::from_millis(2);
const PER_CENT: i64 = 5;

/// Sums over recordings.
#[derive(Clone, Debug, Default)]
pub(super) struct Ends {
    all: Count,
    /// For exchanges in which no packet was late on its path.
    punctual: Count,
    /// By whether the path was late, recording and cause.
    apart: BTreeMap<(bool, String, Cause), (Count, Duration)>,
}

/// Counts of causes over exchanges.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    /// At least one end billed the cause.
    billed: u64,
    /// The ends differ.
    apart: u64,
    /// How many of these the end with the larger line calls possible or unexplained.
    open: u64,
}

impl Count {
    fn add(&mut self, apart: bool, open: bool) {
        self.billed += 1;
        self.apart += u64::from(apart);
        self.open += u64::from(apart && open);
    }
}

impl Ends {
    pub(super) fn add(&mut self, name: &str, truth: &Truth, client: &Report, server: &Report) {
        // The client's address occurs more than once if a port is reused: both lists are in order
        // of time.
        let mut others: Vec<&Connection> = server.connections.iter().collect();
        for connection in &client.connections {
            let same = |other: &&Connection| other.client == connection.client;
            let other = others.iter().position(same).map(|at| others.remove(at));
            let nothing: &[Exchange] = &[];
            let there = other.map_or(nothing, |other| &other.exchanges);
            let clocked =
                truth.connections.iter().filter(|clocked| clocked.client == connection.client.to_string());
            let late: Vec<Late> = clocked.flat_map(late).collect();
            for [here, there] in pairing::same_bytes(&connection.exchanges, there) {
                let was_late = late.iter().any(|late| late.overlaps(here));
                self.add_exchange(name, was_late, here, there);
            }
        }
    }

    fn add_exchange(&mut self, name: &str, was_late: bool, here: &[Exchange], there: &[Exchange]) {
        let elapsed: Duration = here.iter().map(|here| here.elapsed).sum();
        let tolerance = tolerance(elapsed);
        // An end that says it cannot know is not contradicted by one that can.
        let room = open(here).max(open(there));
        for cause in Cause::ALL {
            let [a, b] = [here, there].map(|exchanges| billed(exchanges, cause));
            if !a.max(b).is_positive() {
                continue;
            }
            let difference = (a - b).max(b - a);
            let (apart, is_open) = (difference > tolerance, difference - room <= tolerance);
            self.all.add(apart, is_open);
            if !was_late {
                self.punctual.add(apart, is_open);
            }
            if apart {
                let (count, ns) = self.apart.entry((was_late, name.to_owned(), cause)).or_default();
                count.add(apart, is_open);
                *ns += difference;
            }
        }
    }

    /// In words: recordings with a punctual path first, then by most time.
    pub(super) fn apart(&self) -> Vec<String> {
        let mut rows: Vec<_> = self.apart.iter().collect();
        rows.sort_by_key(|((was_late, ..), (_, ns))| (*was_late, std::cmp::Reverse(*ns)));
        let row = |((was_late, name, cause), (count, ns)): (&(bool, String, Cause), &(Count, Duration))| {
            let Count { apart, open, .. } = count;
            let open = if *open > 0 { format!(", {open} of them possible") } else { String::new() };
            let path = if *was_late { "" } else { ", though the path was punctual" };
            format!("{name}: {cause} of {apart} exchanges, {ns}{open}{path}")
        };
        rows.into_iter().map(row).collect()
    }
}

impl fmt::Display for Ends {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Count { billed, apart, open } = self.all;
        writeln!(
            f,
            "the ends agree on {} of {billed} causes of exchanges (within 5 % or 2 ms); of the other {apart} an end that is \
             off says of {open} that it cannot know",
            billed - apart,
        )?;
        let Count { billed, apart, open } = self.punctual;
        write!(
            f,
            "where the path was late by half of that at most, on {} of {billed}; of the other {apart} an end that is off \
             says of {open} that it cannot know",
            billed - apart,
        )
    }
}

/// A period in which the path was late.
struct Late {
    start_ns: i64,
    end_ns: i64,
}

impl Late {
    fn overlaps(&self, exchanges: &[Exchange]) -> bool {
        exchanges.iter().any(|exchange| {
            let end = exchange.start + exchange.elapsed;
            exchange.start.as_nanos() <= self.end_ns && end.as_nanos() >= self.start_ns
        })
    }
}

/// Setups and exchanges in which the path was late by more than the comparison of the ends allows.
pub fn late_exchanges(truth: &Truth) -> usize {
    truth.connections.iter().flat_map(late).count()
}

/// A connection's setup and exchanges in which the path was late.
fn late(clocked: &TrueConnection) -> impl Iterator<Item = Late> + '_ {
    let setup = (clocked.setup.start_ns, clocked.setup.end_ns, clocked.setup.path_late_ns);
    let exchanges =
        clocked.exchanges.iter().map(|clocked| (clocked.start_ns, clocked.end_ns, clocked.path_late_ns));
    let all = std::iter::once(setup).chain(exchanges);
    // If the path was late by half of the tolerance, it was not the path that the scenario
    // describes.
    let most = |ns| tolerance(Duration::from_nanos(ns)).divided_by(2).as_nanos();
    all.filter(move |(start_ns, end_ns, late_ns)| *late_ns > most(end_ns - start_ns))
        .map(|(start_ns, end_ns, _)| Late { start_ns, end_ns })
}

/// By how much the ends may differ on a cause of an exchange or setup of this length.
fn tolerance(elapsed: Duration) -> Duration {
    TOLERANCE.max(elapsed.times(PER_CENT).divided_by(100))
}

fn billed(exchanges: &[Exchange], cause: Cause) -> Duration {
    let lines = exchanges.iter().flat_map(|exchange| &exchange.bill);
    lines.filter(|line| line.cause == cause).map(|line| line.ns).sum()
}

/// Time that the bill marks as uncertain.
fn open(exchanges: &[Exchange]) -> Duration {
    let lines = exchanges.iter().flat_map(|exchange| &exchange.bill);
    let open = |line: &&Line| line.confidence == Confidence::Possible || line.cause == Cause::Unexplained;
    lines.filter(open).map(|line| line.ns).sum()
}
