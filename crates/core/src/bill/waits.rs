//! What has held one direction lately, so that each later message can be billed for it?
//!
//! Bytes are delivered in order: a lost segment, a closed window or a full link delays every
//! message after it.

use std::collections::VecDeque;

use tcpwhy_wire::{Duration, Instant};

use crate::bill::account::Account;
use crate::bill::charge::Charge;
use crate::bill::split::Split;
use crate::words::cause::Cause;

/// Waits remembered of one direction. Older ones are lost.
const WAITS_MAX: usize = 512;
/// Consecutive waits spent on the same causes in turn are merged up to this length: where in it
/// each cause had its part is no longer known.
const TURNS_MAX: Duration = Duration::from_millis(10);

/// The waits of one direction's sender that were not its application's, in order of time.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Waits {
    kept: VecDeque<Waited>,
}

/// One wait, up to the segment that ended it. Its charges follow one another and end with it.
#[derive(Clone, Debug, PartialEq)]
struct Waited {
    until: Instant,
    charges: Vec<Charge>,
}

impl Waited {
    fn from(&self) -> Instant {
        self.until - self.charges.iter().map(|charge| charge.ns).sum::<Duration>()
    }

    /// Merges what held the same direction right after it, if that was the same: segment by
    /// segment, a bottleneck holds a transfer thousands of times.
    fn goes_on(&mut self, charges: &[Charge], until: Instant) -> bool {
        let ns: Duration = charges.iter().map(|charge| charge.ns).sum();
        let alike = |(one, other): (&Charge, &Charge)| {
            (one.cause, one.sender, one.confidence) == (other.cause, other.sender, other.confidence)
        };
        let is_same = self.until + ns == until
            && self.charges.len() == charges.len()
            && self.charges.iter().zip(charges).all(alike)
            && (charges.len() == 1 || until - self.from() <= TURNS_MAX);
        if is_same {
            for (kept, more) in self.charges.iter_mut().zip(charges) {
                kept.ns += more.ns;
                kept.evidence[1] = more.evidence[1];
            }
            self.until = until;
        }
        is_same
    }
}

impl Waits {
    /// Keeps what a wait that ended at `until` was spent on, except for the causes in `but`.
    pub(crate) fn keep(&mut self, split: &Split, but: u32, until: Instant) {
        let held = |charge: &&Charge| charge.ns.is_positive() && charge.cause.bit() & but == 0;
        let charges: Vec<Charge> = split.charges().filter(held).cloned().collect();
        if charges.is_empty() || self.kept.back_mut().is_some_and(|last| last.goes_on(&charges, until)) {
            return;
        }
        if self.kept.len() == WAITS_MAX {
            self.kept.pop_front();
        }
        self.kept.push_back(Waited { until, charges });
    }

    /// Forgets waits that ended by then.
    pub(crate) fn forget(&mut self, before: Instant) {
        self.kept.retain(|waited| waited.until > before);
    }

    /// Whether any of them was spent on this cause.
    pub(crate) fn have(&self, cause: Cause) -> bool {
        self.kept.iter().any(|waited| waited.charges.iter().any(|charge| charge.cause == cause))
    }

    /// How long this cause has held the segment that passed at `at`.
    pub(crate) fn held_until(&self, at: Instant, cause: Cause) -> Duration {
        let waited = self.kept.back().filter(|waited| waited.until == at);
        let charges = waited.into_iter().flat_map(|waited| &waited.charges);
        charges.filter(|charge| charge.cause == cause).map(|charge| charge.ns).sum()
    }

    /// Whether nothing but this cause has held the segment that passed at `at`, apart from `play`.
    pub(crate) fn held_alone(&self, at: Instant, cause: Cause, play: Duration) -> bool {
        let others = |waited: &Waited| -> Duration {
            waited.charges.iter().filter(|charge| charge.cause != cause).map(|charge| charge.ns).sum()
        };
        self.kept.back().is_some_and(|waited| waited.until == at && others(waited) < play)
    }

