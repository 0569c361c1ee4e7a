//! What has happened to a socket since it was last looked at? Counters of each, kept small.

use std::collections::HashMap;
use std::time::Duration;

use crate::socket::Socket;

/// What is kept of a socket between two looks at it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counters {
    at_ms: u32,
    receive_queue: u32,
    notsent_bytes: u32,
    total_retrans: u32,
    segments_out: u32,
    segments_in: u32,
    data_segments_out: u32,
    drops: u32,
    busy_us: u64,
    peer_window_us: u64,
    send_buffer_us: u64,
    bytes_acked: u64,
    bytes_received: u64,
}

/// Remembers the sockets of the last look, by cookie.
#[derive(Debug, Default)]
pub struct Watch {
    seen: HashMap<u64, Counters>,
}

/// A stretch of a socket's life: since the last look at it, or all of it where there was none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lately {
    /// How long it was; none where it is the whole life, whose length the kernel does not tell.
    pub span: Option<Duration>,
    /// With data to send or in flight.
    pub busy: Duration,
    /// Of that, stopped by the peer's window.
    pub peer_window: Duration,
    /// Of that, stopped by the own send buffer.
    pub send_buffer: Duration,
    /// Bytes acknowledged by the peer.
    pub bytes_acked: u64,
    /// Bytes received.
    pub bytes_received: u64,
    /// Segments sent again.
    pub retransmitted: u32,
    /// Segments sent, and those of them with data.
    pub segments_out: u32,
    /// Of these, with data.
    pub data_segments_out: u32,
    /// Segments received.
    pub segments_in: u32,
    /// Dropped at the socket.
    pub drops: u32,
    /// Bytes that the application had not read then either.
    pub receive_queue_before: Option<u32>,
    /// Bytes that had not been sent then either.
    pub notsent_before: Option<u32>,
}

impl Lately {
    /// `part` as a share of the stretch; of the busy time where the stretch is the whole life.
    pub fn share(&self, part: Duration) -> f64 {
        let whole = self.span.unwrap_or(self.busy).as_secs_f64();
        // The kernel counts in ticks of its clock, and the stretch is not as exact.
        if whole > 0.0 { (part.as_secs_f64() / whole).min(1.0) } else { 0.0 }
    }
}

impl Watch {
    /// Remembers the socket as it is at `now`, on any clock, for the next look.
    pub fn note(&mut self, socket: &Socket, now: Duration) {
        self.seen.insert(socket.cookie, Counters::of(socket, now));
    }

    /// What has happened until `now`, on the same clock. Changes nothing.
    pub fn since(&self, socket: &Socket, now: Duration) -> Lately {
        let then = self.seen.get(&socket.cookie);
        let old = then.copied().unwrap_or_default();
        let new = Counters::of(socket, now);
        let micros = |new: u64, old: u64| Duration::from_micros(new.saturating_sub(old));
        Lately {
            span: then.map(|then| Duration::from_millis(u64::from(new.at_ms.wrapping_sub(then.at_ms)))),
            busy: micros(new.busy_us, old.busy_us),
            peer_window: micros(new.peer_window_us, old.peer_window_us),
            send_buffer: micros(new.send_buffer_us, old.send_buffer_us),
            bytes_acked: new.bytes_acked.saturating_sub(old.bytes_acked),
            bytes_received: new.bytes_received.saturating_sub(old.bytes_received),
            retransmitted: new.total_retrans.wrapping_sub(old.total_retrans),
            segments_out: new.segments_out.wrapping_sub(old.segments_out),
            data_segments_out: new.data_segments_out.wrapping_sub(old.data_segments_out),
            segments_in: new.segments_in.wrapping_sub(old.segments_in),
            drops: new.drops.wrapping_sub(old.drops),
            receive_queue_before: then.map(|then| then.receive_queue),
            notsent_before: then.map(|then| then.notsent_bytes),
        }
    }

    /// Forgets those that were last noted before `since`: they are closed.
    pub fn forget_before(&mut self, since: Duration) {
        let since = since.as_millis() as u32;
        self.seen.retain(|_, counters| counters.at_ms >= since);
    }

    /// Sockets remembered.
    pub fn len(&self) -> usize {
        self.seen.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.seen.is_empty()
    }
}

impl Counters {
    fn of(socket: &Socket, now: Duration) -> Self {
        let info = &socket.info;
        Self {
            at_ms: now.as_millis() as u32,
            receive_queue: socket.receive_queue,
            notsent_bytes: info.notsent_bytes.unwrap_or(0),
            total_retrans: info.total_retrans.unwrap_or(0),
            segments_out: info.segs_out.unwrap_or(0),
            segments_in: info.segs_in.unwrap_or(0),
            data_segments_out: info.data_segs_out.unwrap_or(0),
            drops: socket.memory.drops,
            busy_us: info.busy_time.unwrap_or(0),
            peer_window_us: info.rwnd_limited.unwrap_or(0),
            send_buffer_us: info.sndbuf_limited.unwrap_or(0),
            bytes_acked: info.bytes_acked.unwrap_or(0),
            bytes_received: info.bytes_received.unwrap_or(0),
        }
    }
}
