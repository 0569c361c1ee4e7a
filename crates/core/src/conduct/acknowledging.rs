//! How does an end acknowledge?
//!
//! A lone segment's acknowledgement may be held back (RFC 9293, 3.8.6.3; 40 ms and more on Linux, TCP_DELACK_MIN), but not the
//! first ones of a Linux connection (tcp_enter_quickack_mode, net/ipv4/tcp_input.c). Of a burst every second segment is
//! acknowledged at once, or fewer where an interface takes several together.

use std::collections::VecDeque;

use tcpwhy_wire::{Duration, Instant};

use super::seen::{Seen, end_of, median};
use crate::words::limits::HELD_BACK_MIN;

/// An acknowledgement later than this waited for something else: no stack may hold one back longer (RFC 9293, 3.8.6.3).
const HELD_BACK_MAX: Duration = Duration::from_millis(600);

/// How an end acknowledges data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Acknowledging {
    /// Acknowledgements without data of a single segment that came at once.
    pub prompt: u32,
    /// Those that were held back by 8 ms or more.
    pub held: u32,
    /// By how much: the median of those.
    pub delay: Option<Duration>,
    /// Prompt ones before the first that was held back: the stack's quick phase, where there is one.
    pub quick: u32,
    /// Those that came with data, which may have waited for it.
    pub with_data: u32,
    /// Segments for each acknowledgement of more than one: the median.
    pub every: Option<u32>,
}

pub(super) fn of(seen: &Seen<'_>) -> Option<Acknowledging> {
    let mut conduct = Acknowledging::default();
    // What is not acknowledged: its end, when it passed, and whether nothing was before it. Of several at a bottleneck each
    // would be late by its queue.
    let (mut waiting, mut arrived) = (VecDeque::<(u64, Instant, bool)>::new(), 0);
    let (mut acked, mut delays, mut every) = (0, Vec::new(), Vec::new());
    for rung in seen.rungs {
        if !seen.is_own(rung) {
            // What comes again was acknowledged, or not, for other reasons.
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
