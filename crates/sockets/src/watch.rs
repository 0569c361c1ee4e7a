//! What has happened to a socket since the last look? Its counters, kept compactly.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::time::Duration;

use crate::seen::{Seen, long_at, word_at};
use crate::socket::Socket;

/// Data kept of a socket between two looks.
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
    seen: HashMap<u64, Counters, BuildHasherDefault<OfCookie>>,
}

/// The kernel numbers cookies consecutively: a multiplication spreads them.
#[derive(Default)]
struct OfCookie(u64);

impl Hasher for OfCookie {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, cookie: u64) {
        // Its low half alone would only depend on the low half of the cookie.
        let wide = u128::from(self.0 ^ cookie) * u128::from(0x9e37_79b9_7f4a_7c15_u64);
        self.0 = wide as u64 ^ (wide >> 64) as u64;
    }
}

/// An interval of a socket's life: since the last look, or all of it if there was none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lately {
    /// Its length; `None` for the whole life, whose length the kernel does not report.
    pub span: Option<Duration>,
    /// Time with data to send or in flight.
    pub busy: Duration,
    /// Part of it limited by the peer's window.
    pub peer_window: Duration,
    /// Part of it limited by the own send buffer.
    pub send_buffer: Duration,
    /// Bytes acknowledged by the peer.
    pub bytes_acked: u64,
    /// Bytes received.
    pub bytes_received: u64,
    /// Segments retransmitted.
    pub retransmitted: u32,
    /// Segments sent.
    pub segments_out: u32,
    /// Segments sent with data.
    pub data_segments_out: u32,
    /// Segments received.
    pub segments_in: u32,
    /// Packets dropped at the socket.
    pub drops: u32,
    /// Bytes that were already unread at the last look.
    pub receive_queue_before: Option<u32>,
    /// Bytes that were already unsent at the last look.
    pub notsent_before: Option<u32>,
}

impl Lately {
    /// `part` as a share of the interval, or of the busy time if the interval is the whole life.
    pub fn share(&self, part: Duration) -> f64 {
        let whole = self.span.unwrap_or(self.busy).as_secs_f64();
        // The kernel counts in ticks, and the interval is not exact: the sum may exceed it.
        if whole > 0.0 { (part.as_secs_f64() / whole).min(1.0) } else { 0.0 }
    }
}

impl Watch {
    /// Remembers the socket as it is at `now`, on any clock, for the next look.
    pub fn note(&mut self, seen: &Seen<'_>, now: Duration) {
        self.seen.insert(seen.cookie(), Counters::seen(seen, now));
    }

    /// Whether nothing has happened to the socket since it was noted, and nothing is queued or
    /// awaited: it had nothing to send.
    pub fn is_idle(&self, seen: &Seen<'_>) -> bool {
        let then = || self.seen.get(&seen.cookie());
        seen.is_still()
            && then().is_some_and(|then| {
                *then == Counters { at_ms: then.at_ms, ..Counters::seen(seen, Duration::ZERO) }
            })
    }

    /// Whether the same is true for its whole life, as far as known: no window ever limited it.
    pub fn was_idle(seen: &Seen<'_>) -> bool {
        let now = Counters::seen(seen, Duration::ZERO);
        seen.is_still() && now.peer_window_us == 0 && now.send_buffer_us == 0
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

    /// Forgets sockets last noted before `since`: they are closed.
    pub fn forget_before(&mut self, since: Duration) {
        let since = since.as_millis() as u32;
        self.seen.retain(|_, counters| counters.at_ms >= since);
    }

    /// Number of sockets remembered.
    pub fn len(&self) -> usize {
        self.seen.len()
    }

    /// Whether no socket is remembered.
    pub fn is_empty(&self) -> bool {
        self.seen.is_empty()
    }
}

impl Counters {
    /// From offsets in `struct tcp_info` (include/uapi/linux/tcp.h), as in
    /// [`tcpwhy_host::TcpInfo`].
    fn seen(seen: &Seen<'_>, now: Duration) -> Self {
        let (word, long) = (|at: usize| word_at(seen.info, at), |at: usize| long_at(seen.info, at));
        Self {
            at_ms: now.as_millis() as u32,
            receive_queue: seen.receive_queue(),
            notsent_bytes: word(144),
            total_retrans: word(100),
            segments_out: word(136),
            segments_in: word(140),
            data_segments_out: word(156),
            // SK_MEMINFO_DROPS.
            drops: word_at(seen.memory, 8 * 4),
            busy_us: long(168),
            peer_window_us: long(176),
            send_buffer_us: long(184),
            bytes_acked: long(120),
            bytes_received: long(128),
        }
    }

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limit::{self, Limit};

    const INFO: usize = 76;

    /// An open socket with nothing to do, as the kernel reports it (inet_diag_msg and three
    /// attributes).
    fn still() -> Vec<u8> {
        let mut bytes = vec![0; 72];
        bytes[..2].copy_from_slice(&[2, 1]);
        bytes[44] = 7;
        let attribute = |kind: u16, value: Vec<u8>| {
            let length = (value.len() + 4) as u16;
            [&length.to_ne_bytes()[..], &kind.to_ne_bytes(), &value].concat()
        };
        let mut info = vec![0; 248];
        for (at, value) in [(16, 1448_u32), (80, 10), (136, 20), (140, 21), (156, 9), (228, 65_536)] {
            info[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        }
        info[0] = 1;
        info[168] = 200;
        bytes.extend(attribute(2, info));
        bytes.extend(attribute(7, vec![0; 36]));
        bytes.extend(attribute(4, b"cubic\0\0\0".to_vec()));
        bytes
    }

    #[test]
    fn what_is_read_where_it_stands_is_what_is_worked_out() {
        // Every byte is different: a field read from a wrong offset has another value.
        let mut bytes = still();
        let ends = bytes.len() - 12 - 40;
        for (at, byte) in bytes[INFO..ends].iter_mut().enumerate() {
            *byte = at as u8;
        }
        for (at, byte) in bytes[ends + 4..ends + 40].iter_mut().enumerate() {
            *byte = 100 + at as u8;
        }
        let seen = Seen::of(&bytes).expect("an answer");
        let socket = seen.socket().expect("a socket");
        let at = Duration::from_millis(5);
        assert_eq!(Counters::seen(&seen, at), Counters::of(&socket, at));
        assert_eq!((seen.cookie(), seen.inode()), (socket.cookie, socket.inode));
    }

    #[test]
    fn what_is_called_idle_at_a_glance_is_idle() {
        let before = still();
        let mut watch = Watch::default();
        watch.note(&Seen::of(&before).expect("an answer"), Duration::ZERO);
        let mut idle = 0;
        // Any single byte of the header or of TCP_INFO may have changed.
        for at in (1..before.len() - 12).filter(|at| !(44..52).contains(at) && !(72..INFO).contains(at)) {
            for value in 0..=u8::MAX {
                let mut bytes = before.clone();
                bytes[at] = value;
                let Some(seen) = Seen::of(&bytes) else { continue };
                let Some(socket) = seen.socket() else { continue };
                if watch.is_idle(&seen) {
                    let lately = watch.since(&socket, Duration::from_secs(1));
                    assert_eq!(limit::of(&socket, &lately, None), Limit::Idle, "byte {at} is {value}");
                    idle += 1;
                }
                if Watch::was_idle(&seen) {
                    let life = Watch::default().since(&socket, Duration::from_secs(1));
                    assert_eq!(limit::of(&socket, &life, None), Limit::Idle, "byte {at} is {value}");
                }
            }
        }
        assert!(idle > 10_000, "{idle}: most bytes say nothing of it");
    }
}
