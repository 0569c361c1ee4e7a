//! Where has the time gone so far? The running account of one exchange along its critical path.
//!
//! Every interval is charged exactly once, so an account's lines sum to the time between its first and its last event. What changes
//! a charge that was made is in `revise.rs`.

use tcpwhy_wire::Duration;

use crate::bill::charge::Charge;
use crate::bill::split::Split;
use crate::words::cause::{Cause, Side};
use crate::words::report::{Confidence, Detail, Line};

/// No line has this place: there are fewer causes and sides.
const NO_DETAIL: u8 = u8::MAX;
/// Waits whose packets are kept as evidence for one line.
const EVIDENCE_WAITS: usize = 2;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct AccountLine {
    pub cause: Cause,
    pub side: Side,
    pub ns: Duration,
    pub by_confidence: [Duration; 3],
    /// The packets of the longest wait, and of another one, as in [`Charge::evidence`].
    pub evidence: [[u64; 3]; EVIDENCE_WAITS],
    pub longest: Duration,
    pub waits: u32,
    /// Where the detail of the longest wait is, and whether it has one.
    pub detail: u8,
    pub detailed: bool,
}

impl AccountLine {
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

    /// A wait so long is shown by these packets: before any other where none was longer.
    fn cite(&mut self, packets: [u64; 3], ns: Duration) {
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

/// The running account. Reused from exchange to exchange, so that the per-packet path does not allocate.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Account {
    pub(super) lines: Vec<AccountLine>,
    /// Most lines have none.
    pub(super) details: Vec<Detail>,
    pub(super) total: Duration,
}

impl Account {
    pub(crate) fn clear(&mut self) {
        self.lines.clear();
        self.details.clear();
        self.total = Duration::ZERO;
    }

    /// See `flow/direction/touch.rs`.
    #[inline]
    pub(crate) fn touch(&self) -> u64 {
        self.lines.iter().map(|line| u64::from(line.waits) ^ line.evidence[0][0]).fold(0, u64::wrapping_add)
    }

