//! Which bytes has the capture not seen although later ones were: lost before it, late, or dropped by the
//! capture itself?

use std::collections::VecDeque;

use tcpwhy_wire::{Instant, Segment, Seq};

/// Holes remembered at most: a slow start that overshoots a deep queue loses every other segment of it.
const HOLES_MAX: usize = 256;

/// A run of bytes that the capture has not seen although later ones were.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Hole {
    start: Seq,
    end: Seq,
    noticed_at: Instant,
    /// The TSval of the packet that revealed it.
    stamp: Option<u32>,
}

/// The holes of one direction that may still be filled, in sequence order and without overlap.
#[derive(Clone, Debug, Default, PartialEq)]
#[expect(clippy::box_collection, reason = "a word instead of four in every connection")]
pub(crate) struct Holes(Option<Box<VecDeque<Hole>>>);

impl Holes {
    pub(crate) const NONE: Self = Self(None);

    /// Heap memory in bytes.
    pub(crate) fn heap(&self) -> usize {
        self.0.as_ref().map_or(0, |holes| size_of::<VecDeque<Hole>>() + holes.capacity() * size_of::<Hole>())
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.as_ref().is_none_or(|holes| holes.is_empty())
    }

    /// Where the first hole begins.
    pub(crate) fn first(&self) -> Option<Seq> {
        self.0.as_ref()?.front().map(|hole| hole.start)
    }

    /// Bytes of it.
    pub(crate) fn first_len(&self) -> u32 {
        self.0.as_ref().and_then(|holes| holes.front()).map_or(0, |hole| (hole.end - hole.start) as u32)
    }

    /// When the first one was noticed.
    pub(crate) fn first_noticed(&self) -> Option<Instant> {
        self.0.as_ref()?.front().map(|hole| hole.noticed_at)
    }

    /// A packet shows that bytes after all those seen are missing. Returns whether there was room to
    /// remember that.
    pub(crate) fn notice(&mut self, start: Seq, end: Seq, packet: &Segment) -> bool {
        self.push(start, end, packet.at, packet.options.timestamps.map(|stamps| stamps.val))
    }

    fn push(&mut self, start: Seq, end: Seq, noticed_at: Instant, stamp: Option<u32>) -> bool {
        let holes = self.0.get_or_insert_default();
        let room = holes.len() < HOLES_MAX;
        if room {
            holes.push_back(Hole { start, end, noticed_at, stamp });
        }
        room
    }

    /// Whether the byte before `end` is missing.
    pub(crate) fn reach(&self, end: Seq) -> bool {
        self.around(Seq(end.0.wrapping_sub(1)), end).is_some()
    }

    /// When it was noticed that some of these bytes were missing.
    pub(crate) fn noticed_at(&self, start: Seq, end: Seq) -> Option<Instant> {
        self.around(start, end).map(|hole| hole.noticed_at)
    }

    /// The TSval of the packet that revealed it.
    pub(crate) fn stamp(&self, start: Seq, end: Seq) -> Option<u32> {
        self.around(start, end)?.stamp
    }

    fn around(&self, start: Seq, end: Seq) -> Option<&Hole> {
        let holes = self.0.as_ref()?;
        holes.get(first_ending_after(holes, start)).filter(|hole| end.after(hole.start))
    }

    /// The peer has everything before `ack`. Returns whether some of it never came.
    pub(crate) fn on_ack(&mut self, ack: Seq) -> bool {
        let Some(holes) = &mut self.0 else { return false };
        let before = holes.len();
        while holes.front().is_some_and(|hole| hole.end.at_or_before(ack)) {
            holes.pop_front();
        }
        holes.len() < before
    }

    /// These bytes came after all. Returns how many of them were missing.
    pub(crate) fn fill(&mut self, start: Seq, end: Seq) -> u32 {
        let Some(holes) = &mut self.0 else { return 0 };
        let mut filled = 0;
        let mut at = first_ending_after(holes, start);
        while let Some(&hole) = holes.get(at).filter(|hole| end.after(hole.start)) {
            let (from, to) = (hole.start.latest(start), if hole.end.after(end) { end } else { hole.end });
            filled += (to - from).max(0) as u32;
            match (from == hole.start, to == hole.end) {
                (true, true) => {
                    holes.remove(at);
                    continue;
                }
                (true, false) => holes[at].start = to,
                (false, true) => holes[at].end = from,
                (false, false) => {
                    holes[at].end = from;
                    if holes.len() < HOLES_MAX {
                        holes.insert(at + 1, Hole { start: to, ..hole });
                    }
                }
            }
            at += 1;
        }
        filled
    }
}

