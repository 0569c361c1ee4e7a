//! What is known of unnecessary retransmissions?

use tcpwhy_wire::{Duration, Instant, SackBlock, Segment, Seq};

use super::Path;
use crate::bill::pause::Pause;
use crate::bill::revise::Revision;
use crate::bill::spare::{CameTwice, Copies, Spare};
use crate::bill::split::OWN_PACE_MIN;
use crate::bill::split::Split;
use crate::words::cause::{Cause, Side};
use crate::words::limits::HELD_BACK_MAX;
use crate::words::report::Confidence;

impl Path {
    /// What came twice and may be the capture's own copy.
    pub(crate) fn note_twice(&mut self, twice: CameTwice) {
        self.aside.get_or_insert_default().copies.note_twice(twice);
    }

    /// Takes what came twice `since` then, if this D-SACK says that its receiver has both.
    pub(crate) fn take_twice(&mut self, block: SackBlock, since: Instant) -> Option<CameTwice> {
        self.aside.as_mut()?.copies.take_twice(block, since)
    }

    /// Its retransmissions.
    pub(crate) fn copies(&self) -> Option<&Copies> {
        self.aside.as_ref().map(|aside| &aside.copies)
    }

    /// Whether a D-SACK covers only a part of retransmissions that do not count yet: the rest of
    /// their bytes was missing.
    pub(crate) fn is_told_in_part(&self, block: SackBlock, mss: u32) -> bool {
        self.aside.as_ref().is_some_and(|aside| aside.copies.are_told_in_part(block, mss))
    }

    /// The receiver reports, of what had left `by` then, that it had these bytes before (a D-SACK).
    /// Returns the charges for retransmissions thereby shown to be unnecessary.
    pub(crate) fn told_spare(&mut self, block: SackBlock, by: Instant) -> Option<Spare> {
        self.aside.as_mut()?.copies.told(block, by)
    }

    /// The only bytes that were retransmitted, if their receiver may still say that it had them.
    pub(crate) fn only_copied(&self, now: Instant) -> Option<SackBlock> {
        self.copies()?.only_bytes(now)
    }

    /// When the last retransmission left, of those that had left by `at`.
    pub(crate) fn last_copy_by(&self, at: Instant) -> Option<Instant> {
        self.aside.as_ref()?.copies.last_left_by(at)
    }

    /// A retransmission of it was delayed on the path until `now`, and it has no answer yet: the
    /// original may have been delayed as long.
    pub(crate) fn stood_beside_copy(&mut self, now: Instant) {
        if let Some(aside) = self.aside.as_mut() {
            let likely = aside.acked_late.filter(|(_, sure)| *sure > Confidence::Possible);
            aside.acked_late = likely.or(Some((now, Confidence::Possible)));
        }
    }

    /// Whether this packet was a retransmission.
    pub(crate) fn is_copy(&self, packet: u64) -> bool {
        self.aside.as_ref().is_some_and(|aside| aside.copies.have(packet))
    }

    /// The charge for the only retransmission that does not count yet, if it left after `since` and
    /// `ack` is beyond it: nothing waited for its timer.
    pub(crate) fn last_spare(&mut self, since: Instant, ack: Seq) -> Option<Spare> {
        let aside = self.aside.as_mut()?;
        let spare = aside.copies.last(since, ack)?;
        aside.timer = None;
        Some(spare)
    }

    /// The charges for retransmissions that do not count yet and continue beyond `ack`, which was
    /// late: the first transmissions had arrived, and none of these. The path took all the time
    /// until then.
    pub(crate) fn spare_around(&mut self, ack: &Segment, mss: u32) -> Option<Spare> {
        let aside = self.aside.as_mut()?;
        let (spare, is_all) = aside.copies.around(ack.ack, mss)?;
        if is_all {
            aside.timer = None;
        }
        aside.acked_late = Some((ack.at, Confidence::Likely));
        Some(spare)
    }

    /// [`Copies::enter`].
    pub(crate) fn enter_copies(&mut self, ack: Seq, mss: u32) {
        if let Some(aside) = &mut self.aside {
            aside.copies.enter(ack, mss);
        }
    }

    /// Whether the first transmission of what was retransmitted, in a single packet, was late, as an acknowledgement ended where only that does.
    pub(crate) fn came_late(&self) -> bool {
        self.aside.as_ref().is_some_and(|aside| aside.copies.are_entered())
    }

    /// `ack` covers the retransmissions, and `newly` bytes for the first time. Where these begin before the first
    /// retransmission's, their receiver held back the acknowledgement of earlier ones and echoes their stamp (RFC 7323,
    /// 4.3; tcp_replace_ts_recent, Linux): the echo tells nothing of a retransmission, unless that left when nobody holds
    /// an acknowledgement back any more.
    pub(crate) fn hear_of_earlier(&mut self, ack: Seq, newly: u32) {
        let Some(aside) = &mut self.aside else { return };
        let held = |after: Duration| after <= HELD_BACK_MAX;
        let first = aside.copies.first_pending();
        if first.is_some_and(|(first, after)| i64::from(ack - first) < i64::from(newly) && held(after)) {
            aside.pending_stamp = None;
        }
    }

