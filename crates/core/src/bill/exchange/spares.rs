//! What is known of copies that were for nothing?

use tcpwhy_wire::{Instant, SackBlock, Segment, Seq};

use super::Path;
use crate::bill::pause::Pause;
use crate::bill::spare::{Copies, Spare};
use crate::words::report::Confidence;

impl Path {
    /// What it has sent again.
    pub(crate) fn copies(&self) -> Option<&Copies> {
        self.aside.as_ref().map(|aside| &aside.copies)
    }

    /// Whether a D-SACK names a part alone of copies that do not count yet: the rest of what they brought was missing.
    pub(crate) fn is_told_in_part(&self, block: SackBlock, mss: u32) -> bool {
        self.aside.as_ref().is_some_and(|aside| aside.copies.are_told_in_part(block, mss))
    }

    /// The receiver says, of what had left `by` then, that it had these bytes before (a D-SACK): what was charged for copies that this shows to
    /// have been for nothing.
    pub(crate) fn told_spare(&mut self, block: SackBlock, by: Instant) -> Option<Spare> {
        self.aside.as_mut()?.copies.told(block, by)
    }

    /// When the last copy left that had left by `at`.
    pub(crate) fn last_copy_by(&self, at: Instant) -> Option<Instant> {
        self.aside.as_ref()?.copies.last_left_by(at)
    }

    /// A copy of it stood on the path until `now`, and it has no answer yet: it may have stood as long.
    pub(crate) fn stood_beside_copy(&mut self, now: Instant) {
        if let Some(aside) = self.aside.as_mut() {
            let likely = aside.acked_late.filter(|(_, sure)| *sure > Confidence::Possible);
            aside.acked_late = likely.or(Some((now, Confidence::Possible)));
        }
    }

    /// Whether this packet sent again what had left before.
    pub(crate) fn is_copy(&self, packet: u64) -> bool {
        self.aside.as_ref().is_some_and(|aside| aside.copies.have(packet))
    }

    /// What was charged for the only copy that does not count yet, if it left behind `since` and `ack` is beyond it: nothing waited for
    /// its timer.
    pub(crate) fn last_spare(&mut self, since: Instant, ack: Seq) -> Option<Spare> {
        let aside = self.aside.as_mut()?;
        let spare = aside.copies.last(since, ack)?;
        aside.timer = None;
        Some(spare)
    }

    /// What was charged for copies that do not count yet and go on beyond `ack`, which was late: the first ones had arrived, and none of these. All
    /// until then the path took.
    pub(crate) fn spare_around(&mut self, ack: &Segment, mss: u32) -> Option<Spare> {
        let aside = self.aside.as_mut()?;
        let (spare, is_all) = aside.copies.around(ack.ack, mss)?;
        if is_all {
            aside.timer = None;
        }
        aside.acked_late = Some((ack.at, Confidence::Likely));
        Some(spare)
    }

    /// Until when the path held what it has sent first, or what acknowledged that, whatever was sent again.
    pub(crate) fn on_its_way_until(&self) -> Option<(Instant, Confidence)> {
        self.aside.as_ref()?.acked_late.filter(|(at, _)| *at > Instant::MIN)
    }

    /// What it has sent last passes again on its way to the peer.
    pub(crate) fn pass_again(&mut self, now: Instant) {
        self.aside.get_or_insert_default().passed_again = Some(now);
    }

    /// When what left at `since` was still on its way, as the capture saw it pass again.
    pub(crate) fn passed_again(&self, since: Instant) -> Option<Instant> {
        self.aside.as_ref()?.passed_again.filter(|&at| at > since)
    }

    /// Its last silence, if it was one of these: once.
    pub(crate) fn take_pause(&mut self, which: impl FnOnce(&mut Pause) -> bool) -> Option<Pause> {
        self.aside.as_mut()?.pause.take_if(which)
    }

    /// What was charged for the only copy, which counts: the answer had left before it arrived.
    pub(crate) fn only_spare(&mut self) -> Option<Spare> {
        self.aside.as_mut()?.copies.only()
    }

    /// What it had sent again had arrived, and is acknowledged late. Where that is `until` then known to have stood, the path held the rest as well.
    pub(crate) fn discard_late(&mut self, until: Option<Instant>) {
        if let Some(aside) = self.aside.as_mut().filter(|aside| aside.pending_last.is_some()) {
            // Who answered is not known otherwise.
            aside.acked_late = Some((until.unwrap_or(Instant::MIN), Confidence::Possible));
        }
        self.discard();
    }

    /// When the last copy left that does not count yet and had left by `at`.
    pub(crate) fn copied_by(&self, at: Instant) -> Option<Instant> {
        self.aside.as_ref()?.copies.left_by(at)
    }

    /// Whether the path held what it has sent, or what acknowledged that.
    pub(crate) fn was_acked_late(&self) -> bool {
        self.aside.as_ref().is_some_and(|aside| aside.acked_late.is_some())
    }
}
