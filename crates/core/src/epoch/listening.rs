//! Which messages begin in a segment, if the capture has their bytes?
//!
//! Bytes are available only while a packet is read. So heads are read before the shards, and their meaning
//! travels with the segment ([`Mark`]). No payload is kept.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};
use std::mem::take;

use tcpwhy_heads::{Conversation, Credit as Flow, Head, Protocol, Role as Said};
use tcpwhy_wire::{Instant, Segment, Seq};

use crate::epoch::asked::{Asked, words};
use crate::epoch::releases::Releases;
use crate::words::mark::{Credit, Mark, Role};

/// Connections read at once, memory permitting; the others are judged by their timing alone.
const HEARD_MAX: usize = 1 << 16;
/// Shares of the memory for them, and for segments that wait.
const HEARD_SHARE: usize = 12;
const WAITING_SHARE: usize = 32;
/// Connections remembered as not to be read.
const DEAF_MAX: usize = 1 << 18;
/// Segments of one direction that wait for the one before them.
const WAITING_MAX: usize = 16;
/// Bytes kept of each of them.
const WAITING_BYTES: usize = 1024;
/// Segments that one end may send unrecognized before the connection is no longer read.
const TURN_MAX: u32 = 256;
/// A message's first bytes may come in this many segments.
const PIECES: u32 = 4;
/// Bytes that show the protocol (a record's head in TLS and what it holds, RFC 8446, 5.1).
const HEAD_MIN: usize = 6;
/// If a stream's beginning is not in the capture, its first byte seen has this place.
const MIDDLE: u64 = 1 << 32;

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
}

/// What heads have told.
#[derive(Clone, Debug, Default)]
struct Told {
    /// Of the present segment.
    marks: Vec<Mark>,
    /// Requests in words, until they are taken; `None` if nobody wants them.
    asked: Option<Vec<Asked>>,
    /// Bytes left for segments that wait for others.
    room: usize,
    room_max: usize,
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

/// What is read of one connection.
#[derive(Clone, Debug, Default)]
struct Heard {
    conversation: Conversation,
    streams: [Stream; 2],
    /// Marks have been made for it.
    has_marks: bool,
    /// The rest of each end is not to be read: ciphertext, or a protocol without requests.
    is_opaque: [bool; 2],
    /// The end that began to set up a session (TLS), and whether the other end has finished that.
    opened: Option<(usize, bool)>,
    fins: [bool; 2],
    /// Each end's stream has ended, and was read completely.
    ended: [bool; 2],
    /// The end that spoke last while the protocol is unknown, and for how many segments.
    turn: Option<(usize, u32)>,
    /// When its last request came.
    asked_at: Option<Instant>,
}

/// One direction.
#[derive(Clone, Debug, Default)]
struct Stream {
    /// A sequence number near the present one, and its place in the stream.
    place: Option<(Seq, u64)>,
    /// The byte after what has been fed.
    fed: u64,
    waiting: Vec<Waiting>,
}

/// A segment that came before its predecessor.
#[derive(Clone, Debug)]
struct Waiting {
    at: u64,
    captured: Vec<u8>,
    payload_len: u32,
}

impl Waiting {
    /// The size of one with so many bytes.
    const fn memory(bytes: usize) -> usize {
        size_of::<Self>() + bytes
    }
}

impl Stream {
    /// Forgets the waiting segments. Returns the bytes they took.
    fn clear(&mut self) -> usize {
        take(&mut self.waiting).iter().map(|waiting| Waiting::memory(waiting.captured.len())).sum()
    }

    /// Whether it may begin there, as a retransmitted SYN says.
    fn begins(&self, begin: Seq) -> bool {
        self.place.is_none_or(|(seq, place)| seq == begin && place == 0)
    }

    /// Whether a stream that ends here has been read completely; `next` is the next place to read.
    fn ends_at(&self, end: Seq, next: u64) -> bool {
        let at = self.place.map(|(known, place)| place.saturating_add_signed(i64::from(end - known)));
        self.waiting.is_empty() && at.is_some_and(|at| (self.fed..=self.fed.max(next)).contains(&at))
    }

