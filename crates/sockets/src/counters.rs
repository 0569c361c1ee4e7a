//! What does a network namespace count for all of its sockets? Overflows, cookies, delayed ACKs.

use std::{fs, io};

/// Counters of the calling thread's network namespace since its creation (/proc/net/netstat,
/// /proc/net/snmp).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Connections dropped because a listening socket's queue was full.
    pub listen_overflows: u64,
    /// SYNs that a listening socket dropped, for this or another reason.
    pub listen_drops: u64,
    /// SYN cookies sent.
    pub syn_cookies_sent: u64,
    /// SYNs that met a full queue of half-open connections and were answered with a cookie.
    pub requests_answered_by_cookie: u64,
    /// SYNs dropped because of a full queue.
    pub requests_dropped: u64,
    /// ACKs that were delayed and sent by the timer.
    pub delayed_acks: u64,
    /// Segments received.
    pub segments_in: u64,
    /// Segments sent.
    pub segments_out: u64,
    /// Segments retransmitted.
    pub segments_retransmitted: u64,
}

impl Counters {
    /// Reads the counters.
    ///
    /// # Errors
    /// There is no /proc.
    pub fn read() -> io::Result<Self> {
        let mut text = fs::read_to_string("/proc/thread-self/net/netstat")?;
        text += &fs::read_to_string("/proc/thread-self/net/snmp")?;
        Ok(Self::parse(&text))
    }

    /// Names are in one line, their values in the next.
    fn parse(text: &str) -> Self {
        let value = |table: &str, name: &str| {
            let mut lines = text.lines().filter_map(|line| line.strip_prefix(table));
            let (names, values) = (lines.next()?, lines.next()?);
            let at = names.split(' ').position(|other| other == name)?;
            values.split(' ').nth(at)?.parse::<u64>().ok()
        };
        let extended = |name| value("TcpExt:", name).unwrap_or(0);
        let tcp = |name| value("Tcp:", name).unwrap_or(0);
        Self {
            listen_overflows: extended("ListenOverflows"),
            listen_drops: extended("ListenDrops"),
            syn_cookies_sent: extended("SyncookiesSent"),
            requests_answered_by_cookie: extended("TCPReqQFullDoCookies"),
            requests_dropped: extended("TCPReqQFullDrop"),
            delayed_acks: extended("DelayedACKs"),
            segments_in: tcp("InSegs"),
            segments_out: tcp("OutSegs"),
            segments_retransmitted: tcp("RetransSegs"),
        }
    }

    /// The increase since `then`.
    #[must_use]
    pub fn since(&self, then: &Self) -> Self {
        Self {
            listen_overflows: self.listen_overflows.saturating_sub(then.listen_overflows),
            listen_drops: self.listen_drops.saturating_sub(then.listen_drops),
            syn_cookies_sent: self.syn_cookies_sent.saturating_sub(then.syn_cookies_sent),
            requests_answered_by_cookie: self
                .requests_answered_by_cookie
                .saturating_sub(then.requests_answered_by_cookie),
            requests_dropped: self.requests_dropped.saturating_sub(then.requests_dropped),
            delayed_acks: self.delayed_acks.saturating_sub(then.delayed_acks),
            segments_in: self.segments_in.saturating_sub(then.segments_in),
            segments_out: self.segments_out.saturating_sub(then.segments_out),
            segments_retransmitted: self.segments_retransmitted.saturating_sub(then.segments_retransmitted),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_belong_to_the_names_above_them() {
        let text = "TcpExt: SyncookiesSent ListenOverflows DelayedACKs\nTcpExt: 1 2 3\nIpExt: A\nIpExt: 9\n\
                    Tcp: OutSegs RetransSegs\nTcp: 10 4\n";
        let counters = Counters::parse(text);
        assert_eq!((counters.syn_cookies_sent, counters.listen_overflows, counters.delayed_acks), (1, 2, 3));
        assert_eq!(
            (counters.segments_out, counters.segments_retransmitted, counters.listen_drops),
            (10, 4, 0)
        );
    }
}
