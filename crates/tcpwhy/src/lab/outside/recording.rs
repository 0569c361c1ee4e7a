//! A whole recording against outside truth: each setup, exchange and one-way message, from both ends.

use std::fmt::Write as _;

use tcpwhy::judge::{End, Stretch, stretches};
use tcpwhy_core::report::{Connection, Exchange, Kind};

use super::{Bill, Outside, Score, Spent};
use crate::lab::form::Run;

/// An exchange with a larger share wrong gets a line.
const WORTH_NAMING: f64 = 0.02;

/// Judges both ends, and adds to each end's score. Returns a line for each exchange that is wrong;
/// with `bills`, also its truth and its bill.
pub(crate) fn judge(form: &str, run: &Run, scores: &mut [Score; 2], bills: bool) -> String {
    let mut out = String::new();
    let Some(path) = &run.truth.path else { return out };
    for ((end, report), score) in End::BOTH.into_iter().zip(&run.bills).zip(scores) {
        if run.scenario.expect.visible.as_ref().is_some_and(|visible| visible != end.name()) {
            score.skip(report.elapsed);
            continue;
        }
        let mut billed: Vec<&Connection> = report.connections.iter().collect();
        for (at, clocked) in run.truth.connections.iter().enumerate() {
            let same = |bill: &&Connection| bill.client.to_string() == clocked.client;
            let Some(bill) = billed.iter().position(same).map(|at| billed.remove(at)) else { continue };
            let next = run.truth.connections.get(at + 1).map_or(i64::MAX, |next| next.setup.start_ns);
            let Some(outside) = Outside::of(path, clocked, next) else {
                bill.exchanges.iter().for_each(|bill| score.skip(bill.elapsed));
                continue;
            };
            let mut add = |truth: Option<Spent>, bills_of: &[&Exchange]| {
                let Some(truth) = truth else {
                    let elapsed = bills_of.iter().map(|bill| bill.elapsed).sum();
                    score.skip(elapsed);
                    let n = bills_of.first().map_or(0, |bill| bill.n);
                    let _ =
                        writeln!(out, "{form} {end}, {n} of connection {}: {elapsed} not judged", bill.id);
                    return;
                };
                let wrong = score.add(&truth, bills_of);
                let Some(first) = bills_of.first().filter(|_| wrong > WORTH_NAMING) else { return };
                // Writing to a String never fails.
                let _ = writeln!(
                    out,
                    "{} {end}, {} {} of connection {}: {:.0} % of {} wrong",
                    form,
                    first.kind.name(),
                    first.n,
                    bill.id,
                    100.0 * wrong,
                    first.elapsed,
                );
                if bills {
                    let _ = write!(out, "{truth}");
                    for bill in bills_of {
                        let _ = write!(out, "{}", Bill(bill));
                    }
                }
            };
            if let Some(setup) = bill.exchanges.first().filter(|bill| bill.kind == Kind::Setup) {
                add(Some(outside.setup()), &[setup]);
            }
            for Stretch { clocked, bills, moved } in stretches(clocked, bill) {
                let truth = (moved[0] == moved[1]).then(|| outside.stretch(clocked)).flatten();
                add(truth, &bills.iter().collect::<Vec<_>>());
            }
        }
        for bill in billed.iter().flat_map(|bill| &bill.exchanges) {
            score.skip(bill.elapsed);
        }
    }
    out
}
