//! What does a line of a bill say: how long, on which cause, at which side, with what confidence,
//! and which packets show it?

use tcpwhy_wire::Duration;

use crate::bill::charge::Charge;
use crate::words::cause::{Cause, Side};
use crate::words::form::Form;
use crate::words::report::{Confidence, Detail, Line};

/// Never an index: there are fewer causes and sides.
pub(super) const NO_DETAIL: u8 = u8::MAX;
/// Waits whose packets are kept as evidence for one line.
pub(super) const EVIDENCE_WAITS: usize = 2;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct AccountLine {
    pub cause: Cause,
    pub side: Side,
    pub ns: Duration,
    pub by_confidence: [Duration; 3],
    /// The packets of the longest wait, and of one other, as in [`Charge::evidence`].
    pub evidence: [[u64; 3]; EVIDENCE_WAITS],
    pub longest: Duration,
    /// How much more time was spent in the detail's form than in the others it was compared with.
    pub lead: Duration,
    pub waits: u32,
    /// The index of the detail, and whether there is one: that of the longest wait, in the form
    /// that took the most time.
    pub detail: u8,
    pub detailed: bool,
}

impl AccountLine {
    /// From the first charge to its cause.
    #[expect(clippy::inline_always, reason = "it is put together where it is to stand")]
    #[inline(always)]
    pub(super) fn of(charge: &Charge) -> Self {
        let as_sure = |confidence| if charge.confidence == confidence { charge.ns } else { Duration::ZERO };
        Self {
            cause: charge.cause,
            side: charge.cause.side(charge.sender),
            ns: charge.ns,
            // Without an indexed write, it can be built in place.
            by_confidence: [Confidence::Possible, Confidence::Likely, Confidence::Certain].map(as_sure),
            evidence: [charge.evidence, [0; 3]],
            longest: charge.ns,
            lead: charge.ns,
            waits: 1,
            detail: NO_DETAIL,
            detailed: false,
        }
    }

    /// Whether it already cites as many waits as it can.
    #[inline]
    pub(super) fn is_cited(&self) -> bool {
        self.evidence.iter().all(|[_, ends, _]| *ends != 0)
    }

    /// Another charge to it, without its detail.
    #[inline]
    pub(super) fn add(&mut self, charge: &Charge) {
        self.ns += charge.ns;
        self.by_confidence[charge.confidence as usize] += charge.ns;
        self.waits += 1;
        self.cite(charge.evidence, charge.ns);
    }

    /// Whether another detail, from waits of `ns` in all with a longest of `longest`, says more
    /// than its own (`forms`). Between two forms time decides (a majority by weight: Boyer and
    /// Moore, MJRTY, 1991), otherwise the longest wait.
    pub(super) fn is_better_told_by(
        &mut self,
        forms: [Option<Form>; 2],
        ns: Duration,
        longest: Duration,
    ) -> bool {
        match forms {
            [Some(own), Some(other)] if own != other => {
                let is_outweighed = ns > self.lead;
                self.lead = if is_outweighed { ns - self.lead } else { self.lead - ns };
                return is_outweighed;
            }
            [Some(_), Some(_)] => self.lead += ns,
            _ if longest > self.longest => self.lead = ns,
            _ => {}
        }
        longest > self.longest
    }

    /// Its detail's form.
    pub(super) fn form(&self, details: &[Detail]) -> Option<Form> {
        if self.detailed { details.get(usize::from(self.detail))?.form } else { None }
    }

    /// Takes another wait's detail instead of its own.
    pub(super) fn take_detail(&mut self, detail: Option<Detail>, details: &mut Vec<Detail>) {
        self.detailed = detail.is_some();
        let Some(detail) = detail else { return };
        if let Some(place) = details.get_mut(usize::from(self.detail)) {
            *place = detail;
        } else {
            self.detail = details.len() as u8;
            make_room(details);
            details.push(detail);
        }
    }

