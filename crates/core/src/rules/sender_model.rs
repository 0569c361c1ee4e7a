//! What is known of a sender: how does it behave when nothing holds it back, and what did one
//! segment teach about that?

use tcpwhy_wire::Duration;

use super::answers::Answers;
use super::verdict::Verdict;
use crate::estimate::released::{AtHeels, Released};
use crate::estimate::rounds::{RoundBeyond, Rounds};
use crate::estimate::ticks::LateReply;
use crate::estimate::timer_hits::{SHORTEST, TimerHits, is_of_timer};
use crate::words::cause::Cause;

/// A reply that comes sooner waited for no timer: half of the shortest one (`RTO_MIN`).
const QUICK_REPLY_MAX: Duration = Duration::from_millis(100);

/// How a sender behaves when nothing holds it back.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct SenderModel {
    /// Pauses of the application before the n-th further write of a message, seen where nothing
    /// could hold it.
    pauses: Option<Box<Pauses>>,
    /// Small segments sent while a small one was outstanding: Nagle is off.
    pub nagle_ignored: u32,
    /// How many of these came since the peer's last packet.
    nagle_ignored_lately: u32,
    /// Small segments released by a delayed acknowledgement.
    pub nagle_held: u32,
    /// The first piece of a request and what Nagle held after it, in bytes, where the pieces were
    /// seen to be written without waiting for an answer.
    pub held_shape: Option<(u32, u32)>,
    /// Small first replies that came when a cork's timer would have released them. `quick_replies`
    /// counts those that came much sooner, and small segments after small ones: a cork would have
    /// held both.
    timer_hits: Option<Box<TimerHits>>,
    pub quick_replies: u32,
    /// The sender has been idle, and has not had two segments in flight since: its window may be
    /// down to one (RFC 5681, 4.1).
    pub may_be_restarted: bool,
    /// The sender has continued at once after a piece that had emptied its queue.
    pub writes_on: bool,
    /// When its answers come, relative to the pieces of their requests.
    pub answers: Answers,
    /// How many of the next packets are second transmissions, the first ones lost before the
    /// capture point.
    pub copies_due: u16,
    /// Rounds of a window, see `rounds`.
    pub rounds: Rounds,
}

impl SenderModel {
    /// How long the application pauses before the n-th further write of a message, after a write of
    /// `before` bytes.
    pub(crate) fn pause(&self, index: usize, before: u32) -> Option<Duration> {
        self.pauses.as_ref()?.before_write[index.min(3)].median(before)
    }

    /// Whether this pause was seen more than once. The first time a program may have been starting
    /// (loading a class, a cold cache), and if all later writes are held, no second one shows.
    pub(crate) fn pauses_again(&self, index: usize) -> bool {
        self.pauses.as_ref().is_some_and(|pauses| pauses.before_write[index.min(3)].count > 1)
    }

    /// A small segment left while a small one was outstanding.
    pub(crate) fn on_nagle_ignored(&mut self) {
        self.nagle_ignored = self.nagle_ignored.saturating_add(1);
        self.nagle_ignored_lately = self.nagle_ignored_lately.saturating_add(1);
    }

    /// A packet of the peer passed, with `missed` missing before it: what seemed outstanding may
    /// have been acknowledged.
    pub(crate) fn on_peer_packet(&mut self, missed: u16) {
        let lately = std::mem::take(&mut self.nagle_ignored_lately);
        if missed > 0 {
            self.nagle_ignored -= lately.min(self.nagle_ignored);
        }
    }

    /// Whether held segments left on the acknowledgement each time, whenever that came.
    pub(crate) fn goes_with_acks(&self) -> bool {
        self.pauses.as_ref().is_some_and(|pauses| pauses.released.is_shown())
    }

    /// Whether whole writes left at the heels of ACKs each time, whenever these came.
    pub(crate) fn writes_at_heels(&self) -> bool {
        self.pauses.as_ref().is_some_and(|pauses| pauses.at_heels.is_shown())
    }

    /// How soon behind an ACK it sends what Nagle held.
    pub(crate) fn soonest_release(&self) -> Option<Duration> {
        self.pauses.as_ref().and_then(|pauses| pauses.soonest)
    }

    pub(crate) fn forget_pauses(&mut self) {
        self.pauses = None;
    }

    /// A small reply began after `verdict`; without the handshake (`midway`) its timer's value may
    /// differ.
    pub(crate) fn on_first_reply(&mut self, verdict: &Verdict, reply: LateReply, midway: bool) {
        let own = Cause::ServerThink.bit() | Cause::Cork.bit();
        let waited = verdict.split.charges().filter(|charge| own & charge.cause.bit() != 0);
        let waited: Duration = waited.map(|charge| charge.ns).sum();
        if waited < QUICK_REPLY_MAX {
            self.quick_replies = self.quick_replies.saturating_add(1);
        } else if waited >= SHORTEST
            && (midway || is_of_timer(waited, reply.timer, self.timer_hits().are_proven()))
        {
            self.timer_hits.get_or_insert_default().on_hit(LateReply { waited, ..reply });
        } else if let Some(hits) = &mut self.timer_hits {
            hits.on_miss();
        }
    }

