//! What did the link have to do before its rate was known?
//!
//! Near the sender the bottleneck's rate shows in acknowledgements that come one behind the other. A message's first waits
//! end before these have come, and all of each is billed to what held the sender. They are kept as times and bytes until
//! the message ends or is answered: then the link's share of each, at the rate that has shown meanwhile, is the link's.

use tcpwhy_wire::{Duration, Instant};

use crate::account::{Charge, Split};
use crate::cause::{Cause, Side};
use crate::half::{Half, LastData};
use crate::rate::Rate;

/// Waits that are kept. A rate shows after a few acknowledgements; a link that never shows one holds nobody.
const WAITS_MAX: usize = 16;
/// What holds a sender that has more to send.
pub(crate) const HOLDS: u32 = Cause::DelayedAckCwnd.bit()
    | Cause::SlowStart.bit()
    | Cause::SlowStartAfterIdle.bit()
    | Cause::CongestionWindow.bit()
    | Cause::ReceiveWindow.bit()
    | Cause::SendBuffer.bit()
    | Cause::Pacing.bit();

/// Waits of one sender whose link's rate was not known then, oldest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct EarlyWaits {
    waits: Vec<EarlyWait>,
}

/// A wait, and what was on its way meanwhile.
#[derive(Clone, Copy, Debug)]
struct EarlyWait {
    from: Instant,
    until: Instant,
    packets: [u64; 2],
    /// Payload bytes that had been sent in all when it began.
    sent: u64,
    /// What went to the link since the wait before it, and all that was not acknowledged, bytes on the link.
    more: u32,
    flight: u32,
    /// When the bytes behind which these were left had passed the link at the latest, as the acknowledgement shows that
    /// ended it.
    passed: Option<(Instant, u32)>,
    cause: Cause,
    ns: Duration,
}

/// The link's share of a wait.
pub(crate) struct Share {
    pub cause: Cause,
    pub ns: Duration,
    pub packets: [u64; 2],
}

impl EarlyWaits {
    pub(crate) fn clear(&mut self) {
        self.waits.clear();
    }

    /// Bytes that it takes besides its own.
    pub(crate) fn heap(&self) -> usize {
        self.waits.capacity() * size_of::<EarlyWait>()
    }

    /// `sender`, which is `own` away from the capture and its peer `peer`, waited from `last` to `at`, and `split` says
    /// for what.
    pub(crate) fn keep(
        &mut self,
        split: &Split,
        last: &LastData,
        at: &LastData,
        sender: &Half,
        mss: u32,
        [own, peer]: [Duration; 2],
    ) {
        let held = split.charges().find(|charge| HOLDS & charge.cause.bit() != 0);
        let Some(held) = held.filter(|_| self.waits.len() < WAITS_MAX) else { return };
        let sent = sender.bytes - u64::from(at.len).min(sender.bytes);
        let before = self.waits.last().map_or(0, |before| before.sent);
        let more = u32::try_from(sent.saturating_sub(before)).unwrap_or(u32::MAX);
        let left = |bytes| sender.on_wire(bytes, at.flight_segments.saturating_sub(1), mss);
        let release = sender.view.advanced().filter(|release| release.effective > last.at);
        self.waits.push(EarlyWait {
            from: last.at,
            until: at.at,
            packets: [last.packet, at.packet],
            sent,
            more: sender.on_wire(more, 0, mss),
            flight: sender.on_wire(last.flight, last.flight_segments, mss),
            passed: release.map(|release| (release.effective - own - peer, left(release.left))),
            cause: held.cause,
            ns: held.ns,
        });
    }

    /// The link's share of each wait at this rate; forgets them.
    pub(crate) fn shares(&mut self, rate: Rate) -> impl Iterator<Item = Share> {
        let mut busy_before: Option<Instant> = None;
        self.waits.drain(..).map(move |wait| {
            let all = wait.from + rate.time_for(wait.flight);
            let added = busy_before.map(|until| until.max(wait.from) + rate.time_for(wait.more));
            let shown = wait.passed.map(|(by, left)| by + rate.time_for(left));
            let busy_until = [added, shown].into_iter().flatten().fold(all, Instant::min);
            busy_before = Some(busy_until);
            let ns = (busy_until.min(wait.until) - wait.from).at_least_zero().min(wait.ns);
            Share { cause: wait.cause, ns, packets: wait.packets }
        })
    }
}

/// The charge of a share.
pub(crate) fn charge(share: &Share, ns: Duration, sender: Side, rate: Rate) -> Charge {
    use crate::report::{Confidence, Detail};
    let detail = Detail { rate_bps: Some(rate.bits_per_second()), ..Detail::default() };
    let [stopped, released] = share.packets;
    Charge::new(Cause::Bandwidth, sender, ns, Confidence::Likely).evidence(stopped, released).detail(detail)
}
