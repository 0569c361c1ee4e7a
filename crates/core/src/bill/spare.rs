//! Which copies seemed to repair something, should it show that they were for nothing?

use tcpwhy_wire::{Duration, Instant, SackBlock, Segment, Seq};

use crate::bill::split::Split;
use crate::words::cause::{Cause, Side};

/// Copies of one message that are remembered.
const COPIES_MAX: usize = 4;

/// What was charged for a copy that left when a timer had run out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spare {
    pub sender: Side,
    pub ns: Duration,
    pub packets: [u64; 3],
}

/// A copy of these bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Copied {
    at: Instant,
    bytes: [Seq; 2],
    charged: Spare,
    /// They went out once more: nothing tells which of the copies had arrived.
    again: bool,
    /// It counts by now.
    counts: bool,
}

/// The last copies of a message.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Copies(Vec<Copied>);

impl Copies {
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn heap(&self) -> usize {
        self.0.capacity() * size_of::<Copied>()
    }

    /// `segment` goes out again after `split`.
    pub(crate) fn note(&mut self, split: &Split, segment: &Segment) {
        let bytes = [segment.seq, segment.seq + segment.payload_len];
        let mut again = false;
        for other in &mut self.0 {
            let apart = bytes[1].at_or_before(other.bytes[0]) || other.bytes[1].at_or_before(bytes[0]);
            other.again |= !apart;
            again |= !apart;
        }
        let Some(charge) = split.charges().find(|charge| charge.cause == Cause::Rto) else { return };
        if self.0.len() == COPIES_MAX {
            self.0.remove(0);
        }
        let charged = Spare { sender: charge.sender, ns: charge.ns, packets: charge.evidence };
        self.0.push(Copied { at: segment.at, bytes, charged, again, counts: false });
    }

    /// The last ones count, and the timer before them took so much more.
    pub(crate) fn count(&mut self, timer: Duration) {
        let mut waited = timer;
        for copied in self.0.iter_mut().filter(|copied| !copied.counts) {
            copied.counts = true;
            copied.charged.ns += std::mem::take(&mut waited);
        }
    }

    /// The last ones do not count.
    pub(crate) fn forget(&mut self) {
        self.0.retain(|copied| copied.counts);
    }

    /// What was charged for the only copy of these bytes, where that counts.
    pub(crate) fn told(&mut self, block: SackBlock) -> Option<Spare> {
        let within = |[start, end]: [Seq; 2]| block.start.at_or_before(start) && end.at_or_before(block.end);
        self.take(|copied| copied.counts && within(copied.bytes))
    }

    /// What was charged for the only copy that does not count yet, if it left behind `since` and `ack` is beyond it.
    pub(crate) fn last(&mut self, since: Instant, ack: Seq) -> Option<Spare> {
        let alone = self.0.iter().filter(|copied| !copied.counts).count() == 1;
        let late = |copied: &Copied| copied.at > since && copied.bytes[1].at_or_before(ack);
        alone.then(|| self.take(|copied| !copied.counts && late(copied)))?
    }

    /// What was charged for the only copy of all, where that counts.
    pub(crate) fn only(&mut self) -> Option<Spare> {
        (self.0.len() == 1).then(|| self.take(|copied| copied.counts))?
    }

    fn take(&mut self, which: impl Fn(&Copied) -> bool) -> Option<Spare> {
        let place = self.0.iter().position(|copied| !copied.again && which(copied))?;
        Some(self.0.remove(place).charged)
    }
}
