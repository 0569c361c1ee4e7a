//! What was found at each server?
//!
//! A capture of a crawler, or a forged one, has a server in every other packet: only those that cost most
//! keep findings of their own, the others share theirs. Which ones is settled between epochs for all shards
//! together.

use std::collections::{BTreeMap, BTreeSet};

use tcpwhy_wire::{Duration, Endpoint};

use crate::bill::told::{Brief, Told};
use crate::estimate::histogram::Spread;
use crate::tally::alike::{Alike, FORMED};
use crate::tally::closed::{Closed, ServiceKey};
use crate::tally::tallied::Tallied;
use crate::tally::totals::Totals;
use crate::words::cause::{Cause, Side};
use crate::words::ids::UNNUMBERED;
use crate::words::report::{Confidence, Detail, Finding, Kind, Servers, SlowHits};

/// A cause is found in an exchange if it took at least this much of it, or a twentieth.
const HIT_MIN: Duration = Duration::from_millis(1);
const HIT_SHARE: i64 = 20;
/// The number of first hits whose packets a finding cites.
const EVIDENCE_HITS: usize = 3;
const EVIDENCE_MAX: usize = 12;

/// A hit in capture order: its first packet, and its number in the connection.
type Hit = (u64, u64);

/// One cause at one service.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Found {
    cause: Cause,
    side: Side,
    hits: u64,
    ns: Duration,
    by_confidence: [Duration; 3],
    spread: Spread,
    /// The total time of the exchanges that have it.
    elapsed: Duration,
    kinds: [bool; Kind::COUNT],
    /// The hits that began first, with the packets that show them.
    first: Vec<(Hit, Vec<u64>)>,
    worst_ns: Duration,
    worst: (u64, u64),
    worst_evidence: Vec<u64>,
    detail: Detail,
    /// The form of all its retransmissions, if it is the same.
    form: Alike,
}

/// What is known of one server's exchanges.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Service {
    endpoint: Endpoint,
    /// Tells it from others in the same place.
    generation: u32,
    /// The total of all its exchanges.
    elapsed: Duration,
    kinds: [u64; Kind::COUNT],
    elapsed_by_kind: [Duration; Kind::COUNT],
    found: Vec<Found>,
    /// Where in `found` a cause and a side are, counted from 1.
    place: [u8; PLACES],
}

/// Causes times sides.
const PLACES: usize = Cause::COUNT * 4;

/// The slot shared by all servers without a place of their own.
const OTHERS: u32 = 0;
/// More servers than this are too many to look at one by one ...
const SHOWN_ALL: usize = 16;
/// ... unless one takes this part of the time: less does not make a service slow.
const SHOWN_SHARE: i64 = 20;

/// The services of a shard.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Services {
    slots: Vec<Service>,
    free: Vec<u32>,
    slot_of: BTreeMap<Endpoint, u32>,
    /// The slot last used: connections between the same hosts follow each other.
    last: u32,
    /// Servers that have got a place since these were last taken.
    begun: Vec<Endpoint>,
    generation: u32,
    /// Findings whose worst hit is in a connection without a number: service, and place there.
    unnumbered: Vec<(u32, u8)>,
    /// Everything that was added up.
    pub(crate) tallied: Tallied,
}

impl Services {
    pub(crate) fn new() -> Self {
        let nobody = Endpoint { addr: 0, port: 0 };
        Self {
            slots: vec![Service::new(nobody, 0)],
            free: Vec::new(),
            slot_of: BTreeMap::new(),
            last: OTHERS,
            begun: Vec::new(),
            generation: 0,
            unnumbered: Vec::new(),
            tallied: Tallied::default(),
        }
    }

    /// Where the bills of this server are collected.
    pub(crate) fn key(&mut self, endpoint: Endpoint) -> ServiceKey {
        let slot = self.slot(endpoint);
        ServiceKey { slot, generation: self.slots[slot as usize].generation }
    }

    /// Whether that is still where they are.
    #[inline]
    pub(crate) fn holds(&self, key: ServiceKey) -> bool {
        self.slots[key.slot as usize].generation == key.generation
    }

