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
    /// So many other copies have some of them too, or had: which of these had arrived only all of them tell.
    others: u8,
    /// Its receiver had its bytes before it arrived.
    told: bool,
    /// It counts by now.
    counts: bool,
}

impl Copied {
    fn shares(&self, [start, end]: [Seq; 2]) -> bool {
        self.bytes[0].before(end) && start.before(self.bytes[1])
    }

    /// Moves what it was charged to what several were.
    fn move_to(&mut self, several: &mut Option<Spare>) {
        let Spare { ns, packets, .. } = self.charged;
        if ns.is_positive() {
            let all = several.get_or_insert(Spare { ns: Duration::ZERO, ..self.charged });
            all.ns += std::mem::take(&mut self.charged.ns);
            all.packets[1] = packets[1];
        }
    }
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
        let mut others = 0_u8;
        for other in self.0.iter_mut().filter(|other| other.shares(bytes)) {
            other.others = other.others.saturating_add(1);
            others = others.saturating_add(1);
        }
        let Some(first) = split.charges().next() else { return };
        let timer = split.charges().find(|charge| charge.cause == Cause::Rto);
        if self.0.len() == COPIES_MAX {
            self.0.remove(0);
        }
        let (ns, packets) = timer.map_or((Duration::ZERO, [0; 3]), |timer| (timer.ns, timer.evidence));
        let charged = Spare { sender: first.sender, ns, packets };
        self.0.push(Copied { at: segment.at, bytes, charged, others, told: false, counts: false });
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

    /// What was charged for copies that count, where by now D-SACKs have named each copy of the same bytes: then the first one to arrive was for
    /// nothing as well, and before it the original had come. One D-SACK names one copy of the same bytes (RFC 2883, 4).
    pub(crate) fn told(&mut self, block: SackBlock) -> Option<Spare> {
        let mut named = [false; COPIES_MAX];
        for n in 0..self.0.len() {
            let [start, end] = self.0[n].bytes;
            let within = block.start.at_or_before(start) && end.at_or_before(block.end);
            let other = (0..n).any(|m| named[m] && self.0[m].shares([start, end]));
            named[n] = within && !other && !self.0[n].told;
            self.0[n].told |= named[n];
        }
        let mut of_all = None;
        for n in 0..self.0.len() {
            if self.0[n].counts && self.is_told(&self.0[n]) {
                self.0[n].move_to(&mut of_all);
            }
        }
        of_all
    }

    /// Whether D-SACKs have named it, and all that have some of its bytes.
    fn is_told(&self, copied: &Copied) -> bool {
        let (mut named, mut all) = (0, 0);
        for other in self.0.iter().filter(|other| other.shares(copied.bytes)) {
            named += u8::from(other.told);
            all += 1;
        }
        named == all && copied.others.saturating_add(1) == all
    }

    /// What was charged for copies that do not count yet, where `ack` lies within them, and whether that is all of these: none that ends there can
    /// have caused it, and of those that go on none had arrived.
    pub(crate) fn around(&mut self, ack: Seq, mss: u32) -> Option<(Spare, bool)> {
        if self.0.len() == COPIES_MAX || self.0.iter().any(|copied| copied.bytes[1] == ack) {
            return None; // one that is not remembered may have ended there
        }
        let mut of_all = None;
        let mut rest = false;
        for copied in self.0.iter_mut().filter(|copied| !copied.counts) {
            let [start, end] = copied.bytes;
            if start.before(ack) && ack.before(end) && (end - start) as u32 <= mss {
                copied.move_to(&mut of_all);
            } else {
                rest = true;
            }
        }
        of_all.map(|spare| (spare, !rest))
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
        let place = self.0.iter().position(|copied| copied.others == 0 && which(copied))?;
        Some(self.0.remove(place).charged)
    }
}
