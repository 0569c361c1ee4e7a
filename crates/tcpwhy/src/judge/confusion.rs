//! Which causes are mistaken for which? Each expected cause is compared with the one billed
//! instead.

use std::collections::BTreeMap;
use std::fmt;

use tcpwhy_core::Cause;

use super::Verdict;

/// Counts over many verdicts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Confusion {
    /// How often the first, the expected one, was billed as the second. `None`: as no other cause
    /// in particular, but with too small or too large a share.
    counts: BTreeMap<(String, Option<Cause>), u64>,
}

impl Confusion {
    /// Adds a verdict. Expectations that only bound a cause from above are not counted: the cause
    /// need not occur.
    pub fn add(&mut self, verdict: &Verdict) {
        for cause in verdict.causes.iter().filter(|cause| cause.expected.share.min > 0.0) {
            let billed = if cause.is_right() {
                cause.expected.cause.parse().ok()
            } else {
                // The same cause on the other side is a confusion too; it is shown as `name, wrong
                // side`.
                cause.instead.filter(|(_, _, share)| *share >= WORTH_NAMING).map(|(cause, _, _)| cause)
            };
            let key = (cause.expected.cause.clone(), billed);
            let wrong_side = !cause.is_right() && key.1.is_some_and(|billed| billed.name() == key.0);
            *self.counts.entry(if wrong_side { (key.0, None) } else { key }).or_default() += 1;
        }
    }

    /// Expectations met, and all expectations.
    pub fn right(&self) -> (u64, u64) {
        let is_right = |(expected, billed): &(String, Option<Cause>)| {
            billed.is_some_and(|billed| billed.name() == expected)
        };
        let right = self.counts.iter().filter(|(key, _)| is_right(key)).map(|(_, n)| n).sum();
        (right, self.counts.values().sum())
    }

    /// Rows: expected cause, what it was billed as (`wrong share` if only the share is wrong), and
    /// how often.
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

/// Another cause with a smaller share of the time is not counted as a confusion.
const WORTH_NAMING: f64 = 0.05;
