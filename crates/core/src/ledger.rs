//! What do all the bills say together? Sums over the capture, findings by service, and the lists that were asked for.

use std::collections::BTreeMap;

use tcpwhy_wire::{Duration, Endpoint, Instant};

use crate::account::{Account, LineView};
use crate::cause::{Cause, Side};
use crate::report::{Confidence, Detail, Exchange, Finding, Kind, Report, TotalLine};
use crate::shard::{UNLISTED, UNNUMBERED};

/// A cause is found in an exchange when it took this much of it, or a twentieth.
const HIT_MIN: Duration = Duration::from_millis(1);
const HIT_SHARE: i64 = 20;
/// First hits whose packets are cited in a finding.
const EVIDENCE_HITS: usize = 3;
const EVIDENCE_MAX: usize = 12;

/// A finished setup, exchange or one-way message, besides its account.
pub(crate) struct Closed {
    pub connection: u64,
    pub service: usize,
    pub n: u64,
    pub kind: Kind,
    pub initiator: Side,
    pub start: Instant,
    pub client_idle: Duration,
    pub request_bytes: u64,
    pub reply_bytes: u64,
    pub packets: [u64; 2],
}

/// Which exchanges are listed one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listing {
    /// None: totals and findings only.
    None,
    /// Those of one connection, with its packet ladder.
    Connection(u64),
    /// All, up to this many; the rest is counted in [`crate::report::Omitted`].
    UpTo(u64),
}

/// Time by cause and side, and how often.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Totals {
    lines: [[(Duration, u64); 4]; Cause::COUNT],
}

impl Default for Totals {
    fn default() -> Self {
        Self { lines: [[(Duration::ZERO, 0); 4]; Cause::COUNT] }
    }
}

impl Totals {
    fn add(&mut self, line: LineView<'_>) {
        let (ns, hits) = &mut self.lines[line.cause() as usize][line.side() as usize];
        *ns += line.ns();
        *hits += 1;
    }

    fn merge(&mut self, other: &Self) {
        for (line, more) in self.lines.iter_mut().flatten().zip(other.lines.iter().flatten()) {
            line.0 += more.0;
            line.1 += more.1;
        }
    }

    pub(crate) fn to_lines(self) -> Vec<TotalLine> {
        let sides = [Side::Client, Side::Server, Side::Path, Side::Unknown];
        let mut lines: Vec<TotalLine> = Vec::new();
        for cause in Cause::ALL {
            for side in sides {
                let (ns, hits) = self.lines[cause as usize][side as usize];
                if hits > 0 {
                    lines.push(TotalLine { cause, side, ns, hits });
                }
            }
        }
        lines.sort_by_key(|line| std::cmp::Reverse(line.ns));
        lines
    }
}

/// The small form of [`Totals`] for a single connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct ConnectionTotals {
    lines: Vec<TotalLine>,
    /// Those that were kept, with the packet that closed each.
    pub exchanges: Vec<(u64, Exchange)>,
    /// All that were closed.
    pub closed: u64,
}

impl ConnectionTotals {
    fn add(&mut self, line: LineView<'_>) {
        if let Some(known) = self.lines.iter_mut().find(|l| l.cause == line.cause() && l.side == line.side())
        {
            known.ns += line.ns();
            known.hits += 1;
        } else {
            self.lines.push(TotalLine { cause: line.cause(), side: line.side(), ns: line.ns(), hits: 1 });
        }
    }

    /// The connection's bill, largest line first.
    pub(crate) fn bill(&self) -> Vec<TotalLine> {
        let mut lines = self.lines.clone();
        lines.sort_by(|a, b| b.ns.cmp(&a.ns).then(a.cause.cmp(&b.cause)).then(a.side.cmp(&b.side)));
        lines
    }
}

/// A hit in the order of capture: its first packet, and its number in the connection.
type Hit = (u64, u64);

/// One cause at one service.
#[derive(Clone, Debug)]
struct Found {
    cause: Cause,
    side: Side,
    hits: u64,
    ns: Duration,
    by_confidence: [Duration; 3],
    spread: Spread,
    kinds: [bool; 3],
    /// Of the hits that began first: what shows them.
    first: Vec<(Hit, Vec<u64>)>,
    worst_ns: Duration,
    worst: (u64, u64),
    worst_evidence: Vec<u64>,
    detail: Detail,
}

#[derive(Clone, Debug)]
struct Service {
    endpoint: Endpoint,
    kinds: [u64; 3],
    found: Vec<Found>,
    /// Where in `found` a cause and a side are, counted from 1.
    place: [u8; PLACES],
}

/// Causes times sides.
const PLACES: usize = Cause::COUNT * 4;

