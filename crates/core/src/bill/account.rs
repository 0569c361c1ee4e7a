//! Where has the time gone so far? The running account of one exchange along its critical path.
//!
//! Every interval is charged exactly once, so an account's lines sum to the time between its first
//! and its last event. `revise.rs` has what changes a charge once made.

use tcpwhy_wire::Duration;

use crate::bill::charge::Charge;
use crate::bill::line::{AccountLine, Bill, LineView, NO_DETAIL, make_room};
use crate::bill::split::Split;
use crate::bill::usual::UsualBill;
use crate::words::cause::{Cause, Side};
use crate::words::report::{Confidence, Detail};

/// The running account. Reused from exchange to exchange, so that the per-packet path does not allocate.
#[derive(Clone, Debug, Default)]
pub(crate) struct Account {
    /// Stands in for the lines as long as a usual reply is the only charge.
    usual: Option<UsualBill>,
    written: Written,
    pub(super) total: Duration,
}

/// The lines of an account.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Written {
    pub lines: Vec<AccountLine>,
    /// Most lines have none.
    pub details: Vec<Detail>,
}

/// Equal if the lines are, whether written out or not.
impl PartialEq for Account {
    fn eq(&self, other: &Self) -> bool {
        let written = |account: &Self| account.clone().open().clone();
        self.total == other.total && written(self) == written(other)
    }
}

impl Account {
    pub(crate) fn clear(&mut self) {
        self.usual = None;
        self.written.lines.clear();
        self.written.details.clear();
        self.total = Duration::ZERO;
    }

    /// Its lines, written out first if necessary.
    #[inline]
    pub(super) fn open(&mut self) -> &mut Written {
        if self.usual.is_some() {
            self.write_out();
        }
        &mut self.written
    }

    #[cold]
    fn write_out(&mut self) {
        let Some(usual) = self.usual.take() else { return };
        self.total = Duration::ZERO;
        self.charge_usual(&usual);
    }

    /// Starts with the cost of a usual reply.
    #[inline]
    pub(crate) fn begin_usual(&mut self, usual: UsualBill) {
        debug_assert!(self.is_empty(), "something has been charged before");
        self.total = usual.total();
        self.usual = Some(usual);
    }

    /// Adds the cost of a usual reply to the charges so far.
    pub(crate) fn charge_usual(&mut self, usual: &UsualBill) {
        usual.charges().iter().for_each(|charge| self.charge(charge));
    }

    /// The cost of a usual reply, if that is the only charge.
    #[inline]
    pub(crate) fn usual(&self) -> Option<&UsualBill> {
        self.usual.as_ref()
    }

    /// Charges the way back from the capture to the requester, after `packet`: as `charge`, if that is needed.
    #[inline]
    pub(crate) fn charge_back(
        &mut self,
        (ns, confidence): (Duration, Confidence),
        packet: u64,
        charge: impl FnOnce() -> Charge,
    ) {
        let Some(usual) = &mut self.usual else { return self.charge(&charge()) };
        (usual.back, usual.last) = (ns.at_least_zero(), packet);
        usual.sure[1] = confidence;
        self.total = usual.total();
    }

    /// Whether anything was charged to this cause, which never occurs in a usual reply.
    pub(super) fn has(&self, cause: Cause) -> bool {
        self.written.lines.iter().any(|line| line.cause == cause)
    }

