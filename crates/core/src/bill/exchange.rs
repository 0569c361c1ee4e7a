//! What has each direction of an exchange cost so far, and what of that may still not count?
//!
//! Two paths run through an exchange: the request's, from its first byte to its latest, and the reply's. A reply
//! segment continues the reply before it, or answers request bytes that came since; in the second case its account is
//! the request's account and the server's part. Every account spans the time from the exchange's first byte to its
//! path's last segment, so that whichever path the reply took, its lines sum to what passed.

mod late;
pub(crate) mod open;
mod pieces;
mod usual;
mod woken;

use tcpwhy_wire::{Duration, Instant, Segment};

use crate::bill::account::Account;
use crate::bill::charge::Charge;
use crate::bill::early::EarlyWaits;
use crate::bill::held::DOUBTED;
use crate::bill::revise::{Accounts, Revision};
use crate::bill::split::Split;
use crate::bill::suspects::{Suspect, Suspects};
use crate::bill::tail::Tail;
use crate::estimate::growth::Shape;
use crate::estimate::rate::Rate;
use crate::flow::direction::Flow;
use crate::flow::segment_class::LastData;
use crate::words::cause::{Cause, Side};
use crate::words::limits::SEND_BUFFER_MIN;
use crate::words::report::Confidence;

/// An application that writes again within this after a wait may have been waiting too.
const OWN_PACE_MIN: Duration = Duration::from_millis(1);

/// Waits of a start that slackened: of a window, it would soon be past that.
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
    /// What its application may have taken since the sender last was known to keep a beat.
    unsure: Duration,
    /// Most paths have nothing to keep aside.
    aside: Option<Box<Aside>>,
}

/// What may or may not count in the end.
#[derive(Clone, Debug, Default, PartialEq)]
struct Aside {
    /// What blocked the sender since the application last wrote at its own pace.
    blocked: Account,
    /// Retransmissions since `last`, not yet known to have repaired anything.
    pending: Account,
    pending_last: Option<LastData>,
    /// The sender's clock at the first of them.
    pending_stamp: Option<u32>,
    /// When the timer began that one of them waited for, when it ended, and whose it is.
    timer: Option<(Instant, Instant, Side)>,
    /// The last waits that may turn out to have been for that timer.
    suspects: Suspects,
    /// Waits in which the link's rate was not known for certain.
    early: EarlyWaits,
    /// What a start was charged that slackened, should the send buffer prove to have held it.
    doubts: Vec<Doubt>,
    held_tail: Option<Tail>,
}

/// A wait that no window held if flights go on as no window's do.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Doubt {
    cause: Cause,
    ns: Duration,
    packets: [u64; 2],
}

impl Aside {
    fn clear(&mut self) {
        self.blocked.clear();
        self.pending.clear();
        self.pending_last = None;
        self.pending_stamp = None;
        self.timer = None;
        self.suspects.clear();
        self.early.clear();
        self.doubts.clear();
        self.held_tail = None;
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

    /// Bytes that it takes besides its own.
    fn heap(&self) -> usize {
        let aside = |aside: &Aside| {
            let kept = aside.early.heap() + aside.doubts.capacity() * size_of::<Doubt>();
            size_of::<Aside>() + aside.blocked.heap() + aside.pending.heap() + aside.suspects.heap() + kept
        };
        self.account.heap() + self.aside.as_deref().map_or(0, aside)
    }

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

    /// New data went out after `split`; missing data with a timer that began at `timer_from`.
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
        if split.has_only(Cause::SenderThink.bit()) {
            // The application wrote at its own pace. What held earlier bytes back in the meantime delayed nothing,
            // unless it also kept the application from going on, or there was more in its queue.
            let shown = |charge: &Charge| charge.confidence > Confidence::Possible;
            let own_pace = split.charges().any(|charge| charge.ns >= OWN_PACE_MIN && shown(charge));
            if own_pace && self.blocked_bytes < SEND_BUFFER_MIN {
                self.revise(Revision::OwnPace { packet: at.packet, sender: sender.side });
            }
            self.absorb_blocked();
            self.account.charge_split(split);
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
        self.blocked_bytes = self.blocked_bytes.saturating_add(at.len);
        self.last = Some(at);
        self.index += 1;
    }

    /// Data went out again after `split`, with a timer that began at `timer_from`: it counts only if it proves to have
    /// been needed.
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
        aside.pending_last = Some(at);
    }

