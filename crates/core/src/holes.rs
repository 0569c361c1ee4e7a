//! What has the capture not seen although later bytes were: lost on the way here, late, or dropped by the capture itself?

use tcpwhy_wire::{Instant, Segment, Seq};

use crate::half::Half;

/// Holes in the sequence space remembered at most.
const HOLES_MAX: usize = 64;

/// A run of bytes that the capture has not seen although later ones were.
#[derive(Clone, Copy, Debug)]
struct Hole {
    start: Seq,
    end: Seq,
    noticed_at: Instant,
}

/// The holes of one direction that may still be filled.
#[derive(Clone, Debug, Default)]
pub(crate) struct Holes(Vec<Hole>);

impl Holes {
    /// Bytes are missing. Returns whether there is room to remember that.
    pub(crate) fn push(&mut self, start: Seq, end: Seq, noticed_at: Instant) -> bool {
        let room = self.0.len() < HOLES_MAX;
        if room {
            self.0.push(Hole { start, end, noticed_at });
        }
        room
    }

    /// When it was noticed that some of these bytes were missing.
    pub(crate) fn noticed_at(&self, start: Seq, end: Seq) -> Option<Instant> {
        let hole = self.0.iter().find(|hole| start.before(hole.end) && end.after(hole.start));
        hole.map(|hole| hole.noticed_at)
    }

    /// The peer has what is before `ack`.
    pub(crate) fn on_ack(&mut self, ack: Seq) {
        self.0.retain(|hole| hole.end.after(ack));
    }

    /// These bytes came after all.
    pub(crate) fn fill(&mut self, start: Seq, end: Seq) {
        let mut i = 0;
        while i < self.0.len() {
            let hole = self.0[i];
            if start.at_or_before(hole.start) && end.at_or_after(hole.end) {
                self.0.swap_remove(i);
                continue;
            }
            if start.at_or_before(hole.start) && end.after(hole.start) {
                self.0[i].start = end;
            } else if start.before(hole.end) && end.at_or_after(hole.end) {
                self.0[i].end = start;
            }
            i += 1;
        }
    }
}

impl Half {
    /// Whether the peer has acknowledged bytes that the capture does not have. They may still come, where the capture
    /// took the packets of two queues out of order.
    pub(crate) fn acked_unseen(&self) -> bool {
        self.una.zip(self.snd_nxt).is_some_and(|(una, nxt)| una.after(nxt))
    }

    /// Whether packets before this segment are missing from the capture, though they did arrive.
    pub(crate) fn not_captured(&self, segment: &Segment) -> bool {
        self.acked_unseen() && self.snd_nxt.is_some_and(|nxt| segment.seq.after(nxt))
    }
}
