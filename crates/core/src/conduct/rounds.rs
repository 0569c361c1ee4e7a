//! What was in flight in each round trip of a transfer, and what did each cost?
//!
//! A round begins with a segment and ends with the first one that its sender can have sent after
//! learning of that one's arrival.

use std::collections::VecDeque;

use tcpwhy_wire::{Duration, Instant};

use super::seen::{Seen, end_of};
use crate::words::cause::Cause;
use crate::words::limits::HOST_VARIATION;
use crate::words::report::Billed;

/// One round trip of a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Round {
    /// Capture time of its first segment.
    pub start: Instant,
    /// From there to the next round's first segment, or to the last packet.
    pub took: Duration,
    /// Most bytes in flight, as known to the sender.
    pub flight: u64,
    /// The window that the peer offered then, in bytes.
    pub window: u64,
    /// The cause billed with most of it, and how much.
    pub billed: Option<(Cause, Duration)>,
}

/// How much sooner an acknowledgement may reach its sender than the smallest round trip says.
fn blur(tap_rtt: Duration) -> Duration {
    tap_rtt.divided_by(16) + HOST_VARIATION
}

pub(super) fn of(seen: &Seen<'_>) -> Vec<Round> {
    let mut rounds: Vec<Round> = Vec::new();
    let reaches = seen.tap_rtt - blur(seen.tap_rtt);
    // Acknowledgements on their way to the sender: when they take effect, up to where, the window.
    let mut coming = VecDeque::<(Instant, u64, u64)>::new();
    let (mut acked, mut window, mut began_at, mut sent) = (None, 0, 0, 0);
    let mut billed: Vec<(Cause, Duration)> = Vec::new();
    for rung in seen.rungs {
        if !seen.is_own(rung) {
            if let Some(ack) = rung.ack_offset() {
                coming.push_back((rung.at + reaches, ack, u64::from(rung.window)));
            }
            continue;
        }
        if rung.len == 0 {
            continue;
        }
        while let Some((_, ack, offered)) = coming.pop_front_if(|(counts, ..)| *counts <= rung.at) {
            acked = acked.max(Some(ack));
            window = offered;
        }
        let snd_una = *acked.get_or_insert(rung.offset);
        if !rounds.is_empty() {
            add(&mut billed, &rung.billed);
        }
        if rounds.is_empty() || (snd_una > began_at && end_of(rung) > sent) {
            end(rounds.last_mut(), rung.at, &mut billed);
            rounds.push(Round { start: rung.at, took: Duration::ZERO, flight: 0, window, billed: None });
            began_at = rung.offset;
        }
        sent = sent.max(end_of(rung));
        if let Some(round) = rounds.last_mut() {
            round.flight = round.flight.max(sent.saturating_sub(snd_una));
            round.window = round.window.max(window);
        }
    }
    if let Some(last) = seen.rungs.last() {
        end(rounds.last_mut(), last.at, &mut billed);
    }
    rounds
}

fn add(billed: &mut Vec<(Cause, Duration)>, more: &Billed) {
    for (cause, ns) in more.lines() {
        match billed.iter_mut().find(|(known, _)| *known == cause) {
            Some((_, sum)) => *sum += ns,
            None => billed.push((cause, ns)),
        }
    }
}

fn end(round: Option<&mut Round>, at: Instant, billed: &mut Vec<(Cause, Duration)>) {
    if let Some(round) = round {
        round.took = at - round.start;
        round.billed = billed.iter().copied().max_by_key(|&(_, ns)| ns);
    }
    billed.clear();
}
