//! Was the sender blocked, and by what? One file for each mechanism, asked in the order of certainty.
//!
//! Every rule gets the same [`Wait`]: an interval in which a sender in the middle of a message sent nothing, and what
//! that sender knew by its end. A rule answers with the split of the interval, or with nothing.

pub(crate) mod bandwidth;
pub(crate) mod congestion_window;
pub(crate) mod cork;
mod delayed_ack_cwnd;
pub(crate) mod nagle;
mod pacing;
mod queueing;
pub(crate) mod receive_window;
mod receiver_think;
pub(crate) mod repair;
mod send_buffer;
mod slow_start;
pub(crate) mod think;

use tcpwhy_wire::{Duration, Instant, Segment};

use crate::bill::account::{Charge, Split};
use crate::estimate::{growth, rounds};
use crate::flow::half::{Half, LastData, Order, Release};
use crate::words::cause::{Cause, Side};
use crate::words::limits::{BURST_GAP, HOST_VARIATION, RTO_MIN};
use crate::words::report::{Confidence, Detail, Trigger};

/// An interval in which a sender in the middle of a message sent nothing.
pub(crate) struct Wait<'a> {
    pub half: &'a Half,
    /// The segment that ended it.
    pub segment: &'a Segment,
    pub order: Order,
    /// The segment before it on the path.
    pub last: &'a LastData,
    pub gap: Duration,
    /// Where the message's part of the path stood before: the gap is billed from here.
    pub mss: u32,
    /// Round trip between the capture and the sender.
    pub own: Duration,
    /// Round trip between the capture and the peer.
    pub peer: Duration,
    /// What is known of this sender from earlier in the connection.
    pub habits: &'a Habits,
    /// Which gap of the message it is, from 0.
    pub index: usize,
    /// It continues a request although some of the answer had arrived.
    pub beside_answer: bool,
    /// The connection's beginning is not in the capture, and nothing had shown yet how far away the sender is when the
    /// acknowledgements passed that it may have waited for.
    pub far_unknown: bool,
}

impl Wait<'_> {
    /// How closely a segment follows what released it: the host's own latency near the sender, the path's variation
    /// on top far from it.
    pub(crate) fn hair(&self) -> Duration {
        let host = self.gap.divided_by(8).max(Duration::from_micros(150)).min(Duration::from_millis(1));
        host + self.own.divided_by(16)
    }

    /// Whether the segment left because `release` reached its sender.
    pub(crate) fn follows(&self, release: &Release) -> bool {
        let after = self.segment.at - release.effective;
        let not_before = HOST_VARIATION + self.own.divided_by(16);
        // What the segment itself waited on its way to the capture says nothing about when it left.
        let queued = self.half.queued_on_way.unwrap_or_default();
        release.effective > self.last.at - not_before && after >= -not_before && after <= self.hair() + queued
    }

    /// Whether the segment is as large as they get.
    pub(crate) fn is_full(&self) -> bool {
        self.half.is_full(self.segment.payload_len, self.mss)
    }

    /// By how much the peer held back this acknowledgement.
    pub(crate) fn ack_delay(&self, release: &Release) -> Option<Duration> {
        release.rtt.map(|rtt| (rtt - self.peer).at_least_zero())
    }

    pub(crate) fn rtt(&self) -> Duration {
        self.own + self.peer
    }

    /// Whether the capture stands nearer to the sender than to its peer.
    pub(crate) fn near_sender(&self) -> bool {
        self.own <= self.peer
    }
}

