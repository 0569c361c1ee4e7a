//! One part of the connections: which of them does each segment belong to?
//!
//! All connections between two hosts are in one shard, because they share what they learn about the
//! path. Shards know nothing of each other; what concerns all of them is settled between epochs, see
//! [`crate::epoch::coordinator`]. So neither the number of shards nor the order in which pairs of hosts
//! are worked on changes anything in the report.

mod group;
mod held;
mod last;
mod lost;
mod moved;

use std::collections::{BTreeMap, VecDeque};

use tcpwhy_wire::{Duration, Endpoint, Instant, Segment, Usual};

use crate::connection::{Connection, REFUSED};
use crate::epoch::budget::Budget;
use crate::epoch::earliest::Earliest;
use crate::epoch::finished::{Finished, LINGER};
use crate::epoch::front::{Arrival, LATE};
use crate::epoch::groups::Groups;
use crate::epoch::numbering::Numbering;
use crate::epoch::options::Options;
use crate::epoch::orders::{Asked, Orders, Roll};
use crate::epoch::path_memories::PathMemories;
use crate::epoch::roles::roles;
use crate::epoch::slab::{Marks, Slab, Slot};
use crate::epoch::table::Table;
use crate::flow::duplicate_filter::DuplicateFilter;
use crate::flow::ends::{CLIENT, SERVER};
use crate::flow::packed::{Packed, Spare};
use crate::tally::ledger::{Ledger, Listing};
use crate::tally::listed_connections::{LeftOut, ListedConnections};
use crate::tally::service::Service;
use crate::words::ids::{UNLISTED, UNNUMBERED};
use crate::words::limits::SERVERS_MAX;
use crate::words::mark::Mark;
use crate::words::report;

/// A connection that is silent for longer is over: keep-alive probes come every two hours by default
/// (RFC 9293, 3.8.4), and without them an end cannot know either whether its peer is still there.
const IDLE_MAX: Duration = Duration::from_secs(3 * 3600);
/// How often all connections are checked for idle ones.
const SWEEP_EVERY: Duration = Duration::from_secs(600);
/// In the table, slots from here on are those of finished connections.
const FINISHED: Slot = 1 << 31;

/// The size of a finished connection's place.
const FINISHED_BYTES: usize = size_of::<Finished>();

/// A finished connection in its place, if it is still the same one.
#[derive(Clone, Copy, Debug)]
struct Lingering {
    clock: Instant,
    epoch: u32,
    place: Slot,
    generation: u64,
}

/// Takes the segments of its connections in capture order.
#[derive(Clone)]
pub struct Shard {
    table: Table,
    connections: Slab<Connection>,
    /// Their heap bytes.
    heap: usize,
    finished: Slab<Finished>,
    /// When and in which epoch connections finished that are to be forgotten.
    lingering: VecDeque<Lingering>,
    /// The number of epochs so far, and of connections that finished in the present one.
    epoch: u32,
    finished_now: usize,
    pub(crate) ledger: Ledger,
    /// Smallest round trip between the capture and either host, by pair of hosts.
    path_memories: PathMemories,
    /// Connections begun in this epoch: first packet and place.
    opened: Vec<(u64, Slot)>,
    earliest: Earliest,
    /// The same for earlier epochs whose connections have no number yet, and how many these are.
    unnumbered: VecDeque<Vec<(u64, Slot)>>,
    unnumbered_count: usize,
    pub(crate) listed: ListedConnections,
    swept_at: Instant,
    asked: Asked,
    generation: u64,
    groups: Groups,
    /// Their memory.
    spare: Spare,
    /// Connections that were fetched in this epoch.
    fetched: Marks,
    /// Segments are taken in capture order, since only the order in which connections begin tells which
    /// of them gets a ladder.
    in_order: bool,
    plain: bool,
    /// Usual segments take the general path as well, on a copy.
    checked: bool,
    /// Servers with findings in this shard; other shards may have the same ones.
    pub(crate) servers_max: usize,
    shards: usize,
    pub(crate) handed_over: Vec<Service>,
    pub(crate) notes: BTreeMap<&'static str, (u64, u64)>,
}

