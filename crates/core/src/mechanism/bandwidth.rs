//! How much of a wait did the bottleneck need for the bytes themselves?
//!
//! In a round that a window stopped, the time that the bottleneck needed for the round's bytes is bandwidth; only the
//! rest belongs to the window. Where a queue of the transfer's own stands at the bottleneck, acknowledgements come at
//! its rate and nothing else delays the sender.

use tcpwhy_wire::Duration;

use super::{Habits, Verdict, Wait};
use crate::account::{Charge, Split};
use crate::cause::Cause;
use crate::rate::Rate;
use crate::report::{Confidence, Detail};

/// The bottleneck's rate as this vantage shows it.
pub(crate) fn rate(wait: &Wait<'_>) -> Option<Rate> {
    wait.half.rate(wait.near_sender())
}

/// Charges the bottleneck's share of a wait.
pub(crate) fn take(wait: &Wait<'_>, split: &mut Split) {
    let Some(rate) = rate(wait) else { return };
    let needed = needed(wait, rate) + wait.habits.bandwidth_credit;
    let share = if queue_stands(wait, rate) { split.left() } else { needed };
    let detail = Detail { rate_bps: Some(rate.bits_per_second()), ..Detail::default() };
    split.take(
        Charge::new(Cause::Bandwidth, wait.half.side, share, Confidence::Likely)
            .evidence(wait.last.packet, wait.segment.packet)
            .detail(detail),
    );
}

/// What the bottleneck needed for the bytes that ended the wait.
fn needed(wait: &Wait<'_>, rate: Rate) -> Duration {
    let acked = wait.half.acked_since(&wait.last);
    // In recovery nothing is acknowledged for good, and a segment leaves for each that arrived (RFC 6675).
    let bytes = if wait.near_sender() && acked > 0 { acked } else { wait.segment.payload_len };
    rate.time_for(bytes)
}

/// Whether bytes of this transfer were waiting at the bottleneck: the last acknowledgement took longer than the path
/// needs, and no longer than the flight can have queued.
fn queue_stands(wait: &Wait<'_>, rate: Rate) -> bool {
    if !wait.near_sender() {
        return wait.gap <= needed(wait, rate).times(2) + Duration::from_micros(300);
    }
    let Some((rtt, flight)) =
        wait.half.view.advanced.and_then(|release| Some((release.rtt?, release.flight)))
    else {
        return false;
    };
    let queued = rtt - wait.peer - wait.peer.divided_by(4) - Duration::from_millis(1);
    queued.is_positive() && rtt - wait.peer <= rate.time_for(flight) + Duration::from_millis(5)
}

/// Acknowledgements clump on their way: the time that the bottleneck needed for the early ones passes in the gap
/// behind them.
pub(crate) fn learn(wait: &Wait<'_>, verdict: &Verdict, habits: &mut Habits) {
    let Some(rate) = rate(wait) else { return };
    let billed: Duration = verdict
        .split
        .charges()
        .filter(|charge| charge.cause == Cause::Bandwidth)
        .map(|charge| charge.ns)
        .sum();
    let credit = habits.bandwidth_credit + needed(wait, rate) - billed;
    habits.bandwidth_credit = credit.at_least_zero().min(wait.rtt().divided_by(2));
}