    /// The place of a sequence number in the stream.
    fn at(&mut self, seq: Seq) -> u64 {
        let (known, place) = *self.place.get_or_insert((seq, MIDDLE));
        let at = place.saturating_add_signed(i64::from(seq - known));
        if at > place {
            self.place = Some((seq, at));
        }
        at
    }
}

impl Listening {
    /// For this much memory, of which it may take about a tenth.
    pub(crate) fn new(memory: usize) -> Self {
        let most = (memory / HEARD_SHARE / size_of::<(u64, Entry, Heard)>()).min(HEARD_MAX);
        let room = memory / WAITING_SHARE;
        let told = Told { room, room_max: room, ..Told::default() };
        let (heard, deaf, releases) = (HashMap::default(), HashSet::default(), Releases::default());
        Self { heard, most, deaf, is_deaf: false, told, releases }
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
            let has_room = self.heard.len() < self.most;
            match self.heard.get_mut(&ends) {
                Some(Entry::Heard(heard)) => {
                    let nothing_new = heard.goes_on(segment);
                    if !nothing_new {
                        self.hear(ends, segment, captured);
                    }
                }
                Some(Entry::Silent(begins)) => {
                    let begins = *begins;
                    self.begin(ends, begins, segment, captured);
                }
                None if self.deaf.contains(&ends) => self.is_deaf = true,
                None if has_room => self.begin(ends, [None; 2], segment, captured),
                None => {}
            }
            if segment.flags.fin() {
                self.on_fin(ends, segment);
            }
        } else if segment.flags.fin() {
            self.on_fin(ends, segment);
        }
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
        match self.heard.get_mut(&ends) {
            Some(Entry::Silent(begins)) if segment.flags.syn() => {
                begins[from] = Some(begin);
                return;
            }
            Some(Entry::Heard(heard)) if segment.flags.syn() && heard.streams[from].begins(begin) => return,
            _ => {}
        }
        self.forget(ends);
        if segment.flags.syn() && self.heard.len() < self.most {
            let mut begins = [None; 2];
            begins[from] = Some(begin);
            self.heard.insert(ends, Entry::Silent(begins));
        }
    }

    #[cold]
    fn begin(&mut self, ends: u64, begins: [Option<Seq>; 2], segment: &Segment, captured: &[u8]) {
        let mut heard = Box::<Heard>::default();
        for (stream, begin) in heard.streams.iter_mut().zip(begins) {
            stream.place = begin.map(|seq| (seq, 0));
        }
        self.heard.insert(ends, Entry::Heard(heard));
        self.hear(ends, segment, captured);
        if captured.len() < HEAD_MIN && captured.len() < segment.payload_len as usize {
            self.told.marks.push(Mark::unread(segment.seq));
        }
    }

    fn forget(&mut self, ends: u64) {
        match self.heard.remove(&ends) {
            Some(Entry::Heard(mut heard)) => self.told.room += heard.clear(),
            Some(Entry::Silent(_)) => {}
            None => {
                self.deaf.remove(&ends);
            }
        }
    }

    fn hear(&mut self, ends: u64, segment: &Segment, captured: &[u8]) {
        let Some(Entry::Heard(heard)) = self.heard.get_mut(&ends) else { return };
        let from = side(segment);
        let unheard = heard.turn.is_some_and(|(last, count)| last == from && count >= TURN_MAX);
        let is_opaque = heard.is_opaque;
        heard.on_data(segment, from, captured, &mut self.told);
        let count = heard.turn.filter(|(last, _)| *last == from).map_or(0, |(_, count)| count);
        heard.turn = heard.conversation.protocol().is_none().then_some((from, count));
        if !self.told.marks.is_empty() {
            heard.has_marks = true;
            heard.asked_at = self.releases.note(segment, &mut self.told.marks, heard.asked_at);
        }
        heard.fins[from] |= segment.flags.fin();
        let begun = is_opaque == [false; 2] && heard.is_opaque != is_opaque;
        if heard.is_opening() {
            if begun {
                self.told.marks.push(Mark::lost(segment.seq));
            }
        } else if heard.conversation.is_deaf() || heard.is_opaque != [false; 2] || unheard {
            if heard.conversation.protocol() == Some(Protocol::WebSocket) {
                self.told.marks.push(Mark { role: Role::Framed, ..Mark::lost(segment.seq) });
            } else if heard.has_marks {
                self.told.marks.push(Mark::lost(segment.seq));
            } else if heard.conversation.protocol() == Some(Protocol::Tls) {
                self.told.marks.push(Mark { role: Role::Sealed, ..Mark::lost(segment.seq) });
            }
            self.stop_listening(ends);
        } else if heard.fins == [true; 2] {
            self.forget(ends);
        }
    }
}

/// Which of the two ends sent it: the same for one connection, whichever end opened it.
fn side(segment: &Segment) -> usize {
    usize::from(segment.src > segment.dst)
}

impl Heard {
    /// Forgets the waiting segments. Returns the bytes they took.
    fn clear(&mut self) -> usize {
        self.streams.iter_mut().map(Stream::clear).sum()
    }

    /// Whether this segment shows nothing new: its sender is in the middle of a message, and the protocol
    /// will show when the other end speaks.
    #[inline]
    fn goes_on(&mut self, segment: &Segment) -> bool {
        let Some((last, count)) = &mut self.turn else { return false };
        *count += 1;
        *last == side(segment) && (PIECES..TURN_MAX).contains(count) && !segment.flags.fin()
    }

