//! Which connections that begin in an epoch may get one of the next numbers?
//!
//! Numbers follow first packets, but an epoch's segments are worked on in another order. A connection
//! that begins after as many others as there are numbers left gets none of them, so its exchanges need
//! not be listed until that is settled.

use std::collections::BinaryHeap;

/// Beyond this many numbers, every connection may get one.
const NUMBERS_MAX: u64 = 1 << 12;

/// The earliest first packets of an epoch so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Earliest(BinaryHeap<u64>);

impl Earliest {
    /// A connection begins with packet `first`. Returns whether it may get one of the next so many
    /// numbers.
    pub(crate) fn may_get(&mut self, numbers: u64, first: u64) -> bool {
        if numbers == 0 || numbers > NUMBERS_MAX {
            return numbers > 0;
        }
        if (self.0.len() as u64) < numbers {
            self.0.push(first);
            return true;
        }
        let mut latest = self.0.peek_mut();
        let earlier = latest.as_ref().is_some_and(|latest| first < **latest);
        if earlier && let Some(latest) = &mut latest {
            **latest = first;
        }
        earlier
    }

    /// The next epoch begins.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_gets_a_number_is_never_refused() {
        let firsts = [50, 40, 60, 10, 70, 30, 45, 20];
        for numbers in 0..=firsts.len() as u64 {
            let (mut earliest, mut sorted) = (Earliest::default(), firsts);
            sorted.sort_unstable();
            for first in firsts {
                let gets = sorted.iter().take(numbers as usize).any(|known| *known == first);
                assert!(earliest.may_get(numbers, first) || !gets, "{numbers} {first}");
            }
        }
        let mut earliest = Earliest::default();
        assert_eq!(
            firsts.map(|first| earliest.may_get(2, first)),
            [true, true, false, true, false, true, false, true]
        );
    }
}
