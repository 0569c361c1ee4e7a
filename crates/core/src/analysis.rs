//! Segments in, report out: which connection does each segment belong to?

use std::collections::{BTreeMap, HashMap, VecDeque};

use tcpwhy_wire::{Duration, Endpoint, Instant, Segment, Seq};

use crate::connection::{CLIENT, Connection, SERVER};
use crate::ledger::{Ledger, Listing};
use crate::report::{self, Note, Report};
use crate::table::{Slab, Slot, Table};

/// How long the table remembers a finished connection, so that its last stragglers do not look like a new one.
const LINGER: Duration = Duration::from_secs(5);
/// A connection that is silent for longer is over: keep-alive probes come every two hours by default (RFC 9293, 3.8.4),
/// and whoever does without them cannot know either whether the peer is still there.
const IDLE_MAX: Duration = Duration::from_secs(3 * 3600);
/// One place is looked at for an idle connection with each so many segments.
const SWEEP_EVERY: u64 = 16;
/// A full table gives up this part of its connections at once.
const EVICTED_SHARE: usize = 64;
/// In the table, slots from here on are those of finished connections.
const FINISHED: Slot = 1 << 31;

/// What to keep, and how much.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Which exchanges are listed one by one.
    pub listing: Listing,
    /// Open connections at most; beyond it the ones that spoke longest ago are closed where they stand, and counted.
    pub max_connections: usize,
    /// Decides where connections are kept, and nothing that a report shows. Whoever reads captures of strangers gives
    /// one that they cannot know, so that no capture can be made to be slow.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self { listing: Listing::None, max_connections: 1_000_000, seed: 0 }
    }
}

/// What is remembered of a finished connection.
#[derive(Clone, Copy, Debug)]
struct Finished {
    ends: [Endpoint; 2],
    /// First payload byte of each end.
    first: [Option<Seq>; 2],
    hash: u32,
    /// Its number while it is remembered.
    id: u64,
    /// Where it is listed, unless a reset ended it: its stragglers are still counted there.
    listed: Option<usize>,
}

impl Finished {
    /// Whether this segment starts another connection between the same ends.
    fn is_other_incarnation(&self, segment: &Segment) -> bool {
        let from = if segment.src == self.ends[CLIENT] { CLIENT } else { SERVER };
        segment.flags.syn()
            && !segment.flags.ack()
            && self.first[from].is_none_or(|first| segment.seq + 1 != first)
    }
}

/// Takes segments in order of capture and draws up the bills.
pub struct Analysis {
    table: Table,
    connections: Slab<Connection>,
    finished: Slab<Finished>,
    /// When to forget which finished connection.
    lingering: VecDeque<(Instant, Slot, u64)>,
    ledger: Ledger,
    /// Smallest round trip between the capture and either host, by pair of hosts.
    paths: HashMap<(u128, u128), [Option<Duration>; 2]>,
    options: Options,
    /// Connections so far.
    count: u64,
    segments: u64,
    now: Instant,
    last_seen: Option<Segment>,
    listed: Vec<report::Connection>,
    omitted_connections: u64,
    swept: Slot,
    notes: BTreeMap<&'static str, (u64, u64)>,
}

impl Analysis {
    /// An analysis that has seen nothing yet.
    pub fn new(options: Options) -> Self {
        Self {
            table: Table::new(options.seed),
            connections: Slab::new(),
            finished: Slab::new(),
            lingering: VecDeque::new(),
            ledger: Ledger::new(options.listing),
            paths: HashMap::new(),
            options,
            count: 0,
            segments: 0,
            now: Instant::MIN,
            last_seen: None,
            listed: Vec::new(),
            omitted_connections: 0,
            swept: 0,
            notes: BTreeMap::new(),
        }
    }

    /// Takes the next segment, in order of capture.
    pub fn on_segment(&mut self, segment: &Segment) {
        self.segments += 1;
        if segment.at < self.now {
            self.note("time-steps-back", segment.packet);
        } else {
            self.now = segment.at;
        }
        if self.last_seen.as_ref().is_some_and(|last| is_second_sighting(last, segment)) {
            self.note("duplicates", segment.packet);
            return;
        }
        self.last_seen = Some(*segment);
        self.forget();
        if self.segments.is_multiple_of(SWEEP_EVERY) {
            self.sweep(segment.packet);
        }
        let hash = self.table.hash(segment.src, segment.dst);
        let Some((slot, from)) = self.find(hash, segment) else { return };
        let connection = self.connections.get_mut(slot);
        let before = connection.delay;
        connection.on_segment(segment, from, &mut self.ledger);
        if connection.delay != before {
            share_path(&mut self.paths, connection);
        }
        if connection.is_finished() {
            self.finish_one(slot, hash);
        }
    }

