//! How long do these connections' exchanges take now? They are captured for a while, and billed by
//! a sandboxed reader.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use tcpwhy_host::capture::{End, Filter, Options};
use tcpwhy_report::quantity::{count, time};
use tcpwhy_sockets::namespace::Namespace;

use super::args::FixArgs;
use super::plan::Plan;
use crate::document::Document;
use crate::feed::{Copies, Feed};

/// What was measured.
#[derive(Debug, Default)]
pub(super) struct Measured {
    /// Elapsed time of each exchange, ns, sorted.
    pub(super) exchanges_ns: Vec<u64>,
    /// The bill of the connections, by cause.
    pub(super) bill_ns: BTreeMap<String, u64>,
    /// Packets that the capture lost.
    pub(super) lost: u64,
}

/// Measures; stops early and returns `None` if the user asks to.
pub(super) fn measure(args: &FixArgs, plan: &Plan, stop: &AtomicBool) -> anyhow::Result<Option<Measured>> {
    let options = Options {
        filter: Filter { port: args.port, one_of: theirs(&plan.ends), ..Filter::default() },
        comment: "tcpwhy fix".to_owned(),
        ..Options::new(args.interface.as_str())
    };
    let words = ["read", "-", "--json", "--threads", "1"].map(str::to_owned);
    let namespace: &Namespace = &plan.namespace;
    let mut feed = Feed::start(options, namespace, &words, Copies::default(), Stdio::piped())?;
    let mut out = feed.reader.stdout.take().context("the reader has no output")?;
    let begun = now();
    while begun.elapsed() < args.measure && !stop.load(Ordering::Relaxed) && !feed.has_ended() {
        std::thread::sleep(Duration::from_millis(20).min(args.measure.saturating_sub(begun.elapsed())));
    }
    let (stats, mut reader) = feed.stop();
    let mut text = Vec::new();
    out.read_to_end(&mut text)?;
    let status = reader.wait()?;
    if stop.load(Ordering::Relaxed) {
        return Ok(None);
    }
    let stats = stats.context("the measurement failed")?;
    if status.code() == Some(i32::from(crate::NOTHING_ANALYSED)) {
        return Ok(Some(Measured { lost: stats.dropped, ..Measured::default() }));
    }
    let document: Document = serde_json::from_slice(&text).context("the reader gave no answer")?;
    Ok(Some(Measured::of(document, &plan.ends, stats.dropped)))
}

/// The remote end of each connection, which is enough to recognize its packets; `None` if all are
/// measured.
fn theirs(ends: &[[SocketAddr; 2]]) -> Option<Vec<End>> {
    let of = |[_, remote]: &[SocketAddr; 2]| End { host: Some(remote.ip()), port: remote.port() };
    (!ends.is_empty()).then(|| ends.iter().map(of).collect())
}

impl Measured {
    fn of(document: Document, ends: &[[SocketAddr; 2]], lost: u64) -> Self {
        let mut measured = Self { lost, ..Self::default() };
        let ended_ns = document.connections.iter().map(|connection| connection.last_ns).max().unwrap_or(0);
        for connection in document.connections {
            let pair = [connection.client.parse().ok(), connection.server.parse().ok()];
            let is_wanted = ends.is_empty()
                || ends.iter().any(|[one, other]| {
                    pair == [Some(*one), Some(*other)] || pair == [Some(*other), Some(*one)]
                });
            if !is_wanted {
                continue;
            }
            for line in connection.bill {
                *measured.bill_ns.entry(line.cause).or_default() += line.ns;
            }
            // Exchanges under way when the capture began or ended are incomplete.
            let begins = usize::from(connection.exchanges.first().is_some_and(|first| first.kind != "setup"));
            let ends = usize::from(ended_ns - connection.last_ns < STILL_OPEN_NS);
            let whole = connection.exchanges.len().saturating_sub(begins + ends);
            let exchanges = connection.exchanges.iter().skip(begins).take(whole);
            let exchanges = exchanges.filter(|exchange| exchange.kind == "exchange");
            measured.exchanges_ns.extend(exchanges.map(|exchange| exchange.elapsed_ns));
        }
        measured.exchanges_ns.sort_unstable();
        measured
    }