    /// The charges for retransmissions that `ack` cannot answer, as in [`Copies::unanswered`].
    pub(crate) fn unanswered_spare(
        &mut self,
        ack: &Segment,
        newly: u32,
        since: Option<Instant>,
        beyond: bool,
    ) -> Option<Spare> {
        self.aside.as_mut()?.copies.unanswered(ack, newly, since, beyond)
    }

    /// An answer that acknowledges up to `ack` begins: it has not waited for retransmissions of bytes beyond, nor for
    /// the last one if that is `spurious`.
    pub(crate) fn answer_begins(&mut self, ack: Seq, spurious: bool) {
        if spurious {
            self.discard();
        }
        if let Some(spare) = self.aside.as_mut().and_then(|aside| aside.copies.beyond(ack)) {
            self.revise(Revision::CopySpare(spare));
        }
    }

    /// Until when the path held the first transmission, or its acknowledgement, whatever was
    /// retransmitted.
    pub(crate) fn on_its_way_until(&self) -> Option<(Instant, Confidence)> {
        self.aside.as_ref()?.acked_late.filter(|(at, _)| *at > Instant::MIN)
    }

    /// Its last segment passes a second point of the capture, at `now`.
    pub(crate) fn pass_again(&mut self, now: Instant) {
        self.aside.get_or_insert_default().passed_again = Some(now);
    }

    /// When the segment that left at `since` passed a second point of the capture, if it did.
    pub(crate) fn passed_again(&self, since: Instant) -> Option<Instant> {
        self.aside.as_ref()?.passed_again.filter(|&at| at > since)
    }

    /// Its first segment, of a reply, seems this late; later packets of its sender may confirm it.
    pub(crate) fn seem_late(&mut self, late: Duration) {
        self.aside.get_or_insert_default().seemed_late = Some(late);
    }

    /// Takes how late its first segment seemed.
    pub(crate) fn take_seemed_late(&mut self) -> Option<Duration> {
        self.aside.as_mut()?.seemed_late.take()
    }

    /// The application may have paused behind what the path held up: what is shorter than that pause may have delayed nothing.
    #[inline]
    pub(super) fn weigh_late(&mut self, split: &Split, sender: Side) {
        if split.has(Cause::Queueing.bit())
            || self.aside.as_ref().is_some_and(|aside| aside.late.is_positive())
        {
            self.weigh_pause(split, sender);
        }
    }

    #[cold]
    #[inline(never)]
    fn weigh_pause(&mut self, split: &Split, sender: Side) {
        let of =
            |cause| split.charges().filter(move |charge| charge.cause == cause).map(|charge| charge.ns).sum();
        let (late, pause): (Duration, Duration) = (of(Cause::Queueing), of(Cause::SenderThink));
        let aside = self.aside.get_or_insert_default();
        if !split.has_only(Cause::SenderThink.bit()) {
            aside.late += late;
        } else if pause >= OWN_PACE_MIN {
            let ns = std::mem::take(&mut aside.late);
            if ns < pause {
                self.revise(Revision::PausedBehind { sender, ns });
            }
        }
    }

    /// Takes its last silence, if it is such a one.
    pub(crate) fn take_pause(&mut self, which: impl FnOnce(&mut Pause) -> bool) -> Option<Pause> {
        self.aside.as_mut()?.pause.take_if(which)
    }

    /// What was charged for the only copy, which counts: the answer had left before it arrived.
    pub(crate) fn only_spare(&mut self) -> Option<Spare> {
        self.aside.as_mut()?.copies.only()
    }

    /// What was retransmitted had arrived, and its acknowledgement is late. If it is known to have
    /// been delayed `until` then, the path held the rest as well.
    pub(crate) fn discard_late(&mut self, until: Option<Instant>) {
        if let Some(aside) = self.aside.as_mut().filter(|aside| aside.pending_last.is_some()) {
            // Otherwise it is unknown which transmission was answered.
            aside.acked_late = Some((until.unwrap_or(Instant::MIN), Confidence::Possible));
        }
        self.discard();
    }

    /// When the last retransmission left that does not count yet, of those that had left by `at`.
    pub(crate) fn copied_by(&self, at: Instant) -> Option<Instant> {
        self.aside.as_ref()?.copies.left_by(at)
    }

    /// Whether the path held data of this direction, or its acknowledgement.
    pub(crate) fn was_acked_late(&self) -> bool {
        self.aside.as_ref().is_some_and(|aside| aside.acked_late.is_some())
    }
}
