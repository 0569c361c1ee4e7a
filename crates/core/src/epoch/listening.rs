//! Which messages begin in a segment, if the capture has their bytes?
//!
//! Bytes are available only while a packet is read. So heads are read before the shards, and their meaning
//! travels with the segment ([`Mark`]). No payload is kept.

mod heard;

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};
use std::mem::take;

use tcpwhy_heads::is_alert;
use tcpwhy_wire::{Segment, Seq};

use crate::epoch::asked::Asked;
use crate::epoch::releases::Releases;
use crate::words::mark::Mark;
use heard::{Heard, Next, Told, side};

/// Connections read at once, memory permitting; the others are judged by their timing alone.
const HEARD_MAX: usize = 1 << 16;
/// Shares of the memory for them, and for segments that wait.
const HEARD_SHARE: usize = 12;
const WAITING_SHARE: usize = 32;
/// Connections remembered as not to be read.
const DEAF_MAX: usize = 1 << 18;
/// Places of connections that are over, kept for others.
const SPARE_MAX: usize = 32;
/// What is read of all connections.
#[derive(Clone, Debug)]
pub(crate) struct Listening {
    /// By the hash of the endpoints under a key that the capture's author does not know.
    heard: HashMap<u64, Entry, BuildHasherDefault<Mixed>>,
    /// The most that there may be.
    most: usize,
    /// Connections whose protocol is not read, or that have said everything. They are many, and nothing else
    /// is kept of them.
    deaf: HashSet<u64, BuildHasherDefault<Mixed>>,
    /// The connection last read is one of them.
    is_deaf: bool,
    told: Told,
    releases: Releases,
    /// Memory of connections that are over.
    #[expect(clippy::vec_box, reason = "a place goes to its connection as it is, and is not copied")]
    spare: Vec<Box<Heard>>,
}

/// One connection.
#[derive(Clone, Debug)]
enum Entry {
    /// No data yet; where each end's stream begins, if known.
    Silent([Option<Seq>; 2]),
    Heard(Box<Heard>),
}

/// The hash of a key that is a hash already.
#[derive(Clone, Copy, Debug, Default)]
struct Mixed(u64);

impl Hasher for Mixed {
    fn write(&mut self, _: &[u8]) {}

