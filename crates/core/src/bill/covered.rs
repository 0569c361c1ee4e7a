//! Which moments of a connection have been billed, when several requesters wait at once?

use std::collections::VecDeque;

use tcpwhy_wire::{Duration, Instant};

/// Gaps that an exchange under way may still cover.
const GAPS_MAX: usize = 64;

/// The moments up to `until`, except for the gaps.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Covered {
    until: Option<Instant>,
    gaps: VecDeque<[Instant; 2]>,
}

impl Covered {
    pub(crate) fn since(until: Option<Instant>) -> Self {
        Self { until, gaps: VecDeque::new() }
    }

    /// Covers a span. Returns how much of it was not covered before.
    pub(crate) fn take(&mut self, [from, to]: [Instant; 2]) -> Duration {
        let mut new = Duration::ZERO;
        let until = self.until.unwrap_or(from);
        // The gaps are in order and disjoint, so those that the span touches are adjacent.
        let first = self.gaps.partition_point(|gap| gap[1] <= from);
        let behind = self.gaps.partition_point(|gap| gap[0] < to);
        if from < to && first < behind {
            let ends = [self.gaps[first][0], self.gaps[behind - 1][1]];
            for [begin, end] in self.gaps.drain(first..behind) {
                new += to.min(end) - from.max(begin);
            }
            for gap in [[to, ends[1]], [ends[0], from]].into_iter().filter(|gap| gap[0] < gap[1]) {
                self.gaps.insert(first, gap);
            }
        }
        if from > until {
            self.gaps.push_back([until, from]);
        }
        new += (to - from.max(until)).at_least_zero();
        self.until = Some(until.max(to));
        while self.gaps.len() > GAPS_MAX {
            self.gaps.pop_front();
        }
        new
    }

    /// Bytes of heap memory in use.
    pub(crate) fn heap(&self) -> usize {
        self.gaps.capacity() * size_of::<[Instant; 2]>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_moment_counts_once_in_whatever_order_spans_come() {
        let spans = [[0, 10], [20, 30], [5, 40], [35, 36], [50, 60], [41, 55], [0, 60], [58, 70]];
        let mut covered = Covered::default();
        let mut moments = std::collections::BTreeSet::new();
        for span in spans {
            let before = moments.len();
            moments.extend(span[0]..span[1]);
            let new = covered.take(span.map(Instant::from_nanos));
            assert_eq!(new, Duration::from_nanos((moments.len() - before) as i64), "{span:?}");
        }
    }
}
