//! Was a partial segment held by TCP_CORK or MSG_MORE until the timer?
//!
//! A corked tail leaves when the zero-window probe timer fires: max(RTO, 200 ms) after everything before it was
//! acknowledged (tcp_check_probe_timer and tcp_probe0_base, include/net/tcp.h, 4.19 to 6.18; 2.6.18 used the plain
//! RTO). The 200 ms of tcp(7) hold only where the round trip is close to nothing.

use tcpwhy_wire::Duration;

use super::verdict::Verdict;
use super::wait::Wait;
use crate::bill::charge::Charge;
use crate::bill::split::Split;
use crate::flow::half::Half;
use crate::flow::order::{Order, Queue};
use crate::words::cause::Cause;
use crate::words::limits::{BURST_GAP, RTO_MIN};
use crate::words::report::{Confidence, Detail, Trigger};

pub(crate) fn judge(wait: &Wait<'_>) -> Option<Verdict> {
    if let Some(verdict) = announced_more(wait) {
        return Some(verdict);
    }
    let small = wait.segment.payload_len < wait.mss;
    if wait.order != Order::New || !small || wait.last.queue == Queue::Emptied || wait.gap < RTO_MIN {
        return None;
    }
    let half = wait.half;
    if half.room_left().is_some_and(|room| room < wait.mss as i32) {
        return None; // the window probe timer's other job: a window smaller than a segment
    }
    let idle_since = half.view.all_acked().filter(|release| release.effective >= wait.last.at)?;
    let waited = wait.segment.at - idle_since.effective;
    let timer = half.rto.rto().max(RTO_MIN);
    if !agrees(waited, timer, wait.rtt(), wait.hair()) {
        return None;
    }
    let confidence = Confidence::Likely;
    let detail =
        Detail { held_bytes: Some(wait.segment.payload_len), timer: Some(timer), ..Detail::default() };
    let charge = Charge::new(Cause::Cork, half.side, Duration::ZERO, confidence)
        .evidence(idle_since.packet, wait.segment.packet)
        .detail(detail);
    Some(Verdict { split: Split::of(wait.gap).rest(charge), trigger: Trigger::Timer })
}

/// MSG_MORE holds for one call (tcp_push, net/ipv4/tcp.c): the next acknowledgement takes the partial segment along. It
/// leaves without PSH although nothing but the end of what was written can have made it small.
fn announced_more(wait: &Wait<'_>) -> Option<Verdict> {
    let (half, segment) = (wait.half, wait.segment);
    let partial = segment.payload_len < wait.mss;
    let flags = segment.flags;
    if wait.order != Order::New
        || !partial
        || flags.psh()
        || flags.fin()
        || wait.last.queue == Queue::Emptied
        || wait.gap < BURST_GAP
    {
        return None;
    }
    let release = half.view.advanced().filter(|release| wait.follows(release))?;
    if half.room_left().is_some_and(|room| room < wait.mss as i32) || release.room < wait.mss as i32 {
        return None; // the window cut it
    }
    let detail = Detail {
        held_bytes: Some(segment.payload_len),
        form: Some("until-acknowledged"),
        ..Detail::default()
    };
    let charge = Charge::new(Cause::Cork, half.side, Duration::ZERO, Confidence::Likely)
        .evidence(release.packet, segment.packet)
        .detail(detail);
    Some(Verdict { split: Split::of(wait.gap).rest(charge), trigger: Trigger::Packet(release.packet) })
}

/// Whether a wait from the last acknowledgement (or from the write, with nothing in flight) is the timer's.
pub(crate) fn agrees(waited: Duration, timer: Duration, rtt: Duration, variation: Duration) -> bool {
    let timer = timer.max(RTO_MIN);
    // A sleep of 200 ms starts with the write, a round trip before the acknowledgement, and ends sooner.
    let floor = RTO_MIN + rtt + Duration::from_micros(800);
    // The timer wheel rounds up by up to an eighth (kernel/time/timer.c), and the estimate lags the kernel's.
    waited >= floor.max(timer - timer.divided_by(20))
        && waited <= timer + timer.divided_by(6) + Duration::from_millis(16) + variation
}

