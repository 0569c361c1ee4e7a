//! What does a packet look like on the ladder, where a person asks for it?

use tcpwhy_wire::Segment;

use super::Connection;
use crate::bill::charge::Charge;
use crate::bill::split::Split;
use crate::connection::ladder::{Passing, RUNG};
use crate::flow::packed::Packed;
use crate::tally::ledger::Ledger;
use crate::words::opening::Opening;
use crate::words::report::{Billed, Rung, Trigger};

impl Connection {
    /// What the ladder counts from, where there is one.
    pub(crate) fn opening(&self) -> Opening {
        self.ladder.as_ref().map_or_else(Opening::default, |ladder| ladder.opening)
    }

    #[inline]
    pub(super) fn rung(
        &mut self,
        segment: &Segment,
        from: usize,
        trigger: Trigger,
        split: Option<&Split>,
        ledger: &mut Ledger,
    ) {
        if self.ladder.is_some() {
            self.add_segment(segment, from, trigger, split, ledger);
        }
    }

    #[cold]
    #[inline(never)]
    fn add_segment(
        &mut self,
        segment: &Segment,
        from: usize,
        trigger: Trigger,
        split: Option<&Split>,
        ledger: &mut Ledger,
    ) {
        let charges = split.map(Split::charges).unwrap_or_default();
        self.add_rung(segment.into(), from, trigger, charges.as_slice(), ledger);
    }

    /// The same of a usual segment: a bare acknowledgement, or a part of a burst with what its time went to.
    #[inline]
    pub(super) fn usual_rung(
        &mut self,
        segment: &Packed,
        from: usize,
        charges: Option<[Charge; 2]>,
        ledger: &mut Ledger,
    ) {
        if self.ladder.is_some() {
            self.add_usual(segment, from, charges, ledger);
        }
    }

    #[cold]
    #[inline(never)]
    fn add_usual(
        &mut self,
        segment: &Packed,
        from: usize,
        charges: Option<[Charge; 2]>,
        ledger: &mut Ledger,
    ) {
        match charges {
            Some(charges) => self.add_rung(segment.into(), from, Trigger::Burst, &charges, ledger),
            None => self.add_rung(segment.into(), from, Trigger::Control, &[], ledger),
        }
    }

    /// What a charge of nothing is for is not told.
    #[cold]
    #[inline(never)]
    fn add_rung(
        &mut self,
        passing: Passing,
        from: usize,
        trigger: Trigger,
        charges: &[Charge],
        ledger: &mut Ledger,
    ) {
        let is_syn = passing.flags.syn();
        let window_scale = if is_syn { Some(0) } else { self.window_scale(from) };
        let scale = window_scale.unwrap_or_else(|| self.flows[1 - from].scale_bounds.scale());
        let window = u32::from(passing.window) << scale;
        let exchange = self.open.as_ref().map(|open| open.n).or(is_syn.then_some(0));
        let firsts = [from, 1 - from].map(|end| self.flows[end].first);
        let side = self.flows[from].side;
        let Some(ladder) = &mut self.ladder else { return };
        if !ledger.has_room_for_rung(RUNG) {
            ladder.omitted += 1;
            return;
        }
        let (mut billed, mut since) = (Billed::NOTHING, None::<u64>);
        for charge in charges.iter().filter(|charge| charge.ns.is_positive()) {
            billed.push(charge.cause, charge.ns);
            let begins = charge.evidence[0];
            if begins > 0 && begins < passing.packet {
                since = Some(since.map_or(begins, |since| since.min(begins)));
            }
        }
        let rung = Rung::new(passing.packet, passing.at, side, passing.flags);
        let mut rung = rung.of_exchange(exchange).left_by(trigger).having_waited(billed, since);
        rung.offset = ladder.offset(from, firsts[0], passing.seq);
        let (seq, ack) = ladder.relative(passing, from);
        if let Some(ack) = ack {
            rung = rung.acknowledging(ladder.offset(1 - from, firsts[1], passing.ack), ack);
        }
        (rung.seq, rung.len) = (seq, passing.len);
        (rung.window, rung.window_field, rung.window_scale) = (window, passing.window, window_scale);
        if ledger.draws_all() {
            ladder.steps.get_or_insert_default().push(rung);
        } else {
            ladder.rungs.push(rung);
        }
    }
}
