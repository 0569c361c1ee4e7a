//! Which messages begin in a segment, where the capture has their bytes?
//!
//! Bytes are at hand only while a packet is read, so that heads are read in front of the shards, and what they say goes with the
//! segment ([`Mark`]). Nothing is kept of what was said.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};
use std::mem::take;

use tcpwhy_heads::{Conversation, Credit as Flow, Head, Protocol, Role as Said};
use tcpwhy_wire::{Segment, Seq};

use crate::epoch::asked::{Asked, words};
use crate::words::mark::{Credit, Mark, Role};

/// Connections that are listened to at once, where there is memory for them; others are read by their timing alone.
const HEARD_MAX: usize = 1 << 16;
/// This part of the memory is for them, and this one for segments that wait.
const HEARD_SHARE: usize = 12;
const WAITING_SHARE: usize = 32;
/// Connections that are remembered not to be listened to.
const DEAF_MAX: usize = 1 << 18;
/// Segments of one direction that wait for the one before them.
const WAITING_MAX: usize = 16;
/// Bytes kept of each of them.
const WAITING_BYTES: usize = 1024;
/// What one end says without being understood, in segments, before nobody listens any more.
const TURN_MAX: u32 = 256;
/// A message's first bytes may come in so many segments.
const PIECES: u32 = 4;
/// What shows which protocol is spoken takes so many bytes (a record's head in TLS and what it holds, RFC 8446, 5.1).
const HEAD_MIN: usize = 6;
/// A stream whose beginning is not in the capture has bytes before the first that is seen.
const MIDDLE: u64 = 1 << 32;

/// What is heard of all connections.
#[derive(Clone, Debug)]
pub(crate) struct Listening {
    /// By what the endpoints are mixed to under a key that the capture's author does not know.
    heard: HashMap<u64, Entry, BuildHasherDefault<Mixed>>,
    /// How many of them there may be.
    most: usize,
    /// Connections whose protocol is none that is read, or that have said all that they say. They are many, and nothing else is kept
    /// of them.
    deaf: HashSet<u64, BuildHasherDefault<Mixed>>,
    /// The connection that was listened to last is one of them.
    is_deaf: bool,
    told: Told,
}

/// What heads have told.
#[derive(Clone, Debug, Default)]
struct Told {
    /// Of the segment at hand.
    marks: Vec<Mark>,
    /// What was asked, in words, since it was taken; where nobody wants to know, nothing is kept.
    asked: Option<Vec<Asked>>,
    /// Bytes that segments may still take that wait for others.
    room: usize,
    room_max: usize,
}

/// One connection.
#[derive(Clone, Debug)]
enum Entry {
    /// Nobody has said anything; where each side's stream begins, as far as it was told.
    Silent([Option<Seq>; 2]),
    Heard(Box<Heard>),
}

/// A hash that is one already.
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

/// What is heard of one connection.
#[derive(Clone, Debug, Default)]
struct Heard {
    conversation: Conversation,
    streams: [Stream; 2],
    /// Something has been said of it.
    has_marks: bool,
    /// What follows is not to be read: ciphertext, or a protocol without questions.
    is_opaque: bool,
    fins: [bool; 2],
    /// Each side's stream has ended, and all of it was heard.
    ended: [bool; 2],
    /// Who spoke last while the protocol is not known, and how many segments that went on for.
    turn: Option<(usize, u32)>,
}

/// One direction.
#[derive(Clone, Debug, Default)]
struct Stream {
    /// The sequence number at this place of the stream, near what passes now.
    place: Option<(Seq, u64)>,
    /// The byte behind what has been fed.
    fed: u64,
    waiting: Vec<Waiting>,
}

/// A segment that came before the one before it.
#[derive(Clone, Debug)]
struct Waiting {
    at: u64,
    captured: Vec<u8>,
    payload_len: u32,
}

impl Waiting {
    /// What one with so many bytes takes.
    const fn memory(bytes: usize) -> usize {
        size_of::<Self>() + bytes
    }
}

