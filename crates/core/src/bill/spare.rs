//! Which retransmissions seemed to repair something, in case they prove unnecessary?

use tcpwhy_wire::{Duration, Instant, SackBlock, Segment, Seq};

use crate::bill::charge::Charge;
use crate::bill::split::Split;
use crate::words::cause::{Cause, Side};
use crate::words::form::Form;

/// Retransmissions of one message that are remembered.
const COPIES_MAX: usize = 4;
/// The same for messages that are over.
const OVER_MAX: usize = 16;
/// A D-SACK for a delayed retransmission comes within this multiple of the time from the first
/// transmission to it.
const TOLD_TIMES: i64 = 4;
/// The least value of that time.
const TOLD_MIN: Duration = Duration::from_secs(1);
/// The greatest value; later it never comes. Source: none written down.
const TOLD_MAX: Duration = Duration::from_secs(10);

/// What was charged for a retransmission sent when a timer had expired.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spare {
    pub sender: Side,
    pub ns: Duration,
    /// The same for a tail loss probe, or for what duplicate acknowledgements had asked for.
    pub probe: Duration,
    pub packets: [u64; 3],
    /// Another retransmission of the same bytes is still charged, and may have been unnecessary
    /// too.
    pub beside: bool,
    /// What held the bytes instead is unknown.
    pub unsure: bool,
}

/// A retransmission of these bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Copied {
    at: Instant,
    packet: u64,
    /// When its bytes were first sent, as far as is known.
    since: Instant,
    /// Its time stamp.
    stamp: Option<u32>,
    bytes: [Seq; 2],
    charged: Spare,
    /// How many other retransmissions share bytes with it: only D-SACKs for all of them tell which
    /// had arrived.
    others: u8,
    /// Its receiver had its bytes before it arrived.
    told: bool,
    /// It counts as needed so far.
    counts: bool,
    /// An acknowledgement ended within it, where only the first transmission ended: that was late, and not lost.
    entered: bool,
}

impl Spare {
    /// A zero charge with this one's sender and packets.
    const fn of_none(self) -> Self {
        Self { ns: Duration::ZERO, probe: Duration::ZERO, ..self }
    }

    fn is_positive(self) -> bool {
        self.ns.is_positive() || self.probe.is_positive()
    }
}

impl Copied {
    /// Until when its receiver may report that it had the bytes before: packets on the path took
    /// this long.
    fn until(&self) -> Instant {
        self.at + (self.at - self.since).times(TOLD_TIMES).max(TOLD_MIN).min(TOLD_MAX)
    }

    fn shares(&self, [start, end]: [Seq; 2]) -> bool {
        self.bytes[0].before(end) && start.before(self.bytes[1])
    }

    /// Moves its charge to the common one of several.
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

/// A retransmission that came with its first transmission, and may be the capture's own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct CameTwice {
    pub at: Instant,
    pub bytes: [Seq; 2],
    /// How long the first transmission had stood if it is none.
    pub stood: Duration,
    pub packets: [u64; 2],
}

/// The last retransmissions of a message, and one that came with its original, if a D-SACK should name it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Copies(Vec<Copied>, Option<CameTwice>);

impl Copies {
    pub(crate) fn clear(&mut self) {
        self.0.clear();
        self.1 = None;
    }

    pub(crate) fn note_twice(&mut self, twice: CameTwice) {
        self.1 = Some(twice);
    }

    /// Takes what came twice `since` then, if this D-SACK says that its receiver has both.
    pub(crate) fn take_twice(&mut self, block: SackBlock, since: Instant) -> Option<CameTwice> {
        self.1.take_if(|twice| twice.bytes == [block.start, block.end] && twice.at >= since)
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn heap(&self) -> usize {
        self.0.capacity() * size_of::<Copied>()
    }

    /// `segment` is retransmitted after `split`.
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
        let (sender, ns, probe) = (first.sender, ns(timer), ns(probe));
        let charged = Spare { sender, ns, probe, packets, beside: false, unsure: false };
        let (at, packet) = (segment.at, segment.packet);
        let took: Duration = split.charges().map(|charge| charge.ns).sum();
        let since = first_at.unwrap_or(at).min(at - took);
        let stamp = stamp_of(segment);
        let [told, counts, entered] = [false; 3];
        self.0.push(Copied { at, packet, since, stamp, bytes, charged, others, told, counts, entered });
    }

