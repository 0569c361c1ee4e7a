//! How is a request turn billed, with the reply turn that answers it, while under way?
//!
//! An exchange has two paths: the request's, from its first byte to its latest, and the reply's. A reply
//! segment either continues the reply before it, or answers request bytes that came since; then its account
//! is the request's account plus the server's part. Every account covers the time from the exchange's first
//! byte to its path's last segment, so whichever path the reply took, its lines sum to the elapsed time.

mod late;
pub(crate) mod pieces;
mod spares;
mod usual;
mod woken;

use tcpwhy_wire::{Duration, Instant, Segment, Seq};

use crate::bill::account::Account;
use crate::bill::charge::Charge;
use crate::bill::early::EarlyWaits;
use crate::bill::held::DOUBTED;
use crate::bill::pause::Pause;
use crate::bill::piece::Piece;
use crate::bill::revise::{Accounts, Revision};
use crate::bill::spare::Copies;
use crate::bill::split::Split;
use crate::bill::suspects::{Suspect, Suspects};
use crate::bill::tail::Tail;
use crate::estimate::growth::Shape;
use crate::estimate::maybe::Maybe;
use crate::estimate::rate::Rate;
use crate::flow::direction::Flow;
use crate::flow::segment_class::LastData;
use crate::words::cause::{Cause, Side};
use crate::words::limits::{RTO_MIN, SEND_BUFFER_MIN};
use crate::words::report::{Confidence, Kind};

/// An unrelated write falls into the rest of an interval after a hold once in this many cases.
const OWN_PACE_SHARE: i64 = 16;

/// Doubtful waits of a slow start; a window-limited sender would soon be past them.
const DOUBTS_MAX: usize = 8;

/// One direction's part of an exchange.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Path {
    account: Account,
    pub last: Option<LastData>,
    /// Bytes sent since the application last wrote at its own pace.
    blocked_bytes: u32,
    /// Further writes so far.
    pub index: usize,
    /// Possible application time since the sender was last known to send at a steady pace.
    unsure: Duration,
    /// Boxed: most paths have nothing to keep aside.
    aside: Option<Box<Aside>>,
}

/// Charges and findings that may or may not count in the end.
#[derive(Clone, Debug, Default, PartialEq)]
struct Aside {
    /// What blocked the sender since the application last wrote at its own pace.
    blocked: Account,
    /// Retransmissions since `last`, not yet known to have repaired anything.
    pending: Account,
    pending_last: Option<LastData>,
    /// The sender's clock at the first of them.
    pending_stamp: Option<u32>,
    /// When the timer that one of them waited for started, when it ended, and whose it is.
    timer: Option<(Instant, Instant, Side)>,
    /// The last waits that may turn out to have been for that timer.
    suspects: Suspects,
    /// Waits during which the link's rate was uncertain.
    early: EarlyWaits,
    /// Charges of a slow start that slackened, in case the send buffer proves to have been the limit.
    doubts: Vec<Doubt>,
    /// What was late on the path since its sender last paused.
    late: Duration,
    /// Retransmissions.
    copies: Copies,
    held_tail: Option<Tail>,
    /// After an unnecessary retransmission: until when the path held its original, and with what confidence.
    acked_late: Option<(Instant, Confidence)>,
    /// When its last segment passed a second point of the capture, nearer to the peer.
    passed_again: Option<Instant>,
    /// Its sender's last long silence.
    pause: Option<Pause>,
    /// How late its first segment seems, which later packets of its sender may confirm.
    seemed_late: Option<Duration>,
}

/// A wait that no window held if later flights vary as no window's flights do.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Doubt {
    cause: Cause,
    ns: Duration,
    packets: [u64; 3],
}

impl Aside {
    fn clear(&mut self) {
        self.blocked.clear();
        self.pending.clear();
        (self.pending_last, self.pending_stamp, self.timer) = (None, None, None);
        self.suspects.clear();
        self.early.clear();
        self.doubts.clear();
        self.copies.clear();
        self.held_tail = None;
        (self.acked_late, self.passed_again, self.pause, self.seemed_late) = (None, None, None, None);
    }
}

fn is_nagle(cause: Cause) -> bool {
    matches!(cause, Cause::Nagle | Cause::NagleDelayedAck)
}

impl Path {
    pub(crate) fn clear(&mut self) {
        self.account.clear();
        self.blocked_bytes = 0;
        self.last = None;
        self.index = 0;
        self.unsure = Duration::ZERO;
        if let Some(aside) = &mut self.aside {
            aside.clear();
        }
    }

