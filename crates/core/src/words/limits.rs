//! Which thresholds do several rooms share? Each with its meaning and its source; units are those
//! of the types, or bytes, segments and servers.
//!
//! A threshold used in one room only is defined there, next to what it decides. docs/thresholds.md
//! lists them all, with how far each may be moved.

use tcpwhy_wire::Duration;

/// A gap below this is the host's own time between two segments of one burst. Source: none written
/// down.
pub(crate) const BURST_GAP: Duration = Duration::from_micros(200);

/// An acknowledgement delayed by less than this came at once: the shortest delayed-acknowledgement
/// timers are 10 ms (Windows datacenter template) and 40 ms (TCP_DELACK_MIN, include/net/tcp.h).
pub(crate) const HELD_BACK_MIN: Duration = Duration::from_millis(8);
/// No host holds an acknowledgement back for as long (RFC 1122, 4.2.3.2).
pub(crate) const HELD_BACK_MAX: Duration = Duration::from_millis(500);

/// How much a host's response time varies, and with it the estimated distance to the host. Source:
/// none written down.
pub(crate) const HOST_VARIATION: Duration = Duration::from_micros(150);

/// An estimated round trip is too long by at most one part in this many: anything sooner was not
/// caused by what it seems to answer. Source: none written down.
pub(crate) const ROUND_TRIP_PLAY: i64 = 8;

/// A segment late by at most one part in this many of the wait before it is late by chance, or its
/// host is busy. Source: none written down.
pub(crate) const LATE_SHARE: i64 = 8;

/// The capture is beside an end if the distance to the other end, or the whole round trip, is at
/// least this many times that end's. Source: none written down.
pub(crate) const BESIDE: i64 = 9;

/// An end within this distance counts as beside the capture, however near the other one is. Source:
/// none written down.
pub(crate) const NEAR_MAX: Duration = Duration::from_millis(1);

/// Another connection saw the path's round trip shorter by at least this, or a packet was late by
/// as much: a queue. Source: none written down.
pub(crate) const QUEUED_MIN: Duration = Duration::from_millis(2);

/// No host delays an acknowledgement for longer (TCP_DELACK_MAX, include/net/tcp.h; Windows'
/// timer).
pub(crate) const DELAYED_ACK_MAX: Duration = Duration::from_millis(200);
/// The shortest delayed-acknowledgement timer (TCP_DELACK_MIN, include/net/tcp.h): a host that
/// takes longer to answer acknowledges the request first, as Linux does.
pub(crate) const DELAYED_ACK_MIN: Duration = Duration::from_millis(40);

/// TCP_RTO_MIN, include/net/tcp.h: 200 ms on every Linux to date (`tcp_rto_min_us` since 6.11).
pub(crate) const RTO_MIN: Duration = Duration::from_millis(200);

/// Timers fire on the tick after they expire: up to 4 ms late at HZ=250.
pub(crate) const TIMER_TICK: Duration = Duration::from_millis(4);

/// Any send buffer holds this many bytes (Linux starts at 46 KB and more once established,
/// tcp_sndbuf_expand): an application that wrote less since its last pause was never blocked.
pub(crate) const SEND_BUFFER_MIN: u32 = 46_000;

/// Few clients wait this long for an answer; for news they do.
pub(crate) const NEWS_MIN: Duration = Duration::from_secs(60);

/// After a silence this long within a request, perhaps nobody waits any more, even if its head announces
/// more. Source: none written down.
pub(crate) const ASKS_ON_MAX: Duration = Duration::from_secs(10);

/// Segments that a new connection's window has room for. RFC 6928; Linux since 2.6.39 (TCP_INIT_CWND).
pub(crate) const INITIAL_WINDOW_SEGMENTS: u32 = 10;

/// Messages of at most this many bytes may come on both sides of a pause, may respond to what the
/// other end has just said, and hardly show which end asks. Source: none written down.
pub(crate) const WORD_MAX: u32 = 64;

/// Servers with findings of their own; beyond this, the cheapest ones share one. A bound on memory.
pub(crate) const SERVERS_MAX: usize = 8_192;

/// A reader with the usual lag delays an acknowledgement by less than this.
pub(crate) const UNREAD_MIN: Duration = Duration::from_millis(2);

/// A probe is late by up to one part in this many (the kernel's timer wheel rounds up,
/// kernel/time/timer.c), plus ticks.
pub(crate) const PROBE_SHARE: i64 = 8;

/// Copies of one segment assumed lost in a row, at most: each further one doubles the estimate.
pub(crate) const COPIES_MAX: u16 = 4;

/// Bytes in a full segment, at least: IPv6's least packet of 1,280 (RFC 8200, 5) less headers and stamps.
pub(crate) const FULL_MIN: u32 = 1_208;