    fn slot(&mut self, endpoint: Endpoint) -> u32 {
        let last = &self.slots[self.last as usize];
        if last.generation != 0 && last.endpoint == endpoint {
            return self.last;
        }
        self.last = self.find_slot(endpoint);
        self.last
    }

    fn find_slot(&mut self, endpoint: Endpoint) -> u32 {
        if let Some(slot) = self.slot_of.get(&endpoint) {
            return *slot;
        }
        self.generation = self.generation.wrapping_add(1).max(1);
        let service = Service::new(endpoint, self.generation);
        let slot = if let Some(slot) = self.free.pop() {
            self.slots[slot as usize] = service;
            slot
        } else {
            self.slots.push(service);
            self.slots.len() as u32 - 1
        };
        self.slot_of.insert(endpoint, slot);
        self.begun.push(endpoint);
        slot
    }

    /// Takes a finished setup, exchange or one-way message, and adds its lines to the `totals`. Returns
    /// whether it is the most expensive of a finding so far.
    #[inline]
    pub(crate) fn close(&mut self, closed: &Closed, bill: impl Told, totals: &mut Totals) -> bool {
        let elapsed = bill.total();
        let mut is_worst = false;
        let service = &mut self.slots[closed.service.slot as usize];
        service.elapsed += elapsed;
        service.kinds[closed.kind as usize] += 1;
        service.elapsed_by_kind[closed.kind as usize] += elapsed;
        for n in 0..bill.count() {
            let line = bill.brief(n);
            totals.add(line);
            if line.ns >= HIT_MIN || line.ns.times(HIT_SHARE) >= elapsed {
                self.tallied.values += 1;
                self.tallied.causes |= 1 << (line.cause as u32 % u64::BITS);
                let (octave, worst) = service.hit(closed, bill, n, line);
                self.tallied.octaves |= 1 << octave;
                if let Some(place) = worst {
                    is_worst = true;
                    if closed.connection & UNNUMBERED != 0 {
                        self.unnumbered.push((closed.service.slot, place));
                    }
                }
            }
        }
        is_worst
    }

    /// Numbers connections.
    pub(crate) fn number(&mut self, number: impl Fn(u64) -> u64) {
        let slots = &mut self.slots;
        self.unnumbered.retain(|&(slot, place)| {
            let worst = &mut slots[slot as usize].found[usize::from(place)].worst.0;
            *worst = number(*worst);
            *worst & UNNUMBERED != 0
        });
    }

    /// The servers that have got a place since the last call.
    pub(crate) fn take_begun(&mut self) -> Vec<Endpoint> {
        std::mem::take(&mut self.begun)
    }

    /// The cost of each server so far.
    pub(crate) fn costs(&self) -> impl Iterator<Item = (Endpoint, Duration)> {
        self.slot_of.iter().map(|(endpoint, slot)| (*endpoint, self.slots[*slot as usize].elapsed))
    }

    /// Makes these servers share their findings. Those that are not here are skipped.
    pub(crate) fn give_up(&mut self, servers: &[Endpoint]) {
        let mut given_up: Vec<u32> = Vec::new();
        for endpoint in servers {
            let Some(slot) = self.slot_of.remove(endpoint) else { continue };
            let service = std::mem::replace(&mut self.slots[slot as usize], Service::new(*endpoint, 0));
            given_up.push(slot);
            for place in self.slots[OTHERS as usize].merge(service) {
                self.unnumbered.push((OTHERS, place));
            }
        }
        given_up.sort_unstable();
        self.unnumbered.retain(|(slot, _)| given_up.binary_search(slot).is_err());
        self.free.extend(given_up);
    }

    /// If there are more servers than `most`, hands over those whose connections all have their numbers: they
    /// may come back, and are added up again.
    pub(crate) fn hand_over(&mut self, most: usize) -> Vec<Service> {
        if self.slot_of.len() <= most {
            return Vec::new();
        }
        let mut stay: Vec<u32> = self.unnumbered.iter().map(|(slot, _)| *slot).collect();
        stay.sort_unstable();
        let goes = |slot: u32| stay.binary_search(&slot).is_err();
        let mut handed_over = Vec::new();
        for (endpoint, slot) in self.slot_of.extract_if(.., |_, slot| goes(*slot)) {
            let service = std::mem::replace(&mut self.slots[slot as usize], Service::new(endpoint, 0));
            self.free.push(slot);
            handed_over.push(service);
        }
        handed_over
    }

