//! Which options of a running process's socket can be changed, and how is each read and written?

use std::io;
use std::os::fd::OwnedFd;

use rustix::net::sockopt;
use serde::{Deserialize, Serialize};
use tcpwhy_host::TcpInfo;

use crate::Error;
use crate::sys::{int_option, set_int_option};

/// A socket option. Values are texts: `0` and `1`, a number, a name, or for buffers `free` and
/// `locked 65536`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Knob {
    /// TCP_NODELAY.
    NoDelay,
    /// TCP_CORK.
    Cork,
    /// Whether SO_RCVBUF is locked, and at how many bytes of kernel memory.
    ReceiveBuffer,
    /// The same for SO_SNDBUF.
    SendBuffer,
    /// TCP_CONGESTION.
    Congestion,
    /// How many connections may wait at a listening socket (listen(2)).
    Backlog,
}

/// SOCK_SNDBUF_LOCK and SOCK_RCVBUF_LOCK (include/uapi/linux/socket.h).
const SEND_LOCK: i32 = 1;
const RECEIVE_LOCK: i32 = 2;
/// A buffer that autotuning may change.
const FREE: &str = "free";

impl Knob {
    /// Its name in programs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NoDelay => "TCP_NODELAY",
            Self::Cork => "TCP_CORK",
            Self::ReceiveBuffer => "SO_RCVBUF",
            Self::SendBuffer => "SO_SNDBUF",
            Self::Congestion => "TCP_CONGESTION",
            Self::Backlog => "the backlog",
        }
    }

    pub(crate) fn read(self, socket: &OwnedFd) -> Result<String, Error> {
        let switch = |value: rustix::io::Result<bool>| value.map(|on| u8::from(on).to_string());
        match self {
            Self::NoDelay => switch(sockopt::tcp_nodelay(socket)),
            Self::Cork => switch(sockopt::tcp_cork(socket)),
            Self::Congestion => sockopt::tcp_congestion(socket),
            Self::ReceiveBuffer => return buffer(socket, RECEIVE_LOCK, libc::SO_RCVBUF),
            Self::SendBuffer => return buffer(socket, SEND_LOCK, libc::SO_SNDBUF),
            // For a listening socket, TCP_INFO has the maximum backlog (tcp_get_info).
            Self::Backlog => {
                let info = TcpInfo::of(socket).map_err(Error::of(self.name(), AS_ROOT))?;
                Ok(info.sacked.unwrap_or(0).to_string())
            }
        }
        .map_err(|error| Error::of(self.name(), AS_ROOT)(error.into()))
    }

    /// Whether the value is between the two: while a buffer is being freed, it is larger and still
    /// locked for a moment.
    pub(crate) fn is_passing(self, now: &str, from: &str, to: &str) -> bool {
        let bytes = |value: &str| value.strip_prefix("locked ").and_then(|bytes| bytes.parse::<u64>().ok());
        match (bytes(now), bytes(from)) {
            (Some(now), Some(from)) => {
                self == Self::ReceiveBuffer && to == FREE && now > from && now <= 2 * from
            }
            _ => false,
        }
    }

    /// State that is lost with a change and cannot be derived from the value: the window clamp,
    /// which changes with the buffer.
    pub(crate) fn memo(self, socket: &OwnedFd) -> Option<String> {
        let clamp = || int_option(socket, libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP).ok();
        clamp().filter(|clamp| self == Self::ReceiveBuffer && *clamp > 0).map(|clamp| clamp.to_string())
    }

    pub(crate) fn write(self, socket: &OwnedFd, value: &str, memo: Option<&str>) -> Result<(), Error> {
        let failed = || Error::of(format!("{} = {value}", self.name()), AS_ROOT);
        let switch = || match value {
            "0" => Ok(false),
            "1" => Ok(true),
            _ => Err(Error::Wrong(format!("{} is 0 or 1, not {value}", self.name()))),
        };
        match self {
            Self::NoDelay => sockopt::set_tcp_nodelay(socket, switch()?),
            Self::Cork => sockopt::set_tcp_cork(socket, switch()?),
            Self::Congestion => sockopt::set_tcp_congestion(socket, value),
            Self::ReceiveBuffer => {
                let set = if value == FREE { free_window(socket) } else { Ok(()) };
                return set
                    .and_then(|()| {
                        let options = [libc::SO_RCVBUFFORCE, libc::SO_RCVBUF];
                        set_buffer(socket, value, RECEIVE_LOCK, options)
                    })
                    .and_then(|()| match memo.and_then(|clamp| clamp.parse().ok()) {
                        Some(clamp) => {
                            set_int_option(socket, libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP, clamp)
                        }
                        None => Ok(()),
                    })
                    .map_err(failed());
            }
            Self::SendBuffer => {
                return set_buffer(socket, value, SEND_LOCK, [libc::SO_SNDBUFFORCE, libc::SO_SNDBUF])
                    .map_err(failed());
            }
            Self::Backlog => {
                let most =
                    value.parse().map_err(|_| Error::Wrong(format!("a backlog is a number, not {value}")))?;
                rustix::net::listen(socket, most)
            }
        }
        .map_err(|error| failed()(error.into()))
    }
}

const AS_ROOT: &str = "run it as root";

fn buffer(socket: &OwnedFd, lock: i32, size: i32) -> Result<String, Error> {
    let locks = int_option(socket, libc::SOL_SOCKET, libc::SO_BUF_LOCK)
        .map_err(|source| Error::NotThere { what: "SO_BUF_LOCK came with Linux 5.15", source })?;
    if locks & lock == 0 {
        return Ok(FREE.to_owned());
    }
    let bytes =
        int_option(socket, libc::SOL_SOCKET, size).map_err(Error::of("the size of a buffer", AS_ROOT))?;
    Ok(format!("locked {bytes}"))
}

/// A receive buffer grows when more is read in a round trip than in any before
/// (tcp_rcv_space_adjust, net/ipv4/tcp_input.c). After a fixed buffer that never happens: so it is
/// doubled once, and the window clamp that its size had caused is removed.
fn free_window(socket: &OwnedFd) -> io::Result<()> {
    // A listening socket has no clamp.
    if int_option(socket, libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP)? > 0 {
        set_int_option(socket, libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP, WINDOW_MAX)?;
    }
    let bytes = int_option(socket, libc::SOL_SOCKET, libc::SO_RCVBUF)?;
    // The kernel reports twice what it is given, so this doubles the buffer.
    set_int_option(socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, bytes)
        .or_else(|_| set_int_option(socket, libc::SOL_SOCKET, libc::SO_RCVBUF, bytes))
}

/// The largest possible window (RFC 7323, 2.3).
const WINDOW_MAX: i32 = 65_535 << 14;

/// `force` exceeds the system's ceiling, and needs CAP_NET_ADMIN.
fn set_buffer(socket: &OwnedFd, value: &str, lock: i32, [force, plain]: [i32; 2]) -> io::Result<()> {
    if value == FREE {
        let locks = int_option(socket, libc::SOL_SOCKET, libc::SO_BUF_LOCK)?;
        return set_int_option(socket, libc::SOL_SOCKET, libc::SO_BUF_LOCK, locks & !lock);
    }
    let bytes = value.strip_prefix("locked ").and_then(|bytes| bytes.parse::<i32>().ok());
    // The kernel doubles and locks the size that it is given.
    let half = bytes.ok_or(io::ErrorKind::InvalidInput)? / 2;
    set_int_option(socket, libc::SOL_SOCKET, force, half)
        .or_else(|_| set_int_option(socket, libc::SOL_SOCKET, plain, half))
}