    /// What its late replies show about a timer.
    #[cold]
    #[inline(never)]
    pub(crate) fn timer_hits(&self) -> TimerHits {
        self.timer_hits.as_deref().copied().unwrap_or_default()
    }

    /// Whether any of its replies came as late as a timer.
    #[inline]
    pub(crate) fn has_timer_hits(&self) -> bool {
        self.timer_hits.is_some()
    }

    /// A small segment left `gap` after another one of its message.
    pub(crate) fn on_small_behind_small(&mut self, gap: Duration) {
        if gap < SHORTEST {
            self.quick_replies = self.quick_replies.saturating_add(1);
        }
    }

    /// The same as `on_first_reply` for a small reply with this server time, too short for any
    /// timer.
    #[inline]
    pub(crate) fn on_quick_reply(&mut self, thought: Duration) {
        if thought < QUICK_REPLY_MAX {
            self.quick_replies = self.quick_replies.saturating_add(1);
        } else if let Some(hits) = &mut self.timer_hits {
            hits.on_miss();
        }
    }

    /// The latest round beyond a host that acknowledges for this sender.
    pub(crate) fn round_beyond(&self) -> Option<RoundBeyond> {
        self.pauses.as_ref().and_then(|pauses| pauses.beyond)
    }

    pub(crate) fn take(&mut self, observation: &Observation) {
        self.nagle_held = self.nagle_held.saturating_add(u32::from(observation.nagle.held));
        if let Some((held_back, late)) = observation.nagle.released {
            let pauses = self.pauses.get_or_insert_default();
            pauses.released.on_release(held_back, late);
            pauses.soonest = Some(pauses.soonest.map_or(late, |soonest| soonest.min(late)));
        }
        if let Some(pause) = observation.nagle.pause {
            let pauses = self.pauses.get_or_insert_default();
            pauses.released = Released::default();
            pauses.before_write[observation.index.min(3)].push(pause, observation.before);
        }
        if let Some((acked, late)) = observation.at_heels {
            self.pauses.get_or_insert_default().at_heels.on_write(acked, late);
        }
        self.held_shape = observation.nagle.shape.or(self.held_shape);
        self.copies_due = observation.copies_due;
        self.writes_on |= observation.writes_on;
        if let Some((left, mss)) = observation.drained_to {
            self.rounds.on_drained(left, mss);
        }
        if let Some((flight, mss)) = observation.silent_behind {
            self.rounds.growth.on_silence(flight, mss);
        } else if let Some(flight) = observation.filled {
            self.rounds.growth.on_shut(flight);
        }
        if observation.beyond.is_some() {
            self.pauses.get_or_insert_default().beyond = observation.beyond;
        }
    }
}

/// What few senders show: when the application pauses, and when it is held.
#[derive(Clone, Debug, Default, PartialEq)]
struct Pauses {
    before_write: [PauseMemory; 4],
    released: Released,
    at_heels: AtHeels,
    /// The least time between an ACK that had been held back and what it released.
    soonest: Option<Duration>,
    beyond: Option<RoundBeyond>,
}

/// The last few pauses.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct PauseMemory {
    last: [Duration; 5],
    count: u8,
    /// The size in bytes of the write before the pause.
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

    /// Whether it can be the same write of the same program: other messages have other pauses.
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
        // The lower of the two middle ones: a pause is only claimed where most of the memory
        // supports it.
        (known > 0).then(|| sorted[(known - 1) / 2])
    }
}

/// What one segment taught about its sender.
pub(crate) struct Observation {
    pub nagle: NagleObservation,
    pub index: usize,
    pub before: u32,
    pub copies_due: u16,
    pub writes_on: bool,
    pub drained_to: Option<(u32, u32)>,
    /// The flight of a round that ended with a silence, and the MSS.
    pub silent_behind: Option<(u32, u32)>,
    /// That of one that filled the peer's window.
    pub filled: Option<u32>,
    /// The round that begins beyond a host in between.
    pub beyond: Option<RoundBeyond>,
    /// How long the last write waited for its ACK, and the next one behind that.
    pub at_heels: Option<(Duration, Duration)>,
}

impl Observation {
    /// What was held says nothing about what the application does in other exchanges.
    pub(crate) fn forget_shape(&mut self) {
        self.nagle.shape = None;
    }
}

/// What a segment teaches about how its sender handles small writes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NagleObservation {
    /// A small segment was held until a delayed acknowledgement.
    pub held: bool,
    /// How long that acknowledgement was delayed, and how long after it the segment left.
    pub released: Option<(Duration, Duration)>,
    /// The application's own pause, where nothing can have held the write.
    pub pause: Option<Duration>,
    /// The sizes in bytes of the segment before the held one, and of the held one.
    pub shape: Option<(u32, u32)>,
}