    /// The bill so far.
    pub(crate) fn bill(&mut self) -> Bill<'_> {
        let total = self.total;
        let Written { lines, details } = self.open();
        Bill { lines, details, total }
    }

    pub(crate) fn copy_from(&mut self, other: &Self) {
        self.usual = other.usual;
        let (written, others) = (&mut self.written, &other.written);
        written.lines.clear();
        written.lines.extend_from_slice(&others.lines);
        written.details.clear();
        written.details.extend_from_slice(&others.details);
        self.total = other.total;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.usual.is_none() && self.written.lines.is_empty()
    }

    pub(crate) fn total(&self) -> Duration {
        self.total
    }

    /// Bytes of heap memory in use.
    pub(crate) fn heap(&self) -> usize {
        let Written { lines, details } = &self.written;
        lines.capacity() * size_of::<AccountLine>() + details.capacity() * size_of::<Detail>()
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
        let side = charge.cause.side(charge.sender);
        let Written { lines, details } = self.open();
        if let Some(line) = lines.iter_mut().find(|line| line.cause == charge.cause && line.side == side) {
            let form = charge.detail.as_ref().and_then(|detail| detail.form);
            if line.is_better_told_by([line.form(details), form], charge.ns, charge.ns) {
                line.take_detail(charge.detail.as_deref().copied(), details);
            }
            line.add(charge);
        } else {
            let detailed = charge.detail.is_some();
            let detail = if detailed { details.len() as u8 } else { NO_DETAIL };
            if let Some(measured) = &charge.detail {
                make_room(details);
                details.push(**measured);
            }
            make_room(lines);
            lines.push(AccountLine { detail, detailed, ..AccountLine::of(charge) });
        }
        self.total += charge.ns;
    }

    /// [`Self::charge`] for a charge to the first line's cause, without detail, and no longer than
    /// the waits it cites, like most pieces of a burst. If the charge does not qualify, returns
    /// false and changes nothing.
    #[inline]
    pub(super) fn charge_again(
        &mut self,
        cause: Cause,
        sender: Side,
        (ns, confidence): (Duration, Confidence),
    ) -> bool {
        let Some(line) = self.written.lines.first_mut().filter(|_| self.usual.is_none()) else {
            return false;
        };
        let same = line.cause == cause && line.side == cause.side(sender);
        if !same || ns > line.longest || !line.is_cited() {
            return false;
        }
        line.ns += ns;
        line.by_confidence[confidence as usize] += ns;
        line.waits += 1;
        self.total += ns;
        true
    }

    /// Takes over another account's lines and empties it.
    pub(crate) fn absorb(&mut self, other: &mut Self) {
        if other.is_empty() {
            return;
        }
        let Written { lines, details } = other.open();
        for line in &*lines {
            self.absorb_line(line, LineView(line, details).own_detail());
        }
        other.clear();
    }

    pub(super) fn absorb_line(&mut self, line: &AccountLine, detail: Option<Detail>) {
        let Written { lines, details } = self.open();
        let known = lines.iter_mut().find(|known| (known.cause, known.side) == (line.cause, line.side));
        if let Some(known) = known {
            let form = detail.and_then(|detail| detail.form);
            if known.is_better_told_by([known.form(details), form], line.lead, line.longest) {
                known.take_detail(detail, details);
            }
            known.ns += line.ns;
            for (sum, more) in known.by_confidence.iter_mut().zip(line.by_confidence) {
                *sum += more;
            }
            known.waits = known.waits.saturating_add(line.waits);
            for packets in line.evidence {
                known.cite(packets, line.longest);
            }
        } else {
            let place = if let Some(detail) = detail {
                make_room(details);
                details.push(detail);
                details.len() as u8 - 1
            } else {
                NO_DETAIL
            };
            make_room(lines);
            lines.push(AccountLine { detail: place, ..*line });
        }
        self.total += line.ns;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bill::told::Told as _;
    use crate::words::cause::Side;
    use crate::words::report::Confidence;

    /// Also when some parts took no time, and whichever way was longer.
    #[test]
    fn a_usual_bill_has_the_lines_of_an_account_that_was_charged() {
        for n in 0..27 {
            let ms = |n: i64| Duration::from_millis(n % 3);
            let mut usual = UsualBill::new(ms(n), ms(n / 3), Confidence::Likely, Side::Server);
            usual.packets = [4, 7];
            (usual.back, usual.last) = (ms(n / 9), 9);
            let (mut charged, mut kept) = (Account::default(), Account::default());
            usual.charges().iter().for_each(|charge| charged.charge(charge));
            kept.begin_usual(UsualBill { back: Duration::ZERO, last: 0, ..usual });
            kept.charge_back((usual.back, usual.sure[1]), usual.last, || usual.charges()[2].clone());
            assert_eq!(kept.total(), charged.total());
            let lines = kept.usual().map(|usual| usual.lines().bill().lines());
            assert_eq!(lines, Some(charged.bill().lines()));
            let all = charged.bill();
            let all: Vec<_> = (0..all.count()).map(|n| all.brief(n)).collect();
            let told = kept.usual().map(UsualBill::told);
            let told = told.as_ref().map(|told| (0..told.count()).map(|n| told.brief(n)).collect());
            assert_eq!(told, Some(all));
            assert_eq!(kept, charged);
        }
    }
}
