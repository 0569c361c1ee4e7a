//! Which congestion control does a sender's reaction to losses look like?
//!
//! After a fast recovery the flight is half of what it was with Reno (RFC 5681, 3.2), 0.7 of it
//! with CUBIC (RFC 9438, 4.6), and as large as before with BBR, which does not treat a loss as
//! congestion. A timeout says nothing: all of them restart with one segment. Only a capture near
//! the sender shows what is in flight.

use std::ops::RangeInclusive;

use super::seen::{Seen, end_of, median};
use crate::words::cause::Cause;

/// What a sender's flights look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Controller {
    /// `reno`, `cubic` or `bbr`; `None` if the share matches none of them.
    pub looks_like: Option<&'static str>,
    /// Bytes in flight after a recovery, in percent of those before it: the median.
    pub kept_percent: u32,
    /// Recoveries that were counted.
    pub recoveries: u32,
}

/// A flight of fewer segments does not show that it was halved.
const SEGMENTS_MIN: u64 = 8;
/// The percentage kept in two recoveries of three, and the number of recoveries needed: a sender
/// that losses do not slow may be limited by something else.
const SHARES: [(RangeInclusive<u32>, u32, &str); 3] =
    [(42..=60, 2, "reno"), (62..=80, 2, "cubic"), (90..=u32::MAX, 3, "bbr")];

/// Where a sender is between two losses.
#[derive(Clone, Copy)]
enum Phase {
    Open,
    /// It retransmits what was lost of a flight of `flight` bytes, until `until` is acknowledged.
    Recovery {
        flight: u64,
        until: u64,
        timeout: bool,
    },
    /// The first round after that.
    After {
        flight: u64,
        until: u64,
        most: u64,
    },
}

pub(super) fn of(seen: &Seen<'_>) -> Option<Controller> {
    let (mut sent, mut acked, mut phase) = (0, 0, Phase::Open);
    // A round after a recovery counts if the sender had more to send.
    let (mut kept, mut whole) = (Vec::new(), None);
    for rung in seen.rungs {
        if !seen.is_own(rung) {
            acked = acked.max(rung.ack_offset().unwrap_or(0));
            phase = match phase {
                Phase::Recovery { flight, until, timeout } if acked >= until => {
                    if timeout {
                        Phase::Open
                    } else {
                        Phase::After { flight, until: sent, most: 0 }
                    }
                }
                Phase::After { flight, until, most } if acked > until => {
                    whole = Some(u32::try_from(most * 100 / flight.max(1)).unwrap_or(u32::MAX));
                    Phase::Open
                }
                phase => phase,
            };
            continue;
        }
        if rung.len == 0 {
            continue;
        }
        kept.extend(whole.take().filter(|&share| share > 0));
        let again = end_of(rung) <= sent && rung.offset >= acked;
        let timeout = again && rung.billed.lines().any(|(cause, _)| cause == Cause::Rto);
        let flight = sent.saturating_sub(acked);
        phase = match phase {
            Phase::Recovery { flight, until, timeout: before } => {
                Phase::Recovery { flight, until, timeout: before || timeout }
            }
            _ if again && flight >= SEGMENTS_MIN * seen.segment => {
                Phase::Recovery { flight, until: sent, timeout }
            }
            _ if again => Phase::Open,
            Phase::After { flight: before, until, most } => {
                let flight = end_of(rung).saturating_sub(acked);
                Phase::After { flight: before, until, most: most.max(flight) }
            }
            Phase::Open => Phase::Open,
        };
        sent = sent.max(end_of(rung));
    }
    let recoveries = kept.len() as u32;
    let kept_percent = median(&mut kept)?;
    let looks_like = SHARES.iter().find(|(share, least, _)| {
        let agree = kept.iter().filter(|kept| share.contains(kept)).count();
        share.contains(&kept_percent) && recoveries >= *least && agree * 3 >= kept.len() * 2
    });
    let looks_like = looks_like.map(|&(_, _, name)| name);
    Some(Controller { looks_like, kept_percent, recoveries })
}
