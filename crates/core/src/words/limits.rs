//! Which thresholds do several rooms share? What each is, and where it comes from; units are those of the types, or bytes,
//! segments and servers.
//!
//! A threshold that one room uses stands there, beside what it decides. docs/thresholds.md lists them all, with how far each may be
//! moved.

use tcpwhy_wire::Duration;

/// Gaps below this are the host's own work between two segments of one burst. Source: none written down.
pub(crate) const BURST_GAP: Duration = Duration::from_micros(200);

/// An acknowledgement held back by less than this came at once: the shortest delayed-acknowledgement timers are 10 ms
/// (Windows datacenter template) and 40 ms (TCP_DELACK_MIN, include/net/tcp.h).
pub(crate) const HELD_BACK_MIN: Duration = Duration::from_millis(8);

/// By how much a host's answers vary, and with them the estimate of the way to it. Source: none written down.
pub(crate) const HOST_VARIATION: Duration = Duration::from_micros(150);

/// An estimate of a round trip is too long by one part in so many at most: what comes sooner than the rest of it was not caused by
/// what it seems to answer. Source: none written down.
pub(crate) const ROUND_TRIP_PLAY: i64 = 8;

/// What comes late by no more than one part in so many of the wait before it is late by chance, or a busy host's. Source: none
/// written down.
pub(crate) const LATE_SHARE: i64 = 8;

/// A capture stands beside an end where the other one is so many times as far away. Source: none written down.
pub(crate) const BESIDE: i64 = 9;

/// Within this an end is as good as beside the capture, however near the other one is. Source: none written down.
pub(crate) const NEAR_MAX: Duration = Duration::from_millis(1);

/// A path's smallest round trip was seen shorter by at least this on another connection, or a packet was late by as much: a
/// queue. Source: none written down.
pub(crate) const QUEUED_MIN: Duration = Duration::from_millis(2);

/// No host holds back an acknowledgement for longer (TCP_DELACK_MAX, include/net/tcp.h; Windows' timer).
pub(crate) const DELAYED_ACK_MAX: Duration = Duration::from_millis(200);
/// The shortest one (TCP_DELACK_MIN, include/net/tcp.h): a host that takes longer to answer has acknowledged the question before, as Linux does.
pub(crate) const DELAYED_ACK_MIN: Duration = Duration::from_millis(40);

/// TCP_RTO_MIN, include/net/tcp.h: 200 ms on every Linux to date (`tcp_rto_min_us` since 6.11).
pub(crate) const RTO_MIN: Duration = Duration::from_millis(200);

/// Timers fire on the tick behind their time: up to 4 ms later at HZ=250.
pub(crate) const TIMER_TICK: Duration = Duration::from_millis(4);

/// Bytes that fit any send buffer (Linux starts at 46 KB and more once established, tcp_sndbuf_expand): an application
/// that wrote less since its last pause was never blocked.
pub(crate) const SEND_BUFFER_MIN: u32 = 46_000;

/// Few clients wait for an answer for so long; for news they do.
pub(crate) const NEWS_MIN: Duration = Duration::from_secs(60);

/// Who is silent for so long in the middle of a question may keep nobody waiting, though its head says that it goes on: few clients wait for so long. Source: none
/// written down.
pub(crate) const ASKS_ON_MAX: Duration = Duration::from_secs(10);

/// Segments that a new connection's window has room for. RFC 6928; Linux since 2.6.39 (TCP_INIT_CWND).
pub(crate) const INITIAL_WINDOW_SEGMENTS: u32 = 10;

/// So few bytes may be a message each on both sides of a pause, may be about what the other end has just said, and say little of who asks. Source: none
/// written down.
pub(crate) const WORD_MAX: u32 = 64;

/// Servers with findings of their own; those that cost least share them. A bound of memory.
pub(crate) const SERVERS_MAX: usize = 8_192;

/// A reader that is merely behind, as all are, leaves an acknowledgement waiting for less than this.
pub(crate) const UNREAD_MIN: Duration = Duration::from_millis(2);
