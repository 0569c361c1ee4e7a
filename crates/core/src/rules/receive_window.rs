//! Was the advertised window used up, and whose doing was that?
//!
//! The limit held if flight and the next segment exceeded the window (RFC 9293, 3.8.6) until an acknowledgement opened
//! it. A window that stands at its ceiling while the data is acknowledged at once is a buffer too small for the path;
//! a window that shrinks while the data is acknowledged is an application that does not read.

use tcpwhy_wire::{Duration, Seq};

use super::verdict::Verdict;
use super::wait::{SLOW_HOST, Wait};
use super::{link_share, queueing, receiver_think};
use crate::bill::charge::Charge;
use crate::flow::direction::Flow;
use crate::flow::segment_class::{SegmentClass, SendQueue};
use crate::flow::view::Release;
use crate::words::cause::Cause;
use crate::words::limits::{BURST_GAP, RTO_MIN};
use crate::words::report::{Confidence, Detail, Trigger};

/// The window field without scaling.
const UNSCALED_MAX: u32 = 65_535;

/// A window of so many segments ends within one of another limit in few cases.
const LARGE_SEGMENTS: u32 = 16;

pub(crate) fn judge(wait: &Wait<'_>) -> Option<Verdict> {
    let flow = wait.flow;
    // No gap is too short for it: within a host a round trip takes microseconds.
    if wait.class != SegmentClass::New {
        return None;
    }
    if wait.gap >= RTO_MIN
        && let Some(verdict) = receiver_think::forced_into_small_window(wait)
    {
        return Some(verdict);
    }
    // With more to send, Linux puts off what is less than two segments (tcp_tso_autosize and tcp_tso_should_defer,
    // net/ipv4/tcp_output.c). A small window ends so near to a congestion window's end by chance: 5,840 bytes to three segments.
    let backlog = wait.is_full() && wait.last.queue != SendQueue::Emptied && wait.gap >= BURST_GAP;
    let fits = |release: &Release| release.room >= wait.segment.payload_len.min(wait.mss) as i32;
    let put_off = |release: &Release| {
        backlog && release.window >= LARGE_SEGMENTS * wait.mss && release.room < 2 * wait.mss as i32
    };
    let limited =
        |release: &Release| release.effective > wait.last.at && (!fits(release) || put_off(release));
    let release = flow.view.window_opened().filter(limited)?;
    let follows = wait.follows(&release);
    // A writer that slept for room is woken, however short the way is.
    let late = wait.segment.at - release.effective;
    let woken = release.room == 0 && late <= wait.gap.divided_by(8).min(SLOW_HOST);
    let long_open = late > wait.rtt() + wait.tolerance() && !woken;
    // What fills the window to its last byte was cut there (tcp_mss_split_point, net/ipv4/tcp_output.c) and is pushed all the
    // same where it is several packets (__tcp_transmit_skb, since 5.4).
    let emptied = wait.last.queue == SendQueue::Emptied && release.room != 0;
    if !follows && (long_open || emptied) {
        return went_on_late(wait, &release).filter(|_| !emptied);
    }
    let (cause, form) = whose(wait, &release);
    let detail = Detail {
        window_bytes: Some(u64::from(release.window)),
        flight_bytes: Some(u64::from(release.flight)),
        form,
        ..Detail::default()
    };
    let certain = follows && !fits(&release) && !flow.scale_bounds.is_in_use();
    // A window stands still while something before it is missing: without the loss it might not have held anything.
    let behind_hole =
        flow.view.loss_signal.is_some_and(|at| at + wait.rtt() + wait.tolerance() >= wait.segment.at);
    let confidence = match (behind_hole, certain) {
        (true, _) => Confidence::Possible,
        (false, true) => Confidence::Certain,
        (false, false) => Confidence::Likely,
    };
    let split = link_share::split(wait);
    let charge = Charge::new(cause, flow.side, Duration::ZERO, confidence)
        .evidence(release.packet, wait.segment.packet)
        .detail(detail);
    Some(Verdict { split: split.rest(charge), trigger: Trigger::Packet(release.packet) })
}

/// A window without room for a byte lets nothing go, whatever else its sender does: until it opened, the wait was that window's. What
/// came then is shorter, or it would be the sender's own pause.
fn went_on_late(wait: &Wait<'_>, release: &Release) -> Option<Verdict> {
    let late = wait.segment.at - release.effective;
    let shut = release.room <= 0 || wait.last.queue == SendQueue::More;
    if !shut || late > wait.gap.divided_by(2) {
        return None;
    }
    let mut split = link_share::split(wait);
    split.take(if wait.near_sender() {
        let late = Charge::new(Cause::SenderThink, wait.flow.side, late, Confidence::Possible);
        late.evidence(release.packet, wait.segment.packet)
    } else {
        queueing::behind(wait, release)
    });
    let (cause, form) = whose(wait, release);
    let detail = Detail {
        window_bytes: Some(u64::from(release.window)),
        flight_bytes: Some(u64::from(release.flight)),
        form,
        ..Detail::default()
    };
    let charge = Charge::new(cause, wait.flow.side, Duration::ZERO, Confidence::Likely)
        .evidence(wait.last.packet, release.packet)
        .detail(detail);
    Some(Verdict { split: split.rest(charge), trigger: Trigger::Packet(release.packet) })
}

/// What a used-up window held of a small segment before it opened, where Nagle held that until `release`.
pub(crate) fn before_nagle(wait: &Wait<'_>, release: &Release) -> Option<Charge> {
    let opened = wait.flow.view.window_opened().filter(|opened| {
        opened.effective > wait.last.at
            && opened.packet < release.packet
            && opened.room < wait.segment.payload_len as i32
    })?;
    let (cause, form) = whose(wait, &opened);
    let detail = Detail {
        window_bytes: Some(u64::from(opened.window)),
        flight_bytes: Some(u64::from(opened.flight)),
        form,
        ..Detail::default()
    };
    let held = opened.effective - wait.last.at;
    let charge = Charge::new(cause, wait.flow.side, held, Confidence::Likely);
    Some(charge.evidence(wait.last.packet, opened.packet).detail(detail))
}

/// Whether the segment goes beyond any window that passed the capture: the one that let it go is missing.
pub(crate) fn update_unseen(wait: &Wait<'_>) -> bool {
    let flow = wait.flow;
    let beyond = |right_edge: Seq| (wait.segment.seq + wait.segment.payload_len).after(right_edge);
    wait.class == SegmentClass::New
        && !flow.scale_bounds.is_in_use()
        && flow.right_edge_seen().is_some_and(beyond)
}

/// A window that stands at its ceiling is the buffer's; one that had shrunk is the reader's.
fn whose(wait: &Wait<'_>, release: &Release) -> (Cause, Option<&'static str>) {
    match receiver_think::form(wait, release) {
        Some(form) => (Cause::ReceiverThink, Some(form)),
        None => (Cause::ReceiveWindow, Some(form(wait.flow, wait))),
    }
}

pub(crate) fn form(flow: &Flow, wait: &Wait<'_>) -> &'static str {
    let first = flow.window_first.unwrap_or(flow.window_max);
    if flow.peer_unscaled && flow.window_max > UNSCALED_MAX / 2 {
        "unscaled"
    } else if wait.segment.at - flow.window_grew_at < wait.rtt().times(3) {
        "growing"
    } else if flow.window_max <= first + first / 2 {
        // Linux opens from the first window to the ratio of payload to memory, a quarter more, without autotuning
        // (tcp_grow_window, net/ipv4/tcp_input.c).
        "locked"
    } else {
        "capped"
    }
}
