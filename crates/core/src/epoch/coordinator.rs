//! What concerns all shards: the numbering of connections by first packet, and which connections and
//! servers to give up when there are too many.
//!
//! At the end of an epoch every shard reports what it has begun. It gets the resulting orders at the
//! end of the next one, so that no shard has to wait for the others. The end of an epoch is decided
//! before the shards (`new_connections.rs`), so that the same happens at the same packet however many
//! there are.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use tcpwhy_wire::{Duration, Endpoint, Instant};

use crate::epoch::budget::{Budget, CONNECTION, Others};
use crate::epoch::front::Front;
use crate::epoch::options::Options;
use crate::epoch::orders::{Asked, End, Epoch, Orders, Roll};
use crate::epoch::shard::Shard;
use crate::tally::ledger::Listing;
use crate::tally::listed;
use crate::tally::service::Services;
use crate::tally::tallied::Tallied;
use crate::tally::thinning::Kept;
use crate::words::limits::SERVERS_MAX;
use crate::words::report::Report;

/// Segments in an epoch: enough that a connection whose state has been fetched has several to work on,
/// but no more, since they must be kept. What to list is decided between epochs, so that the first ones
/// are short.
const EPOCH: std::ops::RangeInclusive<usize> = 1 << 15..=1 << 18;
const SEGMENTS_A_CONNECTION: usize = 32;
const FIRST_EPOCH: usize = 1 << 12;
/// An epoch may always have segments of this many connections.
const CONNECTIONS_MIN: usize = 64;
/// This part of the allowed connections, or servers, is given up at once.
const EVICTED_SHARE: usize = 8;
/// Servers given up beyond this number are not told apart: with the remaining ones, there are
/// thousands.
const SERVERS_COUNTED: usize = SERVERS_MAX;
/// Epochs whose finished connections may be remembered.
const FINISHED_EPOCHS: usize = 1 << 12;
/// Connections closed at the end of the capture before servers are counted again.
const CLOSED_AT_ONCE: usize = 16_384;

/// Numbers connections and keeps their number within bounds.
#[derive(Clone, Debug)]
pub struct Coordinator {
    listing: Listing,
    /// At most this many connections, if they are thinned.
    thinned_of: u64,
    budget: Budget,
    /// Connections that may be open.
    limit: usize,
    count: u64,
    /// The number of settled epochs, and what the last ones left, by epoch number.
    settled: u32,
    left: [Left; 4],
    /// Finished connections by epoch, as far back as they may be remembered.
    finished: VecDeque<usize>,
    /// A generation of path memories ended when the last epoch was settled, which the present rolls do
    /// not reflect yet.
    memories_age: bool,
    /// Servers with findings of their own, how many may have them, and the ones given up, as far as
    /// they are counted.
    servers: BTreeSet<Endpoint>,
    servers_max: usize,
    given_up: BTreeSet<Endpoint>,
    /// The ones given up when the last epoch was settled, which the present rolls do not reflect yet.
    leaving: Vec<Endpoint>,
    /// Services handed over by shards.
    services: Services,
    /// The level that lists are thinned to.
    level: u32,
    /// Bytes counted for everything kept when the last epoch was settled.
    counted: usize,
    /// The part of them that open connections do not take.
    others: usize,
}

/// What an epoch left to later ones. An epoch may begin before the last one is settled, so it may
/// depend only on the last but one: otherwise its length would depend on the number of threads.
#[derive(Clone, Copy, Debug, Default)]
struct Left {
    /// How many connections those open at its end counted for.
    open: usize,
    /// How many may be open.
    limit: usize,
}

impl Coordinator {
    pub(crate) fn new(options: Options) -> Self {
        let budget = Budget::new(&options);
        Self {
            listing: options.listing,
            thinned_of: Budget::thinned_of(options.memory),
            budget,
            limit: budget.connections(&Others::default()),
            finished: VecDeque::new(),
            count: 0,
            level: 0,
            counted: 0,
            others: 0,
            settled: 0,
            left: [Left::default(); 4],
            memories_age: false,
            servers: BTreeSet::new(),
            servers_max: SERVERS_MAX,
            given_up: BTreeSet::new(),
            leaving: Vec::new(),
            services: Services::new(),
        }
    }