    /// Nothing charged so far counts.
    fn forget(&mut self) {
        self.account.clear();
    }

    /// Bytes of heap memory in use.
    fn heap(&self) -> usize {
        let aside = |aside: &Aside| {
            let kept =
                aside.early.heap() + aside.doubts.capacity() * size_of::<Doubt>() + aside.copies.heap();
            size_of::<Aside>() + aside.blocked.heap() + aside.pending.heap() + aside.suspects.heap() + kept
        };
        self.account.heap() + self.aside.as_deref().map_or(0, aside)
    }

    #[inline]
    pub(crate) fn begin(&mut self, at: LastData) {
        self.last = Some(at);
        self.blocked_bytes = at.len;
    }

    /// Charges what happened before the first segment.
    pub(crate) fn charge(&mut self, charge: &Charge) {
        self.account.charge(charge);
    }

    /// Starts this path where another one is, and adds what happened since.
    pub(crate) fn branch(&mut self, from: &mut Self, split: &Split, at: LastData) {
        self.clear();
        self.account.copy_from(from.settle());
        self.account.charge_split(split);
        self.begin(at);
    }

    /// Starts this path at the exchange's beginning.
    pub(crate) fn begin_with(&mut self, split: &Split, at: LastData) {
        self.clear();
        self.account.charge_split(split);
        self.begin(at);
    }

    /// New data was sent after `split`, or missing data on a timer that started at `timer_from`.
    pub(crate) fn advance(
        &mut self,
        split: &Split,
        at: LastData,
        sender: &Flow,
        timer_from: Option<Instant>,
    ) {
        self.commit();
        if let Some(from) = timer_from {
            self.bill_to_timer(from, at.at, sender.side);
        }
        self.weigh_late(split, sender.side);
        if split.has_only(Cause::SenderThink.bit()) {
            // The application wrote at its own pace. Whatever held earlier bytes meanwhile delayed nothing,
            // unless it also kept the application from writing, or more was queued.
            let kept = split.shows_own_pace()
                && self.blocked_bytes < SEND_BUFFER_MIN
                && self.forgive(split, at.packet, sender.side);
            self.absorb_blocked();
            self.account.charge_split(split);
            if kept {
                self.revise(Revision::MayBeStream { sender: sender.side });
            }
            self.blocked_bytes = 0;
        } else {
            if self.blocked_bytes < SEND_BUFFER_MIN && split.charges().any(|charge| is_nagle(charge.cause)) {
                self.revise(Revision::TailLeftWhole { packet: at.packet, sender: sender.side });
            }
            let aside = self.aside.get_or_insert_default();
            aside.blocked.charge_split(split);
            aside.suspects.push(split, at.at);
            aside.held_tail = Tail::of(split, at.packet).or(aside.held_tail);
        }
        if at.spacing >= RTO_MIN {
            self.aside.get_or_insert_default().pause = Pause::of(split, &at, sender);
        }
        self.blocked_bytes = self.blocked_bytes.saturating_add(at.len);
        self.last = Some(at);
        self.index += 1;
    }

    /// What held earlier bytes delayed nothing, unless it was this much longer than the pause after it:
    /// an application that writes by a clock of its own seldom does so right after a hold. Returns
    /// whether the hold may have delayed the next write.
    #[cold]
    fn forgive(&mut self, split: &Split, packet: u64, sender: Side) -> bool {
        let pause: Duration = split.charges().map(|charge| charge.ns).sum();
        if self.index == 1 && self.revise(Revision::HeldOnce { sender }).is_positive() {
            return true; // who does not write again and again may have gone on late because of that
        }
        let blocked = self.aside.as_ref().map_or(Duration::ZERO, |aside| aside.blocked.total());
        if blocked <= pause.times(OWN_PACE_SHARE) {
            self.revise(Revision::OwnPace { packet, sender });
        }
        false
    }

    /// Data was retransmitted after `split`, on a timer that started at `timer_from`: this counts only if it
    /// proves to have been needed.
    pub(crate) fn repair(
        &mut self,
        split: &Split,
        at: LastData,
        segment: &Segment,
        timer_from: Option<(Instant, Side)>,
    ) {
        let aside = self.aside.get_or_insert_default();
        if aside.pending_last.is_none() {
            aside.pending_stamp = segment.options.timestamps.map(|stamps| stamps.val);
        }
        aside.timer = aside.timer.or(timer_from.map(|(from, sender)| (from, at.at, sender)));
        aside.pending.charge_split(split);
        aside.suspects.push(split, at.at);
        aside.copies.note(split, segment);
        aside.pending_last = Some(at);
    }

