//! Which copies seemed to repair something, should it show that they were for nothing?

use tcpwhy_wire::{Duration, Instant, SackBlock, Segment, Seq};

use crate::bill::charge::Charge;
use crate::bill::split::Split;
use crate::words::cause::{Cause, Side};
use crate::words::form::Form;

/// Copies of one message that are remembered.
const COPIES_MAX: usize = 4;
/// ... and of those that are over.
const OVER_MAX: usize = 16;
/// A copy that the path holds is told within so many times what had passed before it left, ...
const TOLD_TIMES: i64 = 4;
/// ... within this at least ...
const TOLD_MIN: Duration = Duration::from_secs(1);
/// ... and at most, or never. Source: none written down.
const TOLD_MAX: Duration = Duration::from_secs(10);

/// What was charged for a copy that left when a timer had run out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spare {
    pub sender: Side,
    pub ns: Duration,
    /// The same for a tail loss probe.
    pub probe: Duration,
    pub packets: [u64; 3],
}

/// A copy of these bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Copied {
    at: Instant,
    packet: u64,
    /// When its bytes had left first, as far as is known.
    since: Instant,
    bytes: [Seq; 2],
    charged: Spare,
    /// So many other copies have some of them too, or had: which of these had arrived only all of them tell.
    others: u8,
    /// Its receiver had its bytes before it arrived.
    told: bool,
    /// It counts by now.
    counts: bool,
}

impl Spare {
    /// Nothing yet, of this copy's sender and packets.
    const fn of_none(self) -> Self {
        Self { ns: Duration::ZERO, probe: Duration::ZERO, ..self }
    }

    fn is_positive(self) -> bool {
        self.ns.is_positive() || self.probe.is_positive()
    }
}

impl Copied {
    /// Until when its receiver may say that it had its bytes before: what was on the path with it was on its way for so long.
    fn until(&self) -> Instant {
        self.at + (self.at - self.since).times(TOLD_TIMES).max(TOLD_MIN).min(TOLD_MAX)
    }

    fn shares(&self, [start, end]: [Seq; 2]) -> bool {
        self.bytes[0].before(end) && start.before(self.bytes[1])
    }

