//! How does an end acknowledge?
//!
//! The acknowledgement of a single segment may be delayed (RFC 9293, 3.8.6.3; 40 ms and more on
//! Linux, TCP_DELACK_MIN), but not the first ones of a Linux connection (tcp_enter_quickack_mode,
//! net/ipv4/tcp_input.c). In a burst every second segment is acknowledged at once, or fewer if the
//! interface merges several.

use std::collections::VecDeque;

use tcpwhy_wire::{Duration, Instant};

use super::seen::{Seen, end_of, median};
use crate::words::limits::HELD_BACK_MIN;

/// An acknowledgement later than this waited for something else: no stack may delay one for longer
/// (RFC 9293, 3.8.6.3).
const HELD_BACK_MAX: Duration = Duration::from_millis(600);

/// How an end acknowledges data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Acknowledging {
    /// Acknowledgements without data of a single segment that came at once.
    pub prompt: u32,
    /// Those that were delayed by 8 ms or more.
    pub held: u32,
    /// The median of their delays.
    pub delay: Option<Duration>,
    /// Prompt ones before the first delayed one: the stack's quick phase, if it has one.
    pub quick: u32,
    /// Those sent with data, which may have waited for it.
    pub with_data: u32,
    /// Segments per acknowledgement of more than one: the median.
    pub every: Option<u32>,
}

pub(super) fn of(seen: &Seen<'_>) -> Option<Acknowledging> {
    let mut conduct = Acknowledging::default();
    // Unacknowledged segments: where each ends, when it passed, and whether none was outstanding
    // before it. Of several at a bottleneck, each would be late by its queue.
    let (mut waiting, mut arrived) = (VecDeque::<(u64, Instant, bool)>::new(), 0);
    let (mut acked, mut delays, mut every) = (0, Vec::new(), Vec::new());
    for rung in seen.rungs {
        if !seen.is_own(rung) {
            // Retransmissions are acknowledged, or not, for other reasons.
            if rung.len > 0 && end_of(rung) > arrived {
                arrived = end_of(rung);
                waiting.push_back((arrived, rung.at, waiting.is_empty()));
            }
            continue;
        }
        let Some(ack) = rung.ack_offset().filter(|&ack| ack > acked && !rung.flags.syn()) else { continue };
        let bytes = ack - acked;
        acked = ack;
        let mut newest = None;
        while let Some((_, at, alone)) = waiting.pop_front_if(|(end, ..)| *end <= ack) {
            newest = Some((at, alone && waiting.is_empty()));
        }
        let Some((newest, alone)) = newest else { continue };
        if rung.len > 0 {
            conduct.with_data += 1;
            continue;
        }
        let packets = seen.packets(bytes);
        if packets > 1 {
            every.push(packets);
            continue;
        }
        let delay = rung.at - newest - seen.tap_rtt;
        if !alone || rung.flags.fin() || rung.flags.rst() || delay > HELD_BACK_MAX {
            continue;
        }
        if delay >= HELD_BACK_MIN {
            conduct.held += 1;
            delays.push(delay);
        } else {
            conduct.prompt += 1;
            conduct.quick += u32::from(conduct.held == 0);
        }
    }
    conduct.delay = median(&mut delays);
    conduct.every = median(&mut every);
    (conduct != Acknowledging::default()).then_some(conduct)
}
