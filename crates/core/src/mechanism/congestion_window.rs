//! Was the congestion window used up, and was it growing, restarted, or starved of acknowledgements?
//!
//! The sender had more to send, neither Nagle nor the advertised window stopped it, and it went on when an
//! acknowledgement of new data arrived. The flight that was used up tells the rest: doubling by round is slow start
//! (RFC 5681, 3.1), small again after an idle time longer than the RTO is its restart (RFC 5681, 4.1;
//! tcp_slow_start_after_idle), flat with the queue emptied each time is the sending socket's buffer.
//!
//! In each round the time that the bottleneck needed for the round's bytes is bandwidth; only the rest is the window's.

use tcpwhy_wire::Duration;

use super::{HELD_BACK_MIN, Verdict, Wait};
use crate::account::{Charge, Split};
use crate::cause::Cause;
use crate::half::{Order, Queue, Release};
use crate::report::{Confidence, Detail, Trigger};

/// What the rounds so far say about the window.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rounds {
    /// The flight that was used up in the last round that a window ended.
    flight: u32,
    /// The largest flight before the last idle time.
    before_idle: u32,
    flight_max: u32,
    /// Rounds without growth, in a row.
    flat: u8,
    lost: bool,
}

impl Rounds {
    /// Nothing was sent for longer than the retransmission timeout: the window may be reset.
    pub(crate) fn on_idle(&mut self) {
        *self = Self { before_idle: self.flight_max.max(self.before_idle), ..Self::default() };
    }

    /// Segments were lost: growth from here on is congestion avoidance or recovery.
    pub(crate) fn on_loss(&mut self) {
        self.lost = true;
    }

    /// A window ended a round with `flight` bytes outstanding.
    pub(crate) fn on_round(&mut self, flight: u32) {
        let grown = u64::from(flight) * 8 >= u64::from(self.flight) * 9;
        self.flat = if grown { 0 } else { self.flat.saturating_add(1) };
        self.flight = flight;
        self.flight_max = self.flight_max.max(flight);
    }
}

pub(crate) fn judge(wait: &Wait<'_>) -> Option<Verdict> {
    if wait.order != Order::New || wait.gap < super::BURST_GAP {
        return None;
    }
    let release = wait.half.view.advanced.filter(|release| wait.follows(release));
    let Some(release) = release else {
        let queued = match wait.last.queue {
            Queue::More => wait.half.flight() > 0,
            // Segments in quick succession with several in flight are a queue being sent.
            Queue::Unknown => wait.half.flight() > 2 * wait.mss && wait.gap < wait.rtt().divided_by(2),
            Queue::Emptied => false,
        };
        return queued.then(|| spaced(wait));
    };
    if wait.last.queue == Queue::Emptied {
        return None;
    }
    let (cause, form, confidence) = which(wait, &release);
    let detail = Detail {
        flight_bytes: Some(u64::from(release.flight)),
        window_bytes: (release.window > 0).then(|| u64::from(release.window)),
        ack_delay: (cause == Cause::DelayedAckCwnd).then(|| wait.ack_delay(&release)).flatten(),
        form,
        ..Detail::default()
    };
    let mut split = Split::of(wait.gap);
    take_bandwidth(wait, &mut split);
    let charge = Charge::new(cause, wait.half.side, Duration::ZERO, confidence)
        .evidence(release.packet, wait.segment.packet)
        .detail(detail);
    Some(Verdict { split: split.rest(charge), trigger: Trigger::Packet(release.packet) })
}

fn which(wait: &Wait<'_>, release: &Release) -> (Cause, Option<&'static str>, Confidence) {
    let rounds = &wait.habits.rounds;
    let serialised =
        wait.half.rate(wait.near_sender()).map_or(Duration::ZERO, |rate| rate.time_for(release.flight));
    let held_back = wait.ack_delay(release).map_or(Duration::ZERO, |delay| delay - serialised);
    if held_back >= HELD_BACK_MIN && release.flight <= 4 * wait.mss {
        return (Cause::DelayedAckCwnd, None, Confidence::Likely);
    }
    let grown = u64::from(release.flight) * 8 >= u64::from(rounds.flight) * 9;
    let confidence = Confidence::Likely;
    if rounds.lost {
        return (Cause::CongestionWindow, Some("after-loss"), confidence);
    }
    if !grown && rounds.flat > 1 {
        return (Cause::CongestionWindow, Some("flat"), confidence);
    }
    if u64::from(rounds.before_idle) * 3 > u64::from(release.flight) * 4 {
        return (Cause::SlowStartAfterIdle, None, confidence);
    }
    (Cause::SlowStart, None, confidence)
}

/// More was queued, no acknowledgement released it: the sender spaced its segments, or the bottleneck did.
fn spaced(wait: &Wait<'_>) -> Verdict {
    let mut split = Split::of(wait.gap);
    take_bandwidth(wait, &mut split);
    let short = wait.gap < wait.rtt().divided_by(2);
    let cause = if short { Cause::Pacing } else { Cause::Unexplained };
    let charge = Charge::new(cause, wait.half.side, Duration::ZERO, Confidence::Possible)
        .evidence(wait.last.packet, wait.segment.packet);
    Verdict { split: split.rest(charge), trigger: super::burst(&wait.last, wait.segment.at) }
}

/// Charges the bottleneck's share of a wait.
pub(crate) fn take_bandwidth(wait: &Wait<'_>, split: &mut Split) {
    let Some(rate) = wait.half.rate(wait.near_sender()) else { return };
    let bytes = if wait.near_sender() { wait.half.acked_since(&wait.last) } else { wait.segment.payload_len };
    let needed = rate.time_for(bytes);
    // A queue of the transfer's own stands at the bottleneck: acknowledgements come at its rate, with gaps and clumps.
    let standing = wait.near_sender()
        && wait
            .half
            .view
            .advanced
            .and_then(|release| release.rtt)
            .is_some_and(|rtt| rtt > wait.peer + wait.peer.divided_by(4) + Duration::from_millis(1));
    let clumped = !wait.near_sender() && wait.gap <= needed.times(3) + Duration::from_micros(300);
    let share = if standing || clumped { split.left() } else { needed };
    let detail = Detail { rate_bps: Some(rate.bits_per_second()), ..Detail::default() };
    split.take(
        Charge::new(Cause::Bandwidth, wait.half.side, share, Confidence::Likely)
            .evidence(wait.last.packet, wait.segment.packet)
            .detail(detail),
    );
}
