//! Was the congestion window still growing from its initial size, or again after an idle time?
//!
//! Proof: a flight larger by an eighth than any before it; after an idle time, flights well below
//! the largest one before it.
//! Refuted by: a flight that is not larger, a loss, or a first flight too large for a window that
//! was reset (the sender has kept its window), or larger than any before the idle time.
//! Source: RFC 5681, 3.1 and 4.1; tcp_cwnd_restart, net/ipv4/tcp_output.c, Linux 6.12;
//! net.ipv4.tcp_slow_start_after_idle.
//! Seen from: both ends.
//!
//! A window that is used up doubles with each round trip. After an idle time longer than the
//! retransmission timeout, Linux halves the window once per timeout, down to the initial one.

use crate::estimate::rounds::Rounds;
use crate::words::cause::Cause;

/// Which kind of slow start makes a window grow.
pub(super) fn cause(rounds: &Rounds, flight: u32) -> Cause {
    let restarted = had_more(rounds, flight) && !is_beyond(rounds, flight);
    if restarted { Cause::SlowStartAfterIdle } else { Cause::SlowStart }
}

/// Whether the window had been larger before an idle time. It had grown beyond the largest flight, by up to as much again: the
/// last acknowledgements count too.
pub(super) fn had_more(rounds: &Rounds, flight: u32) -> bool {
    u64::from(rounds.before_idle) * 7 > u64::from(flight) * 4
}

/// Whether the first flight since an idle time is larger than any before it, and a reset window would have room for it: that of a
/// new connection, which the one before had not used up.
fn is_beyond(rounds: &Rounds, flight: u32) -> bool {
    let larger = u64::from(rounds.since_idle.unwrap_or(flight)) * 8 > u64::from(rounds.before_idle) * 9;
    larger && !was_kept(rounds, flight)
}

/// Whether the first flight since an idle time (this one, of `flight` bytes, if there was none)
/// shows that the window was not reset.
pub(super) fn was_kept(rounds: &Rounds, flight: u32) -> bool {
    rounds.since_idle.unwrap_or(flight) > rounds.restarted_max
}
