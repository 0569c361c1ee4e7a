//! In what sizes does an application write?
//!
//! A segment with PSH that is not full is the end of a write (tcp_push, net/ipv4/tcp.c): nothing
//! else produces one. The bytes between two such ends were written together, or coalesced while the
//! sender waited.

use std::collections::{BTreeMap, BTreeSet};

use super::seen::{Seen, end_of};
use crate::words::report::Rung;

/// How many sizes are listed.
const SIZES: usize = 3;

/// A size that an application writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write {
    /// Payload bytes.
    pub bytes: u64,
    /// How often.
    pub times: u32,
}

pub(super) fn of(seen: &Seen<'_>) -> Vec<Write> {
    let mut sizes = BTreeMap::<u64, u32>::new();
    let (mut began, mut sent, mut writes) = (None, 0, 0_u32);
    // Time stamps take twelve bytes of the announced MSS.
    let full = |len| [0, 12].iter().any(|options| u64::from(len) % (seen.segment - options).max(1) == 0);
    // A segment that ends with the window was cut there (tcp_mss_split_point, net/ipv4/tcp_output.c).
    let right_edge = |rung: &Rung| Some(rung.ack_offset()? + u64::from(rung.window));
    let right_edges: BTreeSet<u64> =
        seen.rungs.iter().filter(|rung| !seen.is_own(rung)).filter_map(right_edge).collect();
    for rung in seen.rungs.iter().filter(|rung| seen.is_own(rung) && rung.len > 0) {
        if end_of(rung) <= sent {
            continue;
        }
        let from = *began.get_or_insert(rung.offset);
        sent = end_of(rung);
        if rung.flags.psh() && !full(rung.len) && !right_edges.contains(&sent) {
            *sizes.entry(sent - from).or_default() += 1;
            writes += 1;
            began = Some(sent);
        }
    }
    let mut sizes: Vec<Write> = sizes
        .into_iter()
        .filter(|&(_, times)| times > 1 && times >= writes / 8)
        .map(|(bytes, times)| Write { bytes, times })
        .collect();
    sizes.sort_by_key(|write| std::cmp::Reverse(write.times));
    sizes.truncate(SIZES);
    sizes
}
