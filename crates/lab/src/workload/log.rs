//! What did the application observe, by its own clock?

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};
use tcpwhy_host::TcpInfo;
use tcpwhy_wire::Instant;

/// One side's log of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentLog {
    /// In the order in which they were opened.
    pub connections: Vec<ConnectionLog>,
    /// Why the script ended early, if it did.
    pub failure: Option<String>,
}

/// One side's log of one connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionLog {
    /// The own address; port 0 for a connection that was never opened.
    pub local: SocketAddr,
    /// The peer's.
    pub peer: SocketAddr,
    /// All calls, in order.
    pub events: Vec<Event>,
    /// The kernel's view, before each exchange and at the end.
    pub samples: Vec<Sample>,
}

/// One call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Which call.
    pub op: Op,
    /// Time before it, ns since the epoch.
    pub start_ns: i64,
    /// Time after it.
    pub end_ns: i64,
    /// Bytes written or read; for a buffer option, the kernel's actual size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Offset of these bytes in their direction of the connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// The value of a setting, or how a call failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// The call of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Op {
    /// From the call to the completed handshake.
    Connect,
    /// Until a connection was accepted.
    Accept,
    /// send
    Write,
    /// send with MSG_MORE
    WriteMore,
    /// writev
    Writev,
    /// sendfile
    Sendfile,
    /// recv; no bytes: the peer has closed.
    Read,
    /// The application was busy elsewhere.
    Think,
    /// The next iteration was not due yet.
    Wait,
    /// setsockopt
    Set,
    /// shutdown(SHUT_WR)
    Shutdown,
    /// close
    Close,
    /// close with RST
    Reset,
}

impl Op {
    /// Whether it moves bytes to the peer.
    pub const fn writes(self) -> bool {
        matches!(self, Self::Write | Self::WriteMore | Self::Writev | Self::Sendfile)
    }
}

/// The kernel's view at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// When it was taken, ns since the epoch.
    pub at_ns: i64,
    /// The kernel's answer.
    pub tcp_info: TcpInfo,
}

/// The clock that also stamps captured packets: the real-time clock itself, so that the two can
/// never drift apart.
pub fn now() -> Instant {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
    Instant::from_nanos(time.tv_sec.saturating_mul(1_000_000_000).saturating_add(time.tv_nsec))
}