    pub(crate) fn copy_from(&mut self, other: &Self) {
        self.lines.clear();
        self.lines.extend_from_slice(&other.lines);
        self.details.clear();
        self.details.extend_from_slice(&other.details);
        self.total = other.total;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    pub(crate) fn total(&self) -> Duration {
        self.total
    }

    /// Bytes that it takes besides its own.
    pub(crate) fn heap(&self) -> usize {
        self.lines.capacity() * size_of::<AccountLine>() + self.details.capacity() * size_of::<Detail>()
    }

    pub(crate) fn charge_split(&mut self, split: &Split) {
        debug_assert!(!split.left().is_positive(), "an interval was left without a cause");
        for charge in split.charges() {
            self.charge(charge);
        }
    }

    pub(crate) fn charge(&mut self, charge: &Charge) {
        if !charge.ns.is_positive() {
            return;
        }
        self.total += charge.ns;
        let side = charge.cause.side(charge.sender);
        let mut lines = self.lines.iter_mut();
        let Some(line) = lines.find(|line| line.cause == charge.cause && line.side == side) else {
            self.begin_line(charge, side);
            return;
        };
        // The detail is that of the longest single wait.
        if charge.ns > line.longest {
            line.take_detail(charge.detail.as_deref().copied(), &mut self.details);
        }
        line.ns += charge.ns;
        line.by_confidence[charge.confidence as usize] += charge.ns;
        line.waits += 1;
        line.cite(charge.evidence, charge.ns);
    }

    /// [`Self::charge`] of the first charge to its cause.
    #[inline]
    pub(crate) fn begin(&mut self, charge: &Charge) {
        if charge.ns.is_positive() {
            self.total += charge.ns;
            self.begin_line(charge, charge.cause.side(charge.sender));
        }
    }

    fn begin_line(&mut self, charge: &Charge, side: Side) {
        let mut by_confidence = [Duration::ZERO; 3];
        by_confidence[charge.confidence as usize] = charge.ns;
        let mut detail = NO_DETAIL;
        if let Some(measured) = &charge.detail {
            detail = self.details.len() as u8;
            make_room(&mut self.details);
            self.details.push(**measured);
        }
        make_room(&mut self.lines);
        self.lines.push(AccountLine {
            cause: charge.cause,
            side,
            ns: charge.ns,
            by_confidence,
            evidence: [charge.evidence, [0; 3]],
            longest: charge.ns,
            waits: 1,
            detail,
            detailed: charge.detail.is_some(),
        });
    }

    /// Takes over another account's lines and empties it.
    pub(crate) fn absorb(&mut self, other: &mut Self) {
        if other.lines.is_empty() {
            return;
        }
        for line in &other.lines {
            self.absorb_line(line, LineView(line, &other.details).own_detail());
        }
        other.clear();
    }

    pub(super) fn absorb_line(&mut self, line: &AccountLine, detail: Option<Detail>) {
        self.total += line.ns;
        let known = self.lines.iter_mut().find(|known| (known.cause, known.side) == (line.cause, line.side));
        let Some(known) = known else {
            let place = if let Some(detail) = detail {
                make_room(&mut self.details);
                self.details.push(detail);
                self.details.len() as u8 - 1
            } else {
                NO_DETAIL
            };
            make_room(&mut self.lines);
            self.lines.push(AccountLine { detail: place, ..*line });
            return;
        };
        if line.longest > known.longest {
            known.take_detail(detail, &mut self.details);
        }
        known.ns += line.ns;
        for (sum, more) in known.by_confidence.iter_mut().zip(line.by_confidence) {
            *sum += more;
        }
        known.waits = known.waits.saturating_add(line.waits);
        for packets in line.evidence {
            known.cite(packets, line.longest);
        }
    }

    /// The bill, largest line first, ties in the order of [`Cause::ALL`], in the room of lines that nobody needs any more.
    pub(crate) fn lines_in(&self, mut lines: Vec<Line>) -> Vec<Line> {
        lines.reserve_exact(self.lines.len().saturating_sub(lines.len()));
        let mut count = 0;
        for view in self.summary() {
            match lines.get_mut(count) {
                Some(line) => *line = view.line_in(std::mem::take(&mut line.evidence)),
                None => lines.push(view.line_in(Vec::new())),
            }
            count += 1;
        }
        lines.truncate(count);
        lines.sort_by(|a, b| b.ns.cmp(&a.ns).then(a.cause.cmp(&b.cause)).then(a.side.cmp(&b.side)));
        lines
    }

    /// The lines in the order in which they first appeared, without building a report from them.
    pub(crate) fn summary(&self) -> impl Iterator<Item = LineView<'_>> {
        self.lines.iter().map(|line| LineView(line, &self.details))
    }
}

/// Accounts are many, and most stay short.
fn make_room<T>(items: &mut Vec<T>) {
    if items.len() == items.capacity() {
        items.reserve_exact(2);
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
        // Each wait for a repair is a packet that was sent again.
        let retransmits = own.retransmits.map(|n| n.max(self.0.waits));
        Detail { waits: Some(self.0.waits), retransmits, ..own }
    }

    pub(super) fn own_detail(self) -> Option<Detail> {
        self.0.detailed.then(|| self.1.get(usize::from(self.0.detail)).copied()).flatten()
    }

    /// Adds the packet with which a wait begins, the one that released the one that ends it, and that one; the longest wait first.
    pub(crate) fn cite_in(self, cited: &mut Vec<u64>) {
        for [begins, ends, released] in self.0.evidence {
            for packet in [begins, released, ends] {
                if packet != 0 && !cited.contains(&packet) {
                    cited.push(packet);
                }
            }
        }
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

    fn line_in(self, mut evidence: Vec<u64>) -> Line {
        evidence.clear();
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