    /// Whether it keeps one more wait in which the link's rate was not known for certain.
    #[inline]
    pub(crate) fn keeps_early(&self) -> bool {
        self.aside.as_ref().is_none_or(|aside| aside.early.has_room())
    }

    /// Keeps a wait from `last` to the segment just taken until the link's rate has shown; both ends' distances from the
    /// capture are given.
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

    /// Charges to the link what it needed in the waits that were kept, no more and no less.
    pub(crate) fn charge_early(&mut self, rate: Option<Rate>, sender: Side) {
        let (Some(aside), Some(rate)) = (&mut self.aside, rate) else { return };
        aside.early.settle(rate, sender, [&mut aside.blocked, &mut self.account]);
    }

    /// A beat shows only once it has lasted for `beat`: what the application may have taken until then was the pace as well.
    pub(crate) fn keep_beat(&mut self, split: &Split, beat: Duration, sender: Side) {
        for charge in split.charges() {
            match charge.cause {
                Cause::SenderThink if charge.confidence == Confidence::Possible => self.unsure += charge.ns,
                Cause::Pacing => {
                    let unsure = std::mem::take(&mut self.unsure).min(beat);
                    self.account.revise(Revision::BeatShown { pacing: charge, unsure, sender });
                }
                _ => {}
            }
        }
    }

    /// Weighs the wait just taken, and those before it, by how the flights went.
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

    /// What the sender waited for from `from` to `until` was the timer that ran meanwhile.
    fn bill_to_timer(&mut self, from: Instant, until: Instant, sender: Side) {
        let Some(aside) = &mut self.aside else { return };
        let waits: Vec<Suspect> = aside.suspects.drain(from, until).collect();
        self.revise(Revision::TimerRan { waits: &waits, from, sender });
    }

    /// Whether an acknowledgement of everything, which echoes this time stamp, answers the first copy (the Eifel
    /// algorithm, RFC 3522).
    pub(crate) fn answered_before_repair(&self, echoed: u32) -> bool {
        self.aside.as_ref().is_some_and(|aside| {
            aside.pending_last.is_some()
                && aside.pending_stamp.is_some_and(|stamp| (echoed.wrapping_sub(stamp) as i32) < 0)
        })
    }

    /// Whether a segment that echoes this time stamp left after data that was sent again had arrived (RFC 7323, 4.1).
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

    /// When the last retransmission went out that may have repaired nothing.
    pub(crate) fn repaired_at(&self) -> Option<Instant> {
        self.pending_last().map(|last| last.at)
    }

    /// When the last data left, if that was a tail loss probe's.
    pub(crate) fn probed_at(&self) -> Option<Instant> {
        let at = self.frontier()?.at;
        self.aside.as_ref().filter(|aside| aside.suspects.last_probe() == Some(at)).map(|_| at)
    }

    /// The retransmissions were needed.
    pub(crate) fn commit(&mut self) {
        if let Some((from, until, sender)) = self.aside.as_mut().and_then(|aside| aside.timer.take()) {
            self.bill_to_timer(from, until, sender);
        }
        let Some(aside) = &mut self.aside else { return };
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
            self.revise(Revision::RepairUnneeded);
        }
    }

    /// What it has cost so far, whatever may still be taken back.
    pub(crate) fn so_far(&self) -> Account {
        let mut account = self.account.clone();
        if let Some(aside) = &self.aside {
            account.absorb(&mut aside.blocked.clone());
        }
        account
    }

    /// Revises what it has cost so far, whether that counts already or may not in the end.
    pub(crate) fn revise(&mut self, revision: Revision<'_>) {
        let settled = &mut self.account;
        let accounts = match self.aside.as_deref_mut() {
            Some(Aside { pending, blocked, .. }) => {
                Accounts { pending: Some(pending), blocked: Some(blocked), settled }
            }
            None => Accounts { pending: None, blocked: None, settled },
        };
        revision.apply(accounts);
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
    pub(crate) fn settle(&mut self) -> &mut Account {
        self.commit();
        self.absorb_blocked();
        self.blocked_bytes = 0;
        &mut self.account
    }
}