    /// Notes one more retransmission of these bytes. Returns how many there were before, and when
    /// the bytes were first sent.
    fn count_others(&mut self, bytes: [Seq; 2]) -> (u8, Option<Instant>) {
        let (mut others, mut first_at) = (0_u8, None);
        for other in self.0.iter_mut().filter(|other| other.shares(bytes)) {
            other.others = other.others.saturating_add(1);
            others = others.saturating_add(1);
            first_at = Some(other.since.min(first_at.unwrap_or(other.since)));
        }
        (others, first_at)
    }

    /// Whether the receiver may still report as unnecessary one of them that was charged.
    pub(crate) fn are_undecided(&self, now: Instant) -> bool {
        self.0.iter().any(|copied| self.is_undecided(copied, now))
    }

    /// Whether the receiver may still report it as unnecessary, and it was charged: the path may
    /// hold it as long as another retransmission of its bytes.
    fn is_undecided(&self, copied: &Copied, now: Instant) -> bool {
        let until = self.0.iter().filter(|other| other.shares(copied.bytes)).map(Copied::until).max();
        copied.counts && copied.charged.is_positive() && until.is_some_and(|until| now <= until)
    }

    /// Takes those of a message that is over. One that also carries bytes of an earlier message is
    /// known already.
    pub(crate) fn append(&mut self, over: &Self) {
        for &copied in &over.0 {
            match self.0.iter_mut().find(|known| known.packet == copied.packet) {
                Some(known) => *known = Copied { others: known.others, told: known.told, ..copied },
                None => self.0.push(copied),
            }
        }
        self.0.drain(..self.0.len().saturating_sub(OVER_MAX));
    }

    /// `segment` is retransmitted although its message is over: only D-SACKs for all copies tell
    /// which had arrived.
    pub(crate) fn note_after(&mut self, segment: &Segment) {
        let (at, packet, bytes) =
            (segment.at, segment.packet, [segment.seq, segment.seq + segment.payload_len]);
        let (others, Some(since)) = self.count_others(bytes) else { return };
        let Some(of) = self.0.iter().find(|other| other.shares(bytes)) else { return };
        let (charged, stamp) = (of.charged.of_none(), stamp_of(segment));
        let [told, counts, entered] = [false; 3];
        self.0.push(Copied { at, packet, since, stamp, bytes, charged, others, told, counts, entered });
        self.0.drain(..self.0.len().saturating_sub(OVER_MAX));
    }

    /// Whether a message with these packets may still turn out to have been repaired unnecessarily.
    pub(crate) fn may_tell_of(&self, [first, last]: [u64; 2], now: Instant) -> bool {
        let of = |copied: &Copied| (first..=last).contains(&copied.packet);
        self.0.iter().any(|copied| of(copied) && self.is_undecided(copied, now) && !self.is_told(copied))
    }

    /// The charges for unnecessary retransmissions in a message with these packets.
    pub(crate) fn take_told_of(&mut self, [first, last]: [u64; 2]) -> Option<Spare> {
        self.take_told(|copied| (first..=last).contains(&copied.packet))
    }

    /// The same of all that are `wanted`. Without time stamps, what seemed to answer the first transmission may be
    /// the copy of a lost answer.
    fn take_told(&mut self, wanted: impl Fn(&Copied) -> bool) -> Option<Spare> {
        let mut of_all: Option<Spare> = None;
        let mut unsure = false;
        for n in 0..self.0.len() {
            if wanted(&self.0[n]) && self.0[n].counts && self.is_told(&self.0[n]) {
                unsure |= self.0[n].stamp.is_none();
                self.0[n].move_to(&mut of_all);
            }
        }
        of_all.map(|spare| Spare { unsure: spare.unsure || unsure, ..spare })
    }