/// Collects finished exchanges.
#[derive(Clone, Debug)]
pub(crate) struct Ledger {
    listing: Listing,
    totals: Totals,
    elapsed: Duration,
    kinds: [u64; 3],
    services: Vec<Service>,
    service_of: BTreeMap<Endpoint, u32>,
    /// Exchanges kept of connections that have a number.
    listed: u64,
    /// They were enough when the epoch began; during an epoch, what comes first may come last.
    listed_enough: bool,
    connections: BTreeMap<u64, ConnectionTotals>,
    /// Connections that have their number, over all shards.
    numbered: u64,
    /// Findings whose worst hit is in a connection without a number: service, and place there.
    unnumbered: Vec<(u32, u8)>,
    /// The packet that is being worked on.
    pub packet: u64,
}

impl Ledger {
    pub(crate) fn new(listing: Listing) -> Self {
        Self {
            listing,
            totals: Totals::default(),
            elapsed: Duration::ZERO,
            kinds: [0; 3],
            services: Vec::new(),
            service_of: BTreeMap::new(),
            listed: 0,
            listed_enough: false,
            connections: BTreeMap::new(),
            numbered: 0,
            unnumbered: Vec::new(),
            packet: 0,
        }
    }

    /// The number under which a service's bills are collected.
    pub(crate) fn service(&mut self, endpoint: Endpoint) -> u32 {
        let services = &mut self.services;
        *self.service_of.entry(endpoint).or_insert_with(|| {
            services.push(Service { endpoint, kinds: [0; 3], found: Vec::new(), place: [0; PLACES] });
            services.len() as u32 - 1
        })
    }

    /// Whether the next connection's segments are to be kept as a ladder, `opened` behind those that have a number.
    pub(crate) fn wants_ladder(&self, opened: u64) -> bool {
        self.listing == Listing::Connection(self.numbered + opened + 1)
    }

    /// Whether the next connection may turn out to be listed, `opened` behind those that have a number.
    pub(crate) fn may_list(&self, opened: u64) -> bool {
        match self.listing {
            Listing::None => false,
            Listing::Connection(wanted) => self.numbered + opened < wanted,
            Listing::UpTo(most) => self.numbered + opened < most,
        }
    }

    /// Whether this connection is, or may be, listed at all.
    pub(crate) fn lists(&self, connection: u64) -> bool {
        match self.listing {
            Listing::None => false,
            _ if connection & UNNUMBERED != 0 => connection & UNLISTED == 0,
            Listing::Connection(wanted) => wanted == connection,
            Listing::UpTo(most) => connection <= most,
        }
    }

    /// Exchanges of a connection that was over before it got its number, and is listed.
    pub(crate) fn keep(&mut self, exchanges: usize) {
        self.listed += exchanges as u64;
    }

    /// Connections get their numbers, by which `count` have one.
    pub(crate) fn number(&mut self, count: u64, number: impl Fn(u64) -> u64) {
        let services = &mut self.services;
        self.unnumbered.retain(|&(service, place)| {
            let worst = &mut services[service as usize].found[usize::from(place)].worst.0;
            *worst = number(*worst);
            *worst & UNNUMBERED != 0
        });
        for (connection, totals) in self.connections.split_off(&UNNUMBERED) {
            let connection = number(connection);
            if self.lists(connection) {
                let numbered = connection & UNNUMBERED == 0;
                self.listed += if numbered { totals.exchanges.len() as u64 } else { 0 };
                self.connections.insert(connection, totals);
            }
        }
        self.numbered = count;
    }

    /// An epoch begins: what is closed from now on was closed by a later packet than all that is listed.
    pub(crate) fn begin_epoch(&mut self) {
        self.listed_enough = matches!(self.listing, Listing::UpTo(most) if self.listed >= most);
    }

    pub(crate) fn connection(&mut self, connection: u64) -> ConnectionTotals {
        self.connections.remove(&connection).unwrap_or_default()
    }

    /// Takes a finished setup, exchange or one-way message.
    pub(crate) fn close(&mut self, closed: &Closed, account: &Account) {
        let elapsed = account.total();
        debug_assert_eq!(
            elapsed,
            account.summary().map(LineView::ns).sum(),
            "a bill does not sum to its elapsed time"
        );
        self.elapsed += elapsed;
        self.kinds[closed.kind as usize] += 1;
        let service = &mut self.services[closed.service];
        service.kinds[closed.kind as usize] += 1;
        for line in account.summary() {
            self.totals.add(line);
            if line.ns() >= HIT_MIN || line.ns().times(HIT_SHARE) >= elapsed {
                let unnumbered = service.hit(closed, line);
                self.unnumbered.extend(unnumbered.map(|place| (closed.service as u32, place)));
            }
        }
        if !self.lists(closed.connection) {
            return;
        }
        let list = self.connections.entry(closed.connection).or_default();
        for line in account.summary() {
            list.add(line);
        }
        list.closed += 1;
        if self.listed_enough {
            return;
        }
        self.listed += u64::from(closed.connection & UNNUMBERED == 0);
        let exchange = Exchange {
            n: closed.n,
            kind: closed.kind,
            initiator: closed.initiator,
            start: closed.start,
            elapsed,
            client_idle: closed.client_idle,
            request_bytes: closed.request_bytes,
            reply_bytes: closed.reply_bytes,
            packets: closed.packets,
            bill: account.lines(),
        };
        list.exchanges.push((self.packet, exchange));
    }

