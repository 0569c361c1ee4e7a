//! How is a segment kept until its turn comes?
//!
//! An epoch's segments are written once and read once, in another order and often by another thread. Nearly
//! all of them fit a cache line; the others (SACK, IPv6) are kept whole beside it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tcpwhy_wire::{Endpoint, Flags, Instant, Segment, Seq, TcpOptions, Timestamps, Usual};

use crate::words::mark::Mark;

/// The upper part of an IPv4 address in its mapped form.
const MAPPED: u128 = 0xffff;

/// Options of a SYN, as bits of `Packed::has`.
const MSS: u8 = 1;
const WINDOW_SCALE: u8 = 2;
const SACK_PERMITTED: u8 = 4;
/// Time stamps, which nearly every segment has.
const STAMPS: u8 = 8;
/// Messages begin in it: `mss` and `window_scale`, which only a SYN uses, hold the index of their marks.
const MARKED: u8 = 16;
/// The segment is kept whole, at index `payload_len`; `stamps` holds the capture's clock.
const WHOLE: u8 = 128;

/// A segment in a cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(crate) struct Packed {
    pub at: Instant,
    pub packet: u64,
    pub seq: Seq,
    pub ack: Seq,
    pub stamps: Timestamps,
    /// Hash of its endpoints.
    pub hash: u32,
    /// Sender and receiver.
    ends: PackedEnds,
    pub payload_len: u32,
    pub ip_id: Option<u16>,
    pub window: u16,
    mss: u16,
    window_scale: u8,
    pub flags: Flags,
    ttl: u8,
    has: u8,
}

/// Two endpoints with IPv4 addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PackedEnds {
    addrs: [u32; 2],
    ports: [u16; 2],
}

impl PackedEnds {
    /// Nothing if one of them has another kind of address.
    pub(crate) fn of([a, b]: [Endpoint; 2]) -> Option<Self> {
        let mapped = a.addr >> 32 == MAPPED && b.addr >> 32 == MAPPED;
        mapped.then(|| Self::cut(a, b))
    }

    #[inline]
    pub(crate) fn new(addrs: [u32; 2], ports: [u16; 2]) -> Self {
        Self { addrs, ports }
    }

    #[inline]
    pub(crate) fn ends(self) -> [Endpoint; 2] {
        let end = |i: usize| Endpoint { addr: MAPPED << 32 | u128::from(self.addrs[i]), port: self.ports[i] };
        [end(0), end(1)]
    }

    /// Keeps the low bits of addresses that do not fit.
    #[inline]
    fn cut(a: Endpoint, b: Endpoint) -> Self {
        Self { addrs: [a.addr as u32, b.addr as u32], ports: [a.port, b.port] }
    }

    #[inline]
    fn turned(self) -> Self {
        let ([a, b], [p, q]) = (self.addrs, self.ports);
        Self { addrs: [b, a], ports: [q, p] }
    }
}

/// Segments in blocks of fixed length: a segment is built in its place, and nothing can move it meanwhile.
type Chunk = Box<[Packed; CHUNK_LEN]>;
const CHUNK_LEN: usize = 64;
const CHUNK_BYTES: usize = CHUNK_LEN * size_of::<Packed>();

fn new_chunk() -> Chunk {
    let packed = vec![Packed::EMPTY; CHUNK_LEN].into_boxed_slice();
    packed.try_into().unwrap_or_else(|_| unreachable!("a chunk is as long as it is"))
}

/// Unused memory for segments, shared by threads: those that process segments leave it to those that gather
/// the next. Both together take what is not processed yet, and not two whole epochs.
#[derive(Debug, Default)]
pub struct Spare(Arc<Mutex<Chunks>>);

#[derive(Debug, Default)]
struct Chunks {
    free: Vec<Chunk>,
    /// The fewest free chunks since some were last given back.
    fewest: usize,
}

impl Clone for Spare {
    /// A clone shares nothing and has nothing to spare.
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Spare {
    /// A handle to the same memory.
    pub(crate) fn share(&self) -> Self {
        Self(Arc::clone(&self.0))
    }

    fn chunks(&self) -> MutexGuard<'_, Chunks> {
        // Nobody panics while holding it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> Chunk {
        let mut chunks = self.chunks();
        let chunk = chunks.free.pop();
        chunks.fewest = chunks.fewest.min(chunks.free.len());
        drop(chunks);
        chunk.unwrap_or_else(new_chunk)
    }

    fn leave(&self, emptied: &mut Vec<Chunk>) {
        self.chunks().free.append(emptied);
    }

