//! What do all the bills add up to? Sums over the capture, findings by service, and the lists that were
//! asked for.

use std::collections::BTreeSet;

use tcpwhy_wire::{Duration, Endpoint};

use crate::bill::account::Account;
use crate::bill::line::Bill;
use crate::bill::places::Places;
use crate::bill::told::Told;
use crate::tally::closed::Closed;
use crate::tally::listed_exchange::ListedExchange;
use crate::tally::numbers::ByNumber;
use crate::tally::service::Services;
use crate::tally::thinning::{self, Kept};
use crate::tally::totals::{ConnectionTotals, Totals};
use crate::words::ids::{UNLISTED, UNNUMBERED};
use crate::words::report::{Exchange, Kind, Line, Report};
use crate::words::steps::STEP;

/// A listed exchange: four lines take the space of two with the packets that they cite.
pub(crate) const LISTED: usize = size_of::<(u64, Exchange)>() + 4 * size_of::<Line>();

/// At most this many connections are listed with their ladders.
pub const LADDERS_MAX: usize = 16;

/// If all connections have ladders, these cover this many packets.
pub const DRAWN_PACKETS: u64 = 1 << 17;
/// Their approximate size in bytes.
pub const DRAWN_BYTES: usize = DRAWN_PACKETS as usize * STEP;

/// Which exchanges are listed one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listing {
    /// None: totals and findings only.
    None,
    /// Those of one connection, with its packet ladder.
    Connection(u64),
    /// Those of the connections that begin with these packets, with their ladders; 0 is none.
    /// Connections of other pairs of hosts may be missing: the output for these is the same.
    Beginning([u64; LADDERS_MAX]),
    /// All, up to this many; the rest is counted in [`crate::words::report::Omitted`].
    UpTo(u64),
    /// At most this many of the whole capture, slow ones more likely ([`crate::stands_for`]). Only from
    /// the first 200,000 connections, or as many as the memory has room for.
    Thinned(usize),
    /// The same, with the ladders of all connections, as far as these lie within the first
    /// [`DRAWN_PACKETS`] packets.
    Drawn(usize),
}

impl Listing {
    /// Whether it keeps packets.
    pub const fn has_ladders(self) -> bool {
        matches!(self, Self::Connection(_) | Self::Beginning(_))
    }
}

/// Collects finished exchanges.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ledger {
    listing: Listing,
    /// From at most this many connections, if lists are thinned.
    thinned_of: u64,
    totals: Totals,
    elapsed: Duration,
    by_clock: Duration,
    kinds: [u64; Kind::COUNT],
    pub services: Services,
    /// Exchanges that are listed, in the order in which they were closed, and those that will be if
    /// their connections get a listed number.
    exchanges: Vec<ListedExchange>,
    unnumbered_exchanges: Vec<ListedExchange>,
    /// The number of exchanges kept of numbered connections.
    listed: u64,
    /// The size of the lists of the one connection that was asked for, and its limit.
    lists_bytes: usize,
    lists_bytes_max: usize,
    /// There were enough when the epoch began; during an epoch, what comes first may come last.
    listed_enough: bool,
    /// The level that exchanges must pass, the one that all listed exchanges have passed, and how many
    /// pass each.
    level: u32,
    thinned: u32,
    kept: Kept,
    /// The same for exchanges whose connections have no number yet.
    waiting: Kept,
    /// For a bill that is drawn up at once; empty in between.
    pub scratch: Account,
    /// For exchanges that begin.
    pub places: Places,
    connections: ByNumber<ConnectionTotals>,
    /// Those without a number yet, by their first packets.
    unnumbered: ByNumber<ConnectionTotals>,
    /// Numbers of the connections that were asked for by their first packets.
    chosen: Vec<u64>,
    /// Connections numbered so far in all shards.
    numbered: u64,
    /// The packet being worked on.
    pub packet: u64,
}

