//! How is a bill kept until the report is drawn up, when most are short and most of those kept are
//! never shown?
//!
//! Two lines without details fit into two cache lines and need no allocation; any other bill is
//! kept as it is shown.

use tcpwhy_wire::Duration;

use crate::bill::line::{Bill, EVIDENCE_WAITS, LineView, cite, sort};
use crate::words::cause::{Cause, Side};
use crate::words::report::{Confidence, Detail, Line};

/// Lines of a short bill.
const SHORT: usize = 2;

/// A bill of a listed exchange.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum CompactBill {
    Short([Option<CompactLine>; SHORT]),
    Long(Vec<Line>),
}

/// A line without a detail of its own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct CompactLine {
    ns: Duration,
    evidence: [[u64; 3]; EVIDENCE_WAITS],
    waits: u32,
    cause: Cause,
    side: Side,
    confidence: Confidence,
}

impl Bill<'_> {
    /// The bill in the form kept for the lists.
    pub(crate) fn compact(self) -> CompactBill {
        let mut lines = [None; SHORT];
        for (count, line) in self.summary().enumerate() {
            match (lines.get_mut(count), CompactLine::of(line)) {
                (Some(place), Some(line)) => *place = Some(line),
                _ => return CompactBill::Long(self.lines()),
            }
        }
        CompactBill::Short(lines)
    }
}

impl CompactBill {
    /// The same lines as [`Bill::lines`].
    pub(crate) fn into_lines(self) -> Vec<Line> {
        match self {
            Self::Long(lines) => lines,
            Self::Short(lines) => {
                let mut lines: Vec<Line> = lines.into_iter().flatten().map(CompactLine::line).collect();
                sort(&mut lines);
                lines
            }
        }
    }
}

impl CompactLine {
    fn of(line: LineView<'_>) -> Option<Self> {
        if line.own_detail().is_some() {
            return None;
        }
        Some(Self {
            ns: line.ns(),
            evidence: line.0.evidence,
            waits: line.0.waits,
            cause: line.cause(),
            side: line.side(),
            confidence: line.confidence(),
        })
    }

    fn line(self) -> Line {
        let mut evidence = Vec::new();
        cite(&self.evidence, &mut evidence);
        Line {
            cause: self.cause,
            side: self.side,
            ns: self.ns,
            confidence: self.confidence,
            evidence,
            detail: Detail { waits: Some(self.waits), ..Detail::default() },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bill::account::Account;
    use crate::bill::charge::Charge;

    /// One to three causes, one of which may have a detail, with two or three waits.
    #[test]
    fn what_is_kept_is_what_is_shown() {
        let causes = [Cause::RoundTrip, Cause::ServerThink, Cause::Nagle];
        for n in 1..=3 {
            for (waits, detail) in
                [(1, None), (3, None), (2, Some(Detail { held_bytes: Some(9), ..Detail::default() }))]
            {
                let mut account = Account::default();
                for wait in 0..waits {
                    for (at, cause) in causes.into_iter().take(n).enumerate() {
                        let ns = Duration::from_millis(1 + (7 * wait + 3 * at as i64) % 11);
                        let packet = 10 * wait as u64 + at as u64;
                        let mut charge = Charge::new(cause, Side::Server, ns, Confidence::Likely)
                            .evidence(packet + 1, packet + 2);
                        if let Some(detail) = detail.filter(|_| at == 0) {
                            charge = charge.detail(detail);
                        }
                        account.charge(&charge);
                    }
                }
                let compact = account.bill().compact();
                let is_short = n <= SHORT && detail.is_none();
                assert_eq!(matches!(compact, CompactBill::Short(_)), is_short, "{n} causes, {waits} waits");
                assert_eq!(compact.into_lines(), account.bill().lines());
            }
        }
    }
}