    /// Adds services that others have handed over.
    pub(crate) fn take(&mut self, services: Vec<Service>) {
        for service in services {
            let known = self.slot(service.endpoint) as usize;
            self.slots[known].merge_all(Some(service));
        }
        self.begun.clear();
    }

    /// Takes over what another shard knows. All connections have their numbers.
    pub(crate) fn merge(&mut self, other: Self) {
        let mut slots = other.slots.into_iter();
        self.slots[OTHERS as usize].merge_all(slots.next());
        for service in slots.filter(|service| service.generation != 0) {
            let known = self.slot(service.endpoint) as usize;
            self.slots[known].merge_all(Some(service));
        }
    }

    /// The findings, most expensive first, of exchanges that took `elapsed` together. The servers in
    /// `given_up` were given up earlier.
    pub(crate) fn findings(mut self, elapsed: Duration, mut given_up: BTreeSet<Endpoint>) -> Vec<Finding> {
        if self.slot_of.len() > SHOWN_ALL || !given_up.is_empty() {
            let small = |(endpoint, cost): (Endpoint, Duration)| {
                (cost.times(SHOWN_SHARE) < elapsed).then_some(endpoint)
            };
            let small: Vec<Endpoint> = self.costs().filter_map(small).collect();
            if !given_up.is_empty() || small.len() > 1 {
                self.give_up(&small);
                given_up.extend(small);
            }
        }
        // Some of them may have come back and cost much.
        given_up.retain(|server| !self.slot_of.contains_key(server));
        let several = Servers::Several((given_up.len() as u64).min(Servers::COUNTED + 1));
        let mut findings = Vec::new();
        for service in self.slots.into_iter().filter(|service| !service.found.is_empty()) {
            let servers = match service.generation {
                0 => several,
                _ => Servers::One(service.endpoint),
            };
            findings.extend(
                service
                    .found
                    .into_iter()
                    .map(|found| found.finish(servers, &service.kinds, &service.elapsed_by_kind)),
            );
        }
        findings.sort_by(|a, b| {
            b.ns.cmp(&a.ns)
                .then(a.servers.cmp(&b.servers))
                .then(a.cause.cmp(&b.cause))
                .then(a.side.cmp(&b.side))
        });
        findings
    }
}

impl Service {
    /// The index of a cause in `found`.
    #[expect(clippy::inline_always, reason = "it is a look at a table, nearly always")]
    #[inline(always)]
    fn place(&mut self, cause: Cause, side: Side) -> u8 {
        let place = self.place[cause as usize * 4 + side as usize];
        if place == 0 { self.begin(cause, side) } else { place - 1 }
    }

    #[cold]
    fn begin(&mut self, cause: Cause, side: Side) -> u8 {
        // Most servers have one or two.
        self.found.reserve_exact(usize::from(self.found.len() < 4));
        self.found.push(Found::new(cause, side));
        let place = self.found.len() as u8;
        self.place[cause as usize * 4 + side as usize] = place;
        place - 1
    }

    const fn new(endpoint: Endpoint, generation: u32) -> Self {
        Self {
            endpoint,
            generation,
            elapsed: Duration::ZERO,
            kinds: [0; Kind::COUNT],
            elapsed_by_kind: [Duration::ZERO; Kind::COUNT],
            found: Vec::new(),
            place: [0; PLACES],
        }
    }

    /// Adds another service's findings. Returns the places where a connection has no number yet.
    fn merge(&mut self, other: Self) -> impl Iterator<Item = u8> {
        self.elapsed += other.elapsed;
        for (sum, more) in self.kinds.iter_mut().zip(other.kinds) {
            *sum += more;
        }
        for (sum, more) in self.elapsed_by_kind.iter_mut().zip(other.elapsed_by_kind) {
            *sum += more;
        }
        other.found.into_iter().filter_map(|found| {
            let place = self.place(found.cause, found.side);
            let all = &mut self.found[usize::from(place)];
            all.merge(found);
            (all.worst.0 & UNNUMBERED != 0).then_some(place)
        })
    }

