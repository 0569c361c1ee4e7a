//! How long is each packet of a file, and to which connections may it belong? So that a later pass
//! over the file reads the packets of a few connections and skips the rest.

use tcpwhy_wire::Decoded;

/// Packets remembered at most; later ones are read sequentially.
const PACKETS_MAX: usize = 1 << 22;
/// Unwanted packets are read along up to this many bytes: another system call would take as long.
const GAP: u64 = 4 << 10;
/// Bytes read at a time, plus the packet that exceeds them.
const RUN_LEN: u64 = 256 << 10;

/// Sums of both ends' ports, the same for both directions: one look rules out nearly all segments
/// of other connections.
#[derive(Clone, Debug)]
pub struct Sums(Box<[bool; Sums::ALL]>);

impl Sums {
    const BITS: u32 = 11;
    const ALL: usize = 1 << Self::BITS;

    /// For connections between these ports.
    pub fn of(connections: impl Iterator<Item = [u16; 2]>) -> Self {
        let mut sums = Box::new([false; Self::ALL]);
        connections.for_each(|ports| sums[Self::sum(ports)] = true);
        Self(sums)
    }

    /// Whether a segment between these ports may belong to one of them.
    #[inline]
    pub fn may_be(&self, ports: [u16; 2]) -> bool {
        self.0[Self::sum(ports)]
    }

    #[inline]
    fn sum([a, b]: [u16; 2]) -> usize {
        usize::from(a.wrapping_add(b)) % Self::ALL
    }
}

/// The ports of both ends, read in place.
#[inline]
pub fn ports_of(decoded: &Decoded<'_>) -> [u16; 2] {
    match decoded {
        Decoded::Usual(usual) => usual.ports(),
        Decoded::Other(segment) => [segment.src.port, segment.dst.port],
    }
}

/// A packet: bytes since the end of the previous one, whether it must always be read, and its sum.
#[derive(Clone, Copy, Debug)]
struct Entry(u32);

impl Entry {
    const ANY: u32 = 1 << Sums::BITS;
    const LEN_SHIFT: u32 = Sums::BITS + 1;
    const LEN_MAX: usize = (1 << (32 - Self::LEN_SHIFT)) - 1;

    fn len(self) -> u64 {
        u64::from(self.0 >> Self::LEN_SHIFT)
    }

    fn is_wanted(self, sums: &Sums) -> bool {
        self.0 & Self::ANY != 0 || sums.0[self.0 as usize % Sums::ALL]
    }
}

/// The packets of a file, from the first one on.
#[derive(Debug, Default)]
pub(super) struct Index {
    entries: Vec<Entry>,
    most: usize,
    /// Bytes before the next packet that belong to no packet.
    between: usize,
    /// Later packets are not remembered.
    is_over: bool,
}

/// Adjacent packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub offset: u64,
    pub len: u64,
    /// Number of the last packet before them.
    pub number: u64,
    pub packets: u64,
}

impl Index {
    /// An index that takes at most this many bytes.
    pub(super) fn within(bytes: usize) -> Self {
        Self { most: PACKETS_MAX.min(bytes / size_of::<Entry>()), ..Self::default() }
    }

    /// Bytes that it takes at most.
    pub(super) fn bytes(&self) -> usize {
        self.most * size_of::<Entry>()
    }

    /// Adds a packet that takes `consumed` bytes of the file, with its ports if it is a TCP
    /// segment.
    #[inline]
    pub(super) fn put(&mut self, consumed: usize, ports: Option<[u16; 2]>) {
        let len = std::mem::take(&mut self.between) + consumed;
        if self.is_over || len > Entry::LEN_MAX || self.entries.len() == self.most {
            self.is_over = true;
            return;
        }
        // If a block before it describes interfaces, it must not be skipped.
        let sum = ports.filter(|_| len == consumed).map_or(Entry::ANY, |ports| Sums::sum(ports) as u32);
        self.entries.push(Entry((len as u32) << Entry::LEN_SHIFT | sum));
    }

    /// These bytes belong to no packet.
    #[cold]
    pub(super) fn pass(&mut self, consumed: usize) {
        self.between += consumed;
    }

