//! Was the congestion window used up, and was it growing, restarted, or starved of acknowledgements?
//!
//! The sender had more to send, neither Nagle nor the advertised window stopped it, and it went on when an
//! acknowledgement of new data arrived. The bytes of each round tell the rest: growing by half or more is slow start
//! (RFC 5681, 3.1), small again after an idle time longer than the RTO is its restart (RFC 5681, 4.1;
//! tcp_slow_start_after_idle), exactly flat without a loss is the sending socket's buffer: a congestion window that is
//! used up always grows.

use tcpwhy_wire::{Duration, Seq};

use super::{HELD_BACK_MIN, Verdict, Wait, bandwidth};
use crate::account::{Charge, Split};
use crate::cause::Cause;
use crate::half::{Order, Queue, Release};
use crate::report::{Confidence, Detail, Trigger};

/// RFC 6928; Linux since 2.6.39.
const INITIAL_WINDOW_SEGMENTS: u32 = 10;
/// A silence shorter than this may end with an acknowledgement by chance.
const WHOLE_ROUND_MIN: Duration = Duration::from_millis(1);

/// What the rounds so far say about the window.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rounds {
    /// First byte of the round under way.
    started: Option<Seq>,
    /// Bytes of the last complete round.
    last: u32,
    /// The largest round before the last idle time.
    before_idle: u32,
    largest: u32,
    /// Rounds without growth, in a row.
    flat: u8,
    lost: bool,
}

impl Rounds {
    /// Nothing was sent for longer than the retransmission timeout: the window may be reset.
    pub(crate) fn on_idle(&mut self, next: Seq) {
        let largest = self.largest.max(self.bytes_until(next)).max(self.before_idle);
        *self = Self { before_idle: largest, ..Self::default() };
    }

    /// A message begins with this byte: its first bytes are a round of their own.
    pub(crate) fn on_message(&mut self, first: Seq) {
        self.started = Some(first);
    }

    /// Segments were lost: growth from here on is recovery or congestion avoidance.
    pub(crate) fn on_loss(&mut self) {
        self.lost = true;
    }

    /// Bytes are in flight: the window allowed them.
    pub(crate) fn on_flight(&mut self, bytes: u32) {
        self.largest = self.largest.max(bytes);
    }

    /// A window ended the round under way before the byte `next`.
    pub(crate) fn on_round(&mut self, next: Seq) {
        let bytes = self.bytes_until(next);
        self.flat = if self.grew(bytes) { 0 } else { self.flat.saturating_add(1) };
        self.last = bytes;
        self.largest = self.largest.max(bytes);
        self.started = Some(next);
    }

    fn bytes_until(&self, next: Seq) -> u32 {
        self.started.map_or(0, |started| (next - started).max(0) as u32)
    }

    fn grew(&self, bytes: u32) -> bool {
        u64::from(bytes) * 8 > u64::from(self.last) * 9
    }
}

/// What a slow host takes to answer an acknowledgement with the next segment.
const SLOW_HOST: Duration = Duration::from_millis(4);

pub(crate) fn judge(wait: &Wait<'_>) -> Option<Verdict> {
    if wait.order != Order::New || wait.gap < super::BURST_GAP {
        return None;
    }
    let advanced = wait.half.view.advanced();
    let release = advanced.filter(|release| wait.follows(release) || follows_late(wait, release));
    let Some(release) = release else {
        let queued = match wait.last.queue {
            Queue::More => wait.half.flight() > 0,
            // A duplicate acknowledgement lets one segment more leave (limited transmit, RFC 3042).
            Queue::Unknown if after_loss_signal(wait) => true,
            // Segments in quick succession with several in flight are a queue being sent.
            Queue::Unknown => wait.half.flight() > 2 * wait.mss && wait.gap < wait.rtt().divided_by(2),
            Queue::Emptied => false,
        };
        return queued.then(|| spaced(wait));
    };
    let (cause, form, confidence) = match wait.last.queue {
        Queue::Emptied => counted_out(wait, &release)?,
        _ => which(wait, &release),
    };
    let detail = Detail {
        flight_bytes: Some(u64::from(release.flight)),
        window_bytes: (release.window > 0).then(|| u64::from(release.window)),
        ack_delay: (cause == Cause::DelayedAckCwnd).then(|| wait.ack_delay(&release)).flatten(),
        form,
        ..Detail::default()
    };
    let mut split = Split::of(wait.gap);
    if !wait.follows(&release) && !wait.near_sender() {
        let late = Charge::new(
            Cause::Queueing,
            wait.half.side,
            wait.segment.at - release.effective,
            Confidence::Possible,
        );
        split.take(late.evidence(release.packet, wait.segment.packet));
    }
    bandwidth::take(wait, &mut split);
    let charge = Charge::new(cause, wait.half.side, Duration::ZERO, confidence)
        .evidence(release.packet, wait.segment.packet)
        .detail(detail);
    Some(Verdict { split: split.rest(charge), trigger: Trigger::Packet(release.packet) })
}