    /// The value below which this many of a thousand lie.
    pub(super) fn quantile_ns(&self, per_mille: usize) -> u64 {
        let last = self.exchanges_ns.len().saturating_sub(1);
        self.exchanges_ns.get(last * per_mille / 1_000).copied().unwrap_or(0)
    }

    /// One line; the bill starts with the causes that the fix addresses, then the largest other
    /// one.
    pub(super) fn words(&self, addressed: &[&str]) -> String {
        if self.exchanges_ns.is_empty() {
            return "no exchange was seen to its end".to_owned();
        }
        let shown = |per_mille| nanos(self.quantile_ns(per_mille));
        let causes = self.causes(addressed);
        let lost = if self.lost > 0 {
            format!("; {} packets lost by the capture", count(self.lost))
        } else {
            String::new()
        };
        format!(
            "{} exchanges, median {} (from {} to {} in the middle 80 %){causes}{lost}",
            count(self.exchanges_ns.len() as u64),
            shown(500),
            shown(100),
            shown(900)
        )
    }

    /// The largest cause that the fix addresses, if it occurs, and the largest of all, if that is
    /// another.
    fn causes(&self, addressed: &[&str]) -> String {
        let whole: u64 = self.bill_ns.values().sum();
        let largest = |wanted: &dyn Fn(&str) -> bool| {
            let found = self.bill_ns.iter().filter(|(cause, ns)| wanted(cause) && **ns > 0);
            found.max_by_key(|(_, ns)| **ns)
        };
        let first = largest(&|cause| addressed.contains(&cause));
        let most = largest(&|_| true).filter(|most| Some(*most) != first);
        let told = |(cause, ns): (&String, &u64)| {
            let share = *ns as f64 / whole as f64 * 100.0;
            if share < 1.0 { format!("{cause} <1 %") } else { format!("{cause} {share:.0} %") }
        };
        let told: Vec<String> = first.into_iter().chain(most).map(told).collect();
        if told.is_empty() { String::new() } else { format!("; {}", told.join(", ")) }
    }
}

/// A connection with a packet this shortly before the end is still open.
const STILL_OPEN_NS: i64 = 300_000_000;

/// Formatted as in bills.
pub(super) fn nanos(ns: u64) -> String {
    time(tcpwhy_wire::Duration::from_nanos(i64::try_from(ns).unwrap_or(i64::MAX)))
}

#[expect(clippy::disallowed_methods, reason = "how long to measure is a matter of the clock")]
fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(bill: &[(&str, u64)], addressed: &[&str]) -> String {
        let bill_ns = bill.iter().map(|(cause, ns)| ((*cause).to_owned(), *ns)).collect();
        let measured = Measured { exchanges_ns: vec![1_000_000; 5], bill_ns, lost: 0 };
        measured.words(addressed).split_once(')').map(|(_, causes)| causes.to_owned()).unwrap_or_default()
    }

    #[test]
    fn what_the_fix_is_for_is_told_first_and_what_is_more_behind_it() {
        let nodelay = ["nagle-delayed-ack", "nagle"];
        let bill = [("sender-think", 60), ("nagle-delayed-ack", 39), ("nagle", 1)];
        assert_eq!(words(&bill, &nodelay), "; nagle-delayed-ack 39 %, sender-think 60 %");
        assert_eq!(words(&[("nagle", 99), ("round-trip", 1)], &nodelay), "; nagle 99 %");
        assert_eq!(words(&[("server-think", 70), ("round-trip", 30)], &nodelay), "; server-think 70 %");
        assert_eq!(words(&[("nagle", 1), ("round-trip", 999)], &nodelay), "; nagle <1 %, round-trip 100 %");
        assert_eq!(words(&[], &nodelay), "");
    }
}
