//! Is the data that Nagle seems to hold the rest of a write, a message of its own, a reply to something
//! received meanwhile, or not yet written?

use tcpwhy_wire::{Duration, Segment};

use super::Connection;
use super::talk::Talk;
use crate::bill::asked::Expects;
use crate::bill::revise::Revision;
use crate::bill::split::Split;
use crate::flow::ends::{SERVER, side};
use crate::flow::segment_class::LastData;
use crate::rules::sender_model::Observation;
use crate::rules::verdict::Verdict;
use crate::rules::wait::Wait;
use crate::rules::{nagle, several_questions};
use crate::words::cause::Cause;
use crate::words::form::Form;
use crate::words::limits::{DELAYED_ACK_MIN, HOST_VARIATION, NEAR_MAX};
use crate::words::mark::{Mark, Role};

/// A kernel sends what an ACK releases at once: what comes this many times as late was written later. Source:
/// none written down.
const LATER_TIMES: i64 = 8;

impl Connection {
    /// The least round trip to the sender that is known. Without a handshake, acknowledgements that are all as
    /// late as a host's timer say nothing about that.
    #[cold]
    #[inline(never)]
    fn least_way(&self, wait: &Wait<'_>, from: usize) -> Option<Duration> {
        let timers = self.midway && wait.rtt_to_sender >= DELAYED_ACK_MIN;
        if timers && self.path_memory.shown(from).is_none() {
            return Some(Duration::ZERO);
        }
        self.path_memory.min(from)
    }

    /// What Nagle held for a timer of its receiver, although it does not follow that just as the path would have it.
    #[cold]
    #[inline(never)]
    pub(super) fn held_by_timer(&self, wait: &Wait<'_>, from: usize) -> Option<Verdict> {
        let far = !wait.near_sender();
        let sooner = if far { nagle::released_sooner(wait, self.least_way(wait, from)) } else { None };
        let beside = self.path_memory.held_behind(from, self.ends.get()[SERVER].port);
        sooner.or_else(|| nagle::held_as_beside(wait, beside))
    }

    /// Takes what a wait has taught about its sender, and where Nagle held it.
    pub(super) fn take(&mut self, from: usize, observation: &Observation) {
        let at_heels = observation.at_heels.is_some() && !self.models[from].writes_at_heels();
        self.models[from].take(observation);
        if at_heels && self.models[from].writes_at_heels() {
            self.doubt_writes(from);
        }
        if let Some((before, _)) = observation.nagle.shape.filter(|_| observation.nagle.held) {
            self.path_memory.on_held(from, self.ends.get()[SERVER].port, before);
        }
    }

    /// Its writes have left at the heels of acknowledgements: what seemed to be its program's pauses in this message may have been waits
    /// for them.
    #[cold]
    #[inline(never)]
    fn doubt_writes(&mut self, from: usize) {
        let Some(open) = self.open.as_deref_mut() else { return };
        let path = if from == open.initiator { &mut open.request } else { &mut open.reply };
        path.settle().revise(Revision::MayBeMany { sender: side(from), form: Form::Drained });
    }

    /// A small segment left while a small one was outstanding: what Nagle seems to have held before, an option that the program
    /// had set need not have held.
    #[cold]
    #[inline(never)]
    pub(super) fn on_nagle_ignored(&mut self, from: usize) {
        let model = &mut self.models[from];
        model.on_nagle_ignored();
        if model.nagle_ignored != model.nagle_held + 1 {
            return;
        }
        if let Some(open) = self.open.as_deref_mut() {
            let path = if from == open.initiator { &mut open.request } else { &mut open.reply };
            path.revise(Revision::NoDelay { sender: self.flows[from].side });
        }
        // Where acknowledgements are missing, it may have had one.
        let [asks, answers] = &self.flows;
        if self.models[from].nagle_held == 0 && !asks.missing_from_capture && !answers.missing_from_capture {
            self.path_memory.on_nodelay(from, self.ends.get()[SERVER].port);
        }
    }

