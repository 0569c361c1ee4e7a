//! How long was each packet's one-way delay, if two points on its path saw it?
//!
//! The same packet is recognized by the fields that address translation does not change
//! (`sketch::hash`). The offset of the clocks follows from the fastest packets in each direction,
//! with half of the round trip between the points for each way; so changes of a delay are measured,
//! and how the shortest round trip divides is assumed.

use std::collections::{BTreeMap, HashMap};

use tcpwhy_wire::{Instant, Segment};

use super::sketch::hash;

/// Packets remembered of each point.
const PACKETS_MAX: usize = 400_000;

/// When packets passed the billed point, and when the other one.
#[derive(Debug, Default)]
pub(crate) struct Ways {
    /// Number and time, by hash; none where two packets have the same hash.
    here: HashMap<u64, Option<(u64, Instant)>>,
    /// Corrected by how far the clock there is ahead.
    there: HashMap<u64, Option<Instant>>,
}

impl Ways {
    pub(crate) fn here(&mut self, segment: &Segment) {
        note(&mut self.here, hash(segment), (segment.packet, segment.at));
    }

    /// A packet seen at the other point, whose clock is ahead by this much.
    pub(crate) fn there(&mut self, segment: &Segment, ahead: tcpwhy_wire::Duration) {
        note(&mut self.there, hash(segment), segment.at - ahead);
    }

    /// Delays in nanoseconds, by packet.
    pub(crate) fn delays(&self) -> BTreeMap<u64, i64> {
        let both = self.here.iter().filter_map(|(hash, here)| {
            let ((packet, here), there) = ((*here)?, (*self.there.get(hash)?)?);
            Some((packet, (there - here).as_nanos().abs()))
        });
        both.collect()
    }
}

fn note<T>(all: &mut HashMap<u64, Option<T>>, hash: u64, value: T) {
    if let Some(known) = all.get_mut(&hash) {
        *known = None;
    } else if all.len() < PACKETS_MAX {
        all.insert(hash, Some(value));
    }
}