    /// Returns to the system what nobody has needed since the last call, at the end of each epoch.
    pub fn give_back(&self) {
        let mut chunks = self.chunks();
        let needed = chunks.free.len() - chunks.fewest;
        let given_back = chunks.free.split_off(needed);
        chunks.fewest = needed;
        drop(chunks);
        drop(given_back);
    }

    /// Unused memory in bytes.
    pub fn bytes(&self) -> usize {
        self.chunks().free.len() * CHUNK_BYTES
    }
}

/// Segments in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct PackedSegments {
    /// All but the last are full.
    chunks: Vec<Chunk>,
    len: usize,
    whole: Vec<Segment>,
    marks: Vec<Mark>,
    /// Where the marks of each segment begin and end.
    marked: Vec<[u32; 2]>,
}

/// Segments of a group that can have marks: their index has 24 bits.
const MARKED_MAX: usize = 1 << 24;

impl PackedSegments {
    #[inline]
    pub(crate) fn push(&mut self, segment: &Segment, hash: u32, clock: Instant, spare: &Spare) {
        let (src, dst, options) = (segment.src, segment.dst, &segment.options);
        let mut packed = Packed {
            at: segment.at,
            packet: segment.packet,
            seq: segment.seq,
            ack: segment.ack,
            stamps: options.timestamps.unwrap_or_default(),
            hash,
            ends: PackedEnds::cut(src, dst),
            payload_len: segment.payload_len,
            ip_id: segment.ip_id,
            window: segment.window,
            mss: 0,
            window_scale: 0,
            flags: segment.flags,
            ttl: segment.ttl,
            has: u8::from(options.timestamps.is_some()) * STAMPS,
        };
        let more = options.cut
            || options.beside_stamps > 0
            || !options.sack().is_empty()
            || clock != segment.at
            || segment.damaged;
        if src.addr >> 32 != MAPPED || dst.addr >> 32 != MAPPED || more {
            packed.has = WHOLE;
            packed.payload_len = self.push_whole(segment);
            let ns = clock.as_nanos().cast_unsigned();
            packed.stamps = Timestamps { val: (ns >> 32) as u32, ecr: ns as u32 };
        } else if segment.flags.syn() {
            packed.has |= u8::from(options.mss.is_some()) * MSS
                + u8::from(options.window_scale.is_some()) * WINDOW_SCALE
                + u8::from(options.sack_permitted) * SACK_PERMITTED;
            packed.mss = options.mss.unwrap_or(0);
            packed.window_scale = options.window_scale.unwrap_or(0);
        }
        self.push_packed(spare, || packed);
    }

    /// The same for a usual segment whose time is that of the capture's clock.
    #[inline]
    pub(crate) fn push_usual(&mut self, usual: &Usual<'_>, hash: u32, spare: &Spare) {
        self.push_packed(spare, || Packed {
            at: usual.at(),
            packet: usual.packet(),
            seq: usual.seq(),
            ack: usual.ack(),
            stamps: usual.stamps(),
            hash,
            ends: PackedEnds::new(usual.addrs(), usual.ports()),
            payload_len: usual.payload_len(),
            ip_id: Some(usual.ip_id()),
            window: usual.window(),
            mss: 0,
            window_scale: 0,
            flags: usual.flags(),
            ttl: usual.ttl(),
            has: STAMPS,
        });
    }

    #[expect(clippy::inline_always, reason = "a segment is put together where it is to lie")]
    #[inline(always)]
    fn push_packed(&mut self, spare: &Spare, packed: impl FnOnce() -> Packed) {
        let place = self.len % CHUNK_LEN;
        if place == 0 {
            self.add_chunk(spare);
        }
        self.len += 1;
        if let Some(chunk) = self.chunks.last_mut() {
            chunk[place] = packed();
            // Hundreds of groups take turns: unfetched, the next slot would stall a full store buffer.
            tcpwhy_ahead::fetch(&chunk[(place + 1) % CHUNK_LEN]);
        }
    }

    /// The last segment pushed.
    fn last_mut(&mut self) -> Option<&mut Packed> {
        let place = self.len.checked_sub(1)? % CHUNK_LEN;
        self.chunks.last_mut().map(|chunk| &mut chunk[place])
    }