fn first_ending_after(holes: &VecDeque<Hole>, start: Seq) -> usize {
    holes.partition_point(|hole| hole.end.at_or_before(start))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn holes(of: &[(u32, u32)]) -> Holes {
        let mut holes = Holes::default();
        for &(start, end) in of {
            assert!(holes.push(Seq(start), Seq(end), Instant::from_nanos(i64::from(start)), None));
        }
        holes
    }

    fn left(holes: &Holes) -> Vec<(u32, u32)> {
        holes.0.iter().flat_map(|holes| holes.iter()).map(|hole| (hole.start.0, hole.end.0)).collect()
    }

    /// A step of the test; numbers are byte offsets from where the holes begin.
    #[derive(Clone, Copy, Debug)]
    enum Step {
        /// So many bytes are missing, and so many follow them.
        Missing(u32, u32),
        Came(u32, u32),
        Acked(u32),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            (0..12_u32, 1..12_u32).prop_map(|(missing, behind)| Step::Missing(missing, behind)),
            (0..400_u32, 1..40_u32).prop_map(|(start, len)| Step::Came(start, len)),
            (0..400_u32).prop_map(Step::Acked),
        ];
        proptest::collection::vec(step, 0..80)
    }

    proptest! {
        /// Compared with a set of single bytes, across the end of the sequence space.
        #[test]
        fn holes_are_the_bytes_that_are_missing(steps in steps(), begins in (u32::MAX - 300)..) {
            let seq = |at: u32| Seq(begins) + at;
            let (mut holes, mut missing, mut next) = (Holes::default(), BTreeSet::new(), 0);
            for step in steps {
                match step {
                    Step::Missing(len, behind) => {
                        if len > 0 {
                            holes.push(seq(next), seq(next + len), Instant::MIN, None);
                            missing.extend(next..next + len);
                        }
                        next += len + behind;
                    }
                    Step::Came(start, len) => {
                        let came = (start..start + len).filter(|at| missing.remove(at)).count();
                        prop_assert_eq!(holes.fill(seq(start), seq(start + len)) as usize, came);
                    }
                    // A hole that is acknowledged in part is still looked for.
                    Step::Acked(ack) if !missing.contains(&ack) => {
                        let before = missing.len();
                        missing = missing.split_off(&ack);
                        prop_assert_eq!(holes.on_ack(seq(ack)), missing.len() < before);
                    }
                    Step::Acked(_) => {}
                }
                prop_assert_eq!(holes.first(), missing.first().map(|&at| seq(at)));
                let left: u32 = holes.0.iter().flat_map(|holes| holes.iter()).map(|hole| (hole.end - hole.start) as u32).sum();
                prop_assert_eq!(left as usize, missing.len());
            }
        }
    }

    #[test]
    fn what_comes_late_counts_once() {
        let mut holes = holes(&[(u32::MAX - 9, 20), (100, 200), (300, 400)]);
        assert_eq!(holes.fill(Seq(120), Seq(150)), 30);
        assert_eq!(left(&holes), [(u32::MAX - 9, 20), (100, 120), (150, 200), (300, 400)]);
        assert_eq!(holes.fill(Seq(110), Seq(350)), 110);
        assert_eq!(left(&holes), [(u32::MAX - 9, 20), (100, 110), (350, 400)]);
        assert_eq!(holes.fill(Seq(110), Seq(350)), 0);
        assert_eq!(holes.noticed_at(Seq(360), Seq(370)), Some(Instant::from_nanos(300)));
        assert_eq!(holes.noticed_at(Seq(200), Seq(350)), None);
        assert_eq!(holes.fill(Seq(u32::MAX - 4), Seq(10)), 15);
        holes.on_ack(Seq(105));
        assert_eq!(left(&holes), [(100, 110), (350, 400)]);
    }
}