    /// Moves what it was charged to what several were.
    fn move_to(&mut self, several: &mut Option<Spare>) {
        if self.charged.is_positive() {
            let Spare { ns, probe, packets, .. } = self.charged;
            let all = several.get_or_insert(self.charged.of_none());
            (all.ns, all.probe) = (all.ns + ns, all.probe + probe);
            all.packets[1] = packets[1];
            self.charged = self.charged.of_none();
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
        let (others, first_at) = self.count_others(bytes);
        let Some(first) = split.charges().next() else { return };
        let took = |which: &dyn Fn(&Charge) -> bool| split.charges().find(|charge| which(charge));
        let timer = took(&|charge| charge.cause == Cause::Rto);
        let probe = took(&is_probe);
        if self.0.len() == COPIES_MAX {
            self.0.remove(0);
        }
        let ns = |charge: Option<&Charge>| charge.map_or(Duration::ZERO, |charge| charge.ns);
        let packets = timer.or(probe).map_or([0; 3], |charge| charge.evidence);
        let charged = Spare { sender: first.sender, ns: ns(timer), probe: ns(probe), packets };
        let (at, packet) = (segment.at, segment.packet);
        let took: Duration = split.charges().map(|charge| charge.ns).sum();
        let since = first_at.unwrap_or(at).min(at - took);
        self.0.push(Copied { at, packet, since, bytes, charged, others, told: false, counts: false });
    }

    /// One more copy of these bytes went out. Returns how many there were, and when these bytes had left first.
    fn count_others(&mut self, bytes: [Seq; 2]) -> (u8, Option<Instant>) {
        let (mut others, mut first_at) = (0_u8, None);
        for other in self.0.iter_mut().filter(|other| other.shares(bytes)) {
            other.others = other.others.saturating_add(1);
            others = others.saturating_add(1);
            first_at = Some(other.since.min(first_at.unwrap_or(other.since)));
        }
        (others, first_at)
    }

    /// Whether one of them was charged what its receiver may still say was for nothing.
    pub(crate) fn are_undecided(&self, now: Instant) -> bool {
        self.0.iter().any(|copied| self.is_undecided(copied, now))
    }

    /// Whether it was charged what its receiver may still say was for nothing: the path may hold it as long as another copy of its bytes.
    fn is_undecided(&self, copied: &Copied, now: Instant) -> bool {
        let until = self.0.iter().filter(|other| other.shares(copied.bytes)).map(Copied::until).max();
        copied.counts && copied.charged.is_positive() && until.is_some_and(|until| now <= until)
    }

    /// Takes those of a message that is over. One that has bytes of a message before it as well is known.
    pub(crate) fn append(&mut self, over: &Self) {
        for &copied in &over.0 {
            match self.0.iter_mut().find(|known| known.packet == copied.packet) {
                Some(known) => *known = Copied { others: known.others, told: known.told, ..copied },
                None => self.0.push(copied),
            }
        }
        self.0.drain(..self.0.len().saturating_sub(OVER_MAX));
    }

    /// `segment` goes out again though its message is over: which of its copies had arrived only all of them tell.
    pub(crate) fn note_after(&mut self, segment: &Segment) {
        let (at, packet, bytes) =
            (segment.at, segment.packet, [segment.seq, segment.seq + segment.payload_len]);
        let (others, Some(since)) = self.count_others(bytes) else { return };
        let Some(of) = self.0.iter().find(|other| other.shares(bytes)) else { return };
        let charged = of.charged.of_none();
        self.0.push(Copied { at, packet, since, bytes, charged, others, told: false, counts: false });
        self.0.drain(..self.0.len().saturating_sub(OVER_MAX));
    }

    /// Whether a message of these packets may still turn out to have been repaired for nothing.
    pub(crate) fn may_tell_of(&self, [first, last]: [u64; 2], now: Instant) -> bool {
        let of = |copied: &Copied| (first..=last).contains(&copied.packet);
        self.0.iter().any(|copied| of(copied) && self.is_undecided(copied, now) && !self.is_told(copied))
    }

    /// What was charged for copies in a message of these packets that were for nothing.
    pub(crate) fn take_told_of(&mut self, [first, last]: [u64; 2]) -> Option<Spare> {
        let mut of_all = None;
        for n in 0..self.0.len() {
            if (first..=last).contains(&self.0[n].packet) && self.0[n].counts && self.is_told(&self.0[n]) {
                self.0[n].move_to(&mut of_all);
            }
        }
        of_all
    }

    /// Forgets those of which nothing more is to be learnt, unless their message is to take it yet.
    pub(crate) fn forget_decided(&mut self, now: Instant) {
        let told = |copied: &Copied| copied.counts && copied.charged.is_positive() && self.is_told(copied);
        if self.0.iter().all(|copied| now > copied.until() && !told(copied)) {
            self.0.clear();
        }
    }

    /// The last ones count, and the timer before them took so much more.
    pub(crate) fn count(&mut self, timer: Duration) {
        let mut waited = timer;
        for copied in self.0.iter_mut().filter(|copied| !copied.counts) {
            copied.counts = true;
            if timer.is_positive() {
                copied.charged.probe = Duration::ZERO; // the timer ran meanwhile, and took that
            }
            copied.charged.ns += std::mem::take(&mut waited);
        }
    }

    /// The last ones do not count.
    pub(crate) fn forget(&mut self) {
        self.0.retain(|copied| copied.counts);
    }

    /// What was charged for copies that count and that D-SACKs by now show to have been for nothing, this one being heard of what had left `by`
    /// then.
    pub(crate) fn told(&mut self, block: SackBlock, by: Instant) -> Option<Spare> {
        self.name(block, by);
        let mut of_all = None;
        for n in 0..self.0.len() {
            if self.0[n].counts && self.is_told(&self.0[n]) {
                self.0[n].move_to(&mut of_all);
            }
        }
        of_all
    }

    /// A D-SACK names a copy of each of its bytes, of those that had left `by` then: one D-SACK names one copy of the same bytes (RFC 2883, 4), and as
    /// each is behind what had left before it, as many as there are D-SACKs of the last ones at least were for nothing.
    pub(crate) fn name(&mut self, block: SackBlock, by: Instant) {
        let mut named = [false; OVER_MAX];
        for n in (0..self.0.len()).rev() {
            let [start, end] = self.0[n].bytes;
            let within = block.start.at_or_before(start) && end.at_or_before(block.end);
            let other = (n + 1..self.0.len()).any(|m| named[m] && self.0[m].shares([start, end]));
            named[n] = within && !other && !self.0[n].told && self.0[n].at <= by;
            self.0[n].told |= named[n];
        }
    }

    /// When the last one left of those that had left by `at`.
    pub(crate) fn last_left_by(&self, at: Instant) -> Option<Instant> {
        self.0.iter().map(|copied| copied.at).filter(|left| *left <= at).max()
    }

    /// Whether this packet is one of them.
    pub(crate) fn have(&self, packet: u64) -> bool {
        self.0.iter().any(|copied| copied.packet == packet)
    }

    /// Whether a D-SACK names a part alone of copies that do not count yet, each of one segment, of which a receiver reports what it had, and no more
    /// than that (RFC 2883, 4).
    pub(crate) fn are_told_in_part(&self, block: SackBlock, mss: u32) -> bool {
        let named = |copied: &&Copied| !copied.counts && copied.shares([block.start, block.end]);
        let in_part = |copied: &Copied| {
            let [start, end] = copied.bytes;
            let whole = block.start.at_or_before(start) && end.at_or_before(block.end);
            !whole && (end - start) as u32 <= mss
        };
        let mut named = self.0.iter().filter(named).peekable();
        named.peek().is_some() && named.all(in_part)
    }

    /// Whether a D-SACK has named it, or one before it that had all of its bytes: these were there by then.
    fn is_told(&self, copied: &Copied) -> bool {
        let [start, end] = copied.bytes;
        let has_all = |other: &Copied| other.bytes[0].at_or_before(start) && end.at_or_before(other.bytes[1]);
        self.0.iter().any(|other| other.told && other.at <= copied.at && has_all(other))
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

    /// When the last one left that does not count yet and had left by `at`.
    pub(crate) fn left_by(&self, at: Instant) -> Option<Instant> {
        let left = self.0.iter().filter(|copied| !copied.counts && copied.at <= at);
        left.map(|copied| copied.at).max()
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

/// Whether it is what a tail loss probe waited for: that finds a loss or none (RFC 8985, 7.4.2).
fn is_probe(charge: &Charge) -> bool {
    charge.cause == Cause::Loss
        && charge.detail.as_ref().is_some_and(|detail| detail.form == Some(Form::TailProbe))
}
