//! Where in a file is a packet, for a second pass that wants few of its connections?

use tcpwhy_wire::capture::Reader;

use super::index::{Index, Run, Sums};

/// Places remembered at most; in a longer file they are farther apart.
const PLACES_MAX: usize = 1 << 10;
/// With more interfaces than this, a reader's state is too large to be kept this often.
const INTERFACES_MAX: usize = 16;

/// A reader's state between two packets.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub reader: Reader,
    /// Number of the last packet before it.
    pub number: u64,
}

/// Places in a file, in order, and an index of its packets.
#[derive(Debug, Default)]
pub struct Places {
    known: Vec<Place>,
    /// If it was requested.
    index: Option<Index>,
    /// One in `each` of the places that pass is remembered, and how many have passed since the last
    /// one.
    each: usize,
    passed: usize,
}

impl Places {
    /// Returns how many bytes of `memory` that takes at most.
    pub(super) fn begin(&mut self, memory: usize) -> usize {
        let index = Index::within(memory / 32);
        let bytes = index.bytes();
        (self.index, self.each) = (Some(index), 1);
        bytes
    }

    /// The index, to which each packet is added.
    #[inline]
    pub(super) fn index(&mut self) -> Option<&mut Index> {
        self.index.as_mut()
    }

    /// The reader is right after the packet with this number.
    #[cold]
    pub(super) fn learn(&mut self, reader: &Reader, number: u64) {
        // Bytes before the next packet belong to that packet.
        if !self.index.as_ref().is_some_and(Index::is_even) {
            return;
        }
        self.passed += 1;
        if self.passed < self.each.max(1) || reader.interfaces() > INTERFACES_MAX {
            return;
        }
        self.passed = 0;
        self.known.push(Place { reader: reader.clone(), number });
        if self.known.len() == PLACES_MAX {
            let mut nth = 0;
            self.known.retain(|_| {
                nth += 1;
                nth % 2 == 0
            });
            self.each *= 2;
        }
    }

    /// The pieces that contain wanted packets, in order.
    fn pieces(&self, ranges: &[[u64; 2]], sums: &Sums) -> Vec<Piece> {
        let start = Place { reader: Reader::new(), number: 0 };
        let from: Vec<Place> = std::iter::once(start).chain(self.known.iter().cloned()).collect();
        let last = from.iter().skip(1).map(|place| place.number).chain([u64::MAX]).collect::<Vec<_>>();
        let is_wanted =
            |from: &Place, to: u64| ranges.iter().any(|[first, end]| *first <= to && *end > from.number);
        let pieces = from.into_iter().zip(last).filter(|(from, last)| is_wanted(from, *last));
        let runs =
            |from: &Place, last| self.index.as_ref()?.runs(from.reader.offset(), from.number, last, sums);
        pieces.map(|(from, last)| Piece { runs: runs(&from, last), from, last }).collect()
    }
}

/// Which packets of a file are wanted, and where they are.
#[derive(Debug)]
pub(super) struct Wanted {
    pieces: Vec<Piece>,
    /// First and last packet of each range.
    ranges: Vec<[u64; 2]>,
}

/// The part of a file between two places.
#[derive(Debug)]
pub(super) struct Piece {
    pub from: Place,
    /// Number of its last packet, or more.
    pub last: u64,
    /// The parts of it to read, if they are known.
    pub runs: Option<Vec<Run>>,
}

impl Wanted {
    /// The packets in these ranges, of connections whose ports have these sums.
    pub(super) fn new(places: &Places, ranges: Vec<[u64; 2]>, sums: &Sums) -> Self {
        Self { pieces: places.pieces(&ranges, sums), ranges }
    }

    /// The pieces that contain wanted packets, in order.
    pub(super) fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// Whether nothing after the packet with this number is wanted.
    pub(super) fn is_over(&self, number: u64) -> bool {
        self.ranges.iter().all(|[_, last]| *last <= number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Places after every tenth packet.
    fn wanted(ranges: &[[u64; 2]]) -> Wanted {
        let mut places = Places::default();
        places.begin(1 << 20);
        for packet in (0..1_000).step_by(10) {
            places.learn(&Reader::new(), packet);
        }
        Wanted::new(&places, ranges.to_vec(), &Sums::of([].into_iter()))
    }

    #[test]
    fn pieces_have_all_that_is_wanted_and_each_packet_once() {
        let ranges = [[205, 250], [41, 43], [245, 260], [989, 1_200]];
        let wanted = wanted(&ranges);
        let pieces = wanted.pieces();
        let within = |piece: &&Piece, packet| piece.from.number < packet && packet <= piece.last;
        for packet in ranges.iter().flat_map(|[first, last]| *first..=*last) {
            assert_eq!(pieces.iter().filter(|piece| within(piece, packet)).count(), 1, "packet {packet}");
        }
        assert_eq!(pieces.len(), 1 + 6 + 2, "{pieces:?}");
        assert!(pieces.is_sorted_by_key(|piece| piece.from.number));
        assert!(!wanted.is_over(1_199) && wanted.is_over(1_200));
    }

    #[test]
    fn of_a_long_file_fewer_places_are_remembered() {
        let mut places = Places::default();
        places.begin(1 << 20);
        for packet in 0..100 * PLACES_MAX as u64 {
            places.learn(&Reader::new(), packet);
        }
        assert!(places.known.len() < PLACES_MAX);
        let last = places.known.last().map_or(0, |place| place.number);
        assert!(last > 99 * PLACES_MAX as u64, "{last}");
        let mut nobody = Places::default();
        nobody.learn(&Reader::new(), 1);
        assert!(nobody.known.is_empty());
    }
}
