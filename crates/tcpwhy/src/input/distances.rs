//! Were a capture's times made up, and by no clock?
//!
//! What rewrites a capture may give every packet the same distance from the one before, whoever sent it. Hosts do not: what one
//! sends together comes at another distance than what the other answers.

use tcpwhy_wire::{Duration, Instant};

/// Segments looked at, from the first.
const LOOKED_AT: usize = 64;
/// Fewer distances may be equal by chance. Source: none written down.
const DISTANCES_MIN: usize = 16;
/// So many of them lie between segments of one host, and as many between those of two. Source: none written down.
const OF_EACH_MIN: usize = 4;
/// Distances differ by at most one part in this many, but for one in `OTHERS`. Source: 100 ms in a rewritten capture, 99.1 to 100.8.
const PLAY: i64 = 50;
const OTHERS: usize = 16;

/// The distances between the first segments.
#[derive(Default)]
pub(super) struct Distances {
    last: Option<(Instant, [u16; 2])>,
    seen: Vec<(Duration, bool)>,
}

impl Distances {
    /// A segment with these ports passed.
    #[inline]
    pub(super) fn on_segment(&mut self, at: Instant, ports: [u16; 2]) {
        if self.seen.len() < LOOKED_AT {
            self.note(at, ports);
        }
    }

    #[cold]
    #[inline(never)]
    fn note(&mut self, at: Instant, ports: [u16; 2]) {
        if let Some((last, before)) = self.last.replace((at, ports)) {
            self.seen.push((at - last, ports == before));
        }
    }

    /// Whether nearly all of them are equal, which no clock shows.
    pub(super) fn are_equal(&self) -> bool {
        let mut distances: Vec<_> = self.seen.iter().map(|(distance, _)| *distance).collect();
        distances.sort_unstable();
        let Some(&usual) = distances.get(distances.len() / 2).filter(|_| distances.len() >= DISTANCES_MIN)
        else {
            return false;
        };
        let is_usual =
            |distance: Duration| (distance - usual).max(usual - distance) <= usual.divided_by(PLAY);
        let equal = self.seen.iter().filter(|(distance, _)| is_usual(*distance));
        let of_one = equal.clone().filter(|(_, same)| *same).count();
        let all = equal.count();
        usual.is_positive()
            && (distances.len() - all) * OTHERS <= distances.len()
            && of_one.min(all - of_one) >= OF_EACH_MIN
    }
}
