//! Was a partial segment held by TCP_CORK or MSG_MORE until the timer?
//!
//! A corked tail leaves when the zero-window probe timer fires: max(RTO, 200 ms) after everything before it was
//! acknowledged (tcp_check_probe_timer and tcp_probe0_base, include/net/tcp.h, 4.19 to 6.18; 2.6.18 used the plain
//! RTO). The 200 ms of tcp(7) hold only where the round trip is close to nothing.

use tcpwhy_wire::Duration;

use super::{Verdict, Wait};
use crate::account::{Charge, Split};
use crate::cause::Cause;
use crate::half::{Order, Queue};
use crate::report::{Confidence, Detail, Trigger};
use crate::rto::RTO_MIN;

pub(crate) fn judge(wait: &Wait<'_>) -> Option<Verdict> {
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

/// Whether a wait from the last acknowledgement (or from the write, with nothing in flight) is the timer's.
pub(crate) fn agrees(waited: Duration, timer: Duration, rtt: Duration, variation: Duration) -> bool {
    let timer = timer.max(RTO_MIN);
    // A sleep of 200 ms starts with the write, a round trip before the acknowledgement, and ends sooner.
    let floor = RTO_MIN + rtt + Duration::from_micros(800);
    // The timer wheel rounds up by up to an eighth (kernel/time/timer.c), and the estimate lags the kernel's.
    waited >= floor.max(timer - timer.divided_by(20))
        && waited <= timer + timer.divided_by(6) + Duration::from_millis(16) + variation
}