/// What a sender does when nothing holds it back.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Habits {
    /// Pauses of the application before the n-th further write of a message, seen where nothing could hold it.
    pauses: Option<Box<[PauseMemory; 4]>>,
    /// Small segments sent while a small one was outstanding: Nagle is off.
    pub nagle_ignored: u32,
    /// Of these, the ones since the peer's last packet.
    nagle_ignored_lately: u32,
    /// Small segments released by an acknowledgement that had been held back.
    pub nagle_held: u32,
    /// The first piece of a request and what Nagle held behind it, in bytes, where the pieces were seen to be written
    /// without waiting for an answer.
    pub held_shape: Option<(u32, u32)>,
    /// First replies that came when a cork's timer would have let them go, and small ones that came much sooner.
    pub corked: u32,
    pub quick_replies: u32,
    /// It has been idle, and has not had two segments in flight since: its window may be down to one (RFC 5681, 4.1).
    pub may_be_restarted: bool,
    /// It has gone on at once behind a piece that had emptied its queue.
    pub writes_on: bool,
    /// How its answers lie to requests in pieces.
    pub answers: think::Answers,
    /// How many of the next packets are second copies, the first ones lost before the capture saw them.
    pub copies_due: u16,
    /// Rounds of a window, see `rounds`.
    pub rounds: rounds::Rounds,
}

impl Habits {
    /// How long the application pauses by itself before the n-th further write of a message that went on so far with
    /// `before` bytes.
    pub(crate) fn pause(&self, index: usize, before: u32) -> Option<Duration> {
        self.pauses.as_ref()?[index.min(3)].median(before)
    }

    /// Whether it was seen to pause so more than once. The first time, a program may have been starting (a class that is
    /// loaded, a cache that is cold), and no other comes where all that follow are held.
    pub(crate) fn pauses_again(&self, index: usize) -> bool {
        self.pauses.as_ref().is_some_and(|pauses| pauses[index.min(3)].count > 1)
    }

    /// A small segment left while a small one was outstanding.
    pub(crate) fn on_nagle_ignored(&mut self) {
        self.nagle_ignored = self.nagle_ignored.saturating_add(1);
        self.nagle_ignored_lately = self.nagle_ignored_lately.saturating_add(1);
    }

    /// A packet of the peer's passed, and `missed` before it did not: what seemed outstanding may have been acknowledged.
    pub(crate) fn on_peer_packet(&mut self, missed: u16) {
        let lately = std::mem::take(&mut self.nagle_ignored_lately);
        if missed > 0 {
            self.nagle_ignored -= lately.min(self.nagle_ignored);
        }
    }

    pub(crate) fn forget_pauses(&mut self) {
        self.pauses = None;
    }

    /// A reply began after `verdict`.
    pub(crate) fn on_first_reply(&mut self, verdict: &Verdict, small: bool) {
        let (mut corked, mut thought) = (Duration::ZERO, Duration::ZERO);
        for charge in verdict.split.charges() {
            match charge.cause {
                Cause::Cork => corked += charge.ns,
                Cause::ServerThink => thought += charge.ns,
                _ => {}
            }
        }
        if corked.is_positive() {
            self.corked = self.corked.saturating_add(1);
        } else if small && thought < RTO_MIN.divided_by(2) {
            self.quick_replies = self.quick_replies.saturating_add(1);
        }
    }

    /// The same of a small one that took its server so long and was not corked.
    #[inline]
    pub(crate) fn on_quick_reply(&mut self, thought: Duration) {
        if thought < RTO_MIN.divided_by(2) {
            self.quick_replies = self.quick_replies.saturating_add(1);
        }
    }

    pub(crate) fn take(&mut self, lessons: &Lessons) {
        self.nagle_held = self.nagle_held.saturating_add(u32::from(lessons.nagle.held));
        if let Some(pause) = lessons.nagle.pause {
            self.pauses.get_or_insert_default()[lessons.index.min(3)].push(pause, lessons.before);
        }
        self.held_shape = lessons.nagle.shape.or(self.held_shape);
        self.copies_due = lessons.copies_due;
        self.writes_on |= lessons.writes_on;
        if let Some((left, mss)) = lessons.drained_to {
            self.rounds.on_drained(left, mss);
        }
        if let Some((flight, mss)) = lessons.silent_behind {
            self.rounds.growth.on_silence(flight, mss);
        }
    }
}

/// The last few pauses.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct PauseMemory {
    last: [Duration; 5],
    count: u8,
    /// How many bytes the write before the pause had.
    before: u32,
}

impl PauseMemory {
    fn push(&mut self, pause: Duration, before: u32) {
        if !self.is_alike(before) {
            *self = Self::default();
        }
        self.before = before;
        let slots = self.last.len();
        self.last[self.count as usize % slots] = pause;
        self.count = if self.count as usize >= 2 * slots { slots as u8 + 1 } else { self.count + 1 };
    }

