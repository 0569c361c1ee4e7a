//! Which connections of several inputs are the same?
//!
//! Addresses and ports may be translated on the path; sequence and acknowledgement numbers, flags,
//! lengths and time stamps are the same at both ends. Of each connection a few packets are kept,
//! those whose hash of these fields is smallest: if two inputs saw the same packets they keep the
//! same ones, wherever each capture begins (bottom-k sketches; Broder, 1997).

use std::collections::{BTreeMap, HashMap};

use tcpwhy_wire::{Endpoint, Instant, Segment, Seq};

/// Packets kept of a connection; if memory is short, half as many, and so on down to the minimum.
const KEPT_MAX: usize = 48;
const KEPT_MIN: usize = 6;
/// This many common packets are no coincidence; if fewer were kept, all of them must match.
const COMMON: usize = 3;
/// At how many points a packet may have been seen to be compared.
const PLACES: std::ops::RangeInclusive<usize> = 2..=8;
/// Memory for a kept packet: here, and during the search for matches, in at most seven pairs for
/// two packets.
const PACKET_BYTES: usize = size_of::<Kept>() + size_of::<(u64, u32)>() + 7 * size_of::<[u32; 2]>() / 2;
/// Memory for a sighting in the roll, whose table may be half empty and half moved.
const ROLL_BYTES: usize = 3 * size_of::<([Endpoint; 2], usize, u64)>();
/// The same with its sketch and its group.
const CONNECTION_BYTES: usize = ROLL_BYTES + 2 * size_of::<(Sighting, Sketch)>();
/// Memory for a sighting while packets are billed: in that pass's roll, and in the list of those
/// passed over.
pub(super) const SIGHTING_BYTES: usize = ROLL_BYTES + 2 * size_of::<(Sighting, [Endpoint; 2])>();

/// Hash, time, and whether the first of the two ends sent it.
type Kept = (u64, Instant, bool);

/// One connection in one input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Sighting {
    pub(super) input: usize,
    pub(super) ends: [Endpoint; 2],
    /// Which connection it is on these ports, counted.
    incarnation: u32,
}

/// Tells incarnations apart by their SYNs. Gives the same answers in every pass over the same
/// packets.
#[derive(Debug, Default)]
pub(super) struct Roll {
    seen: HashMap<(usize, [Endpoint; 2]), (u32, Option<Seq>)>,
}

impl Roll {
    pub(super) fn sighting(&mut self, input: usize, segment: &Segment) -> Sighting {
        let ends =
            if segment.src < segment.dst { [segment.src, segment.dst] } else { [segment.dst, segment.src] };
        let is_new = !self.seen.contains_key(&(input, ends));
        let (incarnation, isn) = self.seen.entry((input, ends)).or_default();
        if segment.flags.syn() && !segment.flags.ack() && *isn != Some(segment.seq) {
            *incarnation += u32::from(!is_new);
            *isn = Some(segment.seq);
        }
        Sighting { input, ends, incarnation: *incarnation }
    }
}

/// What is kept of a connection in one input.
#[derive(Debug, Default)]
pub(super) struct Sketch {
    /// Sorted.
    kept: Vec<Kept>,
    /// Number of its first packet.
    pub(super) first: u64,
    /// SYN, SYN-ACK, and the ACK of that.
    handshake: [Option<Instant>; 3],
}

impl Sketch {
    fn add(&mut self, segment: &Segment, is_first: bool, kept_max: usize) {
        if self.first == 0 {
            self.first = segment.packet;
        }
        let step = match (segment.flags.syn(), segment.flags.ack()) {
            (true, false) => 0,
            (true, true) => 1,
            _ => 2,
        };
        let is_next = step == 0 || self.handshake[step - 1].is_some();
        if is_next && self.handshake[step].is_none() {
            self.handshake[step] = Some(segment.at);
        }
        let hash = hash(segment);
        // A hash that is already there was seen on another interface of the same host.
        if let Err(place) = self.kept.binary_search_by_key(&hash, |(hash, ..)| *hash)
            && place < kept_max
        {
            self.kept.truncate(kept_max - 1);
            if self.kept.len() == self.kept.capacity() {
                // Reserve no more than may come.
                self.kept.reserve_exact(self.kept.len().clamp(1, kept_max - self.kept.len()));
            }
            self.kept.insert(place, (hash, segment.at, is_first));
        }
    }

    /// By how much the round trip to the client is shorter than the one to the server, as the
    /// handshake shows it; nanoseconds.
    pub(super) fn nearer_to_client(&self) -> i64 {
        match self.handshake {
            [Some(syn), Some(syn_ack), Some(ack)] => ((syn_ack - syn) - (ack - syn_ack)).as_nanos(),
            _ => 0,
        }
    }

    /// By how much the clock of `other` is ahead, and the round trip between both, from the fastest
    /// packets in each direction; nanoseconds. How the round trip divides is unknown: half of it
    /// each way is assumed.
    pub(super) fn clock(&self, other: &Self) -> Option<(i64, i64)> {
        // For each direction, the least and the most by which `other` sees a packet later.
        let mut later = [None::<(i64, i64)>; 2];
        for (hash, here, is_first) in &self.kept {
            if let Ok(place) = other.kept.binary_search_by_key(hash, |(hash, ..)| *hash) {
                let by = (other.kept[place].1 - *here).as_nanos();
                let (least, most) = later[usize::from(*is_first)].unwrap_or((by, by));
                later[usize::from(*is_first)] = Some((least.min(by), most.max(by)));
            }
        }
        let [a, b] = later;
        let (a, b) = (a?, b?);
        // Packets that travel towards `other` are later there than those that come from it.
        let (towards, back) = if a.0 >= b.0 { (a.0, b.1) } else { (b.0, a.1) };
        Some((towards.midpoint(back), (towards - back).max(0)))
    }
}

