//! What must hold for every report, whatever the capture? (DESIGN: a bill's lines sum to its
//! elapsed time exactly, no interval belongs to two causes, sums are sums.)

use std::collections::{BTreeMap, BTreeSet};

use tcpwhy_core::Form;
use tcpwhy_core::cause::{Cause, Side};
use tcpwhy_core::report::{
    Confidence, Connection, Exchange, Kind, Line, Pairing, Report, Servers, TotalLine,
};
use tcpwhy_core::{Analysis, Listing, Mark, Options};
use tcpwhy_wire::{Duration, Endpoint, Segment};

/// Everything listed.
pub(crate) const EVERYTHING: Options = Options {
    listing: Listing::UpTo(u64::MAX),
    max_connections: 1_000_000,
    memory: 4_000_000_000,
    seed: 0,
    plain: false,
    checked: true,
};

/// A cause counts as found from here on (ledger): a millisecond or a twentieth of the bill.
const HIT_MIN: Duration = Duration::from_millis(1);
const HIT_SHARE: i64 = 20;

pub(crate) fn analyse<'a>(segments: impl IntoIterator<Item = &'a Segment>) -> Report {
    analyse_marked(segments, |_| Vec::new())
}

/// The same, with a reader of the protocol.
pub(crate) fn analyse_marked<'a>(
    segments: impl IntoIterator<Item = &'a Segment>,
    marks: impl Fn(&Segment) -> Vec<Mark>,
) -> Report {
    let mut analysis = Analysis::new(EVERYTHING);
    for segment in segments {
        analysis.on_marked(segment, &marks(segment));
    }
    analysis.finish()
}

/// Panics if a complete report (see [`EVERYTHING`]) breaks a rule.
pub(crate) fn check(report: &Report) {
    let mut totals = Sums::default();
    let mut found: BTreeMap<(Endpoint, Cause, Side), Vec<Duration>> = BTreeMap::new();
    let mut elapsed = Duration::ZERO;
    let mut kinds = [0; Kind::COUNT];
    let mut last_id = 0;
    for connection in &report.connections {
        assert!(connection.id > last_id, "connections in the order of their numbers");
        last_id = connection.id;
        let mut sums = Sums::default();
        for exchange in &connection.exchanges {
            check_exchange(connection, exchange);
            kinds[exchange.kind as usize] += 1;
            elapsed += exchange.elapsed;
            for line in &exchange.bill {
                sums.add(line);
                totals.add(line);
                if line.ns >= HIT_MIN || line.ns.times(HIT_SHARE) >= exchange.elapsed {
                    found.entry((connection.server, line.cause, line.side)).or_default().push(line.ns);
                }
            }
        }
        sums.assert_is(&connection.bill, "a connection's bill");
        let bytes: u64 = connection.exchanges.iter().map(|e| e.request_bytes + e.reply_bytes).sum();
        let seen: u64 = connection.bytes.iter().sum();
        assert!(bytes <= seen, "exchanges hold {bytes} bytes, the connection only {seen}");
    }
    assert_eq!(report.elapsed, elapsed, "elapsed time over everything");
    let told = [report.setups, report.exchanges, report.one_way, report.subscriptions];
    assert_eq!(told, kinds, "setups, exchanges, one-way messages, subscriptions");
    totals.assert_is(&report.bill, "the capture's bill");
    check_findings(report, found);
}

fn check_exchange(connection: &Connection, exchange: &Exchange) {
    let at = format!("connection {} exchange {}", connection.id, exchange.n);
    let sum: Duration = exchange.bill.iter().map(|line| line.ns).sum();
    assert_eq!(sum, exchange.elapsed, "{at}: the lines do not sum to the elapsed time");
    assert!(exchange.elapsed >= Duration::ZERO, "{at}: negative time");
    assert!(exchange.client_idle >= Duration::ZERO, "{at}: negative idle time");
    let mut seen = BTreeSet::new();
    for line in &exchange.bill {
        assert!(line.ns.is_positive(), "{at}: a line of {} ns", line.ns.as_nanos());
        assert!(seen.insert((line.cause, line.side)), "{at}: {} twice", line.cause);
        let sides = [Side::Client, Side::Server].map(|sender| line.cause.side(sender));
        let dropped = line.side == Side::Server && line.detail.form == Some(Form::AcceptQueue);
        assert!(dropped || sides.contains(&line.side), "{at}: {} at the {}", line.cause, line.side);
        let is_guess = exchange.by == Some(Pairing::Guess);
        assert!(
            !is_guess || line.confidence != Confidence::Certain,
            "{at}: certain by a guess: {}",
            line.cause
        );
        for packet in &line.evidence {
            let [first, last] = connection.packet_range;
            assert!((first..=last).contains(packet), "{at}: evidence {packet} of another connection");
        }
    }
    assert!(exchange.packets[0] <= exchange.packets[1], "{at}: packets {:?}", exchange.packets);
    if exchange.kind == Kind::OneWay {
        assert_eq!(exchange.reply_bytes, 0, "{at}: a one-way message has no reply");
    }
    if exchange.kind == Kind::Setup {
        assert_eq!(exchange.n, 0, "{at}: a setup comes first");
    }
}

fn check_findings(report: &Report, mut inputs: BTreeMap<(Endpoint, Cause, Side), Vec<Duration>>) {
    for finding in &report.findings {
        let Servers::One(endpoint) = finding.servers else { panic!("too few servers to share: {finding:?}") };
        let key = (endpoint, finding.cause, finding.side);
        let mut hits = inputs.remove(&key).unwrap_or_else(|| panic!("{key:?}: found twice or nowhere"));
        hits.sort_unstable();
        assert_eq!(finding.ns, hits.iter().copied().sum(), "{key:?}: time of the hits");
        assert_eq!(finding.hits, hits.len() as u64, "{key:?}: hits");
        assert!(finding.hits <= finding.of, "{key:?}: {} hits of {}", finding.hits, finding.of);
        for (percent, shown) in [(50, finding.p50), (99, finding.p99)] {
            let rank = (hits.len() * percent).div_ceil(100).max(1) - 1;
            let off = shown - hits[rank];
            assert!(
                off.max(-off).times(64) <= hits[rank].max(Duration::from_nanos(64)),
                "{key:?}: p{percent} {shown} instead of {}",
                hits[rank]
            );
        }
    }
    assert!(inputs.is_empty(), "not in the findings: {inputs:?}");
}

/// Time by cause and side, the possible part of it, and how often.
#[derive(Default)]
struct Sums(BTreeMap<(Cause, Side), (Duration, Duration, u64)>);

impl Sums {
    fn add(&mut self, line: &Line) {
        let sum = self.0.entry((line.cause, line.side)).or_default();
        sum.0 += line.ns;
        if line.confidence == Confidence::Possible {
            sum.1 += line.ns;
        }
        sum.2 += 1;
    }

    fn assert_is(&self, bill: &[TotalLine], what: &str) {
        let told = |l: &TotalLine| ((l.cause, l.side), (l.ns, l.possible, l.hits));
        let shown: BTreeMap<_, _> = bill.iter().map(told).collect();
        assert_eq!(shown, self.0, "{what} is not the sum of its parts");
        assert_eq!(shown.len(), bill.len(), "{what} has a line twice");
        assert!(bill.is_sorted_by(|a, b| a.ns >= b.ns), "{what} is not sorted");
    }
}
