//! Which connections and exchanges are shown one by one?
//!
//! Each shard keeps candidates. Which of them are shown, in the order of connections and of their
//! bills, is known at the end.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashSet};

use tcpwhy_wire::{Duration, Endpoint};

use crate::tally::ledger::Listing;
use crate::tally::listed_connections::{EXPENSIVE, ListedConnections};
use crate::tally::listed_exchange::ListedExchange;
use crate::tally::thinning::Kept;
use crate::words::report::{Connection, Finding, Kind, Report, Servers};

/// Puts the lists into the report, with the earliest exchanges up to the limit. Connections beyond it
/// have no number. There may be many of both, and large, so each is moved only once.
pub(crate) fn put_into(
    report: &mut Report,
    shards: Vec<ListedConnections>,
    mut exchanges: Vec<ListedExchange>,
    listing: Listing,
    count: u64,
) {
    if listing == Listing::None {
        return;
    }
    match listing {
        Listing::UpTo(most) => keep_earliest(&mut exchanges, usize::try_from(most).unwrap_or(usize::MAX)),
        Listing::Thinned(most) | Listing::Drawn(most) => {
            report.thinned = thin(&mut exchanges, report.thinned, most);
        }
        Listing::None | Listing::Connection(_) | Listing::Beginning(_) => {}
    }
    // A connection's exchanges stay in the order in which they were closed, except its setup, which may
    // be billed late.
    let places = exchanges.iter().enumerate();
    let places = places.map(|(at, listed)| (listed.connection, listed.exchange.kind != Kind::Setup, at));
    let mut order: Vec<(u64, bool, usize)> = places.collect();
    order.sort_unstable();
    let order: Vec<(u64, usize)> = order.into_iter().map(|(number, _, at)| (number, at)).collect();
    let (connections, counted): (Vec<_>, Vec<_>) =
        shards.into_iter().map(|shard| (shard.shown, shard.counted)).unzip();
    // They are visited in memory order: in the order of their numbers, each would be a cache miss.
    // Those beyond the limit have no number.
    let shown = || connections.iter().flatten().filter(|connection| connection.id != 0);
    let mut places = in_order(&connections);
    let billed = shown().map(|connection| connection.billed);
    let billed: u64 = billed.chain(counted.iter().map(|counted| counted.billed)).sum();
    report.omitted.exchanges = billed - order.len() as u64;
    if report.thinned > 0 {
        if places.len() as u64 + counted.iter().map(|counted| counted.connections).sum::<u64>() == count {
            let ends = shown().map(|connection| (connection.client.addr, connection.server));
            let others = counted.iter().flat_map(|counted| counted.asked.iter().copied());
            report.clients = clients(&report.findings, ends.chain(others));
        }
        let worst = report.findings.iter().map(|finding| finding.worst.0);
        leave_out(&mut places, shown(), &order, worst.collect());
    }
    report.omitted.connections = count - places.len() as u64;
    report.connections = taken(&places, connections);
    let mut exchanges: Vec<Option<ListedExchange>> = exchanges.into_iter().map(Some).collect();
    let mut order = order.as_slice();
    for connection in &mut report.connections {
        let own = order.iter().take_while(|(number, _)| *number == connection.id).count();
        let (these, rest) = order.split_at(own);
        order = rest;
        connection.exchanges.reserve_exact(own);
        connection
            .exchanges
            .extend(these.iter().filter_map(|(_, at)| exchanges[*at].take()).map(ListedExchange::shown));
    }
    debug_assert!(order.is_empty(), "an exchange is listed whose connection is not");
}

/// Where the connection with this number is.
struct Place {
    id: u64,
    shard: usize,
    at: usize,
}

/// Sorted by number.
fn in_order(shards: &[Vec<Connection>]) -> Vec<Place> {
    let mut places = Vec::with_capacity(shards.iter().map(Vec::len).sum());
    for (shard, connections) in shards.iter().enumerate() {
        let numbered = connections.iter().enumerate().filter(|(_, connection)| connection.id != 0);
        places.extend(numbered.map(|(at, connection)| Place { id: connection.id, shard, at }));
    }
    places.sort_unstable_by_key(|place| place.id);
    places
}

/// Drops connections of a thinned list that show nothing: no exchange, not the worst of a finding, and
/// not among the most expensive.
fn leave_out<'a>(
    places: &mut Vec<Place>,
    connections: impl Iterator<Item = &'a Connection>,
    exchanges: &[(u64, usize)],
    worst: BTreeSet<u64>,
) {
    let mut costs: Vec<(Reverse<Duration>, u64)> =
        connections.map(|connection| (Reverse(connection.cost()), connection.id)).collect();
    if costs.len() > EXPENSIVE {
        costs.select_nth_unstable(EXPENSIVE);
        costs.truncate(EXPENSIVE);
    }
    let mut shown = worst;
    shown.extend(costs.into_iter().map(|(_, id)| id));
    let lists = |id| exchanges.binary_search_by_key(&id, |(number, _)| *number).is_ok();
    places.retain(|place| shown.contains(&place.id) || lists(place.id));
}

/// How many hosts ask each server that has a finding.
fn clients(findings: &[Finding], asked: impl Iterator<Item = (u128, Endpoint)>) -> BTreeMap<Endpoint, u64> {
    let servers = findings.iter().filter_map(|finding| match finding.servers {
        Servers::One(server) => Some((server, HashSet::new())),
        Servers::Several(_) => None,
    });
    let mut hosts: BTreeMap<Endpoint, HashSet<u128>> = servers.collect();
    for (client, server) in asked {
        if let Some(hosts) = hosts.get_mut(&server) {
            hosts.insert(client);
        }
    }
    hosts.into_iter().map(|(server, hosts)| (server, hosts.len() as u64)).collect()
}

/// Takes the connections from these places.
fn taken(places: &[Place], shards: Vec<Vec<Connection>>) -> Vec<Connection> {
    let some = |connections: Vec<Connection>| connections.into_iter().map(Some).collect();
    let mut shards: Vec<Vec<Option<Connection>>> = shards.into_iter().map(some).collect();
    let mut all = Vec::with_capacity(places.len());
    all.extend(places.iter().filter_map(|place| shards[place.shard][place.at].take()));
    all
}

/// Of bills closed by the same packet, keeps those of the connection that began first.
fn keep_earliest(exchanges: &mut Vec<ListedExchange>, most: usize) {
    if exchanges.len() <= most {
        return;
    }
    let closed = |listed: &ListedExchange| (listed.packet, listed.connection, listed.exchange.n);
    let mut all: Vec<_> = exchanges.iter().map(closed).collect();
    let Some(last) = most.checked_sub(1) else { return exchanges.clear() };
    let (_, &mut last, _) = all.select_nth_unstable(last);
    exchanges.retain(|listed| closed(listed) <= last);
}

/// Keeps what the first level, from this one on, that leaves no more than `most` keeps, and returns
/// that level.
fn thin(exchanges: &mut Vec<ListedExchange>, from: u32, most: usize) -> u32 {
    let mut kept = Kept::default();
    for listed in &*exchanges {
        kept.add(listed.exchange.level());
    }
    let level = kept.level(from, most);
    exchanges.retain(|listed| listed.is_kept_by(level));
    level
}