    /// The same if all connections have their numbers.
    fn merge_all(&mut self, other: Option<Self>) {
        if let Some(other) = other {
            self.merge(other).for_each(drop);
        }
    }

    /// Takes the n-th line. Returns its octave, and its place if it is the most expensive there so far.
    #[inline]
    fn hit(&mut self, closed: &Closed, bill: impl Told, n: usize, line: Brief) -> (usize, Option<u8>) {
        let i = self.place(line.cause, line.side);
        let found = &mut self.found[usize::from(i)];
        let mut worst = false;
        found.hits += 1;
        found.ns += line.ns;
        found.by_confidence[line.confidence as usize] += line.ns;
        let octave = found.spread.add(line.ns);
        found.elapsed += bill.total();
        found.kinds[closed.kind as usize] = true;
        if FORMED & line.cause.bit() != 0 {
            found.form = found.form.and(Alike::One(bill.detail(n).form));
        }
        let hit = (closed.packets[0], closed.n);
        if found.first.len() < EVIDENCE_HITS || found.first.last().is_some_and(|(last, _)| hit < *last) {
            found.put_first(hit, bill.cited(n));
        }
        let this = (closed.connection, closed.n);
        if line.ns > found.worst_ns || (line.ns == found.worst_ns && this < found.worst) {
            found.worst_ns = line.ns;
            found.worst = this;
            worst = true;
            found.worst_evidence = bill.cited(n);
            found.detail = Detail { round: closed.round, ..bill.detail(n) };
        }
        (octave, worst.then_some(i))
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
            elapsed: Duration::ZERO,
            kinds: [false; Kind::COUNT],
            first: Vec::new(),
            worst_ns: Duration::from_nanos(-1),
            worst: (0, 0),
            worst_evidence: Vec::new(),
            detail: Detail::default(),
            form: Alike::default(),
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
        self.elapsed += other.elapsed;
        self.form = self.form.and(other.form);
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

    fn finish(
        mut self,
        servers: Servers,
        kinds: &[u64; Kind::COUNT],
        elapsed: &[Duration; Kind::COUNT],
    ) -> Finding {
        let evidence = self.take_evidence();
        if self.form == Alike::No {
            self.detail.form = None; // the most expensive hit's is not that of all
        }
        let [_, likely, certain] = self.by_confidence;
        let enough = self.ns - self.ns.divided_by(10);
        let confidence = if certain >= enough {
            Confidence::Certain
        } else if certain + likely >= enough {
            Confidence::Likely
        } else {
            Confidence::Possible
        };
        let of: u64 = kinds.iter().zip(self.kinds).filter(|(_, found)| *found).map(|(n, _)| n).sum();
        let elapsed: Duration =
            elapsed.iter().zip(self.kinds).filter(|(_, found)| *found).map(|(ns, _)| *ns).sum();
        let without = of - self.hits.min(of);
        Finding {
            cause: self.cause,
            side: self.side,
            servers,
            hits: self.hits,
            of,
            ns: self.ns,
            p50: self.spread.percentile(50),
            p99: self.spread.percentile(99),
            max: self.worst_ns,
            slow: self.spread.slow_part().map(|slow| SlowHits {
                hits: slow.count,
                p50: slow.median,
                rest_p50: slow.median_of_rest,
            }),
            without: (without > 0)
                .then(|| (elapsed - self.elapsed).divided_by(i64::try_from(without).unwrap_or(i64::MAX))),
            confidence,
            evidence,
            worst: self.worst,
            detail: self.detail,
        }
    }

    /// The packets of the most expensive hit first, then those of the first ones.
    fn take_evidence(&mut self) -> Vec<u64> {
        let mut evidence = std::mem::take(&mut self.worst_evidence);
        for packet in std::mem::take(&mut self.first).into_iter().flat_map(|(_, evidence)| evidence) {
            if evidence.len() < EVIDENCE_MAX && !evidence.contains(&packet) {
                evidence.push(packet);
            }
        }
        evidence
    }
}
