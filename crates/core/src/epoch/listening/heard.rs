//! What is read of one connection: which messages begin in its segments?

use std::mem::take;

use tcpwhy_heads::{Conversation, Credit as Flow, Head, Protocol, Role as Said};
use tcpwhy_wire::{Instant, Segment, Seq};

use crate::epoch::asked::{Asked, words};
use crate::epoch::releases::Releases;
use crate::words::mark::{Credit, Mark, Role};

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
/// What heads have told.
#[derive(Clone, Debug, Default)]
pub(super) struct Told {
    /// Of the present segment.
    pub(super) marks: Vec<Mark>,
    /// Requests in words, until they are taken; `None` if nobody wants them.
    pub(super) asked: Option<Vec<Asked>>,
    /// Bytes left for segments that wait for others.
    pub(super) room: usize,
    pub(super) room_max: usize,
}

/// What is read of one connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Heard {
    pub(super) conversation: Conversation,
    pub(super) streams: [Stream; 2],
    /// Marks have been made for it.
    has_marks: bool,
    /// The rest of each end is not to be read: ciphertext, or a protocol without requests.
    is_opaque: [bool; 2],
    /// The end that began to set up a session (TLS), and whether the other end has finished that.
    opened: Option<(usize, bool)>,
    fins: [bool; 2],
    /// Each end's stream has ended, and was read completely.
    pub(super) ended: [bool; 2],
    /// The end that spoke last while the protocol is unknown, and for how many segments.
    turn: Option<(usize, u32)>,
    /// When its last request came.
    asked_at: Option<Instant>,
}

/// One direction.
#[derive(Clone, Debug, Default)]
pub(super) struct Stream {
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
    pub(super) fn begins(&self, begin: Seq) -> bool {
        self.place.is_none_or(|(seq, place)| seq == begin && place == 0)
    }

    /// Whether a stream that ends here has been read completely; `next` is the next place to read.
    pub(super) fn ends_at(&self, end: Seq, next: u64) -> bool {
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

/// What becomes of a connection after a segment.
#[derive(Clone, Copy, Debug)]
pub(super) enum Next {
    Listen,
    /// It is not read any further.
    Stop,
    Forget,
}

/// Which of the two ends sent it: the same for one connection, whichever end opened it.
pub(super) fn side(segment: &Segment) -> usize {
    usize::from(segment.src > segment.dst)
}

impl Heard {
    /// Begins a connection in the memory of another one.
    pub(super) fn begin(&mut self, begins: [Option<Seq>; 2]) {
        let Self { conversation, streams, has_marks, is_opaque, opened, fins, ended, turn, asked_at } = self;
        conversation.begin_again();
        for (stream, begin) in streams.iter_mut().zip(begins) {
            stream.clear();
            (stream.place, stream.fed) = (begin.map(|seq| (seq, 0)), 0);
        }
        (*has_marks, *is_opaque, *fins, *ended) = (false, [false; 2], [false; 2], [false; 2]);
        (*opened, *turn, *asked_at) = (None, None, None);
    }

    /// Takes the first data of its connection.
    #[cold]
    pub(super) fn hear_first(
        &mut self,
        segment: &Segment,
        captured: &[u8],
        told: &mut Told,
        releases: &mut Releases,
    ) -> Next {
        let next = self.hear(segment, captured, told, releases);
        if captured.len() < HEAD_MIN && captured.len() < segment.payload_len as usize {
            told.marks.push(Mark::unread(segment.seq));
        }
        next
    }

    /// Reads the heads in a segment.
    pub(super) fn hear(
        &mut self,
        segment: &Segment,
        captured: &[u8],
        told: &mut Told,
        releases: &mut Releases,
    ) -> Next {
        let from = side(segment);
        let unheard = self.turn.is_some_and(|(last, count)| last == from && count >= TURN_MAX);
        let is_opaque = self.is_opaque;
        self.on_data(segment, from, captured, told);
        let count = self.turn.filter(|(last, _)| *last == from).map_or(0, |(_, count)| count);
        self.turn = self.conversation.protocol().is_none().then_some((from, count));
        if !told.marks.is_empty() {
            self.has_marks = true;
            self.asked_at = releases.note(segment, &mut told.marks, self.asked_at);
        }
        self.fins[from] |= segment.flags.fin();
        let begun = is_opaque == [false; 2] && self.is_opaque != is_opaque;
        if self.is_opening() {
            if begun {
                told.marks.push(Mark::lost(segment.seq));
            }
        } else if self.conversation.is_deaf() || self.is_opaque != [false; 2] || unheard {
            if self.conversation.protocol() == Some(Protocol::WebSocket) {
                told.marks.push(Mark { role: Role::Framed, ..Mark::lost(segment.seq) });
            } else if self.has_marks {
                told.marks.push(Mark::lost(segment.seq));
            } else if self.conversation.protocol() == Some(Protocol::Tls) {
                told.marks.push(Mark { role: Role::Sealed, ..Mark::lost(segment.seq) });
            }
            return Next::Stop;
        } else if self.fins == [true; 2] {
            return Next::Forget;
        }
        Next::Listen
    }

    /// Forgets the waiting segments. Returns the bytes they took.
    pub(super) fn clear(&mut self) -> usize {
        self.streams.iter_mut().map(Stream::clear).sum()
    }

    /// Whether this segment shows nothing new: its sender is in the middle of a message, and the protocol
    /// will show when the other end speaks.
    #[inline]
    pub(super) fn goes_on(&mut self, segment: &Segment) -> bool {
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
