//! Which connections of several inputs are the same one?
//!
//! Addresses and ports may be translated on the way; sequence and acknowledgement numbers, flags, lengths and time stamps are the
//! same at both ends. Of each connection a few packets are kept, those whose hash of these is smallest: where two inputs saw the same
//! packets, they keep the same ones, wherever each of them begins (bottom-k sketches; Broder, 1997).

use std::collections::{BTreeMap, HashMap};

use tcpwhy_wire::{Endpoint, Instant, Segment, Seq};

/// Packets kept of a connection.
const KEPT: usize = 48;
/// So many in common are no chance; of less that were kept, all.
const COMMON: usize = 3;
/// With more connections than these, nothing is compared.
const CONNECTIONS_MAX: usize = 200_000;

/// One connection in one input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Sighting {
    pub(super) input: usize,
    pub(super) ends: [Endpoint; 2],
    /// The how many'th on these ports.
    incarnation: u32,
}

/// Tells incarnations apart, by their SYNs. Gives the same answers in every pass over the same packets.
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
    /// Hash, time and whether the first of both ends sent it; sorted.
    kept: Vec<(u64, Instant, bool)>,
    /// Number of its first packet.
    pub(super) first: u64,
    /// SYN, SYN-ACK, and the acknowledgement of that.
    handshake: [Option<Instant>; 3],
}

impl Sketch {
    fn add(&mut self, segment: &Segment, is_first: bool) {
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
        // One that is there was seen on another interface of the same host.
        if let Err(place) = self.kept.binary_search_by_key(&hash, |(hash, ..)| *hash)
            && place < KEPT
        {
            self.kept.truncate(KEPT - 1);
            self.kept.insert(place, (hash, segment.at, is_first));
        }
    }

    /// By how much the way to the client is shorter than the way to the server, as the handshake shows it; nanoseconds.
    pub(super) fn nearer_to_client(&self) -> i64 {
        match self.handshake {
            [Some(syn), Some(syn_ack), Some(ack)] => ((syn_ack - syn) - (ack - syn_ack)).as_nanos(),
            _ => 0,
        }
    }

    /// By how much the clock of `other` is ahead, and the round trip between both, from the quickest packets in each direction;
    /// nanoseconds. Nobody knows how the round trip is divided: half of it each way is assumed.
    pub(super) fn clock(&self, other: &Self) -> Option<(i64, i64)> {
        // Of each direction the least and the most by which other sees a packet later.
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
        // Packets that run towards other are later there than those that come from it.
        let (towards, back) = if a.0 >= b.0 { (a.0, b.1) } else { (b.0, a.1) };
        Some((towards.midpoint(back), (towards - back).max(0)))
    }
}

/// What no translation of addresses changes.
pub(super) fn hash(segment: &Segment) -> u64 {
    let stamp = segment.options.timestamps.map_or(0, |stamps| stamps.val);
    let numbers = u64::from(segment.seq.0) << 32 | u64::from(segment.ack.0);
    // ECN's bits are changed on the way.
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
#[derive(Debug, Default)]
pub(super) struct Sketches {
    roll: Roll,
    pub(super) all: BTreeMap<Sighting, Sketch>,
    /// There are too many.
    pub(super) is_over: bool,
}

impl Sketches {
    pub(super) fn add(&mut self, input: usize, segment: &Segment) {
        let sighting = self.roll.sighting(input, segment);
        if self.all.len() >= CONNECTIONS_MAX && !self.all.contains_key(&sighting) {
            self.is_over = true;
            return;
        }
        self.all.entry(sighting).or_default().add(segment, segment.src == sighting.ends[0]);
    }

    /// Connections that several inputs saw: each is a list of its sightings, one of an input at most.
    pub(super) fn groups(&self) -> Vec<Vec<Sighting>> {
        if self.is_over {
            return Vec::new();
        }
        let mut by_hash: Vec<(u64, Sighting)> = Vec::new();
        for (sighting, sketch) in &self.all {
            by_hash.extend(sketch.kept.iter().map(|(hash, ..)| (*hash, *sighting)));
        }
        by_hash.sort_unstable();
        let mut common: BTreeMap<(Sighting, Sighting), usize> = BTreeMap::new();
        for same in by_hash.chunk_by(|a, b| a.0 == b.0).filter(|same| (2..=8).contains(&same.len())) {
            for (i, (_, a)) in same.iter().enumerate() {
                for (_, b) in same[i + 1..].iter().filter(|(_, b)| a.input != b.input) {
                    *common.entry((*a, *b)).or_default() += 1;
                }
            }
        }
        let mut pairs: Vec<(usize, (Sighting, Sighting))> = common
            .into_iter()
            .map(|(pair, n)| (n, pair))
            .filter(|(n, pair)| *n >= self.enough(*pair))
            .collect();
        // The surest first.
        pairs.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
        let mut groups: Vec<Vec<Sighting>> = Vec::new();
        let mut place: HashMap<Sighting, usize> = HashMap::new();
        for (_, (a, b)) in pairs {
            match (place.get(&a).copied(), place.get(&b).copied()) {
                (None, None) => {
                    place.extend([(a, groups.len()), (b, groups.len())]);
                    groups.push(vec![a, b]);
                }
                (Some(at), None) | (None, Some(at)) => {
                    let other = if place.contains_key(&a) { b } else { a };
                    if groups[at].iter().all(|sighting| sighting.input != other.input) {
                        groups[at].push(other);
                        place.insert(other, at);
                    }
                }
                (Some(_), Some(_)) => {}
            }
        }
        groups
    }

    fn enough(&self, (a, b): (Sighting, Sighting)) -> usize {
        let kept = |sighting| self.all.get(&sighting).map_or(0, |sketch| sketch.kept.len());
        COMMON.min(kept(a)).min(kept(b)).max(1)
    }
}
