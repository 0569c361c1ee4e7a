//! What concerns all shards: numbers in the order of first packets, and whom to give up when there are too many.
//!
//! At the end of an epoch every shard says what it has begun. At the end of the next, it gets told what that means, so
//! that no shard has to wait for the others. An epoch is a number of segments, so that the same happens at the same
//! packet however many shards there are.

use tcpwhy_wire::Instant;

use crate::report::Report;
use crate::shard::Shard;
use crate::{Options, listed};

/// Segments in an epoch: enough of them that a connection whose state has been fetched has some to be worked on, and no
/// more, for they have to be kept as well. What is to be listed is settled between epochs, so that the first ones are
/// short.
const EPOCH: std::ops::RangeInclusive<usize> = 1 << 15..=1 << 18;
const SEGMENTS_A_CONNECTION: usize = 32;
const FIRST_EPOCH: usize = 1 << 12;
/// Connections that an epoch may always have segments of.
const CONNECTIONS_MIN: usize = 64;
/// This part of the allowed connections is given up at once.
const EVICTED_SHARE: usize = 16;

/// How long an epoch is.
#[derive(Clone, Copy, Debug)]
pub struct Epoch {
    pub(crate) segments: usize,
    /// It ends before, with the segment that is of so many different connections.
    pub(crate) connections: usize,
}

/// What a shard says at the end of an epoch.
#[derive(Clone, Debug, Default)]
pub struct Roll {
    /// First packets of the connections that it has begun, in their order.
    pub(crate) opened: Vec<u64>,
    /// Connections open now.
    pub(crate) open: usize,
    /// Where it was asked: of each open connection the last time and the first packet.
    pub(crate) ages: Vec<(Instant, u64)>,
}

/// What a shard is told about an epoch.
#[derive(Clone, Debug, Default)]
pub struct Orders {
    /// Numbers for the connections in its roll.
    pub(crate) ids: Vec<u64>,
    /// Connections numbered so far, over all shards.
    pub(crate) count: u64,
    /// The capture's time, and its last packet.
    pub(crate) now: Instant,
    pub(crate) packet: u64,
    /// Give up connections up to this age.
    pub(crate) evicted: Option<(Instant, u64)>,
    /// Say the ages in the next roll.
    pub(crate) tell_ages: bool,
}

/// Numbers connections and keeps their number within bounds.
#[derive(Clone, Debug)]
pub struct Conductor {
    options: Options,
    count: u64,
    /// Epochs settled, and how many connections were open at the end of the last ones, by their number.
    settled: u32,
    open: [usize; 4],
}

impl Conductor {
    pub(crate) fn new(options: Options) -> Self {
        Self { options, count: 0, settled: 0, open: [0; 4] }
    }

    /// The epoch behind `before` others, of which all but the last must be settled.
    pub fn epoch(&self, before: u32) -> Epoch {
        let first = FIRST_EPOCH << before.min(16);
        let Some(known) = before.checked_sub(2) else { return self.bounded(first, 0) };
        debug_assert!(
            known < self.settled && self.settled - known <= 2,
            "an epoch is settled before the next one ends"
        );
        let open = self.open[known as usize % self.open.len()];
        let wanted = (open * SEGMENTS_A_CONNECTION).clamp(*EPOCH.start(), *EPOCH.end());
        self.bounded(wanted.min(first), open)
    }

    /// Four epochs pass until there is room again for the connections that one has begun: the nearer the limit, the fewer
    /// it may begin.
    fn bounded(&self, segments: usize, open: usize) -> Epoch {
        let limit = self.options.max_connections;
        let connections = (limit.saturating_sub(open) / 4).max(limit / 16).max(CONNECTIONS_MIN);
        Epoch { segments, connections }
    }

    /// Orders for each shard by what all of them say at the end of an epoch, at this time and packet.
    pub fn settle(&mut self, rolls: &[Roll], now: Instant, packet: u64) -> Vec<Orders> {
        let open: usize = rolls.iter().map(|roll| roll.open).sum();
        self.open[self.settled as usize % self.open.len()] = open;
        self.settled = self.settled.saturating_add(1);
        let over = open > self.options.max_connections;
        let evicted = over.then(|| youngest_evicted(rolls, self.options.max_connections)).flatten();
        let mut orders: Vec<Orders> = rolls
            .iter()
            .map(|roll| Orders {
                ids: Vec::with_capacity(roll.opened.len()),
                count: 0,
                now,
                packet,
                evicted,
                tell_ages: over,
            })
            .collect();
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
        for orders in &mut orders {
            orders.count = self.count;
        }
        orders
    }

    /// One report of what all shards have found. They have been told of the last epoch.
    pub fn report(&self, mut shards: Vec<Shard>, front: &crate::Front) -> Report {
        for shard in &mut shards {
            shard.close();
        }
        let mut shards = shards.into_iter();
        let mut report = Report::default();
        let Some(mut first) = shards.next() else { return report };
        for shard in shards {
            first.ledger.merge(shard.ledger);
            first.listed.extend(shard.listed);
            for (kind, (count, packet)) in shard.notes {
                let (all, first_packet) = first.notes.entry(kind).or_insert((0, packet));
                *all += count;
                *first_packet = packet.min(*first_packet);
            }
        }
        first.ledger.finish(&mut report);
        listed::put_into(&mut report, first.listed, self.options.listing, self.count);
        front.put_into(&mut report, first.notes);
        report
    }
}

/// The age up to which connections go, so that a part of the limit becomes free.
fn youngest_evicted(rolls: &[Roll], limit: usize) -> Option<(Instant, u64)> {
    let mut ages: Vec<_> = rolls.iter().flat_map(|roll| &roll.ages).copied().collect();
    let evicted = ages.len().checked_sub(limit - limit / EVICTED_SHARE)?.checked_sub(1)?;
    let (_, youngest, _) = ages.select_nth_unstable(evicted);
    Some(*youngest)
}