/// A hash of the fields that address translation does not change.
pub(super) fn hash(segment: &Segment) -> u64 {
    let stamp = segment.options.timestamps.map_or(0, |stamps| stamps.val);
    let numbers = u64::from(segment.seq.0) << 32 | u64::from(segment.ack.0);
    // The path changes the ECN bits.
    let rest =
        u64::from(segment.payload_len) << 40 ^ u64::from(segment.flags.0 & 0x3f) << 32 ^ u64::from(stamp);
    mix(mix(numbers) ^ rest)
}

/// Spreads a number over all bits (the finalizer of MurmurHash3).
const fn mix(mut n: u64) -> u64 {
    n = (n ^ n >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    n = (n ^ n >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    n ^ n >> 33
}

/// Sketches of all connections.
#[derive(Debug)]
pub(super) struct Sketches {
    roll: Roll,
    pub(super) all: BTreeMap<Sighting, Sketch>,
    kept_max: usize,
    bytes_max: usize,
    /// There are too many, and nothing is compared.
    pub(super) is_over: bool,
}

impl Sketches {
    pub(super) fn within(bytes_max: usize) -> Self {
        Self { roll: Roll::default(), all: BTreeMap::new(), kept_max: KEPT_MAX, bytes_max, is_over: false }
    }

    pub(super) fn add(&mut self, input: usize, segment: &Segment) {
        if self.is_over {
            return;
        }
        let sighting = self.roll.sighting(input, segment);
        let (kept_max, is_first) = (self.kept_max, segment.src == sighting.ends[0]);
        let mut is_new = false;
        let new = || {
            is_new = true;
            Sketch::default()
        };
        self.all.entry(sighting).or_insert_with(new).add(segment, is_first, kept_max);
        if is_new {
            self.keep_within();
        }
    }

    /// Keeps fewer packets of each connection as their number grows.
    fn keep_within(&mut self) {
        while !self.is_over
            && self.all.len() * (CONNECTION_BYTES + self.kept_max * PACKET_BYTES) > self.bytes_max
        {
            self.kept_max /= 2;
            if self.kept_max < KEPT_MIN {
                *self = Self { is_over: true, ..Self::within(0) };
            }
            for sketch in self.all.values_mut() {
                sketch.kept.truncate(self.kept_max);
                sketch.kept.shrink_to_fit();
            }
        }
    }

    /// Memory that they take after the search for matches.
    pub(super) fn bytes(&self) -> usize {
        self.all.len() * (CONNECTION_BYTES + self.kept_max * size_of::<Kept>())
    }

    /// Connections that several inputs saw: each is a list of its sightings, at most one per input.
    pub(super) fn groups(&self) -> Vec<Vec<Sighting>> {
        let sightings: Vec<Sighting> = self.all.keys().copied().collect();
        let mut groups: Vec<Vec<Sighting>> = Vec::new();
        let mut place: HashMap<u32, usize> = HashMap::new();
        for [a, b] in self.pairs(&sightings) {
            let sighting = |number: u32| sightings[number as usize];
            match (place.get(&a).copied(), place.get(&b).copied()) {
                (None, None) => {
                    place.extend([(a, groups.len()), (b, groups.len())]);
                    groups.push(vec![sighting(a), sighting(b)]);
                }
                (Some(at), None) | (None, Some(at)) => {
                    let other = if place.contains_key(&a) { b } else { a };
                    if groups[at].iter().all(|known| known.input != sighting(other).input) {
                        groups[at].push(sighting(other));
                        place.insert(other, at);
                    }
                }
                (Some(_), Some(_)) => {}
            }
        }
        groups
    }

    /// Pairs of sightings of one connection, those with most packets in common first; by their
    /// index in this list.
    fn pairs(&self, sightings: &[Sighting]) -> Vec<[u32; 2]> {
        let kept = |number: u32| &self.all[&sightings[number as usize]].kept;
        let mut by_hash: Vec<(u64, u32)> =
            Vec::with_capacity(self.all.values().map(|one| one.kept.len()).sum());
        for (number, sketch) in (0..).zip(self.all.values()) {
            by_hash.extend(sketch.kept.iter().map(|(hash, ..)| (*hash, number)));
        }
        by_hash.sort_unstable();
        let mut count = 0;
        each_pair(&by_hash, sightings, |_| count += 1);
        let mut common: Vec<[u32; 2]> = Vec::with_capacity(count);
        each_pair(&by_hash, sightings, |pair| common.push(pair));
        drop(by_hash);
        common.sort_unstable();
        let enough = |[a, b]: [u32; 2]| COMMON.min(kept(a).len()).min(kept(b).len()).max(1);
        let mut counted: Vec<(usize, [u32; 2])> = common
            .chunk_by(|a, b| a == b)
            .filter(|same| same.len() >= enough(same[0]))
            .map(|same| (same.len(), same[0]))
            .collect();
        counted.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
        counted.into_iter().map(|(_, pair)| pair).collect()
    }
}

/// All pairs of sightings that kept the same packet in different inputs.
fn each_pair(by_hash: &[(u64, u32)], sightings: &[Sighting], mut on_pair: impl FnMut([u32; 2])) {
    let input = |number: u32| sightings[number as usize].input;
    for same in by_hash.chunk_by(|a, b| a.0 == b.0).filter(|same| PLACES.contains(&same.len())) {
        for (i, (_, a)) in same.iter().enumerate() {
            let others = same[i + 1..].iter().map(|(_, b)| *b);
            others.filter(|b| input(*a) != input(*b)).for_each(|b| on_pair([*a, b]));
        }
    }
}
