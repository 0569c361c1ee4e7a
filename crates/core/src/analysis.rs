//! Segments in, report out: which connection does each segment belong to?

use std::collections::{BTreeMap, HashMap, VecDeque};

use tcpwhy_wire::{Duration, Endpoint, Instant, Segment};

use crate::connection::{CLIENT, Connection, SERVER};
use crate::ledger::{Ledger, Listing};
use crate::report::{self, Note, Report};

/// How long the table remembers a finished connection, so that its last stragglers do not look like a new one.
const LINGER: Duration = Duration::from_secs(5);

/// What to keep, and how much.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Which exchanges are listed one by one.
    pub listing: Listing,
    /// Open connections at most; beyond it the ones that spoke longest ago are closed where they stand, and counted.
    pub max_connections: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { listing: Listing::None, max_connections: 1_000_000 }
    }
}

/// Both directions of a 4-tuple, the smaller endpoint first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct FlowKey(Endpoint, Endpoint);

/// Takes segments in order of capture and draws up the bills.
pub struct Analysis {
    table: HashMap<FlowKey, usize>,
    /// Connections by slot; freed slots are used again.
    slots: Vec<Option<Box<Connection>>>,
    free: Vec<usize>,
    finished: VecDeque<(Instant, usize, u64)>,
    ledger: Ledger,
    /// Smallest round trip between the capture and either host, by pair of hosts.
    paths: HashMap<(u128, u128), [Option<Duration>; 2]>,
    options: Options,
    connections: u64,
    segments: u64,
    now: Instant,
    last_seen: Option<Segment>,
    listed: Vec<report::Connection>,
    omitted_connections: u64,
    notes: BTreeMap<&'static str, (u64, u64)>,
}

impl Analysis {
    /// An analysis that has seen nothing yet.
    pub fn new(options: Options) -> Self {
        Self {
            table: HashMap::new(),
            slots: Vec::new(),
            free: Vec::new(),
            finished: VecDeque::new(),
            ledger: Ledger::new(options.listing),
            paths: HashMap::new(),
            options,
            connections: 0,
            segments: 0,
            now: Instant::MIN,
            last_seen: None,
            listed: Vec::new(),
            omitted_connections: 0,
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
        self.retire();
        let key = if segment.src <= segment.dst {
            FlowKey(segment.src, segment.dst)
        } else {
            FlowKey(segment.dst, segment.src)
        };
        let slot = match self.table.get(&key) {
            Some(&slot) => slot,
            None => match self.open(key, segment) {
                Some(slot) => slot,
                None => return,
            },
        };
        let Some(connection) = self.slots[slot].as_deref() else { return };
        let from = if segment.src == connection.ends[CLIENT] { CLIENT } else { SERVER };
        let slot = if connection.is_other_incarnation(segment, from) {
            self.end(slot);
            match self.open(key, segment) {
                Some(slot) => slot,
                None => return,
            }
        } else {
            slot
        };
        let Some(connection) = self.slots[slot].as_deref_mut() else { return };
        if connection.closed {
            return; // stragglers behind a reset
        }
        let from = if segment.src == connection.ends[CLIENT] { CLIENT } else { SERVER };
        let before = connection.delay;
        connection.on_segment(segment, from, &mut self.ledger);
        if connection.delay != before {
            share_path(&mut self.paths, connection);
        }
        if connection.is_finished() {
            self.finished.push_back((self.now, slot, connection.id));
        }
    }

    fn note(&mut self, kind: &'static str, packet: u64) {
        self.notes.entry(kind).or_insert((0, packet)).0 += 1;
    }

    fn open(&mut self, key: FlowKey, segment: &Segment) -> Option<usize> {
        if segment.flags.rst() && segment.payload_len == 0 {
            return None; // the answer to a connection that the capture does not have
        }
        let ends = roles(segment);
        self.connections += 1;
        let id = self.connections;
        let service = self.ledger.service(ends[SERVER]);
        let ladder = self.ledger.wants_ladder(id);
        let connection = Box::new(Connection::new(id, service, ends, segment, ladder));
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        self.slots[slot] = Some(connection);
        self.table.insert(key, slot);
        Some(slot)
    }

    /// Forgets connections that finished a while ago.
    fn retire(&mut self) {
        while let Some(&(at, slot, id)) = self.finished.front() {
            if self.now - at < LINGER {
                break;
            }
            self.finished.pop_front();
            if self.slots[slot].as_ref().is_some_and(|connection| connection.id == id) {
                self.end(slot);
            }
        }
    }

    /// Closes what a connection has under way and takes it off the table.
    fn end(&mut self, slot: usize) {
        let Some(mut connection) = self.slots[slot].take() else { return };
        connection.close(None, &mut self.ledger);
        let [a, b] = connection.ends;
        self.table.remove(&if a <= b { FlowKey(a, b) } else { FlowKey(b, a) });
        self.free.push(slot);
        if !self.ledger.lists(connection.id) {
            self.omitted_connections += u64::from(self.options.listing != Listing::None);
            return;
        }
        let (bill, exchanges) = self.ledger.connection(connection.id).into_parts();
        let [client, server] = &connection.halves;
        self.listed.push(report::Connection {
            id: connection.id,
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
    }

    /// Closes everything and says what was found.
    pub fn finish(mut self) -> Report {
        let mut open: Vec<(u64, usize)> = self
            .slots
            .iter()
            .enumerate()
            .filter_map(|(slot, connection)| connection.as_ref().map(|connection| (connection.id, slot)))
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