impl Stream {
    /// Forgets what waits. Returns the bytes that it took.
    fn clear(&mut self) -> usize {
        take(&mut self.waiting).iter().map(|waiting| Waiting::memory(waiting.captured.len())).sum()
    }

    /// Whether it is known to begin there: the SYN came again.
    fn begins(&self, begin: Seq) -> bool {
        self.place.is_none_or(|(seq, place)| seq == begin && place == 0)
    }

    /// Whether nothing more comes that was not heard, where a stream ends here; `next` is the next place that is to be heard.
    fn ends_at(&self, end: Seq, next: u64) -> bool {
        let at = self.place.map(|(known, place)| place.saturating_add_signed(i64::from(end - known)));
        self.waiting.is_empty() && at.is_some_and(|at| (self.fed..=self.fed.max(next)).contains(&at))
    }

    /// Where in the stream a sequence number lies.
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
    /// In so much memory, about a tenth of what all of it may take.
    pub(crate) fn new(memory: usize) -> Self {
        let most = (memory / HEARD_SHARE / size_of::<(u64, Entry, Heard)>()).min(HEARD_MAX);
        let room = memory / WAITING_SHARE;
        let told = Told { room, room_max: room, ..Told::default() };
        Self { heard: HashMap::default(), most, deaf: HashSet::default(), is_deaf: false, told }
    }

    /// The same, and it keeps what was asked.
    pub(crate) fn keeping_words(memory: usize) -> Self {
        let mut listening = Self::new(memory);
        listening.told.asked = Some(Vec::new());
        listening
    }

    /// What was asked since this was called before.
    pub(crate) fn take_words(&mut self) -> Vec<Asked> {
        self.told.asked.as_mut().map(take).unwrap_or_default()
    }

    /// About what it takes.
    pub(crate) fn bytes(&self) -> usize {
        let entries =
            self.heard.len() * 2 * size_of::<(u64, Entry)>() + self.deaf.len() * 2 * size_of::<u64>();
        entries + self.heard.len() * size_of::<Heard>() + (self.told.room_max - self.told.room)
    }

    /// The messages that begin in the segment that was read last.
    #[inline]
    pub(crate) fn marks(&self) -> &[Mark] {
        &self.told.marks
    }

    /// Whether nothing that the connection says from now on is read, until a SYN or a reset: the one that was listened to last.
    #[inline]
    pub(crate) fn is_deaf(&self) -> bool {
        self.is_deaf
    }

    /// Reads the heads in a segment of the connection with these mixed endpoints. Returns the messages that begin in it.
    #[inline]
    pub(crate) fn on_segment(&mut self, ends: u64, segment: &Segment, captured: &[u8]) -> &[Mark] {
        self.told.marks.clear();
        self.is_deaf = false;
        if segment.damaged {
            // Its bytes come again.
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

    /// Of a connection that has said all, and was heard, no more is kept than that.
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

    /// Nothing that is said from now on is read.
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
        heard.on_data(segment, from, captured, &mut self.told);
        let count = heard.turn.filter(|(last, _)| *last == from).map_or(0, |(_, count)| count);
        heard.turn = heard.conversation.protocol().is_none().then_some((from, count));
        heard.has_marks |= !self.told.marks.is_empty();
        heard.fins[from] |= segment.flags.fin();
        if heard.conversation.is_deaf() || heard.is_opaque || unheard {
            if heard.conversation.protocol() == Some(Protocol::WebSocket) {
                self.told.marks.push(Mark { role: Role::Framed, ..Mark::lost(segment.seq) });
            } else if heard.has_marks {
                self.told.marks.push(Mark::lost(segment.seq));
            }
            self.stop_listening(ends);
        } else if heard.fins == [true; 2] {
            self.forget(ends);
        }
    }
}

/// Which of the two sides sent it: the same for one connection, whoever opened it.
fn side(segment: &Segment) -> usize {
    usize::from(segment.src > segment.dst)
}

impl Heard {
    /// Forgets what waits. Returns the bytes that it took.
    fn clear(&mut self) -> usize {
        self.streams.iter_mut().map(Stream::clear).sum()
    }