impl Ledger {
    /// The lists of the one connection that is asked for may take so many bytes, until a new limit is
    /// set.
    pub(crate) fn new(listing: Listing, thinned_of: u64, lists_bytes_max: usize) -> Self {
        Self {
            thinned_of,
            lists_bytes: 0,
            lists_bytes_max,
            listing,
            totals: Totals::default(),
            elapsed: Duration::ZERO,
            by_clock: Duration::ZERO,
            kinds: [0; Kind::COUNT],
            services: Services::new(),
            exchanges: Vec::new(),
            unnumbered_exchanges: Vec::new(),
            listed: 0,
            listed_enough: false,
            level: 0,
            thinned: 0,
            kept: Kept::default(),
            waiting: Kept::default(),
            scratch: Account::default(),
            places: Places::default(),
            connections: ByNumber::default(),
            unnumbered: ByNumber::default(),
            chosen: Vec::new(),
            numbered: 0,
            packet: 0,
        }
    }

    /// Whether the next connection, `opened` after the numbered ones, is to have a ladder.
    pub(crate) fn wants_ladder(&self, opened: u64) -> bool {
        self.listing == Listing::Connection(self.numbered + opened + 1)
    }

    /// Whether the connection that begins with this packet was asked for by it.
    pub(crate) fn is_chosen(&self, packet: u64) -> bool {
        matches!(&self.listing, Listing::Beginning(packets) if packets.contains(&packet))
    }

    /// Whether any connection that begins with this packet has a ladder.
    pub(crate) fn draws(&self, packet: u64) -> bool {
        self.draws_all() && packet <= DRAWN_PACKETS
    }

    /// Whether all connections have ladders.
    pub(crate) fn draws_all(&self) -> bool {
        matches!(self.listing, Listing::Drawn(_))
    }

    /// Notes the number of the connection that began with this packet.
    pub(crate) fn name(&mut self, packet: u64, number: u64) {
        if self.is_chosen(packet) {
            self.chosen.push(number);
        }
    }

    /// How many of the next numbers are listed, after `opened` connections that have none yet, for a
    /// connection that begins with this packet.
    pub(crate) fn listed_next(&self, opened: u64, packet: u64) -> u64 {
        let most = match self.listing {
            Listing::Beginning(_) if self.is_chosen(packet) => u64::MAX,
            Listing::None | Listing::Beginning(_) => 0,
            Listing::Connection(most) | Listing::UpTo(most) => most,
            Listing::Thinned(_) | Listing::Drawn(_) => self.thinned_of,
        };
        most.saturating_sub(self.numbered + opened)
    }

    /// Whether this connection is, or may be, listed at all.
    pub(crate) fn lists(&self, connection: u64) -> bool {
        match self.listing {
            Listing::None => false,
            _ if connection & UNNUMBERED != 0 => connection & UNLISTED == 0,
            Listing::Connection(wanted) => wanted == connection,
            Listing::Beginning(_) => self.chosen.contains(&connection),
            Listing::UpTo(most) => connection <= most,
            Listing::Thinned(_) | Listing::Drawn(_) => connection <= self.thinned_of,
        }
    }

    /// From now on, keeps only what this level keeps, or a higher level that is known here, which is
    /// returned if it has risen. That includes what is listed so far.
    pub(crate) fn thin(&mut self, level: u32) -> Option<u32> {
        self.level = level.max(self.level);
        if self.level <= self.thinned {
            return None;
        }
        self.thinned = self.level;
        for exchanges in [&mut self.exchanges, &mut self.unnumbered_exchanges] {
            exchanges.retain(|listed| listed.is_kept_by(self.level));
        }
        Some(self.level)
    }

    /// How many are listed, for the level of all shards, and how many will be if their connections get
    /// listed numbers.
    pub(crate) fn kept(&self) -> [Kept; 2] {
        [self.kept, self.waiting]
    }

