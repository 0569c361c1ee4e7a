//! What did the application see, by its own clock?

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};
use tcpwhy_host::TcpInfo;
use tcpwhy_wire::Instant;

/// One side's account of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentLog {
    /// In the order in which they were opened.
    pub connections: Vec<ConnectionLog>,
    /// Why the script ended early, where it did.
    pub failure: Option<String>,
}

/// One side's account of one connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionLog {
    /// The own address; of a connection that was never opened, port 0.
    pub local: SocketAddr,
    /// The peer's.
    pub peer: SocketAddr,
    /// Everything that was done, in order.
    pub events: Vec<Event>,
    /// The kernel's view, before each exchange and at the end.
    pub samples: Vec<Sample>,
}

/// One call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Which call.
    pub op: Op,
    /// Before it, ns since the epoch.
    pub start_ns: i64,
    /// After it.
    pub end_ns: i64,
    /// Bytes it wrote or read; for a buffer setting, what the kernel made of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Where these bytes begin in their direction of the connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// What a setting was set to, or how a call failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Which call an event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Op {
    /// From the call to the completed handshake.
    Connect,
    /// Until a connection was there.
    Accept,
    /// send
    Write,
    /// send with MSG_MORE
    WriteMore,
    /// writev
    Writev,
    /// sendfile
    Sendfile,
    /// recv; without bytes: the peer has closed.
    Read,
    /// The application did something else.
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
    /// When it was asked, ns since the epoch.
    pub at_ns: i64,
    /// What it said.
    pub tcp_info: TcpInfo,
}

/// The clock that stamps captured packets as well: the real-time clock itself, so that the two can never drift apart.
pub fn now() -> Instant {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
    Instant::from_nanos(time.tv_sec.saturating_mul(1_000_000_000).saturating_add(time.tv_nsec))
}