    #[inline]
    fn write_u64(&mut self, mixed: u64) {
        self.0 = mixed;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

impl Listening {
    /// For this much memory, of which it may take about a tenth.
    pub(crate) fn new(memory: usize) -> Self {
        let most = (memory / HEARD_SHARE / size_of::<(u64, Entry, Heard)>()).min(HEARD_MAX);
        let room = memory / WAITING_SHARE;
        let told = Told { room, room_max: room, ..Told::default() };
        let (heard, deaf, releases) = (HashMap::default(), HashSet::default(), Releases::default());
        Self { heard, most, deaf, is_deaf: false, told, releases, spare: Vec::new() }
    }

    /// The same, keeping the words of requests.
    pub(crate) fn keeping_words(memory: usize) -> Self {
        let mut listening = Self::new(memory);
        listening.told.asked = Some(Vec::new());
        listening
    }

    /// The requests since the last call.
    pub(crate) fn take_words(&mut self) -> Vec<Asked> {
        self.told.asked.as_mut().map(take).unwrap_or_default()
    }

    /// Its approximate size.
    pub(crate) fn bytes(&self) -> usize {
        let entries =
            self.heard.len() * 2 * size_of::<(u64, Entry)>() + self.deaf.len() * 2 * size_of::<u64>();
        entries + self.heard.len() * size_of::<Heard>() + (self.told.room_max - self.told.room)
    }

    /// The messages that begin in the segment last read.
    #[inline]
    pub(crate) fn marks(&self) -> &[Mark] {
        &self.told.marks
    }

    /// Whether the connection last read is no longer read, until a SYN or a reset.
    #[inline]
    pub(crate) fn is_deaf(&self) -> bool {
        self.is_deaf
    }

    /// Reads the heads in a segment of the connection with this hash of endpoints. Returns the messages that
    /// begin in it.
    #[inline]
    pub(crate) fn on_segment(&mut self, ends: u64, segment: &Segment, captured: &[u8]) -> &[Mark] {
        self.told.marks.clear();
        self.is_deaf = false;
        if segment.damaged {
            // Its bytes will be retransmitted.
        } else if segment.flags.syn() || segment.flags.rst() {
            self.on_control(ends, segment);
        } else if segment.payload_len > 0 {
            self.on_data(ends, segment, captured);
            if segment.flags.fin() {
                self.on_fin(ends, segment);
            }
        } else if segment.flags.fin() {
            self.on_fin(ends, segment);
        }
        &self.told.marks
    }

    /// An alert of TLS begins at `seq`, on a connection that is not read any further.
    #[cold]
    pub(crate) fn on_alert(&mut self, seq: Seq) -> &[Mark] {
        self.told.marks.clear();
        self.told.marks.push(Mark::alert(seq));
        &self.told.marks
    }

    /// Once a connection is over and was read completely, only that is kept.
    #[cold]
    fn on_fin(&mut self, ends: u64, segment: &Segment) {
        let Some(Entry::Heard(heard)) = self.heard.get_mut(&ends) else { return };
        let from = side(segment);
        let next = heard.conversation.next_at(from);
        heard.ended[from] |= heard.streams[from].ends_at(segment.seq + segment.payload_len, next);
        if heard.ended == [true; 2] {
            self.stop_listening(ends);
        }
    }

    /// From now on, the connection is not read.
    fn stop_listening(&mut self, ends: u64) {
        self.forget(ends);
        if self.deaf.len() < DEAF_MAX {
            self.deaf.insert(ends);
            self.is_deaf = true;
        }
    }

    #[cold]
    fn on_control(&mut self, ends: u64, segment: &Segment) {
        let from = side(segment);
        let begin = segment.seq + 1;
        let mut begins = [None; 2];
        begins[from] = Some(begin);
        match self.heard.get_mut(&ends) {
            Some(Entry::Silent(begins)) if segment.flags.syn() => begins[from] = Some(begin),
            Some(Entry::Heard(heard)) if segment.flags.syn() && heard.streams[from].begins(begin) => {}
            Some(entry) if segment.flags.syn() => {
                let over = std::mem::replace(entry, Entry::Silent(begins));
                self.leave(over);
            }
            Some(_) => self.forget(ends),
            None => {
                self.deaf.remove(&ends);
                if segment.flags.syn() && self.heard.len() < self.most {
                    self.heard.insert(ends, Entry::Silent(begins));
                }
            }
        }
    }

    #[inline]
    fn on_data(&mut self, ends: u64, segment: &Segment, captured: &[u8]) {
        let has_room = self.heard.len() < self.most;
        let (told, releases) = (&mut self.told, &mut self.releases);
        let next = match self.heard.get_mut(&ends) {
            Some(Entry::Heard(heard)) => {
                if heard.goes_on(segment) {
                    return;
                }
                heard.hear(segment, captured, told, releases)
            }
            Some(entry) => entry.begin(self.spare.pop()).hear_first(segment, captured, told, releases),
            None if self.deaf.contains(&ends) => {
                self.is_deaf = true;
                if is_alert(captured, segment.payload_len) {
                    self.told.marks.push(Mark::alert(segment.seq));
                }
                return;
            }
            None if has_room => {
                let entry = self.heard.entry(ends).or_insert(Entry::Silent([None; 2]));
                entry.begin(self.spare.pop()).hear_first(segment, captured, told, releases)
            }
            None => return,
        };
        match next {
            Next::Listen => {}
            Next::Stop => self.stop_listening(ends),
            Next::Forget => self.forget(ends),
        }
    }

    fn forget(&mut self, ends: u64) {
        if let Some(over) = self.heard.remove(&ends) {
            self.leave(over);
        } else {
            self.deaf.remove(&ends);
        }
    }

    /// Leaves the memory of a connection that is no longer read to others.
    fn leave(&mut self, over: Entry) {
        let Entry::Heard(mut heard) = over else { return };
        self.told.room += heard.clear();
        if self.spare.len() < SPARE_MAX {
            self.spare.push(heard);
        }
    }
}

impl Entry {
    /// The first data of a connection comes.
    fn begin(&mut self, spare: Option<Box<Heard>>) -> &mut Heard {
        if let Self::Silent(begins) = *self {
            let mut heard = spare.unwrap_or_default();
            heard.begin(begins);
            *self = Self::Heard(heard);
        }
        match self {
            Self::Heard(heard) => heard,
            Self::Silent(_) => unreachable!("it has just begun"),
        }
    }
}

#[cfg(test)]
mod tests;
