//! Where in a file does a packet lie, for a second pass that wants a few connections of it?

use tcpwhy_wire::capture::Reader;

use super::index::{Index, Run, Sums};

/// So many places are remembered at most; of a longer file, fewer of them.
const PLACES_MAX: usize = 1 << 10;
/// With more interfaces than these, what a reader knows is too much to be kept so often.
const INTERFACES_MAX: usize = 16;

/// How a reader stood between two packets.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub reader: Reader,
    /// Number of the last packet in front of it.
    pub number: u64,
}

/// Places in a file, in its order, and its packets.
#[derive(Debug, Default)]
pub struct Places {
    known: Vec<Place>,
    /// Where it was asked for.
    index: Option<Index>,
    /// One in so many of those that pass is remembered, and how many have passed since the last one.
    each: usize,
    passed: usize,
}

impl Places {
    /// Returns how much of so many bytes that takes at most.
    pub(super) fn begin(&mut self, memory: usize) -> usize {
        let index = Index::within(memory / 32);
        let bytes = index.bytes();
        (self.index, self.each) = (Some(index), 1);
        bytes
    }

    /// For what is learnt of each packet.
    #[inline]
    pub(super) fn index(&mut self) -> Option<&mut Index> {
        self.index.as_mut()
    }

    /// A reader stands behind the packet with this number.
    #[cold]
    pub(super) fn learn(&mut self, reader: &Reader, number: u64) {
        // What lies in front of the next packet belongs to it.
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

    /// Pieces in which something is wanted, in their order.
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

/// Which packets of a file are wanted, and where they lie.
#[derive(Debug)]
pub(super) struct Wanted {
    pieces: Vec<Piece>,
    /// From the first to the last one of each.
    ranges: Vec<[u64; 2]>,
}

/// What lies between two places of a file.
#[derive(Debug)]
pub(super) struct Piece {
    pub from: Place,
    /// Number of the last packet in it, or more.
    pub last: u64,
    /// What of it is to be read, where that is known.
    pub runs: Option<Vec<Run>>,
}

impl Wanted {
    /// Of connections whose ports have these sums, the packets in these ranges.
    pub(super) fn new(places: &Places, ranges: Vec<[u64; 2]>, sums: &Sums) -> Self {
        Self { pieces: places.pieces(&ranges, sums), ranges }
    }

    /// The pieces with something wanted in them, in order.
    pub(super) fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// Whether nothing more is wanted behind the packet with this number.
    pub(super) fn is_over(&self, number: u64) -> bool {
        self.ranges.iter().all(|[_, last]| *last <= number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Places behind every tenth packet.
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