    fn on_data(&mut self, segment: &Segment, from: usize, captured: &[u8], told: &mut Told) {
        let stream = &mut self.streams[from];
        let at = stream.at(segment.seq);
        let end = at.saturating_add(u64::from(segment.payload_len));
        let next = self.conversation.next_at(from);
        let expected = stream.fed.max(next);
        if end <= expected && next > 0 {
            return; // retransmitted, or in the middle of a message
        }
        let missing = next > 0 && at > expected;
        let captured_len = captured.len().min(WAITING_BYTES);
        let takes = Waiting::memory(captured_len);
        if missing && stream.waiting.len() < WAITING_MAX && takes <= told.room {
            told.room -= takes;
            let captured = captured[..captured_len].to_vec();
            stream.waiting.push(Waiting { at, captured, payload_len: segment.payload_len });
            return;
        }
        if missing {
            told.room += stream.clear();
            told.marks.push(Mark::lost(segment.seq));
        }
        self.feed(segment, from, at, captured, segment.payload_len, told);
        // Segments that waited for it can be read now.
        while let Some(place) = self.next_waiting(from) {
            let waiting = self.streams[from].waiting.swap_remove(place);
            told.room += Waiting::memory(waiting.captured.len());
            if self.streams[from].waiting.is_empty() {
                self.streams[from].waiting = Vec::new();
            }
            self.feed(segment, from, waiting.at, &waiting.captured, waiting.payload_len, told);
        }
    }

    /// Whether an end asks before the other one has set up their session (TLS's False Start, RFC 7918): what that one says
    /// next sets it up.
    fn is_opening(&self) -> bool {
        self.opened.is_some_and(|(opener, finished)| {
            !finished && self.is_opaque[opener] && !self.is_opaque[1 - opener]
        })
    }

    fn next_waiting(&self, from: usize) -> Option<usize> {
        let stream = &self.streams[from];
        let reached = stream.fed.max(self.conversation.next_at(from));
        stream.waiting.iter().position(|waiting| waiting.at <= reached)
    }

    fn feed(
        &mut self,
        segment: &Segment,
        from: usize,
        at: u64,
        captured: &[u8],
        payload_len: u32,
        told: &mut Told,
    ) {
        let heard = self.conversation.next_at(from) > 0;
        let places = [0, 1].map(|side| self.streams[side].place.unwrap_or((segment.seq, at)));
        let (is_opaque, opened) = (&mut self.is_opaque, &mut self.opened);
        self.conversation.on_bytes(from, at, captured, payload_len, |head, bytes| {
            is_opaque[head.from] |= head.role == Said::Unknown;
            if head.session {
                note_opening(opened, &head);
            }
            if *is_opaque == [false; 2] || head.session && !is_opaque[head.from] {
                if let Some(asked) = &mut told.asked {
                    asked.extend(words(&head, bytes, segment, head.from != from));
                }
                told.marks.extend(mark(&head, places[head.from], head.from != from));
            }
        });
        let stream = &mut self.streams[from];
        stream.fed = stream.fed.max(at.saturating_add(u64::from(payload_len)));
        let cut = told.marks.iter().any(|mark| mark.role == Role::Cut);
        if heard && self.conversation.next_at(from) == 0 && self.conversation.protocol().is_some() && !cut {
            told.marks.push(Mark::lost(segment.seq)); // part of a head was not captured
        }
    }
}

/// A head of what sets up a session says who began, or that the other end is done.
#[cold]
#[inline(never)]
fn note_opening(opened: &mut Option<(usize, bool)>, head: &Head) {
    match (head.kind, opened) {
        ("ClientHello", opened) => *opened = Some((head.from, false)),
        ("Finished", Some((opener, finished))) => *finished |= head.from != *opener,
        _ => {}
    }
}

/// The mark of a head, given a sequence number and its place in the stream.
fn mark(head: &Head, (seq, place): (Seq, u64), by_peer: bool) -> Option<Mark> {
    let role = match head.role {
        Said::Asks => Role::Asks,
        Said::Subscribes => Role::Subscribes,
        Said::Answers => Role::Answers,
        Said::Defers => Role::Defers,
        Said::Pushes => Role::Tells,
        Said::Greets => Role::Greets,
        Said::Neither => Role::Neither,
        Said::Cut => Role::Cut,
        // An interim reply is waited for like a reply, and what follows it is a turn of its own.
        Said::Interim | Said::Unknown => return None,
    };
    let seq = seq + head.at.wrapping_sub(place) as u32;
    let end = head.len.and_then(|len| i32::try_from(len).ok()).map(|len| seq + len as u32);
    let credit = head.credit.map(|credit| match credit {
        Flow::Uses(bytes) => Credit::Uses(bytes),
        Flow::Grants(bytes) => Credit::Grants(bytes),
        Flow::Initial(bytes) => Credit::Initial(bytes),
    });
    let Head { id, first, last, session, .. } = *head;
    Some(Mark { seq, end, role, id, first, last, by_peer, session, released: false, credit })
}

#[cfg(test)]
mod tests;
