//! What must each protocol's parser provide? One interface, and helpers to read heads.

use std::fmt::Debug;

use crate::head::{Head, Span};
use crate::protocol::Protocol;

/// Bytes of a head that can be kept until the next segment brings the rest. No protocol needs more
/// of a head.
pub(crate) const CARRY: usize = 40;

/// The beginning of one side's data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct First<'a> {
    /// The captured part.
    pub bytes: &'a [u8],
    /// Length of the segment that contains it.
    pub len: u32,
}

impl<'a> First<'a> {
    /// All of it was captured.
    pub const fn whole(bytes: &'a [u8]) -> Self {
        Self { bytes, len: bytes.len() as u32 }
    }

    /// Nothing has been received.
    pub(crate) const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}

/// A set of possible first bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FirstBytes([bool; 256]);

impl FirstBytes {
    pub(crate) const NONE: Self = Self([false; 256]);
    pub(crate) const ANY: Self = Self([true; 256]);

    /// Exactly these.
    pub(crate) const fn of(bytes: &[u8]) -> Self {
        let (mut first, mut i) = (Self::NONE, 0);
        while i < bytes.len() {
            first.0[bytes[i] as usize] = true;
            i += 1;
        }
        first
    }

    /// Also the range from one to another.
    pub(crate) const fn and_range(mut self, from: u8, to: u8) -> Self {
        let mut byte = from as usize;
        while byte <= to as usize {
            self.0[byte] = true;
            byte += 1;
        }
        self
    }

    pub(crate) const fn has(&self, byte: usize) -> bool {
        self.0[byte]
    }
}

/// The side that usually asks, and the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Client,
    Server,
}

impl Side {
    pub(crate) const fn is_client(self) -> bool {
        matches!(self, Self::Client)
    }
}

/// The result of one step through the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The head continues after these bytes.
    Need,
    /// Read; the next head, or the next line of this one, begins this many bytes (at least one)
    /// after the beginning of these.
    Skip(u64),
    /// Both sides speak another protocol from here on, and this is its beginning.
    Other(Protocol),
    /// Where the next message begins is unknown.
    Lose,
    /// This is not the detected protocol.
    Wrong,
}

/// No length is known: the rest of the stream is one message.
pub(crate) const FOR_EVER: Step = Step::Skip(u64::MAX);

/// The protocol of both sides from here on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    Into(Protocol),
    /// Another protocol, to be detected from their bytes.
    Anew,
}

/// A protocol as spoken by two sides: the state kept between heads.
pub(crate) trait Talk: Copy + Default + PartialEq + Debug {
    /// At least one side begins with one of these, or the protocol does not fit.
    const FIRST: FirstBytes;

    /// Whether these are beyond doubt the beginnings of this protocol. Either side may not have
    /// spoken yet.
    fn fits(client: First<'_>, server: First<'_>) -> bool;

    /// Reads the beginning of `bytes`, which continue where the last step ended. The result must
    /// not depend on where `bytes` end: either it asks for more, up to [`CARRY`], or it decides.
    fn step(&mut self, side: Side, bytes: &[u8], out: &mut Out<'_>) -> Step;

    /// Whether beyond doubt a message of this side begins here. `is_turn`: the other side has
    /// spoken since this one did.
    fn begins(&self, side: Side, first: First<'_>, is_turn: bool) -> bool;

    /// Bytes of this side are missing, and a new message of it begins.
    fn lose(&mut self, side: Side);

    /// The rest of a segment was not captured. Returns the head to report for it, in a protocol
    /// whose heads can be found again and identify their message.
    fn cut(&self, _: Side) -> Option<Head> {
        None
    }

    /// Both sides switch to another protocol after this segment, the rest of which was not
    /// captured.
    fn turns(&self, _: Side) -> Option<Turn> {
        None
    }
}

/// The receiver of heads.
pub(crate) struct Out<'a> {
    pub(crate) from: usize,
    /// Offset of the step's bytes in the stream.
    pub(crate) at: u64,
    /// And in the current slice.
    pub(crate) base: usize,
    pub(crate) captured: &'a [u8],
    /// For a head that began in another segment: the bytes kept instead of the slice.
    pub(crate) carried: Option<[u8; CARRY]>,
    /// The other side has spoken since this one did.
    pub(crate) is_turn: bool,
    pub(crate) turn: Option<Turn>,
    pub(crate) on_head: &'a mut dyn FnMut(Head, &[u8]),
}

impl Out<'_> {
    /// Reports a head that begins with the step's bytes, or `at` bytes later.
    pub(crate) fn put(&mut self, head: Head) {
        self.put_at(self.at + head.at, head);
    }

    /// Reports a head that begins at this offset of the stream.
    pub(crate) fn put_at(&mut self, at: u64, head: Head) {
        let of = self.carried.as_ref().map_or(self.captured, |carried| carried.as_slice());
        (self.on_head)(Head { from: self.from, at, ..head }, of);
    }

    /// Bytes of the step, for a name.
    pub(crate) fn span(&self, start: usize, end: usize) -> Option<Span> {
        (start < end).then_some(Span { start: (self.base + start) as u32, end: (self.base + end) as u32 })
    }
}

/// A line, or as much of it as matters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line<'a> {
    /// Without its line break.
    pub(crate) text: &'a [u8],
    /// Its length including the line break, or the number of bytes examined.
    pub(crate) len: u64,
    /// It continues after them.
    pub(crate) is_cut: bool,
}

/// The line at the beginning. Of a long line the first 40 bytes count, wherever a segment ends.
pub(crate) fn line(bytes: &[u8]) -> Option<Line<'_>> {
    let window = &bytes[..bytes.len().min(CARRY)];
    if let Some(end) = window.iter().position(|byte| *byte == b'\n') {
        let text = window[..end].strip_suffix(b"\r").unwrap_or(&window[..end]);
        return Some(Line { text, len: end as u64 + 1, is_cut: false });
    }
    (window.len() == CARRY).then_some(Line { text: window, len: CARRY as u64, is_cut: true })
}

/// The rest of a longer line; and whether it ends in these bytes.
pub(crate) fn rest_of_line(bytes: &[u8]) -> (Step, bool) {
    let end = bytes.iter().position(|byte| *byte == b'\n');
    (Step::Skip(end.map_or(bytes.len(), |end| end + 1) as u64), end.is_some())
}

/// A decimal number and nothing else.
pub(crate) fn number(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0_u64, |sum, byte| {
        let digit = byte.checked_sub(b'0').filter(|digit| *digit < 10)?;
        sum.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

pub(crate) fn u16_le(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

pub(crate) fn u32_le(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Printable ASCII: letters, digits, signs and spaces.
pub(crate) fn is_text(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| (b' '..=b'~').contains(byte))
}
