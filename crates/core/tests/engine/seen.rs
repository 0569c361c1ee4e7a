//! What does the engine make of a capture, and how does a test say what it should be?

use std::fmt::Write as _;

use tcpwhy_core::Form;
use tcpwhy_core::Mark;
use tcpwhy_core::cause::{Cause, Side};
use tcpwhy_core::report::{Connection, Exchange, Kind, Line, Report};
use tcpwhy_wire::{Duration, Segment};

use crate::invariants;
use crate::packet_log::{End, PacketLog};

/// The tolerance of a line: the engine looks for a release within some margin, never to the ns.
pub(crate) const HAIR: Duration = Duration::from_micros(500);

/// One line of an expected bill.
pub(crate) type Cost = (Cause, Side, Duration);

/// A capture and its report.
pub(crate) struct Seen {
    pub from: String,
    pub segments: Vec<Segment>,
    pub report: Report,
}

impl PacketLog {
    pub(crate) fn seen_at(&self, end: End) -> Seen {
        Seen::of_marked(self.capture(end), self.marks(), &format!("the {end:?}"))
    }

    /// The same judgement on the captures at both ends.
    pub(crate) fn both_ends(&self, judge: impl Fn(&Seen)) {
        for end in End::BOTH {
            judge(&self.seen_at(end));
        }
    }
}

impl Seen {
    pub(crate) fn of(segments: Vec<Segment>, from: &str) -> Self {
        Self::of_marked(segments, |_| Vec::new(), from)
    }

    pub(crate) fn of_marked(
        mut segments: Vec<Segment>,
        marks: impl Fn(&Segment) -> Vec<Mark>,
        from: &str,
    ) -> Self {
        for (segment, packet) in segments.iter_mut().zip(1..) {
            segment.packet = packet;
        }
        let report = invariants::analyse_marked(&segments, marks);
        invariants::check(&report);
        Self { from: from.to_owned(), segments, report }
    }

    /// The only connection.
    pub(crate) fn connection(&self) -> &Connection {
        assert_eq!(self.report.connections.len(), 1, "{self}");
        &self.report.connections[0]
    }

    pub(crate) fn count(&self, kind: Kind) -> usize {
        self.connection().exchanges.iter().filter(|exchange| exchange.kind == kind).count()
    }

    pub(crate) fn setup(&self) -> Bill<'_> {
        self.nth(Kind::Setup, 1)
    }

    /// The n-th exchange of the only connection, from 1.
    pub(crate) fn exchange(&self, n: usize) -> Bill<'_> {
        self.nth(Kind::Exchange, n)
    }

    /// The exchange with this number.
    pub(crate) fn number(&self, n: u64) -> Bill<'_> {
        let exchange = self.connection().exchanges.iter().find(|exchange| exchange.n == n);
        Bill { seen: self, exchange: exchange.unwrap_or_else(|| panic!("no {n}: {self}")) }
    }

    pub(crate) fn one_way(&self, n: usize) -> Bill<'_> {
        self.nth(Kind::OneWay, n)
    }

    fn nth(&self, kind: Kind, n: usize) -> Bill<'_> {
        let mut all = self.connection().exchanges.iter().filter(|exchange| exchange.kind == kind);
        let exchange = all.nth(n - 1).unwrap_or_else(|| panic!("no {} {n}: {self}", kind.name()));
        Bill { seen: self, exchange }
    }

    /// All lines of the only connection's exchanges with this cause and side.
    pub(crate) fn lines(&self, cause: Cause, side: Side) -> Vec<&Line> {
        let of = |line: &&Line| line.cause == cause && line.side == side;
        self.connection().exchanges.iter().flat_map(|exchange| exchange.bill.iter().filter(of)).collect()
    }

    /// Their total.
    pub(crate) fn spent(&self, cause: Cause, side: Side) -> Duration {
        self.lines(cause, side).iter().map(|line| line.ns).sum()
    }

    /// The lines of a cause, of either end, above `least`.
    pub(crate) fn longer(&self, cause: Cause, least: Duration) -> Vec<&Line> {
        let of = |line: &&Line| line.cause == cause && line.ns > least;
        self.connection().exchanges.iter().flat_map(|exchange| exchange.bill.iter().filter(of)).collect()
    }

    /// The time billed to causes, of either end and any connection.
    fn billed(&self, causes: &[Cause]) -> Duration {
        let exchanges = self.report.connections.iter().flat_map(|connection| &connection.exchanges);
        let lines = exchanges.flat_map(|exchange| &exchange.bill);
        lines.filter(|line| causes.contains(&line.cause)).map(|line| line.ns).sum()
    }

    /// The time in queues on the path.
    pub(crate) fn queued(&self) -> Duration {
        self.billed(&[Cause::Queueing])
    }

    /// The time of repairs.
    pub(crate) fn lost(&self) -> Duration {
        self.billed(&[Cause::Rto, Cause::Loss])
    }

    /// The count of this note for the capture.
    pub(crate) fn notes(&self, kind: &str) -> u64 {
        self.report.notes.iter().find(|note| note.kind == kind).map_or(0, |note| note.count)
    }
}

