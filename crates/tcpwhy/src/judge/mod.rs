//! Is the bill right? It is compared with the applications' own clocks and with the scenario's
//! expectations.
//!
//! Pure: a truth, a report and expectations in, a [`Verdict`] out. The lines of each bill must sum
//! to its elapsed time, each elapsed time must be what the client measured, the causes must be
//! those of the scenario with their side and share, and next to nothing may stay unexplained.

mod agreement;
mod confusion;
mod criteria;
mod ends;
mod pairing;

use std::fmt;

use tcpwhy_core::report::{Exchange, Kind};
use tcpwhy_core::{Cause, Report, Side};
use tcpwhy_lab::scenario::{Expect, ExpectedCause};
use tcpwhy_lab::truth::Truth;
use tcpwhy_wire::Duration;

pub use agreement::{Agreement, agreement};
pub use confusion::Confusion;
pub use criteria::Criteria;
pub use ends::late_exchanges;
pub use pairing::{Compared, Stretch, pair, stretches};

/// A bill may differ from the application's clock by this ...
pub const TOLERANCE: Duration = Duration::from_millis(1);
/// ... or by this share of what the application measured, whichever is more.
pub const TOLERANCE_PER_CENT: i64 = 2;
/// The largest share of the time that may stay unexplained.
pub const UNEXPLAINED_MAX: f64 = 0.02;

/// The end at which a capture was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum End {
    /// Next to the client.
    Client,
    /// Next to the server.
    Server,
}

impl End {
    /// Both of them.
    pub const BOTH: [Self; 2] = [Self::Client, Self::Server];

    /// The name in tables and files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
        }
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What was billed for an expected cause.
#[derive(Clone, Debug, PartialEq)]
pub struct CauseVerdict {
    /// The expectation.
    pub expected: ExpectedCause,
    /// The share that the bill gives it, 0 to 1.
    pub share: f64,
    /// The cause other than the expected ones with the largest share.
    pub instead: Option<(Cause, Side, f64)>,
}

impl CauseVerdict {
    /// Whether the share lies in the expected range.
    pub fn is_right(&self) -> bool {
        self.expected.share.min <= self.share && self.share <= self.expected.share.max
    }
}

impl fmt::Display for CauseVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ExpectedCause { cause, side, share, of } = &self.expected;
        write!(f, "{cause} ({side}) {:.1}% of {of}, expected {share}", 100.0 * self.share)?;
        match self.instead {
            Some((cause, side, share)) if !self.is_right() => {
                write!(f, "; most of the rest is {cause} ({side}) {:.1}%", 100.0 * share)
            }
            _ => Ok(()),
        }
    }
}

/// How one end's bill compares with the truth.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// Where the capture was taken.
    pub end: End,
    /// Setups, exchanges and one-way messages present in both truth and bill.
    pub compared: Vec<Compared>,
    /// Those present in only one of them.
    pub unpaired: Vec<String>,
    /// The expected causes.
    pub causes: Vec<CauseVerdict>,
    /// Share of the whole that the bill leaves unexplained, 0 to 1.
    pub unexplained: f64,
    /// Bills whose lines do not sum to their elapsed time.
    pub unbalanced: Vec<String>,
}

/// Compares truth and bill.
pub fn judge(end: End, truth: &Truth, report: &Report, expect: &Expect) -> Verdict {
    // Causes that this end cannot see are not expected in its bill, but its sums must be right all
    // the same.
    if expect.visible.as_ref().is_some_and(|visible| visible != end.name()) {
        let unbalanced = unbalanced(report);
        return Verdict {
            end,
            compared: Vec::new(),
            unpaired: Vec::new(),
            causes: Vec::new(),
            unexplained: 0.0,
            unbalanced,
        };
    }
    let (compared, unpaired) = pair(end, truth, report);
    Verdict {
        end,
        compared,
        unpaired,
        causes: expect.causes.iter().map(|expected| cause_verdict(expected, expect, report)).collect(),
        unexplained: share(report.elapsed, spent(report, None, Cause::Unexplained, Side::Unknown)),
        unbalanced: unbalanced(report),
    }
}