    /// Marks the last segment, unless it is a SYN, which has no room.
    #[cold]
    pub(crate) fn mark(&mut self, marks: &[Mark]) {
        let place = self.marked.len();
        let (begin, end) = (self.marks.len(), self.marks.len() + marks.len());
        let Some(packed) = self.last_mut() else { return };
        if place < MARKED_MAX && !packed.flags.syn() && !marks.is_empty() {
            packed.has |= MARKED;
            packed.mss = place as u16;
            packed.window_scale = (place >> 16) as u8;
            self.marks.extend_from_slice(marks);
            self.marked.push([begin as u32, end as u32]);
        }
    }

    #[cold]
    fn push_whole(&mut self, segment: &Segment) -> u32 {
        self.whole.push(*segment);
        self.whole.len() as u32 - 1
    }

    #[cold]
    fn add_chunk(&mut self, spare: &Spare) {
        self.chunks.push(spare.take());
    }

    /// The n-th piece of `len` segments, or fewer if it is the last; `len` divides the length of a chunk.
    #[inline]
    pub(crate) fn piece(&self, n: usize, len: usize) -> Option<Piece<'_>> {
        let (begin, left) = (n * len, self.len.saturating_sub(n * len));
        let (chunk, at) = (self.chunks.get(begin / CHUNK_LEN)?, begin % CHUNK_LEN);
        let packed = chunk.get(at..at + len.min(left)).filter(|packed| !packed.is_empty())?;
        Some(Piece { packed, all: self })
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Memory in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.chunks.len() * CHUNK_BYTES
            + self.whole.capacity() * size_of::<Segment>()
            + self.marks.capacity() * size_of::<Mark>()
            + self.marked.capacity() * size_of::<[u32; 2]>()
    }

    /// Forgets them and leaves their memory to `spare`.
    pub(crate) fn clear(&mut self, spare: &Spare) {
        self.len = 0;
        spare.leave(&mut self.chunks);
        // Traffic that moves from pair to pair must not leave memory behind everywhere.
        self.whole.shrink_to(2 * self.whole.len());
        self.whole.clear();
        self.marks.shrink_to(2 * self.marks.len());
        self.marks.clear();
        self.marked.shrink_to(2 * self.marked.len());
        self.marked.clear();
    }
}

/// Consecutive segments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece<'a> {
    packed: &'a [Packed],
    all: &'a PackedSegments,
}

impl Piece<'_> {
    #[inline]
    pub(crate) fn packed(&self) -> &[Packed] {
        self.packed
    }

    /// Gives a segment as it was, and the capture's clock at that time.
    #[inline]
    pub(crate) fn with<T>(&self, packed: &Packed, on_segment: impl FnOnce(&Segment, Instant) -> T) -> T {
        if packed.has & WHOLE != 0 {
            on_segment(&self.all.whole[packed.payload_len as usize], packed.clock())
        } else {
            on_segment(&packed.unpack(), packed.at)
        }
    }

    /// The messages that begin in a segment.
    #[inline]
    pub(crate) fn marks(&self, packed: &Packed) -> &[Mark] {
        if packed.has & MARKED == 0 {
            return &[];
        }
        let place = usize::from(packed.mss) | usize::from(packed.window_scale) << 16;
        let [begin, end] = self.all.marked[place];
        &self.all.marks[begin as usize..end as usize]
    }
}

impl Packed {
    /// An empty slot, not all zero: that would be written byte by byte, as valgrind counts (`rep stosb`).
    const EMPTY: Self = Self {
        at: Instant::from_nanos(0),
        packet: 0,
        seq: Seq(0),
        ack: Seq(0),
        stamps: Timestamps { val: 0, ecr: 0 },
        hash: 0,
        ends: PackedEnds { addrs: [0; 2], ports: [0; 2] },
        payload_len: 0,
        ip_id: None,
        window: 0,
        mss: 0,
        window_scale: 0,
        flags: Flags(0),
        ttl: 0,
        has: STAMPS,
    };

    /// Which of the two ends sent it, if it is between them.
    #[inline]
    pub(crate) fn sender(&self, ends: PackedEnds) -> Option<usize> {
        if self.ends == ends { Some(0) } else { (self.ends == ends.turned()).then_some(1) }
    }

    /// The capture's clock when it passed. A segment kept whole has that in place of its stamps.
    #[inline]
    pub(crate) fn clock(&self) -> Instant {
        if self.has & WHOLE == 0 {
            return self.at;
        }
        let ns = u64::from(self.stamps.val) << 32 | u64::from(self.stamps.ecr);
        Instant::from_nanos(ns.cast_signed())
    }