    /// From here on the index is not reliable.
    #[cold]
    pub(super) fn end(&mut self) {
        self.is_over = true;
    }

    /// Whether the file is known exactly up to the end of its last packet.
    pub(super) fn is_even(&self) -> bool {
        self.between == 0
    }

    /// The runs that may contain wanted packets, from the one after `number`, which begins at
    /// `offset`, to the packet numbered `last`; `None` if not all of them are indexed.
    pub(super) fn runs(&self, offset: u64, number: u64, last: u64, sums: &Sums) -> Option<Vec<Run>> {
        let known = self.entries.len() as u64;
        if number > known || last > known && self.is_over {
            return None;
        }
        let entries = &self.entries[number as usize..last.min(known) as usize];
        let mut runs: Vec<Run> = Vec::new();
        let mut at = offset;
        for (number, entry) in (number..).zip(entries) {
            if entry.is_wanted(sums) {
                let end = at + entry.len();
                match runs.last_mut() {
                    Some(run) if at - (run.offset + run.len) <= GAP && run.len < RUN_LEN => {
                        (run.len, run.packets) = (end - run.offset, number + 1 - run.number);
                    }
                    _ => runs.push(Run { offset: at, len: entry.len(), number, packets: 1 }),
                }
            }
            at += entry.len();
        }
        Some(runs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WANTED: [u16; 2] = [40_000, 80];
    const OTHER: [u16; 2] = [40_001, 80];

    /// The runs to read, for packets of these lengths and ports.
    fn runs(packets: &[(usize, Option<[u16; 2]>)], from: u64, last: u64) -> Option<Vec<Run>> {
        let mut index = Index::within(1 << 20);
        for (len, ports) in packets {
            index.put(*len, *ports);
        }
        let offset = packets[..from as usize].iter().map(|(len, _)| *len as u64).sum();
        index.runs(offset, from, last, &Sums::of([WANTED].into_iter()))
    }

    #[test]
    fn what_lies_between_is_read_along_where_it_is_short() {
        let mut packets = [(1_000, Some(OTHER)); 20];
        for at in [2, 5, 12] {
            packets[at].1 = Some([WANTED[1], WANTED[0]]);
        }
        let found = runs(&packets, 1, u64::MAX);
        let first = Run { offset: 2_000, len: 4_000, number: 2, packets: 4 };
        assert_eq!(found, Some(vec![first, Run { offset: 12_000, len: 1_000, number: 12, packets: 1 }]));
        assert_eq!(runs(&packets, 6, 12), Some(vec![]));
    }

    #[test]
    fn what_is_no_segment_is_looked_at() {
        let packets = [(9_000, Some(OTHER)), (9_000, None), (9_000, Some(OTHER))];
        let found = runs(&packets, 0, 3);
        assert_eq!(found, Some(vec![Run { offset: 9_000, len: 9_000, number: 1, packets: 1 }]));
    }

    #[test]
    fn what_describes_packets_is_looked_at_with_the_next_one() {
        let mut index = Index::within(1 << 20);
        index.pass(48);
        index.put(100, Some(OTHER));
        index.put(100, Some(OTHER));
        let found = index.runs(0, 0, 2, &Sums::of([].into_iter()));
        assert_eq!(found, Some(vec![Run { offset: 0, len: 148, number: 0, packets: 1 }]));
    }

    #[test]
    fn behind_what_is_known_nothing_is_passed_over() {
        let mut index = Index::within(4 * size_of::<Entry>());
        (0..9).for_each(|_| index.put(100, Some(OTHER)));
        let sums = Sums::of([].into_iter());
        assert_eq!(index.runs(0, 0, 4, &sums), Some(vec![]));
        assert_eq!(index.runs(0, 0, 5, &sums), None);
        assert_eq!(index.runs(0, 6, u64::MAX, &sums), None);
        let large = [(1 << 20, Some(OTHER)), (100, Some(OTHER))];
        assert_eq!(runs(&large, 0, u64::MAX), None, "a length that does not fit");
    }
}
