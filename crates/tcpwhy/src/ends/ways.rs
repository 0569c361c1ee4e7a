//! How long was each packet under way, where two places on its path saw it?
//!
//! The same packet is known by what no translation of addresses changes (`sketch::hash`). How the clocks of both places differ follows
//! from the quickest packets in each direction, with half of the round trip between the places for each way; so a delay's changes are
//! measured, and how the shortest round trip divides is assumed.

use std::collections::{BTreeMap, HashMap};

use tcpwhy_wire::{Instant, Segment};

use super::sketch::hash;

/// Packets remembered of each place.
const PACKETS_MAX: usize = 400_000;

/// When packets passed the place that is billed, and when another one.
#[derive(Debug, Default)]
pub(crate) struct Ways {
    /// Number and time, by hash; none where two look alike.
    here: HashMap<u64, Option<(u64, Instant)>>,
    /// By what the clock there is ahead already corrected.
    there: HashMap<u64, Option<Instant>>,
}

impl Ways {
    pub(crate) fn here(&mut self, segment: &Segment) {
        note(&mut self.here, hash(segment), (segment.packet, segment.at));
    }

    /// Seen elsewhere, by a clock that is so much ahead, in nanoseconds.
    pub(crate) fn there(&mut self, segment: &Segment, ahead: tcpwhy_wire::Duration) {
        note(&mut self.there, hash(segment), segment.at - ahead);
    }

    /// Nanoseconds on the way, by packet.
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