    /// The epoch that follows `before` others, of which all but the last must be settled.
    pub fn epoch(&self, before: u32) -> Epoch {
        let first = FIRST_EPOCH << before.min(16);
        let Some(known) = before.checked_sub(2) else {
            return bounded(first, Left { open: 0, limit: self.budget.connections(&Others::default()) });
        };
        debug_assert!(
            known < self.settled && self.settled - known <= 2,
            "an epoch is settled before the next one ends"
        );
        let left = self.left[known as usize % self.left.len()];
        let wanted = (left.open * SEGMENTS_A_CONNECTION).clamp(*EPOCH.start(), *EPOCH.end());
        bounded(wanted.min(first), left)
    }

    /// Orders for each shard, from what all of them report at the end of an epoch.
    pub fn settle(&mut self, rolls: &mut [Roll], end: End) -> Vec<Orders> {
        let End { now, packet, heard } = end;
        let given_up = self.settle_servers(rolls);
        let open = rolls.iter().map(|roll| roll.open).sum::<usize>();
        let heap: usize = rolls.iter().map(|roll| roll.heap).sum();
        let open = open + with_gaps(heap) / CONNECTION;
        let settled = self.settled as usize % self.left.len();
        self.settled = self.settled.saturating_add(1);
        let finished_before = self.forget_finished(rolls.iter().map(|roll| roll.finished).sum());
        let others = self.others(rolls, heard);
        self.others = others.bytes();
        self.counted = open * CONNECTION + self.others;
        self.limit = self.budget.connections(&others);
        self.left[settled] = Left { open, limit: self.limit };
        let over = open > self.limit;
        let evicted = over.then(|| youngest_evicted(rolls, self.limit)).flatten();
        let listed: u64 = rolls.iter().map(|roll| roll.listed).sum();
        let full = self.budget.lists_are_full(others.lists);
        let listed_enough = matches!(self.listing, Listing::UpTo(most) if full || listed >= most);
        self.thin(rolls);
        let lists_bytes = self.budget.lists(open * CONNECTION, &others);
        let memories: usize = rolls.iter().map(|roll| roll.path_memories).sum();
        self.memories_age = !self.memories_age && memories >= self.budget.path_memories() / 2;
        let mut orders: Vec<Orders> = rolls
            .iter()
            .map(|roll| Orders {
                ids: Vec::with_capacity(roll.opened.len()),
                count: 0,
                now,
                packet,
                evicted,
                finished_before,
                listed_enough,
                level: self.level,
                lists_bytes,
                memories_age: self.memories_age,
                servers_max: self.servers_max,
                given_up: given_up.clone(),
                asked: Asked { ages: over, costs: self.servers.len() > self.servers_max },
            })
            .collect();
        self.number(rolls, &mut orders);
        orders
    }

    /// Raises the level by what is listed so far, for good, since only more comes. Exchanges waiting
    /// for numbers count while all connections are listed.
    fn thin(&mut self, rolls: &[Roll]) {
        let (Listing::Thinned(most) | Listing::Drawn(most)) = self.listing else { return };
        let opened: usize = rolls.iter().map(|roll| roll.opened.len()).sum();
        let are_all_listed = self.count + opened as u64 <= self.thinned_of;
        let mut kept = Kept::default();
        for roll in rolls {
            let [numbered, waiting] = &roll.kept;
            kept.add_all(numbered);
            if are_all_listed {
                kept.add_all(waiting);
            }
        }
        self.level = kept.level(self.level, most);
    }

