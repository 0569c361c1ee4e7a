//! How much of the billed time is right, which classes are confused, and is `confidence`
//! meaningful?

use std::fmt;

use tcpwhy_core::report::{Confidence, Exchange};
use tcpwhy_wire::Duration;

use super::class::Class;
use super::spent::Spent;

/// A bill may be off by this ...
const TOLERANCE_NS: i64 = 2_000_000;
/// ... or by this part of the exchange, whichever is more.
const TOLERANCE_PER_CENT: i64 = 5;
const CLASSES: usize = Class::ALL.len();

/// A bill, line by line.
pub(crate) struct Bill<'a>(pub(crate) &'a Exchange);

impl fmt::Display for Bill<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.0.bill {
            let class = Class::of(line.cause).name();
            let (ms, sure) = (line.ns.as_nanos() as f64 / 1e6, line.confidence);
            let rate = line.detail.rate_bps.map(|bps| format!("{:.2} Mbit/s", bps as f64 / 1e6));
            let form = line.detail.form.map(|form| form.name().to_owned()).or(rate).unwrap_or_default();
            writeln!(
                f,
                "    billed {ms:10.1} ms  {class:12} {} {form} {sure:?} {:?}",
                line.cause, line.evidence
            )?;
        }
        Ok(())
    }
}

/// Sums over many exchanges, ns.
#[derive(Clone, Debug, Default)]
pub(crate) struct Score {
    elapsed: i64,
    wrong: i64,
    /// Truth by bill.
    confused: [[i64; CLASSES]; CLASSES],
    truth: [i64; CLASSES],
    /// Time that may have been one of several classes, or anything.
    open: i64,
    any: i64,
    /// Billed, but not judged.
    skipped: i64,
    /// By confidence: billed time, and how much of it is wrong.
    confidence: [(i64, i64); 3],
}

impl Score {
    /// Judges one exchange. Returns the share of its time that is wrong.
    pub(crate) fn add(&mut self, truth: &Spent, bills: &[&Exchange]) -> f64 {
        // Time missing from a bill that is too short is wrong too.
        let billed: i64 = bills.iter().map(|bill| bill.elapsed.as_nanos()).sum();
        let elapsed = billed.max(truth.told()).max(1);
        let lines: Vec<_> = bills.iter().flat_map(|bill| &bill.bill).collect();
        let mut billed = [0; CLASSES];
        for line in &lines {
            billed[Class::of(line.cause) as usize] += line.ns.as_nanos();
        }
        let mut over = [0; CLASSES];
        let mut under = [0; CLASSES];
        for (at, class) in Class::ALL.into_iter().enumerate() {
            let really = truth.certain(class);
            over[at] = (billed[at] - really).max(0);
            under[at] = (really - billed[at]).max(0);
            self.truth[at] += really;
        }
        self.any += truth.any();
        let mut open = 0;
        for (set, mut left) in truth.open() {
            self.open += left;
            for class in Class::ALL.into_iter().filter(|class| set & class.bit() != 0) {
                let free = left.min(over[class as usize]);
                over[class as usize] -= free;
                left -= free;
            }
            open += left;
        }
        let tolerance = TOLERANCE_NS.max(elapsed * TOLERANCE_PER_CENT / 100) + truth.any();
        let all: i64 = over.iter().sum::<i64>().max(under.iter().sum::<i64>() - open);
        let wrong = (all - tolerance).max(0).min(elapsed);
        self.elapsed += elapsed;
        self.wrong += wrong;
        // The part beyond the tolerance, in proportion.
        let part =
            |ns: i64| if all > 0 { (i128::from(ns) * i128::from(wrong) / i128::from(all)) as i64 } else { 0 };
        let missing: i64 = under.iter().sum::<i64>().max(1);
        for (was, &short) in under.iter().enumerate() {
            for (said, &long) in over.iter().enumerate() {
                self.confused[was][said] +=
                    (i128::from(part(long)) * i128::from(short) / i128::from(missing)) as i64;
            }
        }
        for (at, long) in over.into_iter().enumerate() {
            // The least certain lines are counted as wrong first.
            let mut left = part(long);
            for confidence in [Confidence::Possible, Confidence::Likely, Confidence::Certain] {
                let lines = lines.iter().filter(|line| line.confidence == confidence);
                let ns: i64 = lines
                    .filter(|line| Class::of(line.cause) as usize == at)
                    .map(|line| line.ns.as_nanos())
                    .sum();
                let bad = left.min(ns);
                left -= bad;
                let (sum, wrong) = &mut self.confidence[confidence as usize];
                *sum += ns;
                *wrong += bad;
            }
        }
        wrong as f64 / elapsed as f64
    }

    /// Billed time about which outside truth says nothing.
    pub(crate) fn skip(&mut self, elapsed: Duration) {
        self.skipped += elapsed.as_nanos();
    }

    /// Share of the time that is right.
    pub(crate) fn right(&self) -> f64 {
        1.0 - self.wrong as f64 / self.elapsed.max(1) as f64
    }
}

impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |ns: i64| ns as f64 / 1e6;
        writeln!(f, "{:12} {:>10}  taken for (ms beyond the tolerance)", "really", "ms")?;
        for (was, class) in Class::ALL.into_iter().enumerate() {
            write!(f, "{:12} {:>10.0} ", class.name(), ms(self.truth[was]))?;
            for (said, other) in Class::ALL.into_iter().enumerate() {
                if self.confused[was][said] >= 1_000_000 {
                    write!(f, " {} {:.0}", other.name(), ms(self.confused[was][said]))?;
                }
            }
            writeln!(f)?;
        }
        for (confidence, (sum, wrong)) in
            [Confidence::Possible, Confidence::Likely, Confidence::Certain].into_iter().zip(self.confidence)
        {
            let right = 100.0 * (1.0 - wrong as f64 / sum.max(1) as f64);
            writeln!(f, "{:9} {:>10.0} ms billed, {right:.1} % right", confidence.name(), ms(sum))?;
        }
        writeln!(
            f,
            "{:.0} ms one of several, {:.0} ms anything, {:.0} ms not judged",
            ms(self.open),
            ms(self.any),
            ms(self.skipped)
        )?;
        write!(f, "{:.1} % of {:.0} ms right", 100.0 * self.right(), ms(self.elapsed))
    }
}
