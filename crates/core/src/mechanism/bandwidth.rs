//! How much of a wait did the bottleneck need for the bytes themselves?
//!
//! In a round that a window stopped, the time that the bottleneck needed for the round's bytes is bandwidth; only the
//! rest belongs to the window. Where a queue of the transfer's own stands at the bottleneck, acknowledgements come at
//! its rate and nothing else delays the sender.

use tcpwhy_wire::Duration;

use super::{Verdict, Wait};
use crate::account::{Charge, Split};
use crate::cause::Cause;
use crate::half::{Order, Queue};
use crate::rate::Rate;
use crate::report::{Confidence, Detail};

/// What a time stamp leaves open.
const STAMP_TICK: Duration = Duration::from_millis(1);

/// The bottleneck's rate as this vantage shows it.
pub(crate) fn rate(wait: &Wait<'_>) -> Option<Rate> {
    wait.half.rate(wait.near_sender())
}

/// Charges the bottleneck's share of a wait.
pub(crate) fn take(wait: &Wait<'_>, split: &mut Split) {
    let Some(rate) = rate(wait) else { return };
    let needed = if burst_behind(wait) {
        rate.time_for(wait.segment.payload_len)
    } else {
        needed(wait, rate) + wait.habits.bandwidth_credit
    };
    let share = if queue_stands(wait, rate) { split.left() } else { needed };
    if !share.is_positive() {
        return;
    }
    let detail = Detail { rate_bps: Some(rate.bits_per_second()), ..Detail::default() };
    split.take(
        Charge::new(Cause::Bandwidth, wait.half.side, share, Confidence::Likely)
            .evidence(wait.last.packet, wait.segment.packet)
            .detail(detail),
    );
}

/// Charges the bottleneck's share where acknowledgements have shown how long it can have been busy.
pub(crate) fn take_seen(wait: &Wait<'_>, split: &mut Split, seen: Duration) {
    let Some(rate) = rate(wait) else { return };
    let share = seen.min(needed(wait, rate) + wait.habits.bandwidth_credit);
    let detail = Detail { rate_bps: Some(rate.bits_per_second()), ..Detail::default() };
    split.take(
        Charge::new(Cause::Bandwidth, wait.half.side, share, Confidence::Likely)
            .evidence(wait.last.packet, wait.segment.packet)
            .detail(detail),
    );
}

/// What the bottleneck needed for the bytes that ended the wait.
fn needed(wait: &Wait<'_>, rate: Rate) -> Duration {
    if !wait.near_sender() {
        return rate.time_for(wait.segment.payload_len);
    }
    let acked = wait.half.acked_since(wait.last);
    // In recovery nothing is acknowledged for good, and a segment leaves for each that arrived (RFC 6675).
    rate.time_for(if acked == 0 && recovering(wait) { wait.segment.payload_len } else { acked })
}

/// Near the sender, a segment that left behind others on the same acknowledgement: the bottleneck is still busy with
/// those. It earns no credit: in sum the bottleneck needs no longer than for what was acknowledged.
fn burst_behind(wait: &Wait<'_>) -> bool {
    wait.near_sender() && wait.half.acked_since(wait.last) == 0 && !recovering(wait)
}

fn recovering(wait: &Wait<'_>) -> bool {
    wait.half.view.loss_signal.is_some_and(|at| at >= wait.last.at - wait.rtt())
}

/// Whether bytes of this transfer were waiting at the bottleneck: the last acknowledgement took longer than the path
/// needs, and no longer than the flight can have queued.
fn queue_stands(wait: &Wait<'_>, rate: Rate) -> bool {
    if !wait.near_sender() {
        return wait.gap <= needed(wait, rate).times(2) + Duration::from_micros(300);
    }
    let Some((release, rtt)) = wait.half.view.advanced().and_then(|release| Some((release, release.rtt?)))
    else {
        return false;
    };
    let queued = rtt - wait.peer - wait.peer.divided_by(4) - Duration::from_millis(1);
    // No more than the flight can have queued by itself; or, with others in the queue, acknowledgements that keep
    // coming one behind the other while most of the flight is still out.
    let own_queue = rtt - wait.peer <= rate.time_for(release.flight) + Duration::from_millis(5);
    let streaming = wait.gap < rtt.divided_by(4) && release.left >= release.flight / 2;
    // What the path itself holds leaves nothing to queue.
    let more_than_path = rate.time_for(release.flight) >= wait.peer - wait.peer.divided_by(8);
    queued.is_positive() && ((own_queue && more_than_path) || streaming)
}

/// Near the receiver, packets' time stamps tell when they left. One that was waiting already when the one before it
/// arrived, or that left soon after it and arrived late behind it, was held by the path alone, whatever the sender
/// could have done.
pub(crate) fn judge(wait: &Wait<'_>) -> Option<Verdict> {
    if wait.near_sender() || wait.order != Order::New || wait.gap < super::BURST_GAP {
        return None;
    }
    let half = wait.half;
    let queued = half.queued_on_way.filter(|queued| queued.is_positive()).unwrap_or_default();
    let waiting = queued.is_positive() && queued + STAMP_TICK >= wait.gap;
    // With more queued behind the last one, its sender did not wait of its own accord.
    let apart_max =
        if wait.last.queue == Queue::More { wait.gap.divided_by(2) } else { wait.gap.divided_by(4) };
    let stretched = half.sent_apart(wait.last, wait.segment).is_some_and(|apart| apart <= apart_max);
    let since = half.clock.same_stamp_for(wait.segment.at);
    let stamped_before = since.is_some_and(|since| since >= wait.gap + STAMP_TICK);
    let whole = waiting || stretched || stamped_before || keeps_pace(wait);
    if !whole && queued < wait.gap.divided_by(2) {
        return None;
    }
    let detail = Detail { rate_bps: rate(wait).map(Rate::bits_per_second), ..Detail::default() };
    let share = if whole { wait.gap } else { queued };
    let charge = Charge::new(Cause::Bandwidth, half.side, share, Confidence::Likely)
        .evidence(wait.last.packet, wait.segment.packet)
        .detail(detail);
    let mut split = Split::of(wait.gap);
    split.take(charge);
    // Before it waited there, its sender had held it back for as long as remains.
    let split = super::think::rest(wait, split);
    Some(Verdict { split, trigger: super::burst(wait.last, wait.segment.at) })
}

/// Segments of one size, each as long after the one before it, from a queue that was not empty, and no acknowledgement
/// that can have let them go one by one: a backlog comes so out of a bottleneck, however slow that is.
fn keeps_pace(wait: &Wait<'_>) -> bool {
    let difference = wait.gap - wait.last.spacing;
    let released = wait.half.view.advanced().is_some_and(|release| wait.follows(&release));
    wait.last.queue == Queue::More
        && wait.last.len == wait.segment.payload_len
        && difference.max(-difference) <= wait.gap.divided_by(32)
        && wait.gap < crate::rto::RTO_MIN
        && !released
}

/// Acknowledgements clump on their way: the time that the bottleneck needed for the early ones passes in the gap
/// behind them. Returns what is left of it.
pub(crate) fn credit(wait: &Wait<'_>, verdict: &Verdict) -> Duration {
    let Some(rate) = rate(wait) else { return Duration::ZERO };
    let mut credit = wait.habits.bandwidth_credit + needed(wait, rate);
    if verdict.split.has(Cause::Bandwidth.bit()) {
        let charges = verdict.split.charges().filter(|charge| charge.cause == Cause::Bandwidth);
        credit -= charges.map(|charge| charge.ns).sum();
    }
    credit.at_least_zero().min(wait.rtt().divided_by(2))
}
