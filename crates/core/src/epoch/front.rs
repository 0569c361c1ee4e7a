//! What is decided for a segment before it goes to a shard: its place, its hash, and whether its epoch
//! ends?

use std::collections::BTreeMap;

use tcpwhy_heads::is_alert;
use tcpwhy_wire::{Duration, Endpoint, Flags, Instant, Segment, Usual};

use crate::connection::QUESTION;
use crate::epoch::budget::CONNECTION;
use crate::epoch::listening::Listening;
use crate::epoch::new_connections::NewConnections;
use crate::epoch::options::Options;
use crate::epoch::orders::{End, Epoch};
use crate::flow::hash::Keys;
use crate::flow::packed::PackedEnds;
use crate::words::mark::Mark;
use crate::words::report::{Note, Report};

/// A packet dated this much before an earlier one was not reordered by a queue: the capture's clock was
/// set back.
pub(crate) const LATE: Duration = Duration::from_secs(1);

/// This part of the memory is for data outside the segments' own places: marks, SACK blocks, IPv6
/// addresses.
const BESIDE_SHARE: usize = 32;

/// What the front has found out about a segment.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// Pairs of hosts are spread over 2^16 places. All segments between two hosts have the same one.
    pub place: u16,
    pub(crate) hash: u32,
    /// The capture's clock, which never runs back: the packet's own time, unless the packet is
    /// [`LATE`].
    pub(crate) clock: Instant,
    ends: u64,
    /// Its connection is not read.
    is_deaf: bool,
    /// Whether the epoch ends with it.
    pub is_last: bool,
}

/// Every segment passes this first, in capture order.
#[derive(Clone, Debug)]
pub struct Front {
    segments: u64,
    /// The latest time so far.
    now: Instant,
    keys: Keys,
    /// Segments left in the present epoch, and bytes left for data outside their places.
    left: usize,
    room: usize,
    room_each: usize,
    /// Bytes left for the epoch's requests.
    questions: usize,
    new_connections: NewConnections,
    listening: Listening,
    notes: BTreeMap<&'static str, (u64, u64)>,
}

/// The number of exchanges that begin there.
#[inline(never)]
fn asked(marks: &[Mark]) -> usize {
    marks.iter().filter(|mark| mark.begins_exchange()).count()
}

impl Front {
    pub(crate) fn new(options: &Options) -> Self {
        let (keys, new_connections) = (Keys::new(options.seed), NewConnections::new());
        let (listening, notes) = (Listening::new(options.memory), BTreeMap::new());
        let room_each = options.memory / BESIDE_SHARE;
        let (segments, now, left, room, questions) = (0, Instant::MIN, 0, 0, 0);
        Self { segments, now, keys, left, room, room_each, questions, new_connections, listening, notes }
    }

    /// Begins an epoch with the next segment.
    pub fn begin_epoch(&mut self, epoch: Epoch) {
        self.left = epoch.segments;
        self.room = self.room_each;
        self.take_room(0);
        self.questions = epoch.connections.saturating_mul(CONNECTION);
        self.new_connections.begin((epoch.connections < epoch.segments).then_some(epoch.connections));
    }

    /// Notes a segment.
    #[inline]
    pub fn on_segment(&mut self, segment: &Segment) -> Arrival {
        self.take_room(size_of::<Segment>());
        self.on_ends(segment.at, segment.packet, segment.src, segment.dst)
    }

    /// The same for a usual one.
    #[inline]
    pub fn on_usual(&mut self, usual: &Usual<'_>) -> Arrival {
        let [src, dst] = PackedEnds::new(usual.addrs(), usual.ports()).ends();
        self.on_ends(usual.at(), usual.packet(), src, dst)
    }

    #[expect(clippy::inline_always, reason = "what is known of usual addresses is known there")]
    #[inline(always)]
    fn on_ends(&mut self, at: Instant, packet: u64, src: Endpoint, dst: Endpoint) -> Arrival {
        self.segments += 1;
        let mut clock = at;
        if at < self.now {
            self.note("time-steps-back", packet);
            if self.now - at > LATE {
                clock = self.now;
            }
        } else {
            self.now = at;
        }
        self.left -= 1;
        let mixed = self.keys.mix(src, dst);
        let known = self.new_connections.on_segment(mixed.ends);
        let is_last = known.is_last || self.left == 0;
        let (place, hash, ends) = ((mixed.hosts >> 48) as u16, mixed.hash(), mixed.ends);
        Arrival { place, hash, clock, ends, is_deaf: known.is_deaf, is_last }
    }

    /// The messages that begin in the segment that has just arrived, from as much of its payload as was
    /// captured.
    #[inline]
    pub fn read_heads(&mut self, arrival: Arrival, segment: &Segment, captured: &[u8]) -> &[Mark] {
        if arrival.is_deaf && !segment.flags.syn() && !segment.flags.rst() {
            let says = is_alert(captured, segment.payload_len) && !segment.damaged;
            return if says { self.listening.on_alert(segment.seq) } else { &[] };
        }
        self.listen(arrival, segment, captured)
    }

    /// The same for a usual segment.
    #[inline]
    pub fn read_usual_heads(&mut self, arrival: Arrival, usual: &Usual<'_>, captured: &[u8]) -> &[Mark] {
        let control = usual.flags().0 & (Flags::SYN | Flags::RST) != 0;
        let says_nothing = usual.payload_len() == 0 && !usual.flags().fin();
        if (says_nothing || arrival.is_deaf) && !control {
            let says = is_alert(captured, usual.payload_len());
            return if says { self.listening.on_alert(usual.segment().seq) } else { &[] };
        }
        self.listen(arrival, &usual.segment(), captured)
    }

    /// Takes so many bytes outside places. The epoch ends with the next segment if none are left.
    #[inline]
    fn take_room(&mut self, bytes: usize) {
        self.room = self.room.saturating_sub(bytes);
        if self.room == 0 {
            self.left = self.left.min(1);
        }
    }

    fn listen(&mut self, arrival: Arrival, segment: &Segment, captured: &[u8]) -> &[Mark] {
        let marks = self.listening.on_segment(arrival.ends, segment, captured);
        let taken = size_of_val(marks);
        if !marks.is_empty() {
            let asked = asked(marks);
            self.questions = self.questions.saturating_sub(asked * QUESTION);
            self.take_room(if self.questions == 0 { usize::MAX } else { taken });
        }
        if self.listening.is_deaf() != arrival.is_deaf {
            self.new_connections.learn_deaf(arrival.ends, self.listening.is_deaf());
        }
        self.listening.marks()
    }

    /// The end of an epoch after this packet.
    pub fn end(&self, packet: u64) -> End {
        End { now: self.now, packet, heard: self.listening.bytes() }
    }

    #[cold]
    fn note(&mut self, kind: &'static str, packet: u64) {
        self.notes.entry(kind).or_insert((0, packet)).0 += 1;
    }

    pub(crate) fn put_into(&self, report: &mut Report, more: BTreeMap<&'static str, (u64, u64)>) {
        report.segments = self.segments;
        let mut notes = self.notes.clone();
        notes.extend(more);
        let note = |(kind, (count, first_packet))| Note { kind, count, first_packet };
        report.notes = notes.into_iter().map(note).collect();
    }
}