impl Shard {
    pub(crate) fn new(options: &Options, shards: usize) -> Self {
        let spare = Spare::default();
        Self {
            table: Table::new(options.seed),
            connections: Slab::new(),
            heap: 0,
            finished: Slab::new(),
            lingering: VecDeque::new(),
            epoch: 0,
            finished_now: 0,
            ledger: Ledger::new(options.listing, Budget::thinned_of(options.memory), options.memory / 4),
            path_memories: PathMemories::new(options.seed),
            opened: Vec::new(),
            earliest: Earliest::default(),
            unnumbered: VecDeque::new(),
            unnumbered_count: 0,
            listed: ListedConnections::new(options.seed),
            swept_at: Instant::MIN,
            asked: Asked::default(),
            generation: 0,
            groups: Groups::new(shards, &spare),
            spare,
            fetched: Marks::default(),
            in_order: options.plain || matches!(options.listing, Listing::Connection(_)),
            plain: options.plain,
            checked: options.checked,
            servers_max: SERVERS_MAX / shards.max(1),
            shards: shards.max(1),
            handed_over: Vec::new(),
            notes: BTreeMap::new(),
        }
    }

    /// Takes the next segment, in capture order, with the marks of the messages that begin in it.
    #[inline]
    pub fn take(&mut self, arrival: Arrival, segment: &Segment, marks: &[Mark]) {
        if self.in_order {
            self.on_segment(segment, marks, arrival.hash, arrival.clock);
        } else {
            self.groups.put(arrival, segment);
            if !marks.is_empty() {
                self.groups.mark(arrival, marks);
            }
        }
    }

    /// The same for a usual one.
    #[inline]
    pub(crate) fn take_usual(&mut self, arrival: Arrival, usual: &Usual<'_>, marks: &[Mark]) {
        if self.in_order {
            self.on_segment(&usual.segment(), marks, arrival.hash, arrival.clock);
        } else {
            self.groups.put_usual(arrival, usual);
            if !marks.is_empty() {
                self.groups.mark(arrival, marks);
            }
        }
    }

    /// Takes a segment that is usual for its connection, which is in this slot. Returns whether it is;
    /// if not, nothing has changed. Neither a duplicate in the capture nor a segment after a long
    /// silence is usual.
    #[inline]
    fn on_usual(&mut self, packed: &Packed, marks: &[Mark], slot: Slot) -> bool {
        if !packed.is_usual() {
            return false;
        }
        let connection = self.connections.get_mut(slot);
        if connection.id == 0 || packed.at - connection.now > IDLE_MAX {
            return false;
        }
        let Some(from) = connection.ends.packed().and_then(|ends| packed.sender(ends)) else { return false };
        // Not before it is known that the packet is no duplicate.
        if packed.payload_len > 0 && connection.wants_news(packed.at, from) {
            return false;
        }
        self.ledger.packet = packed.packet;
        let usual = if self.checked {
            connection.on_usual_checked(packed, marks, from, &mut self.ledger)
        } else {
            connection.on_usual(packed, marks, from, &mut self.ledger)
        };
        if !usual {
            return false;
        }
        connection.duplicates = Some(DuplicateFilter::of_packed(packed, from));
        if let Some(before) = connection.count_heap(marks) {
            self.heap = self.heap - before + connection.heap;
        }
        if connection.path_memory.is_due() {
            self.path_memories.share(connection);
        }
        if connection.is_finished() {
            self.finish_one(slot, packed.hash, packed.clock());
        }
        true
    }

    #[inline]
    fn on_segment(&mut self, segment: &Segment, marks: &[Mark], hash: u32, clock: Instant) {
        self.ledger.packet = segment.packet;
        let left;
        let segment = if segment.damaged {
            let Some(lost) = self.as_lost(hash, segment) else { return };
            left = lost;
            &left
        } else {
            segment
        };
        let Some((slot, from)) = self.find(hash, segment, clock) else { return };
        let connection = self.connections.get_mut(slot);
        connection.damaged[from] |= segment.damaged;
        if connection.has_seen(segment, from) {
            self.note("duplicates", segment.packet);
            return;
        }
        if segment.payload_len > 0 && connection.wants_news(segment.at, from) {
            self.path_memories.share(connection);
        }
        connection.duplicates = Some(DuplicateFilter::of(segment, from));
        let not_captured = connection.on_segment(segment, marks, from, &mut self.ledger);
        if let Some(before) = connection.count_heap_often(marks) {
            self.heap = self.heap - before + connection.heap;
        }
        if connection.path_memory.is_due() {
            self.path_memories.share(connection);
        }
        if connection.is_finished() {
            self.finish_one(slot, hash, clock);
        }
        if not_captured {
            self.note("capture-drops", segment.packet);
        }
    }

