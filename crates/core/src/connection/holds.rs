//! Is what Nagle seems to hold the rest of what its sender had written, or a message of its own, an answer to what was heard meanwhile, or not written yet?

use tcpwhy_wire::{Duration, Segment};

use super::Connection;
use super::talk::Talk;
use crate::bill::asked::Expects;
use crate::bill::split::Split;
use crate::flow::segment_class::LastData;
use crate::rules::several_questions;
use crate::words::cause::Cause;
use crate::words::mark::Mark;

impl Connection {
    /// What Nagle held of an answer may be one of several, where several questions were outstanding. What its asker wrote in more than
    /// one piece may be several, unless what is read of it says that it is one. And a sender that was not seen to mind Nagle may have waited for
    /// what it has heard meanwhile, or for room in its send buffer.
    #[cold]
    pub(super) fn weigh_held(&self, from: usize, has_heard: bool, split: &mut Split) {
        let Some(open) = self.open.as_deref() else { return };
        let is_one = self.talk.as_deref().is_some_and(|talk| talk.pending.is_some());
        if from != open.initiator && !is_one && self.is_in_pieces(open) {
            split.holds_message();
        }
        let path = if from == open.initiator { &open.request } else { &open.reply };
        let slept = path.may_have_slept();
        let reacted = has_heard && self.models[from].nagle_held == 0;
        if slept || reacted {
            split.doubt();
        }
    }

    /// What Nagle seems to hold while several are under way may have been asked for just now, be a message of its own, or not written yet by a writer that
    /// sleeps for room in its send buffer.
    #[cold]
    pub(super) fn weigh_held_beside(
        &self,
        segment: &Segment,
        from: usize,
        last: &LastData,
        split: &mut Split,
    ) {
        let slept = |talk: &Talk| talk.waits[from].have(Cause::SendBuffer);
        if self.just_asked(from) {
            let packets = [last.packet, segment.packet];
            *split = several_questions::or_asked(from, segment.at - last.at, packets);
        } else if self.begins_message(segment, from) {
            split.holds_message();
        } else if self.talk.as_deref().is_some_and(slept) {
            split.doubt();
        }
    }

    /// Whether a message begins with this segment, as far as it is read.
    fn begins_message(&self, segment: &Segment, from: usize) -> bool {
        let unread = self.talk.as_deref().map(|talk| &talk.unread[from]);
        unread.is_some_and(|unread| unread.marks.iter().any(|mark| mark.first && mark.seq == segment.seq))
    }

    /// How long the first message of a segment that nobody asked for had been written when the acknowledgement came for which Nagle's algorithm and a timer had held it (RFC 896;
    /// RFC 1122, 4.2.3.2). A question is held as well behind what served the protocol alone: that of SSH's key exchange behind the lists of both ends, which cross (RFC 4253, 7.1).
    pub(super) fn held_before(
        &self,
        mark: &Mark,
        expects: Expects,
        segment: &Segment,
        from: usize,
    ) -> Duration {
        let talk = self.talk.as_deref().filter(|_| mark.seq == segment.seq);
        let begins = |talk: &&Talk| talk.asked.iter().all(|ask| ask.asker != from);
        let waits =
            talk.filter(|talk| expects == Expects::Nothing || begins(talk)).map(|talk| &talk.waits[from]);
        let held = waits.map_or(Duration::ZERO, |waits| waits.held_until(self.now, Cause::NagleDelayedAck));
        // Waits in a row are kept as one: no more of it than since what was sent before.
        held.min(self.flows[from].last_data.map_or(Duration::ZERO, |last| last.spacing))
    }

    /// Whether the other end's last packet had data: not only an acknowledgement.
    fn just_asked(&self, from: usize) -> bool {
        let asked = self.flows[1 - from].last_data.map(|last| last.at);
        asked.is_some() && asked == self.last_packet[1 - from].get()
    }
}