    /// Takes over what another shard's ledger knows.
    pub(crate) fn merge(&mut self, other: Self) {
        self.totals.merge(&other.totals);
        self.elapsed += other.elapsed;
        add(&mut self.kinds, &other.kinds);
        for service in other.services {
            let known = self.service(service.endpoint) as usize;
            self.services[known].merge(service);
        }
    }

    /// Fills in everything that the ledger knows.
    pub(crate) fn finish(self, report: &mut Report) {
        report.elapsed = self.elapsed;
        [report.setups, report.exchanges, report.one_way] = self.kinds;
        report.bill = self.totals.to_lines();
        for service in self.services {
            for found in service.found {
                report.findings.push(found.finish(service.endpoint, &service.kinds));
            }
        }
        report.findings.sort_by(|a, b| {
            b.ns.cmp(&a.ns)
                .then(a.endpoint.cmp(&b.endpoint))
                .then(a.cause.cmp(&b.cause))
                .then(a.side.cmp(&b.side))
        });
    }
}

fn add(sums: &mut [u64; 3], more: &[u64; 3]) {
    for (sum, more) in sums.iter_mut().zip(more) {
        *sum += more;
    }
}

impl Service {
    /// The index of a cause in `found`.
    #[inline]
    fn place(&mut self, cause: Cause, side: Side) -> u8 {
        let place = &mut self.place[cause as usize * 4 + side as usize];
        if *place == 0 {
            self.found.push(Found::new(cause, side));
            *place = self.found.len() as u8;
        }
        *place - 1
    }

    fn merge(&mut self, other: Self) {
        add(&mut self.kinds, &other.kinds);
        for found in other.found {
            let place = self.place(found.cause, found.side);
            self.found[usize::from(place)].merge(found);
        }
    }

    /// Returns the place where a connection has to be numbered yet.
    fn hit(&mut self, closed: &Closed, line: LineView<'_>) -> Option<u8> {
        let i = self.place(line.cause(), line.side());
        let found = &mut self.found[usize::from(i)];
        let mut worst = false;
        found.hits += 1;
        found.ns += line.ns();
        found.by_confidence[line.confidence() as usize] += line.ns();
        found.spread.add(line.ns());
        found.kinds[closed.kind as usize] = true;
        let hit = (closed.packets[0], closed.n);
        if found.first.len() < EVIDENCE_HITS || found.first.last().is_some_and(|(last, _)| hit < *last) {
            found.put_first(hit, line.evidence().collect());
        }
        let this = (closed.connection, closed.n);
        if line.ns() > found.worst_ns || (line.ns() == found.worst_ns && this < found.worst) {
            found.worst_ns = line.ns();
            found.worst = this;
            worst = true;
            found.worst_evidence.clear();
            found.worst_evidence.extend(line.evidence());
            found.detail = line.detail();
        }
        (worst && closed.connection & UNNUMBERED != 0).then_some(i)
    }
}

impl Found {
    fn new(cause: Cause, side: Side) -> Self {
        Self {
            cause,
            side,
            hits: 0,
            ns: Duration::ZERO,
            by_confidence: [Duration::ZERO; 3],
            spread: Spread::default(),
            kinds: [false; 3],
            first: Vec::new(),
            worst_ns: Duration::from_nanos(-1),
            worst: (0, 0),
            worst_evidence: Vec::new(),
            detail: Detail::default(),
        }
    }

    /// Keeps the earliest hits.
    fn put_first(&mut self, hit: Hit, evidence: Vec<u64>) {
        let i = self.first.partition_point(|(known, _)| *known < hit);
        self.first.insert(i, (hit, evidence));
        self.first.truncate(EVIDENCE_HITS);
    }