    /// The open connection that a segment belongs to, and which of its ends sent it; begins one if
    /// there is none.
    #[inline]
    fn find(&mut self, hash: u32, segment: &Segment, clock: Instant) -> Option<(Slot, usize)> {
        let (connections, finished) = (&self.connections, &self.finished);
        let mut from = CLIENT;
        let found = self.table.find(hash, |slot| {
            let known = if slot < FINISHED {
                &connections.get(slot).ends
            } else {
                &finished.get(slot - FINISHED).ends
            };
            let ends = known.get();
            from = if segment.src == ends[CLIENT] && segment.dst == ends[SERVER] { CLIENT } else { SERVER };
            from == CLIENT || segment.src == ends[SERVER] && segment.dst == ends[CLIENT]
        });
        match found {
            Some(slot) if slot < FINISHED => {
                let connection = self.connections.get(slot);
                if segment.at - connection.now > IDLE_MAX {
                    self.note("idle-connections", segment.packet);
                } else if !connection.is_other_incarnation(segment, from) {
                    return Some((slot, from));
                }
                self.end(slot);
                self.table.remove(hash, slot);
            }
            Some(slot) => {
                let place = slot - FINISHED;
                let finished = self.finished.get_mut(place);
                if !finished.is_other_incarnation(segment, clock) {
                    if finished
                        .duplicates
                        .as_ref()
                        .is_some_and(|duplicates| duplicates.is_again(segment, from))
                    {
                        self.note("duplicates", segment.packet);
                        return None;
                    }
                    finished.duplicates = Some(DuplicateFilter::of(segment, from));
                    finished.on_straggler(segment, clock);
                    if let Some(listed) = finished.listed.and_then(|i| self.listed.get_mut(i)) {
                        listed.packets += 1;
                        listed.packet_range[1] = segment.packet;
                        listed.span[1] = listed.span[1].max(segment.at);
                    }
                    return None;
                }
                finished.generation = 0;
                self.finished.release(place);
                self.table.remove(hash, slot);
            }
            None => {}
        }
        self.begin(hash, segment)
    }

    fn note(&mut self, kind: &'static str, packet: u64) {
        let (count, first) = self.notes.entry(kind).or_insert((0, packet));
        *count += 1;
        *first = packet.min(*first);
    }

    fn begin(&mut self, hash: u32, segment: &Segment) -> Option<(Slot, usize)> {
        if segment.flags.rst() && segment.payload_len == 0 {
            return None; // the answer to a connection that is not in the capture
        }
        let accepts = |client: Endpoint, server: Endpoint| self.path_memories.accepts(client, server);
        let ends = roles(segment, accepts);
        // The order in which connections of this epoch began is not known yet.
        let before = self.unnumbered_count as u64;
        let numbers = self.ledger.listed_next(before, segment.packet);
        let unlisted = if self.earliest.may_get(numbers, segment.packet) { 0 } else { UNLISTED };
        let id = UNNUMBERED | unlisted | segment.packet;
        let ladder = self.ledger.is_chosen(segment.packet)
            || self.ledger.draws(segment.packet)
            || self.in_order && self.ledger.wants_ladder(before + self.opened.len() as u64);
        let slot = match self.connections.reuse() {
            Some((slot, connection)) => {
                connection.begin_again(id, ends, segment, ladder);
                slot
            }
            None => self.connections.insert(Connection::new(id, ends, segment, ladder)),
        };
        self.connections.get_mut(slot).flows.iter_mut().for_each(|flow| flow.plain = self.plain);
        self.opened.push((segment.packet, slot));
        self.table.insert(hash, slot);
        Some((slot, if segment.src == ends[CLIENT] { CLIENT } else { SERVER }))
    }

    /// Closes the bill of a finished connection, of which little is kept for a while.
    fn finish_one(&mut self, slot: Slot, hash: u32, clock: Instant) {
        let connection = self.connections.get(slot);
        let (reset, duplicates) = (connection.closed, connection.duplicates);
        let refused = connection.failure() == Some(REFUSED);
        let (ends, first) = (connection.ends.clone(), connection.flows.each_ref().map(|flow| flow.first));
        let listed = self.end(slot).filter(|_| !reset);
        self.generation += 1;
        let generation = self.generation;
        let place = self.finished.insert(Finished {
            ends,
            first,
            hash,
            clock,
            duplicates,
            refused,
            generation,
            listed,
            again: None,
            again_at: clock,
        });
        self.table.replace(hash, slot, FINISHED + place);
        self.finished_now += 1;
        self.lingering.push_back(Lingering { clock, epoch: self.epoch, place, generation });
    }