    /// Whether there is room for one more wait during which the link's rate was uncertain.
    #[inline]
    pub(crate) fn keeps_early(&self) -> bool {
        self.aside.as_ref().is_none_or(|aside| aside.early.has_room())
    }

    /// Keeps a wait from `last` to the segment just taken until the link's rate is known; `ways` are both
    /// ends' distances from the capture.
    pub(crate) fn keep_early(
        &mut self,
        split: &Split,
        last: &LastData,
        sender: &Flow,
        mss: u32,
        ways: [Duration; 2],
    ) {
        if let (Some(aside), Some(at)) = (&mut self.aside, &self.last)
            && aside.early.has_room()
        {
            aside.early.keep(split, last, at, sender, mss, ways);
        }
    }

    /// Charges the link exactly what it needed in the waits kept.
    pub(crate) fn charge_early(&mut self, rate: Option<(Rate, Confidence)>, sender: Side) {
        let (Some(aside), Some(rate)) = (&mut self.aside, rate) else { return };
        aside.early.settle(rate, sender, [&mut aside.blocked, &mut self.account]);
    }

    /// A steady pace shows only after `beat`: possible application time until then was pacing too.
    pub(crate) fn keep_beat(&mut self, split: &Split, beat: Duration, sender: Side) {
        for charge in split.charges() {
            match charge.cause {
                Cause::SenderThink if charge.confidence == Confidence::Possible && !split.is_own_pace() => {
                    self.unsure += charge.ns;
                }
                Cause::Pacing => {
                    let unsure = std::mem::take(&mut self.unsure).min(beat);
                    self.account.revise(Revision::BeatShown { pacing: charge, unsure, sender });
                }
                _ => {}
            }
        }
    }

    /// Judges the wait just taken, and those before it, by the shape of the flights.
    pub(crate) fn weigh(&mut self, split: &Split, shape: Shape, sender: Side) {
        let Some(aside) = &mut self.aside else { return };
        match shape {
            Shape::Even => aside.doubts.clear(),
            Shape::Slack => {
                let doubted = split.charges().filter(|charge| DOUBTED & charge.cause.bit() != 0);
                let room = DOUBTS_MAX - aside.doubts.len();
                let keep =
                    |charge: &Charge| Doubt { cause: charge.cause, ns: charge.ns, packets: charge.evidence };
                aside.doubts.extend(doubted.take(room).map(keep));
            }
            Shape::Uneven => {
                for Doubt { cause, ns, packets } in aside.doubts.drain(..) {
                    let (blocked, settled) = (Some(&mut aside.blocked), &mut self.account);
                    Revision::NoWindow { cause, ns, packets, sender }.apply(Accounts {
                        pending: None,
                        blocked,
                        settled,
                    });
                }
                let shown = |charge: &Charge| {
                    charge.cause == Cause::SendBuffer && charge.confidence > Confidence::Possible
                };
                if split.charges().any(shown) {
                    self.revise(Revision::BufferShown { sender });
                }
            }
        }
    }

    /// Moves the sender's waits from `from` to `until` to the timer that ran meanwhile.
    fn bill_to_timer(&mut self, from: Instant, until: Instant, sender: Side) -> Duration {
        let Some(aside) = &mut self.aside else { return Duration::ZERO };
        let waits: Vec<Suspect> = aside.suspects.drain(from, until).collect();
        self.revise(Revision::TimerRan { waits: &waits, from, sender })
    }

    /// Whether an acknowledgement of everything that echoes this time stamp answers the first transmission
    /// (the Eifel algorithm, RFC 3522).
    pub(crate) fn answered_before_repair(&self, echoed: u32) -> bool {
        self.aside.as_ref().is_some_and(|aside| {
            aside.pending_last.is_some()
                && aside.pending_stamp.is_some_and(|stamp| (echoed.wrapping_sub(stamp) as i32) < 0)
        })
    }