    /// The open connection that a segment belongs to, and which of its ends sent it; begins one where there is none.
    #[inline]
    fn find(&mut self, hash: u32, segment: &Segment) -> Option<(Slot, usize)> {
        let (connections, finished) = (&self.connections, &self.finished);
        let mut from = CLIENT;
        let found = self.table.find(hash, |slot| {
            let ends = if slot < FINISHED {
                &connections.get(slot).ends
            } else {
                &finished.get(slot - FINISHED).ends
            };
            if segment.src == ends[CLIENT] && segment.dst == ends[SERVER] {
                from = CLIENT;
                return true;
            }
            from = SERVER;
            segment.src == ends[SERVER] && segment.dst == ends[CLIENT]
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
                let finished = self.finished.get(slot - FINISHED);
                if !finished.is_other_incarnation(segment) {
                    if let Some(listed) = finished.listed.and_then(|i| self.listed.get_mut(i)) {
                        listed.packets += 1;
                        listed.packet_range[1] = segment.packet;
                    }
                    return None;
                }
                self.finished.get_mut(slot - FINISHED).id = 0;
                self.finished.release(slot - FINISHED);
                self.table.remove(hash, slot);
            }
            None => {}
        }
        self.open(hash, segment)
    }

    fn note(&mut self, kind: &'static str, packet: u64) {
        self.notes.entry(kind).or_insert((0, packet)).0 += 1;
    }

    fn open(&mut self, hash: u32, segment: &Segment) -> Option<(Slot, usize)> {
        if segment.flags.rst() && segment.payload_len == 0 {
            return None; // the answer to a connection that the capture does not have
        }
        if self.connections.len() >= self.options.max_connections.clamp(1, FINISHED as usize - 1) {
            self.make_room(segment.packet);
        }
        let ends = roles(segment);
        self.count += 1;
        let ladder = self.ledger.wants_ladder(self.count);
        let slot = self.connections.insert(Connection::new(self.count, ends, segment, ladder));
        self.table.insert(hash, slot);
        Some((slot, if segment.src == ends[CLIENT] { CLIENT } else { SERVER }))
    }

    /// A connection has said its last word: its bill is closed, and little of it is kept for a while.
    fn finish_one(&mut self, slot: Slot, hash: u32) {
        let connection = self.connections.get(slot);
        let (id, reset) = (connection.id, connection.closed);
        let (ends, first) = (connection.ends, connection.halves.each_ref().map(|half| half.first));
        let listed = self.end(slot).filter(|_| !reset);
        let place = self.finished.insert(Finished { ends, first, hash, id, listed });
        self.table.replace(hash, slot, FINISHED + place);
        self.lingering.push_back((self.now, place, id));
    }

    /// Forgets connections that finished a while ago.
    #[inline]
    fn forget(&mut self) {
        while let Some(&(at, place, id)) = self.lingering.front() {
            if self.now - at < LINGER {
                break;
            }
            self.lingering.pop_front();
            let finished = self.finished.get_mut(place);
            if finished.id == id {
                finished.id = 0;
                self.table.remove(finished.hash, FINISHED + place);
                self.finished.release(place);
            }
        }
    }

    /// Looks at the next place for a connection that has been idle for too long.
    fn sweep(&mut self, packet: u64) {
        let slots = self.connections.slots();
        if self.swept >= slots.end {
            self.swept = 0;
            return;
        }
        let slot = self.swept;
        self.swept += 1;
        let connection = self.connections.get(slot);
        if connection.id != 0 && self.now - connection.now > IDLE_MAX {
            self.note("idle-connections", packet);
            self.take_off(slot);
        }
    }

    /// Closes the connections that spoke longest ago.
    #[cold]
    fn make_room(&mut self, packet: u64) {
        let connections = &self.connections;
        let mut all: Vec<(Instant, u64, Slot)> = connections
            .slots()
            .map(|slot| (connections.get(slot), slot))
            .filter(|(connection, _)| connection.id != 0)
            .map(|(connection, slot)| (connection.now, connection.id, slot))
            .collect();
        let evicted = all.len() / EVICTED_SHARE + 1;
        if evicted < all.len() {
            all.select_nth_unstable(evicted);
            all.truncate(evicted);
        }
        all.sort_unstable();
        for (_, _, slot) in all {
            self.note("connections-over-limit", packet);
            self.take_off(slot);
        }
    }