    /// Closes a connection and removes it from the table.
    fn take_off(&mut self, slot: Slot) {
        let [a, b] = self.connections.get(slot).ends.get();
        self.end(slot);
        self.table.remove(self.table.hash(a, b), slot);
    }

    /// Closes what a connection has under way and frees its place. Returns where it is listed.
    fn end(&mut self, slot: Slot) -> Option<usize> {
        let connection = self.connections.get_mut(slot);
        connection.close(None, &mut self.ledger);
        let id = std::mem::take(&mut connection.id);
        self.heap -= connection.heap;
        connection.free(&mut self.ledger.places);
        let first = connection.packet_range[0];
        let (one_sided, failure) = (connection.is_one_sided(), connection.failure());
        let cut = connection.flows.iter().any(|flow| flow.options_cut);
        self.connections.release(slot);
        if one_sided {
            self.note("one-direction", first);
        }
        if cut {
            self.note("cut-options", first);
        }
        if let Some(failure) = failure {
            self.note(failure, first);
        }
        if !self.ledger.lists(id) {
            return None;
        }
        let connection = self.connections.get_mut(slot);
        let totals = self.ledger.connection(id);
        if !self.ledger.may_show(&totals) && !self.listed.is_expensive(totals.cost()) {
            let [client, server] = connection.ends.get();
            self.listed.leave_out(LeftOut { id, client, server, billed: totals.closed });
            return None;
        }
        let (opening, shown_until) = (connection.opening(), totals.shown_until());
        let ladder_omitted = connection.ladder.as_ref().map_or(0, |ladder| ladder.omitted);
        let (ladder, steps) =
            connection.ladder.take().map_or_else(Default::default, |ladder| (ladder.rungs, ladder.steps));
        let [client, server] = &connection.flows;
        let connection = report::Connection {
            id,
            client: connection.ends.end(CLIENT),
            server: connection.ends.end(SERVER),
            assumed: connection.assumed,
            vantage: connection.vantage(),
            rtt_min: connection.rtt_min(),
            mss: [client.mss_announced, server.mss_announced],
            packets: connection.packets,
            bytes: [client.bytes, server.bytes],
            packet_range: connection.packet_range,
            span: [connection.first_at, connection.now],
            billed: totals.closed,
            by_clock: totals.by_clock,
            bill: totals.into_bill(),
            exchanges: Vec::new(),
            ladder_omitted,
            ladder,
            steps,
            opening,
        };
        Some(self.listed.put(connection, shown_until))
    }

    /// Ends an epoch. Returns what the coordinator has to know.
    pub fn end_epoch(&mut self) -> Roll {
        self.spare.give_back();
        let mut groups = std::mem::replace(&mut self.groups, Groups::none());
        let roll = self.end_epoch_with(&mut groups);
        self.groups = groups;
        roll
    }

    /// As [`end_epoch`](Self::end_epoch), with segments gathered elsewhere.
    pub fn end_epoch_with(&mut self, groups: &mut Groups) -> Roll {
        self.fetched.clear();
        groups.work_off(|group| self.on_group(group));
        self.opened.sort_unstable_by_key(|&(packet, _)| packet); // no two begin with the same packet
        let mut ages = Vec::new();
        if self.asked.ages {
            let live = |slot| Some(self.connections.get(slot)).filter(|connection| connection.id != 0);
            let told = |connection: &Connection| (connection.age(), connection.heap);
            ages.extend(self.connections.slots().filter_map(live).map(told));
        }
        let opened = std::mem::take(&mut self.opened);
        self.earliest.clear();
        let roll = Roll {
            opened: opened.iter().map(|(packet, _)| *packet).collect(),
            open: self.connections.len(),
            heap: self.heap,
            path_memories: self.path_memories.younger(),
            ways: self.path_memories.len(),
            finished: std::mem::take(&mut self.finished_now),
            listed: self.ledger.listed(),
            kept: self.ledger.kept(),
            listed_bytes: self.ledger.lists_bytes(),
            found: self.ledger.services.tallied,
            ages,
            servers: self.ledger.services.take_begun(),
            costs: if self.asked.costs { self.ledger.services.costs().collect() } else { Vec::new() },
            tells_costs: self.asked.costs,
            services: std::mem::take(&mut self.handed_over),
        };
        self.unnumbered_count += opened.len();
        self.epoch = self.epoch.saturating_add(1);
        self.unnumbered.push_back(opened);
        roll
    }