    fn merge(&mut self, other: Self) {
        self.hits += other.hits;
        self.ns += other.ns;
        for (sum, more) in self.by_confidence.iter_mut().zip(other.by_confidence) {
            *sum += more;
        }
        self.spread.merge(&other.spread);
        for (kind, more) in self.kinds.iter_mut().zip(other.kinds) {
            *kind |= more;
        }
        for (hit, evidence) in other.first {
            self.put_first(hit, evidence);
        }
        let worse =
            other.worst_ns > self.worst_ns || (other.worst_ns == self.worst_ns && other.worst < self.worst);
        if worse {
            self.worst_ns = other.worst_ns;
            self.worst = other.worst;
            self.worst_evidence = other.worst_evidence;
            self.detail = other.detail;
        }
    }

    fn finish(self, endpoint: Endpoint, kinds: &[u64; 3]) -> Finding {
        let mut evidence = self.worst_evidence;
        for packet in self.first.into_iter().flat_map(|(_, evidence)| evidence) {
            if evidence.len() < EVIDENCE_MAX && !evidence.contains(&packet) {
                evidence.push(packet);
            }
        }
        evidence.sort_unstable();
        let [_, likely, certain] = self.by_confidence;
        let enough = self.ns - self.ns.divided_by(10);
        let confidence = if certain >= enough {
            Confidence::Certain
        } else if certain + likely >= enough {
            Confidence::Likely
        } else {
            Confidence::Possible
        };
        Finding {
            cause: self.cause,
            side: self.side,
            endpoint,
            hits: self.hits,
            of: kinds.iter().zip(self.kinds).filter(|(_, found)| *found).map(|(n, _)| n).sum(),
            ns: self.ns,
            p50: self.spread.percentile(50),
            p99: self.spread.percentile(99),
            confidence,
            evidence,
            worst: self.worst,
            detail: self.detail,
        }
    }
}

/// How a duration is spread over many exchanges: counts in steps of a 64th of an octave, exact below 64 ns.
#[derive(Clone, Debug, Default)]
struct Spread {
    /// By octave, from the shortest; those without a hit have no steps.
    octaves: Vec<Vec<u64>>,
    total: u64,
}

impl Spread {
    const STEP_BITS: u32 = 6;

    fn add(&mut self, ns: Duration) {
        let step = usize::from(Self::step(ns.as_nanos().max(0) as u64));
        let (octave, step) = (step >> Self::STEP_BITS, step & ((1 << Self::STEP_BITS) - 1));
        if self.octaves.len() <= octave {
            self.octaves.resize(octave + 1, Vec::new());
        }
        let steps = &mut self.octaves[octave];
        if steps.is_empty() {
            steps.resize(1 << Self::STEP_BITS, 0);
        }
        steps[step] += 1;
        self.total += 1;
    }

    fn merge(&mut self, other: &Self) {
        if self.octaves.len() < other.octaves.len() {
            self.octaves.resize(other.octaves.len(), Vec::new());
        }
        for (steps, more) in self.octaves.iter_mut().zip(&other.octaves) {
            steps.resize(steps.len().max(more.len()), 0);
            for (step, more) in steps.iter_mut().zip(more) {
                *step += more;
            }
        }
        self.total += other.total;
    }

    fn step(ns: u64) -> u16 {
        if ns < 1 << Self::STEP_BITS {
            return ns as u16;
        }
        let octave = ns.ilog2() - Self::STEP_BITS;
        let mantissa = (ns >> octave) as u16 & ((1 << Self::STEP_BITS) - 1);
        ((octave as u16 + 1) << Self::STEP_BITS) + mantissa
    }

    /// The middle of a step.
    fn value(step: u16) -> Duration {
        if step < 1 << Self::STEP_BITS {
            return Duration::from_nanos(i64::from(step));
        }
        let octave = u32::from(step >> Self::STEP_BITS) - 1;
        let mantissa = u64::from(step & ((1 << Self::STEP_BITS) - 1)) + (1 << Self::STEP_BITS);
        let middle = ((mantissa << 1) + 1) << octave >> 1;
        Duration::from_nanos(i64::try_from(middle).unwrap_or(i64::MAX))
    }

    /// Nearest-rank percentile.
    fn percentile(&self, percent: u64) -> Duration {
        let rank = (self.total * percent).div_ceil(100).max(1);
        let mut seen = 0;
        for (octave, steps) in self.octaves.iter().enumerate() {
            for (step, count) in steps.iter().enumerate() {
                seen += count;
                if seen >= rank {
                    return Self::value(((octave << Self::STEP_BITS) + step) as u16);
                }
            }
        }
        Duration::ZERO
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_within_a_sixty_fourth() {
        let mut spread = Spread::default();
        for ms in 1..=100 {
            spread.add(Duration::from_millis(ms));
        }
        for (percent, expected_ms) in [(50, 50.0), (99, 99.0), (100, 100.0)] {
            let shown = spread.percentile(percent).as_millis_f64();
            assert!((shown / expected_ms - 1.0f64).abs() < 1.0 / 64.0, "p{percent}: {shown}");
        }
    }
}