    /// Numbers connections, of which `count` then have a number.
    pub(crate) fn number(&mut self, count: u64, number: impl Fn(u64) -> u64) {
        self.services.number(&number);
        for (connection, totals) in std::mem::take(&mut self.unnumbered) {
            let connection = number(connection);
            if self.lists(connection) {
                *self.list_of(connection) = totals;
            }
        }
        self.number_exchanges(number);
        self.numbered = count;
    }

    /// Counts the exchanges of connections that got a listed number as listed. The others stay where
    /// they are, in memory that the next epoch needs again.
    fn number_exchanges(&mut self, number: impl Fn(u64) -> u64) {
        let mut waiting = std::mem::take(&mut self.unnumbered_exchanges);
        let numbered = waiting.extract_if(.., |listed| {
            listed.connection = number(listed.connection);
            listed.connection & UNNUMBERED == 0
        });
        for listed in numbered {
            if matches!(self.listing, Listing::Thinned(_) | Listing::Drawn(_)) {
                self.waiting.take(listed.exchange.level());
            }
            if !self.lists(listed.connection) || !listed.is_kept_by(self.level) {
                continue;
            }
            self.listed += 1;
            self.lists_bytes += LISTED;
            self.count_kept(listed.exchange.level());
            self.exchanges.push(listed);
        }
        self.unnumbered_exchanges = waiting;
    }

    /// Counts one more listed exchange of a numbered connection, which this level is the last one to
    /// keep.
    fn count_kept(&mut self, level: u32) {
        if let Listing::Thinned(most) | Listing::Drawn(most) = self.listing {
            self.kept.add(level);
            self.level = self.kept.level(self.level, most);
        }
    }

    /// Whether a finished connection may be shown, for its exchanges or in a finding: later levels do
    /// not bring back what one leaves out.
    pub(crate) fn may_show(&self, totals: &ConnectionTotals) -> bool {
        totals.shown_until() >= self.level
    }

    /// The exchanges kept, once all connections have their numbers.
    pub(crate) fn take_exchanges(&mut self) -> Vec<ListedExchange> {
        std::mem::take(&mut self.exchanges)
    }

    /// Takes orders. What they close was closed by a later packet than everything listed when they were
    /// given, so they say whether that is `enough`; the epoch passed since then has later ones.
    pub(crate) fn begin_orders(&mut self, enough: bool, lists_bytes_max: usize) {
        self.listed_enough = enough;
        self.lists_bytes_max = lists_bytes_max;
    }

    /// Begins an epoch: what is closed from now on is closed by a later packet than everything listed
    /// here.
    pub(crate) fn begin_epoch(&mut self) {
        self.listed_enough |= matches!(self.listing, Listing::UpTo(most) if self.listed >= most);
    }

    /// The number of exchanges kept of numbered connections.
    pub(crate) fn listed(&self) -> u64 {
        self.listed
    }

    /// The size of the lists of the one connection.
    pub(crate) fn lists_bytes(&self) -> usize {
        self.lists_bytes
    }

    /// Whether the lists of the one connection have room for so many more bytes, which are then taken.
    pub(crate) fn has_room(&mut self, bytes: usize) -> bool {
        let room = self.lists_bytes + bytes <= self.lists_bytes_max;
        self.lists_bytes += if room { bytes } else { 0 };
        room
    }

    /// Whether its connection's ladder has room for the packet being worked on, which takes so many
    /// bytes.
    pub(crate) fn has_room_for_rung(&mut self, bytes: usize) -> bool {
        match self.listing {
            Listing::Drawn(_) => self.packet <= DRAWN_PACKETS,
            _ => self.has_room(bytes),
        }
    }

    pub(crate) fn connection(&mut self, connection: u64) -> ConnectionTotals {
        let known = if connection & UNNUMBERED == 0 {
            self.connections.remove(&connection)
        } else {
            self.unnumbered.remove(&connection)
        };
        known.unwrap_or_default()
    }