    /// Closes a connection and takes it off the table.
    fn take_off(&mut self, slot: Slot) {
        let [a, b] = self.connections.get(slot).ends;
        self.end(slot);
        self.table.remove(self.table.hash(a, b), slot);
    }

    /// Closes what a connection has under way and gives its place up. Returns where it is listed.
    fn end(&mut self, slot: Slot) -> Option<usize> {
        let connection = self.connections.get_mut(slot);
        connection.close(None, &mut self.ledger);
        let id = std::mem::take(&mut connection.id);
        self.connections.release(slot);
        if !self.ledger.lists(id) {
            self.omitted_connections += u64::from(self.options.listing != Listing::None);
            return None;
        }
        let connection = self.connections.get_mut(slot);
        let (bill, exchanges) = self.ledger.connection(id).into_parts();
        let [client, server] = &connection.halves;
        self.listed.push(report::Connection {
            id,
            client: connection.ends[CLIENT],
            server: connection.ends[SERVER],
            assumed: connection.assumed,
            vantage: connection.vantage(),
            rtt_min: connection.rtt_min(),
            mss: [client.mss_announced, server.mss_announced],
            packets: connection.packets,
            bytes: [client.bytes, server.bytes],
            packet_range: connection.packet_range,
            bill,
            exchanges,
            ladder: connection.ladder.take().unwrap_or_default(),
        });
        Some(self.listed.len() - 1)
    }

    /// Closes everything and says what was found.
    pub fn finish(mut self) -> Report {
        let connections = &self.connections;
        let mut open: Vec<(u64, Slot)> = connections
            .slots()
            .map(|slot| (connections.get(slot).id, slot))
            .filter(|(id, _)| *id != 0)
            .collect();
        open.sort_unstable();
        for (_, slot) in open {
            self.end(slot);
        }
        let mut report = Report { segments: self.segments, ..Report::default() };
        self.ledger.finish(&mut report);
        self.listed.sort_by_key(|connection| connection.id);
        report.connections = self.listed;
        report.omitted.connections = self.omitted_connections;
        report.notes = self
            .notes
            .into_iter()
            .map(|(kind, (count, first_packet))| Note { kind, count, first_packet })
            .collect();
        report
    }
}

/// Pairs of hosts remembered at most.
const PATHS_MAX: usize = 65_536;

/// What one connection learns about the way to its hosts holds for all connections between them.
fn share_path(paths: &mut HashMap<(u128, u128), [Option<Duration>; 2]>, connection: &mut Connection) {
    let hosts = (connection.ends[CLIENT].addr, connection.ends[SERVER].addr);
    if paths.len() >= PATHS_MAX && !paths.contains_key(&hosts) {
        return;
    }
    let known = paths.entry(hosts).or_default();
    for (known, own) in known.iter_mut().zip(connection.delay) {
        *known = [*known, own].into_iter().flatten().min();
    }
    connection.path_min = *known;
}

/// Client and server: who sent the SYN, else the higher port is taken for the client's.
fn roles(first: &Segment) -> [Endpoint; 2] {
    let (syn, ack) = (first.flags.syn(), first.flags.ack());
    let from_client = match (syn, ack) {
        (true, false) => true,
        (true, true) => false,
        _ => first.src.port > first.dst.port || (first.src.port == first.dst.port && first.payload_len > 0),
    };
    if from_client { [first.src, first.dst] } else { [first.dst, first.src] }
}

/// Whether this is the packet before it, seen again on another interface (`-i any`) or after a hop. Without an
/// identification (IPv6, or 0 as in a SYN-ACK of Linux) an acknowledgement may well be repeated within the millisecond;
/// what takes sequence space is not, without a packet of the peer in between.
fn is_second_sighting(last: &Segment, segment: &Segment) -> bool {
    let identified = segment.ip_id.is_some_and(|id| id != 0) || segment.seq_len() > 0;
    identified
        && segment.ip_id == last.ip_id
        && (segment.seq, segment.ack, segment.flags, segment.payload_len)
            == (last.seq, last.ack, last.flags, last.payload_len)
        && segment.window == last.window
        && segment.options == last.options
        && (segment.src, segment.dst) == (last.src, last.dst)
        && segment.at - last.at < Duration::from_millis(1)
}
