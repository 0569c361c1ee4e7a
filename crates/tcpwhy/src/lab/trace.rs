//! What passes the client's capture in a run: when does data arrive, and what window does the
//! client advertise?

use std::net::IpAddr;

use tcpwhy_wire::{Duration, Instant, Segment};

/// Gathered from the capture at the client, in order of time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Trace {
    /// Data from the server: when it arrived, and in how many packets of the path.
    arrivals: Vec<(Instant, u64)>,
    /// Windows of the client, bytes.
    windows: Vec<(Instant, u64)>,
    /// Window scale of the client's current connection.
    scale: u8,
}

impl Trace {
    pub(super) fn on_segment(&mut self, segment: &Segment, client: IpAddr) {
        if segment.src.ip() == client {
            if segment.flags.syn() {
                self.scale = segment.options.window_scale.unwrap_or(0);
            } else {
                self.windows.push((segment.at, u64::from(segment.window) << self.scale));
            }
        } else if segment.payload_len > 0 {
            // A super-segment was several packets on the path.
            self.arrivals.push((segment.at, u64::from(segment.payload_len.div_ceil(MSS_BYTES))));
        }
    }

    /// The window that 90 % of the ACKs stay within: the few beyond it are not available to the
    /// sender in time.
    pub(super) fn window_bytes(&self) -> Option<u64> {
        let mut windows: Vec<u64> = self.windows.iter().map(|(_, bytes)| *bytes).collect();
        windows.sort_unstable();
        windows.get(windows.len() * 9 / 10).copied()
    }

    /// Packets per second, in each of `n` parts of the time from `start` to `end`.
    pub(super) fn packets_per_s(&self, start: Instant, end: Instant, n: usize) -> Vec<f64> {
        let mut columns = vec![0.0; n];
        let width = (end - start).as_nanos() as f64 / n as f64 / 1e9;
        for (at, packets) in &self.arrivals {
            if let Some(column) = column(*at, start, end, n) {
                columns[column] += *packets as f64 / width;
            }
        }
        columns
    }

    /// The window at the end of each of `n` parts of the time from `start` to `end`.
    pub(super) fn window(&self, start: Instant, end: Instant, n: usize) -> Vec<f64> {
        let mut columns = Vec::with_capacity(n);
        let mut windows = self.windows.iter().skip_while(|(at, _)| *at < start).peekable();
        let mut last = windows.peek().map_or(0, |(_, bytes)| *bytes);
        for part in 1..=n {
            let until = start + Duration::from_nanos((end - start).as_nanos() * part as i64 / n as i64);
            while let Some((_, bytes)) = windows.next_if(|(at, _)| *at <= until) {
                last = *bytes;
            }
            columns.push(last as f64);
        }
        columns
    }
}

/// The part of the time in which something happened.
fn column(at: Instant, start: Instant, end: Instant, n: usize) -> Option<usize> {
    let (since, whole) = ((at - start).as_nanos(), (end - start).as_nanos().max(1));
    let column = usize::try_from(i128::from(since) * n as i128 / i128::from(whole)).ok()?;
    (column <= n).then(|| column.min(n - 1))
}

/// For an Ethernet path with time stamps.
const MSS_BYTES: u32 = 1448;