    /// Forgets them once nothing more can be learned, unless their message has yet to take the
    /// charges.
    pub(crate) fn forget_decided(&mut self, now: Instant) {
        let told = |copied: &Copied| copied.counts && copied.charged.is_positive() && self.is_told(copied);
        if self.0.iter().all(|copied| now > copied.until() && !told(copied)) {
            self.0.clear();
        }
    }

    /// The last ones count; the timer before them took `timer` more.
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

    /// The charges for retransmissions that count but that D-SACKs, including this one about what
    /// had left `by` then, show to be unnecessary.
    pub(crate) fn told(&mut self, block: SackBlock, by: Instant) -> Option<Spare> {
        self.name(block, by);
        self.take_told(|_| true).map(|spare| Spare { beside: self.are_in_doubt(), ..spare })
    }

    /// Whether a charged retransmission shares bytes with a later one that a D-SACK has named: the
    /// path delayed the later one by more than a timer, and perhaps the earlier one as well.
    fn are_in_doubt(&self) -> bool {
        let charged =
            |copied: &&Copied| copied.counts && copied.charged.is_positive() && !self.is_told(copied);
        let named = |copied: &Copied| {
            self.0.iter().any(|other| other.told && other.at > copied.at && other.shares(copied.bytes))
        };
        self.0.iter().filter(charged).any(named)
    }

    /// Assigns a D-SACK to one retransmission of each of its bytes, of those that had left `by`
    /// then. A D-SACK reports one duplicate (RFC 2883, 4), and each retransmission follows the
    /// earlier transmissions, so at least as many of the last ones as there are D-SACKs were
    /// unnecessary.
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

    /// The bytes of all of them, if these are the same and an answer to the last one may still come.
    pub(crate) fn only_bytes(&self, now: Instant) -> Option<SackBlock> {
        let last = self.0.last().filter(|last| now <= last.until())?;
        let same = self.0.iter().all(|copied| copied.bytes == last.bytes);
        let [start, end] = last.bytes;
        same.then_some(SackBlock { start, end })
    }

    /// When the last one left, of those that had left by `at`.
    pub(crate) fn last_left_by(&self, at: Instant) -> Option<Instant> {
        self.0.iter().map(|copied| copied.at).filter(|left| *left <= at).max()
    }

    /// Whether this packet is one of them.
    pub(crate) fn have(&self, packet: u64) -> bool {
        self.0.iter().any(|copied| copied.packet == packet)
    }

    /// Whether a D-SACK covers only a part of retransmissions that do not count yet, each of one
    /// segment: a receiver reports exactly what it had before (RFC 2883, 4).
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

    /// Whether a D-SACK has named it, or an earlier one with all of its bytes: these had arrived by
    /// then.
    fn is_told(&self, copied: &Copied) -> bool {
        let [start, end] = copied.bytes;
        let has_all = |other: &Copied| other.bytes[0].at_or_before(start) && end.at_or_before(other.bytes[1]);
        self.0.iter().any(|other| other.told && other.at <= copied.at && has_all(other))
    }

    /// The charges for retransmissions that do not count yet and span `ack`, and whether those are
    /// all. None that ends at `ack` can have caused it, and none that continues beyond had arrived.
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

    /// Notes the only one if `ack` ends within it, as it is a single packet.
    pub(crate) fn enter(&mut self, ack: Seq, mss: u32) {
        if let [copied] = &mut self.0[..] {
            let [start, end] = copied.bytes;
            copied.entered |= start.before(ack) && ack.before(end) && (end - start) as u32 <= mss;
        }
    }

    /// Whether an acknowledgement has ended within the only one.
    pub(crate) fn are_entered(&self) -> bool {
        matches!(&self.0[..], [copied] if copied.entered)
    }