    /// Takes the orders about the earliest epoch that has none yet: numbers for the connections begun
    /// then, and which ones to give up.
    pub fn take_orders(&mut self, orders: &Orders) {
        let opened = self.unnumbered.pop_front().unwrap_or_default();
        self.unnumbered_count -= opened.len();
        for (&(packet, slot), &id) in opened.iter().zip(&orders.ids) {
            match self.connections.known_mut(slot) {
                Some(connection) if connection.id & !UNLISTED == UNNUMBERED | packet => connection.id = id,
                _ => {}
            }
            self.ledger.name(packet, id);
        }
        let numbering = Numbering::new(&opened, &orders.ids);
        let number = |id| numbering.of(id);
        self.ledger.number(orders.count, number);
        self.listed.number(number, |id| self.ledger.lists(id));
        if let Some(level) = self.ledger.thin(orders.level) {
            let places = self.listed.thin(level);
            for slot in self.finished.slots() {
                let listed = &mut self.finished.get_mut(slot).listed;
                *listed = listed.and_then(|at| places[at]);
            }
        }
        self.ledger.begin_orders(orders.listed_enough, orders.lists_bytes);
        self.ledger.packet = orders.packet;
        self.asked = orders.asked;
        // At the end, two orders follow each other: what was handed over after the first has not been
        // taken.
        self.ledger.services.take(std::mem::take(&mut self.handed_over));
        self.ledger.services.give_up(&orders.given_up);
        self.servers_max = orders.servers_max / self.shards;
        self.handed_over = self.ledger.services.hand_over(self.servers_max);
        self.forget(orders);
        if orders.memories_age {
            self.path_memories.age();
        }
        self.sweep(orders);
        if let Some(youngest) = orders.evicted {
            self.evict(youngest, orders.packet);
        }
        self.ledger.begin_epoch();
        self.give_back();
    }

    /// Forgets connections that finished a while ago. Later segments between their ends come too late
    /// to belong to them, so it does not matter when they are forgotten. If there are too many, also
    /// forgets those before an epoch.
    fn forget(&mut self, orders: &Orders) {
        while let Some(&Lingering { clock, epoch, place, generation }) = self.lingering.front() {
            let due = orders.now - clock >= LINGER + LATE;
            if !due && epoch >= orders.finished_before {
                break;
            }
            self.lingering.pop_front();
            let finished = self.finished.get_mut(place);
            if finished.generation == generation {
                if due && orders.now - finished.clock < LINGER + LATE {
                    self.lingering.push_back(Lingering { clock: orders.now, epoch, place, generation });
                    continue;
                }
                finished.generation = 0;
                let hash = finished.hash;
                self.table.remove(hash, FINISHED + place);
                self.finished.release(place);
                if !due {
                    self.note("finished-over-limit", orders.packet);
                }
            }
        }
    }

    /// Ends connections that have been idle for too long.
    fn sweep(&mut self, orders: &Orders) {
        if orders.now - self.swept_at < SWEEP_EVERY {
            return;
        }
        self.swept_at = orders.now;
        for slot in self.connections.slots() {
            self.end_if_idle(slot, orders.now, orders.packet);
        }
    }

    fn end_if_idle(&mut self, slot: Slot, now: Instant, packet: u64) {
        let connection = self.connections.get(slot);
        if connection.id != 0 && now - connection.now > IDLE_MAX {
            self.note("idle-connections", packet);
            self.take_off(slot);
        }
    }

    /// Closes the connections that have been silent longest.
    #[cold]
    fn evict(&mut self, youngest: (Instant, u64), packet: u64) {
        for slot in self.connections.slots() {
            let connection = self.connections.get(slot);
            if connection.id != 0 && connection.age() <= youngest {
                self.note("connections-over-limit", packet);
                self.take_off(slot);
            }
        }
    }
}