impl Verdict {
    /// All faults, in words; empty if there are none.
    pub fn faults(&self) -> Vec<String> {
        let mut faults: Vec<String> = self.unbalanced.clone();
        faults.extend(self.unpaired.iter().cloned());
        let off: Vec<&Compared> = self.compared.iter().filter(|pair| !pair.is_right()).collect();
        if let Some(worst) = off.iter().max_by_key(|pair| pair.beyond()) {
            faults.push(format!(
                "elapsed: {} of {} differ from the application's clock, the most: {worst}",
                off.len(),
                self.compared.len()
            ));
        }
        faults.extend(self.causes.iter().filter(|cause| !cause.is_right()).map(ToString::to_string));
        if self.unexplained > UNEXPLAINED_MAX {
            faults.push(format!("unexplained: {:.1}%", 100.0 * self.unexplained));
        }
        faults
    }

    /// The largest difference between bill and application's clock, in either direction; except for
    /// one-way messages, whose bill ends later by definition.
    pub fn worst_error(&self) -> Option<Duration> {
        let errors = self.compared.iter().filter(|pair| pair.kind != Kind::OneWay).map(Compared::error);
        errors.max_by_key(|error| error.as_nanos().abs())
    }
}

/// The exchanges of a kind, over all connections.
fn of_kind(report: &Report, kind: Option<Kind>) -> impl Iterator<Item = &Exchange> {
    report
        .connections
        .iter()
        .flat_map(|connection| &connection.exchanges)
        .filter(move |exchange| kind.is_none_or(|kind| exchange.kind == kind))
}

fn spent(report: &Report, kind: Option<Kind>, cause: Cause, side: Side) -> Duration {
    of_kind(report, kind)
        .flat_map(|exchange| &exchange.bill)
        .filter(|line| line.cause == cause && line.side == side)
        .map(|line| line.ns)
        .sum()
}

fn elapsed(report: &Report, kind: Kind) -> Duration {
    of_kind(report, Some(kind)).map(|exchange| exchange.elapsed).sum()
}

fn share(whole: Duration, part: Duration) -> f64 {
    if whole.is_positive() { part.as_nanos() as f64 / whole.as_nanos() as f64 } else { 0.0 }
}

/// The kind that an expectation names.
fn kind_of(expected: &ExpectedCause) -> Kind {
    match expected.of.as_str() {
        "setup" => Kind::Setup,
        "one-way" => Kind::OneWay,
        _ => Kind::Exchange,
    }
}

fn is(expected: &ExpectedCause, cause: Cause, side: Side) -> bool {
    expected.cause == cause.name() && expected.side == side.name()
}

fn cause_verdict(expected: &ExpectedCause, expect: &Expect, report: &Report) -> CauseVerdict {
    let kind = kind_of(expected);
    let whole = elapsed(report, kind);
    let (mut own, mut instead) = (0.0, None);
    for cause in Cause::ALL {
        for side in [Side::Client, Side::Server, Side::Path, Side::Unknown] {
            let share = share(whole, spent(report, Some(kind), cause, side));
            if is(expected, cause, side) {
                own = share;
            } else if !expect.causes.iter().any(|other| kind_of(other) == kind && is(other, cause, side))
                && share > instead.map_or(0.0, |(_, _, most)| most)
            {
                instead = Some((cause, side, share));
            }
        }
    }
    CauseVerdict { expected: expected.clone(), share: own, instead }
}

fn unbalanced(report: &Report) -> Vec<String> {
    let mut wrong = Vec::new();
    for connection in &report.connections {
        for exchange in &connection.exchanges {
            let sum: Duration = exchange.bill.iter().map(|line| line.ns).sum();
            if sum != exchange.elapsed || exchange.bill.iter().any(|line| line.ns < Duration::ZERO) {
                let place = format!("connection {}, exchange {}", connection.id, exchange.n);
                wrong.push(format!("{place}: lines sum to {sum}, elapsed is {}", exchange.elapsed));
            }
        }
    }
    let sum: Duration = report.bill.iter().map(|line| line.ns).sum();
    if sum != report.elapsed {
        wrong.push(format!("the whole bill sums to {sum}, elapsed is {}", report.elapsed));
    }
    wrong
}
