//! What does a packet look like on the ladder, if a user asks for it?

use tcpwhy_wire::Segment;

use super::Connection;
use crate::bill::charge::Charge;
use crate::bill::split::Split;
use crate::connection::ladder::{Passing, RUNG};
use crate::flow::packed::Packed;
use crate::tally::ledger::Ledger;
use crate::words::cause::Cause;
use crate::words::opening::Opening;
use crate::words::report::{Billed, Rung, Trigger};
use crate::words::rung::NONE;
use crate::words::steps::{Next, Place};

impl Connection {
    /// The numbers that the ladder counts from, if there is one.
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

    /// The same for a usual segment: a pure ACK, or part of a burst with its charges.
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
        if self.add_next(segment, from, charges.as_ref(), ledger) {
            return;
        }
        match charges {
            Some(charges) => self.add_rung(segment.into(), from, Trigger::Burst, &charges, ledger),
            None => self.add_rung(segment.into(), from, Trigger::Control, &[], ledger),
        }
    }

    /// The same for a segment that continues its end's last one, when all packets are drawn. Returns
    /// whether it does.
    #[cold]
    #[inline(never)]
    fn add_next(
        &mut self,
        segment: &Packed,
        from: usize,
        charges: Option<&[Charge; 2]>,
        ledger: &mut Ledger,
    ) -> bool {
        if !ledger.draws_all() || !ledger.has_room_for_rung(RUNG) {
            return false;
        }
        let (mut billed, mut lines, mut since) = ([0; 2], 0, NONE);
        for charge in charges.into_iter().flatten().filter(|charge| charge.ns.is_positive()) {
            let Ok(ns) = u32::try_from(charge.ns.as_nanos()) else { return false };
            debug_assert!(charge.cause == Cause::Bandwidth, "a burst waits for the link alone");
            (billed[usize::from(lines)], lines, since) = (ns, lines + 1, charge.evidence[0]);
        }
        let (passing, side) = (Passing::from(segment), self.flows[from].side);
        let Some(place) = self.place(passing, from) else { return false };
        let steps = self.ladder.as_mut().and_then(|ladder| ladder.steps.as_deref_mut());
        let next = Next { place, from: side, flags: passing.flags, billed, lines, since };
        steps.is_some_and(|steps| steps.go_on(&next))
    }

    /// A packet's place on the ladder, if there is one.
    #[cold]
    #[inline(never)]
    fn place(&mut self, passing: Passing, from: usize) -> Option<Place> {
        let is_syn = passing.flags.syn();
        let window_scale = if is_syn { Some(0) } else { self.window_scale(from) };
        let scale = window_scale.unwrap_or_else(|| self.flows[1 - from].unusual.scale_bounds.scale());
        let exchange = self.open.as_ref().map(|open| open.n).or(is_syn.then_some(0));
        let firsts = [from, 1 - from].map(|end| self.flows[end].first);
        let ladder = self.ladder.as_mut()?;
        let offset = ladder.offset(from, firsts[0], passing.seq);
        let (seq, ack) = ladder.relative(passing, from);
        let ack_offset = ack.map(|_| ladder.offset(1 - from, firsts[1], passing.ack));
        Some(Place {
            packet: passing.packet,
            at: passing.at,
            exchange,
            offset,
            seq,
            len: passing.len,
            ack_offset,
            ack: ack.unwrap_or_default(),
            window: u32::from(passing.window) << scale,
            window_field: passing.window,
            window_scale,
        })
    }

    /// Charges of zero are not shown.
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
        let side = self.flows[from].side;
        let Some(place) = self.place(passing, from) else { return };
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
        let mut rung = rung.of_exchange(place.exchange).left_by(trigger).having_waited(billed, since);
        if let Some(offset) = place.ack_offset {
            rung = rung.acknowledging(offset, place.ack);
        }
        (rung.offset, rung.seq, rung.len) = (place.offset, place.seq, place.len);
        (rung.window, rung.window_field) = (place.window, place.window_field);
        rung.window_scale = place.window_scale;
        if ledger.draws_all() {
            ladder.steps.get_or_insert_default().push(rung);
        } else {
            ladder.rungs.push(rung);
        }
    }
}
