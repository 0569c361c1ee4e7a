//! What does the kernel say about one socket? The fields of `struct inet_diag_msg` and its attributes.

use std::net::SocketAddr;
use std::time::Duration;

use netlink_packet_core::Parseable as _;
use netlink_packet_sock_diag::inet::{InetResponseHeader, Timer as Raw};
use tcpwhy_host::TcpInfo;

use crate::seen::{Seen, long_at, word_at};

/// The state of a socket; the numbers are the kernel's (include/net/tcp_states.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum State {
    /// Both ends may send.
    Established = 1,
    /// The SYN has not been answered.
    SynSent = 2,
    /// The SYN-ACK has not been acknowledged.
    SynReceived = 3,
    /// Closed here; the FIN has not been acknowledged.
    FinWait1 = 4,
    /// Closed here; the peer may still send.
    FinWait2 = 5,
    /// Closed on both sides; waits for stray segments.
    TimeWait = 6,
    /// Closed.
    Closed = 7,
    /// Closed by the peer; the application here has not closed it yet.
    CloseWait = 8,
    /// Closed by the peer and then here; the FIN has not been acknowledged.
    LastAck = 9,
    /// Waits for connections.
    Listen = 10,
    /// Closed from both sides at once.
    Closing = 11,
    /// A connection being set up, before it has a socket.
    NewSynReceived = 12,
}

impl State {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::Established,
        Self::SynSent,
        Self::SynReceived,
        Self::FinWait1,
        Self::FinWait2,
        Self::TimeWait,
        Self::Closed,
        Self::CloseWait,
        Self::LastAck,
        Self::Listen,
        Self::Closing,
        Self::NewSynReceived,
    ];

    /// Its name in `ss` filters.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Established => "established",
            Self::SynSent => "syn-sent",
            Self::SynReceived | Self::NewSynReceived => "syn-recv",
            Self::FinWait1 => "fin-wait-1",
            Self::FinWait2 => "fin-wait-2",
            Self::TimeWait => "time-wait",
            Self::Closed => "closed",
            Self::CloseWait => "close-wait",
            Self::LastAck => "last-ack",
            Self::Listen => "listening",
            Self::Closing => "closing",
        }
    }

    fn of(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|state| *state as u8 == number)
    }
}

/// The timer that a socket waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timer {
    /// Retransmits in this time.
    Retransmit(Duration),
    /// Sends a keep-alive probe in this time.
    KeepAlive(Duration),
    /// TIME-WAIT.
    TimeWait,
    /// Probes the closed window in this time.
    Probe(Duration),
}

/// Memory of a socket, bytes (`SK_MEMINFO_*`, include/uapi/linux/sock_diag.h).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Allocated for data received and not read.
    pub receive_allocated: u32,
    /// Its limit: SO_RCVBUF doubled, or the result of autotuning.
    pub receive_max: u32,
    /// The limit for data to be sent.
    pub send_max: u32,
    /// Queued for sending, including unacknowledged data and the kernel's overhead.
    pub send_queued: u32,
    /// Packets that waited for the socket's lock, bytes.
    pub backlog: u32,
    /// Packets dropped at the socket.
    pub drops: u32,
}

/// A socket, as it was when the kernel visited it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Socket {
    /// Its state.
    pub state: State,
    /// This end.
    pub local: SocketAddr,
    /// The other end.
    pub remote: SocketAddr,
    /// The interface that it is bound to; 0 means any.
    pub interface: u32,
    /// Distinguishes it from all others since boot, including later ones with the same addresses
    /// and ports.
    pub cookie: u64,
    /// Inode of its file; 0 if no process holds one.
    pub inode: u32,
    /// The user who created it.
    pub uid: u32,
    /// Its pending timer.
    pub timer: Option<Timer>,
    /// Bytes received and not read; for a listening socket, connections not yet accepted.
    pub receive_queue: u32,
    /// Bytes written and not acknowledged; for a listening socket, the maximum number of waiting
    /// connections.
    pub send_queue: u32,
    /// Its memory.
    pub memory: Memory,
    /// Its congestion control.
    pub congestion: Congestion,
    /// `TCP_INFO`.
    pub info: TcpInfo,
    /// Its control group's number; 0 if unknown.
    pub cgroup: u64,
}

impl Socket {
    /// Parses an answer of sock_diag; `None` if it is not one.
    pub(crate) fn of(seen: &Seen<'_>) -> Option<Self> {
        let header = InetResponseHeader::parse(seen.payload).ok()?;
        let id = &header.socket_id;
        Some(Self {
            state: State::of(header.state)?,
            local: SocketAddr::new(id.source_address.to_canonical(), id.source_port),
            remote: SocketAddr::new(id.destination_address.to_canonical(), id.destination_port),
            interface: id.interface_id,
            cookie: seen.cookie(),
            inode: header.inode,
            uid: header.uid,
            timer: header.timer.map(|timer| match timer {
                Raw::Retransmit(expires, _) => Timer::Retransmit(expires),
                Raw::KeepAlive(expires) => Timer::KeepAlive(expires),
                Raw::TimeWait => Timer::TimeWait,
                Raw::Probe(expires) => Timer::Probe(expires),
            }),
            receive_queue: header.recv_queue,
            send_queue: header.send_queue,
            memory: Memory::parse(seen.memory),
            congestion: Congestion::parse(seen.congestion),
            info: TcpInfo::parse(seen.info),
            cgroup: long_at(seen.cgroup, 0),
        })
    }
}

impl Memory {
    fn parse(value: &[u8]) -> Self {
        let word = |at: usize| word_at(value, at * 4);
        Self {
            receive_allocated: word(0),
            receive_max: word(1),
            send_max: word(3),
            send_queued: word(5),
            backlog: word(7),
            drops: word(8),
        }
    }
}

/// The name of a congestion control.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Congestion([u8; 16]);

impl Congestion {
    /// TCP_CA_NAME_MAX with its terminator is 16.
    fn parse(value: &[u8]) -> Self {
        let mut name = [0; 16];
        for (to, from) in name.iter_mut().zip(value.iter().take_while(|byte| **byte != 0)) {
            *to = *from;
        }
        Self(name)
    }

    /// `cubic`, `bbr`, ...; empty if unknown.
    pub fn name(&self) -> &str {
        let end = self.0.iter().position(|byte| *byte == 0).unwrap_or(self.0.len());
        str::from_utf8(&self.0[..end]).unwrap_or_default()
    }
}
