//! How much did the link have to do before its rate was known?
//!
//! Near the sender, the bottleneck's rate shows in consecutive acknowledgements. A message's first
//! waits end before these have come, or after a few from a small flight, which a host that is slow
//! to answer spreads like a slow link. Such waits are kept as times and bytes until the message
//! ends or is answered: then the link's share of each is what it needed at the rate known by then.
//!
//! Near the receiver, every segment shows its own time on the link once the rate is known: the
//! segments that ended earlier waits are kept in the same way.

use tcpwhy_wire::{Duration, Instant};

use crate::bill::account::Account;
use crate::bill::charge::Charge;
use crate::bill::held::HOLDS;
use crate::bill::revise::{Accounts, Revision};
use crate::bill::split::Split;
use crate::estimate::rate::Rate;
use crate::flow::direction::Flow;
use crate::flow::segment_class::LastData;
use crate::words::cause::{Cause, Side};
use crate::words::report::{Confidence, Detail};

/// Waits kept. A rate shows after a few acknowledgements; a link that never shows one holds nobody.
const WAITS_MAX: usize = 16;
/// Waits of one sender during which the link's rate was uncertain, oldest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct EarlyWaits {
    waits: Vec<EarlyWait>,
}

/// A wait, and what was on its way meanwhile.
#[derive(Clone, Copy, Debug, PartialEq)]
struct EarlyWait {
    from: Instant,
    until: Instant,
    packets: [u64; 3],
    /// Payload bytes sent in all before it began.
    sent: u64,
    /// Bytes on the link: those sent since the wait before, and all that were unacknowledged.
    more: u32,
    flight: u32,
    /// The latest time at which the link had passed all but this many of the bytes, as the
    /// acknowledgement that ended the wait shows.
    passed: Option<(Instant, u32)>,
    /// What held the sender, for how long, and how long the link held it at the rate then known.
    cause: Cause,
    confidence: Confidence,
    ns: Duration,
    link: Duration,
    rate: Option<Rate>,
    /// Near the receiver: the bytes on the link of the segment that ended it.
    alone: Option<u32>,
}

impl EarlyWaits {
    pub(crate) fn clear(&mut self) {
        self.waits.clear();
    }

    /// Whether there are none.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.waits.is_empty()
    }

    /// Whether there is room for one more.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        self.waits.len() < WAITS_MAX
    }

    /// Bytes of heap memory in use.
    pub(crate) fn heap(&self) -> usize {
        self.waits.capacity() * size_of::<EarlyWait>()
    }

    /// Keeps a wait of `sender` from `last` to `at`, split as in `split`. The sender is at
    /// `rtt_to_sender` from the capture, its peer at `rtt_to_receiver`.
    pub(crate) fn keep(
        &mut self,
        split: &Split,
        last: &LastData,
        at: &LastData,
        sender: &Flow,
        mss: u32,
        [rtt_to_sender, rtt_to_receiver]: [Duration; 2],
    ) {
        let of = |causes: u32| split.charges().find(move |charge| causes & charge.cause.bit() != 0);
        let link = of(Cause::Bandwidth.bit()).map_or(Duration::ZERO, |charge| charge.ns);
        // The application's part can only have been longer, and only where the link was taken for
        // too slow.
        let pause = of(Cause::SenderThink.bit()).filter(|_| link.is_positive());
        let Some(held) = of(HOLDS).or(pause) else { return };
        let far = rtt_to_sender > rtt_to_receiver;
        if far && sender.rate(false).is_some() {
            return;
        }
        let sent = sender.bytes - u64::from(at.len).min(sender.bytes);
        let before = self.waits.last().map_or(0, |before| before.sent);
        let more = u32::try_from(sent.saturating_sub(before)).unwrap_or(u32::MAX);
        let left = |bytes| sender.on_wire(bytes, u32::from(at.flight_segments.saturating_sub(1)), mss);
        let ack = sender.view.clocking_ack().filter(|ack| ack.earliest_departure > last.at);
        self.waits.push(EarlyWait {
            from: last.at,
            until: at.at,
            packets: held.evidence,
            sent,
            more: sender.on_wire(more, 0, mss),
            flight: sender.on_wire(last.flight, last.flight_segments.into(), mss),
            passed: ack.map(|ack| (ack.earliest_departure - rtt_to_sender - rtt_to_receiver, left(ack.left))),
            cause: held.cause,
            confidence: held.confidence,
            ns: held.ns,
            link,
            rate: sender.rate(!far),
            alone: far.then(|| sender.on_wire(at.len, 1, mss)),
        });
    }

    /// Recharges each wait to the link, at this rate, as far as that is known, and to what held the sender, in the accounts
    /// that have them; then forgets the waits.
    pub(crate) fn settle(
        &mut self,
        (rate, sure): (Rate, Confidence),
        sender: Side,
        [aside, account]: [&mut Account; 2],
    ) {
        let mut busy_before: Option<Instant> = None;
        let mut take_back = |cause, ns| {
            let accounts = Accounts { pending: None, blocked: Some(&mut *aside), settled: &mut *account };
            Revision::RateShown { cause, ns, sender }.apply(accounts)
        };
        let mut charges: [Option<Charge>; WAITS_MAX] = [const { None }; WAITS_MAX];
        for (wait, charge) in self.waits.drain(..).zip(&mut charges) {
            let detail = Detail { rate_bps: Some(rate.bits_per_second()), ..Detail::default() };
            let [begins, ends, released] = wait.packets;
            if let Some(bytes) = wait.alone {
                let ns = take_back(wait.cause, rate.time_for(bytes).min(wait.ns));
                let busy = Charge::new(Cause::Bandwidth, sender, ns, sure).detail(detail);
                *charge = Some(busy.evidence(begins, ends));
                continue;
            }
            if wait.rate.is_some_and(|then| !rate.is_faster(then)) {
                busy_before = Some(wait.from + wait.link);
                continue;
            }
            let all = wait.from + rate.time_for(wait.flight);
            let added = busy_before.map(|until| until.max(wait.from) + rate.time_for(wait.more));
            // What has passed since the last of it was sent: the link may have been idle before.
            let shown =
                wait.passed.filter(|(by, _)| *by >= wait.from).map(|(by, left)| by + rate.time_for(left));
            let busy_until = [added, shown].into_iter().flatten().fold(all, Instant::min);
            busy_before = Some(busy_until);
            let busy = (busy_until.min(wait.until) - wait.from).at_least_zero().min(wait.ns + wait.link);
            let now = if wait.rate.is_some() {
                let ns = take_back(Cause::Bandwidth, wait.link - busy.min(wait.link));
                Charge::new(wait.cause, sender, ns, wait.confidence)
            } else {
                let ns = take_back(wait.cause, busy);
                Charge::new(Cause::Bandwidth, sender, ns, sure).detail(detail)
            };
            *charge = Some(now.evidence(begins, ends).released_by(released));
        }
        charges.iter().flatten().for_each(|charge| account.charge(charge));
    }
}