    /// Where the first one begins that does not count yet, and how long after its first transmission it left.
    pub(crate) fn first_pending(&self) -> Option<(Seq, Duration)> {
        let first = self.0.iter().find(|copied| !copied.counts)?;
        Some((first.bytes[0], first.at - first.since))
    }

    /// When the last one left that does not count yet, of those that had left by `at`.
    pub(crate) fn left_by(&self, at: Instant) -> Option<Instant> {
        let left = self.0.iter().filter(|copied| !copied.counts && copied.at <= at);
        left.map(|copied| copied.at).max()
    }

    /// The charge for the only one that does not count yet, if it left after `since` and `ack` is
    /// beyond it.
    pub(crate) fn last(&mut self, since: Instant, ack: Seq) -> Option<Spare> {
        let alone = self.0.iter().filter(|copied| !copied.counts).count() == 1;
        let late = |copied: &Copied| copied.at > since && copied.bytes[1].at_or_before(ack);
        alone.then(|| self.take(|copied| !copied.counts && late(copied)))?
    }

    /// The charges for those that `ack`, whose `newly` acknowledged bytes begin with theirs, cannot answer: its echo
    /// is older, or, without time stamps, they left after `since` for duplicate acknowledgements; or it ends `beyond` the
    /// only one, with the first transmission.
    pub(crate) fn unanswered(
        &mut self,
        ack: &Segment,
        newly: u32,
        since: Option<Instant>,
        beyond: bool,
    ) -> Option<Spare> {
        let echoed = ack.options.timestamps.map(|stamps| stamps.ecr);
        let older = |stamp: u32| echoed.is_some_and(|echoed| (echoed.wrapping_sub(stamp) as i32) < 0);
        let mut of_all = None;
        for copied in &mut self.0 {
            let [start, end] = copied.bytes.map(|seq| i64::from(ack.ack - seq));
            let first = start >= i64::from(newly) && end < i64::from(newly) && end >= 0;
            // Of several on a timer, D-SACKs tell how many had arrived.
            let (only, timed) = (copied.others == 0, copied.charged.ns.is_positive());
            let soon = || only && !timed && since.is_some_and(|since| copied.at > since);
            let echoed = || (only || !timed) && copied.stamp.is_some_and(older);
            let within = end > 0 && beyond;
            if first && (within || echoed() || soon()) {
                copied.move_to(&mut of_all);
            }
        }
        of_all
    }

    /// The charges for those that do not count yet and lie beyond `ack`, which acknowledges none of their bytes.
    pub(crate) fn beyond(&mut self, ack: Seq) -> Option<Spare> {
        let mut of_all = None;
        for copied in self.0.iter_mut().filter(|copied| !copied.counts && copied.bytes[0].at_or_after(ack)) {
            copied.move_to(&mut of_all);
        }
        of_all.map(|spare: Spare| Spare { unsure: true, ..spare })
    }

    /// The charge for the only one of all, if it counts.
    pub(crate) fn only(&mut self) -> Option<Spare> {
        (self.0.len() == 1).then(|| self.take(|copied| copied.counts))?
    }

    fn take(&mut self, which: impl Fn(&Copied) -> bool) -> Option<Spare> {
        let place = self.0.iter().position(|copied| copied.others == 0 && which(copied))?;
        Some(self.0.remove(place).charged)
    }
}

/// Whether this is the wait for a tail loss probe, which may find a loss or not (RFC 8985, 7.4.2), or for what
/// duplicate acknowledgements asked for, which may have been reordered (RFC 8985, 4).
fn is_probe(charge: &Charge) -> bool {
    let early = |form| matches!(form, Form::TailProbe | Form::Fast);
    charge.cause == Cause::Loss && charge.detail.as_ref().is_some_and(|detail| detail.form.is_some_and(early))
}

fn stamp_of(segment: &Segment) -> Option<u32> {
    segment.options.timestamps.map(|stamps| stamps.val)
}
