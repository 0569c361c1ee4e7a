//! When did this datagram reach the socket? By the kernel's clock, so that the reader's wake-up
//! does not count.
#![expect(unsafe_code, reason = "receive time stamps come as control messages, which no safe wrapper reads")]

use std::io;
use std::mem;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;

use tcpwhy_wire::Instant;

/// Asks the kernel for receive time stamps.
pub(crate) fn enable(socket: &UdpSocket) -> io::Result<()> {
    let on: libc::c_int = 1;
    // SAFETY: the option takes an int, which `on` is.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_TIMESTAMPNS,
            (&raw const on).cast(),
            size_of_val(&on) as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Reads a datagram into `buffer`; returns its length and its time of arrival.
pub(crate) fn receive(socket: &UdpSocket, buffer: &mut [u8]) -> io::Result<(usize, Instant)> {
    let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    let mut control = [0_u64; 8];
    // SAFETY: all zeroes is a valid msghdr; the pointers set below outlive the call.
    let mut message: libc::msghdr = unsafe { mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&control) as _;
    // SAFETY: `message` describes `buffer` and `control`, both writable and of these lengths.
    let len = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, 0) };
    let len = usize::try_from(len).map_err(|_| io::Error::last_os_error())?;
    // SAFETY: the kernel filled `control`; the macros stay inside `msg_controllen`, and a time stamp message holds a
    // timespec, read without assuming its alignment.
    let stamp = unsafe {
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        if header.is_null() || (*header).cmsg_type != libc::SCM_TIMESTAMPNS {
            return Err(io::Error::other("no time stamp"));
        }
        libc::CMSG_DATA(header).cast::<libc::timespec>().read_unaligned()
    };
    Ok((len, Instant::from_nanos(stamp.tv_sec * 1_000_000_000 + stamp.tv_nsec)))
}