/// Small packets of a sender without Nagle leave one by one until as many are out as the window counts (TCP_INIT_CWND,
/// 10, at first); what the application writes from then on is joined and leaves with the next acknowledgement. If it goes
/// on as before instead, the application was waiting too: small packets fill a send buffer by what the kernel spends
/// on each (sk_wmem_alloc counts truesize).
fn counted_out(wait: &Wait<'_>, release: &Release) -> Option<(Cause, Option<&'static str>, Confidence)> {
    let many = wait.last.flight_segments >= INITIAL_WINDOW_SEGMENTS;
    if !many || wait.habits.nagle_ignored == 0 || !wait.follows(release) {
        return None;
    }
    if wait.segment.payload_len > wait.last.len {
        return Some(which(wait, release));
    }
    let whole_round = wait.gap >= wait.rtt() - wait.rtt().divided_by(4) && wait.gap >= WHOLE_ROUND_MIN;
    whole_round.then_some((Cause::SendBuffer, Some("small-writes"), Confidence::Possible))
}

fn which(wait: &Wait<'_>, release: &Release) -> (Cause, Option<&'static str>, Confidence) {
    let rounds = &wait.habits.rounds;
    let serialised = bandwidth::rate(wait).map_or(Duration::ZERO, |rate| rate.time_for(release.flight));
    let held_back = wait.ack_delay(release).map_or(Duration::ZERO, |delay| delay - serialised);
    // On a long path the window costs its round trip with a prompt acknowledgement too.
    if held_back >= HELD_BACK_MIN.max(wait.gap.divided_by(4)) && release.flight <= 4 * wait.mss {
        return (Cause::DelayedAckCwnd, None, Confidence::Likely);
    }
    if rounds.lost {
        return (Cause::CongestionWindow, Some("after-loss"), Confidence::Likely);
    }
    let bytes = rounds.bytes_until(wait.segment.seq);
    if !rounds.grew(bytes) && rounds.last > 0 {
        // A used-up congestion window grows by a segment a round at least (RFC 5681, 3.1).
        let exactly_flat = bytes <= rounds.last + wait.mss;
        return match (exactly_flat, rounds.flat) {
            (true, 0) => (Cause::SendBuffer, None, Confidence::Possible),
            (true, _) => (Cause::SendBuffer, None, Confidence::Likely),
            (false, _) => (Cause::CongestionWindow, Some("avoidance"), Confidence::Likely),
        };
    }
    // The window had grown past the largest round, by up to as much again: what was acknowledged last counted too.
    if u64::from(rounds.before_idle) * 7 > u64::from(bytes) * 4 {
        return (Cause::SlowStartAfterIdle, None, Confidence::Likely);
    }
    (Cause::SlowStart, None, Confidence::Likely)
}

/// Far from the sender, a segment of a queue that was not empty may have been late on its way, or the acknowledgement
/// was: nothing else can have let it leave. Near a slow host it comes shortly behind, as nothing paced would.
fn follows_late(wait: &Wait<'_>, release: &Release) -> bool {
    let late = wait.segment.at - release.effective;
    let most =
        if wait.near_sender() { wait.gap.divided_by(8).min(SLOW_HOST) } else { wait.own.divided_by(2) };
    wait.last.queue != Queue::Emptied
        && release.effective > wait.last.at
        && late.is_positive()
        && late <= most
}

/// Whether the segment left as a duplicate or selective acknowledgement arrived.
fn after_loss_signal(wait: &Wait<'_>) -> bool {
    wait.half.view.loss_signal.is_some_and(|at| at > wait.last.at && wait.segment.at - at <= wait.hair())
}

/// More was queued, no acknowledgement of new data released it: recovery from a loss goes on duplicate and selective
/// acknowledgements (RFC 6675), else the sender spaced its segments, or the bottleneck did.
fn spaced(wait: &Wait<'_>) -> Verdict {
    let mut split = Split::of(wait.gap);
    bandwidth::take(wait, &mut split);
    let recovering =
        wait.half.view.loss_signal.is_some_and(|at| at + wait.rtt() + wait.hair() >= wait.segment.at);
    let (cause, form) = if recovering {
        (Cause::CongestionWindow, Some("recovery"))
    } else if wait.gap < wait.rtt().divided_by(2) {
        (Cause::Pacing, None)
    } else {
        (Cause::Unexplained, None)
    };
    let charge = Charge::new(cause, wait.half.side, Duration::ZERO, Confidence::Possible)
        .evidence(wait.last.packet, wait.segment.packet)
        .detail(Detail { form, ..Detail::default() });
    Verdict { split: split.rest(charge), trigger: super::burst(&wait.last, wait.segment.at) }
}

/// Whether a window ended a round before this segment.
pub(crate) fn ends_round(wait: &Wait<'_>, verdict: &Verdict) -> bool {
    let by_window = verdict.split.charges().any(|charge| {
        matches!(
            charge.cause,
            Cause::SlowStart
                | Cause::SlowStartAfterIdle
                | Cause::CongestionWindow
                | Cause::SendBuffer
                | Cause::DelayedAckCwnd
                | Cause::ReceiveWindow
        )
    });
    by_window
        && wait.order == Order::New
        && (wait.gap >= wait.rtt().divided_by(4) || wait.gap >= HELD_BACK_MIN)
}