    /// Whether a segment that echoes this time stamp left after a retransmission had arrived (RFC 7323, 4.1).
    pub(crate) fn answers_repair(&self, echoed: u32) -> bool {
        let newer = |later: u32, earlier: u32| (later.wrapping_sub(earlier) as i32) > 0;
        let copy = self.aside.as_ref().filter(|aside| aside.pending_last.is_some());
        let (Some(copy), Some(first)) =
            (copy.and_then(|aside| aside.pending_stamp), self.last.and_then(|last| last.stamp))
        else {
            return false;
        };
        newer(copy, first) && !newer(copy, echoed)
    }

    /// Where the next interval starts.
    #[inline]
    pub(crate) fn frontier(&self) -> Option<&LastData> {
        self.pending_last().or(self.last.as_ref())
    }

    /// When the last retransmission was sent that may have repaired nothing.
    pub(crate) fn repaired_at(&self) -> Option<Instant> {
        self.pending_last().map(|last| last.at)
    }

    /// When the last data was sent, if by a tail loss probe.
    pub(crate) fn probed_at(&self) -> Option<Instant> {
        let at = self.frontier()?.at;
        self.aside.as_ref().filter(|aside| aside.suspects.last_probe() == Some(at)).map(|_| at)
    }

    /// The retransmissions were needed.
    pub(crate) fn commit(&mut self) {
        let timer = self.aside.as_mut().and_then(|aside| aside.timer.take());
        let waited = timer.map(|(from, until, sender)| self.bill_to_timer(from, until, sender));
        let Some(aside) = &mut self.aside else { return };
        aside.copies.count(waited.unwrap_or_default());
        if let Some(last) = aside.pending_last.take() {
            let snd_una = self.last.and_then(|before| before.snd_una);
            self.last = Some(LastData { snd_una, ..last });
            self.revise(Revision::RepairNeeded);
        }
    }

    /// The original had arrived: nothing waited for the retransmissions.
    pub(crate) fn discard(&mut self) {
        if let Some(aside) = &mut self.aside {
            aside.pending_last = None;
            aside.timer = None;
            aside.copies.forget();
            self.revise(Revision::RepairUnneeded);
        }
    }

    /// Whether any retransmission is remembered.
    #[inline]
    pub(crate) fn has_copies(&self) -> bool {
        self.aside.as_ref().is_some_and(|aside| !aside.copies.is_empty())
    }

    /// The cost so far, including what may still be taken back.
    pub(crate) fn so_far(&self) -> Account {
        let mut account = self.account.clone();
        if let Some(aside) = &self.aside {
            account.absorb(&mut aside.blocked.clone());
        }
        account
    }

    /// Revises the cost so far, settled or not.
    pub(crate) fn revise(&mut self, revision: Revision<'_>) -> Duration {
        let settled = &mut self.account;
        let accounts = match self.aside.as_deref_mut() {
            Some(Aside { pending, blocked, .. }) => {
                Accounts { pending: Some(pending), blocked: Some(blocked), settled }
            }
            None => Accounts { pending: None, blocked: None, settled },
        };
        revision.apply(accounts)
    }

    #[inline]
    fn pending_last(&self) -> Option<&LastData> {
        self.aside.as_ref()?.pending_last.as_ref()
    }

    fn absorb_blocked(&mut self) {
        if let Some(aside) = &mut self.aside {
            self.account.absorb(&mut aside.blocked);
        }
    }

    /// The account up to the last segment, with nothing left open.
    #[inline]
    pub(crate) fn settle(&mut self) -> &mut Account {
        if self.aside.is_some() {
            self.commit();
            self.absorb_blocked();
        }
        self.blocked_bytes = 0;
        &mut self.account
    }
}

/// An exchange, a greeting or a one-way message under way.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Open {
    pub n: u64,
    /// Index of the end that spoke first.
    pub initiator: usize,
    pub start: Instant,
    /// When its first segment passed: that may have been delayed.
    pub passed: Instant,
    pub client_idle: Duration,
    pub request: Path,
    pub reply: Path,
    /// Earlier pieces of the request.
    pub pieces: Vec<Piece>,
    /// The start of the request's current piece: time, first packet, bytes so far.
    pub piece: (Instant, u64, u64),
    /// How long after the request's last segment the reply's first one passed.
    pub waited: Duration,
    /// Which message answers which is a guess.
    pub is_guess: bool,
    /// It ended before the answer can have arrived, or has none: nobody need have waited for the way back.
    pub is_unheard: bool,
    /// The acknowledgement number in the initiator's last packet.
    pub request_acks: Option<Seq>,
    /// First byte of the reply, once there is one.
    pub reply_first: Option<Seq>,
    pub request_bytes: u64,
    pub reply_bytes: u64,
    pub packets: [u64; 2],
    /// The initiator's first byte.
    pub request_first: Option<Seq>,
    /// Length of its first segment.
    pub first_len: u32,
    /// End of the initiator's data so far.
    pub request_end: Option<Seq>,
    /// What the delay of its first segment on the way here is relative to, if known.
    pub way_base: Maybe<Duration>,
    /// That delay by its time stamp, until settled.
    pub late: Option<Box<Charge>>,
    /// What its initiator sent after it, and its answer does not acknowledge: the next exchange.
    pub later: Option<Box<Open>>,
    /// It is one of two that looked like one.
    pub is_parted: bool,
}

