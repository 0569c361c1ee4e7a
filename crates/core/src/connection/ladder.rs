//! The packets of one connection, each with what it waited for: kept only if a user asks for it.

use tcpwhy_wire::{Flags, Instant, Segment, Seq};

use crate::flow::packed::Packed;
use crate::words::opening::Opening;
use crate::words::report::{Rung, Steps};

/// The rungs so far, and how far each direction has come.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Ladder {
    pub rungs: Vec<Rung>,
    /// Used instead if all connections have ladders.
    pub steps: Option<Box<Steps>>,
    /// Offset of the highest byte of each direction, client and server.
    reached: [u64; 2],
    /// Packets without room here.
    pub omitted: u64,
    /// What relative sequence numbers of each direction count from.
    pub opening: Opening,
}

/// What the ladder shows of a segment by itself.
#[derive(Clone, Copy)]
pub(crate) struct Passing {
    pub packet: u64,
    pub at: Instant,
    pub seq: Seq,
    pub ack: Seq,
    pub len: u32,
    pub window: u16,
    pub flags: Flags,
}

impl From<&Segment> for Passing {
    #[inline]
    fn from(segment: &Segment) -> Self {
        let Segment { packet, at, seq, ack, payload_len, window, flags, .. } = *segment;
        Self { packet, at, seq, ack, len: payload_len, window, flags }
    }
}

impl From<&Packed> for Passing {
    #[inline]
    fn from(segment: &Packed) -> Self {
        let Packed { packet, at, seq, ack, payload_len, window, flags, .. } = *segment;
        Self { packet, at, seq, ack, len: payload_len, window, flags }
    }
}

/// A packet of the ladder, its charges, and their text: at most three lines.
pub(crate) const RUNG: usize = 2 * size_of::<Rung>() + 500;

impl Ladder {
    /// A segment's relative sequence and ACK numbers as Wireshark counts them: from the SYN, or without
    /// one so that the first byte seen of a direction is 1.
    pub(crate) fn relative(&mut self, passing: Passing, from: usize) -> (u32, Option<u32>) {
        let (base, ack_base) = self.opening.on_numbers([passing.seq, passing.ack], passing.flags, from);
        let ack = ack_base.map(|ack_base| (passing.ack - ack_base) as u32);
        ((passing.seq - base) as u32, ack)
    }

    /// The offset of a sequence number from its direction's first: the one closest to what the
    /// direction has reached, however often its numbers have wrapped.
    pub(crate) fn offset(&mut self, direction: usize, first: Option<Seq>, seq: Seq) -> u64 {
        let Some(first) = first else { return 0 };
        let reached = &mut self.reached[direction];
        let beyond = seq - (first + *reached as u32);
        let offset = reached.saturating_add_signed(i64::from(beyond));
        *reached = (*reached).max(offset);
        offset
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_go_on_where_sequence_numbers_go_round() {
        let (mut ladder, first) = (Ladder::default(), Seq(4_000_000_000));
        let mut sent = 0_u64;
        while sent < 10_000_000_000 {
            assert_eq!(ladder.offset(1, Some(first), first + sent as u32), sent);
            sent += 700_000_001;
        }
        let before = sent - 2 * 700_000_001;
        assert_eq!(ladder.offset(1, Some(first), first + before as u32), before);
        assert_eq!(ladder.offset(0, Some(first), first), 0);
        // A keep-alive's number is one below the first.
        assert_eq!(ladder.offset(0, Some(first), first + u32::MAX), 0);
    }
}