    /// Whether it can be the same write of the same program: another message has other pauses.
    fn is_alike(&self, before: u32) -> bool {
        before.abs_diff(self.before) <= before.max(self.before) / 4
    }

    fn median(&self, before: u32) -> Option<Duration> {
        if !self.is_alike(before) {
            return None;
        }
        let known = (self.count as usize).min(self.last.len());
        let mut sorted = self.last;
        sorted[..known].sort_unstable();
        // The lower of the two middle ones: a pause is only claimed where most of the memory supports it.
        (known > 0).then(|| sorted[(known - 1) / 2])
    }
}

/// The split of one interval, and what let the segment leave.
pub(crate) struct Verdict {
    pub split: Split,
    pub trigger: Trigger,
}

/// Asks each mechanism in turn.
pub(crate) fn judge(wait: &Wait<'_>) -> Verdict {
    let mut verdict = ask(wait);
    if wait.far_unknown {
        verdict.split.doubt(); // what the sender knew is not known
    }
    verdict
}

fn ask(wait: &Wait<'_>) -> Verdict {
    // Within a burst, that is for nearly every packet of a transfer, the others have nothing to say.
    if wait.gap < BURST_GAP && wait.order == Order::New && !wait.half.plain {
        return receive_window::judge(wait).unwrap_or_else(|| think::judge(wait));
    }
    not_captured(wait)
        .or_else(|| repair::judge(wait))
        .or_else(|| bandwidth::judge(wait))
        .or_else(|| nagle::judge(wait))
        .or_else(|| receive_window::judge(wait))
        .or_else(|| cork::judge(wait))
        .or_else(|| congestion_window::judge(wait))
        .unwrap_or_else(|| think::judge(wait))
}

/// What the sender did in between is not in the capture, or what let it go on.
fn not_captured(wait: &Wait<'_>) -> Option<Verdict> {
    if wait.gap < BURST_GAP {
        return None;
    }
    if !wait.half.not_captured(wait.segment)
        && (!nagle::release_unseen(wait) || repair::is_probe(wait))
        && !receive_window::update_unseen(wait)
    {
        return None;
    }
    let charge = unseen(wait.half.side).evidence(wait.last.packet, wait.segment.packet);
    Some(Verdict { split: Split::of(wait.gap).rest(charge), trigger: burst(wait.last, wait.segment.at) })
}

/// The charge for time that packets would explain which are missing from the capture.
pub(crate) fn unseen(sender: Side) -> Charge {
    let detail = Detail { form: Some("not-captured"), ..Detail::default() };
    Charge::new(Cause::Unexplained, sender, Duration::ZERO, Confidence::Possible).detail(detail)
}

/// What one segment taught about its sender.
pub(crate) struct Lessons {
    nagle: nagle::Lesson,
    index: usize,
    before: u32,
    copies_due: u16,
    writes_on: bool,
    drained_to: Option<(u32, u32)>,
    /// The flight of a round that ended with a silence, and the MSS.
    silent_behind: Option<(u32, u32)>,
}

impl Lessons {
    /// What was held says nothing about what the application does in other exchanges.
    pub(crate) fn forget_shape(&mut self) {
        self.nagle.shape = None;
    }
}

/// What a verdict teaches about its sender.
pub(crate) fn lessons(wait: &Wait<'_>, verdict: &Verdict) -> Lessons {
    Lessons {
        nagle: nagle::lesson(wait, verdict),
        index: wait.index,
        before: wait.last.len,
        copies_due: repair::copies_due(wait, verdict),
        writes_on: send_buffer::writes_on(wait),
        drained_to: send_buffer::drained_to(wait, verdict).map(|left| (left, wait.mss)),
        silent_behind: growth::flight(wait, verdict).map(|flight| (flight, wait.mss)),
    }
}

/// Which earlier packet a segment that followed `at` answers, for the ladder.
pub(crate) fn burst(last: &LastData, at: Instant) -> Trigger {
    if at - last.at < BURST_GAP { Trigger::Burst } else { Trigger::Write }
}