impl Open {
    pub(crate) fn new() -> Self {
        Self {
            n: 0,
            initiator: 0,
            start: Instant::MIN,
            passed: Instant::MIN,
            client_idle: Duration::ZERO,
            request: Path::default(),
            reply: Path::default(),
            pieces: Vec::new(),
            piece: (Instant::MIN, 0, 0),
            waited: Duration::ZERO,
            is_guess: false,
            is_unheard: false,
            request_acks: None,
            reply_first: None,
            request_bytes: 0,
            reply_bytes: 0,
            packets: [0; 2],
            request_first: None,
            first_len: 0,
            request_end: None,
            way_base: Maybe::NONE,
            late: None,
            later: None,
            is_parted: false,
        }
    }

    /// Bytes in use in all, its own size included.
    pub(crate) fn memory(&self) -> usize {
        let pieces = self.pieces.iter().map(|piece| piece.account.heap()).sum::<usize>();
        let kept = self.pieces.capacity() * size_of::<Piece>();
        let later = self.later.as_ref().map_or(0, |later| later.memory());
        size_of::<Self>() + self.request.heap() + self.reply.heap() + kept + pieces + later
    }

    /// Restarts with this segment, keeping the memory.
    #[expect(clippy::inline_always, reason = "each usual request passes it")]
    #[inline(always)]
    pub(crate) fn restart(
        &mut self,
        n: u64,
        initiator: usize,
        start: Instant,
        idle: Duration,
        (passed, packet): (Instant, u64),
    ) {
        self.n = n;
        self.initiator = initiator;
        (self.start, self.passed) = (start, passed);
        self.client_idle = idle;
        self.request.clear();
        self.reply.clear();
        self.pieces.clear();
        self.piece = (start, packet, 0);
        self.reply_first = None;
        self.waited = Duration::ZERO;
        self.is_guess = false;
        self.is_unheard = false;
        self.request_bytes = 0;
        self.reply_bytes = 0;
        self.packets = [packet; 2];
        self.request_acks = None;
        self.request_first = None;
        self.request_end = None;
        self.way_base = Maybe::NONE;
        self.late = None;
        self.later = None;
        self.is_parted = false;
    }

    /// Whether the responder sent this before any of the request had reached it.
    pub(crate) fn crosses(&self, segment: &Segment) -> bool {
        self.reply_first.is_none()
            && segment.flags.ack()
            && self.request_first.is_some_and(|first| segment.ack.at_or_before(first))
    }

    /// When the request's latest bytes passed.
    pub(crate) fn request_at(&self) -> Instant {
        self.request.last.map_or(self.start, |last| last.at)
    }

    pub(crate) fn kind(&self) -> Kind {
        if self.reply_first.is_some() { Kind::Exchange } else { Kind::OneWay }
    }

    /// The path that ends it.
    pub(crate) fn last_path(&mut self) -> &mut Path {
        if self.reply_first.is_some() { &mut self.reply } else { &mut self.request }
    }

    /// The end that has spoken last so far.
    pub(crate) fn last_speaker(&self) -> usize {
        if self.reply_first.is_some() { 1 - self.initiator } else { self.initiator }
    }

    /// Takes a segment's bytes into the sums.
    pub(crate) fn count(&mut self, segment: &Segment, from: usize, new_bytes: u64) {
        self.packets[1] = segment.packet;
        if from == self.initiator {
            self.request_acks = segment.flags.ack().then_some(segment.ack);
            self.request_bytes += new_bytes;
            self.piece.2 += new_bytes;
            self.request_end = Some(segment.seq + segment.payload_len);
        } else {
            self.reply_bytes += new_bytes;
        }
    }
}