    /// Takes a finished setup, exchange or one-way message.
    pub(crate) fn close(&mut self, closed: &Closed, bill: impl Told) {
        let elapsed = bill.total();
        debug_assert_eq!(
            elapsed,
            (0..bill.count()).map(|n| bill.brief(n).ns).sum(),
            "a bill does not sum to its elapsed time"
        );
        self.elapsed += elapsed;
        let by_clock = closed.by_clock.unwrap_or(elapsed);
        self.by_clock += by_clock;
        self.kinds[closed.kind as usize] += 1;
        let is_worst = self.services.close(closed, bill, &mut self.totals);
        if !self.lists(closed.connection) {
            return;
        }
        let list = self.list_of(closed.connection);
        for n in 0..bill.count() {
            list.add(bill.brief(n));
        }
        list.closed += 1;
        list.by_clock += by_clock;
        list.was_worst |= is_worst;
        if self.listed_enough {
            return;
        }
        bill.in_full(|bill| self.list(closed, bill));
    }

    /// Whether its connection has all exchanges that may be listed from earlier packets.
    fn has_enough_of(&mut self, connection: u64) -> bool {
        let Listing::UpTo(most) = self.listing else { return false };
        let packet = self.packet;
        let list = self.list_of(connection);
        if list.closed == most {
            list.enough_at = packet;
        }
        list.closed > most && packet > list.enough_at
    }

    #[inline]
    fn list_of(&mut self, connection: u64) -> &mut ConnectionTotals {
        if connection & UNNUMBERED == 0 {
            self.connections.entry(connection).or_default()
        } else {
            self.unnumbered.entry(connection).or_default()
        }
    }

    /// Keeps the exchange itself, if there is room for it.
    #[cold]
    fn list(&mut self, closed: &Closed, bill: Bill<'_>) {
        if self.has_enough_of(closed.connection) {
            return;
        }
        let elapsed = bill.total();
        let numbered = closed.connection & UNNUMBERED == 0;
        let has_ladders = self.listing.has_ladders();
        if numbered && has_ladders && !self.has_room(LISTED) {
            return;
        }
        if matches!(self.listing, Listing::Thinned(_) | Listing::Drawn(_)) {
            if !thinning::keeps(self.level, closed.packets, elapsed) {
                return;
            }
            let level = thinning::level(closed.packets, elapsed);
            let list = self.list_of(closed.connection);
            list.level = list.level.max(Some(level));
            if numbered {
                self.count_kept(level);
            } else {
                self.waiting.add(level);
            }
        }
        self.listed += u64::from(numbered);
        let exchange = Exchange {
            n: closed.n,
            kind: closed.kind,
            initiator: closed.initiator,
            by: closed.by,
            start: closed.start,
            elapsed,
            awaited: closed.awaited,
            client_idle: closed.client_idle,
            request_bytes: closed.request_bytes,
            reply_bytes: closed.reply_bytes,
            packets: closed.packets,
            request: None,
            bill: Vec::new(),
        };
        let exchanges = if numbered { &mut self.exchanges } else { &mut self.unnumbered_exchanges };
        exchanges.push(ListedExchange {
            connection: closed.connection,
            packet: self.packet,
            exchange,
            bill: bill.compact(),
        });
    }

    /// Takes over what another shard's ledger knows.
    pub(crate) fn merge(&mut self, other: Self) {
        self.totals.merge(&other.totals);
        self.elapsed += other.elapsed;
        self.by_clock += other.by_clock;
        for (sum, more) in self.kinds.iter_mut().zip(other.kinds) {
            *sum += more;
        }
        self.services.merge(other.services);
        self.exchanges.extend(other.exchanges);
        self.level = self.level.max(other.level);
    }

    /// Fills in everything that the ledger knows. These servers were given up earlier.
    pub(crate) fn finish(self, report: &mut Report, given_up: BTreeSet<Endpoint>) {
        report.elapsed = self.elapsed;
        report.by_clock = self.by_clock;
        [report.setups, report.exchanges, report.one_way, report.subscriptions] = self.kinds;
        report.bill = self.totals.to_lines();
        report.thinned = self.level;
        report.findings = self.services.findings(self.elapsed, given_up);
    }
}