    /// Numbers connections in the order in which they began.
    fn number(&mut self, rolls: &[Roll], orders: &mut [Orders]) {
        let mut heads = vec![0; rolls.len()];
        let next = |heads: &[usize]| {
            let firsts = rolls.iter().zip(heads).map(|(roll, &head)| roll.opened.get(head));
            firsts.enumerate().filter_map(|(i, first)| Some((*first?, i))).min()
        };
        while let Some((_, i)) = next(&heads) {
            self.count += 1;
            heads[i] += 1;
            orders[i].ids.push(self.count);
        }
        for orders in orders {
            orders.count = self.count;
        }
    }

    /// The bytes that all shards kept when the last epoch was settled.
    pub fn counted_bytes(&self) -> usize {
        self.counted
    }

    /// The part of them that open connections do not take.
    pub fn others_bytes(&self) -> usize {
        self.others
    }

    /// The size of the lists.
    fn lists(&self, rolls: &[Roll]) -> usize {
        let listed: u64 = rolls.iter().map(|roll| roll.listed).sum();
        match self.listing {
            Listing::None => 0,
            Listing::Connection(_) | Listing::Beginning(_) => {
                rolls.iter().map(|roll| roll.listed_bytes).sum()
            }
            Listing::UpTo(most) => {
                let listed = listed.min(most);
                Budget::listed(listed, listed.min(self.count))
            }
            Listing::Thinned(most) | Listing::Drawn(most) => {
                Budget::listed(listed.min(most as u64), self.count.min(self.thinned_of))
            }
        }
    }

    /// What there is besides open connections.
    fn others(&mut self, rolls: &[Roll], heard: usize) -> Others {
        let mut found = Tallied::default();
        for roll in rolls {
            found.add(roll.found);
        }
        let servers = self.servers.len();
        self.servers_max = self.budget.servers(servers, found);
        Others {
            heard,
            lists: self.lists(rolls),
            ways: rolls.iter().map(|roll| roll.ways).sum(),
            finished: self.finished.iter().sum(),
            servers,
            found,
            open: rolls.iter().map(|roll| roll.open).sum(),
        }
    }

    /// Takes the servers that shards hand over, and new ones. Returns the servers that are to share
    /// their findings. A server that is leaving is in neither: whether its shard still had it or began
    /// it anew depends on the number of shards.
    fn settle_servers(&mut self, rolls: &mut [Roll]) -> Vec<Endpoint> {
        for roll in &mut *rolls {
            self.services.take(std::mem::take(&mut roll.services));
        }
        self.services.give_up(&self.leaving);
        self.servers.extend(rolls.iter().flat_map(|roll| &roll.servers));
        for server in &self.leaving {
            self.servers.remove(server);
        }
        self.leaving = if rolls.iter().any(|roll| roll.tells_costs) {
            self.give_up(rolls.iter_mut().flat_map(|roll| std::mem::take(&mut roll.costs)))
        } else {
            Vec::new()
        };
        self.leaving.clone()
    }

    /// Notes how many connections finished in the epoch being settled. Returns the first epoch whose
    /// finished connections are still remembered.
    fn forget_finished(&mut self, finished: usize) -> u32 {
        self.finished.push_back(finished);
        let most = self.budget.finished();
        let mut sum: usize = self.finished.iter().sum();
        if sum > most {
            while let Some(first) = self.finished.pop_front_if(|_| sum > most - most / EVICTED_SHARE) {
                sum -= first;
            }
        }
        if self.finished.len() > FINISHED_EPOCHS {
            self.finished.pop_front();
        }
        self.settled.saturating_sub(self.finished.len() as u32)
    }

