//! How is a duration spread over many exchanges?
//!
//! Counts in steps of a 64th of an octave, exact below 64 ns. Whoever has few different durations keeps only those.

use tcpwhy_wire::Duration;

/// Counts by step.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Spread {
    /// Steps and their counts, while they are few.
    few: Vec<(u16, u64)>,
    /// By octave, from the shortest; those without a hit have no steps.
    octaves: Vec<Vec<u64>>,
    total: u64,
}

/// Steps that are kept as a list.
const FEW: usize = 12;

impl Spread {
    const STEP_BITS: u32 = 6;

    pub(crate) fn add(&mut self, ns: Duration) {
        self.total += 1;
        self.add_step(Self::step(ns.as_nanos().max(0) as u64), 1);
    }

    fn add_step(&mut self, step: u16, more: u64) {
        if !self.octaves.is_empty() {
            return self.count(step, more);
        }
        if let Some((_, count)) = self.few.iter_mut().find(|(known, _)| *known == step) {
            *count += more;
        } else if self.few.len() < FEW {
            self.few.push((step, more));
        } else {
            self.count(step, more);
            for (step, count) in std::mem::take(&mut self.few) {
                self.count(step, count);
            }
        }
    }

    fn count(&mut self, step: u16, more: u64) {
        let (octave, step) =
            (usize::from(step >> Self::STEP_BITS), usize::from(step) % (1 << Self::STEP_BITS));
        if self.octaves.len() <= octave {
            self.octaves.resize(octave + 1, Vec::new());
        }
        let steps = &mut self.octaves[octave];
        if steps.is_empty() {
            steps.resize(1 << Self::STEP_BITS, 0);
        }
        steps[step] += more;
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.total += other.total;
        for (step, count) in other.steps() {
            self.add_step(step, count);
        }
    }

    /// All that were counted, in any order.
    fn steps(&self) -> impl Iterator<Item = (u16, u64)> {
        let octave = |(octave, steps): (usize, &Vec<u64>)| {
            let step = move |(step, count)| (((octave << Self::STEP_BITS) + step) as u16, count);
            steps.clone().into_iter().enumerate().map(step)
        };
        let counted = self.octaves.iter().enumerate().flat_map(octave).filter(|(_, count)| *count > 0);
        self.few.iter().copied().chain(counted)
    }

    fn step(ns: u64) -> u16 {
        if ns < 1 << Self::STEP_BITS {
            return ns as u16;
        }
        let octave = ns.ilog2() - Self::STEP_BITS;
        let mantissa = (ns >> octave) as u16 & ((1 << Self::STEP_BITS) - 1);
        ((octave as u16 + 1) << Self::STEP_BITS) + mantissa
    }

    /// The middle of a step.
    fn value(step: u16) -> Duration {
        if step < 1 << Self::STEP_BITS {
            return Duration::from_nanos(i64::from(step));
        }
        let octave = u32::from(step >> Self::STEP_BITS) - 1;
        let mantissa = u64::from(step & ((1 << Self::STEP_BITS) - 1)) + (1 << Self::STEP_BITS);
        let middle = ((mantissa << 1) + 1) << octave >> 1;
        Duration::from_nanos(i64::try_from(middle).unwrap_or(i64::MAX))
    }

    /// Nearest-rank percentile.
    pub(crate) fn percentile(&self, percent: u64) -> Duration {
        let rank = (self.total * percent).div_ceil(100).max(1);
        let mut steps: Vec<(u16, u64)> = self.steps().collect();
        steps.sort_unstable();
        let mut seen = 0;
        for (step, count) in steps {
            seen += count;
            if seen >= rank {
                return Self::value(step);
            }
        }
        Duration::ZERO
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_within_a_sixty_fourth() {
        let mut spread = Spread::default();
        for ms in 1..=100 {
            spread.add(Duration::from_millis(ms));
        }
        for (percent, expected_ms) in [(50, 50.0), (99, 99.0), (100, 100.0)] {
            let shown = spread.percentile(percent).as_millis_f64();
            assert!((shown / expected_ms - 1.0f64).abs() < 1.0 / 64.0, "p{percent}: {shown}");
        }
    }
}