    /// Data of a reply that Nagle held may be one of several replies, if several requests were
    /// outstanding. Several pieces from the requester may be several requests, unless what is read of
    /// them says that they are one. And a sender not yet known to be subject to Nagle may have waited
    /// for something it received meanwhile, or for room in its send buffer.
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
        // A distance that only its own data has bounded is as long as its program's pauses, and no round trip.
        let bound = !self.shown[from] && split.has(Cause::Nagle.bit());
        if slept || reacted || bound {
            split.doubt();
        }
    }

    /// While several exchanges are under way, data that Nagle seems to hold may have been requested
    /// just now, be a message of its own, or not be written yet, by a writer that sleeps for room in
    /// its send buffer.
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
        } else if self.is_event_behind_another(segment, from) {
            // When it was written is unknown.
            split.holds_message();
            split.doubt();
            if self.comes_later_than_released(segment, from) {
                let packets = [last.packet, segment.packet];
                *split = several_questions::written_later(from, segment.at - last.at, packets);
            }
        } else if self.begins_message(segment, from) {
            split.holds_message();
        } else if self.talk.as_deref().is_some_and(slept) {
            split.doubt();
        }
    }

    /// Whether this segment begins with a message that nobody asked for, as the one before it was: its program
    /// writes at times of its own.
    fn is_event_behind_another(&self, segment: &Segment, from: usize) -> bool {
        let Some(talk) = self.talk.as_deref().filter(|talk| talk.told[from]) else { return false };
        let tells = |mark: &Mark| mark.first && mark.seq == segment.seq && mark.role == Role::Tells;
        talk.unread[from].marks.iter().any(tells)
    }

    /// Whether this segment leaves much later behind an ACK than what this end was seen to hold, near it.
    fn comes_later_than_released(&self, segment: &Segment, from: usize) -> bool {
        let acked = self.flows[from].view.small_acked().map(|ack| ack.earliest_departure);
        let near = self.tap_rtt[from].get().is_some_and(|rtt| rtt < HOST_VARIATION);
        let late = acked.filter(|_| near).map(|acked| segment.at - acked);
        late.zip(self.models[from].soonest_release())
            .is_some_and(|(late, usual)| late - usual > HOST_VARIATION.max(usual.times(LATER_TIMES)))
    }

    /// Whether a message begins with this segment, by what is read.
    fn begins_message(&self, segment: &Segment, from: usize) -> bool {
        let unread = self.talk.as_deref().map(|talk| &talk.unread[from]);
        unread.is_some_and(|unread| unread.marks.iter().any(|mark| mark.first && mark.seq == segment.seq))
    }

    /// How long an unrequested message, first in its segment, had been held by Nagle's algorithm and a
    /// delayed ACK (RFC 896; RFC 1122, 4.2.3.2) when that ACK came. A request can be held in the same
    /// way after the protocol's own messages, like that of SSH's key exchange after the lists of both
    /// ends, which cross (RFC 4253, 7.1).
    pub(super) fn held_before(
        &self,
        mark: &Mark,
        expects: Expects,
        segment: &Segment,
        from: usize,
    ) -> Duration {
        let talk = self.talk.as_deref().filter(|_| mark.seq == segment.seq);
        let begins = |talk: &&Talk| talk.asked.iter().all(|ask| ask.asker != from);
        // Its program may also have paused: only what leaves with the ACK was held.
        let released = |talk: &&Talk| {
            let alone = talk.waits[from].held_alone(self.now, Cause::NagleDelayedAck, NEAR_MAX);
            alone && self.echoes_last(segment, from)
        };
        let held = |talk: &&Talk| expects == Expects::Nothing || begins(talk) && released(talk);
        let waits = talk.filter(held).map(|talk| &talk.waits[from]);
        let held = waits.map_or(Duration::ZERO, |waits| waits.held_until(self.now, Cause::NagleDelayedAck));
        // Waits in a row are kept as one: count no more than since the segment before.
        held.min(self.flows[from].last_data.map_or(Duration::ZERO, |last| last.spacing))
    }

    /// Whether a segment echoes the time stamp of the other end's last packet, and was therefore sent
    /// after that had arrived, or may have to echo an earlier one: that of the first data it acknowledges
    /// (RFC 7323, 4.3, 2).
    fn echoes_last(&self, segment: &Segment, from: usize) -> bool {
        let other = &self.flows[1 - from];
        let behind_data = other.newly_acked > 0;
        behind_data || segment.options.timestamps.is_none_or(|stamps| other.clock.is_present(stamps.ecr))
    }

    /// Whether the other end's last packet had data, and was not just an ACK.
    fn just_asked(&self, from: usize) -> bool {
        let asked = self.flows[1 - from].last_data.map(|last| last.at);
        asked.is_some() && asked == self.last_packet[1 - from].get()
    }
}