/// Whether a wait for a small reply is the timer's: the whole reply was corked, so that nothing was in flight and the
/// timer began with the write. A server that sleeps for a round number of milliseconds does not count.
/// One that has corked before, again and again, needs no such exactness.
pub(crate) fn agrees_alone(waited: Duration, timer: Duration, corked: u32) -> bool {
    let past_round = waited.as_nanos() % ROUND.as_nanos();
    let round_number = past_round > 0 && past_round < ROUND_SLACK.as_nanos();
    is_of_timer(waited, timer, corked) && (corked >= USED_TO || !round_number)
}

/// The same, where a sleep of a round number would take as long.
pub(crate) fn is_of_timer(waited: Duration, timer: Duration, corked: u32) -> bool {
    if waited < SHORTEST {
        return false;
    }
    let timer = timer.max(RTO_MIN);
    // The timer fires on a tick, 2 to 8 ms behind its time at HZ=250; from 256 ms on the wheel is coarser by eight
    // (kernel/time/timer.c), and the estimate of a long timer that decays is a few percent off.
    let coarse = corked >= USED_TO || timer > Duration::from_millis(256);
    let (early, late) = if coarse {
        (timer - timer.divided_by(20), timer + timer.divided_by(8) + Duration::from_millis(8))
    } else {
        (timer + Duration::from_micros(2_500), timer + Duration::from_millis(12))
    };
    waited >= early && waited <= late
}

/// Sooner than the shortest of them: RTO_MIN less a twentieth.
pub(crate) const SHORTEST: Duration = Duration::from_millis(190);

/// So many corked replies are a habit.
const USED_TO: u32 = 2;

/// What people let servers sleep is a multiple of this, and takes this much longer.
const ROUND: Duration = Duration::from_millis(50);
const ROUND_SLACK: Duration = Duration::from_micros(1_500);

/// The charge for a reply that was corked as a whole.
pub(crate) fn alone(half: &Half, held_bytes: u32, seen_before: bool) -> Charge {
    let detail = Detail {
        held_bytes: Some(held_bytes),
        timer: Some(half.rto.rto()),
        form: Some("whole-reply"),
        ..Detail::default()
    };
    let confidence = if seen_before { Confidence::Likely } else { Confidence::Possible };
    Charge::new(Cause::Cork, half.side, Duration::ZERO, confidence).detail(detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_corked_before_is_forgiven_a_late_timer_and_a_round_number() {
        let [timer, long] = [204, 450].map(Duration::from_millis);
        let late = Duration::from_millis(220);
        let round = Duration::from_micros(500_900);
        assert!(!agrees_alone(late, timer, 0) && !agrees_alone(round, long, 1));
        assert!(agrees_alone(late, timer, 2) && agrees_alone(round, long, 2));
        assert!(!agrees_alone(Duration::from_millis(260), timer, 9));
    }

    /// The timer begins with the acknowledgement and fires late rather than early; a sleep of 200 ms begins with the write, a round
    /// trip before that.
    #[test]
    fn a_tail_leaves_with_the_timer_and_not_with_a_sleep() {
        let [rtt, timer, none] = [4_000, 204_000, 0].map(Duration::from_micros);
        let tail = |waited_us, variation| agrees(Duration::from_micros(waited_us), timer, rtt, variation);
        assert!(!tail(200_900, none) && !tail(204_500, none) && tail(205_000, none) && tail(253_000, none));
        assert!(!tail(260_000, none) && tail(260_000, Duration::from_millis(8)));
        assert!(!agrees(Duration::from_millis(350), Duration::from_millis(400), rtt, none));
    }

    /// A timer of up to 256 ms fires within a few ticks; a longer one on a coarser wheel, of an estimate that is a little off.
    #[test]
    fn a_whole_reply_leaves_with_its_timer() {
        let alone =
            |waited, timer| agrees_alone(Duration::from_millis(waited), Duration::from_millis(timer), 0);
        assert!(!alone(204, 204) && alone(208, 204) && !alone(220, 204));
        assert!(!alone(280, 300) && alone(290, 300) && alone(340, 300) && !alone(349, 300));
    }
}
