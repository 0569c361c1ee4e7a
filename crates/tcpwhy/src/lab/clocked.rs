//! What did the application measure with its own clock?

use tcpwhy_core::report::Kind;
use tcpwhy_lab::scenario::{Expect, Span};
use tcpwhy_lab::truth::{self, Truth};
use tcpwhy_wire::Duration;

use super::form::Run;

/// All waits of the client in one run, each list in order of time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Clocked {
    pub(super) setups: Vec<Duration>,
    pub(super) exchanges: Vec<Duration>,
    pub(super) one_way: Vec<Duration>,
}

impl Clocked {
    pub(super) fn of(truth: &Truth) -> Self {
        let of = |kind| {
            let wanted = truth.exchanges().filter(move |exchange| exchange.kind == kind);
            wanted.map(|exchange| Duration::from_nanos(exchange.elapsed_ns)).collect()
        };
        let setups = truth.connections.iter().filter(|connection| connection.setup.error.is_none());
        Self {
            setups: setups.map(|connection| Duration::from_nanos(connection.setup.elapsed_ns)).collect(),
            exchanges: of(truth::Kind::Exchange),
            one_way: of(truth::Kind::OneWay),
        }
    }

    pub(super) fn kind(&self, kind: Kind) -> &[Duration] {
        match kind {
            Kind::Setup => &self.setups,
            Kind::Exchange | Kind::Subscription => &self.exchanges,
            Kind::OneWay => &self.one_way,
        }
    }
}

/// The one number that a scenario is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Headline {
    pub(super) kind: Kind,
    /// The longest one, not the median: only one of them meets the problem.
    pub(super) slowest: bool,
}

impl Headline {
    pub(super) fn of(expect: &Expect) -> Self {
        let kind = match expect {
            Expect { exchange: None, slowest: None, one_way: Some(_), .. } => Kind::OneWay,
            Expect { exchange: None, slowest: None, setup: Some(_), .. } => Kind::Setup,
            _ => Kind::Exchange,
        };
        Self { kind, slowest: kind == Kind::Exchange && expect.slowest.is_some() }
    }

    /// The expected value.
    pub(super) fn expected(self, expect: &Expect) -> Option<Span> {
        let stated = match self.kind {
            Kind::Setup => expect.setup,
            Kind::OneWay => expect.one_way,
            Kind::Exchange if self.slowest => expect.slowest,
            Kind::Exchange | Kind::Subscription => expect.exchange,
        };
        stated.filter(|span| !span.is_anything())
    }

    /// Whether `--set` has changed a scenario so that its stated figures no longer apply.
    pub(super) fn is_unstated(expect: &Expect) -> bool {
        [expect.exchange, expect.slowest, expect.one_way, expect.setup]
            .iter()
            .flatten()
            .any(|span| span.is_anything())
    }

    pub(super) fn measured(self, clocked: &Clocked) -> Option<Duration> {
        let spread = Spread::of(clocked.kind(self.kind).iter().copied())?;
        Some(if self.slowest { spread.max } else { spread.median })
    }

    /// The median connect of several runs, if the prediction for the transfer includes it.
    pub(super) fn connect(runs: &[Run]) -> Option<Duration> {
        let connects = runs.first()?.scenario.transfer?.connects;
        let setups = runs.iter().flat_map(|run| run.clocked.setups.iter().copied());
        Spread::of(setups).filter(|_| connects).map(|spread| spread.median)
    }

    pub(super) fn name(self) -> &'static str {
        match self.kind {
            Kind::Setup => "connect",
            Kind::OneWay => "one-way message",
            Kind::Exchange if self.slowest => "slowest exchange",
            Kind::Exchange | Kind::Subscription => "exchange",
        }
    }
}

/// Median and spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spread {
    pub(super) median: Duration,
    pub(super) min: Duration,
    pub(super) max: Duration,
}

impl Spread {
    pub(super) fn of(values: impl IntoIterator<Item = Duration>) -> Option<Self> {
        let mut values: Vec<Duration> = values.into_iter().collect();
        values.sort_unstable();
        let (min, max) = (*values.first()?, *values.last()?);
        Some(Self { median: values[values.len() / 2], min, max })
    }
}
