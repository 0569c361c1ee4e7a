//! What does a packet look like on the ladder, where a person asks for it?

use tcpwhy_wire::Segment;

use super::Connection;
use crate::bill::charge::Charge;
use crate::bill::split::Split;
use crate::connection::ladder::RUNG;
use crate::flow::packed::Packed;
use crate::tally::ledger::Ledger;
use crate::words::opening::Opening;
use crate::words::report::{Rung, Trigger};

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
        if let Some(ladder) = &mut self.ladder {
            if ledger.has_room_for_rung(RUNG) {
                self.add_rung(segment, from, trigger, split);
            } else {
                ladder.omitted += 1;
            }
        }
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
            self.add_usual_rung(segment, from, charges, ledger);
        }
    }

    #[cold]
    fn add_usual_rung(
        &mut self,
        segment: &Packed,
        from: usize,
        charges: Option<[Charge; 2]>,
        ledger: &mut Ledger,
    ) {
        let trigger = if charges.is_some() { Trigger::Burst } else { Trigger::Control };
        let split = charges.map(|charges| {
            let mut split = Split::of(charges.iter().map(|charge| charge.ns).sum());
            for charge in charges {
                split.take(charge);
            }
            split
        });
        self.rung(&segment.unpack(), from, trigger, split.as_ref(), ledger);
    }

    #[cold]
    fn add_rung(&mut self, segment: &Segment, from: usize, trigger: Trigger, split: Option<&Split>) {
        let firsts = [from, 1 - from].map(|end| self.flows[end].first);
        let Some(ladder) = &mut self.ladder else { return };
        let offset = ladder.offset(from, firsts[0], segment.seq);
        let ack_offset = segment.flags.ack().then(|| ladder.offset(1 - from, firsts[1], segment.ack));
        let (seq, ack) = ladder.relative(segment, from);
        let window_scale = if segment.flags.syn() { Some(0) } else { self.window_scale(from) };
        let rung = Rung {
            packet: segment.packet,
            at: segment.at,
            exchange: self.open.as_ref().map(|open| open.n).or((segment.flags.syn()).then_some(0)),
            from: self.flows[from].side,
            offset,
            len: segment.payload_len,
            ack_offset,
            seq,
            ack,
            window_field: segment.window,
            window_scale,
            window: u64::from(self.window(segment, from)),
            flags: segment.flags,
            trigger,
            billed: split.map_or(Vec::new(), |split| {
                split.charges().map(|charge| (charge.cause, charge.ns)).collect()
            }),
            since: split.and_then(|split| {
                let begins = split.charges().map(|charge| charge.evidence[0]);
                begins.filter(|&packet| packet > 0 && packet < segment.packet).min()
            }),
        };
        if let Some(ladder) = &mut self.ladder {
            ladder.rungs.push(rung);
        }
    }
}
