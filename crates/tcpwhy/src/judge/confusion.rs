//! What is taken for what? Each expected cause against what the bills named instead.

use std::collections::BTreeMap;
use std::fmt;

use tcpwhy_core::Cause;

use super::Verdict;

/// Counts over many verdicts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Confusion {
    /// How often the first, which was expected, was billed as the second. `None`: as nothing else in particular, but
    /// with too small or too large a share.
    counts: BTreeMap<(String, Option<Cause>), u64>,
}

impl Confusion {
    /// Takes a verdict in. Expectations that only bound a cause from above are not counted: nothing says it must be there.
    pub fn add(&mut self, verdict: &Verdict) {
        for cause in verdict.causes.iter().filter(|cause| cause.expected.share.min > 0.0) {
            let billed = if cause.is_right() {
                cause.expected.cause.parse().ok()
            } else {
                // The same cause on the other side is a confusion too; `name, wrong side` says so when shown.
                cause.instead.filter(|(_, _, share)| *share >= WORTH_NAMING).map(|(cause, _, _)| cause)
            };
            let key = (cause.expected.cause.clone(), billed);
            let wrong_side = !cause.is_right() && key.1.is_some_and(|billed| billed.name() == key.0);
            *self.counts.entry(if wrong_side { (key.0, None) } else { key }).or_default() += 1;
        }
    }

    /// Expectations met, and all of them.
    pub fn right(&self) -> (u64, u64) {
        let is_right = |(expected, billed): &(String, Option<Cause>)| {
            billed.is_some_and(|billed| billed.name() == expected)
        };
        let right = self.counts.iter().filter(|(key, _)| is_right(key)).map(|(_, n)| n).sum();
        (right, self.counts.values().sum())
    }

    /// Rows: expected cause, what it was billed as (`its share` where that alone is wrong), how often.
    pub fn rows(&self) -> impl Iterator<Item = (&str, &'static str, u64)> {
        self.counts
            .iter()
            .map(|((expected, billed), n)| (expected.as_str(), billed.map_or("wrong share", Cause::name), *n))
    }
}

impl fmt::Display for Confusion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:22} {:22} {:>5}", "expected", "billed as", "times")?;
        for (expected, billed, n) in self.rows() {
            writeln!(f, "{expected:22} {billed:22} {n:>5}")?;
        }
        let (right, all) = self.right();
        write!(f, "{right} of {all} right ({:.1}%)", 100.0 * right as f64 / all.max(1) as f64)
    }
}

/// Below this share of the time something else is no confusion.
const WORTH_NAMING: f64 = 0.05;