impl std::fmt::Display for Seen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "\nseen from {}:", self.from)?;
        let start = self.segments.first().map(|segment| segment.at);
        for segment in &self.segments {
            writeln!(
                f,
                "  {:4} {:9.3} {} > {} {:?} seq {} ack {} win {} len {} sack {:?}",
                segment.packet,
                start.map_or(0.0, |start| (segment.at - start).as_millis_f64()),
                segment.src.port,
                segment.dst.port,
                segment.flags,
                segment.seq,
                segment.ack,
                segment.window,
                segment.payload_len,
                segment.options.sack(),
            )?;
        }
        for connection in &self.report.connections {
            writeln!(
                f,
                "connection {} {:?} rtt {:?}",
                connection.id, connection.vantage, connection.rtt_min
            )?;
            for exchange in &connection.exchanges {
                writeln!(
                    f,
                    "  {} {} by the {} {} (idle {}) {} + {} bytes, packets {:?}: {}",
                    exchange.kind.name(),
                    exchange.n,
                    exchange.initiator,
                    exchange.elapsed,
                    exchange.client_idle,
                    exchange.request_bytes,
                    exchange.reply_bytes,
                    exchange.packets,
                    show(&exchange.bill),
                )?;
            }
        }
        writeln!(f, "notes {:?}", self.report.notes)
    }
}

fn show(bill: &[Line]) -> String {
    let mut text = String::new();
    for line in bill {
        let form = line.detail.form.map_or("-", Form::name);
        let _ =
            write!(text, "{} {} {} ({}, {form}); ", line.cause, line.side, line.ns, line.confidence.name());
    }
    text
}

/// The bill of one exchange, with the capture it comes from.
#[derive(Clone, Copy)]
pub(crate) struct Bill<'a> {
    seen: &'a Seen,
    pub exchange: &'a Exchange,
}

impl Bill<'_> {
    /// These lines and no others, each within `tolerance`. Lines below that do not count.
    pub(crate) fn is(self, expected: &[Cost]) -> Self {
        self.is_within(HAIR, expected)
    }

    pub(crate) fn is_within(self, tolerance: Duration, expected: &[Cost]) -> Self {
        let total: Duration = expected.iter().map(|cost| cost.2).sum();
        self.elapsed(total, tolerance);
        for &(cause, side, ns) in expected {
            self.close(&format!("{cause} at the {side}"), self.ns(cause, side), ns, tolerance);
        }
        for line in &self.exchange.bill {
            let known = expected.iter().any(|&(cause, side, _)| (cause, side) == (line.cause, line.side));
            assert!(
                known || line.ns <= tolerance,
                "not expected: {} {} {}\n{}{}",
                line.cause,
                line.side,
                line.ns,
                show(&self.exchange.bill),
                self.seen
            );
        }
        self
    }

    pub(crate) fn elapsed(self, expected: Duration, tolerance: Duration) -> Self {
        self.close("elapsed", self.exchange.elapsed, expected, tolerance);
        self
    }

    /// The time billed to a cause at a side.
    pub(crate) fn ns(self, cause: Cause, side: Side) -> Duration {
        let lines = self.exchange.bill.iter().filter(|line| (line.cause, line.side) == (cause, side));
        lines.map(|line| line.ns).sum()
    }

    /// The line of a cause.
    pub(crate) fn of(&self, cause: Cause) -> &Line {
        let line = self.exchange.bill.iter().find(|line| line.cause == cause);
        line.unwrap_or_else(|| panic!("no {cause}: {}{}", show(&self.exchange.bill), self.seen))
    }

    /// Nothing was billed to this cause, for either side.
    pub(crate) fn never(self, cause: Cause) -> Self {
        assert!(
            !self.exchange.bill.iter().any(|line| line.cause == cause && line.ns > HAIR),
            "{cause} has no part in it: {}{}",
            show(&self.exchange.bill),
            self.seen
        );
        self
    }

    fn close(self, what: &str, seen: Duration, expected: Duration, tolerance: Duration) {
        let off = seen - expected;
        assert!(
            off.max(-off) <= tolerance,
            "{what}: {seen} instead of {expected}\n{}{}",
            show(&self.exchange.bill),
            self.seen
        );
    }
}
