//! What windows does an end offer?
//!
//! A window that never grows is a fixed buffer (SO_RCVBUF turns off tcp_rcv_space_adjust,
//! net/ipv4/tcp_input.c); one that stops growing has met a limit (tcp_rmem) or was large enough;
//! one that shrinks is not being read.

use tcpwhy_wire::Duration;

use super::seen::Seen;

/// The windows of one end, in bytes, except for that of its SYN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowHistory {
    /// The first one.
    pub first: u64,
    /// The smallest one.
    pub smallest: u64,
    /// The largest one.
    pub largest: u64,
    /// When it last exceeded all earlier windows, counted from the connection's first packet;
    /// `None` if it never grew beyond what Linux does without tuning, half as much again
    /// (tcp_grow_window).
    pub grew_until: Option<Duration>,
    /// How often it closed.
    pub closed: u32,
}

pub(super) fn of(seen: &Seen<'_>) -> Option<WindowHistory> {
    let origin = seen.rungs.first()?.at;
    let skip = |rung: &&_| {
        seen.is_own(rung) && rung.ack_offset().is_some() && !rung.flags.syn() && !rung.flags.rst()
    };
    let mut windows = seen.rungs.iter().filter(skip);
    let first = u64::from(windows.next()?.window);
    let mut history = WindowHistory {
        first,
        smallest: first,
        largest: first,
        grew_until: None,
        closed: u32::from(first == 0),
    };
    let mut last = first;
    for rung in windows {
        let window = u64::from(rung.window);
        history.smallest = history.smallest.min(window);
        history.closed += u32::from(window == 0 && last > 0);
        last = window;
        if window > history.largest {
            history.largest = window;
            if history.largest > first + first / 2 {
                history.grew_until = Some(rung.at - origin);
            }
        }
    }
    Some(history)
}