    /// Bytes of heap memory in use.
    pub(crate) fn heap(&self) -> usize {
        let charges: usize = self.kept.iter().map(|waited| waited.charges.capacity()).sum();
        self.kept.capacity() * size_of::<Waited>() + charges * size_of::<Charge>()
    }
}

/// Charges the time from `from` to `until`: to what held these directions meanwhile, as far as these causes count, and what is
/// left to what `rest` says of so much.
pub(crate) fn fill(
    account: &mut Account,
    [from, until]: [Instant; 2],
    held: &[(&Waits, u32)],
    rest: impl FnOnce(Duration) -> Charge,
) {
    let mut waits: Vec<(Instant, &Charge)> = Vec::new();
    for (of, causes) in held {
        for waited in of.kept.iter().filter(|waited| waited.until > from) {
            let mut begins = waited.from();
            for charge in &waited.charges {
                if begins < until && charge.cause.bit() & causes != 0 {
                    waits.push((begins, charge));
                }
                begins = begins + charge.ns;
            }
        }
    }
    waits.sort_by_key(|(begins, _)| *begins);
    let mut now = from;
    let mut left = Duration::ZERO;
    for (begins, charge) in waits {
        left += (begins - now).at_least_zero();
        let ends = (begins + charge.ns).min(until);
        let ns = (ends - begins.max(now)).at_least_zero();
        account.charge(&Charge { ns, ..charge.clone() });
        now = now.max(begins).max(ends);
    }
    left += (until - now).at_least_zero();
    account.charge(&Charge { ns: left, ..rest(left) });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bill::line::LineView;
    use crate::words::cause::{Cause, Side};
    use crate::words::report::Confidence;

    fn at(ms: i64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    fn charge(cause: Cause, ms: i64) -> Charge {
        Charge::new(cause, Side::Server, Duration::from_millis(ms), Confidence::Likely)
    }

    fn spent(account: &Account, cause: Cause) -> Duration {
        let mut account = account.clone();
        account.bill().summary().filter(|line| line.cause() == cause).map(LineView::ns).sum()
    }

    #[test]
    fn what_holds_a_transfer_segment_by_segment_is_remembered_as_one_wait() {
        let mut waits = Waits::default();
        for n in 1..=5_000 {
            let split = Split::of(Duration::from_millis(1)).rest(charge(Cause::Bandwidth, 0));
            waits.keep(&split, Cause::SenderThink.bit(), at(n));
        }
        let mut account = Account::default();
        fill(&mut account, [at(0), at(5_000)], &[(&waits, !0)], |_| charge(Cause::SenderThink, 0));
        assert_eq!(spent(&account, Cause::Bandwidth), Duration::from_millis(5_000));
        assert_eq!(waits.kept.len(), 1);
    }

    #[test]
    fn every_moment_is_charged_once_to_what_held_it() {
        let mut waits = [Waits::default(), Waits::default()];
        let mut split = Split::of(Duration::from_millis(30));
        split.take(charge(Cause::Rto, 10));
        let split = split.rest(charge(Cause::SenderThink, 0));
        waits[0].keep(&split, Cause::SenderThink.bit(), at(50));
        let stall = Split::of(Duration::from_millis(20)).rest(charge(Cause::ReceiveWindow, 0));
        waits[1].keep(&stall, 0, at(65));
        for (from, until, rto, window, think) in [
            (0, 100, 10, 15, 75),
            (45, 60, 5, 10, 0),
            (0, 40, 0, 0, 40),
            (65, 70, 0, 0, 5),
            (48, 49, 1, 0, 0),
        ] {
            let mut account = Account::default();
            let held = [(&waits[0], !0), (&waits[1], !0)];
            fill(&mut account, [at(from), at(until)], &held, |_| charge(Cause::ServerThink, 0));
            let shown = [Cause::Rto, Cause::ReceiveWindow, Cause::ServerThink].map(|c| spent(&account, c));
            assert_eq!(shown, [rto, window, think].map(Duration::from_millis), "{from} to {until}");
            assert_eq!(account.total(), at(until) - at(from));
        }
    }
}