    /// Whether it has time stamps and no other option, ACK and at most PSH and FIN.
    #[inline]
    pub(crate) fn is_usual(&self) -> bool {
        self.has & !MARKED == STAMPS && self.flags.0 & !(Flags::PSH | Flags::FIN) == Flags::ACK
    }

    #[inline]
    pub(crate) fn unpack(&self) -> Segment {
        let mut options = TcpOptions::default();
        options.timestamps = (self.has & STAMPS != 0).then_some(self.stamps);
        if self.has & !(STAMPS | MARKED) != 0 {
            options.mss = (self.has & MSS != 0).then_some(self.mss);
            options.window_scale = (self.has & WINDOW_SCALE != 0).then_some(self.window_scale);
            options.sack_permitted = self.has & SACK_PERMITTED != 0;
        }
        let [src, dst] = self.ends.ends();
        Segment {
            packet: self.packet,
            at: self.at,
            src,
            dst,
            seq: self.seq,
            ack: self.ack,
            window: self.window,
            flags: self.flags,
            payload_len: self.payload_len,
            options,
            ip_id: self.ip_id,
            ttl: self.ttl,
            damaged: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::mark::Role;

    #[test]
    fn comes_back_as_it_was() {
        let plain = Segment {
            packet: u64::MAX,
            at: Instant::from_nanos(-5),
            src: Endpoint::v4([10, 0, 0, 1], 5000),
            dst: Endpoint::v4([255, 0, 0, 2], 80),
            seq: Seq(u32::MAX),
            ack: Seq(7),
            window: 65_535,
            flags: Flags(Flags::PSH | Flags::ACK),
            payload_len: 70_000,
            options: TcpOptions::default(),
            ip_id: Some(0),
            ttl: 64,
            damaged: false,
        };
        let mut stamped = TcpOptions::default();
        stamped.timestamps = Some(Timestamps { val: 0, ecr: 9 });
        let syn = Segment { flags: Flags(Flags::SYN), ..plain };
        let [mut mss, mut scaled] = [stamped; 2];
        mss.mss = Some(1460);
        scaled.window_scale = Some(0);
        let mut permitted = stamped;
        permitted.sack_permitted = true;
        let mut sacked = stamped;
        sacked.push_sack(tcpwhy_wire::SackBlock { start: Seq(1), end: Seq(2) });
        let v6 = Endpoint::v6([0xfd; 16], 80);
        let mut segments = vec![plain, Segment { src: v6, ..plain }, Segment { dst: v6, ..plain }];
        segments.extend([stamped, sacked].map(|options| Segment { options, ..plain }));
        segments.extend([stamped, mss, scaled, permitted, sacked].map(|options| Segment { options, ..syn }));
        segments.push(Segment { ip_id: None, ..plain });
        segments.push(Segment { damaged: true, ..segments[0] });
        let mark = |n| Mark {
            seq: Seq(n),
            end: None,
            role: Role::Asks,
            id: Some(9),
            first: true,
            last: false,
            by_peer: false,
            session: false,
            released: false,
            credit: None,
        };
        let marks = [mark(1), mark(2)];
        let (mut packed, spare) = (PackedSegments::default(), Spare::default());
        for _ in 0..2 {
            let clock = |hash: u32| if hash == 3 { Instant::from_nanos(1 << 62 | 5) } else { plain.at };
            for (hash, segment) in (0..).zip(&segments) {
                packed.push(segment, hash, clock(hash), &spare);
                packed.mark(&marks[..hash as usize % 3]);
            }
            assert_eq!(packed.len(), segments.len());
            let (mut given, mut shown) = (Vec::new(), 0);
            for piece in (0..).map_while(|n| packed.piece(n, 3)) {
                assert_eq!(piece.packed()[0].hash, given.len() as u32);
                for packed in piece.packed() {
                    assert_eq!(packed.hash as usize, given.len());
                    piece.with(packed, |segment, at| {
                        assert_eq!(at, clock(packed.hash));
                        given.push(*segment);
                    });
                    let begin = if packed.flags.syn() { 0 } else { packed.hash as usize % 3 };
                    assert!(packed.has & WHOLE != 0 || piece.marks(packed) == &marks[..begin]);
                    shown += piece.marks(packed).len();
                }
            }
            assert_eq!(given, segments);
            let kept = (0..).zip(&segments).filter(|(_, segment)| !segment.flags.syn());
            assert_eq!(shown, kept.map(|(n, _)| n % 3).sum::<usize>());
            packed.clear(&spare);
        }
        assert_eq!(size_of::<Packed>(), 64);
    }
}