    /// Whether nothing can be learned from this segment: whoever speaks has begun to, in whatever pieces, and what is spoken will
    /// show when the other one does.
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
            return; // again, or in the middle of a message
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
        // What came before it can be read now.
        while let Some(place) = self.next_waiting(from) {
            let waiting = self.streams[from].waiting.swap_remove(place);
            told.room += Waiting::memory(waiting.captured.len());
            if self.streams[from].waiting.is_empty() {
                self.streams[from].waiting = Vec::new();
            }
            self.feed(segment, from, waiting.at, &waiting.captured, waiting.payload_len, told);
        }
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
        let is_opaque = &mut self.is_opaque;
        self.conversation.on_bytes(from, at, captured, payload_len, |head, bytes| {
            *is_opaque |= head.role == Said::Unknown;
            if !*is_opaque {
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
            told.marks.push(Mark::lost(segment.seq)); // not all of a head was captured
        }
    }
}

/// What a head says of its message, with a sequence number and its place in the stream.
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
        // What answers for the time being is waited for like an answer, and what follows it is a turn of its own.
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
    Some(Mark { seq, end, role, id, first, last, by_peer, session, credit })
}

#[cfg(test)]
mod tests {
    use tcpwhy_wire::{Endpoint, Flags, Instant, TcpOptions};

    use super::*;

    const ENDS: u64 = 7;

    fn segment(by_client: bool, flags: u8, seq: u32, payload_len: u32) -> Segment {
        let (client, server) = (Endpoint::v4([10, 0, 0, 1], 4_000), Endpoint::v4([10, 0, 0, 2], 9_999));
        let (src, dst) = if by_client { (client, server) } else { (server, client) };
        Segment {
            packet: 1,
            at: Instant::MIN,
            src,
            dst,
            seq: Seq(seq),
            ack: Seq(1),
            window: 1_000,
            flags: Flags(flags),
            payload_len,
            options: TcpOptions::default(),
            ip_id: None,
            ttl: 64,
            damaged: false,
        }
    }

    /// What is kept of a connection whose protocol nobody knows yet, behind such a segment of its server and both ends' FINs.
    fn kept(server: Option<Segment>) -> (usize, usize) {
        let mut listening = Listening::new(1 << 20);
        let mut hear = |segment: Segment| {
            listening.on_segment(ENDS, &segment, &[0x41][..segment.payload_len.min(1) as usize]);
        };
        hear(segment(true, Flags::SYN, 99, 0));
        hear(segment(false, Flags::SYN | Flags::ACK, 499, 0));
        hear(segment(true, Flags::ACK, 100, 1));
        server.into_iter().for_each(&mut hear);
        hear(segment(true, Flags::ACK | Flags::FIN, 101, 0));
        hear(segment(false, Flags::ACK | Flags::FIN, 501, 0));
        (listening.heard.len(), listening.deaf.len())
    }

    #[test]
    fn keeps_next_to_nothing_of_who_has_said_all() {
        assert_eq!(kept(Some(segment(false, Flags::ACK, 500, 1))), (0, 1));
        assert_eq!(kept(None), (1, 0), "a byte is missing that may still come");
    }

    #[test]
    fn a_syn_is_listened_to_again() {
        let mut listening = Listening::new(1 << 20);
        listening.deaf.insert(ENDS);
        listening.on_segment(ENDS, &segment(true, Flags::ACK, 100, 1), b"A");
        assert!(listening.is_deaf() && listening.heard.is_empty());
        listening.on_segment(ENDS, &segment(true, Flags::SYN, 5_000, 0), &[]);
        assert!(!listening.is_deaf() && listening.heard.len() == 1 && listening.deaf.is_empty());
    }
}