    /// Cites the packets of a wait of `ns`; the longest wait comes first.
    pub(super) fn cite(&mut self, packets: [u64; 3], ns: Duration) {
        if packets == [0; 3] {
            self.longest = self.longest.max(ns);
        } else if ns > self.longest || self.evidence[0] == [0; 3] {
            self.longest = self.longest.max(ns);
            self.evidence = [packets, self.evidence[0]];
        } else if self.evidence[1] == [0; 3] {
            self.evidence[1] = packets;
        }
    }
}

/// What an account comes to, in the form in which it is handed over.
#[derive(Clone, Copy)]
pub(crate) struct Bill<'a> {
    pub(super) lines: &'a [AccountLine],
    pub(super) details: &'a [Detail],
    pub(super) total: Duration,
}

impl<'a> Bill<'a> {
    /// Largest line first, ties in the order of [`Cause::ALL`].
    pub(crate) fn lines(self) -> Vec<Line> {
        let mut lines: Vec<Line> = self.summary().map(LineView::line).collect();
        sort(&mut lines);
        lines
    }

    /// The n-th line in order of first appearance.
    #[inline]
    pub(super) fn line(self, n: usize) -> LineView<'a> {
        LineView(&self.lines[n], self.details)
    }

    /// The lines in order of first appearance, without building a report from them.
    pub(crate) fn summary(self) -> impl Iterator<Item = LineView<'a>> {
        self.lines.iter().map(move |line| LineView(line, self.details))
    }
}

/// One line of an account, read without copying it.
#[derive(Clone, Copy)]
pub(crate) struct LineView<'a>(pub(super) &'a AccountLine, pub(super) &'a [Detail]);

impl LineView<'_> {
    pub(crate) fn cause(self) -> Cause {
        self.0.cause
    }

    pub(crate) fn side(self) -> Side {
        self.0.side
    }

    pub(crate) fn ns(self) -> Duration {
        self.0.ns
    }

    pub(crate) fn detail(self) -> Detail {
        let own = self.own_detail().unwrap_or_default();
        // Each wait for a repair is one retransmitted packet.
        let retransmits = own.retransmits.map(|n| n.max(self.0.waits));
        Detail { waits: Some(self.0.waits), retransmits, ..own }
    }

    pub(super) fn own_detail(self) -> Option<Detail> {
        self.0.detailed.then(|| self.1.get(usize::from(self.0.detail)).copied()).flatten()
    }

    /// Adds the packets that show it.
    pub(crate) fn cite_in(self, cited: &mut Vec<u64>) {
        cite(&self.0.evidence, cited);
    }

    /// The confidence that nine tenths of the time reach.
    pub(crate) fn confidence(self) -> Confidence {
        let [_, likely, certain] = self.0.by_confidence;
        let enough = self.0.ns - self.0.ns.divided_by(10);
        if certain >= enough {
            Confidence::Certain
        } else if certain + likely >= enough {
            Confidence::Likely
        } else {
            Confidence::Possible
        }
    }

    fn line(self) -> Line {
        let mut evidence = Vec::new();
        self.cite_in(&mut evidence);
        Line {
            cause: self.cause(),
            side: self.side(),
            ns: self.ns(),
            confidence: self.confidence(),
            evidence,
            detail: self.detail(),
        }
    }
}

/// Adds, for each wait, the packet at its start, the one that released its end, and the one at its
/// end; the longest wait first.
pub(super) fn cite(waits: &[[u64; 3]; EVIDENCE_WAITS], cited: &mut Vec<u64>) {
    for &[begins, ends, released] in waits {
        for packet in [begins, released, ends] {
            if packet != 0 && !cited.contains(&packet) {
                cited.push(packet);
            }
        }
    }
}

/// Largest first, ties in the order of [`Cause::ALL`].
pub(super) fn sort(lines: &mut [Line]) {
    lines.sort_by(|a, b| b.ns.cmp(&a.ns).then(a.cause.cmp(&b.cause)).then(a.side.cmp(&b.side)));
}

/// Accounts are many, and most stay short.
pub(super) fn make_room<T>(items: &mut Vec<T>) {
    if items.len() == items.capacity() {
        items.reserve_exact(2);
    }
}