    /// Selects the servers that are to share their findings: those that cost least, enough to free a
    /// part of the limit.
    fn give_up(&mut self, costs: impl Iterator<Item = (Endpoint, Duration)>) -> Vec<Endpoint> {
        let mut sums: BTreeMap<Endpoint, Duration> = BTreeMap::new();
        let costs = costs.chain(self.services.costs());
        for (endpoint, cost) in costs.filter(|(endpoint, _)| self.servers.contains(endpoint)) {
            *sums.entry(endpoint).or_default() += cost;
        }
        let mut sums: Vec<(Duration, Endpoint)> =
            sums.into_iter().map(|(server, cost)| (cost, server)).collect();
        let kept = self.servers_max - self.servers_max / EVICTED_SHARE;
        let Some(last) = sums.len().checked_sub(kept + 1) else { return Vec::new() };
        sums.select_nth_unstable(last);
        let given_up: Vec<Endpoint> = sums[..=last].iter().map(|(_, server)| *server).collect();
        for server in &given_up {
            self.servers.remove(server);
            if self.given_up.len() <= SERVERS_COUNTED {
                self.given_up.insert(*server);
            }
        }
        self.services.give_up(&given_up);
        given_up
    }

    /// Closes all connections, but does not let each of them bring a server of its own.
    fn close(&mut self, shards: &mut [Shard]) {
        let mut open: Vec<u64> = shards.iter().flat_map(Shard::open).collect();
        open.sort_unstable();
        for part in open.chunks(CLOSED_AT_ONCE) {
            for shard in &mut *shards {
                shard.close(part.last().copied().unwrap_or(0));
                self.servers.extend(shard.ledger.services.take_begun());
                self.services.take(shard.ledger.services.hand_over(shard.servers_max));
            }
            if self.servers.len() > self.servers_max {
                let given_up = self.give_up(shards.iter().flat_map(|shard| shard.ledger.services.costs()));
                for shard in &mut *shards {
                    shard.ledger.services.give_up(&given_up);
                }
            }
        }
    }

    /// One report of what all shards have found. They must have had the orders for the last epoch.
    pub fn report(&mut self, mut shards: Vec<Shard>, front: &Front) -> Report {
        for shard in &mut shards {
            self.services.take(std::mem::take(&mut shard.handed_over));
        }
        self.close(&mut shards);
        let mut shards = shards.into_iter();
        let mut report = Report::default();
        let Some(mut first) = shards.next() else { return report };
        let mut listed = vec![first.listed];
        for shard in shards {
            first.ledger.merge(shard.ledger);
            listed.push(shard.listed);
            for (kind, (count, packet)) in shard.notes {
                let (all, first_packet) = first.notes.entry(kind).or_insert((0, packet));
                *all += count;
                *first_packet = packet.min(*first_packet);
            }
        }
        first.ledger.services.merge(std::mem::replace(&mut self.services, Services::new()));
        let exchanges = first.ledger.take_exchanges();
        first.ledger.finish(&mut report, std::mem::take(&mut self.given_up));
        listed::put_into(&mut report, listed, exchanges, self.listing, self.count);
        if report.elapsed == Duration::MAX {
            first.notes.insert("sums-over-limit", (1, 1)); // everything beyond is missing from every sum
        }
        front.put_into(&mut report, first.notes);
        report
    }
}

/// The size of a heap whose pieces of many sizes come and go: gaps add a quarter.
fn with_gaps(heap: usize) -> usize {
    heap + heap / 4
}

/// Four epochs pass until there is room again for the connections that one has begun: the closer the
/// limit, the fewer it may begin.
fn bounded(segments: usize, Left { open, limit }: Left) -> Epoch {
    let connections = (limit.saturating_sub(open) / 4).max(limit / 16).max(CONNECTIONS_MIN);
    Epoch { segments, connections }
}

/// The age up to which connections are closed, to free a part of the limit.
fn youngest_evicted(rolls: &[Roll], limit: usize) -> Option<(Instant, u64)> {
    let mut ages: Vec<_> = rolls.iter().flat_map(|roll| &roll.ages).copied().collect();
    ages.sort_unstable();
    let mut left = ages.iter().map(|(_, heap)| CONNECTION + with_gaps(*heap)).sum::<usize>();
    let kept = (limit - limit / EVICTED_SHARE) * CONNECTION;
    if left <= kept {
        return None;
    }
    let last = ages.iter().find(|(_, heap)| {
        left -= CONNECTION + with_gaps(*heap);
        left <= kept
    });
    last.map(|(age, _)| *age)
}
