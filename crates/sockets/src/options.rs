//! Which options does another process's socket have set? Netlink does not tell; the socket itself
//! does, if this process may duplicate its descriptor (pidfd_getfd(2): the same user with the right
//! to trace it, or root).

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::net::sockopt;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

use crate::sys::int_option;

/// Options that decide when and how much a socket sends. Each is `None` if the kernel does not know
/// it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// TCP_NODELAY: small writes are not held.
    pub nodelay: Option<bool>,
    /// TCP_CORK: partial segments are held.
    pub cork: Option<bool>,
    /// TCP_QUICKACK as it is now; the kernel changes it itself.
    pub quickack: Option<bool>,
    /// SO_RCVBUF was set: the buffer does not grow (SO_BUF_LOCK, Linux 5.15).
    pub receive_buffer_locked: Option<bool>,
    /// SO_SNDBUF was set.
    pub send_buffer_locked: Option<bool>,
    /// TCP_NOTSENT_LOWAT, bytes; all ones means the kernel's default.
    pub notsent_lowat: Option<u32>,
    /// TCP_USER_TIMEOUT, ms; 0 means the system's default.
    pub user_timeout_ms: Option<u32>,
    /// TCP_CONGESTION.
    pub congestion: Option<String>,
}

/// SOCK_SNDBUF_LOCK and SOCK_RCVBUF_LOCK (include/uapi/linux/socket.h).
const SEND_BUFFER_LOCK: i32 = 1;
const RECEIVE_BUFFER_LOCK: i32 = 2;

/// A duplicate of another process's descriptor: the same socket. While it is open, the socket stays
/// open even if all others close it, so it should not be kept longer than needed.
///
/// # Errors
/// The process or its descriptor is gone, may not be accessed, or the kernel is older than Linux
/// 5.6.
pub fn borrow(pid: u32, descriptor: i32) -> io::Result<OwnedFd> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::NotFound)?;
    let process = pidfd_open(pid, PidfdFlags::empty())?;
    Ok(pidfd_getfd(&process, descriptor, PidfdGetfdFlags::empty())?)
}

/// The socket's cookie in sock_diag.
///
/// # Errors
/// It is not a socket.
pub fn cookie(socket: &impl AsFd) -> io::Result<u64> {
    Ok(sockopt::socket_cookie(socket)?)
}

impl Options {
    /// Reads them from a socket, without changing any.
    pub fn of(socket: &impl AsFd) -> Self {
        let locks = int_option(socket, libc::SOL_SOCKET, libc::SO_BUF_LOCK).ok();
        let lowat = int_option(socket, libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT).ok();
        Self {
            nodelay: sockopt::tcp_nodelay(socket).ok(),
            cork: sockopt::tcp_cork(socket).ok(),
            quickack: sockopt::tcp_quickack(socket).ok(),
            receive_buffer_locked: locks.map(|locks| locks & RECEIVE_BUFFER_LOCK != 0),
            send_buffer_locked: locks.map(|locks| locks & SEND_BUFFER_LOCK != 0),
            notsent_lowat: lowat.map(i32::cast_unsigned),
            user_timeout_ms: sockopt::tcp_user_timeout(socket).ok(),
            congestion: sockopt::tcp_congestion(socket).ok(),
        }
    }

    /// The options of a socket held by another process, if it still has this cookie.
    ///
    /// # Errors
    /// As [`borrow`]; or the descriptor belongs to another socket meanwhile.
    pub fn of_foreign(pid: u32, descriptor: i32, cookie: u64) -> io::Result<Self> {
        let socket = borrow(pid, descriptor)?;
        if self::cookie(&socket)? != cookie {
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(Self::of(&socket))
    }
}
